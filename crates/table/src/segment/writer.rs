//! Writing a segment: buffers end to end, a checksum per block as they pass, then the footer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::checksum::checksum;
use esker_format::compression::CompressedBytes;
use esker_format::schema::RowOrder;
use esker_format::segment::packed::PackedNumbers;
use esker_format::segment::{
    BLOCK_BYTES, Buffer, ColumnLayout, CompressedExtent, Encoded, EncodedColumn, EncodedPlaces,
    Encoding, Extent, FieldSketch, Footer, HeapPlaces, Interleaved, PackedExtent, Packing, Places,
    RowIds, SKETCH_ROWS_MIN, Trailer, VERSION, ValueFileUse, encode_column, encode_long_column,
    encode_row_ids, header, sketch_of_column,
};
use esker_format::{Column, FieldId, TableId, invariant};
use esker_log::sabotage::Bug;
use esker_vfs::File;

use super::blocks::{FOOTER_BLOCK, TRAILER_BLOCK, block_place};
use crate::value_file::StoredValue;
use crate::{Error, Result};

/// Bytes of one write, which begins at a multiple of them: the page cache then holds the file in
/// huge pages, where the file system can.
const WRITE_BYTES: usize = 2 << 20;
/// Bytes after which the system starts to write back.
const WRITEBACK_BYTES: u64 = 16 << 20;

/// Bytes of rows that are put together before they are appended.
const INTERLEAVED_BYTES: usize = BLOCK_BYTES;

/// What lies between buffers, each of which begins at a multiple of 64.
const ZEROS: &[u8] = &[0; 64];

/// Where a segment's bytes go.
pub enum SinkTarget {
    /// A file.
    File(Arc<dyn File>),
    /// Memory, for memory databases.
    Memory(Vec<u8>),
}

/// What a segment is.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSpec {
    /// The database's random identity.
    pub database: u128,
    /// The table.
    pub table: TableId,
    /// The segment's number.
    pub segment: u64,
    /// The version of the schema.
    pub schema_version: u32,
    /// How many rows it will have.
    pub rows: u32,
    /// In which order they come.
    pub order: RowOrder,
    /// The fields whose values are to lie side by side, if there are any:
    /// [`esker_format::Schema::side_by_side`].
    pub side_by_side: Option<(FieldId, FieldId)>,
    /// The field that is the key by itself, which needs no sketch: no two rows have the same.
    pub key: Option<FieldId>,
    /// What is packed.
    pub packing: Packing,
}

/// Writes one segment, front to back.
pub struct SegmentWriter<'a> {
    spec: SegmentSpec,
    target: SinkTarget,
    pending: Vec<u8>,
    position: u64,
    written: u64,
    started_writeback: u64,
    block: Vec<u8>,
    block_checksums: Vec<u64>,
    columns: Vec<ColumnLayout>,
    long: Vec<StoredValue>,
    /// The one of the columns that lie side by side that has come.
    half: Option<(FieldId, Cow<'a, Column>)>,
}

/// A segment that has been written, and not opened yet.
pub struct FinishedSegment {
    /// The length of the file.
    pub file_bytes: u64,
    /// Where the bytes went.
    pub target: SinkTarget,
    /// Its long values: to be held until it is open, so that their files stay.
    pub long: Vec<StoredValue>,
}

impl<'a> SegmentWriter<'a> {
    /// Starts a segment with its header.
    ///
    /// # Errors
    /// What the machine says; the same below.
    pub fn new(spec: SegmentSpec, target: SinkTarget) -> Result<Self> {
        let mut writer = Self {
            spec,
            target,
            pending: Vec::new(),
            position: 0,
            written: 0,
            started_writeback: 0,
            block: Vec::with_capacity(BLOCK_BYTES),
            block_checksums: Vec::new(),
            columns: Vec::new(),
            long: Vec::new(),
            half: None,
        };
        writer.append(&header(spec.database, spec.table, spec.segment))?;
        Ok(writer)
    }

    /// Appends bytes to the data, which are checksummed by block.
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.block.len();
            // Whole blocks are checksummed where they lie.
            if self.block.is_empty() && bytes.len() >= BLOCK_BYTES {
                let (block, rest) = bytes.split_at(BLOCK_BYTES);
                self.finish_block(block);
                bytes = rest;
            } else {
                let (piece, rest) = bytes.split_at(room.min(bytes.len()));
                self.block.extend_from_slice(piece);
                bytes = rest;
                if self.block.len() == BLOCK_BYTES {
                    let block = std::mem::take(&mut self.block);
                    self.finish_block(&block);
                    self.block = block;
                    self.block.clear();
                }
            }
        }
        Ok(())
    }

    fn finish_block(&mut self, bytes: &[u8]) {
        let block = self.block_checksums.len() as u64;
        let place = block_place(self.spec.database, self.spec.segment, block);
        self.block_checksums.push(checksum(place, bytes));
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.position += bytes.len() as u64;
        match &mut self.target {
            SinkTarget::Memory(memory) => memory.extend_from_slice(bytes),
            SinkTarget::File(_) => {
                let mut bytes = bytes;
                if !self.pending.is_empty() {
                    let room = WRITE_BYTES - self.pending.len();
                    let (piece, rest) = bytes.split_at(room.min(bytes.len()));
                    self.pending.extend_from_slice(piece);
                    bytes = rest;
                    if self.pending.len() == WRITE_BYTES {
                        self.flush()?;
                    }
                }
                let (whole, rest) = bytes.split_at(bytes.len() / WRITE_BYTES * WRITE_BYTES);
                for piece in whole.chunks(WRITE_BYTES) {
                    self.write_through(piece)?;
                }
                self.pending.extend_from_slice(rest);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let result = self.write_through(&pending);
        self.pending = pending;
        self.pending.clear();
        result
    }

    fn write_through(&mut self, bytes: &[u8]) -> Result<()> {
        if let SinkTarget::File(file) = &self.target {
            file.write_all_at(bytes, self.written)?;
            self.written += bytes.len() as u64;
            if self.written - self.started_writeback >= WRITEBACK_BYTES {
                file.start_writeback(self.started_writeback, self.written - self.started_writeback);
                self.started_writeback = self.written;
            }
        }
        Ok(())
    }

    fn buffer(&mut self, buffer: &Buffer<'_>) -> Result<Extent> {
        self.raw_buffer(buffer.as_bytes())
    }

    fn raw_buffer(&mut self, bytes: &[u8]) -> Result<Extent> {
        self.pad()?;
        let offset = self.position;
        self.append(bytes)?;
        Ok(Extent { offset, len: bytes.len() as u64 })
    }

    fn pad(&mut self) -> Result<()> {
        let padding = usize::try_from(self.position.next_multiple_of(64) - self.position);
        match padding.ok().and_then(|padding| ZEROS.get(..padding)) {
            Some(zeros) => self.append(zeros),
            None => {
                let (segment, position) = (self.spec.segment, self.position);
                Err(Error::corrupt(format!("segment {segment}: no padding at {position}")))
            }
        }
    }

    /// Encodes and appends a column, some of whose values, by rising row, lie in value files. Of
    /// two that are to lie side by side the first waits for the other.
    ///
    /// # Errors
    /// What the machine says.
    pub fn field(
        &mut self,
        field: FieldId,
        column: Cow<'a, Column>,
        long: Vec<(usize, StoredValue)>,
    ) -> Result<()> {
        let is_half = self.spec.side_by_side.is_some_and(|(a, b)| field == a || field == b);
        if long.is_empty() && is_half {
            return match self.half.take() {
                None => {
                    self.half = Some((field, column));
                    Ok(())
                }
                Some(half) => self.side_by_side(&half, &(field, column)),
            };
        }
        if long.is_empty() {
            let mut encoded = self.sketched(field, &column);
            encoded.pack(&column, self.packing());
            return self.column(&encoded);
        }
        let places: Vec<_> = long.iter().map(|(row, stored)| (*row, stored.reference)).collect();
        self.column(&encode_long_column(field, &column, &places)?)?;
        self.long.extend(long.into_iter().map(|(_, stored)| stored));
        Ok(())
    }

    /// What is packed: in memory there are no blocks that could be read for a time.
    fn packing(&self) -> Packing {
        match self.target {
            SinkTarget::File(_) => self.spec.packing,
            SinkTarget::Memory(_) => self.spec.packing.min(Packing::Numbers),
        }
    }

    /// Encodes a column without long values, with a sketch where the segment has them.
    fn sketched<'c>(&self, field: FieldId, column: &'c Column) -> EncodedColumn<'c> {
        let mut encoded = encode_column(field, column);
        if Bug::SketchLeftEmpty.is_planted() {
            encoded.sketch = Some(FieldSketch::default());
        } else if self.spec.rows >= SKETCH_ROWS_MIN && self.spec.key != Some(field) {
            encoded.sketch = Some(sketch_of_column(column, &encoded));
        }
        encoded
    }

    /// Appends two columns row by row, if they can lie so.
    fn side_by_side(
        &mut self,
        (first, first_column): &(FieldId, Cow<'a, Column>),
        (second, second_column): &(FieldId, Cow<'a, Column>),
    ) -> Result<()> {
        let first = self.sketched(*first, first_column);
        let second = self.sketched(*second, second_column);
        let Some(interleaved) = Interleaved::new(&first, &second) else {
            self.column(&first)?;
            return self.column(&second);
        };
        let places = match interleaved.places() {
            Some(Places::Lines(lines)) => Some(Places::Lines(self.buffer(&lines)?)),
            Some(Places::Offsets(offsets)) => Some(Places::Offsets(self.buffer(&offsets)?)),
            None => None,
        };
        self.pad()?;
        let offset = self.position;
        let (mut row, mut rows) = (0, Vec::with_capacity(2 * INTERLEAVED_BYTES));
        while row < interleaved.rows() {
            row = interleaved.append(row, INTERLEAVED_BYTES, &mut rows);
            self.append(&rows)?;
            rows.clear();
        }
        let heap = Extent { offset, len: self.position - offset };
        let encodings = interleaved.encodings(heap, places);
        for (column, encoding) in [&first, &second].into_iter().zip(encodings) {
            self.push(column, encoding, None);
        }
        Ok(())
    }

    /// Appends a column.
    ///
    /// # Errors
    /// What the machine says.
    pub fn column(&mut self, column: &EncodedColumn<'_>) -> Result<()> {
        let encoding = match &column.values {
            Encoded::Constant(value) => Encoding::Constant(value.clone()),
            Encoded::Plain(values) => Encoding::Plain { values: self.buffer(values)? },
            Encoded::Narrowed { base, width, codes } => {
                Encoding::Narrowed { base: *base, width: *width, codes: self.buffer(codes)? }
            }
            Encoded::Dictionary { width, codes, offsets, heap } => Encoding::Dictionary {
                width: *width,
                codes: self.buffer(codes)?,
                offsets: self.buffer(offsets)?,
                heap: self.buffer(heap)?,
            },
            Encoded::Variable { offsets, heap } => {
                Encoding::Variable { offsets: self.buffer(offsets)?, heap: self.buffer(heap)? }
            }
            Encoded::FixedWidth { width, heap } => {
                Encoding::FixedWidth { width: *width, heap: self.buffer(heap)? }
            }
            Encoded::Scattered { words, heap, long } => Encoding::Scattered {
                words: self.buffer(words)?,
                heap: self.buffer(heap)?,
                long: self.buffer(long)?,
            },
            Encoded::Packed { base, span, numbers } => {
                Encoding::Packed { base: *base, span: *span, numbers: self.numbers(numbers)? }
            }
            Encoded::PackedDeltas { base, span, numbers } => {
                Encoding::PackedDeltas { base: *base, span: *span, numbers: self.numbers(numbers)? }
            }
            Encoded::PackedDictionary { width, codes, offsets, heap } => {
                Encoding::PackedDictionary {
                    width: *width,
                    codes: self.numbers(codes)?,
                    offsets: self.buffer(offsets)?,
                    heap: self.buffer(heap)?,
                }
            }
            Encoded::PackedVariable { offsets, heap } => Encoding::PackedVariable {
                offsets: self.numbers(offsets)?,
                heap: self.buffer(heap)?,
            },
            Encoded::Compressed { places, heap_len, bytes } => {
                self.compressed(places, *heap_len, bytes)?
            }
        };
        let validity = match &column.validity {
            Some(bits) => Some(self.buffer(bits)?),
            None => None,
        };
        self.push(column, encoding, validity);
        Ok(())
    }

    fn numbers(&mut self, numbers: &PackedNumbers) -> Result<PackedExtent> {
        Ok(PackedExtent {
            directory: self.raw_buffer(bytemuck::cast_slice(&numbers.directory))?,
            words: self.raw_buffer(bytemuck::cast_slice(&numbers.words))?,
        })
    }

    fn compressed(
        &mut self,
        places: &EncodedPlaces<'_>,
        len: u64,
        bytes: &CompressedBytes,
    ) -> Result<Encoding> {
        let places = match places {
            EncodedPlaces::Width(width) => HeapPlaces::Width(*width),
            EncodedPlaces::Offsets(offsets) => HeapPlaces::Offsets(self.buffer(offsets)?),
            EncodedPlaces::Packed(offsets) => HeapPlaces::Packed(self.numbers(offsets)?),
        };
        let directory = self.raw_buffer(bytemuck::cast_slice(&bytes.directory))?;
        let heap = CompressedExtent { len, directory, bytes: self.raw_buffer(&bytes.bytes)? };
        Ok(Encoding::Compressed { places, heap })
    }

    fn push(&mut self, column: &EncodedColumn<'_>, encoding: Encoding, validity: Option<Extent>) {
        let mut zones = column.zones.clone();
        for zone in zones.iter_mut().filter(|_| Bug::ZoneBoundsSwapped.is_planted()) {
            if let Some(greatest) = &mut zone.greatest {
                std::mem::swap(&mut zone.least, greatest);
            }
        }
        let (field, data_type, sketch) = (column.field, column.data_type, column.sketch.clone());
        self.columns.push(ColumnLayout { field, data_type, encoding, validity, zones, sketch });
    }

    /// The value files that columns refer to.
    fn value_files(&self) -> Vec<ValueFileUse> {
        let mut uses = BTreeMap::<u64, u64>::new();
        for stored in &self.long {
            *uses.entry(stored.file.id()).or_default() += stored.reference.space();
        }
        uses.into_iter().map(|(file, bytes)| ValueFileUse { file, bytes }).collect()
    }

    /// Appends row ids, dead rows, footer and trailer. The long values are durable then; nothing
    /// else is synced.
    ///
    /// # Errors
    /// What the machine says.
    pub fn finish(mut self, row_ids: &[u64], dead: Option<&[u64]>) -> Result<FinishedSegment> {
        self.long.iter().try_for_each(StoredValue::sync)?;
        if let Some((field, column)) = self.half.take() {
            self.column(&self.sketched(field, &column))?;
        }
        let segment = self.spec.segment;
        let place = format_args!("segment {segment}");
        let (ids, rows) = (row_ids.len(), self.spec.rows);
        invariant!(ids == rows as usize, place, "{ids} row ids of {rows} rows");
        let rise = self.spec.order != RowOrder::Arrival || row_ids.is_sorted();
        invariant!(rise, place, "rows that lie as they came have falling row ids");
        // default: bounds of no rows, which no one looks at
        let first = row_ids.iter().min().copied().unwrap_or_default();
        // default: the same, of no rows
        let last = row_ids.iter().max().copied().unwrap_or_default();
        let row_ids = match encode_row_ids(row_ids) {
            None => RowIds::Dense { first },
            Some((4, codes)) => RowIds::Narrowed { first, last, codes: self.buffer(&codes)? },
            Some((_, values)) => RowIds::Plain { first, last, values: self.buffer(&values)? },
        };
        let dead = match dead {
            Some(bits) => Some(self.raw_buffer(bytemuck::cast_slice(bits))?),
            None => None,
        };
        self.pad()?;
        let data_end = self.position;
        if !self.block.is_empty() {
            let block = std::mem::take(&mut self.block);
            self.finish_block(&block);
        }
        let footer = Footer {
            table: self.spec.table,
            segment: self.spec.segment,
            schema_version: self.spec.schema_version,
            rows: self.spec.rows,
            order: self.spec.order,
            packing: self.spec.packing,
            row_ids,
            dead,
            columns: std::mem::take(&mut self.columns),
            value_files: self.value_files(),
            block_checksums: std::mem::take(&mut self.block_checksums),
        };
        let bytes = footer.encode();
        let place = |block| block_place(self.spec.database, self.spec.segment, block);
        let trailer = Trailer {
            version: VERSION,
            footer_offset: data_end,
            footer_len: bytes.len() as u64,
            footer_checksum: checksum(place(FOOTER_BLOCK), &bytes),
        };
        let trailer = trailer.encode(place(TRAILER_BLOCK));
        self.write(&bytes)?;
        self.write(&trailer)?;
        self.flush()?;
        Ok(FinishedSegment { file_bytes: self.position, target: self.target, long: self.long })
    }
}
