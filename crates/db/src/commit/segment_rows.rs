//! Writing rows as segments, before any view has them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::edit::{Edit, SegmentEntry};
use esker_format::segment::Packing;
use esker_format::{Batch, TableId};
use esker_log::sabotage::Bug;
use esker_table::TableWriter;
use esker_table::rewrite::SegmentSink;
use esker_table::segment::{Segment, SegmentSpec, SegmentWriter};
use esker_table::value_file::StoredValue;

use crate::catalogue::{Catalogue, TableEntry};
use crate::engine::Engine;
use crate::maintenance::FileSink;
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// The columns of a segment: rows in the order that they are to have.
pub(crate) struct SegmentRows<'a> {
    pub batch: &'a Batch,
    /// The values that lie in value files: by column, by rising row.
    pub long: Vec<Vec<(usize, StoredValue)>>,
    pub row_ids: &'a [u64],
}

impl Engine {
    /// Writes rows as a segment, and syncs it. No view has it yet.
    pub(crate) fn write_rows(
        &self,
        current: &TableVersion,
        rows: SegmentRows<'_>,
        sink: &mut FileSink<'_>,
    ) -> Result<Segment> {
        let TableVersion { core, schema, .. } = current;
        let id = self.new_row_group();
        let spec = SegmentSpec {
            database: self.database,
            table: core.id(),
            segment: id,
            schema_version: schema.version(),
            rows: rows_of_segment(rows.row_ids.len())?,
            order: schema.row_order_as_they_come(),
            side_by_side: schema.side_by_side(),
            key: schema.key_field(),
            packing: Packing::of(schema),
        };
        let count = spec.rows;
        let mut writer = SegmentWriter::new(spec, sink.create(id)?)?;
        let columns = schema.fields().iter().zip(&rows.batch.columns);
        for ((field, column), long) in columns.zip(rows.long) {
            writer.field(field.id, Cow::Borrowed(column), long)?;
        }
        let finished = writer.finish(rows.row_ids, None)?;
        // The frame that names it stamps it with its commit.
        let file_bytes = finished.file_bytes;
        let entry = SegmentEntry { id, rows: count, file_bytes, holds_through: 0, row_id_shift: 0 };
        Ok(sink.finish(entry, finished.target)?)
    }

    /// Writes rows without long values as a segment of a transaction, whose file goes with it.
    pub(crate) fn write_private(
        self: &Arc<Self>,
        current: &TableVersion,
        batch: &Batch,
        row_ids: &[u64],
    ) -> Result<Arc<Segment>> {
        let mut sink = FileSink::new(self);
        let long = vec![Vec::new(); batch.columns.len()];
        let segment = self.write_rows(current, SegmentRows { batch, long, row_ids }, &mut sink)?;
        sink.keep();
        segment.mark_for_deletion();
        Ok(Arc::new(segment))
    }
}

/// Gives the rows of segments of a stream the row ids of the commit that makes them real: from the
/// next one on, as far apart as they were numbered when the files were written. So row ids rise
/// with the commits. Returns what is added to those in the files. Under the commit lock.
pub(crate) fn shift_to_commit(writer: &mut TableWriter, segments: &[Arc<Segment>]) -> Result<u64> {
    let bounds = || segments.iter().map(|segment| segment.row_id_bounds());
    let (least, greatest) = (bounds().map(|(first, _)| first).min(), bounds().map(|b| b.1).max());
    let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(0) };
    if Bug::RowIdBeforeCommit.is_planted() {
        return Ok(0);
    }
    let first = writer.reserve_row_ids(greatest - least + 1);
    let shift = first.checked_sub(least).ok_or_else(|| {
        Error::corrupt(format!("row id {least} was given to a new row before its turn, {first}"))
    })?;
    segments.iter().try_for_each(|segment| segment.shift_row_ids(shift))?;
    Ok(shift)
}

/// A stream goes on with its row ids once it has been truncated: the events that are gone had ids,
/// which are not given again. Under the commit lock.
pub(crate) fn keep_row_ids(
    catalogue: &mut Catalogue,
    next: u64,
    replacement: TableId,
) -> Result<()> {
    let writer = &mut catalogue.entry(replacement)?.writer;
    if writer.table().schema().stream().is_some()
        && let Some(last) = next.checked_sub(1)
    {
        writer.note_row_id(last);
        writer.table().note_ended_row_id(last);
    }
    Ok(())
}

/// Ends the segments of an edit that are there. Those that recovery finds in the log are gone
/// already, or end at the commit that they ended at. Under the commit lock.
pub(crate) fn end_segments(entry: &mut TableEntry, commit: u64, edit: &Edit) {
    let Edit::EndSegments { segments, through_row_id, .. } = edit else { return };
    entry.note_changed(commit);
    let core = entry.writer.table();
    core.note_ended_row_id(*through_row_id);
    let segments: BTreeSet<u64> = segments.iter().copied().collect();
    let ended_at = if Bug::EndedSegmentHiddenFromOlderSnapshot.is_planted() { 1 } else { commit };
    for segment in core.view().segments().filter(|segment| segments.contains(&segment.id())) {
        core.add_live_rows(-segment.end(ended_at).cast_signed());
    }
}

/// The number of rows of a segment, which its header has.
pub(crate) fn rows_of_segment(rows: usize) -> Result<u32> {
    u32::try_from(rows).map_err(|_| Error::corrupt(format!("a segment of {rows} rows")))
}
