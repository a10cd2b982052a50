//! fjall.

use std::ops::Range;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

pub const KIND: Kind = Kind {
    name: "fjall",
    settings: "3; cache of 4 GiB, LZ4 as by default; persist(SyncData) after each durable write",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| {
        let db = Database::builder(dir.join("db")).cache_size(4 << 30).open()?;
        let keyspace = db.keyspace("kv", KeyspaceCreateOptions::default)?;
        Ok(Box::new(Fjall { db, keyspace }))
    },
};

struct Fjall {
    db: Database,
    keyspace: Keyspace,
}

impl Store for Fjall {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.keyspace.insert(data.key(at), data.value(at))?;
        }
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn settle(&self) -> Result<()> {
        while self.db.active_compactions() > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert(key, value)?;
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for at in entries {
            batch.insert(&self.keyspace, data.key(at), data.value(at));
        }
        Ok(batch.commit()?)
    }

    fn put_unsynced(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.keyspace.insert(data.key(at), data.value(at))?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(&self.keyspace)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.keyspace.remove(data.key(at))?;
        }
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn compact(&mut self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.keyspace.major_compact()?)
    }
}

struct View<'a>(&'a Keyspace);

impl Reader for View<'_> {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get(key)?.is_some_and(|found| *found == *value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let mut bytes = 0;
        for entry in self.0.range(key..).take(10) {
            let (key, value) = entry.into_inner()?;
            bytes += key.len() + value.len();
        }
        Ok(bytes)
    }
}
