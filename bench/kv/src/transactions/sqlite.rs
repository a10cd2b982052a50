//! SQLite with a write-ahead log: one writer at a time, whom the others wait for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::store::{CENTS, Kind, Store, Worker};
use crate::store::Result;

pub const KIND: Kind = Kind {
    name: "sqlite",
    settings: "WAL, BEGIN IMMEDIATE, prepared statements, a connection a thread, cache of 256 \
               MiB; synchronous = FULL (fdatasync), NORMAL for what is not synced",
    create: |dir, accounts, is_durable| {
        let store = Sqlite { path: dir.join("db"), is_durable };
        let mut connection = store.connect()?;
        connection.execute_batch(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER, note INTEGER);
             CREATE TABLE hits (page TEXT PRIMARY KEY, count INTEGER) WITHOUT ROWID;
             INSERT INTO hits VALUES ('page', 0);",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO accounts VALUES (?1, ?2, ?1)")?;
            for id in 0..i64::try_from(accounts)? {
                insert.execute((id, CENTS))?;
            }
        }
        transaction.commit()?;
        Ok(Box::new(store))
    },
};

struct Sqlite {
    path: PathBuf,
    is_durable: bool,
}

impl Sqlite {
    fn connect(&self) -> Result<Connection> {
        connect(&self.path, self.is_durable)
    }
}

fn connect(path: &Path, is_durable: bool) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", if is_durable { "full" } else { "normal" })?;
    connection.pragma_update(None, "cache_size", -(256 << 10))?;
    Ok(connection)
}

impl Store for Sqlite {
    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(SqliteWorker(self.connect()?)))
    }

    fn sum(&self) -> Result<i64> {
        Ok(self.connect()?.query_row("SELECT sum(cents) FROM accounts", (), |row| row.get(0))?)
    }

    fn counter(&self) -> Result<i64> {
        Ok(self.connect()?.query_row("SELECT count FROM hits", (), |row| row.get(0))?)
    }
}

struct SqliteWorker(Connection);

impl Worker for SqliteWorker {
    fn transfer(&mut self, accounts: [u64; 4]) -> Result<u64> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut get = transaction.prepare_cached("SELECT cents FROM accounts WHERE id = ?1")?;
            let mut found = [0i64; 4];
            for (account, found) in accounts.iter().zip(&mut found) {
                *found = get.query_row([account.cast_signed()], |row| row.get(0))?;
            }
            let mut set =
                transaction.prepare_cached("UPDATE accounts SET cents = ?2 WHERE id = ?1")?;
            set.execute((accounts[0].cast_signed(), found[0] - 1))?;
            set.execute((accounts[1].cast_signed(), found[1] + 1))?;
        }
        transaction.commit()?;
        Ok(1)
    }

    fn count(&mut self) -> Result<u64> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.prepare_cached("UPDATE hits SET count = count + 1")?.execute(())?;
        transaction.commit()?;
        Ok(1)
    }
}
