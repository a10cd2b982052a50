//! One register: its versions are the last writes of the transactions that committed, in the order
//! of their commit numbers. The stamp of what is read tells which of them it was.

use super::inference::{Gathered, Touch, Version, operation};
use super::{Anomaly, Cell, Dependency, Operation, Outcome};

/// A write that left something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    stamp: u64,
    value: i64,
    transaction: u32,
    /// Whether the transaction wrote nothing else to the register after it.
    last: bool,
}

/// What a transaction found before it wrote.
#[derive(Clone, Copy, Debug)]
struct Found {
    transaction: u32,
    cell: Option<Cell>,
}

/// Infers the dependencies that a register shows, and what is wrong with it.
pub(super) fn infer(touches: &[Touch], gathered: &mut Gathered<'_>) {
    let mut writes = Vec::new();
    let mut reads = Vec::new();
    let mut versions = Vec::new();
    for own in touches.chunk_by(|one, other| one.transaction == other.transaction) {
        follow(own, gathered, &mut writes, &mut reads, &mut versions);
    }
    writes.sort_unstable();
    versions.sort_by_key(|version| version.commit);
    // What was not there, was written and deleted again has no new version.
    let mut was_there = false;
    versions.retain(|version| {
        let was_before = std::mem::replace(&mut was_there, version.cell.is_some());
        was_before || was_there
    });
    for pair in versions.windows(2) {
        if let [before, after] = pair {
            gathered.depend(before.transaction, Dependency::Write, after.transaction);
        }
    }
    for read in &reads {
        place(read, &writes, &versions, gathered);
    }
    gathered.versions.all.append(&mut versions);
}

/// The operations of one transaction on the register.
fn follow(
    own: &[Touch],
    gathered: &mut Gathered<'_>,
    writes: &mut Vec<Written>,
    reads: &mut Vec<Found>,
    versions: &mut Vec<Version>,
) {
    let Some(transaction) = own.first().map(|touch| touch.transaction) else { return };
    let history = gathered.history;
    let first_write = writes.len();
    let mut written: Option<Option<Cell>> = None;
    let mut earlier: Option<Found> = None;
    for touch in own {
        let cell = match operation(history, touch) {
            Some(Operation::Write { cell, .. }) => {
                written = Some(*cell);
                writes.iter_mut().skip(first_write).for_each(|write| write.last = false);
                if let Some(Cell { stamp, value }) = *cell {
                    writes.push(Written { stamp, value, transaction, last: true });
                }
                continue;
            }
            Some(Operation::Read { cell, .. }) => *cell,
            Some(Operation::ReadWhere { rows, .. }) => {
                let at = rows.partition_point(|(key, _)| *key < touch.key);
                rows.get(at).map(|(_, cell)| *cell)
            }
            _ => continue,
        };
        if let Some(written) = written {
            if written != cell {
                gathered.verdict.add_plain(Anomaly::Internal, &[transaction], || {
                    format!("{} was {cell:?} after {written:?} had been written", touch.key)
                });
            }
            continue;
        }
        let read = Found { transaction, cell };
        let before = earlier.replace(read);
        if before.is_none_or(|before| before.cell != cell) {
            reads.push(read);
            if let Some(before) = before {
                gathered.verdict.add_plain(Anomaly::NonRepeatableRead, &[transaction], || {
                    format!("{} was {:?}, then {cell:?}", touch.key, before.cell)
                });
            }
        }
    }
    let commit = gathered.commit(transaction);
    let is_in = gathered.outcome(transaction) != Outcome::Aborted;
    if let (Some(cell), Some(commit), true) = (written, commit, is_in) {
        versions.push(Version { commit, transaction, cell });
    }
}

/// What a read shows.
fn place(read: &Found, writes: &[Written], versions: &[Version], gathered: &mut Gathered<'_>) {
    let reader = read.transaction;
    if gathered.outcome(reader) == Outcome::Aborted {
        return;
    }
    let next = match read.cell {
        None => after_nothing(reader, versions, gathered),
        Some(cell) => after_cell(reader, cell, writes, versions, gathered),
    };
    let Some(at) = next else { return };
    let Some(replacing) = versions.get(at) else { return };
    gathered.depend(reader, Dependency::Anti, replacing.transaction);
    let later = versions.get(at..).unwrap_or_default();
    if replacing.transaction != reader
        && gathered.commit(reader).is_some_and(|own| has(later, own, reader))
    {
        let transactions = [replacing.transaction, reader];
        gathered.verdict.add_plain(Anomaly::LostUpdate, &transactions, || {
            let found = read.cell.map_or("nothing".to_owned(), |cell| cell.to_string());
            format!("both replaced {found}")
        });
    }
}

/// Whether a transaction wrote one of the versions.
fn has(versions: &[Version], commit: u64, transaction: u32) -> bool {
    let at = versions.partition_point(|version| version.commit < commit);
    versions.get(at).is_some_and(|version| version.transaction == transaction)
}

/// Who wrote what was read, and the place of the version that comes after it, if it is known.
fn after_cell(
    reader: u32,
    cell: Cell,
    writes: &[Written],
    versions: &[Version],
    gathered: &mut Gathered<'_>,
) -> Option<usize> {
    let at = writes.partition_point(|write| write.stamp < cell.stamp);
    let write = writes.get(at).filter(|w| w.stamp == cell.stamp && w.value == cell.value);
    let Some(&Written { transaction: writer, last, .. }) = write else {
        gathered.verdict.add_plain(Anomaly::Garbage, &[reader], || {
            format!("{cell} was read, which nobody wrote")
        });
        return None;
    };
    if writer == reader {
        gathered.verdict.add_plain(Anomaly::Internal, &[reader], || {
            format!("{cell} was read before the transaction wrote it")
        });
        return None;
    }
    if gathered.outcome(writer) == Outcome::Aborted {
        gathered.verdict.add_plain(Anomaly::G1a, &[writer, reader], || {
            format!("{cell} was read, which was aborted")
        });
        return None;
    }
    if !last {
        gathered.verdict.add_plain(Anomaly::G1b, &[writer, reader], || {
            format!("{cell} was read, which the transaction itself replaced")
        });
    }
    gathered.observe(writer);
    gathered.depend(writer, Dependency::Read, reader);
    let commit = gathered.commit(writer)?;
    Some(versions.partition_point(|version| version.commit <= commit))
}

/// The same for a register that was not there: at first, or after one of its deletions. Of several
/// the commit that the reader says it reads at tells which.
fn after_nothing(reader: u32, versions: &[Version], gathered: &mut Gathered<'_>) -> Option<usize> {
    if versions.iter().all(|version| version.cell.is_some()) {
        return Some(0);
    }
    let snapshot = gathered.history.get(reader)?.snapshot?;
    let next = versions.partition_point(|version| version.commit <= snapshot);
    let Some(seen) = next.checked_sub(1).and_then(|at| versions.get(at)) else { return Some(0) };
    if seen.cell.is_some() {
        return None;
    }
    gathered.observe(seen.transaction);
    gathered.depend(seen.transaction, Dependency::Read, reader);
    Some(next)
}
