//! Adding rows one after another, each of which may meet one that is there: by its key, or by a
//! unique index. What happens then is decided here, for commits and for transactions.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_table::table::describe_key;

use super::insert::Conflicts;
use super::returning::Shown;
use crate::commit::staged::key_bytes;
use crate::limits::CancellationCheck;
use crate::{Error, ErrorKind, Result};

/// Rows whose keys are prefetched at a time.
const ROWS_AT_ONCE: usize = 64;

/// Where rows are added.
pub(super) trait PutSink<'r> {
    /// What there is where a row goes.
    type Slot;

    /// The fields and the key.
    fn schema(&self) -> &Arc<Schema>;

    /// Look-ups of rows follow.
    fn prefetch(&self, rows: &[(usize, Cow<'r, [Value]>)]);

    /// The row that has values of a new one in a unique index that the statement looks at.
    fn conflicting(&mut self, row: &[Value]) -> Result<Option<Self::Slot>>;

    /// What there is under the key of a row.
    fn slot_of(&mut self, row: &[Value]) -> Result<Self::Slot>;

    /// Who is there.
    fn occupant(&self, slot: &Self::Slot) -> Occupant;

    /// The row that is there.
    fn old_row(&self, slot: &Self::Slot) -> Result<Vec<Value>>;

    /// Puts a row, in the place of `old` where that was read, and tests what was made of that.
    fn put(&mut self, slot: Self::Slot, old: Option<&[Value]>, row: Cow<'r, [Value]>)
    -> Result<()>;

    /// Adds a row whose key the table generates.
    fn add(&mut self, row: Cow<'r, [Value]>) -> Result<()>;
}

/// Who is where a row goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupant {
    Nobody,
    /// A row that was there before the statement.
    Stored,
    /// An earlier row of the statement.
    Staged,
}

/// Adds rows, one after another: each sees those before it. Returns how many were added or
/// changed. `by_key` is what happens to a row whose key is taken, `conflicts` to one that a unique
/// index finds.
pub(super) fn put_rows<'r, S: PutSink<'r>>(
    sink: &mut S,
    rows: impl Iterator<Item = Cow<'r, [Value]>>,
    (conflicts, by_key): (&Conflicts, &Conflicts),
    shown: &mut Shown,
    check_cancelled: CancellationCheck<'_>,
) -> Result<u64> {
    let (mut rows, mut count) = (rows.enumerate(), 0);
    loop {
        let some: Vec<_> = rows.by_ref().take(ROWS_AT_ONCE).collect();
        if some.is_empty() {
            return Ok(count);
        }
        if some.len() > 1 {
            sink.prefetch(&some);
        }
        for (i, row) in some {
            check_cancelled(i)?;
            let put = put_row(sink, row, (conflicts, by_key), shown);
            count += u64::from(put.map_err(|e| e.at(format_args!("row {i}")))?);
        }
    }
}

fn put_row<'r, S: PutSink<'r>>(
    sink: &mut S,
    row: Cow<'r, [Value]>,
    (conflicts, by_key): (&Conflicts, &Conflicts),
    shown: &mut Shown,
) -> Result<bool> {
    if let Some(slot) = sink.conflicting(&row)? {
        return match conflicts {
            Conflicts::Skip => Ok(false),
            conflicts => put_upon(sink, slot, row, conflicts, shown),
        };
    }
    if sink.schema().key_positions().is_empty() {
        shown.add(None, Some(&row));
        return sink.add(row).map(|()| true);
    }
    let slot = sink.slot_of(&row)?;
    match (sink.occupant(&slot), by_key) {
        (Occupant::Nobody, _) => {}
        (Occupant::Stored, Conflicts::Fail) => {
            return Err(taken(sink.schema(), &row, "exists already"));
        }
        (Occupant::Staged, Conflicts::Fail) => {
            return Err(taken(sink.schema(), &row, "is in an earlier row, too"));
        }
        (_, Conflicts::Skip) => return Ok(false),
        // What is replaced need not be read, unless it is shown.
        (_, Conflicts::Replace) if !shown.has_versions() => {}
        (_, by_key) => return put_upon(sink, slot, row, by_key, shown),
    }
    shown.add(None, Some(&row));
    sink.put(slot, None, row).map(|()| true)
}

/// Puts what becomes of a row that is there, and of a new one.
fn put_upon<'r, S: PutSink<'r>>(
    sink: &mut S,
    slot: S::Slot,
    row: Cow<'r, [Value]>,
    conflicts: &Conflicts,
    shown: &mut Shown,
) -> Result<bool> {
    let old = sink.old_row(&slot)?;
    let Some(row) = conflicts.resolve(sink.schema(), &old, row)? else { return Ok(false) };
    shown.add(Some(&old), Some(&row));
    sink.put(slot, Some(&old), row).map(|()| true)
}

/// Refuses a row in the place of one that a unique index has found and that has another key: what
/// leads to a row by its key would lead to a row without it.
pub(super) fn expect_same_key(schema: &Schema, old: &[Value], new: &[Value]) -> Result<()> {
    if key_bytes(schema, old) == key_bytes(schema, new) {
        return Ok(());
    }
    let key = |row| describe_key(schema, &key_values(schema, row));
    let message = format!(
        "{} would take the place of {}, which has its value in a unique index: remove that first",
        key(new),
        key(old)
    );
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// The error for a row whose key another one has.
pub(super) fn taken(schema: &Schema, row: &[Value], how: &str) -> Error {
    let key = describe_key(schema, &key_values(schema, row));
    Error::new(ErrorKind::AlreadyExists, format!("{key} {how}"))
}

/// The key of a row.
pub(super) fn key_values<'r>(schema: &Schema, row: &'r [Value]) -> Vec<ValueRef<'r>> {
    schema.key_positions().iter().filter_map(|p| row.get(*p)).map(Value::as_ref).collect()
}
