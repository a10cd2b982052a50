//! Rewriting row groups as segments: sealing (a frozen group becomes a segment) and merging
//! (segments become fewer, and their dead rows go).
//!
//! ```text
//!  build    keep every version that some snapshot may see, in the order of row ids;
//!           write files, sync them                                        no lock
//!  number   append the frame that names inputs and outputs, wait for it   (the layer above)
//!  publish  carry over deaths that came meanwhile, swap the row groups         commit lock
//!  repoint  index entries, in batches                                     commit lock each
//!  relocate newer versions that name rows of the inputs, and what
//!           remembers their places                                        no lock
//!  forget   where the rows went                                           commit lock
//! ```
//!
//! A version is dropped when no reader sees it: when it died at or before the oldest commit that
//! any snapshot reads at, or was replaced before the next commit that one does ([`ReadCommits`]).
//! Snapshots taken later read at newer commits, so they do not see it either. So of a row there are
//! as many versions as snapshots, and one, however often it changes while they are held.
//!
//! # Invariants
//!
//! 1. Of each version that is kept it is known where it went, and the outputs have no other rows:
//!    `build` refuses another number of them.
//! 2. Where an input leads to is an output, which is in the view before the input has gone:
//!    `publish` refuses another place.
//! 3. A version that died after it was copied is dead in the output: `publish`, under the commit
//!    lock, which commits deletes.
//! 4. No other row group of the table is retired before the entries have moved and what names the
//!    inputs is relocated: the one maintenance job of the layer above.

mod gathering;
mod lineage;
mod pieces;
mod relocation;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::ReadCommits;
use esker_format::edit::SegmentEntry;
use esker_format::schema::RowOrder;
use esker_format::segment::{Packing, SEGMENT_ROWS_MAX};
use esker_format::{Field, Moment, Room, Schema};
use esker_log::sabotage::Bug;

use crate::forwarding::RowWords;
use crate::key_order::{KeyForm, sorted_by_key};
use crate::live_version::LiveVersion;
use crate::location::Location;
pub use crate::segment::sink::SegmentSink;
use crate::segment::{CreateStamp, Segment, SegmentSpec, SegmentWriter};
use crate::table::{Table, UniqueKeys};
use crate::view::{Forwarding, RowGroup, View};
use crate::visibility::is_deleted_at;
use crate::{Error, ErrorKind, Result, RowHasher};
use gathering::Gathering;
use lineage::Lineage;

/// Bytes of a merged segment, about, at the most.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Bytes that the values of one column of a merged segment take, not encoded, at the most:
/// offsets have 32 bits, and a column is whole in memory while it is encoded.
pub const COLUMN_BYTES_MAX: u64 = 2 << 30;
/// Index entries repointed per hold of the commit lock.
pub const REPOINT_BATCH: usize = 1_024;

/// Rows read of one row group before its pages are let go: a system call each.
const RELEASE_ROWS: usize = 4_096;

/// What a rewrite needs to know.
pub struct RewritePlan {
    /// The table.
    pub table: Arc<Table>,
    /// The row groups to rewrite, groups or segments, by rising age.
    pub inputs: Vec<RowGroup>,
    /// The commits that snapshots read at.
    pub readers: ReadCommits,
    /// Rows that had expired at this moment are dropped: no snapshot was taken earlier.
    pub expired: Moment,
    /// The outputs hold the effects of all commits up to this one.
    pub through: u64,
    /// The database's identity.
    pub database: u128,
    /// Rows of an output at the most: [`SEGMENT_ROWS_MAX`].
    pub rows_max: usize,
    /// Bytes of one column of an output, not encoded, at the most: [`COLUMN_BYTES_MAX`].
    pub column_bytes_max: u64,
    /// The value files whose values are to be copied; others are referred to as before.
    pub emptied: BTreeSet<u64>,
    /// The fewest events of one window that make an output of their own, but for large ones.
    pub window_rows_min: usize,
}

/// Outputs that are written but not part of the table yet.
pub struct Rewritten {
    plan: RewritePlan,
    /// The new segments.
    pub segments: Vec<Arc<Segment>>,
    /// For each row of each input, the word of its new location; 0 when it is dropped.
    forwardings: Vec<Vec<u64>>,
    /// What dropped rows of each input lead back to.
    older: Vec<RowWords>,
    /// Versions that died up to here may have been dropped.
    dropped_through: u64,
}

impl RewritePlan {
    /// Writes the outputs, and tells the rows of each that is written.
    ///
    /// # Errors
    /// What the machine says, or `Corrupt` when an input is damaged. Nothing has changed then;
    /// files that were written are named by no catalogue.
    pub fn build(self, sink: &mut dyn SegmentSink, tell: &mut dyn FnMut(u64)) -> Result<Rewritten> {
        let view = self.table.view();
        let oldest = self.readers.oldest();
        let fields = view.fields_since(oldest);
        let kept = self.kept_rows(&view)?;
        let kept_count = kept.len();
        let pieces = pieces::pieces(&self, &view.schema, kept)?;
        let mut outputs = Vec::new();
        for piece in &pieces {
            outputs.extend(self.outputs(&fields, piece)?);
        }
        let outputs: Vec<_> = outputs.into_iter().map(|rows| (sink.next_id(), rows)).collect();
        let forwardings = self.targets(&outputs)?;
        expect_as_many(kept_count, &forwardings)?;
        let lineage = Lineage { plan: &self, view: &view, targets: &forwardings };
        let mut segments = Vec::new();
        for (id, rows) in outputs {
            segments.push(Arc::new(self.write_segment(&lineage, &fields, (id, rows), sink)?));
            tell(rows.len() as u64);
            sink.pause();
        }
        let (older, dropped_through) = match lineage.drops_between()? {
            true => (lineage.older_of_dropped()?, self.readers.since()),
            false => (vec![RowWords::new(); self.inputs.len()], oldest),
        };
        Ok(Rewritten { plan: self, segments, forwardings, older, dropped_through })
    }

    /// Where each row of each input goes.
    fn targets(&self, outputs: &[(u64, &[LiveVersion])]) -> Result<Vec<Vec<u64>>> {
        let nowhere = |row_group: &RowGroup| vec![0; row_group.row_count()];
        let mut all: Vec<Vec<u64>> = self.inputs.iter().map(nowhere).collect();
        for (id, rows) in outputs {
            for (i, kept) in rows.iter().enumerate() {
                if i == 0 && Bug::RewriteForgetsRow.is_planted() {
                    continue;
                }
                let targets = all.get_mut(kept.row_group as usize);
                let slot = targets.and_then(|targets| targets.get_mut(kept.row as usize));
                let missing = || {
                    let (row, input) = (kept.row, kept.row_group);
                    Error::corrupt(format!("segment {id}: no row {row} of input {input}"))
                };
                *slot.ok_or_else(missing)? = Location::new(*id, i).word();
            }
        }
        Ok(all)
    }

    /// Every version that some snapshot may see, in the order of the table, then by age.
    fn kept_rows(&self, view: &View) -> Result<Vec<LiveVersion>> {
        let (schema, oldest) = (&view.schema, self.readers.oldest());
        let expired_us = self.expired.of(schema);
        let mut kept = Vec::new();
        for (index, row_group) in (0u32..).zip(&self.inputs) {
            let expiry = view.expiry_since(oldest);
            let expiry = expiry.filter(|field| row_group.least_expiry(field) <= expired_us);
            for (row, number) in (0..row_group.row_count()).zip(0u32..) {
                if row_group.is_droppable(row, &self.readers) {
                    continue;
                }
                // A version that a snapshot does not know leads it to the one before.
                if let Some(field) = expiry
                    && (row_group.is_created_at(row, oldest) || Bug::PurgeCutsChains.is_planted())
                    && row_group.has_expired(row, field, expired_us)?
                {
                    continue;
                }
                let row_id = row_group.row_id(row)?;
                kept.push(LiveVersion { row_id, row_group: index, row: number });
            }
        }
        if schema.row_order() != RowOrder::Arrival && !Bug::MergeIgnoresKeyOrder.is_planted() {
            return sorted_by_key(&KeyForm::of(schema), &self.inputs, kept);
        }
        // Stable, and inputs come by age, so versions of one row stay in order.
        if !kept.is_sorted_by_key(|k| k.row_id) {
            kept.sort_by_key(|k| k.row_id);
        }
        Ok(kept)
    }

    /// The rows of each output.
    fn outputs<'a>(
        &self,
        fields: &[Field],
        kept: &'a [LiveVersion],
    ) -> Result<Vec<&'a [LiveVersion]>> {
        let rows_max = self.rows_per_segment(kept.len()).max(1);
        let texts = variable_fields(fields);
        let sums = decoded_bytes(&self.inputs, &texts)?;
        if sums.iter().all(|sum| *sum <= self.column_bytes_max) {
            return Ok(kept.chunks(rows_max).collect());
        }
        let (mut outputs, mut rest) = (Vec::new(), kept);
        while !rest.is_empty() {
            // default: no more are left
            let rows = self.rows_that_fit(&texts, rest.get(..rows_max).unwrap_or(rest))?;
            let (output, later) = rest.split_at(rows.clamp(1, rest.len()));
            outputs.push(output);
            rest = later;
        }
        Ok(outputs)
    }

    /// How many of some rows come before a column would be too large.
    fn rows_that_fit(&self, texts: &[&Field], rows: &[LiveVersion]) -> Result<usize> {
        let mut sums = vec![0u64; texts.len()];
        for (i, kept) in rows.iter().enumerate() {
            let row_group = self.row_group(kept)?;
            for (sum, field) in sums.iter_mut().zip(texts) {
                let row = kept.row as usize;
                if row_group.long_value(field, row)?.is_some() {
                    continue;
                }
                let room = Room::default();
                let value = row_group.value(field, row, &room)?;
                // default: NULL has no bytes
                *sum += value.as_bytes().map_or(0, |bytes| bytes.len() as u64);
                if *sum > self.column_bytes_max {
                    return Ok(i);
                }
            }
        }
        Ok(rows.len())
    }

    /// Rows per output, so that outputs are full but not too large.
    fn rows_per_segment(&self, kept: usize) -> usize {
        let (rows, bytes) = self.inputs.iter().fold((0, 0), |(rows, bytes), row_group| {
            (rows + row_group.row_count() as u64, bytes + row_group.byte_count())
        });
        let by_bytes = (SEGMENT_BYTES_MAX * rows.max(1)) / bytes.max(1);
        let rows_max = self.rows_max.clamp(1, SEGMENT_ROWS_MAX);
        // default: a limit beyond the other one
        let most = usize::try_from(by_bytes).unwrap_or(usize::MAX).clamp(1, rows_max);
        kept.div_ceil(kept.div_ceil(most).max(1))
    }

    /// Heaps of events are compressed once segments are merged: what comes new is read most, and is
    /// written again before long.
    fn packing(&self) -> Packing {
        let packing = Packing::of(&self.table.schema());
        let is_merge = self.inputs.iter().all(|input| matches!(input, RowGroup::Segment(_)));
        match packing {
            Packing::Numbers if is_merge => Packing::Heaps,
            packing => packing,
        }
    }

    fn write_segment(
        &self,
        lineage: &Lineage<'_>,
        fields: &[Field],
        (id, rows): (u64, &[LiveVersion]),
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment> {
        let too_many = |_| Error::corrupt(format!("segment {id}: {} rows", rows.len()));
        let spec = SegmentSpec {
            database: self.database,
            table: self.table.id(),
            segment: id,
            schema_version: lineage.view.schema.version(),
            rows: u32::try_from(rows.len()).map_err(too_many)?,
            order: self.table.schema().row_order(),
            side_by_side: self.table.schema().side_by_side(),
            key: self.table.schema().key_field(),
            packing: self.packing(),
        };
        let mut writer = SegmentWriter::new(spec, sink.create(id)?)?;
        for field in fields {
            let mut gathering = Gathering::new(self, field, sink);
            gathering.rows(rows)?;
            let (column, long) = gathering.finish();
            writer.field(field.id, Cow::Owned(column), long)?;
            sink.pause();
        }
        self.inputs.iter().for_each(RowGroup::release);
        let row_ids: Vec<u64> = rows.iter().map(|kept| kept.row_id).collect();
        let dead = self.dead_bits(rows)?;
        let finished = writer.finish(&row_ids, dead.as_deref())?;
        let (file_bytes, holds_through) = (finished.file_bytes, self.through);
        let entry =
            SegmentEntry { id, rows: spec.rows, file_bytes, holds_through, row_id_shift: 0 };
        let segment = sink.finish(entry, finished.target)?;
        self.carry_versions(lineage, &segment, rows)?;
        Ok(segment)
    }

    /// Kept versions that had died by `through`, for recovery, which knows no snapshots.
    fn dead_bits(&self, rows: &[LiveVersion]) -> Result<Option<Vec<u64>>> {
        let mut bits = vec![0u64; rows.len().div_ceil(64)];
        let mut any = false;
        for (i, kept) in rows.iter().enumerate() {
            let deleted = self.row_group(kept)?.deleted(kept.row as usize);
            if is_deleted_at(deleted, self.through) {
                any = true;
                if let Some(word) = bits.get_mut(i / 64) {
                    *word |= 1 << (i % 64);
                }
            }
        }
        Ok(any.then_some(bits))
    }

    fn row_group(&self, kept: &LiveVersion) -> Result<&RowGroup> {
        kept.row_group_in(&self.inputs)
    }

    /// While some snapshot is older than the newest row, the segment says when rows were created
    /// and what they replaced.
    fn carry_versions(
        &self,
        lineage: &Lineage<'_>,
        segment: &Segment,
        rows: &[LiveVersion],
    ) -> Result<()> {
        let oldest = self.readers.oldest();
        let mut runs: Vec<(u32, u64)> = Vec::new();
        let mut newest = 0;
        for (i, kept) in (0u32..).zip(rows) {
            let (row_group, row) = (self.row_group(kept)?, kept.row as usize);
            let created = row_group.created(row);
            newest = newest.max(created);
            if runs.last().is_none_or(|run| run.1 != created) {
                runs.push((i, created));
            }
            // No reader goes back beyond one that all see.
            if created > oldest
                && let Some(older) = lineage.older(row_group, row)?
            {
                segment.replaced.set(i, older.word())?;
            }
        }
        if newest > oldest {
            segment.set_create_stamp(CreateStamp::Runs(runs));
        }
        Ok(())
    }
}

/// Refuses a rewrite that does not say of each row that it keeps where that went.
fn expect_as_many(kept: usize, forwardings: &[Vec<u64>]) -> Result<()> {
    let placed = forwardings.iter().flatten().filter(|word| **word != 0).count();
    match placed == kept {
        true => Ok(()),
        false => Err(Error::corrupt(format!("a rewrite keeps {kept} rows and takes {placed}"))),
    }
}

/// The fields whose values differ in length.
#[must_use]
pub fn variable_fields(fields: &[Field]) -> Vec<&Field> {
    fields.iter().filter(|field| field.data_type.width().is_none()).collect()
}

/// Bytes that the values of each of some fields take together when they are not encoded, at the
/// most.
///
/// # Errors
/// `Corrupt` when a block does not fit its checksum.
pub fn decoded_bytes(row_groups: &[RowGroup], fields: &[&Field]) -> Result<Vec<u64>> {
    let of = |row_group: &RowGroup, field: &Field| match row_group {
        RowGroup::Group(group) => Ok(group.byte_count()),
        RowGroup::Segment(segment) => segment.decoded_bytes(field),
    };
    let sum = |field: &&Field| row_groups.iter().map(|row_group| of(row_group, field)).sum();
    fields.iter().map(sum).collect()
}

impl Rewritten {
    /// Entries for the catalogue.
    #[must_use]
    pub fn entries(&self) -> Vec<SegmentEntry> {
        self.segments.iter().map(|s| s.entry()).collect()
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.plan.table
    }

    /// Whether an input has ended after what the outputs hold: they have rows that live.
    #[must_use]
    pub fn has_ended_input(&self) -> bool {
        let ended_at = |input: &RowGroup| match input {
            RowGroup::Segment(segment) => segment.ended_at(),
            RowGroup::Group(_) => None,
        };
        let ends = self.plan.inputs.iter().filter_map(ended_at);
        ends.into_iter().any(|commit| commit > self.plan.through)
    }

    /// The numbers of the inputs.
    #[must_use]
    pub fn input_ids(&self) -> Vec<u64> {
        self.plan.inputs.iter().map(RowGroup::id).collect()
    }

    /// Swaps the outputs in, once the frame that names them is durable. Under the commit lock.
    /// The index entries still name the inputs then, and so do versions that replaced rows of them;
    /// [`Repoint`] moves them.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn publish(self, commit: u64) -> Result<Repoint> {
        for (row_group, targets) in self.plan.inputs.iter().zip(&self.forwardings) {
            if row_group.dead_count() > 0 && !Bug::MergeForgetsDeletes.is_planted() {
                self.carry_delete_stamps(row_group, targets)?;
            }
        }
        let table = Arc::clone(&self.plan.table);
        table.add_live_rows(-self.dropped_living());
        let mut view: View = (*table.view()).clone();
        view.remove(&self.input_ids());
        // The outputs have no columns for fields that only older readers would ask for.
        let early = Bug::SchemasForgottenTooEarly.is_planted();
        let oldest = self.plan.readers.oldest();
        view.forget_schemas(if early { commit } else { oldest });
        let indexes = Arc::clone(&view.schema);
        for segment in &self.segments {
            // An index may have been dropped since its run was written.
            segment.retain_runs(|id| indexes.indexes().iter().any(|index| index.id == id));
            view.insert(RowGroup::Segment(Arc::clone(segment)));
        }
        let mut inputs = Vec::new();
        let forwardings = self.forwardings.into_iter().zip(self.older);
        for (row_group, (targets, older)) in self.plan.inputs.into_iter().zip(forwardings) {
            let forwarding = Arc::new(Forwarding::new(row_group.id(), targets, older));
            expect_outputs(&view, &forwarding)?;
            if !Bug::ForwardingNotRegistered.is_planted() {
                view.retire(Arc::clone(&forwarding));
            }
            inputs.push((row_group, forwarding));
        }
        table.raise_horizons(oldest, self.dropped_through)?;
        table.set_view(view)?;
        Ok(Repoint { table, inputs, row_group: 0, row: 0, unreadable: Vec::new() })
    }

    /// A bug to plant: moving the index entries before the outputs are swapped in.
    #[must_use]
    pub fn repoint(&self) -> Repoint {
        let pairs = self.plan.inputs.iter().zip(&self.forwardings);
        let inputs = pairs.map(|(row_group, targets)| {
            let forwarding = Forwarding::new(row_group.id(), targets.clone(), RowWords::new());
            (row_group.clone(), Arc::new(forwarding))
        });
        let table = Arc::clone(&self.plan.table);
        Repoint { table, inputs: inputs.collect(), row_group: 0, row: 0, unreadable: Vec::new() }
    }

    /// Rows that no commit had deleted: they had expired.
    fn dropped_living(&self) -> i64 {
        if self.plan.table.schema().expiry_field().is_none() {
            return 0;
        }
        let mut dropped = 0u64;
        for (row_group, targets) in self.plan.inputs.iter().zip(&self.forwardings) {
            let is_dropped =
                |(row, target): &(usize, &u64)| **target == 0 && row_group.is_alive(*row);
            dropped += targets.iter().enumerate().filter(is_dropped).count() as u64;
        }
        dropped.cast_signed()
    }

    fn carry_delete_stamps(&self, row_group: &RowGroup, targets: &[u64]) -> Result<()> {
        for (row, target) in targets.iter().enumerate() {
            let delete_stamp = row_group.delete_stamp(row);
            let Some(target) = Location::from_word(*target).filter(|_| delete_stamp.commit() != 0)
            else {
                continue;
            };
            let output = self.segments.iter().find(|s| s.id() == target.row_group());
            let missing = || {
                let (id, output) = (row_group.id(), target.row_group());
                Error::corrupt(format!("row group {id}: row {row} went to {output}, no output"))
            };
            output.ok_or_else(missing)?.delete(target.row(), delete_stamp)?;
        }
        Ok(())
    }
}

/// Refuses an input that leads to a row group that is not there.
fn expect_outputs(view: &View, forwarding: &Forwarding) -> Result<()> {
    let lost = forwarding.leads_to().iter().find(|id| view.row_group(**id).is_none());
    let Some(id) = lost else { return Ok(()) };
    let input = forwarding.row_group;
    Err(Error::corrupt(format!("row group {input} leads to {id}, which the view lacks")))
}

/// One index entry to move.
pub struct Move {
    /// The unique index; `None` for the primary index.
    keys: Option<Arc<UniqueKeys>>,
    hash: u64,
    old: u64,
    new: Goal,
}

/// Where an index entry leads from now on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// To where its row went.
    Moved(u64),
    /// To the version that its row, the newest of the key and gone, had taken the place of.
    Older(u64),
    /// Nowhere: it goes.
    Gone,
}

impl Goal {
    /// In the primary index, where some reader may ask for older versions.
    fn of(forwarding: &Forwarding, row: usize) -> Self {
        let older = || forwarding.older(row).filter(|_| !Bug::NewestDroppedCutsChain.is_planted());
        match (forwarding.target(row), older()) {
            (Some(target), _) => Self::Moved(target.word()),
            (None, Some(older)) => Self::Older(older.word()),
            (None, None) => Self::Gone,
        }
    }
}

/// Moves index entries, and all others who name rows of merged row groups, to where these went.
pub struct Repoint {
    table: Arc<Table>,
    inputs: Vec<(RowGroup, Arc<Forwarding>)>,
    row_group: usize,
    row: usize,
    /// Row groups with dropped rows whose keys cannot be read, so that their entries stay.
    unreadable: Vec<u64>,
}

impl Repoint {
    /// The numbers of the retired row groups that no index entry names any more.
    #[must_use]
    pub fn retired(&self) -> Vec<u64> {
        let ids = self.inputs.iter().map(|(row_group, _)| row_group.id());
        ids.filter(|id| !self.unreadable.contains(id)).collect()
    }

    /// The next entries to move, hashed without a lock; `None` at the end.
    ///
    /// # Errors
    /// `Corrupt` when a block of an input does not fit its checksum.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Move>>> {
        let uniques = self.table.uniques();
        if self.table.index().is_empty() && uniques.iter().all(|keys| keys.entries().is_empty()) {
            return Ok(None);
        }
        let view = self.table.view();
        let hasher = RowHasher::new(&self.table, &view.schema);
        while let Some((row_group, forwarding)) = self.inputs.get(self.row_group) {
            if self.row >= row_group.row_count() {
                row_group.release();
                self.row_group += 1;
                self.row = 0;
                continue;
            }
            let end = row_group.row_count().min(self.row + REPOINT_BATCH);
            let mut batch = Vec::with_capacity(end - self.row);
            for row in self.row..end {
                let goal = Goal::of(forwarding, row);
                let place = (Location::new(row_group.id(), row).word(), goal);
                match moves_of(
                    (&self.table, &hasher),
                    &uniques,
                    &view.schema,
                    (row_group, row),
                    place,
                    &mut batch,
                ) {
                    Ok(()) => {}
                    // No reader needs a dropped row: damage to it must not stop the others. Its
                    // entries go on leading to older versions, or nowhere, by way of the row
                    // group's forwarding.
                    Err(e) if !matches!(goal, Goal::Moved(_)) && e.kind() == ErrorKind::Corrupt => {
                        if !self.unreadable.contains(&row_group.id()) {
                            self.unreadable.push(row_group.id());
                        }
                    }
                    Err(e) => return Err(e),
                }
            }
            self.row = end;
            prefetch_moves(&self.table, &uniques, &batch);
            return Ok(Some(batch));
        }
        Ok(None)
    }

    /// Moves entries, those that still name the old place. Under the commit lock.
    pub fn apply(&self, batch: &[Move]) {
        for Move { keys, hash, old, new } in batch {
            let entries = match keys {
                Some(keys) => keys.entries(),
                None => self.table.index(),
            };
            match new {
                Goal::Moved(_) if Bug::IndexEntryNotRepointed.is_planted() => {}
                Goal::Moved(_) if keys.is_some() && Bug::UniqueNotRepointed.is_planted() => {}
                Goal::Moved(new) => {
                    entries.replace(*hash, *old, *new);
                }
                // A second entry would stay when the first is moved.
                Goal::Older(new) if !entries.contains(*hash, *new) => {
                    entries.replace(*hash, *old, *new);
                }
                Goal::Older(_) | Goal::Gone => {
                    entries.remove(*hash, *old);
                }
            }
        }
    }
}

/// Loads the entries that are about to be moved, many at a time: who waits for the commit lock does
/// not wait for memory, too.
fn prefetch_moves(table: &Table, uniques: &[Arc<UniqueKeys>], batch: &[Move]) {
    let hashes_of = |keys: Option<&Arc<UniqueKeys>>| -> Vec<u64> {
        let is_wanted =
            |entry: &&Move| entry.keys.as_ref().map(Arc::as_ptr) == keys.map(Arc::as_ptr);
        batch.iter().filter(is_wanted).map(|entry| entry.hash).collect()
    };
    table.index().touch(&hashes_of(None));
    for keys in uniques {
        keys.entries().touch(&hashes_of(Some(keys)));
    }
}

/// Adds what becomes of the entries of a row whose place was `old`. No reader finds older versions
/// by the values of unique indexes.
fn moves_of(
    (table, hasher): (&Table, &RowHasher<'_>),
    uniques: &[Arc<UniqueKeys>],
    schema: &Schema,
    (row_group, row): (&RowGroup, usize),
    (old, new): (u64, Goal),
    moves: &mut Vec<Move>,
) -> Result<()> {
    if !table.index().is_empty() {
        let hash = hasher.hash(row_group, row)?;
        moves.push(Move { keys: None, hash, old, new });
    }
    let new = if matches!(new, Goal::Older(_)) { Goal::Gone } else { new };
    for keys in uniques {
        if let Some(hash) = keys.hash_at(table, schema, row_group, row)? {
            moves.push(Move { keys: Some(Arc::clone(keys)), hash, old, new });
        }
    }
    Ok(())
}
