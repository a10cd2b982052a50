//! redb: one writer at a time, whom the others wait for.

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::store::{CENTS, Kind, Store, Worker};
use crate::store::Result;

const ACCOUNTS: TableDefinition<'static, u64, (i64, i64)> = TableDefinition::new("accounts");
const HITS: TableDefinition<'static, &str, i64> = TableDefinition::new("hits");

pub const KIND: Kind = Kind {
    name: "redb",
    settings: "4; cache of 4 GiB; one writer at a time; Durability::Immediate (fsync), None for \
               what is not synced",
    create: |dir, accounts, is_durable| {
        let db = Database::builder().set_cache_size(4 << 30).create(dir.join("db"))?;
        let transaction = db.begin_write()?;
        {
            let mut table = transaction.open_table(ACCOUNTS)?;
            for id in 0..accounts {
                table.insert(id, (CENTS, id.cast_signed()))?;
            }
            transaction.open_table(HITS)?.insert("page", 0)?;
        }
        transaction.commit()?;
        Ok(Box::new(Redb { db, is_durable }))
    },
};

struct Redb {
    db: Database,
    is_durable: bool,
}

impl Redb {
    fn begin(&self) -> Result<redb::WriteTransaction> {
        let mut transaction = self.db.begin_write()?;
        if !self.is_durable {
            transaction.set_durability(Durability::None)?;
        }
        Ok(transaction)
    }
}

impl Store for Redb {
    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(RedbWorker(self)))
    }

    fn sum(&self) -> Result<i64> {
        let mut sum = 0;
        for entry in self.db.begin_read()?.open_table(ACCOUNTS)?.iter()? {
            sum += entry?.1.value().0;
        }
        Ok(sum)
    }

    fn counter(&self) -> Result<i64> {
        let hits = self.db.begin_read()?.open_table(HITS)?;
        Ok(hits.get("page")?.map_or(0, |hits| hits.value()))
    }
}

struct RedbWorker<'a>(&'a Redb);

impl Worker for RedbWorker<'_> {
    fn transfer(&mut self, accounts: [u64; 4]) -> Result<u64> {
        let transaction = self.0.begin()?;
        {
            let mut table = transaction.open_table(ACCOUNTS)?;
            let mut found = [(0, 0); 4];
            for (account, found) in accounts.iter().zip(&mut found) {
                *found = table.get(account)?.map_or((0, 0), |row| row.value());
            }
            let [from, to, ..] = found;
            table.insert(accounts[0], (from.0 - 1, from.1))?;
            table.insert(accounts[1], (to.0 + 1, to.1))?;
        }
        transaction.commit()?;
        Ok(1)
    }

    fn count(&mut self) -> Result<u64> {
        let transaction = self.0.begin()?;
        {
            let mut hits = transaction.open_table(HITS)?;
            let before = hits.get("page")?.map_or(0, |hits| hits.value());
            hits.insert("page", before + 1)?;
        }
        transaction.commit()?;
        Ok(1)
    }
}
