//! Where the parts of rows of two begin and end, in lines of a cache line each.
//!
//! ```text
//!   line      base: u32 │ end 0 │ end 1 │ end 2 │ … │ end 29            u16 each, from the base
//!                         key 0 │ val 0 │ key 1 │ … │ value 14
//! ```
//!
//! A part begins where the one before it ends, the first of a line at its base. So a row takes four
//! bytes and a quarter, instead of eight for two offsets of 32 bits, and one line is read for it.

/// Rows whose parts are in one line.
pub const LINE_ROWS: usize = 15;
/// Bytes of a line.
pub const LINE_BYTES: usize = size_of::<Line>();

/// Base and ends of the parts of [`LINE_ROWS`] rows.
pub type Line = [u16; 32];

/// Makes lines of the lengths of parts, two a row. `None` when the parts of some line have more
/// bytes than it can tell, or all of them 4 GiB.
#[must_use]
pub fn lines_of(lengths: impl Iterator<Item = usize>) -> Option<Vec<u16>> {
    let (mut lines, mut base, mut end) = (Vec::new(), 0u32, 0usize);
    for (part, len) in lengths.enumerate() {
        if part.is_multiple_of(2 * LINE_ROWS) {
            base = base.checked_add(u32::try_from(end).ok()?)?;
            let [a, b, c, d] = base.to_le_bytes();
            lines.extend([u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]);
            end = 0;
        }
        end += len;
        lines.push(u16::try_from(end).ok()?);
    }
    let all = lines.len().next_multiple_of(size_of::<Line>() / size_of::<u16>());
    // default: without rows there is no line to fill up.
    lines.resize(all, lines.last().copied().unwrap_or_default());
    Some(lines)
}

/// Where a part of a line begins and ends in the heap.
#[inline]
#[must_use]
pub fn place_in(line: &Line, part: usize) -> Option<(u32, u32)> {
    let [low, high, ends @ ..] = line;
    let base = u32::from(*low) | u32::from(*high) << 16;
    let start = match part.checked_sub(1) {
        None => 0,
        Some(before) => *ends.get(before)?,
    };
    let at = |distance: u16| base.wrapping_add(distance.into());
    Some((at(start), at(*ends.get(part)?)))
}

/// One part each of consecutive rows.
#[derive(Clone, Copy, Debug)]
pub struct PartLines<'a> {
    lines: &'a [Line],
    /// The first row, in the first line.
    first: usize,
    part: usize,
}

impl<'a> PartLines<'a> {
    /// Parts number `part`, 0 or 1, of rows from number `first` of the first line on.
    #[must_use]
    pub fn new(lines: &'a [Line], first: usize, part: usize) -> Self {
        Self { lines, first, part }
    }

    /// Where the part of row `i` begins and ends in the heap; `None` past the end.
    #[inline]
    #[must_use]
    pub fn place(&self, i: usize) -> Option<(u32, u32)> {
        let row = self.first + i;
        place_in(self.lines.get(row / LINE_ROWS)?, 2 * (row % LINE_ROWS) + self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES, LINE_ROWS, Line, PartLines, lines_of};

    #[test]
    fn parts_are_where_they_were_put() {
        let lengths = |rows: usize| (0..2 * rows).map(|part| part * 7_919 % 2_000);
        for rows in [0, 1, LINE_ROWS, LINE_ROWS + 1, 100] {
            let lines = lines_of(lengths(rows)).unwrap();
            let lines: &[Line] = bytemuck::cast_slice(&lines);
            assert_eq!(size_of_val(lines), rows.div_ceil(LINE_ROWS) * LINE_BYTES);
            let (mut end, mut places) = (0, Vec::new());
            for len in lengths(rows) {
                places.push((end, end + u32::try_from(len).unwrap()));
                end += u32::try_from(len).unwrap();
            }
            for (first, part) in [(0, 0), (0, 1), (7, 0), (7, 1)] {
                let of = PartLines::new(lines, first, part);
                for row in first..rows {
                    assert_eq!(of.place(row - first), Some(places[2 * row + part]), "{row}");
                }
                assert_eq!(of.place(1_000), None);
            }
        }
    }

    #[test]
    fn lines_of_more_than_they_can_tell_are_none() {
        let full = [1_500; 43].into_iter().chain([1_035; 1]);
        assert!(lines_of([2_184; 30].into_iter()).is_some());
        assert!(lines_of([2_185; 30].into_iter()).is_none());
        assert!(lines_of(full).is_some());
        assert!(lines_of([usize::from(u16::MAX), 1].into_iter()).is_none());
    }
}
