//! Where segments are written: files of the database's directory, or memory.

use std::sync::Arc;

use esker_format::edit::SegmentEntry;
use esker_log::sabotage::Bug;
use esker_table::rewrite::SegmentSink;
use esker_table::segment::run_of_file;
use esker_table::segment::{Segment, SinkTarget};
use esker_table::value_file::StoredValue;
use esker_vfs::Mapping;

use crate::engine::Engine;

/// Makes segments of one table.
pub(crate) struct FileSink<'a> {
    engine: &'a Arc<Engine>,
    /// Yields the processor so that merging keeps to its share; 0 for no yielding.
    share_percent: u32,
    worked_since_ns: u64,
    /// Files made so far, which go again unless they are kept.
    created: Vec<u64>,
}

impl Drop for FileSink<'_> {
    fn drop(&mut self) {
        for id in &self.created {
            self.engine.segment_files.remove(*id);
        }
    }
}

impl<'a> FileSink<'a> {
    /// A sink that works as fast as it can.
    pub fn new(engine: &'a Arc<Engine>) -> Self {
        let worked_since_ns = engine.environment.clock.monotonic_ns();
        Self { engine, share_percent: 0, worked_since_ns, created: Vec::new() }
    }

    /// A sink that spends at most a share of its time working.
    pub fn with_share(mut self, percent: u32) -> Self {
        self.share_percent = percent;
        self
    }

    /// What was written stays: from here on its segments answer for their files.
    pub fn keep(&mut self) {
        self.created.clear();
    }

    /// Opens a finished segment without syncing it: the caller does.
    pub fn open_unsynced(
        &self,
        entry: SegmentEntry,
        target: SinkTarget,
    ) -> esker_table::Result<Segment> {
        let engine = self.engine;
        match target {
            SinkTarget::Memory(bytes) => {
                let mapping = Mapping::copy_of(&bytes);
                Segment::in_memory(mapping, &engine.arena, entry.holds_through)
            }
            SinkTarget::File(_) => Segment::open(&engine.segment_files, &entry, &engine.arena),
        }
    }
}

impl SegmentSink for FileSink<'_> {
    fn next_id(&mut self) -> u64 {
        self.engine.new_row_group()
    }

    fn create(&mut self, id: u64) -> esker_table::Result<SinkTarget> {
        if !self.engine.is_durable() {
            return Ok(SinkTarget::Memory(Vec::new()));
        }
        let file = self.engine.segment_files.create(id)?;
        self.created.push(id);
        Ok(SinkTarget::File(file))
    }

    fn long_bytes(&self) -> usize {
        match self.engine.is_durable() {
            true => self.engine.options.values.long_bytes,
            false => usize::MAX,
        }
    }

    fn store(&mut self, value: &[u8]) -> esker_table::Result<StoredValue> {
        let engine = self.engine;
        engine.segment_files.values().store(value, &mut || engine.new_row_group())
    }

    fn finish(&mut self, entry: SegmentEntry, target: SinkTarget) -> esker_table::Result<Segment> {
        if let SinkTarget::File(file) = &target {
            let is_run = run_of_file(entry.id).is_some();
            let skips = if is_run { Bug::RunNamedBeforeSynced } else { Bug::SkipSegmentFsync };
            if !skips.is_planted() {
                file.sync_data()?;
            }
            if is_run {
                self.engine.segment_files.name_run(entry.id)?;
            }
        }
        self.open_unsynced(entry, target)
    }

    fn pause(&mut self) {
        let environment = &self.engine.environment;
        environment.tasks.pause();
        if self.share_percent == 0 || self.share_percent >= 100 || self.engine.is_building() {
            return;
        }
        let worked = environment.clock.monotonic_ns().saturating_sub(self.worked_since_ns);
        let rest = worked / u64::from(self.share_percent) * u64::from(100 - self.share_percent);
        let rest = std::time::Duration::from_nanos(rest.min(200_000_000));
        let event = esker_vfs::Event::new();
        environment.tasks.wait_timeout(&event, event.generation(), rest);
        self.worked_since_ns = environment.clock.monotonic_ns();
    }
}

impl Engine {
    /// Makes the names of segment files durable.
    pub(crate) fn sync_segment_dir(&self) -> crate::Result<()> {
        if self.is_durable() && !Bug::SkipSegmentDirFsync.is_planted() {
            self.environment.files.sync_dir(&self.dir)?;
        }
        Ok(())
    }
}
