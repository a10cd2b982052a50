//! JSON, which SQLite holds as text, here always in the one spelling that Esker prints.

use super::{Rule, rule, same};
use crate::value::Kind::{Bool, Float, Int, Json, JsonColumn, Member, Small, Text};

/// Text of a part: SQLite makes numbers of truths, and values of numbers.
const TEXT: &str = "CASE json_type({0}, '$.' || {1}) WHEN 'true' THEN 'true' \
     WHEN 'false' THEN 'false' ELSE CAST({0} ->> {1} AS TEXT) END";

const NUMBER: &str = "CASE WHEN json_type({0}, '$.' || {1}) IN ('integer', 'real') \
     THEN CAST({0} ->> {1} AS REAL) END";

const A_NUMBER: &str = "(CASE WHEN json_type({0}, '$.a') IN ('integer', 'real') \
     THEN CAST({0} ->> 'a' AS REAL) END > {1})";

const B_TEXT: &str = "(CASE json_type({0}, '$.b') WHEN 'true' THEN 'true' \
     WHEN 'false' THEN 'false' ELSE CAST({0} ->> 'b' AS TEXT) END = {1})";

pub(super) fn rules() -> Vec<Rule> {
    vec![
        same(Json, &[Json, Member], "({0} -> {1})"),
        same(Json, &[Json, Small], "({0} -> {1})"),
        rule(Json, &[Json], "({0} -> -1)", "({0} -> '$[#-1]')"),
        same(Json, &[Json], "({0} -> '$.c.d')"),
        same(Json, &[Json], "({0} -> '$.c[0]')"),
        same(Json, &[Json], "({0} -> '$[#-1]')"),
        same(Json, &[Json], "({0} -> '$')"),
        rule(Json, &[Json], "json_extract({0}, '$.\"ä\"')", "({0} -> 'ä')"),
        rule(Json, &[Json], "json_get({0}, 'c', 'd')", "({0} -> '$.c.d')"),
        rule(Text, &[Json, Member], "({0} ->> {1})", TEXT),
        rule(Text, &[Json], "CAST({0} AS text)", "({0})"),
        rule(Float, &[Json, Member], "json_get_number({0}, {1})", NUMBER),
        rule(Int, &[Json], "length(CAST({0} AS text))", "length({0})"),
        same(Bool, &[Json, Json], "({0} = {1})"),
        same(Bool, &[Json, Json], "({0} <> {1})"),
        same(Bool, &[Json, Json, Json], "({0} IN ({1}, {2}))"),
        same(Bool, &[Json], "({0} IS NULL)"),
        same(Bool, &[Json, Json], "({0} IS NOT DISTINCT FROM {1})"),
        rule(Bool, &[JsonColumn, Small], "({0}.a > {1})", A_NUMBER),
        rule(Bool, &[JsonColumn, Text], "({0}.b = {1})", B_TEXT),
        rule(Bool, &[JsonColumn], "({0}.a IS NULL)", "(({0} ->> 'a') IS NULL)"),
        rule(Bool, &[JsonColumn], "({0}.c.d IS NOT NULL)", "(({0} ->> '$.c.d') IS NOT NULL)"),
        rule(
            Bool,
            &[Json, Member, Text],
            "contains({0} ->> {1}, {2})",
            "(instr(CASE json_type({0}, '$.' || {1}) WHEN 'true' THEN 'true' \
             WHEN 'false' THEN 'false' ELSE CAST({0} ->> {1} AS TEXT) END, {2}) > 0)",
        ),
    ]
}
