//! Rows that are changed and removed by their keys, wherever the changes go.

use esker_format::{Schema, Value, ValueRef};

use crate::Result;
use crate::commit::fit::{fit_changes, fit_key, has_key_field};
use crate::commit::row_sink::RowSink;
use crate::limits::CancellationCheck;

/// Keys that are prefetched at a time.
const KEYS_AT_ONCE: usize = 64;

/// The key of a row, and the names and new values of some of its fields.
pub type RowUpdate<N> = (Vec<Value>, Vec<(N, Value)>);

/// By what a sink looks keys up. What waits for the commit lock hashes keys before.
pub(crate) type HashOf<'h> = &'h dyn Fn(&[ValueRef<'_>]) -> u64;

/// A change of the row with a key, and the hash of the key.
type Hashed<C> = (C, u64);

/// An update of a row, as the fields take it.
pub(crate) struct FittedUpdate<'k> {
    pub key: Vec<ValueRef<'k>>,
    pub changes: Vec<(usize, Value)>,
}

impl<'k> FittedUpdate<'k> {
    pub fn of<N: AsRef<str>>(
        schema: &'k Schema,
        key: &'k [Value],
        changes: &[(N, Value)],
    ) -> Result<Self> {
        Ok(Self { key: fit_key(schema, key)?, changes: fit_changes(schema, changes)? })
    }

    /// Whether the row may get another key.
    pub fn changes_key(&self, schema: &Schema) -> bool {
        has_key_field(schema, self.changes.iter().map(|(position, _)| *position))
    }

    /// Changes the row; false when there is none.
    pub fn apply<S: RowSink>(self, sink: &mut S, hash: u64) -> Result<bool> {
        let mut slot = sink.look(&self.key, hash)?;
        let Some(mut row) = sink.take_row(&mut slot)? else { return Ok(false) };
        let asked: Vec<usize> = self.changes.iter().map(|(position, _)| *position).collect();
        let before = sink.before_change(&row)?.asking(asked);
        assign(&mut row, self.changes);
        sink.recompute(&mut row, &before)?;
        sink.put(&self.key, slot, row)?;
        // The next update sees it where it is then.
        sink.settle().map(|()| true)
    }
}

/// Gives fields of a row other values.
pub(crate) fn assign(row: &mut [Value], changes: Vec<(usize, Value)>) {
    for (position, value) in changes {
        if let Some(slot) = row.get_mut(position) {
            *slot = value;
        }
    }
}

/// Updates as the fields take them; the first is number `first` of all.
pub(crate) fn fit_updates<'u, N: AsRef<str>>(
    schema: &'u Schema,
    updates: &'u [RowUpdate<N>],
    hash_of: HashOf<'u>,
    (first, check_cancelled): (usize, CancellationCheck<'u>),
) -> impl Iterator<Item = Result<Hashed<FittedUpdate<'u>>>> {
    updates.iter().enumerate().map(move |(position, (key, changes))| {
        check_cancelled(position)?;
        let fitted = FittedUpdate::of(schema, key, changes)
            .map_err(|e| e.at(format_args!("update {}", first + position)))?;
        let hash = hash_of(&fitted.key);
        Ok((fitted, hash))
    })
}

/// Changes rows; of each whether there was one.
pub(crate) fn update_rows<'u, S: RowSink>(
    sink: &mut S,
    updates: impl Iterator<Item = Result<Hashed<FittedUpdate<'u>>>>,
    (first, check_cancelled): (usize, CancellationCheck<'_>),
) -> Result<Vec<bool>> {
    let apply = |sink: &mut S, update: FittedUpdate<'u>, hash| update.apply(sink, hash);
    each_change(sink, updates, ("update", first, check_cancelled), apply)
}

/// Keys as the fields take them; the first is number `first` of all.
pub(crate) fn fit_keys<'k, K: AsRef<[Value]>>(
    schema: &'k Schema,
    keys: &'k [K],
    hash_of: HashOf<'k>,
    (first, check_cancelled): (usize, CancellationCheck<'k>),
) -> impl Iterator<Item = Result<Hashed<Vec<ValueRef<'k>>>>> {
    keys.iter().enumerate().map(move |(position, key)| {
        check_cancelled(position)?;
        let key = fit_key(schema, key.as_ref())
            .map_err(|e| e.at(format_args!("key {}", first + position)))?;
        let hash = hash_of(&key);
        Ok((key, hash))
    })
}

/// Removes rows; of each key whether there was one.
pub(crate) fn remove_rows<'k, S: RowSink>(
    sink: &mut S,
    keys: impl Iterator<Item = Result<Hashed<Vec<ValueRef<'k>>>>>,
    (first, check_cancelled): (usize, CancellationCheck<'_>),
) -> Result<Vec<bool>> {
    let remove = |sink: &mut S, key: Vec<ValueRef<'k>>, hash| remove_row(sink, &key, hash);
    each_change(sink, keys, ("key", first, check_cancelled), remove)
}

/// Removes the row with a key; false when there is none.
pub(crate) fn remove_row<S: RowSink>(
    sink: &mut S,
    key: &[ValueRef<'_>],
    hash: u64,
) -> Result<bool> {
    let slot = sink.look(key, hash)?;
    let is_there = S::is_there(&slot);
    if is_there {
        sink.remove(key, slot)?;
    }
    Ok(is_there)
}

/// Does changes of the rows with some keys one after another, and says of each what came of it.
/// Keys are prefetched some dozens at a time. An error names `what` is done, with its number among
/// all, of which the first is `first`.
fn each_change<S: RowSink, C>(
    sink: &mut S,
    changes: impl Iterator<Item = Result<Hashed<C>>>,
    (what, first, check_cancelled): (&str, usize, CancellationCheck<'_>),
    mut change: impl FnMut(&mut S, C, u64) -> Result<bool>,
) -> Result<Vec<bool>> {
    let mut changes = changes.peekable();
    let mut done = Vec::with_capacity(changes.size_hint().0);
    while changes.peek().is_some() {
        let some = changes.by_ref().take(KEYS_AT_ONCE).collect::<Result<Vec<_>>>()?;
        if some.len() > 1 {
            sink.prefetch(&some.iter().map(|(_, hash)| *hash).collect::<Vec<_>>());
        }
        for (one, hash) in some {
            check_cancelled(done.len())?;
            let at = first + done.len();
            let found = change(sink, one, hash);
            done.push(found.map_err(|e| e.at(format_args!("{what} {at}")))?);
        }
    }
    Ok(done)
}
