//! Changes of rows, as every protocol and binding says them.

use serde::{Deserialize, Serialize};

use super::{Expr, Join, Merge, OrderBy, Query, RowCount, SelectItem};

/// A change of the rows of one table: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Add rows.
    Insert(Insert),
    /// Change fields of the rows that match.
    Update(Update),
    /// Remove the rows that match.
    Delete(Delete),
    /// Change, remove and add rows beside those of a source.
    Merge(Box<Merge>),
}

/// Rows to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// The table's name.
    pub table: String,
    /// The fields that the rows have values for; empty for every field, in their order. The
    /// others, and all fields of a row of no values, have their defaults.
    #[serde(default)]
    pub fields: Vec<String>,
    /// What becomes of values that are given to identities: without it a statement gives none to
    /// those that always take their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overriding: Option<Overriding>,
    /// The rows.
    pub rows: InsertRows,
    /// What happens when there is a row with the key of a new one.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// The fields by whose equality a conflict is meant, which have to be those of the primary
    /// key; empty without saying.
    #[serde(default)]
    pub conflict_key: Vec<String>,
    /// The expressions by whose equality, beside that of fields, a conflict is meant: those of a
    /// unique index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflict_expressions: Vec<Expr>,
    /// A condition that lets only rows pass that the unique index has, where that has not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_filter: Option<Expr>,
    /// What to answer of each row that was added or changed; an empty list for every field.
    #[serde(default)]
    pub returning: Option<Vec<SelectItem>>,
}

impl Insert {
    /// Rows of constant expressions for every field of a table.
    #[must_use]
    pub fn values(table: impl Into<String>, rows: Vec<Vec<Expr>>) -> Self {
        Self {
            table: table.into(),
            fields: Vec::new(),
            overriding: None,
            rows: InsertRows::Values(rows),
            on_conflict: OnConflict::Fail,
            conflict_key: Vec::new(),
            conflict_expressions: Vec::new(),
            conflict_filter: None,
            returning: None,
        }
    }
}

/// What an [`Insert`] does with values that it gives fields with a sequence of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overriding {
    /// They are taken, also by a field that always takes those of its sequence.
    System,
    /// They are passed over: the fields take values of their sequences.
    User,
}

/// Where the rows of an [`Insert`] come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertRows {
    /// Constant expressions, one list a row.
    Values(Vec<Vec<Expr>>),
    /// The answer to a query.
    Query(Box<Query>),
}

/// What happens to a row whose key exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The statement fails.
    #[default]
    Fail,
    /// The new row is left out.
    Skip,
    /// The new row replaces the old one.
    Replace,
    /// The old row is changed.
    Update(ConflictUpdate),
}

/// New values for some fields of a row whose key a new row has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictUpdate {
    /// Fields and their new values, computed from the old row and from the new one, whose fields
    /// are called `excluded.field`.
    pub set: Vec<(String, Expr)>,
    /// Whether the old row is changed; else the new row is left out.
    #[serde(default)]
    pub filter: Option<Expr>,
}

/// New values for some fields of the rows that match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Update {
    /// The table's name.
    pub table: String,
    /// What the table is called within the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Fields and their new values, computed from the row as it was, and from what is joined to it.
    pub set: Vec<(String, Expr)>,
    /// What is read beside it: `UPDATE … FROM`. A row that matches several others is changed once,
    /// and has to get the same values of each. There is no order and no limit then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<Join>,
    /// Which rows; `None` for all.
    pub filter: Option<Expr>,
    /// Which rows come first, for the limit.
    pub order_by: Vec<OrderBy>,
    /// The most rows to change.
    pub limit: Option<RowCount>,
    /// What to answer of each row as it is then; an empty list for every field.
    pub returning: Option<Vec<SelectItem>>,
}

/// The rows to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delete {
    /// The table's name.
    pub table: String,
    /// What the table is called within the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What is read beside it: `DELETE … USING`. There is no order and no limit then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<Join>,
    /// Which rows; `None` for all.
    pub filter: Option<Expr>,
    /// Which rows come first, for the limit.
    pub order_by: Vec<OrderBy>,
    /// The most rows to remove.
    pub limit: Option<RowCount>,
    /// What to answer of each row as it was; an empty list for every field.
    pub returning: Option<Vec<SelectItem>>,
    /// Whether the rows are to go from all files, too: `DELETE … ERASE`, which answers what was
    /// erased in place of rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub erase: bool,
}
