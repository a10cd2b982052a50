//! sled, whose flush on Linux asks for writeback and does not flush the device.

use std::ops::Range;

use sled::{Batch, Db};

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

pub const KIND: Kind = Kind {
    name: "sled",
    settings: "0.34; cache of 4 GiB; flush after each durable write: sync_file_range on Linux, \
               which no power loss is obliged to respect",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| {
        let config = sled::Config::new().path(dir.join("db")).cache_capacity(4 << 30);
        Ok(Box::new(Sled(config.flush_every_ms(None).open()?)))
    },
};

struct Sled(Db);

impl Store for Sled {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        self.put_unsynced(data, entries)?;
        self.0.flush()?;
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value)?;
        self.0.flush()?;
        Ok(())
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let mut batch = Batch::default();
        entries.for_each(|at| batch.insert(data.key(at), data.value(at)));
        self.0.apply_batch(batch)?;
        self.0.flush()?;
        Ok(())
    }

    fn put_unsynced(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.0.insert(data.key(at), data.value(at))?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(&self.0)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.0.remove(data.key(at))?;
        }
        self.0.flush()?;
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
}

struct View<'a>(&'a Db);

impl Reader for View<'_> {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get(key)?.is_some_and(|found| *found == *value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let mut bytes = 0;
        for entry in self.0.range(key..).take(10) {
            let (key, value) = entry?;
            bytes += key.len() + value.len();
        }
        Ok(bytes)
    }
}
