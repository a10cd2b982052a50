//! Patterns on texts that lie one after another: a part is searched for in all of them at once, and
//! what is found is given to the row it lies in.
//!
//! ```text
//! texts     alice.smith0bob.jones1carol.brown2…
//! offsets   0           12        22
//! "jones"                   ^ at 16: row 1; the search goes on at 22
//! ```
//!
//! Of a regular expression, or a LIKE pattern of several pieces, the longest part is searched for
//! that every text has that matches, and the rows that have it are tried one by one.
//!
//! What reaches over the end of a row is no match; the search goes on one byte further. Without
//! regard to case, texts are folded some rows at a time into a buffer that stays in the cache; that
//! keeps every place only in ASCII, and rows with other characters are tried one by one.

use esker_format::{BytesReader, ColumnSlice, Data, Dictionary};
use memchr::memmem::Finder;

use super::suffix;
use crate::Result;
use crate::evaluate::Mask;
use crate::meter::Meter;
use crate::pattern::{Needle, Pattern, Shape};

/// Texts of more bytes are not searched all at once.
const TOGETHER_BYTES_MAX: usize = 8 << 20;

/// Rows folded at a time.
const FOLDED_ROWS: usize = 512;

/// Removes the rows that do not match, or with `negated` those that do.
///
/// # Errors
/// When the statement is to end.
pub(super) fn keep(
    column: &ColumnSlice<'_>,
    pattern: &Pattern,
    negated: bool,
    mask: &mut Mask,
    meter: &Meter<'_>,
) -> Result<()> {
    if let (Shape::Suffix(wanted), Data::Variable { offsets, start, heap }, false) =
        (pattern.shape(), column.data, pattern.is_any_case())
    {
        suffix::keep((offsets, start, heap), wanted, negated, mask);
        return Ok(());
    }
    let mut reader = BytesReader::new(column);
    let mut one_by_one = |mask: &mut Mask| {
        let mut matcher = pattern.matcher();
        mask.try_retain_rows(|row| Ok(matcher.matches_within(reader.bytes(row), meter)? != negated))
    };
    let (Some(needle), Data::Variable { offsets, start, heap }) = (pattern.needle(), column.data)
    else {
        return one_by_one(mask);
    };
    // Of few rows left, looking at those alone is cheaper.
    if mask.count() * 8 < mask.len() {
        return one_by_one(mask);
    }
    let texts = Texts { offsets, start, heap };
    // Between long ones it is seen whether the statement is to end.
    if texts.bytes().len() > TOGETHER_BYTES_MAX {
        return one_by_one(mask);
    }
    let mut found = Mask::none(mask.len());
    let wanted = |row| mask.contains(row);
    texts.matching((pattern, needle), meter, wanted, |row| found.insert(row))?;
    if negated {
        mask.and_not(&found);
    } else {
        mask.and(&found);
    }
    Ok(())
}

/// Whether the text of each code matches; `None` where no part of it can be searched for.
///
/// # Errors
/// When the statement is to end.
pub(super) fn outcomes(
    pattern: &Pattern,
    dictionary: Dictionary<'_>,
    meter: &Meter<'_>,
) -> Result<Option<Vec<bool>>> {
    let Some(needle) = pattern.needle() else { return Ok(None) };
    let mut found = vec![false; dictionary.len()];
    let all = Texts { offsets: dictionary.offsets, start: 0, heap: dictionary.heap };
    for first in (0..all.len()).step_by(FOLDED_ROWS) {
        let texts = all.rows(first, first + FOLDED_ROWS);
        meter.work(texts.bytes().len())?;
        let insert = |row: usize| {
            if let Some(found) = found.get_mut(first + row) {
                *found = true;
            }
        };
        texts.matching((pattern, needle), meter, |_| true, insert)?;
    }
    Ok(Some(found))
}

/// Texts one after another: text `i` is `heap[offsets[i] - start..offsets[i + 1] - start]`.
#[derive(Clone, Copy)]
struct Texts<'a> {
    offsets: &'a [u32],
    start: u32,
    heap: &'a [u8],
}

impl<'a> Texts<'a> {
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn rows(&self, from: usize, to: usize) -> Self {
        let to = to.min(self.len());
        Self { offsets: self.offsets.get(from..=to).unwrap_or_default(), ..*self }
    }

    /// All of them.
    fn bytes(&self) -> &'a [u8] {
        let place =
            |offset: Option<&u32>| offset.map_or(0, |o| o.wrapping_sub(self.start) as usize);
        let range = place(self.offsets.first())..place(self.offsets.last());
        self.heap.get(range).unwrap_or_default()
    }

    /// Calls `visit` with every row that matches, and may do so with others that are not wanted.
    fn matching(
        &self,
        (pattern, needle): (&Pattern, Needle<'_>),
        meter: &Meter<'_>,
        wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize),
    ) -> Result<()> {
        let Needle { finder, decides } = needle;
        let mut having = Vec::new();
        if pattern.is_any_case() {
            let mut buffer = Vec::new();
            for first in (0..self.len()).step_by(FOLDED_ROWS) {
                let rows = self.rows(first, first + FOLDED_ROWS);
                let bytes = rows.bytes();
                if bytes.is_ascii() {
                    buffer.clear();
                    buffer.extend_from_slice(bytes);
                    buffer.make_ascii_lowercase();
                    rows.search(finder, &buffer, |row| match decides {
                        true => visit(first + row),
                        false => having.push(first + row),
                    });
                } else {
                    having.extend(first..first + rows.len());
                }
            }
        } else {
            self.search(finder, self.bytes(), |row| match decides {
                true => visit(row),
                false => having.push(row),
            });
        }
        if having.is_empty() {
            return Ok(());
        }
        let mut matcher = pattern.matcher();
        for row in having.into_iter().filter(|row| wanted(*row)) {
            if matcher.matches_within(self.rows(row, row + 1).bytes(), meter)? {
                visit(row);
            }
        }
        Ok(())
    }

    /// Calls `visit` with every row that has what `finder` looks for in `bytes`, which is as long
    /// as all texts.
    fn search(&self, finder: &Finder<'_>, bytes: &[u8], mut visit: impl FnMut(usize)) {
        let Some(first) = self.offsets.first() else { return };
        let end_of =
            |row: usize| self.offsets.get(row + 1).map(|end| end.wrapping_sub(*first) as usize);
        let (mut row, mut from) = (0, 0);
        while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + found;
            row = self.row_at(row, at);
            let Some(end) = end_of(row) else { return };
            if at + finder.needle().len() <= end {
                visit(row);
                from = end;
                row += 1;
            } else {
                from = at + 1;
            }
        }
    }

    /// The row from `row` on that has byte `at`: near ones first, then by halves.
    fn row_at(&self, row: usize, at: usize) -> usize {
        let Some(first) = self.offsets.first() else { return row };
        let is_before = |end: &u32| end.wrapping_sub(*first) as usize <= at;
        let ends = self.offsets.get(row + 1..).unwrap_or_default();
        // Mostly it is the row itself.
        if !ends.first().is_some_and(is_before) {
            return row;
        }
        let mut size = 4;
        while size < ends.len() && ends.get(size).is_some_and(is_before) {
            size *= 4;
        }
        let near = ends.get(..size.min(ends.len())).unwrap_or_default();
        row + if size < ends.len() {
            near.partition_point(is_before)
        } else {
            ends.partition_point(is_before)
        }
    }
}
