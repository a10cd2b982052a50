//! WATCH and UNWATCH: keys that others are not to change before EXEC.
//!
//! A connection keeps, of each key, the commit as of which it is watched, and whether it was there
//! then. EXEC is a transaction of its own time. It expects that no commit has put or removed a key
//! since, and that a key which was there has not expired: else it answers null. The database
//! compares again under the lock of the commit, so that nothing comes between.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use esker::{ErrorKind, Transaction};

use super::call::{Call, Outcome};
use crate::session::Level;

/// The most keys that a connection watches.
const KEYS_MAX: usize = 10_000;

/// How a key was when it was watched.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The commit.
    at: u64,
    is_there: bool,
}

/// Keys that are watched.
pub(super) struct Watching {
    /// Begun with the first WATCH, and never used: while it is open, what comes and goes of a key
    /// leaves a trace.
    first: Transaction,
    /// By database and key.
    keys: BTreeMap<(usize, Vec<u8>), Seen>,
    bytes: usize,
}

impl Watching {
    /// The bytes of the keys.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// The transaction that began with the first WATCH.
    pub fn first(&self) -> &Transaction {
        &self.first
    }

    /// Lets a transaction expect the keys to be as they were; false when one is not already.
    ///
    /// # Errors
    /// What the database said.
    pub fn holds_in(&self, transaction: &Transaction, buckets: &[String]) -> esker::Result<bool> {
        let mut found = None;
        for ((database, key), seen) in &self.keys {
            if found.as_ref().is_none_or(|(of, _)| of != database) {
                let name = buckets.get(*database).map_or("", String::as_str);
                found = match transaction.bucket(name) {
                    Ok(bucket) => Some((*database, Some(bucket))),
                    Err(e) if e.kind() == ErrorKind::NotFound => Some((*database, None)),
                    Err(e) => return Err(e),
                };
            }
            match &found {
                Some((_, Some(bucket))) => bucket.expect_since(key, seen.at, seen.is_there)?,
                _ if seen.is_there => return Ok(false),
                _ => {}
            }
        }
        match transaction.validate() {
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(false),
            valid => valid.map(|()| true),
        }
    }
}

pub(super) fn watch(call: &mut Call<'_>) -> Outcome {
    if call.state.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let (keys, database) = (call.rest(1), call.state.database);
    let bytes: usize = keys.iter().map(|key| key.len() + 32).sum();
    let watching = call.state.watching.as_ref();
    let (count, held) = watching.map_or((0, 0), |known| (known.keys.len(), known.bytes));
    if count + keys.len() > KEYS_MAX {
        return Err(format!("ERR more than {KEYS_MAX} keys to watch").into());
    }
    if held + bytes > call.state.request_bytes_max {
        return Err("ERR too many bytes of keys to watch".into());
    }
    let name = call.state.bucket_name();
    call.session()?.expect(Level::Read, Some(name))?;
    // What it sees may not be on the disk yet. The answer waits for that, so that what the client
    // reads behind it is not older.
    let transaction = call.session()?.database().begin()?;
    let found: Vec<bool> = match transaction.bucket(name) {
        Ok(bucket) => keys.iter().map(|key| bucket.contains(key)).collect::<esker::Result<_>>()?,
        Err(e) if e.kind() == ErrorKind::NotFound => vec![false; keys.len()],
        Err(e) => return Err(e.into()),
    };
    let at = transaction.read_at();
    let watching = call.state.watching.get_or_insert_with(|| Watching {
        first: transaction,
        keys: BTreeMap::new(),
        bytes: 0,
    });
    for (key, is_there) in keys.iter().zip(found) {
        // What is watched already is watched from then on.
        if let Entry::Vacant(place) = watching.keys.entry((database, key.to_vec())) {
            watching.bytes += key.len() + 32;
            place.insert(Seen { at, is_there });
        }
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn unwatch(call: &mut Call<'_>) -> Outcome {
    call.state.watching = None;
    call.reply.ok();
    Ok(())
}
