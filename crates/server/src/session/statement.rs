//! Statements in SQL, and queries written as JSON.

use esker::{PageOptions, Query, QueryOptions, Semantics, Snapshot, Value};
use esker_query::json::JsonQuery;
use esker_query::model::{Change, Expr, InsertRows};
use esker_sql::{
    ChannelStatement, CopyStatement, CursorStatement, Explain, MaintenanceStatement,
    NamedStatement, Outcome, Statement,
};

use super::{Answer, Level, Session};
use crate::{Error, Result};

impl Session {
    /// Runs a statement that was read.
    pub(super) fn execute(
        &mut self,
        statement: &Statement,
        parameters: Vec<Value>,
        semantics: Semantics,
    ) -> Result<Answer> {
        let said = self.sql.meant(statement)?;
        let is_temporary = self.sql.is_of_temporary(said)?;
        if is_temporary {
            self.expect_lasting(said)?;
        }
        let meant = &*self.sql.resolved(said)?;
        let (level, table) = match is_temporary {
            // It changes nothing that others see, but sequences.
            true => (if takes_values(meant) { Level::Write } else { Level::Read }, None),
            false => needs(meant),
        };
        self.access.expect(level, table)?;
        self.expect_files(meant)?;
        // What a sequence gives to a prepared statement is not given out again.
        if let Statement::Named(NamedStatement::Execute { values, .. }) = statement
            && values.iter().any(Expr::takes_values)
        {
            self.access.expect(Level::Write, None)?;
        }
        match meant {
            _ if is_temporary => {}
            Statement::Change(Change::Insert(insert)) => {
                let rows = match &insert.rows {
                    InsertRows::Values(rows) => rows.len(),
                    // How many a query gives is known once it is done.
                    InsertRows::Query(_) => 1,
                };
                self.reserve_quota(rows, 0)?;
            }
            Statement::Change(Change::Update(_)) => self.reserve_quota(0, 0)?,
            // How many rows it adds is known once it is done.
            Statement::Change(Change::Merge(_))
            | Statement::CreateTableAs { .. }
            | Statement::Copy(CopyStatement::From { .. }) => {
                self.reserve_quota(1, 0)?;
            }
            _ => {}
        }
        let options = self.change_options(parameters, semantics);
        let outcome = self.sql.run(statement, &options)?;
        let changed = outcome.rows_changed();
        Ok(match outcome {
            Outcome::Rows(result) => Answer::Result { result, changed },
            Outcome::Plan(text) | Outcome::Done(text) => Answer::Text(text),
            other => match other.into_rows() {
                Some(result) => Answer::Result { result, changed },
                None => Answer::Changed(changed),
            },
        })
    }

    /// Refuses to read what lies beside a database, which is of the server, and what others do.
    pub(super) fn expect_files(&self, statement: &Statement) -> Result<()> {
        let query = match statement {
            Statement::Query(query)
            | Statement::QueryForUpdate(query)
            | Statement::Summarize(query)
            | Statement::Explain(Explain { query, .. }) => query,
            Statement::Cursor(CursorStatement::Declare { query, .. })
            | Statement::Copy(CopyStatement::To { query, .. }) => query,
            Statement::Change(Change::Insert(insert)) => match &insert.rows {
                InsertRows::Query(query) => query,
                InsertRows::Values(_) => return Ok(()),
            },
            _ => return Ok(()),
        };
        let mut names = std::collections::BTreeSet::new();
        query.collect_tables(&mut names);
        match names.iter().any(|name| is_of_server(name)) {
            true => self.access.expect(Level::Admin, None),
            false => Ok(()),
        }
    }

    /// Refuses temporary tables where the session ends with the request.
    pub(super) fn expect_lasting(&self, statement: &Statement) -> Result<()> {
        if !self.is_for_one_request || self.is_in_transaction() {
            return Ok(());
        }
        let what = match statement.said() {
            Statement::Temporary { .. } => "a temporary table or view",
            _ => "temporary tables and views",
        };
        Err(Error::invalid(format!(
            "{what}: they are a session's own, and this one ends with the request: use a \
             connection of the wire protocol, or a transaction of HTTP, until whose end they are \
             there"
        )))
    }

    pub(super) fn query(&self, query: &JsonQuery) -> Result<Answer> {
        if query.is_explain()? {
            return self.explain(query);
        }
        let options = self.query_options(query)?;
        if query.is_page() {
            let bound = self.scope().bind_json(query)?;
            let given = PageOptions::of_json(query)?;
            let QueryOptions { limits, semantics, .. } = options;
            let page = PageOptions { limits, semantics, ..given };
            return Ok(Answer::Page(self.scope().page(&bound, &page)?));
        }
        let (snapshot, bound) = self.bound(query)?;
        let result = snapshot.query_with(&bound, &options)?;
        Ok(Answer::Result { result, changed: 0 })
    }

    pub(super) fn explain(&self, query: &JsonQuery) -> Result<Answer> {
        let options = self.query_options(query)?;
        let (snapshot, bound) = self.bound(query)?;
        Ok(Answer::Text(snapshot.explain_with(&bound, &options)?.to_string()))
    }

    /// A query for its tables as they are now, and these.
    pub(super) fn bound(&self, query: &JsonQuery) -> Result<(Snapshot, Query)> {
        let snapshot = self.scope().snapshot_of(query.tables().into_iter().collect())?;
        let bound = snapshot.bind_json(query)?;
        Ok((snapshot, bound))
    }

    pub(crate) fn parse_query(&self, json: &str) -> Result<JsonQuery> {
        let query = JsonQuery::parse(json)?;
        for table in query.tables() {
            match is_of_server(&table) {
                false => self.access.expect(Level::Read, Some(table_read(&table)))?,
                true => self.access.expect(Level::Admin, None)?,
            }
        }
        Ok(query)
    }

    /// The limits of the session, or those of the query where it has lower ones.
    pub(super) fn query_options(&self, query: &JsonQuery) -> Result<QueryOptions> {
        let mut limits = self.limits();
        let least = |a: Option<usize>, b: Option<usize>| a.into_iter().chain(b).min();
        limits.timeout = limits.timeout.into_iter().chain(query.timeout()?).min();
        limits.memory_bytes = least(limits.memory_bytes, query.memory_limit_bytes()?);
        let semantics = query.semantics()?.or(self.sql.semantics());
        Ok(QueryOptions { limits, semantics, ..QueryOptions::default() })
    }
}

/// Whether rows that a statement makes have values of sequences.
fn takes_values(statement: &Statement) -> bool {
    match statement {
        Statement::Change(Change::Insert(insert)) => match &insert.rows {
            InsertRows::Values(rows) => rows.iter().flatten().any(Expr::takes_values),
            InsertRows::Query(query) => query.takes_values(),
        },
        Statement::CreateTableAs { query, .. } => query.takes_values(),
        _ => false,
    }
}

/// True for a table that is of the server: a file, or what its clients do.
fn is_of_server(table: &str) -> bool {
    let is_named = |name: &&str| table.eq_ignore_ascii_case(name);
    OF_ACTIVITY.iter().any(is_named) || esker::FileTable::named(table).is_some()
}

/// The tables about what clients do.
const OF_ACTIVITY: [&str; 2] = ["esker_sessions", "esker_slow_statements"];

/// The table whose rows a name of a table tells: changes of a table are read by who may read it.
fn table_read(name: &str) -> &str {
    // default: rows of the table of this name
    esker::ChangesTable::table_in(name).unwrap_or(name)
}

/// What a statement needs, and of which table where it is of one alone.
pub(super) fn needs(statement: &Statement) -> (Level, Option<&str>) {
    match statement {
        // What a sequence has given out is not given out again.
        Statement::Query(_) | Statement::Summarize(_) | Statement::Explain(_)
            if !statement.only_reads() =>
        {
            (Level::Write, None)
        }
        Statement::Query(query)
        | Statement::Summarize(query)
        | Statement::Explain(Explain { query, .. }) => {
            (Level::Read, query.is_plain().then_some(table_read(&query.table)))
        }
        Statement::Watch(watch) => (Level::Read, Some(&watch.query.table)),
        Statement::QueryForUpdate(query) => {
            (Level::Write, query.is_plain().then_some(query.table.as_str()))
        }
        // What it computes may read other tables.
        Statement::Change(_) => (Level::Write, None),
        Statement::Truncate { names, cascade: false, .. } => match names.as_slice() {
            [name] => (Level::Write, Some(name)),
            _ => (Level::Write, None),
        },
        Statement::Truncate { .. } | Statement::LockTable { .. } => (Level::Write, None),
        Statement::Cursor(CursorStatement::Declare { query, .. }) => match query.takes_values() {
            true => (Level::Write, None),
            false => (Level::Read, query.is_plain().then_some(table_read(&query.table))),
        },
        Statement::Transaction(_)
        | Statement::Setting(_)
        | Statement::Channel(ChannelStatement::Listen(_) | ChannelStatement::Unlisten(_))
        | Statement::Named(_)
        | Statement::Cursor(_)
        | Statement::Maintenance(MaintenanceStatement::Analyze(_)) => (Level::Read, None),
        Statement::Channel(_) => (Level::Write, None),
        Statement::Copy(copy) if copy.names_file() => (Level::Admin, None),
        Statement::Copy(CopyStatement::To { query, .. }) if query.takes_values() => {
            (Level::Write, None)
        }
        Statement::Copy(CopyStatement::To { .. }) => (Level::Read, None),
        Statement::Copy(CopyStatement::From { table, .. }) => (Level::Write, Some(table)),
        _ => (Level::Admin, None),
    }
}
