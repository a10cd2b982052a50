//! Clients that speak Redis's protocol.

use super::line::{Line, text};
use super::redis::{Redis, Reply};
use super::{Ended, Outcome};

/// Commands of a client that are under way at a time.
const DEPTH: usize = 8;
/// The number that is raised by WATCH and EXEC.
pub(super) const WATCHED: &str = "watched";

/// Increments of one counter, many at a time.
pub(super) fn increment(line: &mut Line, address: &str) -> Outcome {
    let mut redis = Redis::connect(address)?;
    let key = format!("n:{}", line.client);
    loop {
        let first = line.answered;
        for _ in 0..DEPTH {
            line.begin();
        }
        redis.send(&vec![vec!["INCR", key.as_str()]; DEPTH])?;
        for number in (first + 1..).take(DEPTH) {
            expect(&redis.reply()?, &Reply::Number(number))?;
            line.answer();
        }
    }
}

/// Two counters and a text that are one transaction.
pub(super) fn transact(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut redis = Redis::connect(address)?;
    let (left, right) = (format!("left:{}", line.client), format!("right:{}", line.client));
    loop {
        let n = line.begin();
        let (key, value) = (format!("text:{}:{n}", line.client), text(seed, line.client, n));
        redis.send(&[
            vec!["MULTI"],
            vec!["INCR", &left],
            vec!["INCR", &right],
            vec!["SET", &key, &value],
            vec!["EXEC"],
        ])?;
        let ok = Reply::Text("OK".to_owned());
        let queued = Reply::Text("QUEUED".to_owned());
        for expected in [&ok, &queued, &queued, &queued] {
            expect(&redis.reply()?, expected)?;
        }
        let number = Reply::Number(n + 1);
        expect(&redis.reply()?, &Reply::List(vec![number.clone(), number, ok]))?;
        line.answer();
    }
}

/// Raises a number that others raise too, and sets a mark to what it has become, both or neither.
pub(super) fn count_by_watch(line: &mut Line, address: &str) -> Outcome {
    let mut redis = Redis::connect(address)?;
    loop {
        let n = line.begin();
        let mark = format!("mark:{}:{n}", line.client);
        while !raise(&mut redis, &mark)? {
            line.counts.nulls += 1;
        }
        line.answer();
    }
}

/// False when another client was quicker: nothing is to be changed then.
fn raise(redis: &mut Redis, mark: &str) -> Result<bool, Ended> {
    let ok = Reply::Text("OK".to_owned());
    expect(&redis.ask(&["WATCH", WATCHED])?, &ok)?;
    let count = match redis.ask(&["GET", WATCHED])? {
        Reply::Bytes(None) => 0,
        Reply::Bytes(Some(found)) => number(&found)?,
        other => return Err(Ended::Wrong(format!("Redis: a counter is {other:?}"))),
    };
    let next = (count + 1).to_string();
    redis.send(&[
        vec!["MULTI"],
        vec!["SET", WATCHED, &next],
        vec!["SET", mark, &next],
        vec!["EXEC"],
    ])?;
    let queued = Reply::Text("QUEUED".to_owned());
    for expected in [&ok, &queued, &queued] {
        expect(&redis.reply()?, expected)?;
    }
    match redis.reply()? {
        Reply::Null => Ok(false),
        done => expect(&done, &Reply::List(vec![ok.clone(), ok])).map(|()| true),
    }
}

/// A number that Redis's protocol answers as a text.
pub(super) fn number(text: &[u8]) -> Result<i64, Ended> {
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|e| Ended::Wrong(format!("Redis: {text}: {e}")))
}

/// Refuses another answer.
pub(super) fn expect(found: &Reply, expected: &Reply) -> Result<(), Ended> {
    match found == expected {
        true => Ok(()),
        false => Err(Ended::Wrong(format!("Redis: expected {expected:?}, found {found:?}"))),
    }
}
