//! What an OR of conditions says of parts of what is joined.
//!
//! ```text
//! (l.k = r.k AND l.x = 1) OR (l.k = r.k AND l.x = 2)
//!      in common     l.k = r.k AND (l.x = 1 OR l.x = 2)
//!      implied       l.x = 1 OR l.x = 2, of l alone
//! ```
//!
//! Both hold in three-valued logic: AND distributes over OR there, too, and an OR is true only
//! where one of its branches is. What may fail is never moved. A branch tests what cannot fail
//! first, so that rows which an implied condition leaves out would not have reached the rest of any
//! branch.

use esker_format::Schema;
use esker_vfs::sabotage::Bug;

use super::condition::{self, Condition};
use super::names::Names;
use crate::model::{Expr, Operator};
use crate::{Inputs, Result};

/// With more branches, what is implied costs more to test than it saves.
const BRANCHES_MAX: usize = 64;

/// What conditions are bound with.
#[derive(Clone, Copy)]
pub(super) struct Binding<'b> {
    pub(super) clause: &'b str,
    pub(super) schema: &'b Schema,
    pub(super) names: &'b Names,
    pub(super) inputs: &'b Inputs,
    /// False where conditions are left as they are written.
    pub(super) rewrites: bool,
}

impl Binding<'_> {
    pub(super) fn bind(&self, expr: Expr) -> Result<Condition> {
        Condition::new(self.clause, expr, self.schema, self.names, self.inputs)
    }
}

/// A condition as those that it amounts to: what all branches of an OR have in common, and what is
/// left of it.
///
/// # Errors
/// As [`Condition::new`].
pub(super) fn factored(expr: Expr, binding: Binding<'_>) -> Result<Vec<Condition>> {
    let whole = binding.bind(expr)?;
    let branches = if binding.rewrites { branches(&whole.expr) } else { Vec::new() };
    let Some((first, others)) = branches.split_first() else { return Ok(vec![whole]) };
    let mut common = Vec::new();
    for expr in first {
        let is_in = |branch: &Vec<Expr>| branch.iter().any(|other| is_same(expr, other));
        if others.iter().all(is_in) || Bug::OneBranchTakenForAll.is_planted() {
            let condition = binding.bind(expr.clone())?;
            common.extend((!condition.is_fallible).then_some(condition));
        }
    }
    if common.is_empty() {
        return Ok(vec![whole]);
    }
    let mut rest = Vec::with_capacity(branches.len());
    for branch in branches {
        let is_left = |expr: &Expr| !common.iter().any(|known| is_same(expr, &known.expr));
        match condition::all(branch.into_iter().filter(is_left).collect()) {
            Some(branch) => rest.push(branch),
            // One branch asks for nothing more.
            None => return Ok(common),
        }
    }
    common.push(binding.bind(Expr::Apply(Operator::Or, rest))?);
    Ok(common)
}

/// What an OR over several tables implies of each of them alone, by the table's number.
///
/// # Errors
/// As [`Condition::new`].
pub(super) fn implied(whole: &Condition, binding: Binding<'_>) -> Result<Vec<(usize, Condition)>> {
    let is_wide = binding.rewrites && whole.members.len() > 1;
    let branches = if is_wide { branches(&whole.expr) } else { Vec::new() };
    if branches.is_empty() || branches.len() > BRANCHES_MAX {
        return Ok(Vec::new());
    }
    let mut bound = Vec::with_capacity(branches.len());
    for branch in branches {
        let parts = branch.into_iter().map(|expr| binding.bind(expr));
        bound.push(parts.collect::<Result<Vec<_>>>()?);
    }
    let mut implied = Vec::new();
    for member in &whole.members {
        let of_member = |part: &&Condition| {
            !part.is_fallible && part.members.len() == 1 && part.members.contains(member)
        };
        let of_branch = |branch: &Vec<Condition>| {
            let parts = branch.iter().filter(of_member);
            condition::all(parts.map(|part| part.expr.clone()).collect())
        };
        if let Some(each) = bound.iter().map(of_branch).collect::<Option<Vec<_>>>() {
            implied.push((*member, binding.bind(Expr::Apply(Operator::Or, each))?));
        }
    }
    Ok(implied)
}

/// The branches of an OR, each as the conditions that all have to be met; none of anything else.
fn branches(expr: &Expr) -> Vec<Vec<Expr>> {
    let Expr::Apply(Operator::Or, _) = expr else { return Vec::new() };
    let mut branches = Vec::new();
    collect(expr, &mut branches);
    branches
}

fn collect(expr: &Expr, branches: &mut Vec<Vec<Expr>>) {
    match expr {
        Expr::Apply(Operator::Or, members) => {
            members.iter().for_each(|member| collect(member, branches));
        }
        other => {
            let mut all = Vec::new();
            condition::flatten(other.clone(), &mut all);
            branches.push(all);
        }
    }
}

/// Whether two conditions say the same: an equality does whichever side comes first.
fn is_same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Apply(Operator::Eq, a), Expr::Apply(Operator::Eq, b)) => {
            a == b || (a.first() == b.last() && a.last() == b.first())
        }
        _ => a == b,
    }
}
