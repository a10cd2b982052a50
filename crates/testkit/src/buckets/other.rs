//! Operations on many entries, on the whole database, and on its clock.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use esker::{BucketOptions, Database, Ttl, Value};

use super::driver::{Driver, Held, Synced};
use super::model::{AWAY, ModelBucket, NAMES, Place, State};
use super::observe::TABLE;
use super::operation::{End, KEYS, Learn, key_of};
use crate::oracle::said;

/// Snapshots that are held at once.
const SNAPSHOTS_MAX: usize = 3;
/// How often everything is looked at while a bucket is dropped or away, in a million.
const LOOKS_AT_MOVED: u32 = 300_000;
/// Entries of a load: more than fit a segment of these workloads.
const LOADED_MAX: usize = 40;

impl Driver<'_> {
    pub(super) fn operate_on_many(&mut self) -> Result<(), String> {
        // The last ones need files.
        match self.generator.below(if self.in_memory { 42 } else { 47 }) {
            0..4 => self.put_many(),
            4..6 => self.remove_range(),
            6..8 => self.remove_prefix(),
            8 => self.clear(),
            9..13 => self.batch(),
            13..17 => self.transaction(),
            17..20 => self.load(),
            20 if self.generator.chance(500_000) => self.set_ttl(),
            20 => self.move_bucket(),
            21..25 => self.use_snapshot(),
            25..30 => self.whole("wait until idle", Database::wait_idle),
            30..33 => self.whole("compact", |db| db.compact(false, &mut |_, _| {}).map(drop)),
            33..35 => self.sync(),
            35..39 => self.pass_time(),
            39..42 => self.change_clock(),
            42..45 => self.whole("checkpoint", Database::checkpoint),
            _ => self.reopen(),
        }
    }

    fn put_many(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let (mut state, mut learn) = ((*self.state).clone(), Vec::new());
        let mut entries = Vec::new();
        for _ in 0..1 + self.generator.below(8) {
            let (key, value) = (self.draw_key(), self.draw_value());
            let end = self.end_of(at, Ttl::Default);
            Self::stage(&mut state, &mut learn, (at, &key, value.clone()), end);
            entries.push((key, value));
        }
        let what = format!("put {} entries", entries.len());
        self.change(what, (state, synced), true, |driver, _, state| {
            bucket.put_many(entries).map_err(|e| said(&e))?;
            driver.learn(state, learn).map(|()| true)
        })
    }

    /// Removes the entries of the model that `is_removed`: as many as the bucket says.
    fn remove_where(
        &mut self,
        what: String,
        (at, synced): (usize, Synced),
        is_removed: impl Fn(&[u8]) -> bool,
        run: impl FnOnce() -> esker::Result<u64>,
    ) -> Result<(), String> {
        let (mut state, now_us) = ((*self.state).clone(), self.now.elapsed_us);
        let mut count = 0;
        state.bucket_mut(at).entries.retain(|key, entry| {
            let goes = entry.is_there(now_us) && is_removed(key);
            count += u64::from(goes);
            !goes
        });
        self.change(what, (state, synced), count > 0, |_, _, _| {
            match run().map_err(|e| said(&e))? {
                removed if removed == count => Ok(count > 0),
                removed => Err(format!("removed {removed}, expected {count}")),
            }
        })
    }

    fn remove_range(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let (a, b) = (self.draw_key(), self.draw_key());
        let (least, greatest) = if a <= b { (a, b) } else { (b, a) };
        let bounds = (Bound::Included(least.clone()), Bound::Excluded(greatest.clone()));
        let what = format!("remove {bounds:?}");
        let is_removed = |key: &[u8]| *least <= *key && *key < *greatest;
        self.remove_where(what, (at, synced), is_removed, || {
            bucket.remove_range::<Vec<u8>, _>(bounds)
        })
    }

    fn remove_prefix(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let mut prefix = self.draw_key();
        prefix.truncate(1 + self.generator.index(3));
        let what = format!("remove prefix {prefix:?}");
        let is_removed = |key: &[u8]| key.starts_with(&prefix);
        self.remove_where(what, (at, synced), is_removed, || bucket.remove_prefix(&prefix))
    }

    fn clear(&mut self) -> Result<(), String> {
        let (at, bucket) = self.draw_bucket()?;
        let mut state = (*self.state).clone();
        state.bucket_mut(at).entries.clear();
        self.change(format!("clear {at}"), (state, Synced::Default), false, |_, _, _| {
            bucket.clear().map(|()| true).map_err(|e| said(&e))
        })
    }

    /// Changes two buckets and a table at once: all of it or nothing.
    fn batch(&mut self) -> Result<(), String> {
        let db = self.db()?;
        let (mut state, mut learn): (State, Vec<Learn>) = ((*self.state).clone(), Vec::new());
        let (mut batch, synced) = (db.batch(), self.draw_synced());
        if let Some(sync) = synced.option() {
            batch.sync(sync);
        }
        let mut stage = || -> Result<(), String> {
            for (at, name) in NAMES.into_iter().enumerate() {
                let bucket = db.bucket(name).map_err(|e| said(&e))?;
                for _ in 0..1 + self.generator.below(3) {
                    let key = self.draw_key();
                    if self.generator.chance(300_000) {
                        batch.remove(&bucket, &key).map_err(|e| said(&e))?;
                        learn.retain(|(there, other, _)| (*there, other) != (at, &key));
                        if state.bucket(at).get(&key, self.now.elapsed_us).is_some() {
                            state.bucket_mut(at).entries.remove(&key);
                        }
                        continue;
                    }
                    let (mut value, ttl) = (self.draw_value(), self.draw_ttl());
                    value.truncate(12);
                    batch.put_with(&bucket, &key, &value, ttl).map_err(|e| said(&e))?;
                    let end = self.end_of(at, ttl);
                    Self::stage(&mut state, &mut learn, (at, &key, value), end);
                }
            }
            let id = i64::try_from(self.generator.below(9)).unwrap_or_default();
            let n = i64::try_from(self.serial).unwrap_or_default();
            let table = db.table(TABLE).map_err(|e| said(&e))?;
            batch.upsert(&table, &[Value::Int(id), Value::Int(n)]).map_err(|e| said(&e))?;
            state.rows.insert(id, n);
            Ok(())
        };
        stage()?;
        let what = format!("batch of {} {synced:?}", batch.len());
        self.change(what, (state, synced), true, |driver, _, state| {
            batch.commit().map_err(|e| said(&e))?;
            driver.learn(state, learn).map(|()| true)
        })
    }

    /// Loads entries; those whose keys are there are replaced, or there are none.
    fn load(&mut self) -> Result<(), String> {
        let (at, bucket) = self.draw_bucket()?;
        let (mut state, mut rows) = ((*self.state).clone(), Vec::new());
        let replaces = self.generator.chance(400_000);
        let ends = self.generator.chance(500_000);
        let mut keys: Vec<Vec<u8>> = (0..KEYS).map(key_of).collect();
        keys.dedup();
        let count = self.generator.index(LOADED_MAX);
        for _ in 0..count {
            let key = keys.swap_remove(self.generator.index(keys.len()));
            let is_there = state.bucket(at).get(&key, self.now.elapsed_us).is_some();
            if keys.is_empty() {
                break;
            }
            if is_there && !replaces || rows.iter().any(|(there, _, _)| *there == key) {
                continue;
            }
            let value = self.draw_value();
            let soon = self.now.elapsed_us + 1_000_000 * self.generator.pick([2, 20, 500]);
            let end_us = (ends && self.generator.chance(300_000)).then_some(soon);
            let end = End::Known(end_us);
            Self::stage(&mut state, &mut Vec::new(), (at, &key, value.clone()), end);
            rows.push((key, value, end_us));
        }
        let what = format!("load {} into {at}, replaces {replaces}", rows.len());
        self.change(what, (state, Synced::Default), false, |_, _, _| {
            if rows.iter().all(|(_, _, end_us)| end_us.is_none()) && !replaces {
                let entries = rows.iter().map(|(key, value, _)| (key, value));
                let bucket = bucket.with(Ttl::Never);
                return bucket.load(entries).map(|_| !rows.is_empty()).map_err(|e| said(&e));
            }
            let mut load = bucket.as_table().load().map_err(|e| said(&e))?;
            if replaces {
                load.replace_existing().map_err(|e| said(&e))?;
            }
            let any = !rows.is_empty();
            for (key, value, end_us) in rows {
                let end = end_us.map_or(Value::Null, Value::Timestamp);
                let row = [Value::Bytes(key), Value::Bytes(value), end];
                load.push_row(&row).map_err(|e| said(&e))?;
            }
            load.finish().map(|_| any).map_err(|e| said(&e))
        })
    }

    fn set_ttl(&mut self) -> Result<(), String> {
        let (at, _) = self.draw_bucket()?;
        let seconds = self.generator.pick([None, Some(2), Some(30)]);
        let mut state = (*self.state).clone();
        state.bucket_mut(at).ttl_us = seconds.map(|seconds| seconds * 1_000_000);
        let ttl = seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
        let what = format!("time to live of {at}: {ttl:?}");
        self.change(what, (state, Synced::Default), false, |_, db, _| {
            let name = NAMES.get(at).copied().unwrap_or_default();
            db.set_bucket_ttl(name, ttl).map(|()| true).map_err(|e| said(&e))
        })
    }

    /// Drops a bucket or gives it another name: a crash may come before it is there again.
    fn move_bucket(&mut self) -> Result<(), String> {
        let at = self.generator.index(NAMES.len());
        let place = self.generator.pick([Place::Away, Place::Nowhere]);
        let mut state = (*self.state).clone();
        if place == Place::Nowhere {
            *state.bucket_mut(at) = ModelBucket::default();
        }
        state.bucket_mut(at).place = place;
        let name = NAMES.get(at).copied().unwrap_or_default();
        let what = format!("{name} goes: {place:?}");
        self.change(what, (state, Synced::Default), false, |_, db, _| {
            let done = match place {
                Place::Nowhere => db.drop_bucket(name),
                _ => db.rename_bucket(name, AWAY),
            };
            done.map(|()| true).map_err(|e| said(&e))
        })?;
        if self.generator.chance(LOOKS_AT_MOVED) {
            self.look()?;
        }
        self.bring_back()
    }

    /// Makes buckets that were dropped, and gives those that went away their names.
    pub(super) fn bring_back(&mut self) -> Result<(), String> {
        for (at, name) in NAMES.into_iter().enumerate() {
            let place = self.state.bucket(at).place;
            if place == Place::Home {
                continue;
            }
            let mut state = (*self.state).clone();
            state.bucket_mut(at).place = Place::Home;
            let what = format!("{name} comes back");
            self.change(what, (state, Synced::Default), false, |_, db, _| {
                let done = match place {
                    Place::Away => db.rename_bucket(AWAY, name),
                    _ => db.create_bucket(name, &BucketOptions::new()).map(drop),
                };
                done.map(|()| true).map_err(|e| said(&e))
            })?;
        }
        Ok(())
    }

    /// Takes a snapshot, reads one, or lets one go.
    fn use_snapshot(&mut self) -> Result<(), String> {
        let draw = self.generator.below(10);
        if self.held.is_empty() || (draw < 4 && self.held.len() < SNAPSHOTS_MAX) {
            let snapshot = self.db()?.snapshot().map_err(|e| said(&e))?;
            self.note(format!("snapshot of {}", snapshot.commit()));
            let (state, now) = (Arc::clone(&self.state), self.now);
            self.held.push(Held { snapshot, state, now });
            return Ok(());
        }
        let chosen = self.generator.index(self.held.len());
        if draw > 7 {
            drop(self.held.remove(chosen));
            return Ok(());
        }
        self.held.get(chosen).map_or(Ok(()), Held::compare)
    }

    fn whole(
        &mut self,
        what: &str,
        run: impl Fn(&Database) -> esker::Result<()>,
    ) -> Result<(), String> {
        run(&self.db()?).map_err(|e| format!("{what}: {}", said(&e)))?;
        self.note(what);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        let before = self.db()?.info().published_commit;
        self.whole("sync", Database::sync)?;
        self.machine.mark(before);
        Ok(())
    }

    fn pass_time(&mut self) -> Result<(), String> {
        let ms = self.generator.pick([10, 1_500, 5_000, 60_000, 4_000_000]);
        self.machine.advance_clock(Duration::from_millis(ms));
        self.note(format!("{ms} ms pass"));
        Ok(())
    }

    /// Looks at everything and closes; tells the newest commit.
    pub fn close(&mut self) -> Result<u64, String> {
        self.look()?;
        self.held.clear();
        let db = self.db.take().ok_or("no database is open")?;
        let commit = db.info().published_commit;
        db.close().map_err(|e| format!("close: {}", said(&e)))?;
        self.machine.mark(commit);
        Ok(commit)
    }
}
