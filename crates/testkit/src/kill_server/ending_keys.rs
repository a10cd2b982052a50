//! Keys that end, that no longer end, and that had ended when they were changed.
//!
//! Each operation has a key of its own, and ends with raising a counter of its client: an operation
//! whose number is below the counter was done. Before that, the client notes what its key has to be
//! from then on, by true time: that of a clock that no step touches. It knows of each time to live
//! between which two times it ends.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use esker_vfs::sim::Generator;

use super::line::{Kind, Line};
use super::redis::{Redis, Reply};
use super::redis_clients::{expect, number};
use super::{Ended, Error, Outcome};

/// How much later or earlier a time to live may end over a restart.
const SLACK_US: i64 = 1_000_000;
/// How much a client waits beyond the end of a key, and how near to it nothing is certain.
const MARGIN_US: i64 = 5_000;
/// An end that no campaign sees.
const HOUR: &str = "3600";
/// Manners in which keys end, or do not.
const MANNERS: u64 = 10;
/// Keys that are asked for at a time.
const KEYS: usize = 100;

/// Microseconds of true time, since the campaign began.
#[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
fn now_us() -> i64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    i64::try_from(start.elapsed().as_micros()).unwrap_or(i64::MAX)
}

/// When something happened: not before the first time, and not after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub first_us: i64,
    pub last_us: i64,
}

impl Span {
    fn later(self, by_us: i64) -> Self {
        Self { first_us: self.first_us + by_us, last_us: self.last_us + by_us }
    }

    /// True when it was over before another one began, both as clocks of one process tell.
    fn is_before(self, other: Self) -> bool {
        self.last_us + MARGIN_US < other.first_us
    }
}

/// What a key has to be from an operation on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Gone,
    /// There with a value, and without an end.
    There(Vec<u8>),
    /// There with a value until some time within the span, and gone after it.
    Until(Vec<u8>, Span),
}

/// The value of a key and its milliseconds left, as `GET` and `PTTL` answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub value: Option<Vec<u8>>,
    pub left_ms: i64,
}

/// Keys that end, as a server has them.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub found: BTreeMap<(i64, i64), Found>,
    /// When they were read.
    pub read: Span,
}

impl Default for Keys {
    fn default() -> Self {
        let now_us = now_us();
        Self { found: BTreeMap::new(), read: Span { first_us: now_us, last_us: now_us } }
    }
}

impl Keys {
    /// Reads the keys of all operations that were sent.
    pub fn read(redis: &mut Redis, lines: &[Line]) -> Result<Self, Error> {
        let mut keys = Self::default();
        expect(&redis.ask(&["SELECT", "1"])?, &Reply::Text("OK".to_owned()))?;
        for line in lines.iter().filter(|line| line.kind == Kind::EndingKeys) {
            let all: Vec<i64> = (0..line.sent).collect();
            for some in all.chunks(KEYS) {
                let names: Vec<String> = some.iter().map(|n| key(line.client, *n)).collect();
                let asked = |name| [vec!["GET", name], vec!["PTTL", name]];
                redis
                    .send(&names.iter().map(String::as_str).flat_map(asked).collect::<Vec<_>>())?;
                for n in some {
                    let (value, left) = (redis.reply()?, redis.reply()?);
                    let (Reply::Bytes(value), Reply::Number(left_ms)) = (value, left) else {
                        return Err("GET and PTTL: other answers".into());
                    };
                    keys.found.insert((line.client, *n), Found { value, left_ms });
                }
            }
        }
        keys.read.last_us = now_us();
        Ok(keys)
    }

    /// Holds the keys of a client against what they have to be.
    ///
    /// # Errors
    /// The first that is not.
    pub fn judge(&self, line: &mut Line) -> Result<(), String> {
        for (n, expected) in &line.keys {
            let Some(found) = self.found.get(&(line.client, *n)) else {
                return Err(format!("{}: was not asked for", key(line.client, *n)));
            };
            let is_gone = found.value.is_none() && found.left_ms == -2;
            let is_as = |value: &Vec<u8>| found.value.as_ref() == Some(value);
            let (must_be_there, must_be_gone, may_be) = match expected {
                Expected::Gone => (false, true, is_gone),
                Expected::There(value) => (true, false, is_as(value) && found.left_ms == -1),
                Expected::Until(value, end) => (
                    self.read.last_us + SLACK_US < end.first_us,
                    self.read.first_us > end.last_us + SLACK_US,
                    is_gone || (is_as(value) && found.left_ms >= 0),
                ),
            };
            // A key may end between `GET` and `PTTL`.
            let has_just_ended = !must_be_there && found.left_ms == -2;
            let is_wrong = (!may_be && !has_just_ended)
                || (must_be_there && is_gone)
                || (must_be_gone && !is_gone);
            if is_wrong {
                let (key, read) = (key(line.client, *n), self.read);
                return Err(format!("{key}: {found:?}, expected {expected:?}, read in {read:?}"));
            }
            line.counts.there += u64::from(must_be_there);
            line.counts.gone += u64::from(must_be_gone);
        }
        Ok(())
    }
}

fn key(client: i64, n: i64) -> String {
    format!("ending:{client}:{n}")
}

/// How many operations of a client were done.
pub(super) fn done(redis: &mut Redis, client: i64) -> Result<i64, Error> {
    match redis.ask(&["GET", &format!("ended:{client}")])? {
        Reply::Bytes(None) => Ok(0),
        Reply::Bytes(Some(found)) => Ok(number(&found)?),
        other => Err(format!("a counter is {other:?}").into()),
    }
}

/// Lets keys end until the server has gone.
pub(super) fn work(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut redis = Redis::connect(address)?;
    expect(&redis.ask(&["SELECT", "1"])?, &Reply::Text("OK".to_owned()))?;
    let counter = format!("ended:{}", line.client);
    // An operation of this number may have been under way when a server was killed.
    redis.ask(&["DEL", &key(line.client, line.sent)])?;
    let mut took_ms = 0;
    loop {
        let n = line.begin();
        let mut generator = Generator::new(seed ^ line.client.unsigned_abs(), n.unsigned_abs());
        let manner = generator.below(MANNERS);
        // Some end before the next command is done, and most after it.
        let ttl_ms = 5 + i64::try_from(generator.below(25 + 5 * took_ms)).unwrap_or(0);
        let mut one = One { redis: &mut redis, key: key(line.client, n), ttl_ms, nulls: 0 };
        let expected = one.done(manner)?;
        line.counts.nulls += one.nulls;
        line.keys.insert(n, expected);
        let first_us = now_us();
        expect(&redis.ask(&["INCR", &counter])?, &Reply::Number(n + 1))?;
        took_ms = (now_us() - first_us).unsigned_abs() / 1_000;
        line.answer();
    }
}

/// One operation.
struct One<'r> {
    redis: &'r mut Redis,
    key: String,
    ttl_ms: i64,
    nulls: u64,
}

impl One<'_> {
    /// Does a command; says when.
    fn ask(&mut self, command: &[&str]) -> Result<(Reply, Span), Ended> {
        let first_us = now_us();
        let reply = self.redis.ask(command)?;
        Ok((reply, Span { first_us, last_us: now_us() }))
    }

    fn expect(&mut self, command: &[&str], expected: &Reply) -> Result<Span, Ended> {
        let (found, when) = self.ask(command)?;
        match found == *expected {
            true => Ok(when),
            false => Err(Ended::Wrong(format!("{command:?}: {found:?}, expected {expected:?}"))),
        }
    }

    /// Sets the key to a value that ends soon; says when.
    fn set(&mut self) -> Result<Span, Ended> {
        let (key, ttl) = (self.key.clone(), self.ttl_ms.to_string());
        let when = self.expect(&["SET", &key, "first", "PX", &ttl], &ok())?;
        Ok(when.later(self.ttl_ms * 1_000))
    }

    /// Waits until the key has ended.
    #[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
    fn wait(&self, end: Span) {
        let left_us = end.last_us + 2 * MARGIN_US - now_us();
        std::thread::sleep(Duration::from_micros(left_us.max(0).unsigned_abs()));
    }

    /// What is between MULTI and EXEC.
    fn exec(&mut self, commands: &[&[&str]]) -> Result<Reply, Ended> {
        let all =
            [&["MULTI"][..]].into_iter().chain(commands.iter().copied()).chain([&["EXEC"][..]]);
        self.redis.send(&all.map(<[&str]>::to_vec).collect::<Vec<_>>())?;
        expect(&self.redis.reply()?, &ok())?;
        for _ in commands {
            expect(&self.redis.reply()?, &Reply::Text("QUEUED".to_owned()))?;
        }
        self.redis.reply()
    }

    /// Does an operation in one of [`MANNERS`]; what its key has to be from then on.
    fn done(&mut self, manner: u64) -> Result<Expected, Ended> {
        let key = &self.key.clone();
        let first = || b"first".to_vec();
        Ok(match manner {
            0 => Expected::Until(first(), self.set()?),
            1 => {
                let seconds = 2 + self.ttl_ms % 4;
                let ex = seconds.to_string();
                let set = self.expect(&["SET", key, "first", "EX", &ex], &ok())?;
                let end = set.later(seconds * 1_000_000);
                Expected::Until(first(), end)
            }
            2 => {
                self.expect(&["SET", key, "first"], &ok())?;
                let end = self.expect(&["EXPIRE", key, HOUR], &Reply::Number(1))?;
                Expected::Until(first(), end.later(3_600_000_000))
            }
            3 => {
                self.expect(&["SET", key, "first", "EX", HOUR], &ok())?;
                self.expect(&["PERSIST", key], &Reply::Number(1))?;
                Expected::There(first())
            }
            4 => {
                self.expect(&["SET", key, "first"], &ok())?;
                let ttl = self.ttl_ms.to_string();
                let end = self.expect(&["PEXPIRE", key, &ttl], &Reply::Number(1))?;
                Expected::Until(first(), end.later(self.ttl_ms * 1_000))
            }
            5 => self.keep_ttl()?,
            6 => self.exec_beyond_end()?,
            7 => self.exec_of_watched()?,
            8 => self.increment()?,
            _ => {
                let end = self.set()?;
                self.wait(end);
                self.expect(&["SET", key, "second", "NX"], &ok())?;
                Expected::There(b"second".to_vec())
            }
        })
    }

    /// A new value with the end of the old one, where that is still there.
    fn keep_ttl(&mut self) -> Result<Expected, Ended> {
        let (end, key) = (self.set()?, self.key.clone());
        let kept = self.expect(&["SET", &key, "second", "KEEPTTL"], &ok())?;
        Ok(match (kept.is_before(end), end.is_before(kept)) {
            (true, _) => Expected::Until(b"second".to_vec(), end),
            (_, true) => Expected::There(b"second".to_vec()),
            _ => {
                self.ask(&["DEL", &key])?;
                Expected::Gone
            }
        })
    }

    /// A number that is changed ends when it would have, or is a new one behind its end.
    fn increment(&mut self) -> Result<Expected, Ended> {
        let (key, ttl) = (self.key.clone(), self.ttl_ms.to_string());
        let end = self.expect(&["SET", &key, "40", "PX", &ttl], &ok())?;
        let end = end.later(self.ttl_ms * 1_000);
        let (count, changed) = self.ask(&["INCR", &key])?;
        match count {
            Reply::Number(41) if !end.is_before(changed) => {
                Ok(Expected::Until(b"41".to_vec(), end))
            }
            Reply::Number(1) if !changed.is_before(end) => Ok(Expected::There(b"1".to_vec())),
            other => Err(Ended::Wrong(format!("{key}: INCR in {changed:?}: {other:?}, {end:?}"))),
        }
    }

    /// What EXEC answers of a key that has ended since the WATCH of another one is there after it.
    fn exec_beyond_end(&mut self) -> Result<Expected, Ended> {
        let (key, ttl) = (self.key.clone(), self.ttl_ms.to_string());
        let when = self.expect(&["SET", &key, "40", "PX", &ttl], &ok())?;
        self.expect(&["WATCH", "another"], &ok())?;
        self.wait(when.later(self.ttl_ms * 1_000));
        let done = self.exec(&[&["GET", &key], &["INCR", &key]])?;
        expect(&done, &Reply::List(vec![Reply::Bytes(None), Reply::Number(1)]))?;
        self.expect(&["GET", &key], &Reply::Bytes(Some(b"1".to_vec())))?;
        Ok(Expected::There(b"1".to_vec()))
    }

    /// EXEC does nothing when a key has ended since its WATCH.
    fn exec_of_watched(&mut self) -> Result<Expected, Ended> {
        let (end, key) = (self.set()?, self.key.clone());
        let watched = self.expect(&["WATCH", &key], &ok())?;
        self.wait(end);
        let is_null = self.exec(&[&["SET", &key, "second"]])? == Reply::Null;
        let must = match (watched.is_before(end), end.is_before(watched)) {
            (true, _) => true,
            (_, true) => false,
            _ => is_null,
        };
        if is_null != must {
            return Err(Ended::Wrong(format!("{key}: EXEC answered null: {is_null}")));
        }
        self.nulls += u64::from(is_null);
        Ok(if is_null { Expected::Gone } else { Expected::There(b"second".to_vec()) })
    }
}

fn ok() -> Reply {
    Reply::Text("OK".to_owned())
}
