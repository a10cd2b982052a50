//! Doing what a client asks.

use std::sync::atomic::Ordering;

use esker::{Semantics, TransactionOptions};
use esker_sql::{Statement, TransactionStatement};
use tokio::time::Instant;

use super::{Answer, Request, Session};
use crate::Result;
use crate::tenant::QueryPermit;

impl Session {
    /// Does a request. The answer is durable as the database says, so that this may
    /// wait for the disk.
    ///
    /// # Errors
    /// What was expected, and where; nothing was changed unless the code is `outcome_unknown`.
    pub fn run(&mut self, request: Request) -> Result<Answer> {
        let in_flight = self.begin(&request);
        let answer = self.do_request(request);
        self.finish(in_flight, answer.is_ok());
        answer
    }

    pub(super) fn do_request(&mut self, request: Request) -> Result<Answer> {
        if request == Request::Rollback {
            // A late cancel is of what it takes back: the transaction would stay.
            self.cancel.0.store(false, Ordering::Relaxed);
        }
        self.act(|session| session.answer(request))
    }

    /// Does something within the limits of a request.
    pub(super) fn act(&mut self, act: impl FnOnce(&mut Self) -> Result<Answer>) -> Result<Answer> {
        let answer = self.expect_wanted().and_then(|()| {
            self.began = self.limits.timeout.map(|_| Instant::now());
            self.begin_answer();
            act(self)
        });
        self.began = None;
        self.release_room();
        self.cancel.0.store(false, Ordering::Relaxed);
        answer
    }

    fn answer(&mut self, request: Request) -> Result<Answer> {
        let _permit = self.query_permit(&request)?;
        match request {
            Request::Ping => Ok(Answer::Done),
            Request::Tables => self.tables(),
            Request::Schema { table } => self.schema(&table),
            Request::Get { table, keys } => self.get(&table, keys),
            Request::Exists { table, keys } => self.exists(&table, keys),
            Request::Insert { table, rows, conflict } => self.insert(&table, rows, conflict),
            Request::Update { table, key, fields } => self.update(&table, key, fields),
            Request::UpdateMany { table, updates } => self.update_many(&table, updates),
            Request::Delete { table, keys } => self.delete(&table, keys),
            Request::Sql { text, parameters } => {
                let semantics = text.semantics();
                self.execute(text.statement_for(&parameters)?, parameters, semantics)
            }
            Request::Query { json } => self.query(&self.parse_query(&json)?),
            Request::Explain { json } => self.explain(&self.parse_query(&json)?),
            Request::Begin { isolation, read_only } => {
                let options = TransactionOptions::new().isolation(isolation).read_only(read_only);
                self.transact(TransactionStatement::Begin(options))
            }
            Request::Commit => self.transact(TransactionStatement::Commit),
            Request::Rollback => self.transact(TransactionStatement::Rollback),
            Request::Buckets => self.buckets(),
            Request::BucketGet { bucket, keys } => self.bucket_get(&bucket, &keys),
            Request::BucketPut { bucket, entries, expiry } => {
                self.bucket_put(&bucket, &entries, expiry)
            }
            Request::BucketRemove { bucket, keys } => self.bucket_remove(&bucket, &keys),
            Request::BucketIncrement { bucket, key, by } => {
                self.bucket_increment(&bucket, &key, by)
            }
            Request::BucketRange { bucket, range } => self.bucket_range(&bucket, &range),
            Request::Admin(task) => self.administer(task),
        }
    }

    /// A place among the queries that run, for what may take long.
    fn query_permit(&self, request: &Request) -> Result<Option<QueryPermit>> {
        match request {
            Request::Sql { .. } | Request::Query { .. } | Request::Explain { .. } => {
                self.access.begin_query()
            }
            _ => Ok(None),
        }
    }

    fn transact(&mut self, statement: TransactionStatement) -> Result<Answer> {
        // The rights of what is done within are checked one by one.
        let options = self.change_options(Vec::new(), Semantics::default());
        self.sql.run(&Statement::Transaction(statement), &options)?;
        Ok(Answer::Done)
    }
}
