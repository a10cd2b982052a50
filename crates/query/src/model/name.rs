//! Names as text.

use std::fmt::{self, Display, Formatter};

/// Words that are no name of a field or table where an expression stands, unless in quotes.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "between",
    "case",
    "cast",
    "collate",
    "cross",
    "default",
    "desc",
    "distinct",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "false",
    "fetch",
    "from",
    "full",
    "group",
    "having",
    "in",
    "inner",
    "intersect",
    "interval",
    "is",
    "join",
    "lateral",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "over",
    "qualify",
    "right",
    "select",
    "set",
    "some",
    "table",
    "then",
    "to",
    "true",
    "union",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

/// Words that are no name of a field where a table is defined, either.
const RESERVED_IN_DEFINITIONS: &[&str] =
    &["check", "constraint", "foreign", "fulltext", "index", "key", "primary", "spatial", "unique"];

/// A name, quoted when it is not a plain word.
pub(super) struct Name<'a>(pub(super) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let plain = self.0.chars().all(word) && !self.0.starts_with(|c: char| c.is_numeric());
        if plain && !self.0.is_empty() && !is_among(self.0, RESERVED) {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

fn is_among(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// A name as statements write it, in a definition, too: quoted when it is not a plain word.
///
/// ```
/// use esker_query::model::name_text;
///
/// assert_eq!(name_text("age"), "age");
/// assert_eq!(name_text("my age"), "\"my age\"");
/// assert_eq!(name_text("order"), "\"order\"");
/// ```
#[must_use]
pub fn name_text(name: &str) -> String {
    match is_among(name, RESERVED_IN_DEFINITIONS) {
        true => format!("\"{name}\""),
        false => Name(name).to_string(),
    }
}
