//! Bulk load: many rows become visible at once, or none (protocol rule 8).
//!
//! ```text
//! push ─► gather columns ─► segment full? ─► write file ─► register, invisible ─► index its keys
//!                                                                                      │
//! finish ─► sync files, directory ─► number the frame that names them ─► one word makes all real
//! ```
//!
//! * Rows go to segment files, not to the log. Small loads (below 64 Ki rows and 16 MiB) are one
//!   ordinary commit instead.
//! * A loading row stands in the primary index beside whatever else has its key, and nobody sees
//!   it: its segment's creation commit is not known yet. A writer that meets one gets a retryable
//!   conflict. A load that meets a row newer than its start gets one, too.
//! * Dropping a load before `finish` takes its index entries, segments and files away.

mod indexing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_format::edit::{Edit, SegmentEntry};
use esker_format::segment::encode_column;
use esker_format::{Batch, Schema, Value};
use esker_table::segment::{Created, Segment, SegmentSpec, SegmentWriter};
use esker_table::view::Unit;

use crate::engine::{Engine, entry};
use crate::maintenance::FileSink;
use crate::{Error, ErrorKind, Result, Table};

/// Loads below both go through the log.
const SMALL_ROWS: usize = 64 << 10;
const SMALL_BYTES: usize = 12 << 20;
/// Bytes gathered before a segment is written.
const SEGMENT_BYTES: usize = 256 << 20;

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Rows that were added.
    pub rows: u64,
    /// Segments that were written; 0 when the rows went through the log.
    pub segments: usize,
    /// The commit that made the segments visible; 0 when the rows went through the log.
    pub commit: u64,
}

/// A bulk load in progress.
pub struct Load {
    table: Table,
    schema: Arc<Schema>,
    /// Its rows count as created by the commit stored here, once there is one.
    commit: Arc<AtomicU64>,
    /// The newest commit when it started.
    started_at: u64,
    gathered: Batch,
    gathered_bytes: usize,
    segments: Vec<Arc<Segment>>,
    rows: u64,
    finished: bool,
}

impl Load {
    pub(crate) fn start(table: Table) -> Result<Self> {
        drop(table.engine.lock_for_change()?);
        let schema = table.schema();
        let started_at = table.engine.watermarks.published();
        let gathered = Batch::empty(&schema);
        Ok(Self {
            table,
            schema,
            commit: Arc::new(AtomicU64::new(u64::MAX)),
            started_at,
            gathered,
            gathered_bytes: 0,
            segments: Vec::new(),
            rows: 0,
            finished: false,
        })
    }

    /// How many rows have been given so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows. The batch has the schema's columns, with values that fit them.
    ///
    /// # Errors
    /// `InvalidInput` when a column's type or length differs or a NULL stands where none may;
    /// `AlreadyExists` naming a key that exists or comes twice; `Conflict` when another writer
    /// holds a key. After an error the load can only be dropped.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.check(&batch)?;
        self.rows += batch.len() as u64;
        let limit = self.table.engine.options.segment_rows_max;
        let bytes: usize = batch.columns.iter().map(esker_format::Column::byte_count).sum();
        if self.gathered.is_empty() && batch.len() <= limit {
            self.gathered = batch;
            self.gathered_bytes = bytes;
        } else {
            self.gather(&batch, limit)?;
        }
        if self.gathered.len() >= limit || self.gathered_bytes >= SEGMENT_BYTES {
            self.write_segment()?;
        }
        Ok(())
    }

    fn gather(&mut self, batch: &Batch, limit: usize) -> Result<()> {
        let mut start = 0;
        while start < batch.len() {
            let count = (batch.len() - start).min(limit - self.gathered.len().min(limit));
            if count == 0 {
                self.write_segment()?;
                continue;
            }
            for (to, from) in self.gathered.columns.iter_mut().zip(&batch.columns) {
                to.append(&esker_format::ColumnSlice::from(from).rows(start, start + count))?;
            }
            start += count;
        }
        let columns = self.gathered.columns.iter();
        self.gathered_bytes = columns.map(esker_format::Column::byte_count).sum();
        Ok(())
    }

    /// Adds one row.
    ///
    /// # Errors
    /// As for [`Load::push`].
    pub fn push_row(&mut self, row: &[Value]) -> Result<()> {
        self.gathered.push_row(&self.schema, row)?;
        let variable = |v: &Value| v.as_ref().as_bytes().map_or(8, |b| b.len() + 4);
        self.gathered_bytes += row.iter().map(variable).sum::<usize>();
        self.rows += 1;
        let full = self.gathered.len() >= self.table.engine.options.segment_rows_max;
        if full || self.gathered_bytes >= SEGMENT_BYTES { self.write_segment() } else { Ok(()) }
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        let (want, got) = (self.schema.fields().len(), batch.columns.len());
        if want != got {
            return Err(Error::invalid(format!("expected {want} columns, found {got}")));
        }
        for (field, column) in self.schema.fields().iter().zip(&batch.columns) {
            let name = &field.name;
            if column.data_type != field.data_type {
                let (want, got) = (field.data_type, column.data_type);
                return Err(Error::invalid(format!(
                    "field {name:?}: expected {want}, found {got}"
                )));
            }
            if column.len() != batch.len() {
                let (want, got) = (batch.len(), column.len());
                let message = format!("field {name:?}: expected {want} rows, found {got}");
                return Err(Error::invalid(message));
            }
            let null = column.nulls.as_ref().and_then(|n| n.iter().position(|b| *b != 0));
            if let Some(row) = null.filter(|_| !field.nullable) {
                let row = self.rows + row as u64;
                let message = format!("row {row}: field {name:?} must not be null");
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    /// Writes what has been gathered as a segment, registers it invisibly and indexes its keys.
    fn write_segment(&mut self) -> Result<()> {
        let rows = self.gathered.len();
        if rows == 0 {
            return Ok(());
        }
        let engine = Arc::clone(&self.table.engine);
        let id = engine.new_unit();
        let first_row_id = {
            let mut catalogue = engine.lock_for_change()?;
            entry(&mut catalogue, self.table.core.id())?.writer.reserve_row_ids(rows as u64)
        };
        let segment = Arc::new(self.encode_segment(&engine, id, first_row_id)?);
        segment.set_created(Created::Load(Arc::clone(&self.commit)));
        {
            let mut catalogue = engine.lock_for_change()?;
            entry(&mut catalogue, self.table.core.id())?;
            let mut view = (*self.table.core.view()).clone();
            view.insert(Unit::Segment(Arc::clone(&segment)));
            self.table.core.set_view(view);
        }
        self.segments.push(Arc::clone(&segment));
        if !self.schema.key_positions().is_empty() {
            indexing::index_segment(
                &engine,
                &self.table,
                &self.gathered,
                segment.id(),
                self.started_at,
                &self.segments,
            )?;
        }
        self.gathered.columns.iter_mut().for_each(esker_format::Column::clear);
        self.gathered_bytes = 0;
        Ok(())
    }

    fn encode_segment(&self, engine: &Arc<Engine>, id: u64, first_row_id: u64) -> Result<Segment> {
        let rows = self.gathered.len();
        let schema = &self.schema;
        let spec = SegmentSpec {
            database: engine.database,
            table: self.table.core.id(),
            segment: id,
            schema_version: schema.version(),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        };
        let mut sink = FileSink::new(engine, Arc::clone(schema));
        let target = esker_table::rewrite::SegmentSink::create(&mut sink, id)?;
        let mut writer = SegmentWriter::new(spec, target)?;
        for (field, column) in schema.fields().iter().zip(&self.gathered.columns) {
            writer.column(&encode_column(field.id, column))?;
        }
        let row_ids: Vec<u64> = (first_row_id..first_row_id + rows as u64).collect();
        let (file_bytes, target) = writer.finish(&row_ids, None)?;
        let holds_through = 0;
        let entry = SegmentEntry { id, rows: spec.rows, file_bytes, holds_through };
        Ok(sink.open_unsynced(entry, target)?)
    }

    /// Makes every row visible, durably.
    ///
    /// # Errors
    /// As for [`Load::push`], and what the disk says. Nothing is loaded then, except after
    /// `OutcomeUnknown`.
    pub fn finish(mut self) -> Result<LoadReport> {
        let small = self.gathered.len() < SMALL_ROWS && self.gathered_bytes < SMALL_BYTES;
        if self.segments.is_empty() && small {
            return self.finish_small();
        }
        self.write_segment()?;
        let engine = Arc::clone(&self.table.engine);
        engine.sync_segments(&self.segments)?;
        engine.environment.tasks.pause();
        let ticket = {
            let mut catalogue = engine.lock_for_change()?;
            let table = self.table.core.id();
            let next_row_id = entry(&mut catalogue, table)?.writer.next_row_id();
            let segments = self.segments.iter().map(|s| s.entry()).collect();
            let ticket = engine.append_edit(&Edit::Load { table, segments, next_row_id })?;
            self.commit.store(ticket.commit(), Ordering::Release);
            let rows: usize = self.segments.iter().map(|s| s.row_count()).sum();
            self.table.core.add_live_rows(i64::try_from(rows).unwrap_or_default());
            engine.watermarks.publish(ticket.commit());
            ticket
        };
        self.finished = true;
        engine.wake_maintenance();
        engine.acknowledge(ticket)?;
        let (rows, segments, commit) = (self.rows, self.segments.len(), ticket.commit());
        Ok(LoadReport { rows, segments, commit })
    }

    fn finish_small(&mut self) -> Result<LoadReport> {
        self.finished = true;
        let batch = std::mem::take(&mut self.gathered);
        if batch.is_empty() {
            return Ok(LoadReport::default());
        }
        if self.schema.key_positions().is_empty() {
            self.table.engine.commit_batch(self.table.core.id(), &batch)?;
        } else {
            let row = |i| batch.columns.iter().map(|c| c.value(i).to_owned()).collect();
            let rows: Vec<Vec<Value>> = (0..batch.len()).map(row).collect();
            self.table.insert_many(&rows)?;
        }
        Ok(LoadReport { rows: self.rows, ..LoadReport::default() })
    }

    /// Takes index entries, segments and files away again.
    fn abort(&mut self) {
        let engine = Arc::clone(&self.table.engine);
        let ids: Vec<u64> = self.segments.iter().map(|s| s.id()).collect();
        for segment in &self.segments {
            if !self.schema.key_positions().is_empty() {
                // An entry that cannot be removed stays invisible: its unit is unknown.
                let _ = indexing::unindex_segment(&engine, &self.table, segment);
            }
            segment.doom();
        }
        let _catalogue = engine.lock();
        let mut view = (*self.table.core.view()).clone();
        view.remove(&ids);
        self.table.core.set_view(view);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.finished && !self.segments.is_empty() {
            self.abort();
        }
    }
}

/// A key that a load may not add.
pub(crate) fn refused(kind: ErrorKind, key: &str, why: &str) -> Error {
    Error::new(kind, format!("{key} {why}"))
}
