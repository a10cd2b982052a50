//! Whether a filter lets only those rows pass for which a condition is true: then an index that has
//! the rows of that condition has all that the filter asks for.
//!
//! It errs on one side: what it does not see is no. A condition is implied by
//! * itself, as one of those that all have to be met;
//! * a narrower one on the same field: `a > 5` implies `a > 3`, `a = 7` implies `a IN (7, 8)`;
//! * anything but `IS NULL` on a field, where the condition is `IS NOT NULL`.

use esker_format::order_key::Key;
use std::ops::Bound as End;

use crate::predicate::{Condition, Predicate, Test, borrowed};

/// True when every row that passes a filter passes another one.
pub(crate) fn implies(filter: &Predicate, wanted: &Predicate) -> bool {
    match (filter, wanted) {
        (_, Predicate::Constant(true)) | (Predicate::Constant(false), _) => true,
        (_, Predicate::All(wanted)) => wanted.iter().all(|wanted| implies(filter, wanted)),
        (Predicate::Any(any), wanted) if filter != wanted => {
            any.iter().all(|filter| implies(filter, wanted))
        }
        (Predicate::All(all), wanted) => {
            // Others that may fail see rows that do not pass the one.
            let failing = all.iter().filter(|member| member.may_fail()).count();
            let mut sure = all.iter().filter(|member| failing < 2 || !member.may_fail());
            sure.any(|member| implies(member, wanted))
        }
        (filter, Predicate::Any(wanted)) if !matches!(filter, Predicate::Any(_)) => {
            wanted.iter().any(|wanted| implies(filter, wanted))
        }
        (Predicate::Test(of), Predicate::Test(wanted)) => implies_test(of, wanted),
        (filter, wanted) => filter == wanted,
    }
}

fn implies_test(of: &Test, wanted: &Test) -> bool {
    of.field == wanted.field && implies_condition(&of.condition, &wanted.condition)
}

fn implies_condition(of: &Condition, wanted: &Condition) -> bool {
    if of == wanted {
        return true;
    }
    match (of, wanted) {
        (Condition::Null { negated: false }, _) => false,
        // NULL passes no other condition.
        (_, Condition::Null { negated: true }) => true,
        (Condition::Set { keys, negated: false }, wanted) => {
            keys.iter().all(|key| wanted.matches_key(*key))
        }
        (Condition::TextSet { values, negated: false }, wanted) => {
            values.iter().all(|value| wanted.matches_text(value))
        }
        (Condition::Range { least, greatest, negated: false }, wanted) => {
            least > greatest || has_range(wanted, (*least, *greatest))
        }
        (Condition::TextRange { least, greatest, negated: false }, wanted) => {
            match (borrowed(least), borrowed(greatest)) {
                (End::Included(a), End::Included(b)) if a == b => wanted.matches_text(a),
                ends => has_texts(wanted, ends),
            }
        }
        _ => false,
    }
}

/// Whether a condition is met by every key of a range.
fn has_range(wanted: &Condition, (least, greatest): (Key, Key)) -> bool {
    match wanted {
        Condition::Range { least: from, greatest: to, negated: false } => {
            *from <= least && greatest <= *to
        }
        Condition::Range { least: from, greatest: to, negated: true } => {
            greatest < *from || least > *to
        }
        Condition::Set { keys, negated: true } => {
            !keys.iter().any(|key| (least..=greatest).contains(key))
        }
        wanted => least == greatest && wanted.matches_key(least),
    }
}

/// Whether a condition is met by every text between two ends.
fn has_texts(wanted: &Condition, (least, greatest): (End<&[u8]>, End<&[u8]>)) -> bool {
    let Condition::TextRange { least: from, greatest: to, negated: false } = wanted else {
        return false;
    };
    let starts_by = match (borrowed(from), least) {
        (End::Unbounded, _) => true,
        (End::Included(from), End::Included(least) | End::Excluded(least)) => from <= least,
        (End::Excluded(from), End::Excluded(least)) => from <= least,
        (End::Excluded(from), End::Included(least)) => from < least,
        (_, End::Unbounded) => false,
    };
    let ends_by = match (borrowed(to), greatest) {
        (End::Unbounded, _) => true,
        (End::Included(to), End::Included(greatest) | End::Excluded(greatest)) => greatest <= to,
        (End::Excluded(to), End::Excluded(greatest)) => greatest <= to,
        (End::Excluded(to), End::Included(greatest)) => greatest < to,
        (_, End::Unbounded) => false,
    };
    starts_by && ends_by
}

#[cfg(test)]
mod tests {
    use esker_format::{DataType, Schema};

    use super::*;
    use crate::bind::bind_condition;
    use crate::model::{Expr, Function, Operator};

    fn predicate(condition: &Expr) -> Predicate {
        let schema = Schema::builder().nullable("a", DataType::I64).nullable("b", DataType::I64);
        let schema = schema.nullable("t", DataType::Text).build().unwrap();
        Predicate::compile(Some(&bind_condition("WHERE", condition, &schema).unwrap()))
    }

    fn is(field: &str, operator: Operator, value: impl Into<esker_format::Value>) -> Expr {
        Expr::field(field).binary(operator, Expr::Literal(value.into()))
    }

    fn not_null(field: &str) -> Expr {
        Expr::Apply(Operator::IsNull, vec![Expr::field(field)]).negated()
    }

    #[test]
    fn narrower_conditions_imply_wider_ones() {
        use Operator::{Eq, Gt, Gte, Lt, Neq};
        let lower = |value: &str| {
            Expr::call(Function::Lower, [Expr::field("t")]).binary(Eq, Expr::literal(value))
        };
        let either = is("a", Eq, 1i64).binary(Operator::Or, is("b", Eq, 2i64));
        let cases = [
            (is("a", Gt, 5i64), is("a", Gt, 3i64), true),
            (is("a", Gt, 3i64), is("a", Gt, 5i64), false),
            (is("a", Gt, 5i64), not_null("a"), true),
            (is("a", Gt, 5i64), not_null("b"), false),
            (is("a", Eq, 5i64), is("a", Gte, 5i64), true),
            (is("a", Eq, 5i64), is("a", Neq, 5i64), false),
            (is("a", Eq, 5i64), is("a", Neq, 6i64), true),
            (is("a", Lt, 5i64), is("a", Neq, 6i64), true),
            (is("a", Gt, 5i64).and(is("b", Eq, 1i64)), is("b", Eq, 1i64), true),
            (is("b", Eq, 1i64), is("a", Gt, 5i64).and(is("b", Eq, 1i64)), false),
            (is("t", Eq, "x"), is("t", Gte, "a"), true),
            (is("t", Gt, "b"), is("t", Gt, "a"), true),
            (is("t", Gt, "a"), is("t", Gt, "b"), false),
            (is("t", Gte, "b"), is("t", Gt, "b"), false),
            (is("t", Gt, "b"), not_null("t"), true),
            (is("t", Lt, "b"), is("t", Lt, "b"), true),
            (lower("x"), lower("x"), true),
            (lower("x"), lower("y"), false),
            (is("a", Eq, 1i64), either.clone(), true),
            (either.clone(), either.clone(), true),
            (either.clone(), is("a", Eq, 1i64), false),
            (is("a", Eq, 1i64).binary(Operator::Or, is("a", Eq, 4i64)), is("a", Gt, 0i64), true),
        ];
        for (filter, wanted, expected) in cases {
            let found = implies(&predicate(&filter), &predicate(&wanted));
            assert_eq!(found, expected, "{filter} and {wanted}");
        }
        assert!(!implies(&Predicate::Constant(true), &predicate(&not_null("a"))));
        let null = Expr::Apply(Operator::IsNull, vec![Expr::field("a")]);
        assert!(!implies(&predicate(&null), &predicate(&not_null("a"))));
    }
}
