//! Building the sorted runs that are missing: after a seal, a merge or a load, when an index is
//! created, and when a crash came before a run was whole.
//!
//! Runs are derived (see `esker_table::index_run`), so nothing is logged. A run is written, synced,
//! and its directory synced, before a reader uses it: else it would be built once more after a
//! crash, no worse. Readers scan the segments that have no run yet.

use std::sync::Arc;

use esker_format::schema::{Index, IndexKind};
use esker_format::{Schema, TableId};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::index_run::{IndexRun, NewRun, RunSource, write_run};
use esker_table::segment::Segment;
use esker_vfs::parallel_map;

use super::{FileSink, TableJob};
use crate::Result;
use crate::catalog::computed_index;
use crate::engine::Engine;

/// A run that a segment should have.
struct Missing {
    table: Arc<TableCore>,
    schema: Arc<Schema>,
    segment: Arc<Segment>,
    index: Index,
}

/// How many runs there are, and how many there should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    /// Segments that have theirs.
    pub built: usize,
    /// Those of them in which a field has too many values for it.
    pub too_many_values: usize,
    /// Segments.
    pub of: usize,
}

/// Somebody builds runs and waits for them: while this is there, the background leaves building
/// alone, and what it is at goes on without rests.
pub(crate) struct Building<'a>(&'a Engine);

impl<'a> Building<'a> {
    pub fn start(engine: &'a Engine) -> Self {
        engine.maintenance_state().building += 1;
        Self(engine)
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        self.0.maintenance_state().building -= 1;
        self.0.wake_maintenance();
    }
}

impl Engine {
    /// Is somebody waiting for runs to be built?
    pub(super) fn is_building(&self) -> bool {
        self.maintenance_state().building > 0
    }

    /// Builds a run that is missing in some table. False when none is. Tables of which a run could
    /// not be built wait for their turn, unless the caller is not `patient`.
    ///
    /// # Errors
    /// What the first run met that could not be built, when no other table had one that could.
    pub(super) fn build_one_run(self: &Arc<Self>, patient: bool) -> Result<bool> {
        if patient && self.is_building() {
            return Ok(false);
        }
        let tables: Vec<Arc<TableCore>> = {
            let catalogue = self.lock();
            catalogue.tables.values().map(|entry| Arc::clone(entry.writer.table())).collect()
        };
        let mut failed = None;
        for table in tables {
            if patient && self.is_backing_off(table.id(), TableJob::BuildRun) {
                continue;
            }
            let share = self.options.merge_share_percent;
            let missing = missing(&table).into_iter().next();
            let built = missing.map(|missing| self.build_run(&missing, share));
            self.back_off(table.id(), TableJob::BuildRun, matches!(built, Some(Err(_))));
            match built {
                Some(Ok(())) => {
                    // Nothing else reports it then.
                    failed.iter().for_each(|e| self.note_error(e));
                    return Ok(true);
                }
                None => {}
                Some(Err(e)) => failed = failed.or(Some(e)),
            }
        }
        // default: nothing failed
        failed.map_or(Ok(false), Err)
    }

    /// Builds all runs that a table's segments should have and do not; `progress` gets how many
    /// runs there are, and how many there should be.
    pub(crate) fn build_runs(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        loop {
            let schema = table.schema();
            let counts = schema.indexes().iter().map(|index| count_runs(table, index));
            let (built, of) = counts.fold((0, 0), |(b, o), c| (b + c.built, o + c.of));
            progress(built as u64, of as u64);
            let done = self.exclusively(|engine| engine.build_some(missing(table)))?;
            if done {
                return Ok(());
            }
        }
    }

    /// Builds as many runs as there are processors, of those that are missing; true when none is.
    /// Somebody waits for them, so they are built at full speed.
    fn build_some(self: &Arc<Self>, mut missing: Vec<Missing>) -> Result<bool> {
        missing.truncate(self.environment.tasks.parallelism());
        let tasks = &*self.environment.tasks;
        let built = parallel_map(tasks, &missing, |missing| self.build_run(missing, 100));
        built.into_iter().collect::<Result<()>>()?;
        Ok(missing.is_empty())
    }

    /// Builds a run, working for at most a share of the time.
    fn build_run(self: &Arc<Self>, missing: &Missing, share_percent: u32) -> Result<()> {
        let Missing { table, schema, segment, index } = missing;
        let mut sink = FileSink::new(self).with_share(share_percent);
        let run =
            self.write_run(table.id(), schema, index, (segment.id(), &**segment), &mut sink)?;
        self.sync_segment_dir()?;
        sink.keep();
        self.environment.tasks.pause();
        let _catalogue = self.lock();
        if table.schema().indexes().iter().any(|there| there.id == index.id) {
            segment.add_run(Arc::new(run))?;
        } else {
            run.entries().mark_for_deletion();
        }
        Ok(())
    }

    /// Gives a segment that no view has yet its runs, of rows that are still in memory.
    pub(crate) fn write_runs(
        self: &Arc<Self>,
        table: TableId,
        schema: &Schema,
        segment: &Segment,
        source: &(dyn RunSource + Sync),
    ) -> Result<()> {
        let runs = parallel_map(&*self.environment.tasks, schema.indexes(), |index| {
            let mut sink = FileSink::new(self);
            let run = self.write_run(table, schema, index, (segment.id(), source), &mut sink)?;
            Ok((run, sink))
        });
        for (run, mut sink) in runs.into_iter().collect::<Result<Vec<_>>>()? {
            sink.keep();
            segment.add_run(Arc::new(run))?;
        }
        Ok(())
    }

    /// Gives segments that readers do not know yet their runs.
    pub(super) fn build_first_runs(
        self: &Arc<Self>,
        table: &TableCore,
        segments: &[Arc<Segment>],
        sink: &mut FileSink<'_>,
    ) -> Result<()> {
        let schema = table.schema();
        for segment in segments {
            for index in schema.indexes() {
                let stale = stale_source(table, index);
                // default: without an older run the segment is read
                let source = stale.as_ref().unwrap_or(segment);
                let place = (segment.id(), &**source as &dyn RunSource);
                let run = self.write_run(table.id(), &schema, index, place, sink)?;
                segment.add_run(Arc::new(run))?;
            }
        }
        Ok(())
    }

    /// Writes the run of an index for a segment whose values `source` has.
    pub(crate) fn write_run(
        &self,
        table: TableId,
        schema: &Schema,
        index: &Index,
        (segment, source): (u64, &dyn RunSource),
        sink: &mut FileSink<'_>,
    ) -> Result<IndexRun> {
        let (database, values) = (self.database, computed_index::compiler(schema, index)?);
        let values = values.as_ref();
        let new = NewRun { database, table, segment, schema, index, values };
        Ok(write_run(new, source, sink)?)
    }
}

/// Another segment than the one that was just written, where such a bug is planted.
fn stale_source(table: &TableCore, index: &Index) -> Option<Arc<Segment>> {
    let is_planted = match index.kind {
        IndexKind::Ordered => false,
        IndexKind::Rollup => Bug::RollupNotRebuiltAfterMerge.is_planted(),
        IndexKind::Trigram => Bug::TrigramMissesRowsAfterMerge.is_planted(),
        IndexKind::Bitmap => Bug::BitmapNotRebuiltAfterMerge.is_planted(),
    };
    let view = table.view();
    let mut others = view.segments().filter(|segment| is_planted && !segment.is_loading());
    others.next().cloned()
}

/// How many segments of a table have a run of an index.
pub(crate) fn count_runs(table: &TableCore, index: &Index) -> RunCounts {
    let view = table.view();
    let mut counts = RunCounts::default();
    for segment in view.segments().filter(|segment| !segment.is_loading()) {
        counts.of += 1;
        let Some(run) = run_of(segment, index) else { continue };
        counts.built += 1;
        // default: a run that cannot be read says so where it is read
        counts.too_many_values += usize::from(run.is_left_out().unwrap_or(false));
    }
    counts
}

fn run_of(segment: &Segment, index: &Index) -> Option<Arc<IndexRun>> {
    segment.runs().iter().find(|run| run.index().id == index.id).cloned()
}

/// The runs that segments should have and do not.
fn missing(table: &Arc<TableCore>) -> Vec<Missing> {
    let view = table.view();
    let mut missing = Vec::new();
    for segment in view.segments().filter(|segment| !segment.is_loading()) {
        for index in view.schema.indexes().iter().filter(|index| run_of(segment, index).is_none()) {
            let (table, segment) = (Arc::clone(table), Arc::clone(segment));
            let (schema, index) = (Arc::clone(&view.schema), index.clone());
            missing.push(Missing { table, schema, segment, index });
        }
    }
    missing
}

#[cfg(test)]
mod tests;
