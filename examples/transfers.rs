//! Money moved between accounts by several threads: `cargo run --release --example transfers`.
//!
//! Each transfer reads two accounts and changes both. Who comes second in changing an account
//! begins again with what is there then: `transact` does that. So nothing is lost, and nobody who
//! reads sees a sum that never was.
#![allow(clippy::disallowed_methods, reason = "a program has threads of its own")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use esker::{Database, Options, Record};

#[derive(Record)]
struct Account {
    #[esker(key)]
    owner: u32,
    cents: i64,
}

const OWNERS: u32 = 5;
const TRANSFERS: u32 = 500;

/// Moves money if there is enough; returns whether there was.
fn transfer(
    db: &Database,
    from: u32,
    to: u32,
    cents: i64,
    tries: &AtomicU64,
) -> esker::Result<bool> {
    db.transact(|transaction| {
        tries.fetch_add(1, Ordering::Relaxed);
        let accounts = transaction.table_of::<Account>("accounts")?;
        let (Some(mut payer), Some(mut payee)) = (accounts.get(from)?, accounts.get(to)?) else {
            return Ok(false);
        };
        if payer.cents < cents {
            return Ok(false);
        }
        payer.cents -= cents;
        payee.cents += cents;
        accounts.upsert_many(&[payer, payee])?;
        Ok(true)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Options::new().memory()?; // or esker::Database::open("bank.esker")?
    let accounts = db.create_table_of::<Account>("accounts")?;
    let all: Vec<_> = (0..OWNERS).map(|owner| Account { owner, cents: 1_000 }).collect();
    accounts.insert_many(&all)?;

    let (tries, moved) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let worker = |number: u32| {
            let (db, tries, moved) = (&db, &tries, &moved);
            scope.spawn(move || -> esker::Result<()> {
                for i in 0..TRANSFERS {
                    let (from, to) = ((i + number) % OWNERS, (i * 3 + number + 1) % OWNERS);
                    if from != to && transfer(db, from, to, i64::from(i % 90), tries)? {
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..4).map(worker).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;

    let mut sum = 0;
    accounts.for_each(|_, account| {
        println!("account {}: {} cents", account.owner, account.cents);
        sum += account.cents;
        Ok(())
    })?;
    let (tries, moved) = (tries.into_inner(), moved.into_inner());
    println!("{moved} transfers, {tries} tries, {sum} cents as at the beginning");
    assert_eq!(sum, i64::from(OWNERS) * 1_000);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
