//! A footer that decodes has every extent inside the data, and encodes again to the same footer.
//! Two columns that lie side by side read as they did, and where damaged places lie is told of no
//! byte that is not there.

use esker_format::checksum::Place;
use esker_format::codec::{Reader, Writer};
use esker_format::part_lines::{LINE_ROWS, Line, lines_of};
use esker_format::segment::{
    Buffer, Encoded, EncodedColumn, FieldSketch, Footer, Interleaved, Places, TRAILER_BYTES,
    Trailer, VERSION, VERSION_MIN, encode_column,
};
use esker_format::{
    Column, ColumnSlice, Data, DataType, FieldId, PartLines, Validity, ValueRef, Values,
};

/// The most bytes of data that a footer is checked against.
const DATA_BYTES_MAX: u64 = 1 << 24;
/// The most rows of two columns.
const ROWS_MAX: usize = 200;
/// Bytes that a long value has more than others, or a multiple of them.
const LONG_BYTES: usize = 14 << 10;

/// The target: the end of the data, then a footer; the whole as a trailer, as key and value of
/// rows, and as lines of places.
pub fn run(data: &[u8]) {
    if let Some((end, bytes)) = data.split_first_chunk() {
        let data_end = u64::from_le_bytes(*end) % DATA_BYTES_MAX;
        for version in VERSION_MIN..=VERSION {
            if let Ok(footer) = Footer::decode(bytes, data_end, version) {
                assert_eq!(Footer::decode(&footer.encode(), data_end, VERSION), Ok(footer));
            }
        }
    }
    let place = Place { database: 7, file: 1, position: 0 };
    if let Ok(trailer) = Trailer::decode(data, place) {
        assert_eq!(Trailer::decode(&trailer.encode(place), place), Ok(trailer));
        assert_eq!(trailer.encode(place).len(), TRAILER_BYTES);
    }
    side_by_side(data);
    damaged(data);
    sketch(data);
}

/// What decodes as a sketch is one: it encodes to the same bytes, and is its own union.
fn sketch(data: &[u8]) {
    let mut input = Reader::new(data);
    let Ok(sketch) = FieldSketch::decode(&mut input) else { return };
    let read = data.len() - input.remaining();
    let mut out = Writer::new();
    sketch.encode(&mut out);
    assert_eq!(FieldSketch::decode(&mut Reader::new(out.as_bytes())).as_ref(), Ok(&sketch));
    // A count may be spelt with more bytes than it needs.
    assert!(out.len() <= read);
    let mut union = sketch.clone();
    union.merge(&sketch);
    assert_eq!(union, sketch);
    assert!(union.count() >= u64::from(sketch.least_count() > 0));
}

/// Rows of a key and a value, whose lengths a byte each tells: those above 250 are long enough for
/// some line to tell less than its rows take.
fn side_by_side(data: &[u8]) {
    let (lengths, bytes) = data.split_at(data.len() / 3);
    let (mut columns, mut at) = ([DataType::Bytes; 2].map(Column::empty), 0usize);
    for row in lengths.as_chunks::<2>().0.iter().take(ROWS_MAX) {
        for (column, len) in columns.iter_mut().zip(row) {
            let (short, long) = (usize::from(*len).min(250), usize::from(len.saturating_sub(250)));
            let mut value: Vec<u8> =
                bytes.iter().cycle().skip(at % bytes.len()).take(short).copied().collect();
            at += short;
            value.resize(value.len() + long * LONG_BYTES, 0);
            assert!(column.push(ValueRef::Bytes(&value)).is_ok());
        }
    }
    let [keys, values] = &columns;
    let (first, second) = (encode_column(FieldId(1), keys), encode_column(FieldId(2), values));
    let Some(interleaved) = Interleaved::new(&first, &second) else { return };
    assert_eq!(interleaved.rows(), keys.len());
    let (mut row, mut heap) = (0, Vec::new());
    while row < interleaved.rows() {
        row = interleaved.append(row, usize::MAX, &mut heap);
    }
    let widths = [&first, &second].map(width);
    let places = Owned::of(interleaved.places(), widths);
    for (number, column) in columns.iter().enumerate() {
        let Values::Variable(texts) = &column.values else { return };
        for from in [0, keys.len() / 2] {
            let (len, data) = (keys.len() - from, places.from(&heap, number, from));
            let slice = slice(len, data);
            for row in from..keys.len() {
                assert_eq!(slice.bytes(row - from), texts.get(row), "part {number} of row {row}");
            }
        }
    }
}

/// Whatever bytes say of places, some part or nothing is read.
fn damaged(data: &[u8]) {
    let lines: Vec<Line> = data.as_chunks().0.iter().map(line).collect();
    let (rows, widths) = (lines.len() * LINE_ROWS, [0, 0]);
    let places = Owned { lines, offsets: Vec::new(), widths };
    for part in [0, 1] {
        let slice = slice(rows, places.from(data, part, 0));
        for row in 0..rows + 2 {
            assert!(slice.bytes(row).len() <= data.len());
        }
    }
    // What lines are made of is what they tell.
    let lengths = data.as_chunks::<2>().0.iter().map(|len| usize::from(u16::from_le_bytes(*len)));
    let Some(made) = lines_of(lengths.clone()) else { return };
    let lines: Vec<Line> = made.as_chunks().0.to_vec();
    let mut end = 0;
    for (part, len) in lengths.enumerate() {
        let (start, next) = PartLines::new(&lines, part / 2, part % 2).place(0).expect("a part");
        assert_eq!((start, (next - start) as usize), (end, len));
        end = next;
    }
}

fn slice(len: usize, data: Data<'_>) -> ColumnSlice<'_> {
    ColumnSlice { data_type: DataType::Bytes, len, validity: Validity::AllValid, data }
}

fn width(column: &EncodedColumn<'_>) -> usize {
    match &column.values {
        Encoded::FixedWidth { width, .. } => *width as usize,
        _ => 0,
    }
}

/// Places as a reader of a segment has them.
struct Owned {
    lines: Vec<Line>,
    offsets: Vec<u32>,
    widths: [usize; 2],
}

impl Owned {
    fn of(places: Option<Places<Buffer<'_>>>, widths: [usize; 2]) -> Self {
        let (mut lines, mut offsets) = (Vec::new(), Vec::new());
        match places {
            Some(Places::Lines(made)) => {
                lines = made.as_bytes().as_chunks().0.iter().map(line).collect();
            }
            Some(Places::Offsets(made)) => {
                let made = made.as_bytes().as_chunks().0.iter();
                offsets = made.map(|bytes| u32::from_le_bytes(*bytes)).collect();
            }
            None => {}
        }
        Self { lines, offsets, widths }
    }

    /// Parts number `part` from a row on.
    fn from<'a>(&'a self, heap: &'a [u8], part: usize, row: usize) -> Data<'a> {
        let [first, second] = self.widths;
        let behind = |start: u32| heap.get(start as usize..).unwrap_or_default();
        if !self.lines.is_empty() {
            let lines = self.lines.get(row / LINE_ROWS..).unwrap_or_default();
            let lines = PartLines::new(lines, row % LINE_ROWS, part);
            let start = lines.place(0).map_or(0, |(start, _)| start);
            return Data::Lined { lines, start, heap: behind(start) };
        }
        if !self.offsets.is_empty() {
            let offsets = self.offsets.get(2 * row + part..).unwrap_or_default();
            let start = offsets.first().copied().unwrap_or_default();
            return Data::Interleaved { offsets, start, heap: behind(start) };
        }
        let (stride, width) = (first + second, self.widths[part]);
        let heap = heap.get(row * stride + part * first..).unwrap_or_default();
        Data::FixedWidth { width, stride, heap }
    }
}

fn line(bytes: &[u8; 64]) -> Line {
    let mut line = Line::default();
    for (to, from) in line.iter_mut().zip(bytes.as_chunks().0) {
        *to = u16::from_le_bytes(*from);
    }
    line
}
