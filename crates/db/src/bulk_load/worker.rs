//! Writing and indexing one segment of a load, beside the thread that gathers the next.

use std::sync::{Arc, PoisonError};

use std::borrow::Cow;

use esker_arena::Reservation;
use esker_format::edit::SegmentEntry;
use esker_format::schema::{RowOrder, Stream};
use esker_format::segment::Packing;
use esker_format::{Batch, ColumnSlice, Field, Room, Schema};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::index_run::RunSource;
use esker_table::rewrite::SegmentSink;
use esker_table::segment::{CreateStamp, Segment, SegmentSpec, SegmentWriter};
use esker_table::view::RowGroup;
use esker_vfs::sync::{AtomicU64, Mutex, MutexGuard};
use esker_vfs::{Event, Step, Task};

use super::budget::Gathered;
use super::expired::Expired;
use super::replacing::Replacing;
use super::{indexing, key_order};
use crate::catalog::checks::Checks;

use crate::commit::segment_rows::rows_of_segment;
use crate::engine::Engine;
use crate::maintenance::FileSink;
use crate::table_version::{LookedUpAsOf, TableVersion};
use crate::{Error, ErrorKind, Result, Table};

/// What a load and its workers share.
pub(super) struct Shared {
    pub table: Table,
    pub core: Arc<TableCore>,
    pub schema: Arc<Schema>,
    /// What rows are tested for.
    pub checks: Option<Arc<Checks>>,
    /// The load's rows count as created by the commit stored here, once there is one.
    pub commit: Arc<AtomicU64>,
    /// The newest commit when the load started.
    pub started_at: u64,
    /// Rows are left out whose keys exist.
    pub skips: bool,
    /// Rows are replaced whose keys exist.
    pub replacing: Option<Mutex<Replacing>>,
    /// Rows that had expired, whose keys rows of the load have.
    pub expired: Expired,
    /// As of when rows of other tables were looked up for those of the load.
    pub looked_up: LookedUpAsOf,
    state: Mutex<State>,
    /// Signalled when a worker has finished.
    progress: Event,
}

#[derive(Default)]
struct State {
    running: usize,
    segments: Vec<Arc<Segment>>,
    error: Option<Error>,
    /// Rows whose keys existed.
    left_out: u64,
    /// Memory of batches that have been written: fresh memory costs more than a copy into it.
    spare: Vec<(Batch, Reservation)>,
}

impl Shared {
    pub fn new(table: Table, started_at: u64) -> Result<Arc<Self>> {
        let current = table.current();
        let checks = table.engine.checks(&current)?;
        let TableVersion { core, schema, .. } = current;
        let commit = Arc::new(AtomicU64::new(u64::MAX));
        let (skips, replacing, state) = (false, None, Mutex::default());
        let progress = Event::new();
        Ok(Arc::new(Self {
            table,
            expired: Expired::new(&core),
            looked_up: LookedUpAsOf::default(),
            core,
            schema,
            checks,
            commit,
            started_at,
            skips,
            replacing,
            state,
            progress,
        }))
    }

    /// What rows are gathered for.
    pub fn current(&self) -> TableVersion {
        let current = TableVersion::new(Arc::clone(&self.core), Arc::clone(&self.schema));
        current.looked_up.note_of(&self.looked_up);
        current
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is replaced.
    pub fn replacing(&self) -> Option<MutexGuard<'_, Replacing>> {
        let replacing = self.replacing.as_ref()?;
        // default: a panic leaves what is locked as it was, or whole
        Some(replacing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.table.engine
    }

    /// The segments written so far.
    pub fn segments(&self) -> Vec<Arc<Segment>> {
        self.state().segments.clone()
    }

    /// How many rows were left out so far.
    pub fn left_out(&self) -> u64 {
        self.state().left_out
    }

    /// Gives the segments up: the load is over.
    pub fn take_segments(&self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.state().segments)
    }

    /// An empty batch, in used memory when there is some.
    pub fn empty_batch(&self) -> Gathered {
        match self.state().spare.pop() {
            Some((batch, held)) => Gathered::new(batch, held),
            None => Gathered::fresh(Batch::empty(&self.schema), self.engine()),
        }
    }

    /// Gives the memory of written batches back; false when there is none.
    pub fn free_spares(&self) -> bool {
        let spare = std::mem::take(&mut self.state().spare);
        !spare.is_empty()
    }

    /// Is a segment being written?
    pub fn is_writing(&self) -> bool {
        self.state().running > 0
    }

    /// Waits until one of the segments that are being written is done.
    pub fn wait_for_one(&self) -> Result<()> {
        let running = self.state().running;
        self.wait_below(running.max(1))
    }

    /// Starts writing a segment, once fewer than `most` are being written.
    pub fn start(self: &Arc<Self>, gathered: Gathered, first_row: u64, most: usize) -> Result<()> {
        self.wait_below(most)?;
        let rows = gathered.batch.len() as u64;
        let first_row_id = {
            let mut catalogue = self.engine().lock_for_change()?;
            catalogue.entry(self.core.id())?.writer.reserve_row_ids(rows)
        };
        let running = Some(Running::start(self));
        let task = Worker { running, gathered: Some(gathered), first_row_id, first_row };
        // The handle is not needed: `wait_below` knows when the worker is done.
        drop(self.engine().environment.tasks.spawn("load", Box::new(task)));
        Ok(())
    }

    /// Waits until fewer than `most` workers run; tells what one of them met.
    pub fn wait_below(&self, most: usize) -> Result<()> {
        loop {
            let seen = self.progress.generation();
            {
                let state = self.state();
                if state.running < most {
                    // default: no worker has failed
                    return state.error.as_ref().map_or(Ok(()), |e| Err(e.repeated()));
                }
            }
            self.engine().environment.tasks.wait(&self.progress, seen);
        }
    }

    /// Writes the rows that are wanted.
    fn write_wanted(&self, batch: &mut Batch, first_row_id: u64, first_row: u64) -> Result<()> {
        let left_out = match &self.replacing {
            Some(_) => indexing::leave_out_replaced(self, batch)?,
            None if self.skips => indexing::leave_out_known(self, batch)?,
            None => 0,
        };
        self.state().left_out += left_out;
        if batch.is_empty() {
            return Ok(());
        }
        let expiry = self.schema.expiry_position().and_then(|at| batch.columns.get(at));
        let ends = self.schema.stream().is_some_and(Stream::ends_events);
        if ends || expiry.is_some_and(|column| (0..column.len()).any(|row| !column.is_null(row))) {
            self.engine().note_expiring();
        }
        let order = match self.schema.row_order() {
            RowOrder::Key | RowOrder::Time => Some(key_order::sort(&self.schema, batch)?),
            RowOrder::Arrival => None,
        };
        self.write(batch, &Numbers { first_row_id, first_row, order })
    }

    /// Writes a segment, registers it invisibly and indexes its keys.
    fn write(&self, batch: &Batch, numbers: &Numbers) -> Result<()> {
        let engine = self.engine();
        let id = engine.new_row_group();
        let segment = Arc::new(self.encode(batch, id, numbers)?);
        if !Bug::VisibleBeforeLoadCommits.is_planted() {
            segment.set_create_stamp(CreateStamp::Load(Arc::clone(&self.commit)));
        }
        {
            let mut catalogue = engine.lock_for_change()?;
            catalogue.entry(self.core.id())?;
            let mut view = (*self.core.view()).clone();
            view.insert(RowGroup::Segment(Arc::clone(&segment)));
            // An index may have been dropped meanwhile.
            let indexes = view.schema.indexes();
            segment.retain_runs(|id| indexes.iter().any(|index| index.id == id));
            self.core.set_view(view)?;
            // From here on an abort takes it away again.
            self.state().segments.push(Arc::clone(&segment));
        }
        engine.environment.tasks.pause();
        if !self.schema.has_unique_values() {
            return Ok(());
        }
        indexing::index_segment(self, batch, id, numbers)
    }

    fn encode(&self, batch: &Batch, id: u64, numbers: &Numbers) -> Result<Segment> {
        let engine = self.engine();
        let spec = SegmentSpec {
            database: engine.database,
            table: self.core.id(),
            segment: id,
            schema_version: self.schema.version(),
            rows: rows_of_segment(batch.len())?,
            order: self.schema.row_order(),
            side_by_side: self.schema.side_by_side(),
            key: self.schema.key_field(),
            packing: Packing::of(&self.schema),
        };
        let mut sink = FileSink::new(engine);
        let mut writer = SegmentWriter::new(spec, sink.create(id)?)?;
        let long = engine.store_long_columns(&self.schema, batch)?;
        for ((field, column), long) in self.schema.fields().iter().zip(&batch.columns).zip(long) {
            writer.field(field.id, Cow::Borrowed(column), long)?;
        }
        let row_id = |row| Ok(numbers.first_row_id + numbers.place(row)?);
        let row_ids = (0..batch.len()).map(row_id).collect::<Result<Vec<u64>>>()?;
        let finished = writer.finish(&row_ids, None)?;
        let file_bytes = finished.file_bytes;
        let entry =
            SegmentEntry { id, rows: spec.rows, file_bytes, holds_through: 0, row_id_shift: 0 };
        let segment = sink.finish(entry, finished.target)?;
        let source = Gathering { schema: &self.schema, batch };
        engine.write_runs(self.core.id(), &self.schema, &segment, &source)?;
        sink.keep();
        Ok(segment)
    }
}

/// Which rows of a load a segment has.
pub(super) struct Numbers {
    /// The row id of the first that came.
    first_row_id: u64,
    /// How many rows of the load came before.
    first_row: u64,
    /// Where each row was among those that came, when they lie in the order of the key.
    order: Option<Vec<u32>>,
}

impl Numbers {
    fn place(&self, row: usize) -> Result<u64> {
        let Some(order) = &self.order else { return Ok(row as u64) };
        order.get(row).copied().map(u64::from).ok_or_else(|| {
            let message = format!("row {row} of {} that a load has sorted", order.len());
            Error::new(ErrorKind::Corrupt, message)
        })
    }

    /// The number that a row has in the load.
    pub fn row_of_load(&self, row: usize) -> Result<u64> {
        Ok(self.first_row + self.place(row)?)
    }
}

/// The rows of a segment while they are in memory.
struct Gathering<'a> {
    schema: &'a Schema,
    batch: &'a Batch,
}

impl RunSource for Gathering<'_> {
    fn row_count(&self) -> usize {
        self.batch.len()
    }

    fn column<'a>(&'a self, field: &'a Field, _: &'a Room) -> esker_table::Result<ColumnSlice<'a>> {
        let position = self.schema.fields().iter().position(|f| f.id == field.id);
        let column = position.and_then(|position| self.batch.columns.get(position));
        let missing = || esker_table::Error::corrupt(format!("no field {}", field.name));
        column.map(ColumnSlice::from).ok_or_else(missing)
    }
}

/// Counts a worker as running until it is dropped: a thread that waits for workers sees the end of
/// each, even of one that panics or never has its turn.
pub(super) struct Running {
    shared: Arc<Shared>,
    ended: bool,
}

impl Running {
    pub fn start(shared: &Arc<Shared>) -> Self {
        shared.state().running += 1;
        Self { shared: Arc::clone(shared), ended: false }
    }

    /// Notes what came of it.
    fn end(mut self, result: Result<()>, spare: (Batch, Reservation)) {
        self.ended = true;
        let mut state = self.shared.state();
        state.spare.push(spare);
        if let Err(e) = result {
            state.error.get_or_insert(e);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.running -= 1;
            if !self.ended {
                let message = "writing a segment of a bulk load ended in a panic";
                state.error.get_or_insert_with(|| Error::new(ErrorKind::Io, message));
            }
        }
        let tasks = &self.shared.engine().environment.tasks;
        tasks.signal(&self.shared.progress, usize::MAX);
    }
}

struct Worker {
    /// None once the worker is done.
    running: Option<Running>,
    gathered: Option<Gathered>,
    first_row_id: u64,
    /// How many rows of the load came before.
    first_row: u64,
}

impl Task for Worker {
    fn step(&mut self) -> Step {
        // Both go when this panics: first the rows, then the count.
        let Some(running) = self.running.take() else { return Step::Done };
        let Some(mut gathered) = self.gathered.take() else { return Step::Done };
        let result =
            running.shared.write_wanted(&mut gathered.batch, self.first_row_id, self.first_row);
        running.end(result, gathered.into_spare());
        Step::Done
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    /// It counted as where it lies.
    #[test]
    fn a_row_that_was_not_sorted_is_an_error() {
        let numbers = Numbers { first_row_id: 1, first_row: 10, order: Some(vec![1, 0]) };
        assert_eq!(numbers.row_of_load(0).unwrap(), 11);
        let error = numbers.row_of_load(2).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
    }
}
