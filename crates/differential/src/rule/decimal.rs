//! Decimals with two digits behind the point, which SQLite holds as whole hundredths.

use super::{Rule, checked, rule, same};
use crate::value::Kind::{Bool, Decimal, Float, Int, Small, Text};

pub(super) fn rules() -> Vec<Rule> {
    vec![
        checked(Decimal, &[Decimal, Decimal], "({0} + {1})", "chk_add({0}, {1})"),
        checked(Decimal, &[Decimal, Decimal], "({0} - {1})", "chk_sub({0}, {1})"),
        checked(Decimal, &[Decimal, Small], "({0} * {1})", "chk_mul({0}, {1})"),
        same(Decimal, &[Decimal, Decimal], "({0} % {1})"),
        same(Decimal, &[Decimal], "(- {0})"),
        same(Decimal, &[Decimal], "abs({0})"),
        rule(
            Decimal,
            &[Decimal, Decimal],
            "CAST(({0} * {1}) AS decimal(38,2))",
            "dec_mul({0}, {1})",
        ),
        rule(Decimal, &[Decimal], "CAST(round({0}, 1) AS decimal(38,2))", "dec_round({0}, 10)"),
        rule(Decimal, &[Decimal], "CAST(round({0}) AS decimal(38,2))", "dec_round({0}, 100)"),
        rule(Decimal, &[Decimal], "CAST(floor({0}) AS decimal(38,2))", "dec_floor({0}, 100)"),
        rule(Decimal, &[Decimal], "CAST(ceil({0}) AS decimal(38,2))", "(- dec_floor(- {0}, 100))"),
        rule(Decimal, &[Int], "CAST(({0} % 1000) AS decimal(38,2))", "(({0} % 1000) * 100)"),
        rule(
            Decimal,
            &[Small, Small],
            "CAST(({0} || '.' || {1}) AS decimal(38,2))",
            "({0} * 100 + {1} * 10)",
        ),
        rule(Int, &[Decimal], "CAST({0} AS i64)", "({0} / 100)"),
        rule(Float, &[Decimal], "CAST({0} AS f64)", "dec_float({0})"),
        rule(Float, &[Decimal, Decimal], "({0} / {1})", "(dec_float({0}) / dec_float({1}))"),
        rule(Text, &[Decimal], "CAST({0} AS text)", "dec_text({0})"),
        rule(Text, &[Text, Decimal], "({0} || {1})", "({0} || dec_text({1}))"),
        rule(Bool, &[Decimal, Small], "(sign({0}) = {1})", "((({0} > 0) - ({0} < 0)) = {1})"),
        same(Bool, &[Decimal, Decimal], "({0} = {1})"),
        same(Bool, &[Decimal, Decimal], "({0} <> {1})"),
        same(Bool, &[Decimal, Decimal], "({0} < {1})"),
        same(Bool, &[Decimal, Decimal], "({0} >= {1})"),
        rule(Bool, &[Decimal, Int], "({0} > {1})", "({0} > {1} * 100)"),
        rule(Bool, &[Int, Decimal], "({0} <= {1})", "({0} * 100 <= {1})"),
        rule(Bool, &[Decimal, Small], "({0} = {1})", "({0} = {1} * 100)"),
        same(Bool, &[Decimal, Decimal, Decimal], "({0} BETWEEN {1} AND {2})"),
        same(Bool, &[Decimal, Decimal, Decimal], "({0} NOT BETWEEN {1} AND {2})"),
        same(Bool, &[Decimal, Decimal, Decimal], "({0} IN ({1}, {2}))"),
        same(Bool, &[Decimal, Decimal, Decimal], "({0} NOT IN ({1}, {2}))"),
        same(Bool, &[Decimal], "({0} IS NULL)"),
        same(Bool, &[Decimal], "({0} IS NOT NULL)"),
        same(Bool, &[Decimal, Decimal], "({0} IS DISTINCT FROM {1})"),
    ]
}
