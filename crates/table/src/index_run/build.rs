//! Writing the run of an index for one segment.

use esker_format::edit::SegmentEntry;
use esker_format::schema::{Index, IndexField, IndexKind, RowOrder};
use esker_format::segment::{Reordered, encode_column};
use esker_format::{Column, ColumnSlice, DataType, Field, FieldId, Schema, TableId, ValueRef};
use esker_log::sabotage::planted;

use super::sort::sorted_rows;
use super::{IndexRun, KEY_BYTES_MAX, ROW_FIELD, bitmap, document_text, grams, path_field};
use crate::segment::run_file_id;
use crate::segment::sink::SegmentSink;
use crate::segment::{FinishedSegment, Segment, SegmentSpec, SegmentWriter};
use crate::{Error, Result};

/// Where the values of a segment come from.
pub trait RunSource {
    /// How many rows there are.
    fn row_count(&self) -> usize;

    /// The whole column of a field.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    fn column<'a>(&'a self, field: &'a Field) -> Result<ColumnSlice<'a>>;
}

impl RunSource for Segment {
    fn row_count(&self) -> usize {
        Self::row_count(self)
    }

    fn column<'a>(&'a self, field: &'a Field) -> Result<ColumnSlice<'a>> {
        Self::column(self, field, 0..Self::row_count(self))
    }
}

/// Sorts the rows of segment `segment` by an index and writes the run. The sink syncs it; its name
/// is durable once the directory is.
///
/// # Errors
/// What the machine says, or `Corrupt` when a block of the source does not fit its checksum.
pub fn write_run(
    (database, table, segment): (u128, TableId, u64),
    schema: &Schema,
    index: &Index,
    source: &dyn RunSource,
    sink: &mut dyn SegmentSink,
) -> Result<IndexRun> {
    let place = (database, table, segment);
    match index.kind {
        IndexKind::Ordered => {}
        IndexKind::Trigram => return grams::write(place, schema, index, source, sink),
        IndexKind::Bitmap => return bitmap::write(place, schema, index, source, sink),
    }
    let rows = source.row_count();
    let mut extracted = Vec::new();
    for part in index.fields.iter().filter(|part| !part.path.is_empty()) {
        let field = indexed_field(schema, index, part)?;
        extracted.push(texts_at(&part.path, &source.column(field)?)?);
    }
    let mut extracted = extracted.iter();
    let mut columns = Vec::new();
    for (number, part) in index.fields.iter().enumerate() {
        let field = indexed_field(schema, index, part)?;
        let (id, column) = match part.path.is_empty() {
            true => (field.id, source.column(field)?),
            false => match extracted.next() {
                Some(texts) => (path_field(number)?, ColumnSlice::from(texts)),
                None => return Err(no_field(index)),
            },
        };
        columns.push((id, column, part.descending));
    }
    let by: Vec<(ColumnSlice<'_>, bool)> = columns.iter().map(|(_, c, d)| (*c, *d)).collect();
    let by: Vec<_> = match planted("run_ignores_descending") {
        true => by.iter().map(|(column, _)| (*column, false)).collect(),
        false => by,
    };
    let mut order = sorted_rows(rows, &by).map_err(|e| at_segment(index, segment, e))?;
    if planted("run_not_sorted") {
        order.sort_unstable();
    }
    let id = run_file_id(segment, index.id);
    let count = entry_count(index, rows)?;
    let schema_version = schema.version();
    let spec = SegmentSpec {
        database,
        table,
        segment: id,
        schema_version,
        rows: count,
        order: RowOrder::Arrival,
        side_by_side: None,
    };
    let mut writer = SegmentWriter::new(spec, sink.create(id)?)?;
    for (id, values, _) in &columns {
        let reordered = Reordered::new(values, &order, KEY_BYTES_MAX)?;
        writer.column(&reordered.encode(*id))?;
        sink.pause();
    }
    let mut column = Column::empty(DataType::U32);
    column.values = esker_format::Values::U32(order);
    writer.column(&encode_column(ROW_FIELD, &column))?;
    finish(writer, (id, count), index, rows, sink)
}

/// The texts at the end of a path into the documents of a column.
fn texts_at(path: &[String], documents: &ColumnSlice<'_>) -> Result<Column> {
    let mut texts = Column::empty(DataType::Text);
    for at in 0..documents.len {
        match document_text(documents.value(at), path) {
            Some(text) => texts.push(ValueRef::Text(&text))?,
            None => texts.push_null(),
        }
    }
    Ok(texts)
}

/// Writes a run that has a row for each of what it lists.
pub(super) fn write_list(
    (database, table, segment): (u128, TableId, u64),
    schema: &Schema,
    index: &Index,
    columns: &[(FieldId, Column)],
    rows: usize,
    sink: &mut dyn SegmentSink,
) -> Result<IndexRun> {
    // default: a list without columns has no entries
    let count = entry_count(index, columns.first().map_or(0, |(_, column)| column.len()))?;
    let id = run_file_id(segment, index.id);
    let schema_version = schema.version();
    let spec = SegmentSpec {
        database,
        table,
        segment: id,
        schema_version,
        rows: count,
        order: RowOrder::Arrival,
        side_by_side: None,
    };
    let mut writer = SegmentWriter::new(spec, sink.create(id)?)?;
    for (id, column) in columns {
        writer.column(&encode_column(*id, column))?;
        sink.pause();
    }
    finish(writer, (id, count), index, rows, sink)
}

/// The field of a part of an index.
pub(super) fn indexed_field<'s>(
    schema: &'s Schema,
    index: &Index,
    part: &IndexField,
) -> Result<&'s Field> {
    schema.field_of(part.field).ok_or_else(|| no_field(index))
}

pub(super) fn no_field(index: &Index) -> Error {
    Error::corrupt(format!("index {:?} is of a field that the schema lacks", index.name))
}

fn entry_count(index: &Index, count: usize) -> Result<u32> {
    u32::try_from(count)
        .map_err(|_| Error::corrupt(format!("index {:?}: {count} entries", index.name)))
}

fn at_segment(index: &Index, segment: u64, error: Error) -> Error {
    error.at(format_args!("index {:?}, segment {segment}", index.name))
}

fn finish(
    writer: SegmentWriter<'_>,
    (id, entries): (u64, u32),
    index: &Index,
    rows: usize,
    sink: &mut dyn SegmentSink,
) -> Result<IndexRun> {
    let numbers: Vec<u64> = (0..u64::from(entries)).collect();
    let FinishedSegment { file_bytes, target, .. } = writer.finish(&numbers, None)?;
    let entry = SegmentEntry { id, rows: entries, file_bytes, holds_through: 0 };
    IndexRun::new(index.clone(), sink.finish(entry, target)?, rows)
}
