//! The keys of groups, and the sets of them.

use std::collections::BTreeSet;

use esker_format::{DataType, Value};

use super::expression::bind;
use super::scope::{GroupScope, RowScope, replace_aliases};
use crate::bound::{Bound, Node};
use crate::model::{Expr, GROUPING_SETS_MAX, Operator};
use crate::{Error, Query, Result};

/// The most operands of GROUPING: a bit each.
const OPERANDS_MAX: usize = 31;

/// The keys of the groups of a query, each once, and which of them each of its grouping sets has.
/// Where there are such sets, the number of the set is one more key, which is the last.
///
/// # Errors
/// `InvalidQuery` naming what is no key.
pub(super) fn bind_keys(
    query: &Query,
    mut row: RowScope<'_>,
) -> Result<(Vec<Bound>, Vec<Vec<usize>>)> {
    let (mut keys, mut places) = (Vec::new(), Vec::with_capacity(query.group_by.len()));
    for expr in &query.group_by {
        let expr = match expr {
            Expr::Item(place) => query.item("GROUP BY", *place)?.expr.clone(),
            expr => {
                replace_aliases(expr, row.schema, &query.select).map_err(|e| e.at("GROUP BY"))?
            }
        };
        if expr.has_aggregate() {
            return Err(Error::invalid(format!("GROUP BY: {expr} is an aggregate")));
        }
        let key = bind(&expr, &mut row).map_err(|e| e.at("GROUP BY"))?;
        let known = keys.iter().position(|known| *known == key);
        places.push(known.unwrap_or(keys.len()));
        if known.is_none() {
            keys.push(key);
        }
    }
    let count = query.grouping_sets.len();
    if count > GROUPING_SETS_MAX {
        return Err(Error::invalid(format!(
            "GROUP BY: {count} grouping sets, at most {GROUPING_SETS_MAX}"
        )));
    }
    let set = |set: &Vec<usize>| {
        let place = |key: &usize| {
            places.get(*key).copied().ok_or_else(|| {
                let count = places.len();
                Error::invalid(format!("a grouping set has key {key}, of {count} from 0 on"))
            })
        };
        set.iter().map(place).collect::<Result<BTreeSet<usize>>>()
    };
    let sets = query.grouping_sets.iter().map(set).collect::<Result<Vec<_>>>()?;
    let is_whole = |set: &BTreeSet<usize>| set.len() == keys.len();
    if sets.len() <= 1 && sets.iter().all(is_whole) {
        return Ok((keys, Vec::new()));
    }
    keys.push(integer(0));
    Ok((keys, sets.into_iter().map(|set| set.into_iter().collect()).collect()))
}

fn integer(value: i64) -> Bound {
    Bound::new(Node::Literal(Value::Int(value)), DataType::I64)
}

impl GroupScope<'_> {
    /// The keys, without the number of the set.
    pub(super) fn keys(&self) -> &[Bound] {
        let sets = usize::from(!self.sets.is_empty());
        self.key_exprs.get(..self.key_exprs.len().saturating_sub(sets)).unwrap_or_default()
    }

    /// Which keys a grouping set leaves out, from the number of the set.
    pub(super) fn grouping(&mut self, operands: &[Expr]) -> Result<Bound> {
        let mut keys = Vec::with_capacity(operands.len());
        for operand in operands {
            let bound = bind(operand, &mut self.row)?;
            let key = self.keys().iter().position(|key| *key == bound);
            keys.push(key.ok_or_else(|| Error::invalid(format!("{operand} is not in GROUP BY")))?);
        }
        if operands.is_empty() {
            keys.extend(0..self.keys().len());
        }
        if keys.is_empty() || keys.len() > OPERANDS_MAX {
            let count = keys.len();
            return Err(Error::invalid(format!(
                "expected 1 to {OPERANDS_MAX} keys of GROUP BY, found {count}"
            )));
        }
        let number = Bound::field(self.keys().len(), DataType::I64);
        let mut sum = integer(0);
        for (bit, key) in keys.iter().rev().enumerate() {
            let numbered = (0i64..).zip(&self.sets);
            let without = numbered.filter(|(_, set)| !set.contains(key));
            let without: Vec<_> = without.map(|(number, _)| Value::Int(number)).collect();
            if without.is_empty() {
                continue;
            }
            let is_one = Node::In(Box::new(number.clone()), without);
            let is_one = Bound::new(is_one, DataType::Bool);
            let case = Node::Case(vec![(is_one, integer(1 << bit))], Box::new(integer(0)));
            let case = Bound::new(case, DataType::I64);
            sum = match sum.as_literal() {
                Some(_) => case,
                None => {
                    let both = Node::Arithmetic(Operator::Add, Box::new(sum), Box::new(case));
                    Bound::new(both, DataType::I64)
                }
            };
        }
        Ok(sum)
    }
}
