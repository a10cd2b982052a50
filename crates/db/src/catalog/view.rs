//! Views as programs make and see them.

use esker_format::DataType;
use esker_query::{Query, Semantics};
use serde::{Deserialize, Serialize};

use crate::catalog::defined_view::DefinedView;
use crate::catalog::kept_for::KeptFor;
use crate::catalog::names::Names;
use crate::catalog::rollup_history;
use crate::read::tables::OtherTables;
use crate::{Database, Result, Transaction};

/// How a view is made.
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    /// What its first columns are called; the others as the query calls them.
    pub columns: Vec<String>,
    /// Whether it takes the place of a view of its name. Columns that other views read stay.
    pub or_replace: bool,
    /// Where NULLs go in its orders and what its divisions by zero are: it keeps that, whatever
    /// the statement chooses that reads it.
    pub semantics: Semantics,
    /// The query as it was written, to be shown; without it, as the query model writes it.
    pub text: Option<String>,
    /// Of a rollup of a stream: what its groups came to is kept when events end, for so long.
    pub history: Option<KeptFor>,
    /// Tables of all that a temporary view reads, by names with their schema before them.
    #[doc(hidden)]
    pub others: Option<OtherTables>,
}

/// A view, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewInfo {
    /// Its name.
    pub name: String,
    /// The query as it was written.
    pub query: String,
    /// Its columns, in order.
    pub columns: Vec<ViewColumnInfo>,
    /// The tables and views that it reads by themselves, sorted.
    pub reads: Vec<String>,
    /// What is as chosen when it was made, as names and values.
    pub settings: Vec<(String, String)>,
    /// Whether it is a rollup, which SQL calls a materialized view.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rollup: bool,
    /// For how long what its groups came to is kept when events end: a length of time, or
    /// `forever`; `None`: it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewColumnInfo {
    /// Its name.
    pub name: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub data_type: String,
}

impl ViewInfo {
    pub(crate) fn of(names: &Names, name: &str, view: &DefinedView) -> Self {
        let history = rollup_history::of(names, name).filter(|_| view.stored.is_rollup);
        let retention = history.and_then(|core| rollup_history::kept_text(&core.schema()).ok());
        let stored = &view.stored;
        let column = |column: &esker_format::ViewColumn| ViewColumnInfo {
            name: column.name.clone(),
            data_type: column.data_type.to_string(),
        };
        Self {
            name: name.to_owned(),
            query: stored.text.clone(),
            columns: stored.columns.iter().map(column).collect(),
            reads: stored.inputs.iter().map(|input| input.name.clone()).collect(),
            settings: stored.settings.clone(),
            is_rollup: stored.is_rollup,
            retention,
        }
    }
}

impl ViewColumnInfo {
    /// Its type.
    ///
    /// # Errors
    /// None for what a database tells.
    pub fn parsed_type(&self) -> Result<DataType> {
        Ok(self.data_type.parse()?)
    }
}

impl Database {
    /// Creates a view: a query that is read by its name as a table is. It means what it meant when
    /// it was made: fields that its tables get later are not in it, and what would change it is
    /// refused.
    ///
    /// ```
    /// use esker::{DataType, Options, Query, Schema, Value};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("name", DataType::Text).field("age", DataType::U8);
    /// let people = db.create_table("people", schema.build()?)?;
    /// people.insert(&["Ada".into(), 36u8.into()])?;
    /// people.insert(&["Max".into(), 9u8.into()])?;
    /// let mut adults = Query::table("people");
    /// adults.filter = Some(Expr::field("age").binary(Operator::Gte, Expr::literal(18i64)));
    /// db.create_view("adults", &adults)?;
    /// let rows = db.query(&Query::table("adults"))?.to_rows();
    /// assert_eq!(rows, [[Value::from("Ada"), Value::Uint(36)]]);
    /// let refused = db.drop_table("people").unwrap_err().to_string();
    /// assert!(refused.starts_with("table \"people\": view \"adults\" reads it"), "{refused}");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when a table, bucket or view has the name; `InvalidInput` for a bad name, a
    /// query that cannot be answered or has parameters, and two columns of one name; `NotFound`
    /// for an unknown table.
    pub fn create_view(&self, name: &str, query: &Query) -> Result<()> {
        self.create_view_with(name, query, &ViewOptions::default())
    }

    /// The same with names for its columns, settings, or in place of another view.
    ///
    /// # Errors
    /// As for [`Database::create_view`]; `InvalidInput` when another view reads a column that
    /// would go or have another type, or the view would read itself.
    pub fn create_view_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()> {
        Transaction::run(self.engine(), |within| within.create_view_with(name, query, options))
    }

    /// Sets for how long the history of a rollup is kept: one that was made with
    /// [`ViewOptions::history`].
    ///
    /// # Errors
    /// `NotFound` when there is no such rollup; `InvalidInput` when it has no history, or one whose
    /// groups have no time, or for a time that is shorter than that of the events; those of a
    /// commit.
    pub fn set_rollup_retention(&self, name: &str, kept: KeptFor) -> Result<()> {
        Transaction::run(self.engine(), |within| within.set_rollup_retention(name, kept))
    }

    /// Creates a rollup: a view of the groups of one table whose answer can be put together from
    /// partial aggregates of parts of the table. It is read by its name, and is right at every
    /// commit.
    ///
    /// Its query has keys and aggregates: `SELECT keys, aggregates FROM table [WHERE …] GROUP BY
    /// keys`. Keys are fields, JSON paths, and `date_trunc` and `time_bucket` of a field;
    /// aggregates are count, sum, avg, min and max of fields, sum and avg not of floats. What is
    /// in WHERE depends on the row alone.
    ///
    /// ```
    /// use esker::{DataType, Options, Query, Schema, Value};
    /// use esker_query::model::Expr;
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("model", DataType::Text).field("cost", DataType::I64);
    /// let events = db.create_table("events", schema.build()?)?;
    /// let mut spend = Query::table("events");
    /// spend.select(Expr::field("model")).select(Expr::count());
    /// spend.group_by = vec![Expr::field("model")];
    /// db.create_rollup("spend", &spend)?;
    /// events.insert(&["small".into(), 3i64.into()])?;
    /// events.insert(&["small".into(), 4i64.into()])?;
    /// let rows = db.query(&Query::table("spend"))?.to_rows();
    /// assert_eq!(rows, [[Value::from("small"), Value::Int(2)]]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::create_view`]; `InvalidInput` with the part of the query that does not
    /// fit.
    pub fn create_rollup(&self, name: &str, query: &Query) -> Result<()> {
        self.create_rollup_with(name, query, &ViewOptions::default())
    }

    /// The same with names for its columns, settings, or in place of another rollup.
    ///
    /// # Errors
    /// As for [`Database::create_rollup`] and [`Database::create_view_with`].
    pub fn create_rollup_with(
        &self,
        name: &str,
        query: &Query,
        options: &ViewOptions,
    ) -> Result<()> {
        Transaction::run(self.engine(), |within| within.create_rollup_with(name, query, options))
    }

    /// Removes a rollup.
    ///
    /// # Errors
    /// As for [`Database::drop_view`]; `InvalidInput` when it is a view that is no rollup.
    pub fn drop_rollup(&self, name: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.drop_rollup(name))
    }

    /// Removes a view.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` when a table or a rollup has the name, or
    /// another view reads it.
    pub fn drop_view(&self, name: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.drop_view(name))
    }

    /// Gives a view or a rollup another name.
    ///
    /// # Errors
    /// As for [`Database::drop_view`]; `AlreadyExists` when the new name is taken.
    pub fn rename_view(&self, from: &str, to: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.rename_view(from, to))
    }

    /// The views, by name, with the rollups among them.
    #[must_use]
    pub fn views(&self) -> Vec<ViewInfo> {
        let names = self.engine().names_now();
        names.views.iter().map(|(name, view)| ViewInfo::of(&names, name, view)).collect()
    }
}
