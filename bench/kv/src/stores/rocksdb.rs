//! RocksDB.

use std::ops::Range;

use rocksdb::{
    BlockBasedOptions, Cache, DB, Direction, IteratorMode, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

pub const KIND: Kind = Kind {
    name: "rocksdb",
    settings: "11.8; no compression, bloom filters of 10 bits, block cache of 4 GiB, two \
               background threads; sync = true for what is durable",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&Cache::new_lru_cache(4 << 30));
        table.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.increase_parallelism(2);
        options.set_write_buffer_size(256 << 20);
        Ok(Box::new(Rocks(DB::open(&options, dir.join("db"))?)))
    },
};

struct Rocks(DB);

fn sync(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    options
}

impl Store for Rocks {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let (entries, end): (Vec<usize>, usize) = (entries.clone().collect(), entries.end);
        for part in entries.chunks(10_000) {
            let mut batch = WriteBatch::default();
            part.iter().for_each(|at| batch.put(data.key(*at), data.value(*at)));
            self.0.write_opt(batch, &sync(part.last() == Some(&(end - 1))))?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(self.0.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put_opt(key, value, &sync(true))?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let mut batch = WriteBatch::default();
        entries.for_each(|at| batch.put(data.key(at), data.value(at)));
        Ok(self.0.write_opt(batch, &sync(true))?)
    }

    fn put_unsynced(&self, data: &Data, mut entries: Range<usize>) -> Result<()> {
        let options = sync(false);
        Ok(entries.try_for_each(|at| self.0.put_opt(data.key(at), data.value(at), &options))?)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(&self.0)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let (entries, end): (Vec<usize>, usize) = (entries.clone().collect(), entries.end);
        for part in entries.chunks(10_000) {
            let mut batch = WriteBatch::default();
            part.iter().for_each(|at| batch.delete(data.key(*at)));
            self.0.write_opt(batch, &sync(part.last() == Some(&(end - 1))))?;
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        self.0.flush()?;
        self.0.compact_range::<&[u8], &[u8]>(None, None);
        Ok(())
    }
}

struct View<'a>(&'a DB);

impl Reader for View<'_> {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get_pinned(key)?.is_some_and(|found| *found == *value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let mut bytes = 0;
        for entry in self.0.iterator(IteratorMode::From(key, Direction::Forward)).take(10) {
            let (key, value) = entry?;
            bytes += key.len() + value.len();
        }
        Ok(bytes)
    }
}
