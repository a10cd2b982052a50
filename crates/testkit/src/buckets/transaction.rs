//! Transactions over two buckets and a table: what they see, what they leave, and who wins.

use std::sync::Arc;

use esker::{ErrorKind, Isolation, Transaction, TransactionBucket, TransactionOptions, Value};

use super::driver::{Driver, Synced};
use super::model::{ExpiresBy, NAMES, State};
use super::observe::TABLE;
use super::operation::Learn;
use crate::oracle::said;

/// What a transaction of the model has come to.
type Staged = (State, Vec<Learn>);

impl Driver<'_> {
    /// Changes two buckets and a table in a transaction, which is committed, rolled back, or
    /// overtaken by somebody else.
    pub(super) fn transaction(&mut self) -> Result<(), String> {
        let (db, synced) = (self.db()?, self.draw_synced());
        let mut options = TransactionOptions::new();
        if self.generator.chance(400_000) {
            options = options.isolation(Isolation::Serializable);
        }
        if let Some(sync) = synced.option() {
            options = options.sync(sync);
        }
        let transaction = db.begin_with(options).map_err(|e| said(&e))?;
        let mut staged: Staged = ((*self.state).clone(), Vec::new());
        for _ in 0..1 + self.generator.below(5) {
            self.change_within(&transaction, &mut staged)?;
            if self.generator.chance(250_000) {
                let (savepoint, before) = (transaction.savepoint(), staged.clone());
                self.change_within(&transaction, &mut staged)?;
                self.see(&transaction, &staged.0)?;
                transaction.rollback_to(savepoint).map_err(|e| said(&e))?;
                staged = before;
            }
            self.see(&transaction, &staged.0)?;
        }
        let id = i64::try_from(self.generator.below(9)).unwrap_or_default();
        let n = i64::try_from(self.serial).unwrap_or_default();
        let table = transaction.table(TABLE).map_err(|e| said(&e))?;
        let read = (id + 1) % 9;
        let found = table.get(&[Value::Int(read)]).map_err(|e| said(&e))?;
        let found = found.and_then(|row| row.get("n").cloned());
        if found != staged.0.rows.get(&read).map(|n| Value::Int(*n)) {
            return Err(format!("row {read} within: {found:?}"));
        }
        table.upsert(&[Value::Int(id), Value::Int(n)]).map_err(|e| said(&e))?;
        staged.0.rows.insert(id, n);
        match self.generator.below(10) {
            0 => {
                self.note("a transaction that is rolled back");
                transaction.rollback();
                Ok(())
            }
            1 => {
                let reads = transaction.isolation() == Isolation::Serializable;
                let id = if reads && self.generator.chance(500_000) { read } else { id };
                self.overtake(transaction, (id, n))
            }
            _ => {
                let (state, learn) = staged;
                let what = format!("transaction {options:?}");
                // The log is told the time where entries change.
                let before = &self.state;
                let of_leases =
                    state.leases != before.leases && state.leases.by != ExpiresBy::Nothing;
                let tells_time = state.buckets != before.buckets || of_leases;
                self.change(what, (state, synced), tells_time, |driver, _, state| {
                    transaction.commit().map_err(|e| said(&e))?;
                    driver.learn(state, learn).map(|()| true)
                })
            }
        }
    }

    /// Somebody else commits first: the transaction must leave nothing.
    fn overtake(&mut self, transaction: Transaction, (id, n): (i64, i64)) -> Result<(), String> {
        let mut state = (*self.state).clone();
        state.rows.insert(id, -n);
        let what = "a change that overtakes a transaction".to_owned();
        self.change(what, (state, Synced::Default), false, |_, db, _| {
            let table = db.table(TABLE).map_err(|e| said(&e))?;
            table.upsert(&[Value::Int(id), Value::Int(-n)]).map_err(|e| said(&e))?;
            Ok(true)
        })?;
        match transaction.commit() {
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
            Err(e) => Err(said(&e)),
            Ok(at) => Err(format!("a transaction that was overtaken has committed, as {at}")),
        }
    }

    fn change_within(
        &mut self,
        transaction: &Transaction,
        (state, learn): &mut Staged,
    ) -> Result<(), String> {
        if self.generator.chance(300_000) {
            return self.lease_within(transaction, state);
        }
        let at = self.generator.index(NAMES.len());
        let name = NAMES.get(at).copied().unwrap_or_default();
        let bucket = transaction.bucket(name).map_err(|e| said(&e))?;
        let key = self.draw_key();
        match self.generator.below(8) {
            0..2 => {
                let there = state.bucket(at).get(&key, self.now.elapsed_us).is_some();
                learn.retain(|(other, known, _)| (*other, known) != (at, &key));
                if there {
                    state.bucket_mut(at).entries.remove(&key);
                }
                match bucket.remove(&key).map_err(|e| said(&e))? {
                    removed if removed == there => Ok(()),
                    removed => Err(format!("{key:?}: removed {removed}, expected {there}")),
                }
            }
            2 => self.remove_prefix_within(&bucket, at, (state, learn)),
            _ => {
                let (mut value, ttl) = (self.draw_value(), self.draw_ttl());
                if self.generator.chance(800_000) {
                    value.truncate(12);
                }
                bucket.put_with(&key, &value, ttl).map_err(|e| said(&e))?;
                let end = self.end_of(at, ttl);
                Self::stage(state, learn, (at, &key, value), end);
                Ok(())
            }
        }
    }

    fn remove_prefix_within(
        &mut self,
        bucket: &TransactionBucket<'_>,
        at: usize,
        (state, learn): (&mut State, &mut Vec<Learn>),
    ) -> Result<(), String> {
        let mut prefix = self.draw_key();
        prefix.truncate(1 + self.generator.index(3));
        let now_us = self.now.elapsed_us;
        let mut gone = Vec::new();
        state.bucket_mut(at).entries.retain(|key, entry| {
            let goes = entry.is_there(now_us) && key.starts_with(&prefix);
            if goes {
                gone.push(key.clone());
            }
            !goes
        });
        learn.retain(|(other, key, _)| *other != at || !gone.contains(key));
        match bucket.remove_prefix(&prefix).map_err(|e| said(&e))? {
            removed if removed == gone.len() as u64 => Ok(()),
            removed => Err(format!("{prefix:?}: removed {removed}, expected {}", gone.len())),
        }
    }

    /// The transaction sees its changes, and nobody else does.
    fn see(&mut self, transaction: &Transaction, state: &State) -> Result<(), String> {
        let (at, key) = (self.generator.index(NAMES.len()), self.draw_key());
        let name = NAMES.get(at).copied().unwrap_or_default();
        let bucket = transaction.bucket(name).map_err(|e| said(&e))?;
        let value = |state: &State| {
            let entry = state.bucket(at).get(&key, self.now.elapsed_us);
            entry.map(|entry| entry.value.clone())
        };
        let found = bucket.get(&key).map_err(|e| said(&e))?.map(esker::BucketValue::into_vec);
        if found != value(state) {
            return Err(format!("{key:?} within: {found:?}, expected {:?}", value(state)));
        }
        let outside = self.db()?.bucket(name).and_then(|bucket| bucket.get_copy(&key));
        let outside = outside.map_err(|e| said(&e))?;
        let committed = Arc::clone(&self.state);
        if outside != value(&committed) {
            return Err(format!("{key:?} outside: {outside:?}, expected {:?}", value(&committed)));
        }
        if !self.generator.chance(400_000) {
            return self.see_leases(transaction, state);
        }
        let there = state.bucket(at).entries.iter();
        let there = there.filter(|(_, entry)| entry.is_there(self.now.elapsed_us));
        let expected: Vec<_> =
            there.map(|(key, entry)| (key.clone(), entry.value.clone())).collect();
        let entries = bucket.iter().map_err(|e| said(&e))?;
        let found = entries.map(|entry| entry.map(|entry| entry.to_pair()));
        let found: Vec<_> = found.collect::<esker::Result<_>>().map_err(|e| said(&e))?;
        if found != expected {
            return Err(format!("{name} within: {found:?}, expected {expected:?}"));
        }
        Ok(())
    }
}
