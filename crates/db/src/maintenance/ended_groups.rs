//! What the groups of events that end came to, for the histories of their stream's rollups.
//!
//! They are computed of the events that are alive when they end. Those of a whole segment are
//! computed before the commit lock is taken, and anew under it if one of its events was deleted
//! meanwhile; those of single events under it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use esker_format::schema::Index;
use esker_format::{Batch, Column, ColumnSlice, Field, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::PartialAggregates;
use esker_table::Table as TableCore;
use esker_table::segment::Segment;
use esker_table::table::Existing;
use esker_table::view::View;

use crate::catalog::rollup_history;
use crate::commit::ended_segments::EndedGroups;
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// The most bytes of groups in one commit, about: a frame of the log holds them, and what is kept
/// free of memory for commits under way.
const BYTES_MAX: usize = 4 << 20;
/// The same for one event: a frame has room for it.
const ROW_BYTES_MAX: usize = 12 << 20;
/// The same while memory is short.
const FEW_BYTES: usize = 128 << 10;
/// Bytes of a value that is no text, at the most.
const WORD_BYTES: usize = 16;

/// The history of a rollup, and what computes its groups.
pub(super) struct History {
    name: String,
    core: Arc<TableCore>,
    partials: PartialAggregates,
}

/// The groups of a segment, of each history, while it had so many dead rows.
pub(super) struct SegmentGroups {
    dead: u64,
    of_histories: Vec<Vec<Column>>,
}

impl Engine {
    /// The histories of the rollups of a stream.
    pub(super) fn histories_of(&self, schema: &Schema) -> Result<Vec<History>> {
        let (names, mut found) = (self.names.load(), Vec::new());
        for index in schema.indexes().iter().filter(|index| index.is_rollup()) {
            if let Some(core) = rollup_history::of(names.newest(), &index.name) {
                found.push(History::of(index, schema, core)?);
            }
        }
        Ok(found)
    }

    /// Whether these are the histories of a stream's rollups still.
    pub(super) fn are_histories_of(&self, schema: &Schema, known: &[History]) -> bool {
        let names = self.names.load();
        let rollups = schema.indexes().iter().filter(|index| index.is_rollup());
        let now = rollups.filter_map(|index| rollup_history::of(names.newest(), &index.name));
        now.map(|core| core.id()).eq(known.iter().map(|history| history.core.id()))
    }

    /// The groups of events that end, to be stored with their end. Under the commit lock.
    pub(super) fn ended_groups(
        &self,
        (histories, schema): (&[History], &Schema),
        (view, segments, rows): (&View, &BTreeMap<u64, Option<SegmentGroups>>, &[Existing]),
    ) -> Result<Vec<EndedGroups>> {
        let mut ended = Vec::with_capacity(histories.len());
        let (mut bytes, most) = match self.is_short_of_memory() {
            // One event has to end, whatever it takes.
            _ if segments.is_empty() && rows.len() == 1 => (0, ROW_BYTES_MAX),
            true => (0, FEW_BYTES),
            false => (0, BYTES_MAX),
        };
        for (at, history) in histories.iter().enumerate() {
            let kept = history.core.schema();
            let bound = kept.stream().and_then(|s| s.ended_before(0, self.destroying_us(&kept)));
            let mut into = Kept { schema: &kept, bound, rows: Batch::empty(&kept), bytes, most };
            for segment in view.segments().filter(|s| segments.contains_key(&s.id())) {
                let known = segments.get(&segment.id()).and_then(Option::as_ref);
                let known = known.filter(|known| known.dead == segment.dead_count());
                match known.and_then(|known| known.of_histories.get(at)) {
                    Some(known) => into.add(known)?,
                    None => into.add(&history.groups_of_segment(segment, schema)?)?,
                }
            }
            if !rows.is_empty() {
                into.add(&history.groups_of_rows((view, rows), schema)?)?;
            }
            bytes = into.bytes;
            if !into.rows.is_empty() {
                let (history, rows) = (Arc::clone(&history.core), into.rows);
                ended.push(EndedGroups { history, rows, bytes: into.bytes });
            }
        }
        Ok(ended)
    }
}

impl SegmentGroups {
    /// Those of a segment by now.
    pub(super) fn of(histories: &[History], segment: &Segment, schema: &Schema) -> Result<Self> {
        let dead = segment.dead_count();
        let of = |history: &History| history.groups_of_segment(segment, schema);
        Ok(Self { dead, of_histories: histories.iter().map(of).collect::<Result<_>>()? })
    }
}

impl History {
    fn of(index: &Index, schema: &Schema, core: &Arc<TableCore>) -> Result<Self> {
        let partials = PartialAggregates::of(index, schema)?;
        let types = core.schema();
        let types = types.fields().iter().map(|field| &field.data_type);
        if !types.eq(partials.layout().types()) {
            let name = &index.name;
            return Err(Error::corrupt(format!(
                "the history of rollup {name:?} is of another one"
            )));
        }
        Ok(Self { name: index.name.clone(), core: Arc::clone(core), partials })
    }

    /// The fields that are read.
    fn fields<'s>(&self, schema: &'s Schema) -> Result<Vec<&'s Field>> {
        let lost = || Error::corrupt(format!("rollup {:?} reads a field that is gone", self.name));
        let fields = self.partials.reads().iter();
        fields.map(|id| schema.field_of(*id).ok_or_else(lost)).collect()
    }

    fn groups_of_segment(&self, segment: &Segment, schema: &Schema) -> Result<Vec<Column>> {
        let (room, rows) = (Room::default(), segment.row_count());
        let columns = self.fields(schema)?.into_iter();
        let columns = columns.map(|field| segment.column(field, 0..rows, &room));
        let columns = columns.collect::<esker_table::Result<Vec<_>>>()?;
        let living = |range: Range<usize>| {
            if Bug::HistoryHasDeadRows.is_planted() {
                return None;
            }
            let mut words = vec![0u64; range.len().div_ceil(64)];
            let alive = range.enumerate().filter(|(_, row)| segment.deleted(*row) == 0);
            for (at, _) in alive {
                if let Some(word) = words.get_mut(at / 64) {
                    *word |= 1 << (at % 64);
                }
            }
            Some(words)
        };
        let groups = self.partials.compute_of(&columns, (rows, &living), usize::MAX)?;
        groups.ok_or_else(|| self.too_many())
    }

    fn groups_of_rows(
        &self,
        (view, rows): (&View, &[Existing]),
        schema: &Schema,
    ) -> Result<Vec<Column>> {
        let fields = self.fields(schema)?;
        let mut columns: Vec<Column> = fields.iter().map(|f| Column::empty(f.data_type)).collect();
        for existing in rows {
            let gone = || Error::corrupt("a row that ends is in no row group");
            let (row_group, row) = view.row(existing.location).ok_or_else(gone)?;
            let room = Room::default();
            for (column, field) in columns.iter_mut().zip(&fields) {
                column.push(row_group.value(field, row, &room)?)?;
            }
        }
        let slices: Vec<ColumnSlice<'_>> = columns.iter().map(ColumnSlice::from).collect();
        let groups = self.partials.compute_of(&slices, (rows.len(), &|_| None), usize::MAX)?;
        match groups {
            // Its keys cannot be computed, so that it is in no answer of the view either.
            None if rows.len() == 1 => Ok(Vec::new()),
            groups => groups.ok_or_else(|| self.too_many()),
        }
    }

    fn too_many(&self) -> Error {
        let name = &self.name;
        let message = format!("rollup {name:?}: more groups at once than are kept");
        Error::new(ErrorKind::OverBudget, message)
    }
}

/// Groups that are added to a history.
struct Kept<'a> {
    schema: &'a Schema,
    /// Groups of times before this have ended themselves.
    bound: Option<i64>,
    rows: Batch,
    bytes: usize,
    /// So many bytes are too many.
    most: usize,
}

impl Kept<'_> {
    fn add(&mut self, groups: &[Column]) -> Result<()> {
        let time = self.schema.stream().map(|stream| stream.time);
        let fields = self.schema.fields();
        let time = time.and_then(|time| fields.iter().position(|field| field.id == time));
        let times = time.and_then(|at| groups.get(at));
        let count = groups.first().map_or(0, Column::len); // default: a rollup has a key
        for group in 0..count {
            let at_us = match times.map(|times| times.value(group)) {
                Some(ValueRef::Timestamp(at_us)) => Some(at_us),
                _ => None,
            };
            if at_us.zip(self.bound).is_some_and(|(at_us, bound)| at_us < bound) {
                continue;
            }
            for (into, column) in self.rows.columns.iter_mut().zip(groups) {
                let value = column.value(group);
                // default: what is no text is a word
                self.bytes += value.as_bytes().map_or(WORD_BYTES, <[u8]>::len);
                into.push(value)?;
            }
        }
        match self.bytes > self.most {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::OverBudget, "more groups than one commit takes")),
        }
    }
}
