//! Conditional writes: decided and done as one, also beside others.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and has threads of its own"
)]

use esker::{DataType, ErrorKind, Modified, Options, Schema, Table, Value};
use esker_query::model::{Expr, Operator};

fn table() -> (esker::Database, Table) {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("n", DataType::I64);
    let t = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    (db, t)
}

fn n_is(n: i64) -> Expr {
    Expr::field("n").binary(Operator::Eq, Expr::literal(n))
}

#[test]
fn of_many_that_compare_and_set_each_number_is_won_once() {
    let (_db, t) = table();
    t.insert(&[Value::Int(1), Value::Int(0)]).unwrap();
    let won: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let t = t.clone();
                scope.spawn(move || {
                    (0..500i64)
                        .filter(|n| {
                            let set = [("n", Value::Int(n + 1))];
                            let done = t.update_if(&[Value::Int(1)], &set, &n_is(*n)).unwrap();
                            matches!(done, Modified::Changed { .. })
                        })
                        .count() as u64
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let row = t.get(&[Value::Int(1)]).unwrap().unwrap();
    assert_eq!(row.values()[1], Value::Int(i64::try_from(won).unwrap()));
}

#[test]
fn of_many_that_insert_if_absent_one_wins() {
    let (_db, t) = table();
    let won: usize = std::thread::scope(|scope| {
        let insert = |n: i64| {
            let t = t.clone();
            scope.spawn(move || {
                let rows = (0..500).map(|id| [Value::Int(id), Value::Int(n)]);
                rows.filter(|row| t.insert_if_absent(row).unwrap().is_none()).count()
            })
        };
        let threads: Vec<_> = (0..4).map(insert).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((won, t.count().unwrap()), (500, 500));
}

#[test]
fn what_is_not_true_keeps_the_row() {
    let (_db, t) = table();
    let key = [Value::Int(1)];
    assert_eq!(t.delete_if(&key, &n_is(1)).unwrap(), Modified::Absent);
    t.insert(&[Value::Int(1), Value::Null]).unwrap();
    assert!(matches!(t.delete_if(&key, &n_is(1)).unwrap(), Modified::Kept(_)), "NULL is not true");
    let e = t.delete_if(&key, &Expr::literal(1i64)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("expected a condition"), "{e}");
    let moved = t.update_if(&key, &[("id", Value::Int(2))], &Expr::literal(true)).unwrap();
    assert!(matches!(moved, Modified::Changed { .. }));
    let key = [Value::Int(2)];
    let done = t.delete_if(&key, &Expr::literal(true)).unwrap();
    assert!(matches!(done, Modified::Changed { new: None, .. }));
    assert_eq!(t.count().unwrap(), 0);
}
