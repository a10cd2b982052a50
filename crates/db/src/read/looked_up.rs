//! Rows of other tables that fields of new rows are computed from.
//!
//! ```text
//!  outside of a transaction: what is published ──► noted as of when ──► commit lock: has the
//!                            (and kept for later)                table changed since? then again
//!  within one:               its snapshot, with its changes ──► the table counts as read
//! ```
//!
//! Invariant: what is found is as of the commit of the row. A lookup notes the commit as of which
//! it reads, and [`Engine::expect_looked_up`] refuses the row when the table has changed since.

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use esker_format::key::primary_key;
use esker_format::{Column, Schema, Value, ValueRef};
use esker_query::FindRows;
use esker_query::model::Lookup;

use crate::commit::conflict::conflict;
use crate::commit::fit::fit_key;
use crate::engine::{Engine, no_table};
use crate::engine_handle::EngineHandle;
use crate::read::kept_lookups::{Kept, Run};
use crate::read::snapshot::{Snapshot, SnapshotTable};
use crate::table_version::{LookedUpAsOf, TableVersion};
use crate::{Error, ErrorKind, Result};

/// Rows of one begin of a key that are kept: where there are more, each is looked up by itself.
const RUN_ROWS_MAX: usize = 1 << 10;
/// How often rows are looked up again beside others that change them.
const ATTEMPTS_MAX: usize = 64;

/// A table, and the field that is wanted of its rows.
struct Wanted<'a> {
    schema: &'a Schema,
    position: usize,
}

impl<'a> Wanted<'a> {
    fn new(lookup: &Lookup, schema: &'a Schema) -> Result<Self> {
        let position = schema.expect_position(&lookup.field)?;
        let field = schema.fields().get(position);
        let (want, got) = (schema.key_positions().len(), lookup.keys.len());
        if want != got || field.map(|field| field.data_type) != lookup.data_type {
            return Err(Error::corrupt(format!("{lookup}: the table is another by now")));
        }
        Ok(Self { schema, position })
    }

    /// Appends what is wanted of some rows; `rows` are those of the table as they are now.
    fn find(
        &self,
        (keys, count): (&[Column], usize),
        kept: &mut Kept,
        rows: &mut dyn FnMut() -> Result<(SnapshotTable, bool)>,
        found: &mut Column,
    ) -> Result<()> {
        for row in 0..count {
            let key: Vec<Value> = keys.iter().map(|key| key.value(row).to_owned()).collect();
            match self.find_one(&key, kept, rows)? {
                Some(value) => found.push(value.as_ref())?,
                None => found.push_null(),
            }
        }
        Ok(())
    }

    fn find_one(
        &self,
        key: &[Value],
        kept: &mut Kept,
        rows: &mut dyn FnMut() -> Result<(SnapshotTable, bool)>,
    ) -> Result<Option<Value>> {
        if key.iter().any(|value| matches!(value, Value::Null)) {
            return Ok(None);
        }
        // No row has a value in its key that its field does not take.
        let Ok(fitted) = fit_key(self.schema, key) else { return Ok(None) };
        let by_time = self.schema.is_key_by_time();
        let begin = fitted.len() - usize::from(by_time);
        let bytes_of = |count: usize| primary_key(self.schema, fitted.iter().copied().take(count));
        let run = kept.run(bytes_of(begin), || {
            let (table, is_kept) = rows()?;
            Ok((Arc::new(self.run(table, &fitted, begin)?), is_kept))
        })?;
        let found = match &*run {
            Run::Whole(known) if !by_time => known.first().map(|(_, row)| row),
            Run::Whole(known) => {
                let whole = bytes_of(fitted.len());
                let behind = known.partition_point(|(key, _)| *key <= whole);
                behind.checked_sub(1).and_then(|at| known.get(at)).map(|(_, row)| row)
            }
            Run::Long => return self.newest(rows()?.0, &fitted, begin),
        };
        Ok(found.and_then(|row| row.get(self.position)).cloned())
    }

    /// The rows whose keys begin with some values.
    fn run(&self, table: SnapshotTable, key: &[ValueRef<'_>], begin: usize) -> Result<Run> {
        let owned = |values: &[ValueRef<'_>]| -> Vec<Value> {
            values.iter().map(|value| ValueRef::to_owned(*value)).collect()
        };
        if begin == key.len() {
            let row = table.get(&owned(key))?;
            let row = row.map(|row| (Vec::new(), row.values().to_vec()));
            return Ok(Run::Whole(row.into_iter().collect()));
        }
        // default: a key has a field before the last, or none: then all rows are meant
        let bound = owned(key.get(..begin).unwrap_or_default());
        let mut rows = table.range(bounds(bound.clone(), bound))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().transpose()? {
            if all.len() == RUN_ROWS_MAX {
                return Ok(Run::Long);
            }
            let key = self.schema.key_positions().iter().filter_map(|p| row.values().get(*p));
            all.push((primary_key(self.schema, key.map(Value::as_ref)), row.values().to_vec()));
        }
        Ok(Run::Whole(all))
    }

    /// The field of the last row that is not behind a key.
    fn newest(
        &self,
        table: SnapshotTable,
        key: &[ValueRef<'_>],
        begin: usize,
    ) -> Result<Option<Value>> {
        let owned: Vec<Value> = key.iter().map(|value| ValueRef::to_owned(*value)).collect();
        // default: a key has a field before the last, or none: then all rows are meant
        let begin = owned.get(..begin).unwrap_or_default().to_vec();
        let row = table.range(bounds(begin, owned))?.next_back().transpose()?;
        Ok(row.and_then(|row| row.values().get(self.position).cloned()))
    }
}

/// Bounds of a key, of which one without values is none.
fn bounds(least: Vec<Value>, greatest: Vec<Value>) -> (Bound<Vec<Value>>, Bound<Vec<Value>>) {
    let bound = |values: Vec<Value>| match values.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Included(values),
    };
    (bound(least), bound(greatest))
}

fn as_query_error(e: Error) -> esker_query::Error {
    let kind = match e.kind() {
        ErrorKind::Corrupt => esker_query::ErrorKind::Corrupt,
        // What the disk does is not the row's fault: another attempt may succeed.
        ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Poisoned => esker_query::ErrorKind::Io,
        ErrorKind::OverBudget => esker_query::ErrorKind::OverBudget,
        _ => esker_query::ErrorKind::InvalidQuery,
    };
    esker_query::Error::new(kind, e.to_string())
}

/// Rows of other tables as they are now, for those of one that wait for their commit.
pub(crate) struct NewestRows<'a> {
    pub engine: &'a EngineHandle,
    pub as_of: &'a LookedUpAsOf,
}

impl FindRows for NewestRows<'_> {
    fn find(
        &self,
        lookup: &Lookup,
        keys: (&[Column], usize),
        found: &mut Column,
    ) -> esker_query::Result<()> {
        self.find_newest(lookup, keys, found).map_err(as_query_error)
    }
}

impl NewestRows<'_> {
    fn find_newest(
        &self,
        lookup: &Lookup,
        keys: (&[Column], usize),
        found: &mut Column,
    ) -> Result<()> {
        let engine = self.engine;
        let commit = engine.watermarks.published();
        self.as_of.note(commit);
        let names = engine.names.load();
        let core = names.newest().get(&lookup.table);
        let core = core.ok_or_else(|| no_table(&lookup.table, names.newest()))?;
        let schema = core.schema();
        let wanted = Wanted::new(lookup, &schema)?;
        let changed_at = core.changed_at();
        let mut snapshot = None;
        let mut rows = || {
            let whole = match snapshot.take() {
                Some(taken) => taken,
                None => Snapshot::take_published(engine)?,
            };
            let table = whole.table_core(core)?;
            snapshot = Some(whole);
            // What is changed while it is read is refused at the commit.
            Ok((table, core.changed_at() <= commit))
        };
        if changed_at > commit {
            return wanted.find(keys, &mut Kept::default(), &mut rows, found);
        }
        engine
            .lookups
            .of(core.id(), (changed_at, commit), |kept| wanted.find(keys, kept, &mut rows, found))
    }
}

/// Rows of other tables as something has them that is read by their names.
pub(crate) struct RowsOf<'a>(RefCell<&'a mut TableByName<'a>>);

/// Reads a table by its name.
type TableByName<'a> = dyn FnMut(&str) -> Result<SnapshotTable> + 'a;

impl<'a> RowsOf<'a> {
    pub fn new(table: &'a mut TableByName<'a>) -> Self {
        Self(RefCell::new(table))
    }
}

impl FindRows for RowsOf<'_> {
    fn find(
        &self,
        lookup: &Lookup,
        keys: (&[Column], usize),
        found: &mut Column,
    ) -> esker_query::Result<()> {
        let mut find = || {
            let table = (self.0.borrow_mut())(&lookup.table)?;
            let schema = Arc::clone(table.schema());
            let wanted = Wanted::new(lookup, &schema)?;
            let mut first = Some(table);
            let mut rows = || match first.take() {
                Some(table) => Ok((table, true)),
                None => Ok(((self.0.borrow_mut())(&lookup.table)?, true)),
            };
            wanted.find(keys, &mut Kept::default(), &mut rows, found)
        };
        find().map_err(as_query_error)
    }
}

impl EngineHandle {
    /// Prepares and commits rows, again where rows that were looked up for them have changed
    /// meanwhile.
    pub(crate) fn looking_up<R>(
        &self,
        current: &TableVersion,
        mut run: impl FnMut(&TableVersion) -> Result<R>,
    ) -> Result<R> {
        if !self.looks_up(current)? {
            return run(current);
        }
        let mut attempts = 0;
        loop {
            let current = current.anew();
            match run(&current) {
                Err(e)
                    if e.kind() == ErrorKind::Conflict
                        && attempts < ATTEMPTS_MAX
                        && !current.is_outdated() =>
                {
                    attempts += 1;
                }
                result => return result,
            }
        }
    }
}

impl Engine {
    /// Refuses rows for which rows of other tables were looked up that have changed since. Under
    /// the commit lock.
    ///
    /// # Errors
    /// `Conflict` naming the table.
    pub(crate) fn expect_looked_up(&self, current: &TableVersion) -> Result<()> {
        let Some(commit) = current.looked_up.commit() else { return Ok(()) };
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        let names = self.names.load();
        for table in checks.generated().tables() {
            let core = names.newest().get(table);
            if core.is_none_or(|core| core.changed_at() > commit) {
                let name = current.core.name();
                return Err(conflict(format!(
                    "table {table:?}, in which rows for table {name:?} were looked up, was changed \
                     by another commit meanwhile"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use esker_query::model::{Expr, Lookup};

    use crate::{DataType, ErrorKind, Options, Schema, Value, generated};

    /// What the commit lock finds of rows that were prepared before.
    #[test]
    fn a_row_is_refused_when_what_was_looked_up_for_it_changes_before_its_commit() {
        let db = Options::new().background(false).memory().unwrap();
        let prices = Schema::builder().field("model", DataType::Text).field("price", DataType::I64);
        let prices = prices.primary_key(["model"]).build().unwrap();
        let prices = db.create_table("prices", prices).unwrap();
        let (table, field, keys) = ("prices".into(), "price".into(), vec![Expr::field("model")]);
        let price = Lookup { table, field, keys, data_type: None };
        let price = generated(&Expr::Lookup(Box::new(price))).unwrap();
        let calls = Schema::builder().field("model", DataType::Text);
        let calls = calls.nullable("price", DataType::I64).generated(price).build().unwrap();
        let calls = db.create_table("calls", calls).unwrap();
        let (given, engine) = (["a".into(), Value::Null], db.engine());
        let change = |price: i64| assert!(prices.upsert(&["a".into(), price.into()]).is_ok());
        let truncate = |_: i64| db.truncate_table("prices").unwrap();
        change(1);
        let changes: [(&dyn Fn(i64), i64); 3] = [(&change, 2), (&truncate, 0), (&change, 3)];
        for (change, price) in changes {
            let current = calls.current();
            let row = engine.complete_row(&current, &given).unwrap().into_owned();
            let put = |row: Vec<Value>| {
                calls.change(&current, |writer, staged| {
                    let prepared = writer.prepare_put(&row, true)?;
                    staged.put(row, prepared);
                    Ok(())
                })
            };
            change(price);
            let e = put(row).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
            assert!(e.to_string().contains("rows for table \"calls\" were looked up"), "{e}");
        }
        assert_eq!(calls.count().unwrap(), 0);
        calls.insert(&given).unwrap();
        let row = calls.iter().unwrap().next().unwrap().unwrap();
        assert_eq!(row.get("price"), Some(&Value::Int(3)));
    }
}
