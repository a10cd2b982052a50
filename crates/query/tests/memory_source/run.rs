//! Sorted runs in memory, by comparing values: what runs on disk are held against.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::{Bound, Range};

use esker_format::order_key::key;
use esker_format::{Batch, Value, ValueRef};

use super::Layout;
use esker_query::{Entries, KeyRange, Result, SortedRun};

/// How a run of a part is laid out.
#[derive(Clone, Debug)]
pub struct RunLayout {
    /// The index's name.
    pub name: String,
    /// The fields, and whether the greatest comes first.
    pub fields: Vec<(usize, bool)>,
    /// To how many bytes text is cut; `None` for a run that is sorted exactly.
    pub cut_bytes: Option<usize>,
}

/// A run.
#[derive(Debug)]
pub(super) struct MemoryRun {
    layout: RunLayout,
    /// The row of each entry.
    rows: Vec<u32>,
    /// The values of each field, by entry.
    values: Vec<Vec<Value>>,
    visible: Option<Vec<bool>>,
}

impl MemoryRun {
    pub(super) fn new(layout: &RunLayout, batch: &Batch, of: &Layout) -> Self {
        let cut = layout.cut_bytes;
        let column = |position: usize| batch.columns.get(position);
        let value = |position: usize, row: u32| {
            column(position).map_or(ValueRef::Null, |column| column.value(row as usize))
        };
        let mut rows: Vec<u32> = (0..u32::try_from(batch.len()).unwrap_or(u32::MAX)).collect();
        rows.sort_by(|a, b| {
            let by_field = layout.fields.iter().map(|(position, descending)| {
                order(value(*position, *a), value(*position, *b), *descending, cut)
            });
            by_field.fold(Ordering::Equal, Ordering::then)
        });
        if cut.is_some() {
            // No order among what was cut alike is promised.
            rows.chunks_mut(2).for_each(|pair| {
                let differ = layout.fields.iter().any(|(position, descending)| {
                    let [a, b] = pair else { return true };
                    order(value(*position, *a), value(*position, *b), *descending, cut).is_ne()
                });
                if !differ {
                    pair.reverse();
                }
            });
        }
        let field = |(position, _): &(usize, bool)| {
            rows.iter().map(|row| value(*position, *row).to_owned()).collect()
        };
        let values = layout.fields.iter().map(field).collect();
        Self { layout: layout.clone(), rows, values, visible: of.visible.clone() }
    }
}

impl SortedRun for MemoryRun {
    fn name(&self) -> &str {
        &self.layout.name
    }

    fn fields(&self) -> &[(usize, bool)] {
        &self.layout.fields
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn is_sorted_exactly(&self) -> bool {
        self.layout.cut_bytes.is_none()
    }

    fn find(&self, within: Range<usize>, field: usize, range: &KeyRange<'_>) -> Result<Entries> {
        let values = self.values.get(field).and_then(|values| values.get(within.clone()));
        let values = values.unwrap_or_default();
        let is_descending =
            self.layout.fields.get(field).is_some_and(|(_, descending)| *descending);
        let cut = self.layout.cut_bytes;
        let place = |value: &Value| place(value.as_ref(), range, cut);
        let nulls = values.partition_point(|value| !value.is_null());
        let (start, end) = if matches!(range, KeyRange::Null) {
            (nulls, values.len())
        } else {
            let skipped = if is_descending { Place::After } else { Place::Before };
            let start = values.partition_point(|value| place(value) == skipped);
            let rest = values.get(start..nulls).unwrap_or_default();
            (start, start + rest.partition_point(|value| place(value) == Place::In))
        };
        let count = end - start;
        let found = values.get(start..start + count).unwrap_or_default();
        let exact = found.iter().all(|value| is_in(value.as_ref(), range));
        let start = within.start + start;
        Ok(Entries { range: start..start + count, exact })
    }

    fn rows(&self, entries: Range<usize>) -> Result<Cow<'_, [u32]>> {
        Ok(self.rows.get(entries).unwrap_or_default().into())
    }

    fn shown(&self, entries: Range<usize>) -> Result<Range<usize>> {
        let rows = self.rows.get(entries.clone()).unwrap_or_default();
        let is_visible =
            |row: &u32| self.visible.as_ref().is_none_or(|v| v.get(*row as usize) == Some(&true));
        let first = rows.iter().position(is_visible).map(|at| entries.start + at);
        let last = rows.iter().rposition(is_visible).map(|at| entries.start + at);
        Ok(first.unwrap_or(entries.end)..last.map_or(entries.end, |last| last + 1))
    }

    fn count_visible(&self, entries: Range<usize>) -> Result<usize> {
        let rows = self.rows.get(entries).unwrap_or_default();
        let is_visible =
            |row: &&u32| self.visible.as_ref().is_none_or(|v| v.get(**row as usize) == Some(&true));
        Ok(rows.iter().filter(is_visible).count())
    }
}

fn cut_to(bytes: &[u8], cut: Option<usize>) -> &[u8] {
    cut.and_then(|cut| bytes.get(..cut)).unwrap_or(bytes)
}

/// The order of two values in a run: NULL last, whatever the direction.
fn order(a: ValueRef<'_>, b: ValueRef<'_>, descending: bool, cut: Option<usize>) -> Ordering {
    let by_value = match (a.as_bytes(), b.as_bytes()) {
        (Some(a), Some(b)) => cut_to(a, cut).cmp(cut_to(b, cut)),
        _ if a.is_null() || b.is_null() => return a.is_null().cmp(&b.is_null()),
        _ => key(a).cmp(&key(b)),
    };
    if descending { by_value.reverse() } else { by_value }
}

/// Where a value, as a run keeps it, lies beside a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    In,
    After,
    Null,
}

fn place(value: ValueRef<'_>, range: &KeyRange<'_>, cut: Option<usize>) -> Place {
    if value.is_null() {
        return Place::Null;
    }
    let (is_before, is_after) = match range {
        KeyRange::Null | KeyRange::NotNull => (false, false),
        KeyRange::Keys(least, greatest) => (key(value) < *least, key(value) > *greatest),
        KeyRange::Bytes(least, greatest) => {
            let bytes = value.as_bytes().unwrap_or_default();
            let bytes = cut_to(bytes, cut);
            // What was cut may be any text that starts so.
            let is_cut = cut.is_some_and(|cut| bytes.len() == cut);
            let is_before = match least {
                Bound::Unbounded => false,
                Bound::Included(least) => bytes < cut_to(least, cut),
                Bound::Excluded(least) => {
                    bytes < cut_to(least, cut) || (bytes == cut_to(least, cut) && !is_cut)
                }
            };
            let is_after = match greatest {
                Bound::Unbounded => false,
                Bound::Included(greatest) => bytes > cut_to(greatest, cut),
                Bound::Excluded(greatest) => {
                    bytes > cut_to(greatest, cut) || (bytes == *greatest && !is_cut)
                }
            };
            (is_before, is_after)
        }
    };
    match (is_before, is_after) {
        (true, _) => Place::Before,
        (_, true) => Place::After,
        _ => Place::In,
    }
}

fn is_in(value: ValueRef<'_>, range: &KeyRange<'_>) -> bool {
    match range {
        KeyRange::Null => value.is_null(),
        range => place(value, range, None) == Place::In,
    }
}
