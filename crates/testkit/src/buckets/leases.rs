//! Operations on a table whose rows expire: by key, by statements, by operators, by a load; and the
//! field by which they do.

use esker::{Alteration, Database, ErrorKind, Modified, Table, Transaction, Update, Value};
use esker_query::model::{self, Change, Delete, Expr, Insert, OnConflict, Operator};

use super::driver::{Driver, Synced};
use super::lease::{self, ExpiresBy, IDS, LEASES, Lease, Leases, SIZES};
use super::model::State;
use super::observe::Moment;
use crate::oracle::said;

/// Rows of a load: more than fit a segment of these workloads.
const LOADED_MAX: u64 = 20;
/// How often the field by which rows expire is set, in a million.
const EXPIRE_OTHERWISE: u32 = 150_000;

/// A value of one of the fields by which rows expire.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    by: ExpiresBy,
    end_us: Option<i64>,
}

impl End {
    fn put(self, lease: &mut Lease) {
        match self.by {
            ExpiresBy::Until => lease.until_us = self.end_us,
            ExpiresBy::Later => lease.later_us = self.end_us,
            ExpiresBy::Nothing => {}
        }
    }

    /// Field and value, to be set.
    fn set(self) -> (&'static str, Value) {
        (self.by.field().unwrap_or_default(), self.end_us.map_or(Value::Null, Value::Timestamp))
    }
}

/// A change of rows, that a table and a transaction do alike.
#[derive(Clone, Debug)]
pub(super) enum LeaseChange {
    Insert(i64, Lease),
    Upsert(i64, Lease),
    /// Another end.
    Extend(i64, End),
    /// The number in the document grows, and so does the other one.
    Grow(i64),
    Delete(i64),
    /// By a statement: the rows of a size have another end.
    ExtendAll(i64, End),
    /// By a statement: the rows of a size go.
    DeleteAll(i64),
    /// By a statement: a new row, which is left out or replaces the one of its key.
    Put(i64, Lease, bool),
}

impl LeaseChange {
    /// Does it to the model: how many rows it changes, or why it is refused.
    fn apply(&self, leases: &mut Leases, now_us: i64) -> Result<u64, ErrorKind> {
        let there = |leases: &Leases, id: &i64| leases.get(*id, now_us).is_some();
        let by = leases.by;
        match self {
            Self::Insert(id, _) if there(leases, id) => return Err(ErrorKind::AlreadyExists),
            Self::Put(id, _, false) if there(leases, id) => return Ok(0),
            Self::Insert(id, lease) | Self::Upsert(id, lease) | Self::Put(id, lease, _) => {
                leases.rows.insert(*id, lease.clone());
            }
            Self::Extend(id, _) | Self::Grow(id) | Self::Delete(id) if !there(leases, id) => {
                return Ok(0);
            }
            Self::Extend(id, end) => {
                leases.rows.entry(*id).and_modify(|lease| end.put(lease));
            }
            Self::Grow(id) => {
                leases.rows.entry(*id).and_modify(|lease| {
                    lease.inner += 1;
                    lease.size += 1;
                });
            }
            Self::Delete(id) => drop(leases.rows.remove(id)),
            Self::ExtendAll(size, end) => {
                let mut count = 0;
                for lease in leases.rows.values_mut() {
                    if lease.is_there(by, now_us) && lease.size == *size {
                        end.put(lease);
                        count += 1;
                    }
                }
                return Ok(count);
            }
            Self::DeleteAll(size) => {
                let rows = &mut leases.rows;
                let before = rows.len();
                rows.retain(|_, lease| !lease.is_there(by, now_us) || lease.size != *size);
                return Ok((before - rows.len()) as u64);
            }
        }
        Ok(1)
    }

    /// The statement, where it is one.
    fn statement(&self) -> esker::Result<Option<Change>> {
        let of = |size: &i64| Some(Expr::field("size").binary(Operator::Eq, Expr::literal(*size)));
        let table = LEASES.to_owned();
        Ok(Some(match self {
            Self::ExtendAll(size, end) => {
                let (field, value) = end.set();
                let set = vec![(field.to_owned(), Expr::Literal(value))];
                let filter = of(size);
                Change::Update(model::Update { table, set, filter, ..model::Update::default() })
            }
            Self::DeleteAll(size) => {
                Change::Delete(Delete { table, filter: of(size), ..Delete::default() })
            }
            Self::Put(id, lease, replaces) => {
                let row = lease.values(*id)?.into_iter().map(Expr::Literal).collect();
                let on_conflict = if *replaces { OnConflict::Replace } else { OnConflict::Skip };
                Change::Insert(Insert { on_conflict, ..Insert::values(table, vec![row]) })
            }
            _ => return Ok(None),
        }))
    }

    fn on_table(&self, db: &Database) -> esker::Result<u64> {
        if let Some(statement) = self.statement()? {
            return db.change(&statement);
        }
        let table: Table = db.table(LEASES)?;
        Ok(match self {
            Self::Insert(id, lease) => table.insert(&lease.values(*id)?).map(|_| 1)?,
            Self::Upsert(id, lease) => table.upsert(&lease.values(*id)?).map(|_| 1)?,
            Self::Extend(id, end) => table.update(&[(*id).into()], &[end.set()])?.into(),
            Self::Grow(id) => u64::from(table.apply(&[(*id).into()], &grow())? != Modified::Absent),
            Self::Delete(id) => table.delete(&[(*id).into()])?.into(),
            _ => 0,
        })
    }

    fn within(&self, transaction: &Transaction) -> esker::Result<u64> {
        if let Some(statement) = self.statement()? {
            return transaction.change(&statement);
        }
        let table = transaction.table(LEASES)?;
        Ok(match self {
            Self::Insert(id, lease) => table.insert(&lease.values(*id)?).map(|_| 1)?,
            Self::Upsert(id, lease) => table.upsert(&lease.values(*id)?).map(|_| 1)?,
            Self::Extend(id, end) => table.update(&[(*id).into()], &[end.set()])?.into(),
            Self::Grow(id) => u64::from(table.apply(&[(*id).into()], &grow())? != Modified::Absent),
            Self::Delete(id) => table.delete(&[(*id).into()])?.into(),
            _ => 0,
        })
    }
}

fn grow() -> Update {
    Update::new().increment("doc.inner", 1i64).increment("size", 1i64)
}

impl Driver<'_> {
    fn draw_id(&mut self) -> i64 {
        self.generator.below(IDS).cast_signed()
    }

    fn draw_end_of(&mut self) -> End {
        let by = self.generator.pick([ExpiresBy::Until, ExpiresBy::Until, ExpiresBy::Later]);
        End { by, end_us: self.draw_end() }
    }

    fn draw_end(&mut self) -> Option<i64> {
        let seconds = [-5, 0, 2, 3, 10, 60, 3_600];
        let is_bound = self.generator.chance(700_000);
        is_bound.then(|| self.now.date_us + 1_000_000 * self.generator.pick(seconds))
    }

    fn draw_lease(&mut self) -> Lease {
        self.serial += 1;
        let is_tagged = self.generator.chance(600_000);
        Lease {
            size: self.generator.below(SIZES).cast_signed(),
            tag: is_tagged.then(|| self.generator.below(2 * IDS).cast_signed()),
            inner: i64::try_from(self.serial % 1_000_000).unwrap_or_default(),
            until_us: self.draw_end(),
            later_us: self.draw_end(),
        }
    }

    fn draw_change(&mut self) -> LeaseChange {
        let (id, size) = (self.draw_id(), self.generator.below(SIZES).cast_signed());
        match self.generator.below(20) {
            0..4 => LeaseChange::Insert(id, self.draw_lease()),
            4..9 => LeaseChange::Upsert(id, self.draw_lease()),
            9..11 => LeaseChange::Extend(id, self.draw_end_of()),
            11..13 => LeaseChange::Grow(id),
            13..15 => LeaseChange::Delete(id),
            15 => LeaseChange::ExtendAll(size, self.draw_end_of()),
            16 => LeaseChange::DeleteAll(size),
            _ => LeaseChange::Put(id, self.draw_lease(), self.generator.chance(400_000)),
        }
    }

    /// Changes rows of the table whose rows expire.
    pub(super) fn lease(&mut self) -> Result<(), String> {
        if self.generator.chance(120_000) {
            return self.load_leases();
        }
        if self.generator.chance(EXPIRE_OTHERWISE) {
            return self.expire_otherwise();
        }
        let change = self.draw_change();
        let mut state = (*self.state).clone();
        let expected = change.apply(&mut state.leases, self.now.date_us);
        let changes = matches!(expected, Ok(1..));
        let what = format!("lease {change:?}");
        let tells_time = state.leases.by != ExpiresBy::Nothing;
        self.change(what, (state, Synced::Default), tells_time, |_, db, _| {
            match (change.on_table(db), expected) {
                (Ok(rows), Ok(wanted)) if rows == wanted => Ok(changes),
                (Err(e), Err(wanted)) if e.kind() == wanted => Ok(false),
                (answer, wanted) => Err(format!("answered {answer:?}, expected {wanted:?}")),
            }
        })
    }

    /// Rows expire by another field from now on, by none, or by the same.
    fn expire_otherwise(&mut self) -> Result<(), String> {
        let all = [ExpiresBy::Until, ExpiresBy::Until, ExpiresBy::Later, ExpiresBy::Nothing];
        let by = self.generator.pick(all);
        let mut state = (*self.state).clone();
        state.leases.expire_by(by, self.now.date_us);
        let what = format!("leases expire by {by:?}");
        self.change(what, (state, Synced::Default), true, |_, db, _| {
            let alteration = Alteration::SetExpiry(by.field().map(str::to_owned));
            db.alter_table(LEASES, &[alteration]).map(|()| true).map_err(|e| said(&e))
        })
    }

    /// Loads rows; those whose keys are there are left out.
    fn load_leases(&mut self) -> Result<(), String> {
        let (mut state, mut rows) = ((*self.state).clone(), Vec::new());
        for _ in 0..self.generator.below(LOADED_MAX) {
            let (id, lease) = (self.draw_id(), self.draw_lease());
            let there = state.leases.get(id, self.now.date_us).is_some();
            if there || rows.iter().any(|(other, _)| *other == id) {
                continue;
            }
            state.leases.rows.insert(id, lease.clone());
            rows.push((id, lease));
        }
        let any = !rows.is_empty();
        let what = format!("load {} leases", rows.len());
        self.change(what, (state, Synced::Default), false, |_, db, _| {
            let load = || -> esker::Result<()> {
                let mut load = db.table(LEASES)?.load()?;
                for (id, lease) in rows {
                    load.push_row(&lease.values(id)?)?;
                }
                load.finish().map(drop)
            };
            load().map(|()| any).map_err(|e| said(&e))
        })
    }

    /// Changes a row of that table within a transaction.
    pub(super) fn lease_within(
        &mut self,
        transaction: &Transaction,
        state: &mut State,
    ) -> Result<(), String> {
        let change = self.draw_change();
        let expected = change.apply(&mut state.leases, self.now.date_us);
        match (change.within(transaction), expected) {
            (Ok(rows), Ok(wanted)) if rows == wanted => Ok(()),
            (Err(e), Err(wanted)) if e.kind() == wanted => Ok(()),
            (answer, wanted) => {
                Err(format!("{change:?} within answered {answer:?}, expected {wanted:?}"))
            }
        }
    }

    /// The transaction sees the rows of that table as it has made them.
    pub(super) fn see_leases(
        &self,
        transaction: &Transaction,
        state: &State,
    ) -> Result<(), String> {
        let query = esker::Query::table(LEASES);
        let found = transaction.query(&query).map_err(|e| said(&e))?.to_rows();
        let moment = Moment::at(self.now.date_us);
        lease::expect(&found, &state.leases, moment).map_err(|why| format!("within: {why}"))
    }
}
