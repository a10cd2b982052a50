//! Walking a snapshot of a table by key, from either end.

use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::sync::Arc;

use esker_format::Room;
use esker_format::segment::ZONE_ROWS;
use esker_log::sabotage::Bug;

use super::KeyForm;
use super::form::bytes_of;
use super::samples::SAMPLED_ROWS;
use super::sorted_rows::SortedRun;
use crate::Result;
use crate::table::{SnapshotPart, TableSnapshot};
use crate::view::RowGroup;

/// Rows whose keys are touched together.
const TOUCHED_ROWS_MAX: usize = 2 * SAMPLED_ROWS;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key up.
    Up,
    /// From the greatest key down.
    Down,
}

/// A range of keys, as bytes of the table's [`KeyForm`].
pub type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Gives the visible rows of a snapshot by key. Each source is a sorted sequence of rows of one
/// row group; the one whose head comes next is the last of `sources`.
pub struct KeyCursor {
    form: Arc<KeyForm>,
    direction: Direction,
    sources: Vec<Source>,
}

/// Where a row lies.
#[derive(Clone)]
pub struct KeyRow {
    /// The part of the snapshot.
    pub part: Arc<SnapshotPart>,
    /// Its number in the row group.
    pub row: usize,
}

/// The rest of the rows of one row group, or of one of its runs.
struct Source {
    part: Arc<SnapshotPart>,
    /// `None` where the rows lie in the order of the key.
    run: Option<Arc<SortedRun>>,
    rest: Range<usize>,
    /// The key of the next row, while there are several sources.
    head: Vec<u8>,
    /// The head is not greater than that key, and it has not been read: of a segment of later keys
    /// that the walk may never come to.
    is_bound: bool,
}

impl KeyCursor {
    /// The rows whose keys lie within bounds.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn new(
        snapshot: &TableSnapshot,
        form: &Arc<KeyForm>,
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> Result<Self> {
        let mut sources = Vec::new();
        for part in snapshot.parts() {
            let row_group = part.row_group();
            let runs = match row_group {
                RowGroup::Segment(segment) if segment.is_sorted() => vec![None],
                RowGroup::Segment(segment) => {
                    let runs = segment.by_key.cover(row_group, form, part.row_count())?;
                    runs.into_iter().map(Some).collect()
                }
                RowGroup::Group(group) => {
                    let runs = group.by_key.cover(row_group, form, part.row_count())?;
                    runs.into_iter().map(Some).collect()
                }
            };
            for run in runs {
                // default: without a run the rows themselves lie in the order of the key
                let len = run.as_ref().map_or(part.row_count(), |run| run.rows.len());
                let (part, head) = (Arc::clone(part), Vec::new());
                let mut source = Source { part, run, rest: 0..len, head, is_bound: false };
                source.narrow(form, bounds)?;
                if !source.rest.is_empty() {
                    sources.push(source);
                }
            }
        }
        let mut cursor = Self { form: Arc::clone(form), direction, sources };
        if cursor.sources.len() > 1 {
            for source in &mut cursor.sources {
                source.guess_head(form, direction)?;
            }
            cursor.sort();
        }
        Ok(cursor)
    }

    /// How many sorted sequences it takes its rows from.
    #[must_use]
    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    fn sort(&mut self) {
        let direction = self.direction;
        self.sources.sort_by(|a, b| match direction {
            Direction::Up => b.head.cmp(&a.head),
            Direction::Down => a.head.cmp(&b.head),
        });
    }

    /// The next visible row.
    #[allow(clippy::should_implement_trait, reason = "it may fail")]
    pub fn next(&mut self) -> Result<Option<KeyRow>> {
        loop {
            let several = self.sources.len() > 1;
            let Some(source) = self.sources.last_mut() else { return Ok(None) };
            if several && source.is_bound {
                self.settle()?;
                continue;
            }
            let row = source.take(self.direction)?;
            let row = row.filter(|row| *row < source.part.row_count());
            let row = row.filter(|row| source.part.is_visible(*row));
            let found = row.map(|row| KeyRow { part: Arc::clone(&source.part), row });
            self.settle()?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Brings the source whose head is next to the end again, after a row of the last was taken.
    fn settle(&mut self) -> Result<()> {
        if let [only] = self.sources.as_slice()
            && !only.rest.is_empty()
        {
            return Ok(());
        }
        let Some(mut last) = self.sources.pop() else { return Ok(()) };
        if last.rest.is_empty() {
            return Ok(());
        }
        last.read_head(&self.form, self.direction)?;
        let direction = self.direction;
        let comes_later = |other: &Source| match direction {
            Direction::Up => other.head > last.head,
            Direction::Down => other.head < last.head,
        };
        let mut at = self.sources.len();
        let unsorted = Bug::OverlayOrderWrong.is_planted();
        while at > 0
            && !unsorted
            && self.sources.get(at - 1).is_some_and(|other| !comes_later(other))
        {
            at -= 1;
        }
        self.sources.insert(at, last);
        Ok(())
    }
}

impl Source {
    #[inline]
    fn row(&self, at: usize) -> Result<usize> {
        match &self.run {
            None => Ok(at),
            Some(run) => run.row(self.part.row_group(), at),
        }
    }

    fn take(&mut self, direction: Direction) -> Result<Option<usize>> {
        let at = match direction {
            Direction::Up => self.rest.next(),
            Direction::Down => self.rest.next_back(),
        };
        at.map(|at| self.row(at)).transpose()
    }

    /// The least key as the zone map knows it, where the walk begins with the first row.
    fn guess_head(&mut self, form: &KeyForm, direction: Direction) -> Result<()> {
        let begins = self.rest.start == 0 && self.run.is_none() && direction == Direction::Up;
        match (begins, self.part.row_group(), form.plain_field()) {
            (true, RowGroup::Segment(segment), Some(field)) => {
                let least = segment.zone(field, 0).and_then(|(least, _, _)| least.as_bytes());
                let Some(least) = least else { return self.read_head(form, direction) };
                self.head.extend_from_slice(least);
                self.is_bound = true;
                Ok(())
            }
            _ => self.read_head(form, direction),
        }
    }

    fn read_head(&mut self, form: &KeyForm, direction: Direction) -> Result<()> {
        let at = match direction {
            Direction::Up => self.rest.start,
            Direction::Down => self.rest.end.saturating_sub(1),
        };
        self.is_bound = false;
        form.read(self.part.row_group(), self.row(at)?, &mut self.head)
    }

    fn narrow(&mut self, form: &KeyForm, (least, greatest): KeyBounds<'_>) -> Result<()> {
        let start = match least {
            Bound::Unbounded => self.rest.start,
            Bound::Included(key) => self.first(form, key, false)?,
            Bound::Excluded(key) => self.first(form, key, true)?,
        };
        let end = match greatest {
            Bound::Unbounded => self.rest.end,
            Bound::Included(key) => self.first(form, key, true)?,
            Bound::Excluded(key) => self.first(form, key, false)?,
        };
        self.rest = start..end.max(start);
        Ok(())
    }

    /// The first row whose key is `key` or later, or (`beyond`) later.
    fn first(&self, form: &KeyForm, key: &[u8], beyond: bool) -> Result<usize> {
        if let Some(all) = self.lies_beside(form, key) {
            return Ok(if all.is_gt() { self.rest.start } else { self.rest.end });
        }
        let mut scratch = Vec::new();
        let near = self.near(form, key, &mut scratch)?;
        self.touch(form, near.clone());
        let (mut low, mut high) = (near.start, near.end);
        while low < high {
            let middle = low.midpoint(high);
            let row = self.row(middle)?;
            let order = form.compare(self.part.row_group(), row, key, &mut scratch)?;
            if order.is_lt() || (beyond && order.is_eq()) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        Ok(low)
    }

    /// Whether all rows come after a key, or before it, if the zone map tells: so it is of the
    /// segments of other keys. It knows the beginning of a long least key, which is not greater
    /// than the key, and nothing of a long greatest one.
    fn lies_beside(&self, form: &KeyForm, key: &[u8]) -> Option<Ordering> {
        let (None, RowGroup::Segment(segment)) = (&self.run, self.part.row_group()) else {
            return None;
        };
        let field = form.plain_field()?;
        let last = self.part.row_count().checked_sub(1)? / ZONE_ROWS;
        let (first, last) = (segment.zone(field, 0)?, segment.zone(field, last)?);
        if first.0.as_bytes()? > key {
            return Some(Ordering::Greater);
        }
        let greatest = last.1.and_then(|greatest| greatest.as_bytes())?;
        (greatest < key && self.rest.end == self.part.row_count()).then_some(Ordering::Less)
    }

    /// Brings the keys of a few rows near before they are compared one after the other.
    fn touch(&self, form: &KeyForm, near: Range<usize>) {
        let Some(field) = form.plain_field().filter(|_| near.len() <= TOUCHED_ROWS_MAX) else {
            return;
        };
        if let (None, RowGroup::Segment(segment)) = (&self.run, self.part.row_group())
            && segment.prefetch_cells(field, near.clone())
        {
            return;
        }
        let row_group = self.part.row_group();
        let first = |at| {
            let room = Room::default();
            bytes_of(row_group, field, self.row(at).ok()?, &room).ok()?.first().copied()
        };
        std::hint::black_box(near.filter_map(first).fold(0, u8::wrapping_add));
    }

    /// Where to search. In a run, where its samples say. Among the rows of a segment in the order
    /// of the key: the zone map tells which zones begin later. Its bounds of long keys are cut
    /// short, so that an earlier zone may begin later, too, which its first row tells.
    fn near(&self, form: &KeyForm, key: &[u8], scratch: &mut Vec<u8>) -> Result<Range<usize>> {
        let (row_group, whole) = (self.part.row_group(), self.rest.clone());
        if let Some(run) = &self.run {
            return Ok(run.near(key));
        }
        let (RowGroup::Segment(segment), Some(field)) = (row_group, form.plain_field()) else {
            return Ok(whole);
        };
        let Some(samples) = segment.by_key.samples(segment, form) else { return Ok(whole) };
        let mut zone = samples.zone(segment, field, key);
        let rows = zone * ZONE_ROWS..((zone + 1) * ZONE_ROWS).min(whole.end);
        let near = samples.within((row_group, form), rows.clone(), zone, key);
        if near.start > rows.start {
            return Ok(near);
        }
        let mut step = 1;
        let trusts = Bug::RangeTrustsCutKeys.is_planted();
        while zone > 0
            && !trusts
            && form.compare(row_group, zone * ZONE_ROWS, key, scratch)?.is_ge()
        {
            zone = zone.saturating_sub(step);
            step *= 2;
        }
        Ok(zone * ZONE_ROWS..near.end)
    }
}
