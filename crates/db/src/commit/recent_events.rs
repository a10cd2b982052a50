//! Which events of a stream have which values of the field of `dedupe`, as far as that was asked.
//!
//! ```text
//! time ──────┼─────────┼─────────┼─────────┼──►   spans, as long as the time of `dedupe`
//!            │ known   │ known   │ not     │
//!               ▲ hash of a value ─► row ids      an event is the same as one of its span,
//!                                                 or of the spans before and behind it
//! ```
//!
//! All of it follows from the rows: a span is read from the table when an event comes that lies in
//! it or beside it, also after the database was opened. What it names may be gone or changed, so
//! the row is looked at.
//!
//! Many rows of one value would make a chain that each look-up walks: beyond some, the value is
//! crowded, and looked for in the table.
//!
//! Invariant: a span that is known names each row of it up to `through`, but for crowded values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_arena::{Arena, Category, Reservation};
use esker_format::schema::Dedupe;

/// Spans that are kept beside those that are asked for.
const SPARE_SPANS: usize = 4;
/// The share of the memory limit that they may take.
const MEMORY_SHARE: u64 = 4;
/// Rows of a span with one value, beyond which it is crowded.
const CROWD: usize = 32;
const SLOT_BYTES: u64 = size_of::<Slot>() as u64;

/// The values that came lately: see the module.
#[derive(Default)]
pub(crate) struct RecentEvents {
    /// By which version of the schema: an alteration may change values.
    rule: Option<(Dedupe, u32)>,
    /// All events up to this row id are known of each span; `None`: no span is known.
    pub through: Option<u64>,
    spans: BTreeMap<i64, Span>,
    uses: u64,
    counted: Option<Reservation>,
}

#[derive(Default)]
struct Span {
    rows: RowsByHash,
    crowded: BTreeSet<u64>,
    used: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u64,
    /// 0: the slot is free.
    row_id: u64,
}

/// Row ids by the hash of a value: open addressing, two thirds full at most.
#[derive(Default)]
struct RowsByHash {
    slots: Vec<Slot>,
    count: usize,
}

impl RowsByHash {
    /// The places of a hash, from its own on.
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let count = self.slots.len();
        let mask = count.wrapping_sub(1);
        // The bits of a hash that say which partition an index has are not used again.
        let place = hash.rotate_left(32) & mask as u64;
        let first = usize::try_from(place).unwrap_or(0); // default: a place in memory is a usize
        (0..count).map(move |step| first.wrapping_add(step) & mask)
    }

    /// Notes a row; false where there are many of its hash.
    fn insert(&mut self, hash: u64, row_id: u64) -> bool {
        if (self.count + 1) * 3 > self.slots.len() * 2 {
            let larger = vec![Slot::default(); (self.slots.len() * 2).max(64)];
            let before = std::mem::replace(&mut self.slots, larger);
            self.count = 0;
            let taken = before.into_iter().filter(|slot| slot.row_id != 0);
            taken.for_each(|slot| _ = self.place(slot));
        }
        self.place(Slot { hash, row_id })
    }

    fn place(&mut self, new: Slot) -> bool {
        let mut same = 0;
        for place in self.places(new.hash) {
            let Some(slot) = self.slots.get_mut(place) else { return true };
            if slot.row_id == 0 {
                *slot = new;
                self.count += 1;
                return true;
            }
            if (slot.hash, slot.row_id) == (new.hash, new.row_id) {
                return true;
            }
            same += usize::from(slot.hash == new.hash);
            if same >= CROWD {
                return false;
            }
        }
        true
    }

    fn find(&self, hash: u64) -> impl Iterator<Item = u64> {
        let slots = self.places(hash).filter_map(|place| self.slots.get(place));
        let taken = slots.take_while(|slot| slot.row_id != 0);
        taken.filter(move |slot| slot.hash == hash).map(|slot| slot.row_id)
    }
}

impl RecentEvents {
    /// The number of the span that a time lies in.
    pub fn span_of(rule: Dedupe, time_us: i64) -> i64 {
        // default: a span longer than all times
        time_us.div_euclid(i64::try_from(rule.within_us).unwrap_or(i64::MAX))
    }

    /// Begins to be asked: forgets all where it was about something else, or another version of the
    /// schema.
    pub fn begin(&mut self, rule: Dedupe, version: u32) {
        if self.rule != Some((rule, version)) {
            self.forget();
            self.rule = Some((rule, version));
        }
        self.uses += 1;
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        self.spans.clear();
        self.through = None;
        self.counted.iter_mut().for_each(|counted| counted.shrink(0));
    }

    /// Those of some spans that are not known, by their numbers.
    pub fn unknown(&mut self, wanted: &BTreeSet<i64>) -> Vec<i64> {
        let mut unknown = Vec::new();
        for number in wanted {
            match self.spans.get_mut(number) {
                Some(span) => span.used = self.uses,
                None => unknown.push(*number),
            }
        }
        unknown
    }

    /// From here on a span is known: its rows follow.
    pub fn add_span(&mut self, number: i64) {
        self.spans.insert(number, Span { used: self.uses, ..Span::default() });
    }

    /// Whether no span is known.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Notes a row, if its span is known.
    pub fn add(&mut self, number: i64, hash: u64, row_id: u64) {
        if let Some(span) = self.spans.get_mut(&number)
            && !span.rows.insert(hash, row_id)
        {
            span.crowded.insert(hash);
        }
    }

    /// Whether there are too many rows of a hash, in a span or one beside it, to name them.
    pub fn is_crowded(&self, number: i64, hash: u64) -> bool {
        let beside = number.saturating_sub(1)..=number.saturating_add(1);
        self.spans.range(beside).any(|(_, span)| span.crowded.contains(&hash))
    }

    /// The rows whose values may have a hash, in a span and those beside it.
    pub fn find(&self, number: i64, hash: u64) -> impl Iterator<Item = u64> {
        let beside = number.saturating_sub(1)..=number.saturating_add(1);
        self.spans.range(beside).flat_map(move |(_, span)| span.rows.find(hash))
    }

    /// Counts what it takes, without spans that were not asked for lately; false, and nothing is
    /// known any more, where that is more than it may have, or than leaves others what they need.
    pub fn count(&mut self, arena: &Arc<Arena>, used_max: u64) -> bool {
        let mut spare: Vec<(u64, i64)> = self
            .spans
            .iter()
            .filter(|(_, span)| span.used < self.uses)
            .map(|(number, span)| (span.used, *number))
            .collect();
        spare.sort_unstable();
        let most = Self::most(arena);
        let mut kept = spare.len();
        for (_, number) in spare {
            if kept <= SPARE_SPANS && self.byte_count() <= most {
                break;
            }
            self.spans.remove(&number);
            kept -= 1;
        }
        let bytes = self.byte_count();
        let new = || Reservation::new(arena, Category::Other);
        let counted = self.counted.get_or_insert_with(new);
        counted.shrink(bytes);
        let is_granted = bytes <= most && counted.grow(bytes, u64::MAX, used_max);
        if !is_granted {
            self.forget();
        }
        is_granted
    }

    /// The bytes that it may take.
    pub fn most(arena: &Arena) -> u64 {
        arena.limit_bytes() / MEMORY_SHARE
    }

    /// The bytes that it takes.
    pub fn byte_count(&self) -> u64 {
        self.spans.values().map(|span| span.rows.slots.len() as u64 * SLOT_BYTES).sum()
    }
}

#[cfg(test)]
mod tests {
    use esker_arena::ArenaOptions;
    use esker_format::FieldId;

    use super::*;

    const RULE: Dedupe = Dedupe { field: FieldId(1), within_us: 10 };

    #[test]
    fn rows_are_found_in_their_span_and_beside_it() {
        let mut recent = RecentEvents::default();
        recent.begin(RULE, 1);
        assert_eq!(recent.unknown(&BTreeSet::from([-1, 0, 1])), [-1, 0, 1]);
        (-1..=1).for_each(|number| recent.add_span(number));
        for row_id in 1..=1_000 {
            recent.add(i64::try_from(row_id % 4).unwrap() - 1, row_id % 500, row_id);
        }
        recent.add(0, 1, 1);
        let found = |number| recent.find(number, 1).collect::<BTreeSet<_>>();
        assert_eq!((found(0), found(1)), ([1, 501].into(), [1, 501].into()));
        assert!(found(-2).is_empty() && found(3).is_empty());
        assert_eq!(RecentEvents::span_of(RULE, -1), -1);
        recent.begin(Dedupe { within_us: 11, ..RULE }, 1);
        assert!(recent.is_empty(), "another time makes other spans");
        recent.add_span(0);
        (1..=1_000).for_each(|row_id| recent.add(0, 7, row_id));
        assert!(recent.is_crowded(1, 7) && !recent.is_crowded(2, 7) && !recent.is_crowded(1, 8));
        assert_eq!(recent.find(0, 7).count(), CROWD);
        // A hash whose first place wraps around.
        recent.add(0, u64::MAX, 5);
        recent.add(0, u64::MAX, 6);
        assert_eq!(recent.find(0, u64::MAX).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn unused_spans_are_forgotten() {
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        let mut recent = RecentEvents::default();
        for number in 0..20 {
            recent.begin(RULE, 1);
            assert_eq!(recent.unknown(&BTreeSet::from([number])), [number]);
            recent.add_span(number);
            recent.add(number, 7, 1);
            assert!(recent.count(&arena, u64::MAX));
        }
        assert_eq!(recent.spans.len(), SPARE_SPANS + 1);
        assert_eq!(arena.used_by(Category::Other), 5 * 64 * SLOT_BYTES);
        recent.forget();
        assert_eq!(arena.used_by(Category::Other), 0);
    }
}
