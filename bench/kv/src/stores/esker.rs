//! Esker's buckets.

use std::ops::Range;
use std::path::Path;

use esker::{Bucket, BucketSnapshot, Database, PutOptions};

use crate::data::Data;
use crate::phases::bytes_of_files;
use crate::store::{Kind, Reader, Result, Store};

/// How the names of files with a saved index begin.
const SAVED_INDEX: &str = "index-";
/// Loads of at least this many entries go beside the log.
const BULK: usize = 100_000;

pub const KIND: Kind = Kind {
    name: "esker",
    settings: "this tree; Durability::Sync (fdatasync of the log before a commit returns)",
    has_ranges: true,
    saved_index: Some(SAVED_INDEX),
    open: |dir, _| {
        let db = Database::open(dir)?;
        let bucket = db.bucket("kv")?;
        Ok(Box::new(Esker { db, bucket }))
    },
};

struct Esker {
    db: Database,
    bucket: Bucket,
}

struct View(BucketSnapshot);

impl Store for Esker {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        if entries.len() < BULK {
            return self.put_batch(data, entries);
        }
        self.bucket.load(entries.map(|at| (data.key(at), data.value(at))))?;
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db.wait_idle()?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.bucket.put(key, value)?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        Ok(self.bucket.put_many(entries.map(|at| (data.key(at), data.value(at))))?)
    }

    fn put_unsynced(&self, data: &Data, mut entries: Range<usize>) -> Result<()> {
        let unsynced = PutOptions::new().sync(false);
        Ok(entries
            .try_for_each(|at| self.bucket.put_with(data.key(at), data.value(at), unsynced))?)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(self.bucket.snapshot()?)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let entries: Vec<usize> = entries.collect();
        for part in entries.chunks(10_000) {
            let mut batch = self.bucket.batch();
            batch.sync(false);
            for at in part {
                batch.remove(&self.bucket, data.key(*at))?;
            }
            batch.commit()?;
        }
        Ok(self.db.sync()?)
    }

    fn compact(&mut self) -> Result<()> {
        self.db.wait_idle()?;
        self.db.compact(false, &mut |_, _| {})?;
        Ok(())
    }

    fn derived_bytes(&self, dir: &Path) -> u64 {
        let is_derived = |name: &str| name.starts_with(SAVED_INDEX) || name.starts_with("log-");
        bytes_of_files(dir, is_derived).unwrap_or_default()
    }

    fn runs_of_a_range(&self) -> Option<usize> {
        self.bucket.snapshot().ok()?.sorted_runs().ok()
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.db.info().memory.indexes)
    }
}

impl Reader for View {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.read(key, |found| found == value)?.unwrap_or(false))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let mut bytes = 0;
        for entry in self.0.range(key..).take(10) {
            let entry = entry?;
            bytes += entry.key().len() + entry.value().len();
        }
        Ok(bytes)
    }
}
