//! The group of each row of a batch.

use std::borrow::Cow;
use std::cell::OnceCell;

/// The most codes of one byte.
pub(crate) const FEW: usize = 256;

/// Rows that are counted side by side.
pub(crate) const COPIES: usize = 4;

/// The groups of the selected rows.
#[derive(Clone, Debug)]
pub(crate) struct GroupIds<'a> {
    numbers: OnceCell<Vec<u32>>,
    pub(crate) few: Option<Few<'a>>,
}

/// The groups as codes of one byte: arrays of 256 then need no bounds checks.
#[derive(Clone, Debug)]
pub(crate) struct Few<'a> {
    pub(crate) codes: Cow<'a, [u8]>,
    /// The group number of each code; different codes have different groups.
    pub(crate) groups: [u32; FEW],
    /// How many rows have each code.
    pub(crate) counts: [u32; FEW],
}

impl<'a> GroupIds<'a> {
    /// `groups` is more than every number.
    #[allow(clippy::cast_possible_truncation, reason = "the numbers are below 256")]
    pub(crate) fn from_numbers(numbers: Vec<u32>, groups: usize) -> Self {
        let few = (groups <= FEW).then(|| {
            let codes: Vec<u8> = numbers.iter().map(|number| *number as u8).collect();
            let counts = histogram(&codes);
            Few { codes: codes.into(), groups: std::array::from_fn(|code| code as u32), counts }
        });
        Self { numbers: OnceCell::from(numbers), few }
    }

    /// Codes, the group number of each that occurs, and how often each does.
    pub(crate) fn from_codes(codes: Cow<'a, [u8]>, groups: [u32; FEW], counts: [u32; FEW]) -> Self {
        Self { numbers: OnceCell::new(), few: Some(Few { codes, groups, counts }) }
    }

    /// The group number of each row.
    pub(crate) fn numbers(&self) -> &[u32] {
        self.numbers.get_or_init(|| {
            let Some(few) = &self.few else { return Vec::new() };
            let number = |code: &u8| few.groups.get(usize::from(*code)).copied();
            few.codes.iter().map(|code| number(code).unwrap_or_default()).collect()
        })
    }
}

impl Few<'_> {
    /// Every code that occurs: the code, its group and how many rows have it.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        let all = self.groups.iter().zip(&self.counts).enumerate();
        all.filter(|(_, (_, count))| **count > 0)
            .map(|(code, (group, count))| (code, *group as usize, *count))
    }
}

/// How often each byte occurs. Counted in four copies: equal bytes that follow each other closely
/// would wait for the last addition to reach memory.
pub(super) fn histogram(codes: &[u8]) -> [u32; FEW] {
    let mut copies = [[0u32; FEW]; COPIES];
    let (fours, rest) = codes.as_chunks::<COPIES>();
    for four in fours {
        for (copy, code) in copies.iter_mut().zip(four) {
            if let Some(count) = copy.get_mut(usize::from(*code)) {
                *count += 1;
            }
        }
    }
    let [mut total, others @ ..] = copies;
    for code in rest {
        if let Some(count) = total.get_mut(usize::from(*code)) {
            *count += 1;
        }
    }
    for other in &others {
        total.iter_mut().zip(other).for_each(|(total, count)| *total += count);
    }
    total
}
