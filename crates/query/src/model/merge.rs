//! `MERGE`: the rows of a table brought in line with those of another.

use serde::{Deserialize, Serialize};

use super::{Expr, Overriding, Relation, SelectItem};

/// What becomes of the rows of a table beside those of a source, in one commit.
///
/// ```
/// use esker_query::model::{Expr, Merge, MergeAction, MergeClause, MergeWhen, Operator, Relation};
///
/// let merge = Merge {
///     table: "stock".into(),
///     source: Relation::table("deliveries").aliased("d"),
///     on: Expr::field("stock.item").binary(Operator::Eq, Expr::field("d.item")),
///     clauses: vec![MergeClause {
///         when: MergeWhen::NotMatched,
///         filter: None,
///         action: MergeAction::Insert {
///             fields: Vec::new(),
///             overriding: None,
///             values: vec![Expr::field("d.item")],
///         },
///     }],
///     ..Merge::default()
/// };
/// assert_eq!(merge.clauses.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The table's name.
    pub table: String,
    /// What the table is called within the statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The rows it is compared with.
    pub source: Relation,
    /// Which rows of the two match. A row of the table that is changed matches one at most.
    pub on: Expr,
    /// What happens: of those that are for a row, the first whose condition holds.
    pub clauses: Vec<MergeClause>,
    /// What to answer of each row as it is then; an empty list for every field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returning: Option<Vec<SelectItem>>,
}

impl Default for Merge {
    fn default() -> Self {
        Self {
            table: String::new(),
            alias: None,
            source: Relation::default(),
            on: Expr::literal(true),
            clauses: Vec::new(),
            returning: None,
        }
    }
}

/// What happens to some rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeClause {
    /// To which.
    pub when: MergeWhen,
    /// To which of these; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Expr>,
    /// What.
    pub action: MergeAction,
}

/// Which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeWhen {
    /// Rows of the table that match one of the source.
    Matched,
    /// Rows of the source that match none of the table.
    NotMatched,
    /// Rows of the table that match none of the source.
    NotMatchedBySource,
}

/// What happens to a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeAction {
    /// Nothing; clauses behind this one are not for it.
    Nothing,
    /// A row of the table is removed.
    Delete,
    /// Fields of a row of the table get new values.
    Update(Vec<(String, Expr)>),
    /// A row is added for one of the source.
    Insert {
        /// The fields that have values; empty for every field.
        fields: Vec<String>,
        /// What becomes of values that are given to identities.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overriding: Option<Overriding>,
        /// The values, of the source's fields.
        values: Vec<Expr>,
    },
}
