//! `EXPLAIN`, with the options that PostgreSQL writes.

use std::fmt::Display;

use esker_query::{Explanation, Query};
use sqlparser::ast;

use crate::{Error, Result};

/// A question whose steps are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explain {
    /// The question.
    pub query: Query,
    /// Whether it runs, so that what its steps met is shown, too: `EXPLAIN ANALYZE`.
    pub analyze: bool,
    /// How the steps are shown.
    pub format: ExplainFormat,
}

/// How the steps of a question are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    /// As lines, for people.
    #[default]
    Text,
    /// As a document: `docs/reference/explain.md` has its members.
    Json,
}

impl Explain {
    /// What is shown of the steps.
    ///
    /// # Errors
    /// As for [`Explanation::to_json`].
    pub fn shown(&self, explanation: &Explanation) -> Result<String> {
        match self.format {
            ExplainFormat::Text => Ok(explanation.to_string()),
            ExplainFormat::Json => explanation.to_json(),
        }
    }
}

/// What stands between EXPLAIN and the question.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExplainOptions {
    analyze: bool,
    format: ExplainFormat,
}

/// The options that PostgreSQL has which say what is shown beside the steps: here it always is, or
/// there is no such thing.
const WITHOUT_EFFECT: [&str; 8] =
    ["VERBOSE", "COSTS", "TIMING", "SUMMARY", "BUFFERS", "SETTINGS", "WAL", "MEMORY"];

impl ExplainOptions {
    /// Of the words, and of the list in parentheses.
    ///
    /// # Errors
    /// `InvalidQuery` naming an option or format that there is not.
    pub(crate) fn read(
        analyze: bool,
        format: Option<&ast::AnalyzeFormatKind>,
        list: Option<&[ast::UtilityOption]>,
    ) -> Result<Self> {
        let mut options = Self { analyze, ..Self::default() };
        if let Some(
            ast::AnalyzeFormatKind::Keyword(format) | ast::AnalyzeFormatKind::Assignment(format),
        ) = format
        {
            options.format = format_of(&format.to_string())?;
        }
        for option in list.unwrap_or_default() {
            let name = option.name.value.to_uppercase();
            match name.as_str() {
                "ANALYZE" => options.analyze = is_on(option)?,
                "FORMAT" => {
                    let Some(format) = &option.arg else {
                        return Err(Error::invalid("EXPLAIN: FORMAT: expected TEXT or JSON"));
                    };
                    options.format = format_of(&word(format))?;
                }
                name if WITHOUT_EFFECT.contains(&name) => drop(is_on(option)?),
                name => {
                    let known = WITHOUT_EFFECT.join(", ");
                    return Err(Error::invalid(format!(
                        "EXPLAIN: there is no option {name} here: expected ANALYZE, FORMAT, or \
                         one without effect ({known})"
                    )));
                }
            }
        }
        Ok(options)
    }

    pub(crate) fn of(self, query: Query) -> Explain {
        Explain { query, analyze: self.analyze, format: self.format }
    }
}

/// A value without quotes.
fn word(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        ast::Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    }
}

fn format_of(format: &str) -> Result<ExplainFormat> {
    match format.to_uppercase().as_str() {
        "TEXT" => Ok(ExplainFormat::Text),
        "JSON" => Ok(ExplainFormat::Json),
        other => Err(unknown("FORMAT", "TEXT or JSON", other)),
    }
}

/// Whether an option is on: without a value it is.
fn is_on(option: &ast::UtilityOption) -> Result<bool> {
    let Some(value) = &option.arg else { return Ok(true) };
    match word(value).to_uppercase().as_str() {
        "TRUE" | "ON" | "1" => Ok(true),
        "FALSE" | "OFF" | "0" => Ok(false),
        other => Err(unknown(&option.name.value.to_uppercase(), "TRUE or FALSE", other)),
    }
}

fn unknown(option: &str, expected: &str, found: impl Display) -> Error {
    Error::invalid(format!("EXPLAIN: {option}: expected {expected}, found {found}"))
}
