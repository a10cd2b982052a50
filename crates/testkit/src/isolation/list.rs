//! One list: the longest read has the order of its versions, and every other read is a beginning of
//! it. What was appended and never read comes after, in the order of the commit numbers.
//!
//! ```text
//! longest read   [ 4 │ 1 │ 7 │ 2 ]  3  5     3 and 5 are by commit numbers
//!                  └ww┘└ww┘└ww┘              but for values of one transaction
//! another        [ 4 │ 1 ]                   wr from who appended 1, rw to who appended 7
//! ```
//!
//! A transaction's own values stand at the end of what it reads; the rest is what it read of
//! others.

use super::inference::{Gathered, Touch, operation};
use super::{Anomaly, Dependency, Operation, Outcome};

/// An appended value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Append {
    value: u64,
    transaction: u32,
    /// How many values the transaction had appended to this list before it.
    number: usize,
    /// Whether the transaction appended nothing to this list after it.
    last: bool,
}

/// What a transaction read of others.
#[derive(Clone, Copy, Debug)]
struct Found<'a> {
    transaction: u32,
    /// All that it read.
    values: &'a [u64],
    /// How many of the values are others'.
    external: usize,
}

impl Found<'_> {
    fn others(&self) -> &[u64] {
        self.values.get(..self.external).unwrap_or_default()
    }
}

/// Infers the dependencies that a list shows, and what is wrong with it.
pub(super) fn infer(touches: &[Touch], gathered: &mut Gathered<'_>) {
    let mut appends = Vec::new();
    let mut reads = Vec::new();
    for own in touches.chunk_by(|one, other| one.transaction == other.transaction) {
        follow(own, gathered, &mut appends, &mut reads);
    }
    appends.sort_unstable();
    let Some(order) = Order::infer(&appends, &reads, gathered) else { return };
    order.depend(gathered);
    for read in &reads {
        order.place(read, gathered);
    }
}

/// The operations of one transaction on the list.
fn follow<'a>(
    own: &[Touch],
    gathered: &mut Gathered<'a>,
    appends: &mut Vec<Append>,
    reads: &mut Vec<Found<'a>>,
) {
    let history = gathered.history;
    let mut values: Vec<u64> = Vec::new();
    let mut earlier: Option<Found<'a>> = None;
    for touch in own {
        let transaction = touch.transaction;
        match operation(history, touch) {
            Some(Operation::Append { value, .. }) => values.push(*value),
            Some(Operation::ReadList { key, values: found }) => {
                if !found.ends_with(&values) {
                    gathered.verdict.add_plain(Anomaly::Internal, &[transaction], || {
                        format!("{key} was read as {found:?} after {values:?} had been appended")
                    });
                    continue;
                }
                let external = found.len() - values.len();
                let read = Found { transaction, values: found, external };
                let before = earlier.replace(read);
                if before.is_none_or(|before| before.others() != read.others()) {
                    reads.push(read);
                    if let Some(before) = before {
                        gathered.verdict.add_plain(
                            Anomaly::NonRepeatableRead,
                            &[transaction],
                            || format!("{key} was {:?}, then {:?}", before.others(), read.others()),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    let count = values.len();
    for (number, value) in values.into_iter().enumerate() {
        let transaction = own.first().map_or(u32::MAX, |touch| touch.transaction);
        appends.push(Append { value, transaction, number, last: number + 1 == count });
    }
}

/// A version: the list up to a value.
#[derive(Clone, Copy, Debug)]
struct Place {
    append: Append,
    aborted: bool,
}

/// The order of the versions.
struct Order<'a> {
    /// The longest read.
    trace: &'a [u64],
    /// Its versions, and those that nobody read.
    places: Vec<Place>,
    /// The first version of each transaction, by transaction.
    first_places: Vec<(u32, usize)>,
}

impl<'a> Order<'a> {
    /// None when the list has no order.
    fn infer(appends: &[Append], reads: &[Found<'a>], gathered: &mut Gathered<'_>) -> Option<Self> {
        let longest = longest(reads, gathered);
        let trace: &[u64] = longest.map_or(&[], |(_, values)| values);
        let reader = longest.map_or(u32::MAX, |(reader, _)| reader);
        if let Some(value) = repeated(trace) {
            gathered.verdict.add_plain(Anomaly::DuplicateAppend, &[reader], || {
                format!("{value} is more than once in {trace:?}")
            });
            return None;
        }
        let mut places = Vec::with_capacity(trace.len());
        let mut is_placed = vec![false; appends.len()];
        for value in trace {
            let at = appends.partition_point(|append| append.value < *value);
            let Some(append) = appends.get(at).filter(|append| append.value == *value) else {
                gathered.verdict.add_plain(Anomaly::Garbage, &[reader], || {
                    format!("nobody appended {value}, which is in {trace:?}")
                });
                return None;
            };
            if let Some(placed) = is_placed.get_mut(at) {
                *placed = true;
            }
            gathered.observe(append.transaction);
            let aborted = gathered.outcome(append.transaction) == Outcome::Aborted;
            places.push(Place { append: *append, aborted });
        }
        let unread = appends.iter().zip(is_placed).filter(|(_, placed)| !placed);
        let unread: Vec<_> = unread.map(|(append, _)| *append).collect();
        places.extend(tail(&places, unread, reader, gathered));
        let mut first_places: Vec<_> =
            places.iter().enumerate().map(|(at, place)| (place.append.transaction, at)).collect();
        first_places.sort_unstable();
        first_places.dedup_by_key(|(transaction, _)| *transaction);
        Some(Self { trace, places, first_places })
    }

    /// What the order itself shows.
    fn depend(&self, gathered: &mut Gathered<'_>) {
        let mut before: Option<Append> = None;
        let mut aborted: Option<Append> = None;
        for place in &self.places {
            if place.aborted {
                aborted = aborted.or(Some(place.append));
                continue;
            }
            let after = place.append;
            if let Some(aborted) = aborted.take() {
                let transactions = [aborted.transaction, after.transaction];
                gathered.verdict.add_plain(Anomaly::DirtyUpdate, &transactions, || {
                    format!("{} stands behind {}, which was aborted", after.value, aborted.value)
                });
            }
            if let Some(before) = before.replace(after) {
                gathered.depend(before.transaction, Dependency::Write, after.transaction);
                let commits =
                    [gathered.commit(before.transaction), gathered.commit(after.transaction)];
                if let [Some(first), Some(second)] = commits
                    && first > second
                {
                    let transactions = [before.transaction, after.transaction];
                    gathered.verdict.add_plain(Anomaly::IncompatibleOrder, &transactions, || {
                        format!("{} of commit {first} before {}", before.value, after.value)
                    });
                }
            }
        }
    }

    /// What a read of the list shows.
    fn place(&self, read: &Found<'_>, gathered: &mut Gathered<'_>) {
        let reader = read.transaction;
        if gathered.outcome(reader) == Outcome::Aborted {
            return;
        }
        if !self.trace.starts_with(read.others()) {
            gathered.verdict.add_plain(Anomaly::IncompatibleOrder, &[reader], || {
                format!("{:?} is no beginning of {:?}", read.others(), self.trace)
            });
            return;
        }
        let seen = self.places.get(..read.external).unwrap_or_default();
        if let Some(place) = seen.iter().find(|place| place.aborted) {
            let Append { value, transaction, .. } = place.append;
            gathered.verdict.add_plain(Anomaly::G1a, &[transaction, reader], || {
                format!("{value} was read, which was aborted")
            });
        }
        if let Some(place) = seen.last().filter(|place| !place.aborted) {
            let Append { value, transaction, last, .. } = place.append;
            if !last && transaction != reader {
                gathered.verdict.add_plain(Anomaly::G1b, &[transaction, reader], || {
                    format!("{value} was read as the last value, before the transaction went on")
                });
            }
            gathered.depend(transaction, Dependency::Read, reader);
        }
        let rest = self.places.get(read.external..).unwrap_or_default();
        let Some(next) = rest.iter().find(|place| !place.aborted) else { return };
        let next = next.append;
        gathered.depend(reader, Dependency::Anti, next.transaction);
        let own = self.first_places.binary_search_by_key(&reader, |(transaction, _)| *transaction);
        let own = own.ok().and_then(|at| self.first_places.get(at));
        if own.is_some_and(|(_, at)| *at >= read.external) && next.transaction != reader {
            gathered.verdict.add_plain(Anomaly::LostUpdate, &[next.transaction, reader], || {
                format!("both appended to what had {} values", read.external)
            });
        }
    }
}

/// The longest list that was read, with its reader. Of one that may not have committed only what is
/// others' counts.
fn longest<'a>(reads: &[Found<'a>], gathered: &Gathered<'_>) -> Option<(u32, &'a [u64])> {
    let known = reads.iter().filter_map(|read| match gathered.outcome(read.transaction) {
        Outcome::Committed => Some((read.transaction, read.values)),
        Outcome::Unknown => Some((read.transaction, read.values.get(..read.external)?)),
        Outcome::Aborted => None,
    });
    known.max_by_key(|(_, values)| values.len())
}

fn repeated(trace: &[u64]) -> Option<u64> {
    let mut sorted = trace.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}

/// The versions that nobody read, by commit numbers. A value that should have been read is lost.
fn tail(
    places: &[Place],
    unread: Vec<Append>,
    reader: u32,
    gathered: &mut Gathered<'_>,
) -> Vec<Place> {
    let history = gathered.history;
    let commits = places.iter().filter_map(|place| gathered.commit(place.append.transaction));
    let newest = commits.max();
    let begun = history.get(reader).map(|reader| reader.begin);
    let mut known = Vec::new();
    for append in unread {
        let Some(made) = history.get(append.transaction) else { continue };
        if made.outcome != Outcome::Committed {
            continue;
        }
        let is_older = made.commit.is_some_and(|c| newest.is_some_and(|newest| c < newest));
        let in_part = places.iter().rev().any(|place| {
            place.append.transaction == append.transaction && place.append.number > append.number
        });
        let had_returned = begun.is_some_and(|begun| made.end < begun);
        if is_older || in_part || had_returned {
            gathered.verdict.add_plain(Anomaly::LostAppend, &[append.transaction, reader], || {
                format!("{} is missing in the longest list", append.value)
            });
        } else if let Some(commit) = made.commit {
            known.push((commit, append));
        }
    }
    known.sort_by_key(|(commit, append)| (*commit, append.number));
    known.into_iter().map(|(_, append)| Place { append, aborted: false }).collect()
}
