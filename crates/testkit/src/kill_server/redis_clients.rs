//! Clients that speak Redis's protocol.

use super::line::{Line, text};
use super::redis::{Redis, Reply};
use super::{Ended, Outcome};

/// Commands of a client that are under way at a time.
const DEPTH: usize = 8;

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

fn expect(found: &Reply, expected: &Reply) -> Result<(), Ended> {
    match found == expected {
        true => Ok(()),
        false => Err(Ended::Wrong(format!("Redis: expected {expected:?}, found {found:?}"))),
    }
}
