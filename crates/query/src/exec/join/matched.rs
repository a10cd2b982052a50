//! What is noted of the pairs of a batch that match: the pairs themselves where these are shown,
//! else one mark a row, of whichever side is the left, so that a million pairs of a semi join take
//! no more than its rows.

use super::{NONE, Side};
use crate::model::JoinKind;

/// The matches of a batch of the side that is streamed.
#[derive(Debug)]
pub(super) enum Matched {
    /// Pairs of a row of the batch and a row that was built, ascending.
    Pairs(Vec<(u32, u32)>),
    /// Whether each row of the batch has a match.
    Streamed(Vec<bool>),
    /// Whether rows that were built have one, which is noted with those of other batches.
    Built,
}

/// Bits by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(Vec<u64>);

impl Matched {
    /// Nothing yet, of a batch of `rows` rows.
    pub(super) fn new(kind: JoinKind, side: Side, rows: usize) -> Self {
        match side {
            _ if kind.shows_right() => Self::Pairs(Vec::new()),
            Side::Right => Self::Streamed(vec![false; rows]),
            Side::Left => Self::Built,
        }
    }

    /// Notes pairs, which are taken out.
    pub(super) fn add(&mut self, pairs: &mut Vec<(u32, u32)>, marks: &mut Marks) {
        match self {
            Self::Pairs(all) => all.append(pairs),
            Self::Streamed(rows) => {
                for (i, _) in pairs.drain(..) {
                    rows.get_mut(i as usize).into_iter().for_each(|mark| *mark = true);
                }
            }
            Self::Built => pairs.drain(..).for_each(|(_, row)| marks.set(row)),
        }
    }

    /// True when another match of row `i` of the batch would say nothing new.
    pub(super) fn has_row(&self, i: u32) -> bool {
        matches!(self, Self::Streamed(rows) if rows.get(i as usize) == Some(&true))
    }

    /// True when another match of a row that was built would say nothing new.
    pub(super) fn has_built(&self, row: u32, marks: &Marks) -> bool {
        matches!(self, Self::Built) && marks.has(row)
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.capacity() * 8,
            Self::Streamed(rows) => rows.capacity(),
            Self::Built => 0,
        }
    }

    /// Calls `visit` for each row of a batch of `rows` rows, with whether it has a match, and its
    /// pairs where these are shown.
    pub(super) fn for_each(&self, rows: u32, mut visit: impl FnMut(u32, bool, &[(u32, u32)])) {
        match self {
            Self::Pairs(pairs) => {
                let mut rest = pairs.as_slice();
                for i in 0..rows {
                    let count = rest.iter().take_while(|(row, _)| *row == i).count();
                    let (own, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                    rest = later;
                    match own {
                        [] => visit(i, false, &[(i, NONE)]),
                        own => visit(i, true, own),
                    }
                }
            }
            Self::Streamed(marks) => {
                (0..rows).zip(marks).for_each(|(i, has_match)| visit(i, *has_match, &[]));
            }
            Self::Built => {}
        }
    }
}

impl Marks {
    /// For so many rows, none of them marked.
    pub(super) fn new(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(64)])
    }

    pub(super) fn set(&mut self, row: u32) {
        let word = self.0.get_mut(row as usize / 64);
        word.into_iter().for_each(|word| *word |= 1 << (row % 64));
    }

    pub(super) fn has(&self, row: u32) -> bool {
        self.0.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Adds the rows that others have.
    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, more)| *all |= more);
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * 8
    }
}
