//! LMDB, by way of heed.

#![allow(unsafe_code, reason = "who maps a file must see to it that nobody else writes it")]

use std::ops::{Bound, Range};

use heed::types::Bytes;
use heed::{
    CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, RoTxn, WithTls,
};

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

pub const KIND: Kind = Kind {
    name: "lmdb",
    settings: "heed 0.22; map of 16 GiB; default flags (fdatasync a commit), NO_SYNC for what is \
               not synced; a read transaction a thread",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| {
        let dir = dir.join("db");
        std::fs::create_dir_all(&dir)?;
        // SAFETY: nobody else opens the files, which lie in a directory of ours.
        let env = unsafe { EnvOpenOptions::new().map_size(16 << 30).max_readers(256).open(&dir)? };
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Box::new(Lmdb { env, database, dir }))
    },
};

struct Lmdb {
    env: Env,
    database: Database<Bytes, Bytes>,
    dir: std::path::PathBuf,
}

impl Lmdb {
    fn set_sync(&self, sync: bool) -> Result<()> {
        let mode = if sync { FlagSetMode::Disable } else { FlagSetMode::Enable };
        // SAFETY: no other thread is in the environment.
        Ok(unsafe { self.env.set_flags(EnvFlags::NO_SYNC, mode)? })
    }
}

impl Store for Lmdb {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for at in entries {
            self.database.put(&mut transaction, data.key(at), data.value(at))?;
        }
        Ok(transaction.commit()?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.database.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        self.load(data, entries)
    }

    fn put_unsynced(&self, data: &Data, mut entries: Range<usize>) -> Result<()> {
        self.set_sync(false)?;
        entries.try_for_each(|at| self.put(data.key(at), data.value(at)))?;
        self.set_sync(true)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View { transaction: self.env.read_txn()?, database: self.database }))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for at in entries {
            self.database.delete(&mut transaction, data.key(at))?;
        }
        Ok(transaction.commit()?)
    }

    /// A copy without holes takes the file's place: LMDB never shrinks a file.
    fn compact(&mut self) -> Result<()> {
        let copy = self.dir.join("copy");
        self.env.copy_to_path(&copy, CompactionOption::Enabled)?.sync_all()?;
        Ok(std::fs::rename(&copy, self.dir.join("data.mdb"))?)
    }
}

struct View<'a> {
    transaction: RoTxn<'a, WithTls>,
    database: Database<Bytes, Bytes>,
}

impl Reader for View<'_> {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.database.get(&self.transaction, key)? == Some(value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(key), Bound::Unbounded);
        let mut bytes = 0;
        for entry in self.database.range(&self.transaction, &bounds)?.take(10) {
            let (key, value) = entry?;
            bytes += key.len() + value.len();
        }
        Ok(bytes)
    }
}
