//! What a table consists of at one moment: its row groups, and where the rows of merged row groups
//! went.
//!
//! A view is immutable and swapped whole. A reader loads the commit it reads at, then an index
//! entry, then the view: a row group that an entry names was registered before the entry, and is
//! registered or forwarded until no entry names it, nor any newer version, so a location that the
//! view does not know means that the view (or the entry) is older than the other, and the reader
//! starts again.
//!
//! # Invariants
//!
//! Writers put views together under the commit lock; `Table::set_view` refuses one that breaks one
//! of 1 to 4, by `View::expect_sound`.
//!
//! 1. The numbers of the row groups rise, each once, and so do those of the retired ones.
//! 2. No row group is both there and retired.
//! 3. A retired row group leads to row groups of higher numbers, so that following a location ends.
//! 4. The commits up to which past schemas hold rise, from the first that is known on.
//! 5. Where a rewrite takes rows it has outputs that are there: `Rewritten::publish` refuses
//!    another place.

use std::ops::Range;
use std::sync::Arc;

use esker_format::{ColumnSlice, Field, Moment, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;

use crate::dead_blocks::DeadBlocks;
use crate::delete_stamp::DeleteStamp;
pub use crate::forwarding::Forwarding;
use crate::group::Group;
use crate::location::Location;
use crate::segment::Segment;
use crate::visibility::Visibility;
use crate::{Error, Result};

/// An open or frozen group, or a segment.
#[derive(Clone)]
pub enum RowGroup {
    /// Rows in append-only memory.
    Group(Arc<Group>),
    /// Rows in an immutable file.
    Segment(Arc<Segment>),
}

/// A schema that was changed.
#[derive(Clone)]
struct PastSchema {
    /// The commit of the change.
    until: u64,
    /// The time of it where rows expire by another field since, or no more: what the older field
    /// says of later times never came about.
    as_of_until: Moment,
    schema: Arc<Schema>,
}

/// A table at one moment.
#[derive(Clone)]
pub struct View {
    /// The fields and the key.
    pub schema: Arc<Schema>,
    /// Older schemas, by rising commit: what readers at commits before it see.
    past: Vec<PastSchema>,
    /// Readers at older commits cannot know their schema: no snapshot is among them.
    schemas_since: u64,
    /// The row groups, by rising number.
    pub row_groups: Vec<RowGroup>,
    /// The retired row groups that locations may still name, by rising number.
    pub retired: Vec<Arc<Forwarding>>,
}

/// Where a location leads.
pub enum Resolved<'a> {
    /// To this row of this row group.
    Row(&'a RowGroup, usize),
    /// To a version that no reader can see any more.
    Gone,
    /// To a row group that this view does not know: load a newer view, or read the entry again.
    Unknown,
}

impl RowGroup {
    /// The row group's number.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        match self {
            Self::Group(group) => group.id,
            Self::Segment(segment) => segment.id(),
        }
    }

    /// How many rows it has, the dead and the invisible included.
    #[must_use]
    pub fn row_count(&self) -> usize {
        match self {
            Self::Group(group) => group.row_count(),
            Self::Segment(segment) => segment.row_count(),
        }
    }

    /// How many rows have been marked dead.
    #[must_use]
    pub fn dead_count(&self) -> u64 {
        match self {
            Self::Group(group) => group.dead_count(),
            Self::Segment(segment) => segment.dead_count(),
        }
    }

    /// The first row, from one on, that a reader at commit `at` may see; `end` where the blocks of
    /// all of them are dead.
    #[must_use]
    pub fn first_shown(&self, row: usize, end: usize, at: u64) -> usize {
        self.dead_blocks().first_shown(row, end, at)
    }

    /// Which blocks of rows are dead.
    pub(crate) fn dead_blocks(&self) -> &DeadBlocks {
        match self {
            Self::Group(group) => &group.dead_blocks,
            Self::Segment(segment) => &segment.dead_blocks,
        }
    }

    /// Bytes of row data, about.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        match self {
            Self::Group(group) => group.byte_count(),
            Self::Segment(segment) => segment.file_bytes(),
        }
    }

    /// True when the row had been created at commit `at`.
    #[must_use]
    #[inline]
    pub fn is_created_at(&self, row: usize, at: u64) -> bool {
        match self {
            Self::Group(group) => group.is_created_at(row, at),
            Self::Segment(segment) => segment.is_created_at(row, at),
        }
    }

    /// No row was created after this commit; [`u64::MAX`] for a load that is not committed.
    #[must_use]
    pub fn newest_commit(&self) -> u64 {
        match self {
            Self::Group(group) => group.newest_commit(),
            Self::Segment(segment) => segment.newest_commit(),
        }
    }

    /// The commit that created a row; 0 when that was long ago.
    #[must_use]
    pub fn created(&self, row: usize) -> u64 {
        match self {
            Self::Group(group) => group.created(row),
            Self::Segment(segment) => segment.created(row),
        }
    }

    /// The commit that killed a row, 0 while it lives.
    #[must_use]
    #[inline]
    pub fn deleted(&self, row: usize) -> u64 {
        match self {
            Self::Group(group) => group.deleted(row),
            Self::Segment(segment) => segment.deleted(row),
        }
    }

    /// Marks a row dead from `commit` on. Under the commit lock, or at recovery.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn mark_deleted(&self, row: usize, commit: u64) -> Result<()> {
        self.delete(row, DeleteStamp::deleted(commit))
    }

    pub(crate) fn delete(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        match self {
            Self::Group(group) => group.delete(row, delete_stamp),
            Self::Segment(segment) => segment.delete(row, delete_stamp),
        }
    }

    /// True while no commit has deleted or replaced the row.
    #[must_use]
    #[inline]
    pub fn is_alive(&self, row: usize) -> bool {
        self.deleted(row) == 0
    }

    /// How the row stands for a reader at commit `at`.
    #[must_use]
    #[inline]
    pub fn visibility(&self, row: usize, at: u64) -> Visibility {
        Visibility::of(self.is_created_at(row, at), || self.deleted(row), at)
    }

    /// True when a reader at commit `at` sees the row.
    #[must_use]
    #[inline]
    pub fn is_visible(&self, row: usize, at: u64) -> bool {
        self.visibility(row, at).is_visible()
    }

    /// The version that a row superseded.
    #[must_use]
    #[inline]
    pub fn replaced(&self, row: usize) -> Option<Location> {
        match self {
            Self::Group(group) => group.replaced(row),
            Self::Segment(segment) => segment.replaced(row),
        }
    }

    /// False when every reader sees all rows, so that none needs what they replaced.
    #[must_use]
    pub fn is_asked_for_older(&self) -> bool {
        match self {
            Self::Group(_) => true,
            Self::Segment(segment) => segment.newest_commit() != 0,
        }
    }

    /// True for a segment whose load has not committed.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        match self {
            Self::Group(_) => false,
            Self::Segment(segment) => segment.is_loading(),
        }
    }

    /// The row id of a row.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn row_id(&self, row: usize) -> Result<u64> {
        match self {
            Self::Group(group) => group.known_row_id(row).ok_or_else(|| {
                Error::corrupt(format!("group {}: row {row} has no row id", group.id))
            }),
            Self::Segment(segment) => segment.row_id(row),
        }
    }

    /// One value.
    pub fn value<'a>(
        &'a self,
        field: &'a Field,
        row: usize,
        room: &'a Room,
    ) -> Result<ValueRef<'a>> {
        match self {
            Self::Group(group) => group.value(field, row),
            Self::Segment(segment) => segment.value(field, row, room),
        }
    }

    /// Rows of a column; those of a group lie in one chunk.
    pub fn column<'a>(
        &'a self,
        field: &'a Field,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        match self {
            Self::Group(group) => group.column(field, rows.start, rows.end),
            Self::Segment(segment) => segment.column(field, rows, room),
        }
    }

    /// Takes the pages of a segment's file out of memory; they come back at the next touch.
    pub fn release(&self) {
        if let Self::Segment(segment) = self {
            segment.release();
        }
    }

    /// True when the row's key fields equal `key`.
    #[inline]
    pub fn key_equals(&self, row: usize, schema: &Schema, key: &[ValueRef<'_>]) -> Result<bool> {
        for (field, expected) in schema.key_fields().zip(key) {
            // Equal bytes are equal texts: no need to see first that they are texts.
            if let (Some(bytes), Some(cell)) = (expected.as_bytes(), self.cell(field, row)) {
                if cell != bytes {
                    return Ok(false);
                }
                continue;
            }
            let near = match expected.as_bytes() {
                Some(bytes) => self.in_place_bytes(field, row)?.map(|(_, near)| near == bytes),
                None => None,
            };
            let same = match near {
                Some(same) => same,
                None => self.value(field, row, &Room::default())? == *expected,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl View {
    /// A table without rows.
    #[must_use]
    pub fn empty(schema: Arc<Schema>) -> Self {
        let (past, row_groups, retired) = (Vec::new(), Vec::new(), Vec::new());
        Self { schema, past, schemas_since: 0, row_groups, retired }
    }

    /// The schema as of a commit; `None` when that is forgotten.
    #[must_use]
    pub fn schema_at(&self, at: u64) -> Option<&Arc<Schema>> {
        if at < self.schemas_since {
            return None;
        }
        if Bug::SnapshotSeesNewSchema.is_planted() {
            return Some(&self.schema);
        }
        let past = self.past.iter().find(|past| at < past.until);
        // default: no change came later, so the newest schema is that of the commit
        Some(past.map_or(&self.schema, |past| &past.schema))
    }

    /// The first commit whose schema is known.
    pub(crate) fn known_since(&self) -> u64 {
        self.schemas_since
    }

    /// From `commit`, which came at some moment, on, the table has another schema.
    pub fn alter(&mut self, schema: Arc<Schema>, commit: u64, now: Moment) {
        let schema = std::mem::replace(&mut self.schema, schema);
        let expiry = |schema: &Schema| schema.expiry_field().map(|field| field.id);
        let is_told_by_same = expiry(&schema) == expiry(&self.schema);
        let as_of_until = if is_told_by_same { Moment::LAST } else { now };
        self.past.push(PastSchema { until: commit, as_of_until, schema });
    }

    /// Until when the field of its schema says what has expired for a reader at a commit. A
    /// change of that field may have a later commit and yet be earlier in time: it is not durable
    /// then. What expired after it would be back as soon as it is.
    #[must_use]
    #[inline]
    pub fn as_of_until(&self, at: u64) -> Moment {
        if self.past.is_empty() { Moment::LAST } else { self.as_of_past(at) }
    }

    #[cold]
    fn as_of_past(&self, at: u64) -> Moment {
        let later = self.past.iter().filter(|past| at < past.until);
        later.map(|past| past.as_of_until).fold(Moment::LAST, Moment::first)
    }

    /// The fields that readers at `oldest` or later may ask for.
    #[must_use]
    pub fn fields_since(&self, oldest: u64) -> Vec<Field> {
        let mut fields = self.schema.fields().to_vec();
        let forgetful = Bug::MergeForgetsDroppedFields.is_planted();
        for past in self.past.iter().rev().filter(|past| past.until > oldest && !forgetful) {
            for field in past.schema.fields() {
                if fields.iter().all(|known| known.id != field.id) {
                    fields.push(field.clone());
                }
            }
        }
        fields
    }

    /// The field by which rows expire for every reader at `oldest` or later; `None` while some of
    /// them see rows that have expired for others.
    #[must_use]
    pub fn expiry_since(&self, oldest: u64) -> Option<&Field> {
        let field = self.schema.expiry_field()?;
        let is_same = |past: &PastSchema| {
            past.until <= oldest || past.schema.expiry_field().is_some_and(|f| f.id == field.id)
        };
        self.past.iter().all(is_same).then_some(field)
    }

    /// Forgets the schemas that only readers before `oldest` see.
    pub fn forget_schemas(&mut self, oldest: u64) {
        let forgotten = self.past.iter().filter(|past| past.until <= oldest);
        self.schemas_since = forgotten.map(|past| past.until).fold(self.schemas_since, u64::max);
        self.past.retain(|past| past.until > oldest);
    }

    /// The row group with a number.
    #[must_use]
    #[inline]
    pub fn row_group(&self, id: u64) -> Option<&RowGroup> {
        // Few row groups: a scan beats a binary search.
        self.row_groups.iter().find(|row_group| row_group.id() == id)
    }

    /// Adds a row group in its place.
    pub fn insert(&mut self, row_group: RowGroup) {
        let at = self.row_groups.partition_point(|other| other.id() < row_group.id());
        if Bug::ViewNamesRowGroupTwice.is_planted() {
            self.row_groups.insert(at, row_group.clone());
        }
        self.row_groups.insert(at, row_group);
    }

    /// Takes row groups out.
    pub fn remove(&mut self, ids: &[u64]) {
        self.row_groups.retain(|row_group| !ids.contains(&row_group.id()));
    }

    /// Follows a location through merges.
    #[must_use]
    #[inline]
    pub fn resolve(&self, location: Location) -> Resolved<'_> {
        match self.row_group(location.row_group()) {
            Some(row_group) => Resolved::Row(row_group, location.row()),
            None => self.follow(location, |_, _| None),
        }
    }

    /// The row that a location leads to, as far as this view knows.
    #[must_use]
    #[inline]
    pub fn row(&self, location: Location) -> Option<(&RowGroup, usize)> {
        match self.resolve(location) {
            Resolved::Row(row_group, row) => Some((row_group, row)),
            Resolved::Gone | Resolved::Unknown => None,
        }
    }

    /// Follows what a newer version has replaced through merges: where that was dropped though
    /// somebody may be older, on to what it had replaced itself.
    #[must_use]
    #[inline]
    pub fn link_previous(&self, location: Location) -> Resolved<'_> {
        match self.row_group(location.row_group()) {
            Some(row_group) => Resolved::Row(row_group, location.row()),
            None => self.follow(location, Forwarding::older),
        }
    }

    /// Out of the way of those who find a row group at once: fewer instructions lie between the
    /// misses of one look-up and those of the next, which the processor then waits for together.
    #[cold]
    #[inline(never)]
    fn follow(
        &self,
        location: Location,
        past_dropped: impl Fn(&Forwarding, usize) -> Option<Location>,
    ) -> Resolved<'_> {
        let mut location = location;
        loop {
            if let Some(row_group) = self.row_group(location.row_group()) {
                return Resolved::Row(row_group, location.row());
            }
            let Some(forwarding) = self.forwarding(location.row_group()) else {
                return Resolved::Unknown;
            };
            let target = forwarding.target(location.row());
            match target.or_else(|| past_dropped(forwarding, location.row())) {
                Some(next) => location = next,
                None => return Resolved::Gone,
            }
        }
    }

    /// Notes where the rows of a row group went.
    pub fn retire(&mut self, forwarding: Arc<Forwarding>) {
        let at = self.retired.partition_point(|other| other.row_group < forwarding.row_group);
        self.retired.insert(at, forwarding);
    }

    /// Where the rows of a retired row group went.
    fn forwarding(&self, row_group: u64) -> Option<&Forwarding> {
        let at = self
            .retired
            .binary_search_by_key(&row_group, |forwarding| forwarding.row_group)
            .ok()?;
        self.retired.get(at).map(|forwarding| &**forwarding)
    }

    /// Refuses a view that breaks an invariant.
    ///
    /// # Errors
    /// `Corrupt` naming the row group or the commit.
    pub(crate) fn expect_sound(&self) -> Result<()> {
        let rises = |pair: &[u64]| matches!(pair, [one, next] if one < next);
        let expect_rising =
            |what: &str, numbers: &[u64]| match numbers.windows(2).find(|pair| !rises(pair)) {
                Some(pair) => Err(Error::corrupt(format!("view: {what} {pair:?}"))),
                None => Ok(()),
            };
        let ids: Vec<u64> = self.row_groups.iter().map(RowGroup::id).collect();
        let retired: Vec<u64> = self.retired.iter().map(|gone| gone.row_group).collect();
        let known = std::iter::once(self.schemas_since).filter(|since| *since > 0);
        let past: Vec<u64> = known.chain(self.past.iter().map(|past| past.until)).collect();
        expect_rising("row groups", &ids)?;
        expect_rising("retired row groups", &retired)?;
        expect_rising("schemas of commits", &past)?;
        if let Some(id) = retired.iter().find(|id| ids.binary_search(id).is_ok()) {
            return Err(Error::corrupt(format!("view: row group {id} is there and retired")));
        }
        let ends =
            |gone: &Forwarding| gone.leads_to().first().is_none_or(|to| *to > gone.row_group);
        if let Some(gone) = self.retired.iter().find(|gone| !ends(gone)) {
            let (id, to) = (gone.row_group, gone.leads_to());
            return Err(Error::corrupt(format!("view: row group {id} leads back to {to:?}")));
        }
        Ok(())
    }

    /// The segments, by rising number.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.row_groups.iter().filter_map(|row_group| match row_group {
            RowGroup::Segment(segment) => Some(segment),
            RowGroup::Group(_) => None,
        })
    }

    /// The groups, by rising number.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.row_groups.iter().filter_map(|row_group| match row_group {
            RowGroup::Group(group) => Some(group),
            RowGroup::Segment(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::DataType;

    fn schema(name: &str) -> Arc<Schema> {
        Arc::new(Schema::builder().field(name, DataType::I64).build().unwrap())
    }

    #[test]
    fn forwarding_is_found_in_whatever_order_row_groups_retire() {
        let mut view = View::empty(schema("a"));
        for row_group in [5, 2, 9, 7] {
            let target = Location::new(100 + row_group, 0).word();
            view.retire(Arc::new(Forwarding::new(row_group, vec![target], Vec::new())));
        }
        let target =
            |row_group| view.forwarding(row_group).and_then(|forwarding| forwarding.target(0));
        let row_groups: Vec<_> =
            (1..10).filter_map(|row_group| Some(target(row_group)?.row_group() - 100)).collect();
        assert_eq!(row_groups, [2, 5, 7, 9]);
    }

    #[test]
    fn unsound_views_are_refused() {
        let to = |row_group| vec![Location::new(row_group, 0).word()];
        let gone = |from, to| Arc::new(Forwarding::new(from, to, Vec::new()));
        let refused = |view: View| view.expect_sound().unwrap_err().to_string();
        let mut sound = View::empty(schema("a"));
        sound.alter(schema("b"), 5, Moment::FIRST);
        sound.retire(gone(2, to(7)));
        sound.retire(gone(4, Vec::new()));
        sound.expect_sound().unwrap();
        let mut twice = sound.clone();
        twice.retire(gone(4, to(9)));
        assert!(refused(twice).contains("retired row groups [4, 4]"));
        let mut back = sound.clone();
        back.retire(gone(6, to(3)));
        assert!(refused(back).contains("row group 6 leads back to [3]"));
        for commit in [4, 5] {
            let mut older = sound.clone();
            older.alter(schema("c"), commit, Moment::FIRST);
            assert!(refused(older).contains(&format!("schemas of commits [5, {commit}]")));
        }
        let mut forgotten = sound.clone();
        forgotten.forget_schemas(5);
        forgotten.expect_sound().unwrap();
        forgotten.alter(schema("c"), 5, Moment::FIRST);
        assert!(refused(forgotten).contains("schemas of commits [5, 5]"));
    }

    #[test]
    fn a_forgotten_schema_is_not_taken_for_a_later_one() {
        let mut view = View::empty(schema("a"));
        view.alter(schema("b"), 5, Moment::FIRST);
        view.alter(schema("c"), 9, Moment::FIRST);
        let name = |view: &View, at| view.schema_at(at).map(|s| s.fields()[0].name.clone());
        let names = |view: &View| [4, 5, 8, 9].map(|at| name(view, at).unwrap_or_default());
        assert_eq!(names(&view), ["a", "b", "b", "c"]);
        view.forget_schemas(5);
        assert_eq!(names(&view), ["", "b", "b", "c"]);
        view.forget_schemas(9);
        assert_eq!(names(&view), ["", "", "", "c"]);
        // What is forgotten stays so, when nothing more is.
        view.forget_schemas(3);
        assert_eq!(names(&view), ["", "", "", "c"]);
    }
}
