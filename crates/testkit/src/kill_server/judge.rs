//! Whether what is there is what was answered, and perhaps more of what was sent.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::ending_keys::Keys;
use super::line::{ACCOUNTS, BALANCE, Kind, Line, Part, transfer};

/// What a database holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// How often a part of an operation of a client is there.
    pub parts: BTreeMap<(Part, i64, i64), u64>,
    /// What the accounts have.
    pub balances: BTreeMap<i64, i64>,
    /// The number that is raised by WATCH and EXEC.
    pub watched: i64,
    /// How often it was raised to a number.
    pub marks: BTreeMap<i64, u64>,
    /// Keys that end, by client and operation.
    pub keys: Keys,
}

/// Holds contents against what was sent and answered. Clients go on behind what is there; an
/// operation with an idempotency key that was not answered stays to be sent again.
///
/// # Errors
/// What was lost, is there in part, more than once, or was not sent.
pub(super) fn judge(lines: &mut [Line], contents: &Contents, seed: u64) -> Result<(), String> {
    let mut left = contents.parts.clone();
    let mut expected: BTreeMap<i64, i64> = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    for line in lines {
        let done = applied(line, &mut left)?;
        if matches!(line.kind, Kind::WireTransfers | Kind::HttpTransfers) {
            for n in 0..done {
                let moved = transfer(seed, line.client, n);
                *expected.entry(moved.from).or_default() -= moved.amount;
                *expected.entry(moved.to).or_default() += moved.amount;
            }
        }
        if line.kind == Kind::EndingKeys {
            line.keys.retain(|n, _| *n < done);
            contents.keys.judge(line)?;
        }
        line.stream.judge(&contents.parts)?;
        line.stream.forget_from(done);
        if !line.kind.is_once() {
            (line.sent, line.answered) = (done, done);
        }
    }
    if let Some(((part, client, n), count)) = left.first_key_value() {
        return Err(format!("{part:?} {n} of client {client}: {count} times, and was not sent"));
    }
    let (watched, marks) = (contents.watched, &contents.marks);
    if !marks.keys().copied().eq(1..=watched) || marks.values().any(|count| *count != 1) {
        let (count, twice) = (marks.values().sum::<u64>(), marks.iter().find(|(_, n)| **n != 1));
        let twice = twice.map_or(String::new(), |(of, n)| format!(", {n} of them of {of}"));
        return Err(format!("WATCH and EXEC raised a number to {watched}: {count} marks{twice}"));
    }
    let sum: i64 = contents.balances.values().sum();
    if sum != ACCOUNTS * BALANCE {
        return Err(format!("the accounts have {sum}, not {}", ACCOUNTS * BALANCE));
    }
    if contents.balances != expected {
        let found = &contents.balances;
        return Err(format!("the accounts have {found:?}, not {expected:?}"));
    }
    Ok(())
}

/// How many operations of a client are there, the first ones; takes them from what is left.
fn applied(line: &Line, left: &mut BTreeMap<(Part, i64, i64), u64>) -> Result<i64, String> {
    let mut done = 0;
    for n in 0..line.sent {
        let (mut whole, mut none) = (true, true);
        let effects = line.kind.effects(n);
        let mut found = Vec::with_capacity(effects.len());
        for (part, wanted) in effects {
            let count = left.remove(&(part, line.client, n)).unwrap_or(0);
            whole &= count == wanted;
            none &= count == 0;
            if count > wanted {
                return Err(format!("{line}: {part:?} {n} is there {count} times, not {wanted}"));
            }
            found.push((part, count, wanted));
        }
        match (whole, none) {
            (true, _) if done == n => done += 1,
            (true, _) => return Err(format!("{line}: {n} is there, and {done} is not")),
            (_, true) if n < line.owed() => return Err(format!("{line}: {n} is lost")),
            (_, true) => {}
            _ => return Err(format!("{line}: {n} is half there: {found:?}")),
        }
    }
    Ok(done)
}
