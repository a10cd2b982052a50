//! One command: its arguments, its bucket, its answer.

use std::borrow::Cow;
use std::ops::Bound;
use std::time::Duration;

use esker::{Entries, ErrorKind, Moment, Transaction, TransactionBucket, Ttl};
use esker_log::sabotage::planted;
use tokio::time::Instant;

use super::protocol::integer;
use super::reply::Reply;
use super::state::State;
use crate::session::{Level, Session, unwanted};
use crate::{Code, Error};

/// The most bytes of one answer.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why a command was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// As it is sent.
    Text(Cow<'static, str>),
    /// What the server said, as it is sent.
    Server(Code, String),
    /// What the database said.
    Engine(esker::Error),
}

/// What came of a command; its answer has been written.
pub(super) type Outcome<R = ()> = Result<R, Failure>;

pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(super) const SYNTAX: &str = "ERR syntax error";

impl Failure {
    /// The code that is counted, and what a client gets.
    pub fn into_told(self) -> (Code, Cow<'static, str>) {
        match self {
            Self::Text(text) => (Code::InvalidRequest, text),
            Self::Server(code, text) => (code, text.into()),
            Self::Engine(e) => {
                let e = Error::from(e);
                (e.code(), told(&e).into())
            }
        }
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<esker::Error> for Failure {
    fn from(e: esker::Error) -> Self {
        Self::Engine(e)
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Server(e.code(), told(&e))
    }
}

fn told(e: &Error) -> String {
    let word = match e.code() {
        Code::Unauthenticated => "NOAUTH",
        Code::Forbidden => "NOPERM",
        Code::NoSpace => "OOM",
        Code::ReadOnly => "READONLY",
        Code::InvalidRequest if e.message().contains("expected a bucket") => "WRONGTYPE",
        _ => "ERR",
    };
    format!("{word} {}", e.message())
}

/// Entries that are read: of a bucket, of one within a transaction, or of one that is not there.
pub(super) enum View<'t> {
    Missing,
    Direct(esker::Bucket),
    Within(TransactionBucket<'t>),
}

impl View<'_> {
    /// What `take` makes of a value, which it sees where it lies.
    pub fn read<R>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(match self {
            Self::Missing => None,
            Self::Direct(bucket) => bucket.read(key, take)?,
            Self::Within(bucket) => bucket.get(key)?.map(|value| take(&value)),
        })
    }

    /// The date at which an entry expires, in microseconds since 1970; `Some(None)`: never.
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn end_date_us(&self, key: &[u8]) -> Outcome<Option<Option<i64>>> {
        if let Self::Within(bucket) = self {
            return Ok(bucket.get_with_expiry(key)?.map(|(_, end)| end));
        }
        let only = (Bound::Included(key.to_vec()), Bound::Included(key.to_vec()));
        let entry = self.range(only)?.and_then(|mut entries| entries.next()).transpose()?;
        Ok(entry.map(|entry| entry.expires_at_us()).transpose()?)
    }

    /// For how many microseconds an entry is still there; `Some(None)`: for good.
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn remaining_us(&self, key: &[u8]) -> Outcome<Option<Option<i64>>> {
        let us = |left: Duration| i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
        Ok(match self {
            Self::Missing => None,
            Self::Direct(bucket) => bucket.remaining(key)?.map(|left| left.map(us)),
            Self::Within(bucket) => {
                let left = |end: i64| end.saturating_sub(bucket.moment().date_us);
                bucket.get_with_expiry(key)?.map(|(_, end)| end.map(left))
            }
        })
    }

    pub fn range(&self, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Outcome<Option<Entries>> {
        Ok(match self {
            Self::Missing => None,
            Self::Direct(bucket) => Some(bucket.range(bounds)?),
            Self::Within(bucket) => Some(bucket.range(bounds)?),
        })
    }

    pub fn len(&self) -> Outcome<u64> {
        Ok(match self {
            Self::Missing => 0,
            Self::Direct(bucket) => bucket.len()?,
            Self::Within(bucket) => bucket.len()?,
        })
    }
}

/// A command that is done.
pub(super) struct Call<'c> {
    pub state: &'c mut State,
    pub arguments: &'c [Cow<'c, [u8]>],
    pub reply: &'c mut Reply,
    /// The transaction of an EXEC.
    pub within: Option<&'c Transaction>,
}

impl<'c> Call<'c> {
    /// An argument; 0 is the name of the command.
    pub fn argument(&self, position: usize) -> &'c [u8] {
        self.arguments.get(position).map_or(&[], |argument| argument)
    }

    /// Arguments from a position on.
    pub fn rest(&self, position: usize) -> &'c [Cow<'c, [u8]>] {
        self.arguments.get(position..).unwrap_or_default()
    }

    /// An argument that is one of some words, in capitals.
    pub fn word(&self, position: usize) -> String {
        String::from_utf8_lossy(self.argument(position)).to_ascii_uppercase()
    }

    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.argument(0)).to_ascii_lowercase()
    }

    pub fn integer(&self, position: usize) -> Outcome<i64> {
        integer(self.argument(position)).ok_or_else(|| NOT_AN_INTEGER.into())
    }

    pub fn wrong_count(&self) -> Failure {
        format!("ERR wrong number of arguments for '{}' command", self.name()).into()
    }

    pub fn session(&self) -> Outcome<&Session> {
        self.state.session.as_ref().ok_or_else(|| super::state::NO_AUTHENTICATION.into())
    }

    /// The moment at which entries have expired; that of an EXEC is fixed.
    pub fn moment(&self) -> Outcome<Moment> {
        Ok(match self.within {
            Some(transaction) => transaction.moment(),
            None => self.session()?.database().moment(),
        })
    }

    /// Refuses what would be more than there may be, or too long.
    pub fn reserve_quota(&self, entries: usize, bytes: usize) -> Outcome {
        Ok(self.session()?.reserve_quota(entries, bytes)?)
    }

    /// The bucket, to read.
    pub fn view(&self) -> Outcome<View<'c>> {
        self.view_of(self.state.bucket_name())
    }

    /// A bucket by its name, to read.
    pub fn view_of(&self, name: &str) -> Outcome<View<'c>> {
        let session = self.session()?;
        if let Some(transaction) = self.within {
            session.expect(Level::Read, Some(name))?;
            return match transaction.bucket(name) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(View::Missing),
                found => Ok(View::Within(found?)),
            };
        }
        match session.own_bucket(Level::Read, name) {
            Err(e) if e.code() == Code::NotFound => Ok(View::Missing),
            found => Ok(View::Direct(found?)),
        }
    }

    /// The bucket, to put into outside of a transaction; it is made when there is none.
    pub fn bucket_to_put(&self) -> Outcome<esker::Bucket> {
        Ok(self.session()?.own_bucket_to_put(self.state.bucket_name())?)
    }

    /// The bucket, to remove from outside of a transaction.
    pub fn bucket_there(&self) -> Outcome<Option<esker::Bucket>> {
        match self.session()?.own_bucket(Level::Write, self.state.bucket_name()) {
            Err(e) if e.code() == Code::NotFound => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Changes entries all at once: nothing comes between what is read and what is written. `None`
    /// when there is no bucket, and none is to be made. What fails with a text has changed nothing
    /// before.
    pub fn change<R>(
        &self,
        makes_bucket: bool,
        mut change: impl FnMut(&TransactionBucket<'_>) -> Outcome<R>,
    ) -> Outcome<Option<R>> {
        let name = self.state.bucket_name();
        if let Some(transaction) = self.within {
            self.session()?.expect(Level::Write, Some(name))?;
            return match transaction.bucket(name) {
                Err(e) if e.kind() == ErrorKind::NotFound && !makes_bucket => Ok(None),
                // It would have been made before, but for a right.
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    self.session()?.expect(Level::Admin, Some(name))?;
                    Err(e.into())
                }
                found => change(&found?).map(Some),
            };
        }
        if makes_bucket {
            self.bucket_to_put()?;
        } else if self.bucket_there()?.is_none() {
            return Ok(None);
        }
        let mut failed = None;
        let database = self.session()?.database();
        let changed =
            database.transact(|transaction| match change(&transaction.bucket(name)?) {
                Ok(result) => Ok(Some(result)),
                Err(Failure::Engine(e)) => Err(e),
                Err(text) => {
                    failed = Some(text);
                    Ok(None)
                }
            })?;
        match (changed, failed) {
            (None, Some(failed)) => Err(failed),
            (changed, _) => Ok(changed),
        }
    }

    /// Makes one value of another; it expires when that does.
    pub fn edit(
        &self,
        key: &[u8],
        edit: impl Fn(Option<&[u8]>) -> Outcome<Vec<u8>>,
    ) -> Outcome<Vec<u8>> {
        // Not by the bucket itself, which reads only what is on the disk.
        let edited = self.change(true, |bucket| {
            let found = bucket.get_with_expiry(key)?;
            let new = edit(found.as_ref().map(|(value, _)| value.as_slice()))?;
            let found = found.filter(|_| !planted("edit_forgets_end"));
            let ttl = found.map_or(Ttl::Default, |(_, end)| kept(end));
            bucket.put_with(key, &new, ttl)?;
            Ok(new)
        })?;
        Ok(edited.unwrap_or_default())
    }

    /// Refuses a value that the answer has no room for. What changes entries asks before.
    pub fn expect_small(&self, value: &[u8]) -> Outcome {
        Ok(self.session()?.take_answer(value.len())?)
    }

    /// Tells a value, where the answer has room for it.
    pub fn tell(&mut self, value: &[u8]) -> Outcome {
        self.expect_small(value)?;
        self.reply.bulk(value);
        Ok(())
    }

    /// Tells the value of a key, or that there is none.
    pub fn tell_found(&mut self, found: Option<Outcome>) -> Outcome {
        found.unwrap_or_else(|| {
            self.reply.null();
            Ok(())
        })
    }
}

/// The end of an entry that is written again.
pub(super) fn kept(end: Option<i64>) -> Ttl {
    end.map_or(Ttl::Never, Ttl::At)
}

/// Looks now and then whether a command of many keys is wanted still, and how long it takes.
pub(super) struct Pace {
    began: Instant,
    looked: usize,
}

impl Pace {
    /// Keys between two looks.
    const LOOKED_BETWEEN: usize = 256;

    pub fn begin() -> Self {
        Self { began: Instant::now(), looked: 0 }
    }

    /// Before another key.
    ///
    /// # Errors
    /// That the command was cancelled, or takes longer than a statement may: an error of the
    /// database, so that a transaction it is in is rolled back.
    pub fn step(&mut self, call: &Call<'_>) -> Outcome {
        self.looked += 1;
        if self.looked.is_multiple_of(Self::LOOKED_BETWEEN) {
            let session = call.session()?;
            let wanted = session.expect_wanted().and_then(|()| session.expect_in_time(self.began));
            wanted.map_err(|e| Failure::Engine(unwanted(&e)))?;
        }
        Ok(())
    }
}
