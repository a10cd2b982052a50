//! A database in an asynchronous program: `cargo run --release --example asynchronous`.
//!
//! In a program of your own: `esker-sql = { …, features = ["async"] }`.

use esker::{Options, Record};
use esker_sql::{AsyncDatabase, Sql};

#[derive(Debug, PartialEq, Record)]
struct Visit {
    #[esker(key)]
    id: u64,
    page: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = AsyncDatabase::new(Options::new().memory()?); // or AsyncDatabase::open("db").await?
    db.run(|db| db.create_table_of::<Visit>("visits").map(drop)).await?;

    // Many tasks write at once; their commits share the syncs of the disk.
    let insert = db.prepare("INSERT INTO visits VALUES (?, ?)").await?;
    let writers = (0..10u64).map(|id| {
        let insert = insert.clone();
        tokio::spawn(async move { insert.execute((id, format!("/page/{}", id % 3))).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }

    // The query waits while its rows are not taken, and ends when they are dropped.
    let text = "SELECT * FROM visits WHERE page = ? ORDER BY id";
    let mut visits = db.sql_rows(text, ("/page/1",)).await?.records::<Visit>()?;
    while let Some(visit) = visits.next().await {
        println!("{:?}", visit?);
    }

    // A transaction is a function: it may run again after a conflict.
    let left = db.run(|db| {
        db.transact(|transaction| {
            transaction.sql("DELETE FROM visits WHERE page <> ?", ("/page/1",))?;
            transaction.sql_first::<u64>("SELECT count(*) FROM visits", ())
        })
    });
    assert_eq!(left.await?, Some(3));
    Ok(db.close().await?)
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
