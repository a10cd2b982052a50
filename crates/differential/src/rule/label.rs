//! Labels of enums, which SQLite holds as their places in the order of declaration.

use super::{Rule, rule, same};
use crate::value::Kind::{Bool, Escaped, Int, LabelColumn, LabelConstant, Pattern, Small, Text};

pub(super) fn rules() -> Vec<Rule> {
    const PAIR: &[crate::value::Kind] = &[LabelColumn, LabelConstant];
    const THREE: &[crate::value::Kind] = &[LabelColumn, LabelConstant, LabelConstant];
    vec![
        rule(Text, &[LabelColumn], "CAST({0} AS text)", "label({0})"),
        rule(Text, &[LabelColumn], "upper({0})", "u_upper(label({0}))"),
        rule(Text, &[LabelColumn, Text], "({0} || {1})", "(label({0}) || {1})"),
        rule(Text, &[LabelColumn, Small], "substr({0}, {1})", "substr(label({0}), {1})"),
        rule(Int, &[LabelColumn], "length({0})", "length(label({0}))"),
        same(Bool, PAIR, "({0} = {1})"),
        same(Bool, PAIR, "({0} <> {1})"),
        same(Bool, PAIR, "({0} < {1})"),
        same(Bool, PAIR, "({0} <= {1})"),
        same(Bool, PAIR, "({0} > {1})"),
        same(Bool, PAIR, "({1} <= {0})"),
        same(Bool, PAIR, "({0} IS DISTINCT FROM {1})"),
        same(Bool, THREE, "({0} BETWEEN {1} AND {2})"),
        same(Bool, THREE, "({0} NOT BETWEEN {1} AND {2})"),
        same(Bool, THREE, "({0} IN ({1}, {2}))"),
        same(Bool, THREE, "({0} NOT IN ({1}, {2}))"),
        same(Bool, &[LabelColumn, LabelColumn], "({0} = {1})"),
        same(Bool, &[LabelColumn, LabelColumn], "({0} < {1})"),
        same(Bool, &[LabelColumn], "({0} IS NULL)"),
        same(Bool, &[LabelColumn], "({0} IS NOT NULL)"),
        rule(Bool, &[LabelColumn, Pattern], "({0} LIKE {1})", "(label({0}) LIKE {1})"),
        rule(
            Bool,
            &[LabelColumn, Escaped],
            "({0} NOT LIKE {1} ESCAPE '!')",
            "(label({0}) NOT LIKE {1} ESCAPE '!')",
        ),
        rule(Bool, &[LabelColumn, Text], "contains({0}, {1})", "(instr(label({0}), {1}) > 0)"),
    ]
}
