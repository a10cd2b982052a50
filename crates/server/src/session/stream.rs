//! Answers of any size, some thousand rows at a time.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use esker::{Batch, QueryOptions, Snapshot};
use esker_query::{AnswerSink, Query, ResultColumn};
use esker_sql::Statement;

use super::statement::needs;
use super::{Answer, Request, Session};
use crate::Result;

/// Takes the rows of an answer.
pub trait RowSink {
    /// Called before all else by a statement that has changed something.
    fn changed(&mut self) {}
    /// The columns, once, before all rows.
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()>;
    /// Some rows; breaks when no more are wanted.
    fn rows(&mut self, batch: &Batch) -> ControlFlow<()>;
}

impl Session {
    /// As [`Session::run`], but rows are handed over as they are found: an answer of any size
    /// takes little memory. What is returned has no rows then: [`Answer::Changed`] has how many
    /// the statement changed.
    ///
    /// # Errors
    /// As for [`Session::run`]; some rows may have been handed over then.
    pub fn stream(&mut self, request: Request, sink: &mut dyn RowSink) -> Result<Answer> {
        let in_flight = self.begin(&request);
        let answer = self.stream_request(request, sink);
        self.cancel.0.store(false, Ordering::Relaxed);
        self.finish(in_flight, answer.is_ok());
        answer
    }

    fn stream_request(&mut self, request: Request, sink: &mut dyn RowSink) -> Result<Answer> {
        let answer = match request {
            Request::Sql { text, parameters } => {
                let statement = text.statement_for(&parameters)?;
                let resolved = self.sql.resolved(statement)?;
                if let Statement::Query(query) = &*resolved {
                    let (level, table) = needs(&resolved);
                    self.access.expect(level, table)?;
                    self.expect_files(&resolved)?;
                    let options = self.change_options(parameters, text.semantics()).for_query();
                    let _permit = self.access.begin_query()?;
                    let snapshot = self.scope().snapshot_for(query)?;
                    return stream(&snapshot, query, &options, sink);
                }
                drop(resolved);
                self.do_request(Request::Sql { text, parameters })?
            }
            Request::Query { json } => {
                let query = self.parse_query(&json)?;
                if !query.is_page() && !query.is_explain()? {
                    let options = self.query_options(&query)?;
                    let (snapshot, bound) = self.bound(&query)?;
                    let _permit = self.access.begin_query()?;
                    return stream(&snapshot, &bound, &options, sink);
                }
                self.act(|session| {
                    let _permit = session.access.begin_query()?;
                    session.query(&query)
                })?
            }
            request => self.do_request(request)?,
        };
        let Answer::Result { result, changed } = answer else { return Ok(answer) };
        if changed > 0 {
            sink.changed();
        }
        if sink.columns(&result.columns).is_continue() {
            let _ = result.batches.iter().try_for_each(|batch| sink.rows(batch));
        }
        Ok(Answer::Changed(changed))
    }
}

fn stream(
    snapshot: &Snapshot,
    query: &Query,
    options: &QueryOptions,
    sink: &mut dyn RowSink,
) -> Result<Answer> {
    snapshot.stream_into(query, options, &mut Streamed(sink))?;
    Ok(Answer::Changed(0))
}

/// A sink of a session as one of a query.
struct Streamed<'s>(&'s mut dyn RowSink);

impl AnswerSink for Streamed<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.0.columns(columns)
    }

    fn rows(&mut self, batch: Batch) -> esker_query::Result<ControlFlow<()>> {
        Ok(self.0.rows(&batch))
    }
}
