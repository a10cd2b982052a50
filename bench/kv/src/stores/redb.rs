//! redb.

use std::ops::Range;

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};

use crate::data::Data;
use crate::store::{Kind, Reader, Result, Store};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("kv");

pub const KIND: Kind = Kind {
    name: "redb",
    settings: "4; cache of 4 GiB; Durability::Immediate (fsync), None for what is not synced",
    has_ranges: true,
    saved_index: None,
    open: |dir, _| {
        let db = Database::builder().set_cache_size(4 << 30).create(dir.join("db"))?;
        let transaction = db.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(Box::new(Redb(db)))
    },
};

struct Redb(Database);

impl Store for Redb {
    fn load(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for at in entries {
                table.insert(data.key(at), data.value(at))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn put_batch(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        self.load(data, entries)
    }

    fn put_unsynced(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        for at in entries {
            let mut transaction = self.0.begin_write()?;
            transaction.set_durability(Durability::None)?;
            transaction.open_table(TABLE)?.insert(data.key(at), data.value(at))?;
            transaction.commit()?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(View(self.0.begin_read()?.open_table(TABLE)?)))
    }

    fn remove(&self, data: &Data, entries: Range<usize>) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for at in entries {
                table.remove(data.key(at))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn compact(&mut self) -> Result<()> {
        while self.0.compact()? {}
        Ok(())
    }
}

struct View(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for View {
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get(key)?.is_some_and(|found| found.value() == value))
    }

    fn ten_from(&self, key: &[u8]) -> Result<usize> {
        let mut bytes = 0;
        for entry in self.0.range::<&[u8]>(key..)?.take(10) {
            let (key, value) = entry?;
            bytes += key.value().len() + value.value().len();
        }
        Ok(bytes)
    }
}
