//! What a statement answers of the rows that it changes: as they are then (or were, if they are
//! removed), and by `old` and `new` as they were and are.

use std::borrow::Cow;

use esker_format::{Schema, Value};
use esker_query::QueryResult;
use esker_query::model::{Expr, SelectItem};

use super::StatementRun;
use crate::{Error, Result};

/// What there is of a row before and after a statement, as items name it.
const VERSIONS: [&str; 2] = ["old", "new"];

/// Rows that are answered.
#[derive(Debug, Default)]
pub(super) struct Shown {
    is_asked: bool,
    /// Those that are shown beside the row.
    versions: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Shown {
    /// None so far, for what is wanted.
    pub fn new(schema: &Schema, items: Option<&[SelectItem]>) -> Self {
        let are_named = items.into_iter().flatten().any(|item| names_version(schema, &item.expr));
        let is_free = |name: &&str| are_named && version_of(schema, name).is_some();
        let versions = VERSIONS.into_iter().filter(is_free).collect();
        Self { is_asked: items.is_some(), versions, rows: Vec::new() }
    }

    /// True when somebody asks for rows.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// True when somebody asks for rows as they were.
    pub fn has_versions(&self) -> bool {
        !self.versions.is_empty()
    }

    /// Adds a row as it was and as it is, if it was and is.
    pub fn add(&mut self, old: Option<&[Value]>, new: Option<&[Value]>) {
        let Some(row) = new.or(old).filter(|_| self.is_asked) else { return };
        let mut values = row.to_vec();
        if self.has_versions() {
            for (name, version) in VERSIONS.into_iter().zip([old, new]) {
                if !self.versions.contains(&name) {
                    continue;
                }
                // default: a version that is not there has no values
                let nulls = row.len().saturating_sub(version.map_or(0, <[Value]>::len));
                values.extend(version.into_iter().flatten().cloned());
                values.extend(std::iter::repeat_n(Value::Null, nulls));
            }
        }
        self.rows.push(values);
    }
}

impl StatementRun<'_> {
    /// What is returned of changed rows.
    pub(super) fn returned(
        &self,
        schema: &Schema,
        shown: &Shown,
        items: Option<&[SelectItem]>,
    ) -> Result<Option<QueryResult>> {
        let Some(items) = items else { return Ok(None) };
        let (schema, items) = match shown.versions.as_slice() {
            [] => (Cow::Borrowed(schema), Cow::Borrowed(items)),
            versions => {
                let with_versions = schema.with_fields_of(versions, "RETURNING")?;
                (Cow::Owned(with_versions), Cow::Owned(expanded(schema, items)))
            }
        };
        let rows = shown.rows.iter().map(Vec::as_slice);
        let returned = esker_query::select(&items, &schema, rows, &self.options);
        let in_clause = |e: Error| match e.to_string().starts_with("SELECT: ") {
            true => e.in_clause("RETURNING", items.iter().map(|item| &item.expr)),
            false => e.at("RETURNING"),
        };
        returned.map(Some).map_err(|e| in_clause(e.into()))
    }
}

/// The version that a name begins with, unless a field is called so.
fn version_of(schema: &Schema, name: &str) -> Option<&'static str> {
    let version = VERSIONS.into_iter().find(|version| name.eq_ignore_ascii_case(version))?;
    schema.resolve(version).is_err().then_some(version)
}

fn names_version(schema: &Schema, expr: &Expr) -> bool {
    let is_version = match expr {
        Expr::Field(name) => name.split_once('.').and_then(|(first, _)| version_of(schema, first)),
        Expr::AllFields(table) => version_of(schema, table),
        _ => None,
    };
    is_version.is_some() || expr.operands().into_iter().any(|expr| names_version(schema, expr))
}

/// Items in which `*` is every field of the table, and of no version.
fn expanded(schema: &Schema, items: &[SelectItem]) -> Vec<SelectItem> {
    let fields = |prefix: String| {
        let name = move |field: &esker_format::Field| format!("{prefix}{}", field.name);
        let item = |name| SelectItem { expr: Expr::Field(name), alias: None };
        schema.fields().iter().map(name).map(item)
    };
    let mut all = Vec::new();
    for item in items {
        match &item.expr {
            Expr::AllFields(table) => match version_of(schema, table) {
                Some(version) => all.extend(fields(format!("{version}."))),
                None if table.is_empty() => all.extend(fields(String::new())),
                None => all.push(item.clone()),
            },
            _ => all.push(item.clone()),
        }
    }
    all
}
