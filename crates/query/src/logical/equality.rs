//! Fields that joined rows have equal values of, and what follows from that.
//!
//! ```text
//! a.k = b.k AND b.k = c.k      a.k = c.k: any two of the three can be joined first
//! a.k = b.k AND a.k = 5        b.k = 5: both tables are read for 5 alone
//! ```
//!
//! Only equalities of inner joins count, between fields that compare exactly: of one type, or both
//! integers. A constant is said of fields of its own type only.

use std::collections::BTreeSet;

use esker_format::DataType;

use super::condition::Condition;
use super::factor::Binding;
use crate::Result;
use crate::bound::{Bound, Comparison, Node};
use crate::exec::join;
use crate::model::{Expr, Operator};
use crate::predicate::{Condition as Test, Predicate};

/// Fields, each in one class at most.
#[derive(Debug, Default)]
pub(super) struct Classes {
    classes: Vec<BTreeSet<usize>>,
}

impl Classes {
    /// The classes that some conditions make, all of which joined rows pass.
    pub(super) fn of<'c>(conditions: impl Iterator<Item = &'c Condition>) -> Self {
        let mut classes: Vec<BTreeSet<usize>> = Vec::new();
        for condition in conditions {
            let Some(both) = fields_of(condition) else { continue };
            let (joined, others): (Vec<_>, Vec<_>) =
                classes.into_iter().partition(|class| both.iter().any(|f| class.contains(f)));
            classes = others;
            classes.push(joined.into_iter().flatten().chain(both).collect());
        }
        Self { classes }
    }

    /// The fields of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = &BTreeSet<usize>> {
        self.classes.iter()
    }

    /// What tests of one field, `tests`, imply of others; they are not among these yet.
    ///
    /// # Errors
    /// As [`Condition::new`].
    pub(super) fn implied_tests(
        &self,
        tests: &[Condition],
        binding: Binding<'_>,
    ) -> Result<Vec<Condition>> {
        let mut implied: Vec<Condition> = Vec::new();
        for test in tests {
            let Some(from) = tested_field(test) else { continue };
            let class = self.classes.iter().find(|class| class.contains(&from));
            for to in class.into_iter().flatten().filter(|field| **field != from) {
                if type_of(*to, binding) != type_of(from, binding) {
                    continue;
                }
                let mut expr = test.expr.clone();
                expr.rename_field(&name(from, binding), &name(*to, binding));
                let condition = binding.bind(expr)?;
                let is_known =
                    tests.iter().chain(&implied).any(|other| other.bound == condition.bound);
                if !is_known {
                    implied.push(condition);
                }
            }
        }
        Ok(implied)
    }
}

/// The equality of two fields.
///
/// # Errors
/// As [`Condition::new`].
pub(super) fn of_fields(both: [usize; 2], binding: Binding<'_>) -> Result<Condition> {
    let sides = both.map(|field| Expr::Field(name(field, binding)));
    binding.bind(Expr::Apply(Operator::Eq, sides.into()))
}

/// The fields that a condition makes equal.
pub(super) fn fields_of(condition: &Condition) -> Option<[usize; 2]> {
    let Node::Compare(Comparison::Eq, a, b) = &condition.bound.node else { return None };
    let (Node::Field(left), Node::Field(right)) = (&a.node, &b.node) else { return None };
    (left != right && compares_exactly(a, b)).then_some([*left, *right])
}

/// Whether equality of what has these types is transitive, and keys tell it.
fn compares_exactly(a: &Bound, b: &Bound) -> bool {
    let (a, b) = (a.data_type(), b.data_type());
    let is_one = a == b && !matches!(a, DataType::Enum | DataType::Json);
    is_one || (a.is_integer() && b.is_integer() && join::is_exact(a, b))
}

/// The field of a comparison with constants.
fn tested_field(condition: &Condition) -> Option<usize> {
    let field = condition.fields.first().filter(|_| condition.fields.len() == 1)?;
    let Predicate::Test(test) = Predicate::compile(Some(&condition.bound)) else { return None };
    let compares = match test.condition {
        Test::Range { negated, .. }
        | Test::Set { negated, .. }
        | Test::TextRange { negated, .. }
        | Test::TextSet { negated, .. } => !negated,
        _ => false,
    };
    (compares && !condition.is_fallible).then_some(*field)
}

fn name(field: usize, binding: Binding<'_>) -> String {
    // default: every field of a class has a name
    binding.names.field(field).map(|field| field.name).unwrap_or_default()
}

fn type_of(field: usize, binding: Binding<'_>) -> Option<DataType> {
    binding.names.field(field).map(|field| field.data_type)
}
