//! How long a prepared insert of one row and a prepared get by key take, with
//! `Durability::Async`: `cargo run --release -p esker-sql --example prepared_speed [rows]`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement: it ends at the first thing that is not as it should be"
)]

use std::time::{Duration, Instant};

use esker::{Durability, Options, Value};
use esker_sql::Sql;

fn main() {
    let rows: i64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let dir = std::env::temp_dir().join(format!("esker-prepared-{}", std::process::id()));
    let at_most = Duration::from_millis(100);
    let db = Options::new().durability(Durability::Async { at_most }).open(&dir).unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, amount i64 NOT NULL, note text)").unwrap();
    let insert = db.prepare("INSERT INTO t VALUES (?, ?, ?)").unwrap();
    let mut row = [Value::Int(0), Value::Int(0), "sixteen letters.".into()];
    let start = Instant::now();
    for i in 0..rows {
        let [id, amount, _] = &mut row;
        (*id, *amount) = (Value::Int(i), Value::Int(i * 2));
        insert.execute(&row).unwrap();
    }
    report("insert", start.elapsed(), rows);
    let get = db.prepare("SELECT amount, note FROM t WHERE id = ?").unwrap();
    for what in ["first row", "query"] {
        let (start, mut sum) = (Instant::now(), 0);
        for i in 0..rows {
            let key = [Value::Int(i.wrapping_mul(7_919).rem_euclid(rows))];
            let amount = match what {
                "query" => get.query(&key).unwrap().to_rows().swap_remove(0).swap_remove(0),
                _ => get.first(&key).unwrap().unwrap().swap_remove(0),
            };
            match amount {
                Value::Int(amount) => sum += amount,
                other => panic!("{other}"),
            }
        }
        report(what, start.elapsed(), rows);
        assert!(rows % 7_919 == 0 || sum == rows * (rows - 1), "the sum of the amounts: {sum}");
    }
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

fn report(what: &str, elapsed: Duration, rows: i64) {
    println!("{what}: {:.2} µs", elapsed.as_secs_f64() * 1e6 / rows as f64);
}
