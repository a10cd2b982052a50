//! One command: its arguments, its bucket, its answer.

use std::borrow::Cow;
use std::ops::Bound;
use std::time::Duration;

use esker::{Entries, ErrorKind, Moment, ScopedBucket, ScopedBucketReader, Transaction, Ttl};
use esker_log::sabotage::Bug;
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

/// The bucket of a command that reads, if it is there.
pub(super) struct View<'t>(pub Option<ScopedBucket<'t>>);

impl View<'_> {
    /// What `take` makes of a value, which it sees where it lies.
    pub fn read<R>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        match &self.0 {
            Some(bucket) => Ok(bucket.read(key, take)?),
            None => Ok(None),
        }
    }

    /// What reads so many entries as of one commit, where there are any.
    pub fn reader(&self, entries: usize) -> Outcome<Option<ScopedBucketReader<'_>>> {
        Ok(self.0.as_ref().map(|bucket| bucket.reader(entries)).transpose()?)
    }

    /// The date at which an entry expires, in microseconds since 1970; `Some(None)`: never.
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn end_date_us(&self, key: &[u8]) -> Outcome<Option<Option<i64>>> {
        let Some(bucket) = &self.0 else { return Ok(None) };
        Ok(bucket.get_with_expiry(key)?.map(|(_, end)| end))
    }

    /// For how many microseconds an entry is still there; `Some(None)`: for good.
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn remaining_us(&self, key: &[u8]) -> Outcome<Option<Option<i64>>> {
        let us = |left: Duration| i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
        let Some(bucket) = &self.0 else { return Ok(None) };
        Ok(bucket.remaining(key)?.map(|left| left.map(us)))
    }

    pub fn range(&self, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Outcome<Option<Entries>> {
        Ok(self.0.as_ref().map(|bucket| bucket.range(bounds)).transpose()?)
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
        self.find(self.within, Level::Read, name).map(View)
    }

    /// The bucket, to remove from, if it is there.
    pub fn bucket_there(&self) -> Outcome<Option<ScopedBucket<'c>>> {
        self.find(self.within, Level::Write, self.state.bucket_name())
    }

    /// A bucket of a transaction, or of the database, if it is there.
    fn find<'w>(
        &self,
        within: Option<&'w Transaction>,
        level: Level,
        name: &str,
    ) -> Outcome<Option<ScopedBucket<'w>>> {
        let session = self.session()?;
        let found = match within {
            Some(transaction) => session.bucket_in(transaction, level, name),
            None => session.own_bucket(level, name).map(ScopedBucket::Database),
        };
        match found {
            Err(e) if e.code() == Code::NotFound => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Changes entries all at once: nothing comes between what is read and what is written, which
    /// becomes part of the EXEC, or is a transaction of its own. `None` when there is no bucket,
    /// and none is to be made. What fails has changed nothing.
    pub fn change<R>(
        &self,
        makes_bucket: bool,
        mut change: impl FnMut(&ScopedBucket<'_>) -> Outcome<R>,
    ) -> Outcome<Option<R>> {
        let name = self.state.bucket_name();
        let mut change_in = |transaction: &Transaction| {
            let bucket = match makes_bucket {
                true => Some(self.session()?.bucket_to_put_in(transaction, name)?),
                false => self.find(Some(transaction), Level::Write, name)?,
            };
            bucket.as_ref().map(&mut change).transpose()
        };
        if let Some(transaction) = self.within {
            return change_in(transaction);
        }
        let mut failed = None;
        let changed = self.session()?.database().transact(|transaction| {
            failed = None;
            change_in(transaction).map_err(|failure| match failure {
                Failure::Engine(e) => e,
                told => {
                    failed = Some(told);
                    esker::Error::new(ErrorKind::Cancelled, "a command that is refused")
                }
            })
        });
        failed.map_or_else(|| Ok(changed?), Err)
    }

    /// Puts what is a whole by itself: a transaction is taken only to make the bucket.
    pub fn put(&self, mut put: impl FnMut(&ScopedBucket<'_>) -> Outcome) -> Outcome {
        match self.bucket_there()? {
            Some(bucket) => put(&bucket),
            None => self.change(true, put).map(drop),
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
            let found = found.filter(|_| !Bug::EditForgetsEnd.is_planted());
            let ttl = found.map_or(Ttl::Default, |(_, end)| kept(end));
            bucket.put(key, &new, ttl.into())?;
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
