//! What a statement reads beside the table that it changes: `UPDATE … FROM`, `DELETE … USING`.
//!
//! The query that finds the rows is a join then, and a row may match several others:
//!
//! ```text
//! row id, key │ values to set │ mark u │ fields of u │ mark w │ fields of w
//! ```
//!
//! Each row is changed once. Matches that set it to different values are refused, since which of
//! them counts would depend on the plan. What RETURNING shows of the others is the least of the
//! matches.

use esker_format::Value;
use esker_query::ResultColumn;
use esker_query::model::{Expr, Join, Relation, SelectItem};

use crate::{Error, Result};

/// What the columns are called that stand before those of a table: this, and the table's name.
const MARK: &str = "\0of ";

/// A field of the table that is changed, as an expression beside other tables.
pub(super) fn field_of(target: &str, joins: &[Join], field: &str) -> Expr {
    match joins {
        [] => Expr::field(field),
        _ => Expr::Field(format!("{target}.{field}")),
    }
}

/// Items that show every field of what is joined, each table's behind its mark.
pub(super) fn items(joins: &[Join]) -> Vec<SelectItem> {
    let mut names = Vec::new();
    joins.iter().for_each(|join| collect_names(join, &mut names));
    let of_table = |name: String| {
        let mark = Some(format!("{MARK}{name}"));
        let fields = SelectItem { expr: Expr::AllFields(name), alias: None };
        [SelectItem { expr: Expr::literal(true), alias: mark }, fields]
    };
    names.into_iter().flat_map(of_table).collect()
}

fn collect_names(join: &Join, names: &mut Vec<String>) {
    if join.kind.shows_right() {
        collect_own(&join.relation, names);
    }
}

fn collect_own(relation: &Relation, names: &mut Vec<String>) {
    names.push(relation.name().to_owned());
    relation.joins.iter().for_each(|join| collect_names(join, names));
}

/// The columns of other tables that a statement may show.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// What the table is called that is changed.
    pub target: String,
    /// The columns, each by its table's name and its own: `u.name`.
    pub columns: Vec<ResultColumn>,
    /// Where they are among the values of a match.
    places: Vec<usize>,
}

impl Beside {
    /// Of the columns of matches, the key left out.
    pub fn of(target: &str, values: &[ResultColumn]) -> Self {
        let mut beside = Self { target: target.to_owned(), ..Self::default() };
        let mut table = None;
        for (place, column) in values.iter().enumerate() {
            if let Some(name) = column.name.strip_prefix(MARK) {
                table = Some(name);
            } else if let Some(table) = table {
                let name = format!("{table}.{}", column.name);
                beside.columns.push(ResultColumn { name, data_type: column.data_type });
                beside.places.push(place);
            }
        }
        beside
    }

    /// Whether a table goes by a name, of those that are read beside the one that is changed, or
    /// that one beside others.
    pub fn has_table(&self, name: &str) -> bool {
        let mut tables = self.columns.iter().filter_map(|column| column.name.split_once('.'));
        let is_target = !self.columns.is_empty() && self.target.eq_ignore_ascii_case(name);
        is_target || tables.any(|(table, _)| table.eq_ignore_ascii_case(name))
    }

    /// Their values in a match.
    pub fn values<'v>(&self, values: &'v [Value]) -> impl Iterator<Item = &'v Value> {
        self.places.iter().filter_map(|place| values.get(*place))
    }

    /// The column that a name means, where it is no field of the table that is changed.
    ///
    /// # Errors
    /// `InvalidInput` when it may be several.
    pub fn find(&self, name: &str, is_field: bool) -> Result<Option<&str>> {
        let is_meant = |column: &&ResultColumn| {
            let own = column.name.split_once('.');
            own.is_some_and(|(_, own)| own.eq_ignore_ascii_case(name))
        };
        let mut found = self.columns.iter().filter(is_meant).map(|column| column.name.as_str());
        match (is_field, found.next(), found.next()) {
            (_, None, _) => Ok(None),
            (false, Some(one), None) => Ok(Some(one)),
            (true, Some(one), _) => Err(ambiguous(name, &format!("{}.{name}", self.target), one)),
            (false, Some(one), Some(other)) => Err(ambiguous(name, one, other)),
        }
    }
}

fn ambiguous(name: &str, one: &str, other: &str) -> Error {
    Error::invalid(format!("{name:?} is ambiguous: {one} or {other}"))
}

/// One match of each row, by row id: the least. The first of their values are what is set.
///
/// # Errors
/// `InvalidInput` when matches of a row set a field to different values.
pub(super) fn one_a_row(
    mut matches: Vec<Vec<Value>>,
    key_fields: &[&str],
    set: &[String],
) -> Result<Vec<Vec<Value>>> {
    matches.sort();
    let mut rows: Vec<Vec<Value>> = Vec::with_capacity(matches.len());
    for found in matches {
        let Some(before) = rows.last().filter(|before| before.first() == found.first()) else {
            rows.push(found);
            continue;
        };
        let values = before.iter().zip(&found).skip(1 + key_fields.len()).zip(set);
        for ((one, other), field) in values {
            if one != other {
                let key = described(before, key_fields);
                return Err(Error::invalid(format!(
                    "the row{key} matches several rows, which set {field:?} to {one} and to \
                     {other}: expected one match, or the same value of each"
                )));
            }
        }
    }
    Ok(rows)
}

/// The matches of rows that may have one each, by row id.
///
/// # Errors
/// `InvalidInput` when a row has several.
pub(super) fn expect_once(
    mut matches: Vec<Vec<Value>>,
    key_fields: &[&str],
) -> Result<Vec<Vec<Value>>> {
    matches.sort();
    let mut pairs = matches.windows(2);
    let twice = pairs.find_map(|pair| match pair {
        [one, other] => (one.first() == other.first()).then_some(one),
        _ => None,
    });
    match twice {
        None => Ok(matches),
        Some(row) => Err(Error::invalid(format!(
            "the row{} matches several rows of the source: expected one",
            described(row, key_fields)
        ))),
    }
}

/// The key of a match, behind a space; nothing of a row without one.
fn described(found: &[Value], key_fields: &[&str]) -> String {
    let key = found.iter().skip(1).zip(key_fields);
    let key: Vec<_> = key.map(|(value, name)| format!("{name} = {value}")).collect();
    if key.is_empty() { String::new() } else { format!(" {}", key.join(", ")) }
}
