//! The lines of the table: an operator's name and other names, how many values it takes, what it
//! stands for, its opposite and, unless it is unknown, what it is of NULL; then its spelling in
//! SQL, its meaning, and an example.

use super::{FilterOperator, Form, OfNull, Operands, Subjects};
use crate::model::{Function as F, Operator as O};

macro_rules! operators {
    ($($(#[$about:meta])* $family:ident $title:literal of $subjects:ident {$(
        $name:literal $(| $alias:literal)* ($operands:ident) = $form:ident($of:expr)
            $(, not $opposite:literal)? $(, of NULL $of_null:ident)?;
            $sql:literal, $meaning:literal, $example:literal;
    )*})*) => {
        /// What an operator is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FilterFamily {
            $($(#[$about])* $family,)*
        }

        impl FilterFamily {
            /// Every family, in the order of the reference.
            pub const ALL: [Self; [$($title),*].len()] = [$(Self::$family),*];

            /// Its heading.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$family => $title,)*
                }
            }
        }

        /// Every operator.
        pub const FILTER_OPERATORS: &[FilterOperator] = &[$($(
            FilterOperator {
                name: $name,
                aliases: &[$($alias),*],
                family: FilterFamily::$family,
                operands: Operands::$operands,
                subjects: Subjects::$subjects,
                of_null: match <[OfNull]>::first(&[$(OfNull::$of_null)?]) {
                    Some(of_null) => *of_null,
                    None => OfNull::Unknown,
                },
                opposite: <[&str]>::first(&[$($opposite)?]).copied(),
                sql: $sql,
                meaning: $meaning,
                example: $example,
                form: Form::$form($of),
            },
        )*)*];
    };
}

operators! {
    /// The order and equality of values.
    Comparison "Comparing with values" of All {
        "eq" | "equal" (One) = Of(O::Eq), not "neq";
            "x = v", "Equal. Numbers compare exactly across types.",
            r#"{"field": "age", "op": "eq", "value": 30}"#;
        "neq" | "not_equal" (One) = Of(O::Neq), not "eq";
            "x <> v", "Not equal.", r#"{"field": "age", "op": "neq", "value": 30}"#;
        "lt" | "less" (One) = Of(O::Lt), not "gte";
            "x < v", "Less: text and bytes by their bytes, enums by the order of their labels.",
            r#"{"field": "name", "op": "lt", "value": "m"}"#;
        "gt" | "greater" (One) = Of(O::Gt), not "lte";
            "x > v", "Greater.", r#"{"field": "age", "op": "gt", "value": 30.5}"#;
        "lte" | "less_eq" (One) = Of(O::Lte), not "gt";
            "x <= v", "Less or equal.", r#"{"field": "age", "op": "lte", "value": 30}"#;
        "gte" | "greater_eq" (One) = Of(O::Gte), not "lt";
            "x >= v", "Greater or equal.", r#"{"field": "age", "op": "gte", "value": 30}"#;
        "between" (Two) = Of(O::Between);
            "x BETWEEN v AND w", "From the one to the other, both included.",
            r#"{"field": "age", "op": "between", "value": [30, 40]}"#;
        "in" (Many) = Of(O::In), not "not_in";
            "x IN (v, …)", "Equal to one of the values; of none, false.",
            r#"{"field": "age", "op": "in", "value": [30, 40]}"#;
        "not_in" | "nin" (Many) = Of(O::NotIn), not "in";
            "x NOT IN (v, …)", "Equal to none of the values.",
            r#"{"field": "age", "op": "not_in", "value": [30, 40]}"#;
    }
    /// Whether there is a value.
    Presence "Having a value" of All {
        "exists" (None) = Of(O::IsNotNull), not "not_exists", of NULL False;
            "x IS NOT NULL", "There is a value; the empty text is one.",
            r#"{"field": "name", "op": "exists"}"#;
        "not_exists" | "nexists" (None) = Of(O::IsNull), not "exists", of NULL True;
            "x IS NULL", "There is no value.", r#"{"field": "name", "op": "not_exists"}"#;
    }
    /// Patterns and parts of text.
    Text "Text" of Text {
        "like" (One) = Of(O::Like), not "not_like";
            "x LIKE v [ESCAPE e]", "The whole text is like the pattern: `%` stands for any run of \
             characters, `_` for one, and an escape, if there is one, takes the meaning of the \
             next character away.", r#"{"field": "name", "op": "like", "value": "a%.s_ith%"}"#;
        "not_like" | "nlike" (One) = Of(O::NotLike), not "like";
            "x NOT LIKE v [ESCAPE e]", "The whole text is not like the pattern.",
            r#"{"field": "name", "op": "not_like", "value": "100!%", "escape": "!"}"#;
        "ilike" (One) = Of(O::Ilike), not "not_ilike";
            "x ILIKE v [ESCAPE e]", "As `like`, whatever the case of letters.",
            r#"{"field": "name", "op": "ilike", "value": "ALICE%"}"#;
        "not_ilike" | "inlike" | "inot_like" (One) = Of(O::NotIlike), not "ilike";
            "x NOT ILIKE v [ESCAPE e]", "As `not_like`, whatever the case of letters.",
            r#"{"field": "name", "op": "not_ilike", "value": "ALICE%"}"#;
        "contains" (One) = Call(F::Contains), not "not_contains";
            "contains(x, v)", "The value occurs somewhere in the text.",
            r#"{"field": "name", "op": "contains", "value": "smith"}"#;
        "not_contains" | "ncontains" (One) = NotCall(F::Contains), not "contains";
            "NOT contains(x, v)", "The value occurs nowhere in the text.",
            r#"{"field": "name", "op": "not_contains", "value": "smith"}"#;
        "icontains" (One) = Call(F::Icontains), not "not_icontains";
            "icontains(x, v)", "As `contains`, whatever the case of letters.",
            r#"{"field": "name", "op": "icontains", "value": "SMITH"}"#;
        "not_icontains" | "incontains" | "inot_contains"
            (One) = NotCall(F::Icontains), not "icontains";
            "NOT icontains(x, v)", "As `not_contains`, whatever the case of letters.",
            r#"{"field": "name", "op": "not_icontains", "value": "SMITH"}"#;
        "starts" | "starts_with" (One) = Call(F::StartsWith);
            "starts_with(x, v)", "The text begins with the value.",
            r#"{"field": "name", "op": "starts", "value": "alice"}"#;
        "ends" | "ends_with" (One) = Call(F::EndsWith);
            "ends_with(x, v)", "The text ends with the value.",
            r#"{"field": "name", "op": "ends", "value": "7"}"#;
        "istarts" | "istarts_with" (One) = Call(F::IstartsWith);
            "istarts_with(x, v)", "As `starts`, whatever the case of letters.",
            r#"{"field": "name", "op": "istarts", "value": "Alice"}"#;
        "iends" | "iends_with" (One) = Call(F::IendsWith);
            "iends_with(x, v)", "As `ends`, whatever the case of letters.",
            r#"{"field": "name", "op": "iends", "value": "SMITH7"}"#;
    }
    /// How long a text is.
    Length "Length of text" of TextOrBytes {
        "len_eq" (One) = OfLength(O::Eq), not "len_neq";
            "length(x) = v", "As many characters; of bytes, as many bytes.",
            r#"{"field": "name", "op": "len_eq", "value": 12}"#;
        "len_neq" (One) = OfLength(O::Neq), not "len_eq";
            "length(x) <> v", "Fewer or more characters.",
            r#"{"field": "name", "op": "len_neq", "value": 12}"#;
        "len_lt" (One) = OfLength(O::Lt), not "len_gte";
            "length(x) < v", "Fewer characters.",
            r#"{"field": "name", "op": "len_lt", "value": 12}"#;
        "len_gt" (One) = OfLength(O::Gt), not "len_lte";
            "length(x) > v", "More characters.",
            r#"{"field": "name", "op": "len_gt", "value": 12}"#;
        "len_lte" (One) = OfLength(O::Lte), not "len_gt";
            "length(x) <= v", "As many characters or fewer.",
            r#"{"field": "name", "op": "len_lte", "value": 12}"#;
        "len_gte" (One) = OfLength(O::Gte), not "len_lt";
            "length(x) >= v", "As many characters or more.",
            r#"{"field": "name", "op": "len_gte", "value": 12}"#;
        "len_between" (Two) = OfLength(O::Between);
            "length(x) BETWEEN v AND w", "From so many characters to so many, both included.",
            r#"{"field": "name", "op": "len_between", "value": [10, 12]}"#;
    }
    /// Two fields of a row.
    Fields "Comparing with another field" of All {
        "eq_field" (Field) = Of(O::Eq), not "neq_field";
            "x = y", "Equal to another field. Numbers compare exactly across types.",
            r#"{"field": "age", "op": "eq_field", "value": "rank"}"#;
        "neq_field" (Field) = Of(O::Neq), not "eq_field";
            "x <> y", "Not equal to another field.",
            r#"{"field": "age", "op": "neq_field", "value": "rank"}"#;
        "lt_field" (Field) = Of(O::Lt), not "gte_field";
            "x < y", "Less than another field.",
            r#"{"field": "age", "op": "lt_field", "value": "rank"}"#;
        "gt_field" (Field) = Of(O::Gt), not "lte_field";
            "x > y", "Greater than another field.",
            r#"{"field": "age", "op": "gt_field", "value": "rank"}"#;
        "lte_field" (Field) = Of(O::Lte), not "gt_field";
            "x <= y", "Less than another field, or equal.",
            r#"{"field": "age", "op": "lte_field", "value": "rank"}"#;
        "gte_field" (Field) = Of(O::Gte), not "lt_field";
            "x >= y", "Greater than another field, or equal.",
            r#"{"field": "age", "op": "gte_field", "value": "rank"}"#;
    }
    /// Regular expressions.
    Regular "Regular expressions" of Text {
        "regex" (One) = Call(F::RegexpLike), not "not_regex";
            "x ~ v, regexp_like(x, v)", "The regular expression is found somewhere in the text; \
             `^` and `$` tie it to the ends.",
            r#"{"field": "name", "op": "regex", "value": "^(alice|bob)\\."}"#;
        "not_regex" | "nregex" (One) = NotCall(F::RegexpLike), not "regex";
            "x !~ v, NOT regexp_like(x, v)", "The regular expression is found nowhere in the text.",
            r#"{"field": "name", "op": "not_regex", "value": "[0-9]$"}"#;
    }
}
