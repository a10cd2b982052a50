//! The lines of the table.

use super::{FilterFamily, FilterOperator, Form, OfNull, Operands, Subjects};
use crate::model::{Function as F, Operator as O};

/// A line that is not known of NULL and has no other names.
const fn line(
    name: &'static str,
    family: FilterFamily,
    operands: Operands,
    subjects: Subjects,
    form: Form,
) -> FilterOperator {
    FilterOperator {
        name,
        aliases: &[],
        family,
        operands,
        subjects,
        of_null: OfNull::Unknown,
        opposite: None,
        sql: "",
        meaning: "",
        example: "",
        form,
    }
}

const fn value(name: &'static str, operands: Operands, operator: O) -> FilterOperator {
    line(name, FilterFamily::Comparison, operands, Subjects::All, Form::Of(operator))
}

const fn text(name: &'static str, form: Form) -> FilterOperator {
    line(name, FilterFamily::Text, Operands::One, Subjects::Text, form)
}

const fn length(name: &'static str, operands: Operands, operator: O) -> FilterOperator {
    let form = Form::OfLength(operator);
    line(name, FilterFamily::Length, operands, Subjects::TextOrBytes, form)
}

const fn field(name: &'static str, operator: O) -> FilterOperator {
    line(name, FilterFamily::Fields, Operands::Field, Subjects::All, Form::Of(operator))
}

impl FilterOperator {
    const fn says(mut self, sql: &'static str, meaning: &'static str) -> Self {
        self.sql = sql;
        self.meaning = meaning;
        self
    }

    const fn such_as(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    const fn not(mut self, opposite: &'static str) -> Self {
        self.opposite = Some(opposite);
        self
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn of_null(mut self, of_null: OfNull) -> Self {
        self.of_null = of_null;
        self
    }
}

/// Every operator.
pub const FILTER_OPERATORS: &[FilterOperator] = &[
    value("eq", Operands::One, O::Eq)
        .says("x = v", "Equal. Numbers compare exactly across types.")
        .not("neq")
        .also(&["equal"])
        .such_as(r#"{"field": "age", "op": "eq", "value": 30}"#),
    value("neq", Operands::One, O::Neq)
        .says("x <> v", "Not equal.")
        .not("eq")
        .also(&["not_equal"])
        .such_as(r#"{"field": "age", "op": "neq", "value": 30}"#),
    value("lt", Operands::One, O::Lt)
        .says("x < v", "Less: text and bytes by their bytes, enums by the order of their labels.")
        .not("gte")
        .also(&["less"])
        .such_as(r#"{"field": "name", "op": "lt", "value": "m"}"#),
    value("gt", Operands::One, O::Gt)
        .says("x > v", "Greater.")
        .not("lte")
        .also(&["greater"])
        .such_as(r#"{"field": "age", "op": "gt", "value": 30.5}"#),
    value("lte", Operands::One, O::Lte)
        .says("x <= v", "Less or equal.")
        .not("gt")
        .also(&["less_eq"])
        .such_as(r#"{"field": "age", "op": "lte", "value": 30}"#),
    value("gte", Operands::One, O::Gte)
        .says("x >= v", "Greater or equal.")
        .not("lt")
        .also(&["greater_eq"])
        .such_as(r#"{"field": "age", "op": "gte", "value": 30}"#),
    value("between", Operands::Two, O::Between)
        .says("x BETWEEN v AND w", "From the one to the other, both included.")
        .such_as(r#"{"field": "age", "op": "between", "value": [30, 40]}"#),
    value("in", Operands::Many, O::In)
        .says("x IN (v, …)", "Equal to one of the values; of none, false.")
        .not("not_in")
        .such_as(r#"{"field": "age", "op": "in", "value": [30, 40]}"#),
    value("not_in", Operands::Many, O::NotIn)
        .says("x NOT IN (v, …)", "Equal to none of the values.")
        .not("in")
        .also(&["nin"])
        .such_as(r#"{"field": "age", "op": "not_in", "value": [30, 40]}"#),
    line("exists", FilterFamily::Presence, Operands::None, Subjects::All, Form::Of(O::IsNotNull))
        .says("x IS NOT NULL", "There is a value; the empty text is one.")
        .not("not_exists")
        .of_null(OfNull::False)
        .such_as(r#"{"field": "name", "op": "exists"}"#),
    line("not_exists", FilterFamily::Presence, Operands::None, Subjects::All, Form::Of(O::IsNull))
        .says("x IS NULL", "There is no value.")
        .not("exists")
        .also(&["nexists"])
        .of_null(OfNull::True)
        .such_as(r#"{"field": "name", "op": "not_exists"}"#),
    text("like", Form::Of(O::Like))
        .says(
            "x LIKE v [ESCAPE e]",
            "The whole text is like the pattern: `%` stands for any run of characters, `_` for \
             one, and an escape, if there is one, takes the meaning of the next character away.",
        )
        .not("not_like")
        .such_as(r#"{"field": "name", "op": "like", "value": "a%.s_ith%"}"#),
    text("not_like", Form::Of(O::NotLike))
        .says("x NOT LIKE v [ESCAPE e]", "The whole text is not like the pattern.")
        .not("like")
        .also(&["nlike"])
        .such_as(r#"{"field": "name", "op": "not_like", "value": "100!%", "escape": "!"}"#),
    text("ilike", Form::Of(O::Ilike))
        .says("x ILIKE v [ESCAPE e]", "As `like`, whatever the case of letters.")
        .not("not_ilike")
        .such_as(r#"{"field": "name", "op": "ilike", "value": "ALICE%"}"#),
    text("not_ilike", Form::Of(O::NotIlike))
        .says("x NOT ILIKE v [ESCAPE e]", "As `not_like`, whatever the case of letters.")
        .not("ilike")
        .also(&["inlike", "inot_like"])
        .such_as(r#"{"field": "name", "op": "not_ilike", "value": "ALICE%"}"#),
    text("contains", Form::Call(F::Contains))
        .says("contains(x, v)", "The value occurs somewhere in the text.")
        .not("not_contains")
        .such_as(r#"{"field": "name", "op": "contains", "value": "smith"}"#),
    text("not_contains", Form::NotCall(F::Contains))
        .says("NOT contains(x, v)", "The value occurs nowhere in the text.")
        .not("contains")
        .also(&["ncontains"])
        .such_as(r#"{"field": "name", "op": "not_contains", "value": "smith"}"#),
    text("icontains", Form::Call(F::Icontains))
        .says("icontains(x, v)", "As `contains`, whatever the case of letters.")
        .not("not_icontains")
        .such_as(r#"{"field": "name", "op": "icontains", "value": "SMITH"}"#),
    text("not_icontains", Form::NotCall(F::Icontains))
        .says("NOT icontains(x, v)", "As `not_contains`, whatever the case of letters.")
        .not("icontains")
        .also(&["incontains", "inot_contains"])
        .such_as(r#"{"field": "name", "op": "not_icontains", "value": "SMITH"}"#),
    text("starts", Form::Call(F::StartsWith))
        .says("starts_with(x, v)", "The text begins with the value.")
        .also(&["starts_with"])
        .such_as(r#"{"field": "name", "op": "starts", "value": "alice"}"#),
    text("ends", Form::Call(F::EndsWith))
        .says("ends_with(x, v)", "The text ends with the value.")
        .also(&["ends_with"])
        .such_as(r#"{"field": "name", "op": "ends", "value": "7"}"#),
    text("istarts", Form::Call(F::IstartsWith))
        .says("istarts_with(x, v)", "As `starts`, whatever the case of letters.")
        .also(&["istarts_with"])
        .such_as(r#"{"field": "name", "op": "istarts", "value": "Alice"}"#),
    text("iends", Form::Call(F::IendsWith))
        .says("iends_with(x, v)", "As `ends`, whatever the case of letters.")
        .also(&["iends_with"])
        .such_as(r#"{"field": "name", "op": "iends", "value": "SMITH7"}"#),
    length("len_eq", Operands::One, O::Eq)
        .says("length(x) = v", "As many characters; of bytes, as many bytes.")
        .not("len_neq")
        .such_as(r#"{"field": "name", "op": "len_eq", "value": 12}"#),
    length("len_neq", Operands::One, O::Neq)
        .says("length(x) <> v", "Fewer or more characters.")
        .not("len_eq")
        .such_as(r#"{"field": "name", "op": "len_neq", "value": 12}"#),
    length("len_lt", Operands::One, O::Lt)
        .says("length(x) < v", "Fewer characters.")
        .not("len_gte")
        .such_as(r#"{"field": "name", "op": "len_lt", "value": 12}"#),
    length("len_gt", Operands::One, O::Gt)
        .says("length(x) > v", "More characters.")
        .not("len_lte")
        .such_as(r#"{"field": "name", "op": "len_gt", "value": 12}"#),
    length("len_lte", Operands::One, O::Lte)
        .says("length(x) <= v", "As many characters or fewer.")
        .not("len_gt")
        .such_as(r#"{"field": "name", "op": "len_lte", "value": 12}"#),
    length("len_gte", Operands::One, O::Gte)
        .says("length(x) >= v", "As many characters or more.")
        .not("len_lt")
        .such_as(r#"{"field": "name", "op": "len_gte", "value": 12}"#),
    length("len_between", Operands::Two, O::Between)
        .says("length(x) BETWEEN v AND w", "From so many characters to so many, both included.")
        .such_as(r#"{"field": "name", "op": "len_between", "value": [10, 12]}"#),
    field("eq_field", O::Eq)
        .says("x = y", "Equal to another field. Numbers compare exactly across types.")
        .not("neq_field")
        .such_as(r#"{"field": "age", "op": "eq_field", "value": "rank"}"#),
    field("neq_field", O::Neq)
        .says("x <> y", "Not equal to another field.")
        .not("eq_field")
        .such_as(r#"{"field": "age", "op": "neq_field", "value": "rank"}"#),
    field("lt_field", O::Lt)
        .says("x < y", "Less than another field.")
        .not("gte_field")
        .such_as(r#"{"field": "age", "op": "lt_field", "value": "rank"}"#),
    field("gt_field", O::Gt)
        .says("x > y", "Greater than another field.")
        .not("lte_field")
        .such_as(r#"{"field": "age", "op": "gt_field", "value": "rank"}"#),
    field("lte_field", O::Lte)
        .says("x <= y", "Less than another field, or equal.")
        .not("gt_field")
        .such_as(r#"{"field": "age", "op": "lte_field", "value": "rank"}"#),
    field("gte_field", O::Gte)
        .says("x >= y", "Greater than another field, or equal.")
        .not("lt_field")
        .such_as(r#"{"field": "age", "op": "gte_field", "value": "rank"}"#),
    line(
        "regex",
        FilterFamily::Regular,
        Operands::One,
        Subjects::Text,
        Form::Call(F::RegexpLike),
    )
    .says(
        "x ~ v, regexp_like(x, v)",
        "The regular expression is found somewhere in the text; `^` and `$` tie it to the ends.",
    )
    .not("not_regex")
    .such_as(r#"{"field": "name", "op": "regex", "value": "^(alice|bob)\\."}"#),
    line(
        "not_regex",
        FilterFamily::Regular,
        Operands::One,
        Subjects::Text,
        Form::NotCall(F::RegexpLike),
    )
    .says("x !~ v, NOT regexp_like(x, v)", "The regular expression is found nowhere in the text.")
    .not("regex")
    .also(&["nregex"])
    .such_as(r#"{"field": "name", "op": "not_regex", "value": "[0-9]$"}"#),
];
