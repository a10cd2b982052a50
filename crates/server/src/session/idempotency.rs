//! Writes that are done once, however often they are sent.
//!
//! What was answered is put into a bucket of the same database, in the commit of the write: there
//! is no moment at which only one of the two is there.

use std::sync::Arc;

use esker::{
    Database, ERASURES, ErrorKind, Isolation, KeptEntry, PRODUCERS, PutOptions, Scope, Ttl,
};
use esker_log::sabotage::Bug;
use esker_sql::{CommentStatement, Commented, Statement};
use sha2::{Digest, Sha256};
use std::time::Duration;

use super::{Request, Session};
use crate::{Code, Error, Result};

/// The bucket that has what was answered.
pub(crate) const BUCKET: &str = "esker_idempotency";

/// Whether a table is the server's own: lists for people leave it out.
#[must_use]
pub fn is_internal(table: &str) -> bool {
    [BUCKET, PRODUCERS, ERASURES].contains(&table)
}
/// How often a write is begun again after a conflict.
const ATTEMPTS_MAX: usize = 32;

/// One write with a key.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    /// Of scope and key: no client meets another's.
    key: [u8; 32],
    /// Of the body and what else is part of the request: another with the same key is an error.
    body: [u8; 32],
    lifetime: Duration,
}

impl IdempotencyKey {
    /// A key for a request with a body; the scope has the token, and what kind of request it is.
    ///
    /// # Errors
    /// When the key is none.
    pub fn new(text: &str, scope: &[&[u8]], body: &[&[u8]], lifetime: Duration) -> Result<Self> {
        if text.is_empty() || text.len() > 255 {
            let found = text.len();
            let message = format!("idempotency-key: expected 1 to 255 characters, found {found}");
            return Err(Error::invalid(message));
        }
        let key = hash(&[scope, &[text.as_bytes()]].concat());
        Ok(Self { key, body: hash(body), lifetime })
    }

    /// The same for a body that comes in parts: what it is, is known at its end.
    ///
    /// # Errors
    /// When the key is none.
    pub fn of_parts(text: &str, scope: &[&[u8]], lifetime: Duration) -> Result<Self> {
        Self::new(text, scope, &[], lifetime)
    }

    /// Refuses what cannot be done once.
    ///
    /// # Errors
    /// Within a transaction, and for what begins or ends one, changes sequences, or looks after the
    /// database.
    pub fn expect_alone(session: &Session, request: &Request) -> Result<()> {
        let statement = match request {
            Request::Sql { text, .. } => Some(text.statement()?),
            _ => None,
        };
        let is_about_transactions =
            matches!(statement, Some(Statement::Transaction(_))) || request.is_about_transactions();
        if session.is_in_transaction() || is_about_transactions {
            let message =
                "idempotency-key: not within a transaction; its commit is done once anyway";
            return Err(Error::invalid(message));
        }
        if matches!(request, Request::Admin(_)) {
            return Err(Error::invalid("idempotency-key: not for what looks after a database"));
        }
        if let Some(
            Statement::CreateSequence { .. }
            | Statement::DropSequence { .. }
            | Statement::Restart(_)
            | Statement::Comment(CommentStatement { about: Commented::Sequence, .. }),
        ) = statement
        {
            let message = "idempotency-key: not for sequences, which are no part of transactions: \
                           expected IF NOT EXISTS or IF EXISTS in its place";
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    /// Does something in a transaction, together with keeping what it answers; or tells what was
    /// answered before.
    ///
    /// # Errors
    /// What doing it meets; when the key was used with another body.
    pub fn run(
        &self,
        session: &mut Session,
        act: impl Fn(&mut Session) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        retried(session, |session| {
            if let Some(kept) = self.find(session)? {
                return Ok(kept);
            }
            let answer = act(session)?;
            if Bug::IdempotencyKeptApart.is_planted() {
                session.run(Request::Commit)?;
                session.run(begin())?;
            }
            self.keep(session, &answer)?;
            Ok(answer)
        })
    }

    /// The same for a body that comes in parts, which cannot come again: it ends with `Conflict`
    /// where another client was quicker. `act` learns whether the key was used before: then nothing
    /// is to be done, but to take the body to its end.
    ///
    /// # Errors
    /// As for [`IdempotencyKey::run`]; `Conflict`.
    pub fn run_parts(
        mut self,
        session: &mut Session,
        act: impl FnOnce(&mut Session, bool) -> Result<(BodyHash, Vec<u8>)>,
    ) -> Result<Vec<u8>> {
        session.run(begin())?;
        let run = || {
            let is_kept = self.kept(session)?.is_some();
            let (body, answer) = act(session, is_kept)?;
            self.body = body.finish();
            let answer = match self.find(session)? {
                Some(kept) => kept,
                None => {
                    self.keep(session, &answer)?;
                    answer
                }
            };
            session.run(Request::Commit).map(|_| answer)
        };
        let done = run();
        if session.is_in_transaction() {
            session.run(Request::Rollback)?;
        }
        done
    }

    /// What was kept under the key, within the transaction of the session.
    fn kept(&self, session: &Session) -> Result<Option<Vec<u8>>> {
        let transaction = session.transaction().ok_or_else(no_transaction)?;
        match transaction.bucket(BUCKET) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            bucket => Ok(bucket?.get(self.key)?.map(|kept| kept.to_vec())),
        }
    }

    /// What was answered before, within the transaction of the session.
    fn find(&self, session: &Session) -> Result<Option<Vec<u8>>> {
        let Some(kept) = self.kept(session)? else { return Ok(None) };
        self.answer_of(kept).map(Some)
    }

    /// The answer that was kept of the same request.
    fn answer_of(&self, kept: Vec<u8>) -> Result<Vec<u8>> {
        match kept.split_at_checked(self.body.len()) {
            Some((body, answer)) if body == self.body => Ok(answer.to_vec()),
            Some(_) => {
                let message =
                    "idempotency-key: it was used with another body or other options before";
                Err(Error::invalid(message))
            }
            None => Err(Error::new(Code::Damaged, format!("bucket {BUCKET:?}: a short value"))),
        }
    }

    /// What was answered before of events, which are stored without a transaction; or the entry
    /// that goes into their commit, whose answer is made of what became of them.
    ///
    /// # Errors
    /// When the key was used with another body; what reading meets.
    pub fn beside(
        &self,
        database: &Database,
        answer: impl Fn(&[esker::Result<u64>]) -> esker::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Result<std::result::Result<Vec<u8>, KeptEntry>> {
        let bucket = database.bucket(BUCKET)?;
        if let Some(kept) = bucket.get(self.key)? {
            return self.answer_of(kept.to_vec()).map(Ok);
        }
        let body = self.body;
        let value =
            move |outcomes: &[esker::Result<u64>]| Ok([&body[..], &answer(outcomes)?].concat());
        let (kept, ttl) = ((self.key.to_vec(), None), Ttl::After(self.lifetime));
        Ok(Err(KeptEntry::new(bucket, kept, ttl, Arc::new(value))))
    }

    /// Keeps what is answered, in the same commit as the write, which makes the bucket if there is
    /// none: a write that is refused leaves nothing.
    fn keep(&self, session: &Session, answer: &[u8]) -> Result<()> {
        let transaction = session.transaction().ok_or_else(no_transaction)?;
        let value = [&self.body, answer].concat();
        let options = PutOptions::new().ttl(Ttl::After(self.lifetime));
        Ok(transaction.bucket_or_new(BUCKET)?.put(&self.key, &value, options)?)
    }
}

/// The hash of a body that comes in parts, however it is cut.
#[derive(Clone, Debug)]
pub(crate) struct BodyHash(Sha256);

impl BodyHash {
    /// Of what is known before the first part.
    pub fn new(head: &[&[u8]]) -> Self {
        Self(Sha256::new().chain_update(hash(head)))
    }

    /// Takes a part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

fn begin() -> Request {
    Request::Begin { isolation: Isolation::default(), read_only: false }
}

/// Does something in a transaction of its own, again when somebody else was quicker.
///
/// # Errors
/// What the last attempt met.
pub(crate) fn retried<R>(
    session: &mut Session,
    act: impl Fn(&mut Session) -> Result<R>,
) -> Result<R> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        session.run(begin())?;
        let done = act(session);
        let done = match done {
            Ok(done) => session.run(Request::Commit).map(|_| done),
            Err(e) => Err(e),
        };
        if session.is_in_transaction() {
            session.run(Request::Rollback)?;
        }
        match done {
            Err(e) if e.code() == Code::Conflict && attempt < ATTEMPTS_MAX => {}
            done => return done,
        }
    }
}

fn no_transaction() -> Error {
    Error::new(Code::Internal, "a write with a key outside of a transaction")
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
