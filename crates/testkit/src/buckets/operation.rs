//! Operations on single entries, and what each must answer.

use std::ops::Bound;
use std::time::Duration;

use esker::{Bucket, Swapped, Ttl};

use super::driver::{Driver, Synced};
use super::model::{ModelEntry, NAMES, State};
use super::observe::MARGIN_US;
use crate::oracle::said;

/// How many keys there are.
pub(super) const KEYS: u64 = 34;

/// A key by its number: short ones, some that begin alike for longer than a zone map remembers,
/// and some of odd bytes. They are not in the order of their numbers.
pub(super) fn key_of(number: u64) -> Vec<u8> {
    let scattered = number * 7 % KEYS;
    match number % 4 {
        0 => format!("{}{scattered:02}", "p".repeat(40)).into_bytes(),
        1 => vec![0, u8::MAX, u8::try_from(scattered).unwrap_or_default()],
        2 => vec![b'k'; usize::try_from(scattered / 2).unwrap_or_default()],
        _ => format!("k{scattered}").into_bytes(),
    }
}

/// What an entry gets that is put now.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// In elapsed time.
    Known(Option<i64>),
    /// So many microseconds from now on.
    After(i64),
    /// On a date, which is at this elapsed time as far as can be said before.
    At { date_us: i64, end_us: i64 },
}

/// An entry that a change leaves, whose end is to be learnt.
pub(super) type Learn = (usize, Vec<u8>, End);

/// What a change of one entry leaves: nothing changes, or there is this value and its end, or no
/// entry any more.
type After = Option<Option<(Vec<u8>, End)>>;

impl Driver<'_> {
    pub(super) fn operate(&mut self) -> Result<(), String> {
        match self.generator.below(100) {
            0..18 => self.put(),
            18..22 => self.put_if_absent(),
            22..27 => self.compare_and_swap(),
            27..31 => self.increment(),
            31..34 => self.append(),
            34..38 => self.take(),
            38..43 => self.remove(),
            43..46 => self.update(),
            46..50 => self.touch(),
            50..53 => self.persist(),
            53..66 => self.lease(),
            _ => self.operate_on_many(),
        }
    }

    pub(super) fn draw_key(&mut self) -> Vec<u8> {
        key_of(self.generator.below(KEYS))
    }

    /// A value that no other entry has.
    pub(super) fn draw_value(&mut self) -> Vec<u8> {
        self.serial += 1;
        let mut value = self.serial.to_le_bytes().to_vec();
        let long = self.generator.chance(100_000);
        value.resize(8 + self.generator.index(if long { 300 } else { 6 }), b'v');
        value
    }

    pub(super) fn draw_bucket(&mut self) -> Result<(usize, Bucket), String> {
        let at = self.generator.index(NAMES.len());
        let name = NAMES.get(at).copied().unwrap_or_default();
        Ok((at, self.db()?.bucket(name).map_err(|e| said(&e))?))
    }

    /// A bucket by a handle whose writes are as durable as drawn.
    pub(super) fn draw_synced_bucket(&mut self) -> Result<(usize, Bucket, Synced), String> {
        let ((at, bucket), synced) = (self.draw_bucket()?, self.draw_synced());
        Ok((at, bucket.with(synced.options(Ttl::Default)), synced))
    }

    pub(super) fn draw_ttl(&mut self) -> Ttl {
        let seconds = [2, 3, 10, 60, 3_600];
        match self.generator.below(10) {
            0..4 => Ttl::Default,
            4 => Ttl::Never,
            5..8 => Ttl::After(Duration::from_secs(self.generator.pick(seconds))),
            8 => Ttl::At(self.now.date_us + 1_000_000 * self.generator.pick([2, 5, 30])),
            _ => Ttl::At(self.now.date_us - self.generator.pick([0, 1, 5_000_000])),
        }
    }

    pub(super) fn draw_synced(&mut self) -> Synced {
        match self.generator.below(10) {
            0 => Synced::Yes,
            1 => Synced::No,
            _ => Synced::Default,
        }
    }

    pub(super) fn end_of(&self, at: usize, ttl: Ttl) -> End {
        match ttl {
            Ttl::Never => End::Known(None),
            Ttl::At(date_us) => End::At { date_us, end_us: self.now.elapsed_of_date(date_us) },
            Ttl::After(ttl) => End::After(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)),
            Ttl::Default => self.state.bucket(at).ttl_us.map_or(End::Known(None), End::After),
        }
    }

    /// Puts an entry of the model; its end is learnt later where it is not known.
    pub(super) fn stage(
        state: &mut State,
        learn: &mut Vec<Learn>,
        (at, key, value): (usize, &[u8], Vec<u8>),
        end: End,
    ) {
        learn.retain(|(bucket, there, _)| (*bucket, there.as_slice()) != (at, key));
        let end_us = match end {
            End::Known(end_us) => end_us,
            End::After(_) => {
                learn.push((at, key.to_vec(), end));
                None
            }
            End::At { end_us, .. } => {
                learn.push((at, key.to_vec(), end));
                Some(end_us)
            }
        };
        state.bucket_mut(at).entries.insert(key.to_vec(), ModelEntry { value, end_us });
    }

    /// Asks when entries end that were put with a time to live: so long after that, or on a date.
    pub(super) fn learn(&self, state: &mut State, learn: Vec<Learn>) -> Result<(), String> {
        for (at, key, end) in learn {
            let found_us = match end {
                End::At { end_us, .. } if end_us <= self.now.elapsed_us => continue,
                _ => self.end_of_entry(at, &key)?,
            };
            let now = self.db()?.moment();
            let (least_us, most_us) = match end {
                End::Known(_) => continue,
                End::After(after_us) => {
                    let least_us = self.now.elapsed_us + after_us;
                    (least_us, least_us + MARGIN_US)
                }
                // The date may have been drawn towards the wall clock since.
                End::At { date_us, end_us } => {
                    let later_us = now.elapsed_of_date(date_us);
                    (end_us.min(later_us), end_us.max(later_us))
                }
            };
            if !(least_us..=most_us).contains(&found_us) {
                return Err(format!("{key:?}, {end:?}, ends at {found_us}, expected {least_us}"));
            }
            if let Some(entry) = state.bucket_mut(at).entries.get_mut(&key) {
                entry.end_us = Some(found_us);
            }
        }
        Ok(())
    }

    /// The elapsed time at which an entry ends.
    fn end_of_entry(&self, at: usize, key: &[u8]) -> Result<i64, String> {
        let (db, name) = (self.db()?, NAMES.get(at).copied().unwrap_or_default());
        let bucket = db.bucket(name).map_err(|e| said(&e))?;
        loop {
            let before = db.moment();
            let only = (Bound::Included(key), Bound::Included(key));
            let mut entries = bucket.range::<[u8], _>(only).map_err(|e| said(&e))?;
            let entry = entries.next().ok_or_else(|| format!("{name} has no {key:?}"))?;
            let date_us = entry.and_then(|entry| entry.expires_at_us()).map_err(|e| said(&e))?;
            let date_us = date_us.ok_or_else(|| format!("{name} {key:?} never ends"))?;
            let end_us = before.elapsed_of_date(date_us);
            if db.moment().elapsed_of_date(date_us) == end_us {
                return Ok(end_us);
            }
        }
    }

    /// A change of one entry: `after` is the value that it leaves, and its end; `None`: no entry.
    /// It answers what the operation must answer.
    fn change_entry<R: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        (at, key): (usize, &[u8]),
        (after, synced): (After, Synced),
        expected: &R,
        run: impl FnOnce() -> esker::Result<R>,
    ) -> Result<(), String> {
        let mut state = (*self.state).clone();
        let (mut learn, changes) = (Vec::new(), after.is_some());
        match after {
            None => {}
            Some(None) => drop(state.bucket_mut(at).entries.remove(key)),
            Some(Some((value, end))) => {
                Self::stage(&mut state, &mut learn, (at, key, value), end);
            }
        }
        let name = NAMES.get(at).copied().unwrap_or_default();
        let what = format!("{what} {name} {key:?}");
        self.change(what, (state, synced), true, |driver, _, state| {
            let answer = run().map_err(|e| said(&e))?;
            if answer != *expected {
                return Err(format!("answered {answer:?}, expected {expected:?}"));
            }
            driver.learn(state, learn).map(|()| changes)
        })
    }

    fn found(&self, at: usize, key: &[u8]) -> Option<ModelEntry> {
        self.state.bucket(at).get(key, self.now.elapsed_us).cloned()
    }

    /// The end of an entry that keeps it, or of a new one.
    fn kept_end(&self, at: usize, found: Option<&ModelEntry>) -> End {
        found.map_or_else(|| self.end_of(at, Ttl::Default), |entry| End::Known(entry.end_us))
    }

    fn put(&mut self) -> Result<(), String> {
        let (at, bucket) = self.draw_bucket()?;
        let (key, value) = (self.draw_key(), self.draw_value());
        let (ttl, synced) = (self.draw_ttl(), self.draw_synced());
        let after = Some(Some((value.clone(), self.end_of(at, ttl))));
        let run = || bucket.put_with(&key, &value, synced.options(ttl));
        self.change_entry(&format!("put {ttl:?} {synced:?}"), (at, &key), (after, synced), &(), run)
    }

    fn put_if_absent(&mut self) -> Result<(), String> {
        let (at, bucket) = self.draw_bucket()?;
        let (key, value) = (self.draw_key(), self.draw_value());
        let (ttl, synced) = (self.draw_ttl(), self.draw_synced());
        let there = self.found(at, &key).map(|entry| entry.value);
        let after = there.is_none().then(|| Some((value.clone(), self.end_of(at, ttl))));
        let run = || bucket.put_if_absent(&key, &value, synced.options(ttl));
        self.change_entry("put if absent", (at, &key), (after, synced), &there, run)
    }

    fn compare_and_swap(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let there = self.found(at, &key).map(|entry| entry.value);
        let is_wrong = self.generator.chance(250_000);
        let expected = if is_wrong { Some(self.draw_value()) } else { there.clone() };
        let new = self.generator.chance(700_000).then(|| self.draw_value());
        let answer = if is_wrong { Swapped::Found(there.clone()) } else { Swapped::Done };
        let after = match (&new, &there) {
            _ if is_wrong => None,
            (Some(new), _) => Some(Some((new.clone(), self.end_of(at, Ttl::Default)))),
            (None, Some(_)) => Some(None),
            (None, None) => None,
        };
        let run = || bucket.compare_and_swap(&key, expected.as_deref(), new.as_deref());
        self.change_entry("swap", (at, &key), (after, synced), &answer, run)
    }

    fn increment(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let found = self.found(at, &key);
        let by = i64::try_from(self.generator.below(2_000)).unwrap_or_default() - 1_000;
        // A number is stored by its bytes in the order of numbers: the highest bit turned, first.
        let bytes = |n: i64| n.cast_unsigned() ^ (1 << 63);
        let before = match &found {
            None => Ok(0),
            Some(entry) => <[u8; 8]>::try_from(entry.value.as_slice())
                .map(|b| (u64::from_le_bytes(b).swap_bytes() ^ (1 << 63)).cast_signed()),
        };
        let sum = before.ok().and_then(|before| before.checked_add(by));
        let stored = sum.map(|sum| bytes(sum).swap_bytes().to_le_bytes().to_vec());
        let after = stored.map(|value| Some((value, self.kept_end(at, found.as_ref()))));
        let run = || match bucket.increment(&key, by) {
            Err(e) if e.kind() == esker::ErrorKind::InvalidInput => Ok(None),
            other => other.map(Some),
        };
        self.change_entry("increment", (at, &key), (after, synced), &sum, run)
    }

    fn append(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let found = self.found(at, &key);
        let mut value = found.as_ref().map(|entry| entry.value.clone()).unwrap_or_default();
        value.extend_from_slice(b"more");
        let len = value.len();
        let after = Some(Some((value, self.kept_end(at, found.as_ref()))));
        let run = || bucket.append(&key, b"more");
        self.change_entry("append", (at, &key), (after, synced), &len, run)
    }

    fn take(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let there = self.found(at, &key).map(|entry| entry.value);
        let after = there.is_some().then_some(None);
        let run = || bucket.take(&key);
        self.change_entry("take", (at, &key), (after, synced), &there, run)
    }

    fn remove(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let is_there = self.found(at, &key).is_some();
        let run = || bucket.remove(&key);
        let after = is_there.then_some(None);
        self.change_entry("remove", (at, &key), (after, synced), &is_there, run)
    }

    fn update(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let (key, value) = (self.draw_key(), self.draw_value());
        let found = self.found(at, &key);
        let new = self.generator.chance(800_000).then_some(value);
        let after = match (&new, &found) {
            (Some(new), _) => Some(Some((new.clone(), self.kept_end(at, found.as_ref())))),
            (None, Some(_)) => Some(None),
            (None, None) => None,
        };
        let run = || bucket.update(&key, |_| new.clone());
        self.change_entry("update", (at, &key), (after, synced), &new, run)
    }

    fn touch(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let (key, ttl) = (self.draw_key(), self.draw_ttl());
        let found = self.found(at, &key);
        let is_there = found.is_some();
        let after = found.map(|entry| Some((entry.value, self.end_of(at, ttl))));
        let run = || bucket.touch(&key, ttl);
        let what = format!("touch {ttl:?}");
        self.change_entry(&what, (at, &key), (after, synced), &is_there, run)
    }

    fn persist(&mut self) -> Result<(), String> {
        let (at, bucket, synced) = self.draw_synced_bucket()?;
        let key = self.draw_key();
        let found = self.found(at, &key).filter(|entry| entry.end_us.is_some());
        let answer = found.is_some();
        let after = found.map(|entry| Some((entry.value, End::Known(None))));
        let run = || bucket.persist(&key);
        self.change_entry("persist", (at, &key), (after, synced), &answer, run)
    }
}
