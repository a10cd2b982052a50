//! Grouping sets: several ways in which the rows of a query are grouped, of which all groups are
//! shown.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use super::display::list;
use super::{Expr, Query, SelectItem};
use crate::{Error, Result};

/// The most grouping sets of a query.
pub const GROUPING_SETS_MAX: usize = 4_096;

/// How many sets are shown of many.
const SHOWN_SETS: usize = 16;

/// One element of GROUP BY. Several are combined: each set of one with each set of the others.
///
/// ```
/// use esker_query::model::{Expr, GroupingElement, Query};
///
/// let [year, month, city] = ["year", "month", "city"].map(|name| vec![Expr::field(name)]);
/// let mut query = Query::table("sales");
/// query.select(Expr::count());
/// query.group_by_sets([GroupingElement::Set(city), GroupingElement::Rollup(vec![year, month])])?;
/// assert_eq!(
///     query.to_string(),
///     "SELECT count(*) FROM sales \
///      GROUP BY GROUPING SETS ((city, year, month), (city, year), (city))"
/// );
/// # Ok::<(), esker_query::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupingElement {
    /// What the rows of a group have in common; without any, all rows are one group.
    Set(Vec<Expr>),
    /// The sets of all elements, one after another.
    Sets(Vec<Self>),
    /// All of the lists, all but the last, and so on up to none.
    Rollup(Vec<Vec<Expr>>),
    /// Every choice of the lists.
    Cube(Vec<Vec<Expr>>),
}

impl Query {
    /// Groups by the sets of all elements, each combined with those of the others. A set that comes
    /// out twice is shown twice.
    ///
    /// # Errors
    /// `InvalidQuery` for more than [`GROUPING_SETS_MAX`] sets, with their number.
    pub fn group_by_sets(
        &mut self,
        elements: impl IntoIterator<Item = GroupingElement>,
    ) -> Result<()> {
        let (mut keys, mut all) = (Vec::new(), vec![BTreeSet::new()]);
        let mut is_plain = true;
        for element in elements {
            is_plain &= matches!(&element, GroupingElement::Set(exprs) if !exprs.is_empty());
            let sets = element.sets(&mut keys)?;
            expect_few(all.len().saturating_mul(sets.len()))?;
            let with_each = |one: &BTreeSet<usize>| {
                let both = |other| one.union(other).copied().collect();
                sets.iter().map(both).collect::<Vec<BTreeSet<usize>>>()
            };
            all = all.iter().flat_map(with_each).collect();
        }
        self.group_by = keys;
        self.grouping_sets = match is_plain {
            true => Vec::new(),
            false => all.into_iter().map(|set| set.into_iter().collect()).collect(),
        };
        Ok(())
    }

    /// Whether it may have a grouping set without a key.
    pub(crate) fn may_group_by_nothing(&self) -> bool {
        !self.grouping_sets.is_empty() || self.group_by.contains(&Expr::AllItems)
    }

    /// Whether ALL stands in GROUP BY or ORDER BY.
    pub(crate) fn has_all_items(&self) -> bool {
        let is_all = |expr: &Expr| matches!(expr, Expr::AllItems);
        self.order_by.iter().any(|key| is_all(&key.expr)) || self.group_by.iter().any(is_all)
    }

    /// Writes out what ALL stands for in GROUP BY and ORDER BY, once `*` is written out.
    ///
    /// # Errors
    /// `InvalidQuery` for GROUP BY ALL beside a window function.
    pub(crate) fn expand_all_items(&mut self) -> Result<()> {
        let is_all = |expr: &Expr| matches!(expr, Expr::AllItems);
        if self.order_by.iter().any(|key| is_all(&key.expr)) {
            for key in std::mem::take(&mut self.order_by) {
                if !is_all(&key.expr) {
                    self.order_by.push(key);
                    continue;
                }
                let each = (1..=self.select.len()).map(Expr::Item);
                self.order_by.extend(each.map(|expr| super::OrderBy { expr, ..key.clone() }));
            }
        }
        if !self.group_by.iter().any(is_all) {
            return Ok(());
        }
        if let Some(item) = self.select.iter().find(|item| item.expr.has_window()) {
            let item = &item.expr;
            return Err(Error::invalid(format!(
                "GROUP BY ALL: {item} is a window function, by which there are no groups"
            )));
        }
        let mut keys = Vec::new();
        for key in std::mem::take(&mut self.group_by) {
            match is_all(&key) {
                false => keys.push(key),
                true => {
                    let items = (1..).zip(&self.select).filter(|(_, item)| is_key(item));
                    keys.extend(items.map(|(place, _)| Expr::Item(place)));
                }
            }
        }
        self.group_by = keys;
        Ok(())
    }
}

/// Whether GROUP BY ALL groups by it: constants have one value without.
fn is_key(item: &SelectItem) -> bool {
    let mut names = Vec::new();
    item.expr.collect_names(&mut names);
    !item.expr.has_aggregate() && (!names.is_empty() || item.expr.has_subquery())
}

fn expect_few(sets: usize) -> Result<()> {
    match sets {
        0..=GROUPING_SETS_MAX => Ok(()),
        _ => Err(Error::invalid(format!(
            "GROUP BY: {sets} grouping sets, at most {GROUPING_SETS_MAX}"
        ))),
    }
}

impl GroupingElement {
    /// Its sets, each of the places of its keys.
    fn sets(self, keys: &mut Vec<Expr>) -> Result<Vec<BTreeSet<usize>>> {
        let mut set = |exprs: Vec<Expr>| -> BTreeSet<usize> {
            let place = |expr: Expr| {
                keys.iter().position(|key| *key == expr).unwrap_or_else(|| {
                    keys.push(expr);
                    keys.len() - 1
                })
            };
            exprs.into_iter().map(place).collect()
        };
        match self {
            Self::Set(exprs) => Ok(vec![set(exprs)]),
            Self::Sets(elements) => {
                let mut sets = Vec::new();
                for element in elements {
                    sets.extend(element.sets(keys)?);
                    expect_few(sets.len())?;
                }
                Ok(sets)
            }
            Self::Rollup(lists) => {
                expect_few(lists.len() + 1)?;
                let lists: Vec<_> = lists.into_iter().map(set).collect();
                let first = |count: usize| lists.iter().take(count).flatten().copied().collect();
                Ok((0..=lists.len()).rev().map(first).collect())
            }
            Self::Cube(lists) => {
                let lists: Vec<_> = lists.into_iter().map(set).collect();
                let count =
                    u32::try_from(lists.len()).ok().and_then(|bits| 1usize.checked_shl(bits));
                let count = count.unwrap_or(usize::MAX);
                expect_few(count)?;
                let last = lists.len().saturating_sub(1);
                let chosen = |left_out: usize| {
                    let is_in = |at: &usize| left_out >> (last - at) & 1 == 0;
                    let lists = lists.iter().enumerate().filter(|(at, _)| is_in(at));
                    lists.flat_map(|(_, list)| list).copied().collect()
                };
                Ok((0..count).map(chosen).collect())
            }
        }
    }
}

/// What a query groups by, as its keys are to be read.
pub(crate) struct Groups<'q> {
    pub(crate) keys: Vec<String>,
    pub(crate) sets: &'q [Vec<usize>],
    /// Whether all sets are shown, however many there are.
    pub(crate) is_whole: bool,
}

impl Display for Groups<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.sets.is_empty() {
            return list(f, &self.keys);
        }
        let shown = if self.is_whole { self.sets.len() } else { SHOWN_SETS };
        f.write_str("GROUPING SETS (")?;
        for (i, set) in self.sets.iter().take(shown).enumerate() {
            f.write_str(if i > 0 { ", (" } else { "(" })?;
            let keys: Vec<_> = set.iter().filter_map(|key| self.keys.get(*key)).collect();
            list(f, &keys)?;
            f.write_str(")")?;
        }
        match self.sets.len() > shown {
            true => write!(f, ", … ({} sets))", self.sets.len()),
            false => f.write_str(")"),
        }
    }
}
