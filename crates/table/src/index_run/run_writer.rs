//! Writing the entries of an index run.

use esker_format::edit::SegmentEntry;
use esker_format::schema::RowOrder;
use esker_format::segment::{EncodedColumn, Packing, encode_column};
use esker_format::{Column, FieldId, TableId};
use esker_log::sabotage::Bug;

use super::run_format::NewRun;
use crate::segment::sink::SegmentSink;
use crate::segment::{FinishedSegment, Segment, SegmentSpec, SegmentWriter, run_file_id};
use crate::{Error, Result};

/// A run of which some columns are written.
pub(super) struct RunWriter<'w> {
    writer: SegmentWriter<'w>,
    sink: &'w mut dyn SegmentSink,
    id: u64,
    entries: u32,
}

impl<'w> RunWriter<'w> {
    pub(super) fn create(
        new: NewRun<'_>,
        entries: usize,
        sink: &'w mut dyn SegmentSink,
    ) -> Result<Self> {
        let too_many = |_| new.at(Error::corrupt(format!("{entries} entries")));
        let entries = u32::try_from(entries).map_err(too_many)?;
        let id = run_file_id(new.segment, new.index.id);
        let spec = SegmentSpec {
            database: new.database,
            table: match Bug::RunOfAnotherTable.is_planted() {
                true => TableId(new.table.0 + 1),
                false => new.table,
            },
            segment: id,
            schema_version: new.schema.version(),
            rows: entries,
            order: RowOrder::Arrival,
            side_by_side: None,
            key: None,
            packing: Packing::None,
        };
        let writer = SegmentWriter::new(spec, sink.create(id)?)?;
        Ok(Self { writer, sink, id, entries })
    }

    pub(super) fn column(&mut self, column: &EncodedColumn<'_>) -> Result<()> {
        self.writer.column(column)?;
        self.sink.pause();
        Ok(())
    }

    /// Opens what was written. The sink syncs it; its name is durable once the directory is.
    pub(super) fn finish(self) -> Result<Segment> {
        let numbers: Vec<u64> = (0..u64::from(self.entries)).collect();
        let FinishedSegment { file_bytes, target, .. } = self.writer.finish(&numbers, None)?;
        let (id, rows) = (self.id, self.entries);
        self.sink.finish(
            SegmentEntry { id, rows, file_bytes, holds_through: 0, row_id_shift: 0 },
            target,
        )
    }
}

/// Writes a run of some columns, one entry in each of their rows.
pub(super) fn write_columns(
    new: NewRun<'_>,
    columns: &[(FieldId, Column)],
    sink: &mut dyn SegmentSink,
) -> Result<Segment> {
    // default: a list without columns has no entries
    let entries = columns.first().map_or(0, |(_, column)| column.len());
    let mut writer = RunWriter::create(new, entries, sink)?;
    for (id, column) in columns {
        writer.column(&encode_column(*id, column))?;
    }
    writer.finish()
}
