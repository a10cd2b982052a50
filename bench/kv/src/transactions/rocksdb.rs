//! RocksDB's optimistic transactions: a commit fails when a key that it writes was written since
//! its snapshot.

use rocksdb::{
    IteratorMode, OptimisticTransactionDB, OptimisticTransactionOptions, Options, Transaction,
    WriteBatchWithTransaction, WriteOptions,
};

use super::store::{CENTS, Kind, Store, Worker};
use crate::store::Result;

const PAGE: &[u8] = b"page";

pub const KIND: Kind = Kind {
    name: "rocksdb",
    settings: "11.8; OptimisticTransactionDB, set_snapshot; two background threads; sync = true \
               for what is durable",
    create: |dir, accounts, is_durable| {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.increase_parallelism(2);
        options.set_write_buffer_size(256 << 20);
        let db = OptimisticTransactionDB::open(&options, dir.join("db"))?;
        for first in (0..accounts).step_by(10_000) {
            let mut batch = WriteBatchWithTransaction::<true>::default();
            for id in first..accounts.min(first + 10_000) {
                batch.put(id.to_be_bytes(), row(CENTS, id.cast_signed()));
            }
            db.write(batch)?;
        }
        db.put(PAGE, 0i64.to_le_bytes())?;
        db.flush()?;
        Ok(Box::new(Rocks { db, is_durable }))
    },
};

struct Rocks {
    db: OptimisticTransactionDB,
    is_durable: bool,
}

fn row(cents: i64, note: i64) -> [u8; 16] {
    let mut row = [0; 16];
    row[..8].copy_from_slice(&cents.to_le_bytes());
    row[8..].copy_from_slice(&note.to_le_bytes());
    row
}

fn number(bytes: Option<&[u8]>) -> i64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_le_bytes)
}

impl Rocks {
    /// Tries until a commit meets no conflict.
    fn transact(
        &self,
        mut work: impl FnMut(&Transaction<'_, OptimisticTransactionDB>) -> Result<()>,
    ) -> Result<u64> {
        let (mut write, mut options) =
            (WriteOptions::default(), OptimisticTransactionOptions::default());
        write.set_sync(self.is_durable);
        options.set_snapshot(true);
        for attempt in 1.. {
            let transaction = self.db.transaction_opt(&write, &options);
            work(&transaction)?;
            match transaction.commit() {
                Ok(()) => return Ok(attempt),
                Err(e) if e.kind() == rocksdb::ErrorKind::Busy => {}
                Err(e) if e.kind() == rocksdb::ErrorKind::TryAgain => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err("never committed".into())
    }
}

impl Store for Rocks {
    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(RocksWorker(self)))
    }

    fn sum(&self) -> Result<i64> {
        let mut sum = 0;
        for entry in self.db.iterator(IteratorMode::Start) {
            let (key, value) = entry?;
            sum += if *key == *PAGE { 0 } else { number(value.get(..8)) };
        }
        Ok(sum)
    }

    fn counter(&self) -> Result<i64> {
        Ok(number(self.db.get(PAGE)?.as_deref()))
    }
}

struct RocksWorker<'a>(&'a Rocks);

impl Worker for RocksWorker<'_> {
    fn transfer(&mut self, accounts: [u64; 4]) -> Result<u64> {
        self.0.transact(|transaction| {
            let mut found = [(0, 0); 4];
            for (account, found) in accounts.iter().zip(&mut found) {
                let row = transaction.get(account.to_be_bytes())?.unwrap_or_default();
                *found = (number(row.get(..8)), number(row.get(8..)));
            }
            let [from, to, ..] = found;
            transaction.put(accounts[0].to_be_bytes(), row(from.0 - 1, from.1))?;
            transaction.put(accounts[1].to_be_bytes(), row(to.0 + 1, to.1))?;
            Ok(())
        })
    }

    fn count(&mut self) -> Result<u64> {
        self.0.transact(|transaction| {
            let before = number(transaction.get(PAGE)?.as_deref());
            Ok(transaction.put(PAGE, (before + 1).to_le_bytes())?)
        })
    }
}
