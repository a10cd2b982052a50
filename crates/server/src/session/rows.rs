//! Rows by their keys.

use esker::{Database, ErrorKind, Row, RowUpdate, Schema, Table, Transaction, Value, ValueRef};
use esker_format::batch::fit_value;
use esker_import::{parse_json_row, schema_text};
use esker_query::model::{Change, Expr, Insert, OnConflict};

use super::{Answer, Conflict, Fields, Key, Level, Rows, Session};
use crate::{Code, Error, Result};

/// Keys that are removed in a commit that is put together in memory; a transaction takes more.
const COMMIT_KEYS_MAX: usize = 100_000;
/// Rows that are stored between two looks at whether they are wanted still.
const PART_ROWS: usize = 1_000;

impl Session {
    pub(super) fn tables(&self) -> Result<Answer> {
        self.access.expect(Level::Read, None)?;
        let (mut tables, buckets) = (self.database().tables(), self.database().buckets());
        tables.retain(|name| buckets.binary_search(name).is_err());
        Ok(Answer::Names(tables))
    }

    pub(super) fn schema(&self, table: &str) -> Result<Answer> {
        let table = self.table(Level::Read, table)?;
        Ok(Answer::Text(schema_text::write(&table.schema())))
    }

    fn table(&self, level: Level, name: &str) -> Result<Table> {
        self.access.expect(level, Some(name))?;
        Ok(self.database().table(name)?)
    }

    pub(super) fn get(&self, table: &str, keys: Vec<Key>) -> Result<Answer> {
        let table = self.table(Level::Read, table)?;
        let keys = values_of(keys, &table)?;
        let rows: Vec<Option<Row>> = match (self.transaction(), keys.as_slice()) {
            (Some(transaction), keys) => {
                let within = transaction.table(&table.name())?;
                self.found(self.each(keys, |key| within.get(key)))?
            }
            (None, [key]) => self.found(std::iter::once(table.get(key)))?,
            (None, keys) => {
                let snapshot = table.snapshot()?;
                self.found(self.each(keys, |key| snapshot.get(key)))?
            }
        };
        Ok(Answer::Rows(rows))
    }

    /// Rows as they are found, as long as there is room for them.
    fn found(
        &self,
        rows: impl Iterator<Item = esker::Result<Option<Row>>>,
    ) -> Result<Vec<Option<Row>>> {
        let with_room = |row: esker::Result<Option<Row>>| {
            let row = row?;
            let values = row.iter().flat_map(|row| row.values());
            self.take_answer(values.map(|value| value_bytes(value.as_ref())).sum())?;
            Ok(row)
        };
        rows.map(with_room).collect()
    }

    pub(super) fn exists(&self, table: &str, keys: Vec<Key>) -> Result<Answer> {
        let table = self.table(Level::Read, table)?;
        let keys = values_of(keys, &table)?;
        let flags = match (self.transaction(), keys.as_slice()) {
            (Some(transaction), keys) => {
                let within = transaction.table(&table.name())?;
                self.each(keys, |key| within.exists(key)).collect::<esker::Result<_>>()?
            }
            (None, [key]) => vec![table.exists(key)?],
            (None, keys) => {
                let snapshot = table.snapshot()?;
                self.each(keys, |key| snapshot.exists(key)).collect::<esker::Result<_>>()?
            }
        };
        Ok(Answer::Flags(flags))
    }

    pub(super) fn insert(&self, table: &str, rows: Rows, conflict: Conflict) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        let inserts = match rows {
            Rows::Values(rows) => {
                self.reserve_quota(rows.len(), 0)?;
                return self.insert_values(&table, &rows, conflict);
            }
            Rows::Objects(rows) => {
                self.reserve_quota(rows.len(), rows.iter().map(String::len).sum())?;
                let schema = table.schema();
                let read = |row: String| Ok(parse_json_row(&row, &schema)?);
                inserts_of(&table, rows.into_iter().map(read), conflict)?
            }
            Rows::Named(rows) => {
                self.reserve_quota(rows.len(), 0)?;
                let schema = table.schema();
                inserts_of(&table, rows.into_iter().map(|row| fitted(row, &schema)), conflict)?
            }
        };
        let stored = match (self.transaction(), inserts.as_slice()) {
            (Some(transaction), inserts) => {
                all_or_none(transaction, || self.insert_all(transaction, inserts))?
            }
            (None, [one]) => {
                self.database().change_with(one, &self.change_options(Vec::new()))?.rows
            }
            (None, inserts) => in_transaction(self.database(), |transaction| {
                self.insert_all(transaction, inserts)
            })?,
        };
        Ok(Answer::Stored { rows: stored, row_id: None })
    }

    fn insert_all(&self, transaction: &Transaction, inserts: &[Change]) -> esker::Result<u64> {
        let options = self.change_options(Vec::new());
        self.each(inserts, |insert| Ok(transaction.change_with(insert, &options)?.rows)).sum()
    }

    fn insert_values(
        &self,
        table: &Table,
        rows: &[Vec<Value>],
        conflict: Conflict,
    ) -> Result<Answer> {
        let replace = conflict == Conflict::Replace;
        let stored = rows.len() as u64;
        self.expect_wanted()?;
        let row_id = match (self.transaction(), rows) {
            (Some(transaction), [row]) => {
                let within = transaction.table(&table.name())?;
                Some(if replace { within.upsert(row) } else { within.insert(row) }?)
            }
            (Some(transaction), rows) => {
                all_or_none(transaction, || self.insert_parts(transaction, table, rows, replace))?;
                None
            }
            (None, [row]) => Some(if replace { table.upsert(row) } else { table.insert(row) }?),
            (None, rows) if rows.len() > COMMIT_KEYS_MAX => {
                in_transaction(self.database(), |transaction| {
                    self.insert_parts(transaction, table, rows, replace)
                })?;
                None
            }
            (None, rows) => {
                let limits = self.limits();
                match replace {
                    true => table.upsert_many_with(rows, &limits)?,
                    false => table.insert_many_with(rows, &limits)?,
                }
                None
            }
        };
        Ok(Answer::Stored { rows: stored, row_id })
    }

    /// Stores rows a part at a time, as long as they are wanted.
    fn insert_parts(
        &self,
        transaction: &Transaction,
        table: &Table,
        rows: &[Vec<Value>],
        replace: bool,
    ) -> esker::Result<()> {
        let within = transaction.table(&table.name())?;
        let parts: Vec<(usize, &[Vec<Value>])> = rows.chunks(PART_ROWS).enumerate().collect();
        let store = |(position, part): &(usize, &[Vec<Value>])| {
            let stored = if replace { within.upsert_many(part) } else { within.insert_many(part) };
            let first = (position * PART_ROWS) as u64;
            stored.map_err(|e| match numbered(&e.to_string(), first) {
                Some(message) => esker::Error::new(e.kind(), message),
                None => e,
            })
        };
        self.each(&parts, store).collect()
    }

    pub(super) fn update(&self, table: &str, key: Key, fields: Fields) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        self.reserve_quota(0, 0)?;
        let schema = table.schema();
        let (key, fields) = update_of((key, fields), &schema)?;
        let fields: Vec<(&str, Value)> = borrowed(&fields);
        let changed = match self.transaction() {
            Some(transaction) => transaction.table(&table.name())?.update(&key, &fields)?,
            None => table.update(&key, &fields)?,
        };
        Ok(Answer::Changed(u64::from(changed)))
    }

    pub(super) fn update_many(&self, table: &str, updates: Vec<(Key, Fields)>) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        self.reserve_quota(0, 0)?;
        let schema = table.schema();
        let fitted = updates.into_iter().enumerate().map(|(position, update)| {
            self.expect_wanted()?;
            update_of(update, &schema).map_err(|e| e.at(format_args!("update {position}")))
        });
        let updates: Vec<Update> = fitted.collect::<Result<_>>()?;
        let update_all = |transaction: &Transaction| {
            let within = transaction.table(&table.name())?;
            let update =
                |(key, fields): &Update| Ok(u64::from(within.update(key, &borrowed(fields))?));
            self.each(&updates, update).sum()
        };
        let changed = match self.transaction() {
            Some(transaction) => all_or_none(transaction, || update_all(transaction))?,
            None if updates.len() <= COMMIT_KEYS_MAX => {
                table.update_many_with(&updates, &self.limits())?
            }
            None => in_transaction(self.database(), update_all)?,
        };
        Ok(Answer::Changed(changed))
    }

    /// Changes rows of a table in one commit, each of which a request of its own asks for. Says
    /// of each whether there was a row; where one cannot be changed none is.
    pub(crate) fn update_each(
        &self,
        table: &str,
        updates: &[RowUpdate<&str>],
    ) -> Result<Vec<bool>> {
        let table = self.table(Level::Write, table)?;
        // As each by itself would count.
        let done =
            self.reserve_quota(0, updates.len()).and_then(|()| Ok(table.update_each(updates)?));
        self.release_room();
        done
    }

    /// Removes rows of a table likewise.
    pub(crate) fn delete_each(&self, table: &str, keys: &[Vec<Value>]) -> Result<Vec<bool>> {
        Ok(self.table(Level::Write, table)?.delete_each(keys)?)
    }

    pub(super) fn delete(&self, table: &str, keys: Vec<Key>) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        let keys = values_of(keys, &table)?;
        let delete_all = |transaction: &Transaction| {
            let within = transaction.table(&table.name())?;
            self.each(&keys, |key| Ok(u64::from(within.delete(key)?))).sum()
        };
        let removed = match (self.transaction(), keys.as_slice()) {
            (Some(transaction), _) => all_or_none(transaction, || delete_all(transaction))?,
            (None, [key]) => u64::from(table.delete(key)?),
            (None, keys) if keys.len() <= COMMIT_KEYS_MAX => {
                self.expect_wanted()?;
                table.delete_many_with(keys, &self.limits())?
            }
            (None, _) => in_transaction(self.database(), delete_all)?,
        };
        Ok(Answer::Changed(removed))
    }
}

impl Session {
    /// Does something that, where it fails, leaves a transaction of the session as it was.
    pub(crate) fn all_or_none<R>(&mut self, act: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let savepoint = self.transaction().map(Transaction::savepoint);
        let done = act(self);
        if let (Some(savepoint), Some(transaction)) = (savepoint, self.transaction()) {
            if done.is_err() {
                transaction.rollback_to(savepoint)?;
            }
            transaction.release(savepoint)?;
        }
        done
    }

    /// Does something for each of many keys, rows or entries, as long as it is wanted.
    pub(super) fn each<'k, K, R>(
        &'k self,
        keys: &'k [K],
        act: impl Fn(&'k K) -> esker::Result<R> + 'k,
    ) -> impl Iterator<Item = esker::Result<R>> + 'k {
        keys.iter().map(move |key| {
            self.expect_wanted().map_err(|e| unwanted(&e))?;
            act(key)
        })
    }
}

/// What is said of a row of a part, `row N: …`, with its number among all.
pub(crate) fn numbered(message: &str, first: u64) -> Option<String> {
    let (row, rest) = message.strip_prefix("row ")?.split_once(": ")?;
    Some(format!("row {}: {rest}", first + row.parse::<u64>().ok()?))
}

/// That a request was cancelled or took too long, as the database says it: a transaction that
/// fails with it is rolled back.
pub(crate) fn unwanted(e: &Error) -> esker::Error {
    let is_late = e.code() == Code::Timeout;
    let kind = if is_late { ErrorKind::TimedOut } else { ErrorKind::Cancelled };
    esker::Error::new(kind, e.message().to_owned())
}

/// About how many bytes of an answer a value takes.
pub(crate) fn value_bytes(value: ValueRef<'_>) -> usize {
    const FIXED_BYTES: usize = 9;
    value.as_bytes().map_or(FIXED_BYTES, |bytes| bytes.len() + 1)
}

/// Does something within a transaction that goes on: all of it, or nothing where it fails.
pub(super) fn all_or_none<R>(
    transaction: &Transaction,
    act: impl FnOnce() -> esker::Result<R>,
) -> Result<R> {
    let savepoint = transaction.savepoint();
    let done = act();
    if done.is_err() {
        transaction.rollback_to(savepoint)?;
    }
    transaction.release(savepoint)?;
    Ok(done?)
}

/// Runs changes as one commit.
pub(super) fn in_transaction<R>(
    database: &Database,
    run: impl Fn(&Transaction) -> esker::Result<R>,
) -> Result<R> {
    Ok(database.transact(|transaction| run(transaction))?)
}

/// A key, and the fields that get other values.
type Update = (Vec<Value>, Vec<(String, Value)>);

fn update_of((key, fields): (Key, Fields), schema: &Schema) -> Result<Update> {
    let key = key.into_values(schema)?;
    let fields = match fields {
        Fields::Values(fields) => fields,
        Fields::Object(text) => parse_json_row(&text, schema)?,
    };
    Ok((key, fields))
}

fn borrowed(fields: &[(String, Value)]) -> Vec<(&str, Value)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
}

fn values_of(keys: Vec<Key>, table: &Table) -> Result<Vec<Vec<Value>>> {
    let schema = table.schema();
    keys.into_iter().map(|key| key.into_values(&schema)).collect()
}

/// A row by the names of its fields, each value as its field keeps it.
fn fitted(row: Vec<(String, Value)>, schema: &Schema) -> Result<Vec<(String, Value)>> {
    let fit = |(name, value): (String, Value)| {
        let position = schema.resolve(&name)?;
        match schema.fields().get(position) {
            Some(field) => Ok((name, fit_value(field, value.as_ref())?.to_owned())),
            None => Err(Error::invalid(format!("unknown field {name:?}"))),
        }
    };
    row.into_iter().map(fit).collect()
}

/// Inserts of rows whose values have names: one for each run of rows with the same fields.
fn inserts_of(
    table: &Table,
    rows: impl Iterator<Item = Result<Vec<(String, Value)>>>,
    conflict: Conflict,
) -> Result<Vec<Change>> {
    let on_conflict = match conflict {
        Conflict::Fail => OnConflict::Fail,
        Conflict::Replace => OnConflict::Replace,
    };
    let name = table.name();
    let mut runs: Vec<(Vec<String>, Vec<Vec<Expr>>)> = Vec::new();
    for (i, row) in rows.enumerate() {
        let row = row.map_err(|e| e.at(format_args!("row {i}")))?;
        let (names, values): (Vec<_>, _) =
            row.into_iter().map(|(name, value)| (name, Expr::Literal(value))).unzip();
        match runs.last_mut() {
            Some((last, rows)) if *last == names => rows.push(values),
            _ => runs.push((names, vec![values])),
        }
    }
    let insert = |(fields, rows)| {
        Change::Insert(Insert {
            fields,
            on_conflict: on_conflict.clone(),
            ..Insert::values(&name, rows)
        })
    };
    Ok(runs.into_iter().map(insert).collect())
}
