//! Rows by their keys.

use esker::{
    ChangeOptions, ErrorKind, Row, Schema, ScopedTable, Semantics, Transaction, Value, ValueRef,
};
use esker_import::{parse_json_row, parse_new_json_row, schema_text, with_rest};
use esker_query::model::{Change, Expr, Insert, OnConflict};

use super::{Answer, Conflict, Fields, Key, Level, Rows, Session};
use crate::{Code, Error, Result};

impl Session {
    pub(super) fn tables(&self) -> Result<Answer> {
        self.access.expect(Level::Read, None)?;
        let (mut tables, buckets) = (self.scope().names()?, self.scope().buckets()?);
        tables.retain(|name| buckets.binary_search(name).is_err());
        Ok(Answer::Names(tables))
    }

    pub(super) fn schema(&self, table: &str) -> Result<Answer> {
        let table = self.table(Level::Read, table)?;
        Ok(Answer::Text(schema_text::write(&table.schema())))
    }

    fn table(&self, level: Level, name: &str) -> Result<ScopedTable<'_>> {
        self.access.expect(level, Some(name))?;
        Ok(self.scope().table(name)?)
    }

    pub(super) fn get(&self, table: &str, keys: Vec<Key>) -> Result<Answer> {
        let table = self.table(Level::Read, table)?;
        let keys = values_of(keys, &table)?;
        let reader = table.reader(keys.len())?;
        Ok(Answer::Rows(self.found(self.each(&keys, |key| reader.get(key)))?))
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
        let reader = table.reader(keys.len())?;
        let flags = self.each(&keys, |key| reader.exists(key)).collect::<esker::Result<_>>()?;
        Ok(Answer::Flags(flags))
    }

    pub(super) fn insert(&self, name: &str, rows: Rows, conflict: Conflict) -> Result<Answer> {
        let table = self.table(Level::Write, name)?;
        let inserts = match rows {
            Rows::Values(rows) => {
                self.reserve_quota(rows.len(), 0)?;
                return self.insert_values(&table, &rows, conflict);
            }
            Rows::Objects(rows) => {
                self.reserve_quota(rows.len(), rows.iter().map(String::len).sum())?;
                let schema = table.schema();
                let read = |row: String| Ok(parse_new_json_row(&row, &schema)?);
                inserts_of(name, rows.into_iter().map(read), conflict)?
            }
            Rows::Named(rows) => {
                self.reserve_quota(rows.len(), 0)?;
                let schema = table.schema();
                let rows = rows.into_iter().map(|row| fitted(with_rest(row, &schema)?, &schema));
                inserts_of(name, rows, conflict)?
            }
        };
        let options = self.change_options(Vec::new(), Semantics::default());
        let options = ChangeOptions { takes_whole_rows: true, ..options };
        let stored = match inserts.as_slice() {
            [one] => self.scope().change_with(one, &options)?.rows,
            inserts => self.as_one(|transaction| {
                let insert = |insert| Ok(transaction.change_with(insert, &options)?.rows);
                self.each(inserts, insert).sum()
            })?,
        };
        Ok(Answer::Stored { rows: stored, row_id: None })
    }

    fn insert_values(
        &self,
        table: &ScopedTable<'_>,
        rows: &[Vec<Value>],
        conflict: Conflict,
    ) -> Result<Answer> {
        self.expect_wanted()?;
        let replace = conflict == Conflict::Replace;
        let row_id = match (rows, replace) {
            ([row], true) => Some(table.upsert(row)?),
            ([row], false) => Some(table.insert(row)?),
            (rows, true) => table.upsert_many(rows, &self.limits()).map(|()| None)?,
            (rows, false) => table.insert_many(rows, &self.limits()).map(|()| None)?,
        };
        Ok(Answer::Stored { rows: rows.len() as u64, row_id })
    }

    pub(super) fn update(&self, table: &str, key: Key, fields: Fields) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        self.reserve_quota(0, 0)?;
        let schema = table.schema();
        let (key, fields) = update_of((key, fields), &schema)?;
        let changed = table.update(&key, &borrowed(&fields))?;
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
        Ok(Answer::Changed(table.update_many(&updates, &self.limits())?))
    }

    pub(super) fn delete(&self, table: &str, keys: Vec<Key>) -> Result<Answer> {
        let table = self.table(Level::Write, table)?;
        self.expect_wanted()?;
        let removed = match values_of(keys, &table)?.as_slice() {
            [key] => u64::from(table.delete(key)?),
            keys => table.delete_many(keys, &self.limits())?,
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

    /// Does several changes as one: all of them, or none where one fails. They are part of the
    /// transaction of the session, or one commit.
    pub(super) fn as_one<R>(&self, act: impl Fn(&Transaction) -> esker::Result<R>) -> Result<R> {
        let Some(transaction) = self.transaction() else {
            return Ok(self.database().transact(act)?);
        };
        Ok(transaction.all_or_nothing(act)?)
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

fn values_of(keys: Vec<Key>, table: &ScopedTable<'_>) -> Result<Vec<Vec<Value>>> {
    let schema = table.schema();
    keys.into_iter().map(|key| key.into_values(&schema)).collect()
}

/// A row by the names of its fields, each value as its field keeps it.
fn fitted(row: Vec<(String, Value)>, schema: &Schema) -> Result<Vec<(String, Value)>> {
    let fit = |(name, value): (String, Value)| {
        let position = schema.resolve(&name)?;
        match schema.fields().get(position) {
            Some(field) => Ok((name, field.fit(&value)?)),
            None => Err(Error::invalid(format!("unknown field {name:?}"))),
        }
    };
    row.into_iter().map(fit).collect()
}

/// Inserts of rows whose values have names: one for each run of rows with the same fields.
fn inserts_of(
    table: &str,
    rows: impl Iterator<Item = Result<Vec<(String, Value)>>>,
    conflict: Conflict,
) -> Result<Vec<Change>> {
    let on_conflict = match conflict {
        Conflict::Fail => OnConflict::Fail,
        Conflict::Replace => OnConflict::Replace,
    };
    let mut runs: Vec<(Vec<String>, Vec<Vec<Expr>>)> = Vec::new();
    for (i, row) in rows.enumerate() {
        // People count from 1.
        let row = row.map_err(|e| e.at(format_args!("row {}", i + 1)))?;
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
            ..Insert::values(table, rows)
        })
    };
    Ok(runs.into_iter().map(insert).collect())
}
