//! The run of a bitmap index: for each value of a field that has few, the rows that have it.
//!
//! ```text
//! segment-…2a      row    0   1   2   3  4       run-…2a-0003   value  red  tan  -
//!                  paint  red tan red -  red                    count   3    1   1
//!                                                               rows   0,2,4 1   3
//! ```
//!
//! It is stored as a segment with a row for each value, by rising value, NULL last. A condition is
//! tried once for each value, and the rows are the union of those that the values have. Every row
//! of the segment is among those of one value, dead ones included; so what does not pass is the
//! complement.
//!
//! A segment in which the field has more than [`VALUES_MAX`] values, or longer ones than pay, has a
//! run of one row with count 0, which says so, and is scanned.
//!
//! # Invariants
//!
//! Beside those of all runs, asserted when a run is written and when it is opened:
//! 1. The counts of the values make up the rows of the segment, unless the run says that it is left
//!    out.
//! 2. There are at most [`VALUES_MAX`] values and NULL.
//!
//! That each value has its rows, and that values rise, is compared by `verify`.

use esker_format::postings::{Postings, add_to, decode};
use esker_format::{
    Column, ColumnSlice, Data, DataType, Field, FieldId, KeyTable, Room, Schema, ValueRef,
};
use esker_log::sabotage::Bug;

use super::row_number::{number, row_limit};
use super::run::IndexRun;
use super::run_format::{NewRun, RunFormat, RunSource};
use super::run_writer::write_columns;
use super::sorted::has_fields_of;
use crate::segment::Segment;
use crate::segment::sink::SegmentSink;
use crate::{Error, Result};

/// The most values of a field in one segment, for which a bitmap index is kept.
pub const VALUES_MAX: usize = 4_096;

/// The most bytes that they have together.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The columns of the file, beside that of the values, which has the number of the field.
const COUNT: (FieldId, DataType) = (FieldId(u16::MAX - 1), DataType::U32);
const ROWS: (FieldId, DataType) = (FieldId(u16::MAX), DataType::Bytes);

fn field((id, data_type): (FieldId, DataType)) -> Field {
    Field::new(id, String::new(), data_type, false)
}

/// The rows of each value.
struct Gathered {
    /// By rising value, NULL last: the first row that has it, and all.
    values: Vec<(usize, Postings)>,
}

impl Gathered {
    /// The rows of each value of a column; `None` when there are too many.
    fn of(column: &ColumnSlice<'_>) -> Option<Self> {
        let mut values: Vec<(usize, Postings)> = Vec::new();
        let mut numbers = Numbers::new(column);
        let (mut nulls, mut byte_count) = (Postings::default(), 0);
        let skipped = usize::from(Bug::BitmapLacksLastRow.is_planted());
        for (row, at) in (0u32..).zip(0..column.len.saturating_sub(skipped)) {
            if column.is_null(at) {
                nulls.push(row);
                continue;
            }
            let number = numbers.of(column, at);
            if number == values.len() {
                // default: numbers have none, and `VALUES_MAX` is their bound
                byte_count += column.value(at).as_bytes().map_or(0, <[u8]>::len);
                if number == VALUES_MAX || byte_count > VALUE_BYTES_MAX {
                    return None;
                }
                values.push((at, Postings::default()));
            }
            if let Some((_, rows)) = values.get_mut(number) {
                rows.push(row);
            }
        }
        values.sort_by(|(a, _), (b, _)| column.value(*a).compare(column.value(*b)));
        if nulls.count() > 0 && !Bug::BitmapForgetsNulls.is_planted() {
            let first = (0..column.len).find(|at| column.is_null(*at))?;
            values.push((first, nulls));
        }
        Some(Self { values })
    }
}

/// Numbers values in the order in which they are met.
struct Numbers {
    /// By code, where values are codes.
    by_code: Vec<Option<usize>>,
    next: usize,
    table: KeyTable,
    key: Vec<u8>,
}

impl Numbers {
    fn new(column: &ColumnSlice<'_>) -> Self {
        let codes = match &column.data {
            Data::Dictionary { dictionary, .. } => dictionary.len(),
            _ => 0,
        };
        let (table, key) = (KeyTable::default(), Vec::new());
        Self { by_code: vec![None; codes], next: 0, table, key }
    }

    /// The number of a value that is not NULL. Floats that are equal but not the same are two.
    fn of(&mut self, column: &ColumnSlice<'_>, at: usize) -> usize {
        if let Data::Dictionary { codes, .. } = &column.data
            && let Some(number) = self.by_code.get_mut(codes.get(at) as usize)
        {
            return *number.get_or_insert_with(|| {
                self.next += 1;
                self.next - 1
            });
        }
        let value = column.value(at);
        self.key.clear();
        match value {
            ValueRef::Float(float) => self.key.extend_from_slice(&float.to_bits().to_le_bytes()),
            value => match value.as_bytes() {
                Some(bytes) => self.key.extend_from_slice(bytes),
                None => {
                    let key = esker_format::order_key::key(value);
                    self.key.extend_from_slice(&key.to_le_bytes());
                }
            },
        }
        self.table.number(&self.key) as usize
    }
}

/// [`IndexKind::Bitmap`](esker_format::schema::IndexKind::Bitmap).
pub(super) struct Bitmaps;

impl RunFormat for Bitmaps {
    fn write(
        &self,
        new: NewRun<'_>,
        source: &dyn RunSource,
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment> {
        let NewRun { index, .. } = new;
        let [part, ..] = index.fields.as_slice() else { return Err(new.no_field()) };
        let indexed = new.indexed_field(part)?;
        let room = Room::default();
        let column = source.column(indexed, &room)?;
        let mut values = Column::empty(indexed.data_type);
        let (mut counts, mut rows) = (Column::empty(COUNT.1), Column::empty(ROWS.1));
        // default: too many values have none, and the run says so
        let gathered = Gathered::of(&column).map_or_else(Vec::new, |gathered| gathered.values);
        for (first, postings) in &gathered {
            values.push(column.value(*first))?;
            counts.push(ValueRef::Uint(postings.count().into()))?;
            rows.push(ValueRef::Bytes(&postings.encode()))?;
        }
        if gathered.is_empty() {
            values.push_null();
            counts.push(ValueRef::Uint(0))?;
            rows.push(ValueRef::Bytes(&Postings::default().encode()))?;
        }
        let columns = [(indexed.id, values), (COUNT.0, counts), (ROWS.0, rows)];
        write_columns(new, &columns, sink)
    }

    fn broken_rule(&self, run: &IndexRun) -> Result<Option<String>> {
        let (values, rows) = (run.entries.row_count(), run.row_count());
        if values > VALUES_MAX + 1 {
            return Ok(Some(format!("{values} values, at most {VALUES_MAX}")));
        }
        let counts: Vec<usize> =
            (0..values).map(|value| run.value_count(value)).collect::<Result<_>>()?;
        let counted: usize = counts.iter().sum();
        let is_right = counted == rows || counts == [0];
        Ok((!is_right).then(|| format!("values have {counted} rows, the segment has {rows}")))
    }

    fn is_readable_by(&self, run: &IndexRun, schema: &Schema) -> bool {
        has_fields_of(run, schema)
    }

    fn is_left_out(&self, run: &IndexRun) -> Result<bool> {
        Ok(run.value_count(0)? == 0)
    }

    fn verify(&self, run: &IndexRun, owner: &Segment, schema: &Schema) -> Result<()> {
        let indexed = run.index.fields.first().and_then(|part| schema.field_of(part.field));
        let Some(indexed) = indexed else { return Ok(()) };
        let wrong = |what: &str| {
            let (name, segment) = (&run.index.name, owner.id());
            Error::corrupt(format!("index {name:?}, segment {segment}: {what}"))
        };
        let room = Room::default();
        let column = RunSource::column(owner, indexed, &room)?;
        let Some(Gathered { values }) = Gathered::of(&column).filter(|_| column.len > 0) else {
            let is_told = self.is_left_out(run)?;
            return if is_told { Ok(()) } else { Err(wrong("too many values")) };
        };
        let found = run.values(indexed)?;
        if found.len != values.len() {
            return Err(wrong(&format!("{} values, expected {}", found.len, values.len())));
        }
        let most = row_limit(owner.row_count());
        let rows_field = field(ROWS);
        for (at, (first, postings)) in values.iter().enumerate() {
            let rows = run.entries.column_as_stored(&rows_field, at..at + 1)?;
            let is_right = column.value(*first).compare(found.value(at)).is_eq()
                && run.value_count(at)? == postings.count() as usize
                && decode(rows.bytes(0), most)? == decode(&postings.encode(), most)?;
            if !is_right {
                return Err(wrong(&format!("wrong rows of value {at}")));
            }
        }
        Ok(())
    }
}

impl IndexRun {
    /// The values of a bitmap index, each once, as a reader's field has them; NULL comes last,
    /// where some row is NULL.
    ///
    /// # Errors
    /// `Corrupt` when there are more than there can be, too.
    pub fn values<'a>(&'a self, field: &'a Field) -> Result<ColumnSlice<'a>> {
        let count = self.entries.row_count();
        if count > VALUES_MAX + 1 {
            let name = &self.index.name;
            return Err(Error::corrupt(format!("index {name:?}: {count} values")));
        }
        self.entries.column_as_stored(field, 0..count)
    }

    /// How many rows have a value, the dead ones included.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn value_count(&self, value: usize) -> Result<usize> {
        Ok(number(self.entries.value_as_stored(&field(COUNT), value)?)? as usize)
    }

    /// Sets the bits of the rows that have a value, of a segment of `rows` rows.
    ///
    /// # Errors
    /// `Corrupt` when they are not rows of the segment, too.
    pub fn add_rows_of_value(&self, value: usize, rows: usize, bits: &mut [u64]) -> Result<()> {
        let field = field(ROWS);
        let column = self.entries.column_as_stored(&field, value..value + 1)?;
        let added = add_to(column.bytes(0), row_limit(rows), bits);
        Ok(added.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?)
    }
}
