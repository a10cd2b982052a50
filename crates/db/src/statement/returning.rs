//! What a statement answers of the rows that it changes: as they are then (or were, if they are
//! removed), by `old` and `new` as they were and are, and what it has read beside them.

use std::borrow::Cow;

use esker_format::{Schema, Value};
use esker_query::QueryResult;
use esker_query::model::{Expr, Function, SelectItem};

use super::StatementRun;
use super::assignment::part_of;
use super::beside::Beside;
use crate::{Error, Result};

/// What there is of a row before and after a statement, as items name it.
const VERSIONS: [&str; 2] = ["old", "new"];

/// Rows that are answered.
#[derive(Debug, Default)]
pub(super) struct Shown {
    is_asked: bool,
    /// Those that are shown beside the row.
    versions: Vec<&'static str>,
    /// Columns of other tables, behind these.
    beside: Beside,
    rows: Vec<Vec<Value>>,
}

impl Shown {
    /// None so far, for what is wanted.
    pub fn new(schema: &Schema, items: Option<&[SelectItem]>) -> Self {
        Self::beside(schema, items, &Beside::default())
    }

    /// The same with columns of other tables.
    pub fn beside(schema: &Schema, items: Option<&[SelectItem]>, beside: &Beside) -> Self {
        let known = Known { schema, beside };
        let are_named = items.into_iter().flatten().any(|item| known.names_version(&item.expr));
        let is_free = |name: &&str| are_named && known.version_of(name).is_some();
        let versions = VERSIONS.into_iter().filter(is_free).collect();
        let (is_asked, beside) = (items.is_some(), beside.clone());
        Self { is_asked, versions, beside, rows: Vec::new() }
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
        self.add_beside(old, new, &[]);
    }

    /// The same beside the values of its match.
    pub fn add_beside(&mut self, old: Option<&[Value]>, new: Option<&[Value]>, found: &[Value]) {
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
        values.extend(self.beside.values(found).cloned());
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
        let beside = &shown.beside;
        let columns = beside.columns.iter().map(|column| (column.name.as_str(), column.data_type));
        let (schema, items) = match (shown.versions.as_slice(), beside.columns.as_slice()) {
            ([], []) => (Cow::Borrowed(schema), Cow::Borrowed(items)),
            (versions, _) => {
                let extended = match versions {
                    [] => schema.clone(),
                    versions => schema.with_fields_of(versions, "RETURNING")?,
                };
                let extended = extended.with_columns(columns, "RETURNING")?;
                let known = Known { schema, beside };
                let items = expanded(known, items).map_err(|e| e.at("RETURNING"))?;
                (Cow::Owned(extended), Cow::Owned(items))
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

/// What names may mean.
#[derive(Clone, Copy)]
struct Known<'k> {
    schema: &'k Schema,
    beside: &'k Beside,
}

impl Known<'_> {
    /// The version that a name begins with, unless a field or a table is called so.
    fn version_of(self, name: &str) -> Option<&'static str> {
        let version = VERSIONS.into_iter().find(|version| name.eq_ignore_ascii_case(version))?;
        let is_free = self.schema.resolve(version).is_err() && !self.beside.has_table(version);
        is_free.then_some(version)
    }

    fn names_version(self, expr: &Expr) -> bool {
        let is_version = match expr {
            Expr::Field(name) => name.split_once('.').and_then(|(first, _)| self.version_of(first)),
            Expr::AllFields(table) => self.version_of(table),
            _ => None,
        };
        is_version.is_some() || expr.operands().into_iter().any(|expr| self.names_version(expr))
    }
}

/// Items in which `*` is every field of the table and of those beside it, and of no version.
fn expanded(known: Known<'_>, items: &[SelectItem]) -> Result<Vec<SelectItem>> {
    let Known { schema, beside } = known;
    let fields = |prefix: &str| -> Vec<SelectItem> {
        let name = |field: &esker_format::Field| format!("{prefix}{}", field.name);
        let item = |name| SelectItem { expr: Expr::Field(name), alias: None };
        schema.fields().iter().map(name).map(item).collect()
    };
    let mut all = Vec::new();
    for item in items {
        let Expr::AllFields(table) = &item.expr else {
            all.push(named(known, item)?);
            continue;
        };
        let others = beside.columns.iter().filter_map(|column| {
            let (of, own) = column.name.split_once('.')?;
            let is_meant = table.is_empty() || of.eq_ignore_ascii_case(table);
            let expr = Expr::field(&column.name);
            is_meant.then(|| SelectItem { expr, alias: Some(own.to_owned()) })
        });
        let is_target = table.is_empty() || beside.target.eq_ignore_ascii_case(table);
        let before = all.len();
        match known.version_of(table) {
            Some(version) => all.extend(fields(&format!("{version}."))),
            None if is_target => all.extend(fields("")),
            None => {}
        }
        all.extend(others);
        if all.len() == before {
            all.push(item.clone());
        }
    }
    Ok(all)
}

/// An item whose names are those of the fields that are shown.
fn named(known: Known<'_>, item: &SelectItem) -> Result<SelectItem> {
    let Known { schema, beside } = known;
    if beside.columns.is_empty() {
        return Ok(item.clone());
    }
    let alias = item.alias.clone().or_else(|| match &item.expr {
        Expr::Field(name) => {
            // default: it is the column's own name
            let own = name.rsplit_once('.').map_or(name.as_str(), |(_, own)| own);
            // A column that is called by a table and itself is shown by the latter.
            known.version_of(name.split('.').next()?).is_none().then(|| own.to_owned())
        }
        _ => None,
    });
    let mut expr = item.expr.clone();
    name_fields(schema, &mut expr, beside)?;
    Ok(SelectItem { expr, alias })
}

fn name_fields(schema: &Schema, expr: &mut Expr, beside: &Beside) -> Result<()> {
    if let Expr::Field(name) = expr {
        let is_field = schema.resolve(name).is_ok();
        let own = name.split_once('.').filter(|(of, _)| of.eq_ignore_ascii_case(&beside.target));
        if let Some(full) = beside.find(name, is_field)? {
            *expr = Expr::field(full);
        } else if let Some((_, own)) = own.filter(|_| !is_field) {
            // A path within a field is not to be taken for a field of another table.
            let path = part_of(schema, &Expr::field(own), Function::JsonText);
            // default: it is a field, or no name at all
            *expr = path.unwrap_or_else(|| Expr::field(own));
        }
        return Ok(());
    }
    expr.operands_mut().into_iter().try_for_each(|expr| name_fields(schema, expr, beside))
}
