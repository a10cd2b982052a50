//! Integers, floats, texts, bytes, moments and truth.

use super::{Rule, checked, rule, same};
use crate::value::Kind::{Bool, Bytes, Date, Escaped, Float, Int, Pattern, Small, Stamp, Text};

pub(super) fn rules() -> Vec<Rule> {
    let lists = [
        integers(),
        parts_of_moments(),
        floats(),
        texts(),
        conditions(),
        conditions_on_texts(),
        moments(),
    ];
    lists.into_iter().flatten().collect()
}

/// Whole numbers.
fn integers() -> Vec<Rule> {
    vec![
        checked(Int, &[Int, Int], "({0} + {1})", "chk_add({0}, {1})"),
        checked(Int, &[Int, Int], "({0} - {1})", "chk_sub({0}, {1})"),
        checked(Int, &[Int, Small], "({0} * {1})", "chk_mul({0}, {1})"),
        checked(Int, &[Int, Int], "({0} * {1})", "chk_mul({0}, {1})"),
        checked(Int, &[Int, Int], "({0} / {1})", "chk_div({0}, {1})"),
        same(Int, &[Int, Int], "({0} % {1})"),
        rule(Int, &[Int, Int], "mod({0}, {1})", "({0} % {1})"),
        checked(Int, &[Int], "(- {0})", "chk_sub(0, {0})"),
        same(Int, &[Int], "abs({0})"),
        rule(Int, &[Int], "sign({0})", "(({0} > 0) - ({0} < 0))"),
        rule(Int, &[Int], "round({0})", "(+ {0})"),
        rule(Int, &[Int], "floor({0})", "(+ {0})"),
        same(Int, &[Text], "length({0})"),
        same(Int, &[Bytes], "length({0})"),
        rule(Int, &[Text], "octet_length({0})", "length(CAST({0} AS BLOB))"),
        rule(Int, &[Text, Text], "strpos({0}, {1})", "instr({0}, {1})"),
        rule(Int, &[Text, Text], "position({1} IN {0})", "instr({0}, {1})"),
        rule(Int, &[Text], "ascii({0})", "CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END"),
        same(Int, &[Bool, Int, Int], "iif({0}, {1}, {2})"),
        same(Int, &[Stamp], "unixepoch({0})"),
        same(Int, &[Stamp], "unixepoch({0}, 'start of month')"),
        rule(Int, &[Bool], "CAST({0} AS i64)", "CAST({0} AS INTEGER)"),
        Rule {
            outcome: Int,
            operands: &[Float],
            esker: "CAST({0} AS i64)",
            sqlite: "CAST({0} AS INTEGER)",
            strict: "chk_int({0})",
        },
    ]
}

/// Parts of dates and times.
fn parts_of_moments() -> Vec<Rule> {
    vec![
        rule(Int, &[Date], "date_part('year', {0})", "CAST(strftime('%Y', {0}) AS INTEGER)"),
        rule(Int, &[Date], "extract(month FROM {0})", "CAST(strftime('%m', {0}) AS INTEGER)"),
        rule(Int, &[Stamp], "extract(day FROM {0})", "CAST(strftime('%d', {0}) AS INTEGER)"),
        rule(Int, &[Date], "date_part('doy', {0})", "CAST(strftime('%j', {0}) AS INTEGER)"),
        rule(Int, &[Date], "date_part('dow', {0})", "CAST(strftime('%w', {0}) AS INTEGER)"),
        rule(Int, &[Date], "date_part('isodow', {0})", "CAST(strftime('%u', {0}) AS INTEGER)"),
        rule(Int, &[Date], "date_part('week', {0})", "CAST(strftime('%V', {0}) AS INTEGER)"),
        rule(Int, &[Date], "date_part('isoyear', {0})", "CAST(strftime('%G', {0}) AS INTEGER)"),
        rule(Int, &[Stamp], "date_part('hour', {0})", "CAST(strftime('%H', {0}) AS INTEGER)"),
        rule(Int, &[Stamp], "date_part('minute', {0})", "CAST(strftime('%M', {0}) AS INTEGER)"),
        rule(Int, &[Stamp], "date_part('second', {0})", "CAST(strftime('%S', {0}) AS INTEGER)"),
        rule(Int, &[Stamp], "date_part('epoch', {0})", "CAST(strftime('%s', {0}) AS INTEGER)"),
        rule(
            Int,
            &[Date, Date],
            "({0} - {1})",
            "CAST(round(julianday({0}) - julianday({1})) AS INTEGER)",
        ),
    ]
}

/// Floats.
fn floats() -> Vec<Rule> {
    vec![
        same(Float, &[Float, Float], "({0} + {1})"),
        same(Float, &[Float, Int], "({0} - {1})"),
        same(Float, &[Int, Float], "({0} * {1})"),
        same(Float, &[Float, Float], "({0} / {1})"),
        rule(Float, &[Int], "CAST({0} AS f64)", "CAST({0} AS REAL)"),
        same(Float, &[Stamp], "julianday({0})"),
        same(Float, &[Float], "(- {0})"),
        same(Float, &[Float], "abs({0})"),
        same(Float, &[Float], "round({0})"),
        rule(Float, &[Float, Small], "round({0}, {1})", "r_round({0}, {1})"),
        rule(Float, &[Float], "round({0} * 1.115e0, 2)", "r_round({0} * 1.115, 2)"),
        rule(Float, &[Float], "round({0} + 42.12345e0, 4)", "r_round({0} + 42.12345, 4)"),
        rule(Float, &[Float, Small], "round({0}, - {1})", "r_round({0}, - {1})"),
        rule(Float, &[Float], "floor({0})", "r_floor({0})"),
        rule(Float, &[Float], "ceil({0})", "r_ceil({0})"),
        rule(Float, &[Float], "sqrt({0})", "r_sqrt({0})"),
        rule(Float, &[Float, Small], "power({0}, {1})", "r_power({0}, {1})"),
    ]
}

/// Texts.
fn texts() -> Vec<Rule> {
    vec![
        rule(Text, &[Text], "lower({0})", "u_lower({0})"),
        rule(Text, &[Text], "upper({0})", "u_upper({0})"),
        same(Text, &[Text, Int], "substr({0}, {1})"),
        same(Text, &[Text, Int, Small], "substr({0}, {1}, {2})"),
        rule(Text, &[Text, Small], "left({0}, {1})", "substr({0}, 1, {1})"),
        rule(
            Text,
            &[Text, Small],
            "right({0}, {1})",
            "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN '' ELSE substr({0}, -({1})) END",
        ),
        // SQLite looks at the third operand only where the second is not empty.
        Rule {
            outcome: Text,
            operands: &[Text, Text, Text],
            esker: "replace({0}, {1}, {2})",
            sqlite: "CASE WHEN {2} IS NOT NULL THEN replace({0}, {1}, {2}) END",
            strict: "replace({0}, {1}, coalesce({2}, ''))",
        },
        same(Text, &[Text], "trim({0})"),
        same(Text, &[Text, Text], "trim({0}, {1})"),
        same(Text, &[Text, Text], "ltrim({0}, {1})"),
        same(Text, &[Text], "rtrim({0})"),
        rule(Text, &[Text], "reverse({0})", "u_reverse({0})"),
        rule(Text, &[Text, Small], "repeat({0}, {1})", "replace(hex(zeroblob({1})), '00', {0})"),
        same(Text, &[Text, Text], "({0} || {1})"),
        same(Text, &[Text, Int], "({0} || {1})"),
        rule(Text, &[Text, Int], "concat({0}, {1})", "(coalesce({0}, '') || coalesce({1}, ''))"),
        same(Text, &[Text, Text, Int], "concat_ws({0}, {1}, {2})"),
        rule(Text, &[Text], "hex({0})", "CASE WHEN {0} NOT NULL THEN hex({0}) END"),
        same(Text, &[Text, Int], "printf('%s|%5d', {0}, {1})"),
        same(Text, &[Int, Int], "printf('%,d %+05d', {0}, {1})"),
        same(Text, &[Int, Int], "format('%-8x%X', {0}, {1})"),
        same(Text, &[Text], "printf('%!6.2s|%Q', {0}, {0})"),
        rule(Text, &[Text], "quote_literal({0})", "CASE WHEN {0} NOT NULL THEN quote({0}) END"),
        same(Text, &[Stamp], "strftime('%Y/%m/%d %H-%M-%S %%', {0})"),
        same(Text, &[Date], "strftime('%j %W %w %u %G-%V %F %e', {0})"),
        same(Text, &[Stamp], "strftime('%s %I %p %P %k %l %R', {0}, '+40 days')"),
        rule(Text, &[Int], "CAST({0} AS text)", "CAST({0} AS TEXT)"),
        rule(Text, &[Date], "CAST({0} AS text)", "CAST({0} AS TEXT)"),
    ]
}

/// Other conditions.
fn conditions() -> Vec<Rule> {
    vec![
        same(Bool, &[Int, Int], "({0} = {1})"),
        same(Bool, &[Int, Int], "({0} <> {1})"),
        same(Bool, &[Int, Int], "({0} < {1})"),
        same(Bool, &[Int, Float], "({0} >= {1})"),
        same(Bool, &[Float, Int], "({0} = {1})"),
        same(Bool, &[Float, Float], "({0} <= {1})"),
        same(Bool, &[Bytes, Bytes], "({0} < {1})"),
        same(Bool, &[Date, Date], "({0} <= {1})"),
        same(Bool, &[Stamp, Stamp], "({0} > {1})"),
        same(Bool, &[Bool, Bool], "({0} = {1})"),
        same(Bool, &[Bool, Bool], "({0} AND {1})"),
        same(Bool, &[Bool, Bool], "({0} OR {1})"),
        same(Bool, &[Bool, Bool, Bool], "({0} AND {1} AND {2})"),
        same(Bool, &[Bool], "(NOT {0})"),
        same(Bool, &[Int, Int, Int, Int], "({0} IN ({1}, {2}, {3}))"),
        same(Bool, &[Date, Date, Date], "({0} IN ({1}, {2}))"),
        same(Bool, &[Int, Int, Int], "({0} BETWEEN {1} AND {2})"),
        same(Bool, &[Float, Int, Int], "({0} NOT BETWEEN {1} AND {2})"),
        same(Bool, &[Stamp, Stamp, Stamp], "({0} BETWEEN {1} AND {2})"),
        same(Bool, &[Int], "({0} IS NULL)"),
        same(Bool, &[Date], "({0} IS NULL)"),
        same(Bool, &[Int, Int], "({0} IS DISTINCT FROM {1})"),
        same(Bool, &[Bool], "({0} IS TRUE)"),
        same(Bool, &[Bool], "({0} IS NOT FALSE)"),
        same(Bool, &[Bool, Bool, Bool], "({0} OR {1} OR {2})"),
        same(Bool, &[Int, Int, Int], "({0} NOT BETWEEN {1} AND {2})"),
        same(Bool, &[Int, Int, Int], "({0} NOT IN ({1}, {2}))"),
        same(Bool, &[Float, Float], "({0} <> {1})"),
        same(Bool, &[Bytes, Bytes], "({0} = {1})"),
        same(Bool, &[Bytes], "({0} IS NULL)"),
        same(Bool, &[Bool], "({0} IS NULL)"),
        same(Bool, &[Float], "({0} IS NOT NULL)"),
        same(Bool, &[Bool], "({0} IS NOT TRUE)"),
        same(Bool, &[Stamp, Stamp], "({0} IS DISTINCT FROM {1})"),
    ]
}

/// Conditions on texts.
fn conditions_on_texts() -> Vec<Rule> {
    vec![
        same(Bool, &[Text, Text], "({0} = {1})"),
        same(Bool, &[Text, Text], "({0} > {1})"),
        same(Bool, &[Text, Text, Text], "({0} NOT IN ({1}, {2}))"),
        same(Bool, &[Text, Text, Text], "({0} BETWEEN {1} AND {2})"),
        same(Bool, &[Text], "({0} IS NOT NULL)"),
        same(Bool, &[Text], "({0} NOTNULL)"),
        same(Bool, &[Text], "({0} ISNULL)"),
        same(Bool, &[Text], "({0} NOT NULL)"),
        same(Bool, &[Text, Pattern], "({0} LIKE {1} ESCAPE NULL)"),
        same(Bool, &[Text, Pattern], "({0} NOT LIKE {1} ESCAPE NULL)"),
        same(Bool, &[Text, Text], "({0} IS NOT DISTINCT FROM {1})"),
        same(Bool, &[Text, Pattern], "({0} LIKE {1})"),
        same(Bool, &[Text, Pattern], "({0} NOT LIKE {1})"),
        rule(Bool, &[Text, Pattern], "({0} ILIKE {1})", "(u_lower({0}) LIKE u_lower({1}))"),
        rule(Bool, &[Text, Text], "starts_with({0}, {1})", "(substr({0}, 1, length({1})) = {1})"),
        rule(Bool, &[Text, Text], "contains({0}, {1})", "(instr({0}, {1}) > 0)"),
        rule(Bool, &[Text, Text], "icontains({0}, {1})", "(instr(u_lower({0}), u_lower({1})) > 0)"),
        rule(
            Bool,
            &[Text, Text],
            "ends_with({0}, {1})",
            "CASE WHEN {1} = '' THEN {0} = {0} ELSE substr({0}, -length({1})) = {1} END",
        ),
        rule(
            Bool,
            &[Text, Text],
            "istarts_with({0}, {1})",
            "(substr(u_lower({0}), 1, length(u_lower({1}))) = u_lower({1}))",
        ),
        same(Bool, &[Text, Escaped], "({0} LIKE {1} ESCAPE '!')"),
        same(Bool, &[Text, Escaped], "({0} NOT LIKE {1} ESCAPE '!')"),
        rule(
            Bool,
            &[Text, Escaped],
            "({0} ILIKE {1} ESCAPE '!')",
            "(u_lower({0}) LIKE u_lower({1}) ESCAPE '!')",
        ),
        same(Bool, &[Text, Small], "(length({0}) >= {1})"),
        same(Bool, &[Text, Small, Small], "(length({0}) BETWEEN {1} AND {2})"),
        same(Bool, &[Text, Text, Text, Text], "({0} IN ({1}, {2}, {3}))"),
    ]
}

/// Dates and times.
fn moments() -> Vec<Rule> {
    vec![
        same(Date, &[Date, Small], "date({0}, {1} || ' days')"),
        same(Date, &[Date], "date({0}, '+1 month')"),
        same(Date, &[Date], "date({0}, 'start of year', '-1 month', 'weekday 0')"),
        same(Date, &[Stamp], "date({0}, '-36 hours')"),
        rule(Date, &[Date], "last_day({0})", "date({0}, 'start of month', '+1 month', '-1 day')"),
        same(Stamp, &[Stamp], "datetime({0}, '+1 year', '-90.5 minutes')"),
        same(Stamp, &[Date], "datetime({0}, '+01:30')"),
        rule(Date, &[Date, Small], "({0} + {1})", "date({0}, {1} || ' days')"),
        rule(Date, &[Date, Small], "({0} - {1})", "date({0}, '-' || {1} || ' days')"),
        rule(Date, &[Date], "date_trunc('month', {0})", "date({0}, 'start of month')"),
        rule(Date, &[Date], "date_trunc('year', {0})", "date({0}, 'start of year')"),
        rule(Date, &[Stamp], "CAST({0} AS date)", "date({0})"),
        rule(Stamp, &[Date], "CAST({0} AS timestamp)", "datetime({0})"),
        rule(Stamp, &[Stamp], "date_trunc('day', {0})", "datetime({0}, 'start of day')"),
        rule(Stamp, &[Date], "({0} + INTERVAL '1 month')", "datetime({0}, '+1 month', 'floor')"),
        rule(Stamp, &[Stamp], "({0} - INTERVAL '1' YEAR)", "datetime({0}, '-1 year', 'floor')"),
        rule(Stamp, &[Stamp], "({0} + INTERVAL '90 minutes')", "datetime({0}, '+90 minutes')"),
    ]
}
