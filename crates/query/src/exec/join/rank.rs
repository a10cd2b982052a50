//! The order of rows, where tables are joined in another order than they are written.
//!
//! ```text
//! written a, b, c; joined (a ⋈ c) ⋈ b
//! a ⋈ c     rows, and beside each the ranks of its row of a and of its row of c
//! … ⋈ b     ranks of a, c and b: pairs are sorted by those of a, then of b, then of c
//! ```
//!
//! The rank of a row is its place among those of its table that have a match, so that ranks are in
//! the order of the rows, and joining them as they are written gives the pairs in this order. So an
//! answer, which of equal rows come first, and the last digits of a sum do not depend on the plan.

use std::cmp::Ordering;

use super::pairs::{Half, Pairs};
use crate::budget::Charge;
use crate::{Options, Result};

/// The rows of tables that the rows of a side are made of.
#[derive(Clone, Debug)]
pub(crate) enum Ranks {
    /// Those of one table, by its number as it is written, in their order.
    Table(usize),
    /// Tables by their numbers, each with the rank of its row for every row of the side.
    Joined(Vec<(usize, Vec<u32>)>),
}

/// What becomes of the order of the rows of a join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairOrder<'r> {
    pub(crate) left: &'r Ranks,
    pub(crate) right: &'r Ranks,
    /// Whether it is put back; else it is noted.
    pub(crate) is_restored: bool,
}

impl PairOrder<'_> {
    /// The ranks of pairs, and what they take of the budget; or the pairs put in order.
    ///
    /// # Errors
    /// `OverBudget`, and when the query is to end.
    pub(super) fn apply<'b>(
        &self,
        pairs: &mut Pairs<'_>,
        options: &'b Options,
    ) -> Result<(Ranks, Charge<'b>)> {
        let tables = self.left.table_count() + self.right.table_count();
        let mut charge = options.memory().charge();
        charge.set(pairs.len().saturating_mul(4 * tables))?;
        let mut columns = self.left.of(&pairs.left);
        columns.append(&mut self.right.of(&pairs.right));
        if !self.is_restored {
            return Ok((Ranks::Joined(columns), charge));
        }
        columns.sort_unstable_by_key(|(table, _)| *table);
        // The keys and the numbers of pairs, and the numbers of both halves moved.
        charge.set(pairs.len().saturating_mul(4 * tables + 24))?;
        options.expect_time_left()?;
        let order = order(&columns, pairs.len());
        options.expect_time_left()?;
        pairs.left.permute(&order);
        pairs.right.permute(&order);
        charge.set(0)?;
        Ok((Ranks::Joined(Vec::new()), charge))
    }
}

impl Ranks {
    fn table_count(&self) -> usize {
        match self {
            Self::Table(_) => 1,
            Self::Joined(columns) => columns.len(),
        }
    }

    /// For each pair, the ranks of its rows of this side.
    fn of(&self, half: &Half) -> Vec<(usize, Vec<u32>)> {
        match self {
            Self::Table(number) => vec![(*number, half.numbers.clone())],
            Self::Joined(columns) => {
                let row = |number: &u32| half.locations.get(*number as usize).map(|at| at.row);
                let rank = |ranks: &[u32], number: &u32| {
                    // default: a pair's row is a row of its side
                    row(number).and_then(|row| ranks.get(row as usize)).copied().unwrap_or_default()
                };
                let of_table = |(table, ranks): &(usize, Vec<u32>)| {
                    (*table, half.numbers.iter().map(|number| rank(ranks, number)).collect())
                };
                columns.iter().map(of_table).collect()
            }
        }
    }
}

/// The numbers of rows in the order of columns, of which each row has other values.
fn order(columns: &[(usize, Vec<u32>)], rows: usize) -> Vec<u32> {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let width =
        |column: &Vec<u32>| 32 - column.iter().max().map_or(32, |most| most.leading_zeros());
    let widths: Vec<u32> = columns.iter().map(|(_, column)| width(column)).collect();
    if widths.iter().sum::<u32>() <= 64 {
        let key = |row: u32| {
            let mut key = 0u64;
            for ((_, column), width) in columns.iter().zip(&widths) {
                let rank = column.get(row as usize).copied().unwrap_or_default();
                key = key.checked_shl(*width).unwrap_or_default() | u64::from(rank);
            }
            (key, row)
        };
        let mut keyed: Vec<(u64, u32)> = (0..rows).map(key).collect();
        keyed.sort_unstable();
        return keyed.into_iter().map(|(_, row)| row).collect();
    }
    let mut order: Vec<u32> = (0..rows).collect();
    order.sort_unstable_by(|a, b| {
        let rank = |column: &Vec<u32>, row: u32| column.get(row as usize).copied();
        let mut by = columns.iter().map(|(_, column)| rank(column, *a).cmp(&rank(column, *b)));
        // default: equal in all columns
        by.find(|by| by.is_ne()).unwrap_or(Ordering::Equal)
    });
    order
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn rows_are_ordered_by_the_first_column_and_then_by_the_next() {
        let few = [(0, vec![2, 0, 2, 1]), (3, vec![1, 5, 0, 5])];
        assert_eq!(order(&few, 4), [1, 3, 2, 0]);
        // Too wide for one word.
        let wide = |low: [u32; 4]| low.map(|rank| rank + (1 << 30)).to_vec();
        let many = [(0, wide([2, 0, 2, 2])), (1, wide([1, 0, 1, 0])), (2, wide([1, 0, 0, 0]))];
        assert_eq!(order(&many, 4), [1, 3, 2, 0]);
    }
}
