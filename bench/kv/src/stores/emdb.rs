//! emdb, with ranges, which are another index in memory, and without.

use std::ops::Range;
use std::path::Path;

use emdb::Emdb;

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

pub const KIND: Kind = Kind {
    name: "emdb",
    settings: "1.0.3; enable_range_scans; flush after each durable write (one fdatasync for those \
               that wait); batches are not atomic",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| open(dir, true),
};

pub const POINT_KIND: Kind = Kind {
    name: "emdb-point",
    settings: "the same without enable_range_scans",
    has_ranges: false,
    saved_index: None,
    open: |dir, _| open(dir, false),
};

fn open(dir: &Path, has_ranges: bool) -> Result<Box<dyn Store>> {
    let db = Emdb::builder().path(dir.join("db")).enable_range_scans(has_ranges).build();
    Ok(Box::new(Store1(db.map_err(text)?)))
}

struct Store1(Emdb);

fn text(e: emdb::Error) -> String {
    e.to_string()
}

impl Store for Store1 {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let entries: Vec<usize> = entries.collect();
        for part in entries.chunks(50_000) {
            let pairs = part.iter().map(|at| (data.key(*at), data.value(*at)));
            self.0.insert_many(pairs).map_err(text)?;
        }
        Ok(self.0.flush().map_err(text)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value).map_err(text)?;
        Ok(self.0.flush().map_err(text)?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        self.load(data, entries)
    }

    fn put_unsynced(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.0.insert(data.key(at), data.value(at)).map_err(text)?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(&self.0)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            self.0.remove(data.key(at)).map_err(text)?;
        }
        Ok(self.0.flush().map_err(text)?)
    }

    fn compact(&mut self) -> Result<()> {
        self.0.compact().map_err(text)?;
        Ok(self.0.flush().map_err(text)?)
    }
}

struct View<'a>(&'a Emdb);

impl Reader for View<'_> {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get_zerocopy(key).map_err(text)?.is_some_and(|found| found.as_slice() == value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let entries = self.0.iter_from(key).map_err(text)?;
        Ok(entries.take(10).map(|(key, value)| key.len() + value.len()).sum())
    }
}
