//! Esker: a table, and a bucket for the counter.

use std::time::Duration;

use esker::{DataType, Database, Durability, Options, Schema, Transaction, Value};

use super::store::{CENTS, Kind, Store, Worker};
use crate::store::Result;

const TABLE: &str = "accounts";
const HITS: &str = "hits";
const PAGE: &[u8] = b"page";

pub const KIND: Kind = Kind {
    name: "esker",
    settings: "snapshot isolation, transact; Durability::Sync (fdatasync), Async of 1 s for what \
               is not synced",
    create: |dir, accounts, is_durable| {
        let durability = match is_durable {
            true => Durability::Sync,
            false => Durability::Async { at_most: Duration::from_secs(1) },
        };
        let db = Options::new().durability(durability).open(dir)?;
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("cents", DataType::I64)
            .field("note", DataType::I64)
            .primary_key(["id"])
            .build()?;
        let table = db.create_table(TABLE, schema)?;
        let mut load = table.load()?;
        for id in 0..i64::try_from(accounts)? {
            load.push_row(&[id.into(), CENTS.into(), id.into()])?;
        }
        load.finish()?;
        db.bucket(HITS)?.increment(PAGE, 0)?;
        db.wait_idle()?;
        Ok(Box::new(Esker(db)))
    },
};

struct Esker(Database);

fn id(account: u64) -> [Value; 1] {
    [Value::Int(account.cast_signed())]
}

fn cents(transaction: &Transaction, account: u64) -> esker::Result<i64> {
    let row = transaction.table(TABLE)?.get(&id(account))?;
    Ok(match row.as_ref().and_then(|row| row.get("cents")) {
        Some(Value::Int(cents)) => *cents,
        _ => 0,
    })
}

impl Store for Esker {
    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(EskerWorker(&self.0)))
    }

    fn sum(&self) -> Result<i64> {
        let (mut sum, snapshot) = (0, self.0.snapshot()?);
        for row in snapshot.table(TABLE)?.range(..)? {
            if let Some(Value::Int(cents)) = row?.get("cents") {
                sum += cents;
            }
        }
        Ok(sum)
    }

    fn counter(&self) -> Result<i64> {
        Ok(self.0.bucket(HITS)?.increment(PAGE, 0)?)
    }
}

struct EskerWorker<'a>(&'a Database);

impl Worker for EskerWorker<'_> {
    fn transfer(&mut self, [from, to, third, fourth]: [u64; 4]) -> Result<u64> {
        let mut attempts = 0;
        self.0.transact(|transaction| {
            attempts += 1;
            let (a, b) = (cents(transaction, from)?, cents(transaction, to)?);
            std::hint::black_box((cents(transaction, third)?, cents(transaction, fourth)?));
            let table = transaction.table(TABLE)?;
            table.update(&id(from), &[("cents", (a - 1).into())])?;
            table.update(&id(to), &[("cents", (b + 1).into())])?;
            Ok(())
        })?;
        Ok(attempts)
    }

    fn count(&mut self) -> Result<u64> {
        let mut attempts = 0;
        self.0.transact(|transaction| {
            attempts += 1;
            transaction.bucket(HITS)?.increment(PAGE, 1).map(drop)
        })?;
        Ok(attempts)
    }
}
