//! Whoever remembers rows by where they lie, while all of them are rewritten again and again:
//! transactions that have changed rows, loads that replace some.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::BTreeMap;

use esker::{DataType, Database, ErrorKind, NewIndex, Options, Query, Schema, Transaction, Value};
use esker_query::model::{Aggregate, Expr, Operator};

use crate::fixture::Directory;

const KEYS: u64 = 300;
const ROUNDS: u64 = 24;

/// Numbers by key.
type Rows = BTreeMap<u64, u64>;

fn row(id: u64, n: u64) -> Vec<Value> {
    vec![id.into(), n.into(), format!("{id} is {n}").into()]
}

fn create(db: &Database, is_ordered: bool) {
    let fields = Schema::builder().field("id", DataType::U64).field("n", DataType::U64);
    let fields = fields.field("text", DataType::Text).primary_key(["id"]);
    let fields = fields.add_index(NewIndex::new("by_n", ["n"]));
    let fields = if is_ordered { fields.ordered_by_key() } else { fields };
    let table = db.create_table("t", fields.build().unwrap()).unwrap();
    table.insert_many(&(0..KEYS).map(|id| row(id, id)).collect::<Vec<_>>()).unwrap();
}

/// Puts other numbers into the odd keys, so that nearly all that is stored is dead, and has
/// everything rewritten.
fn rewrite(db: &Database, round: u64) {
    let odd = (0..KEYS).filter(|id| id % 2 == 1);
    let rows: Vec<_> = odd.map(|id| row(id, id + 1_000 * (round + 1))).collect();
    let table = db.table("t").unwrap();
    rows.chunks(40).for_each(|rows| table.upsert_many(rows).unwrap());
    db.wait_idle().unwrap();
    if round % 3 == 2 {
        db.compact(false, &mut |_, _| {}).unwrap();
    }
    assert_eq!(db.info().memory.forwarding, 0, "nothing is kept for those who remember places");
}

fn options(spills: bool) -> Options {
    let options = Options::new().background(false).group_limit(64, 1 << 30).small_group_limit(1);
    let options = options.segment_limit(200);
    if spills { options.transaction_limit(1) } else { options }
}

/// By key, by scan and by index.
fn expect(transaction: &Transaction, rows: &Rows) {
    let within = transaction.table("t").unwrap();
    for id in [0, 2, 8, 31, 150, 151] {
        let found = within.get(&[id.into()]).unwrap().map(|row| row.values().to_vec());
        assert_eq!(found, rows.get(&id).map(|n| row(id, *n)), "key {id}");
    }
    assert_eq!(within.count().unwrap(), rows.len() as u64);
    let mut query = Query::table("t");
    query.select(Expr::aggregate(Aggregate::Sum, Expr::field("n"))).select(Expr::count());
    let sum = transaction.query(&query).unwrap().to_rows()[0][0].to_string();
    assert_eq!(sum, rows.values().sum::<u64>().to_string());
    for n in [2, 31, 7_002] {
        query.filter = Some(Expr::field("n").binary(Operator::Eq, Expr::literal(Value::Uint(n))));
        let count = rows.values().filter(|other| **other == n).count();
        let found = transaction.query(&query).unwrap().to_rows()[0][1].to_string();
        assert_eq!(found, count.to_string(), "n = {n}");
    }
}

/// Changes some even keys of a transaction's in each round, those of earlier ones again, too.
fn change(transaction: &Transaction, rows: &mut Rows, round: u64) {
    let within = transaction.table("t").unwrap();
    for id in [10 * round, 10 * round + 2, 10 * round + 4, 2 * round] {
        within.upsert(&row(id, id + 7_000)).unwrap();
        rows.insert(id, id + 7_000);
    }
    let gone = 10 * round + 6;
    assert_eq!(within.delete(&[gone.into()]).unwrap(), rows.remove(&gone).is_some());
    if round % 5 == 1 {
        let savepoint = transaction.savepoint();
        within.upsert(&row(gone, 1)).unwrap();
        assert!(within.delete(&[(10 * round + 8).into()]).unwrap());
        assert_eq!(within.count().unwrap(), rows.len() as u64);
        transaction.rollback_to(savepoint).unwrap();
    }
}

#[test]
fn a_transaction_finds_the_rows_that_it_has_changed_through_all_rewrites() {
    for (is_ordered, in_memory, spills) in [
        (false, false, false),
        (false, true, false),
        (true, false, false),
        (true, true, false),
        (false, false, true),
        (true, false, true),
    ] {
        eprintln!(
            "in the order of the key: {is_ordered}, in memory: {in_memory}, spills: {spills}"
        );
        let dir = Directory::new("remembered");
        let options = options(spills);
        let db = if in_memory { options.memory() } else { options.open(&dir.0) }.unwrap();
        create(&db, is_ordered);
        rewrite(&db, 0);
        let (transaction, loses) = (db.begin().unwrap(), db.begin().unwrap());
        let mut rows: Rows = (0..KEYS).map(|id| (id, id + 1_000 * (id % 2))).collect();
        let begun = rows.clone();
        let changed_by_loser = loses.table("t").unwrap();
        changed_by_loser.upsert(&row(KEYS - 1, 5)).unwrap();
        assert!(changed_by_loser.delete(&[(KEYS - 3).into()]).unwrap());
        for round in 1..ROUNDS {
            change(&transaction, &mut rows, round);
            expect(&transaction, &rows);
            rewrite(&db, round);
            expect(&transaction, &rows);
            assert_eq!(changed_by_loser.count().unwrap(), KEYS - 1);
        }
        let lost = loses.commit().unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Conflict, "odd keys were changed: {lost}");
        transaction.commit().unwrap();
        for (id, n) in &mut rows {
            *n = if id % 2 == 1 { id + 1_000 * ROUNDS } else { *n };
        }
        expect(&db.begin().unwrap(), &rows);
        assert!(rows.len() < begun.len());
        db.compact(true, &mut |_, _| {}).unwrap();
        expect(&db.begin().unwrap(), &rows);
        assert_eq!(db.check().unwrap().problems, []);
        assert_eq!(db.recount(true).unwrap(), []);
    }
}

/// A load notes which rows it replaces, and ends them when it commits.
#[test]
fn a_load_ends_the_rows_that_it_replaces_wherever_they_have_gone() {
    for is_ordered in [false, true] {
        for changes_one in [false, true] {
            let dir = Directory::new("remembered");
            let db = options(false).open(&dir.0).unwrap();
            create(&db, is_ordered);
            let table = db.table("t").unwrap();
            let mut load = table.load().unwrap();
            load.replace_existing().unwrap();
            for id in (0..KEYS).filter(|id| id % 2 == 0) {
                load.push_row(&row(id, 9_000)).unwrap();
                if id % 100 == 0 {
                    rewrite(&db, id / 100);
                }
            }
            // Enough for a segment of its own.
            for id in KEYS..KEYS + 70_000 {
                load.push_row(&row(id, 1)).unwrap();
            }
            load.wait().unwrap();
            (3..9).for_each(|round| rewrite(&db, round));
            if changes_one {
                table.upsert(&row(4, 4)).unwrap();
                assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::Conflict);
            } else {
                load.finish().unwrap();
                assert_eq!(table.count().unwrap(), KEYS + 70_000);
                let found = table.get(&[4u64.into()]).unwrap().unwrap();
                assert_eq!(found.values(), row(4, 9_000));
            }
            let found = table.get(&[5u64.into()]).unwrap().unwrap();
            assert_eq!(found.values(), row(5, 9_005));
            db.wait_idle().unwrap();
            assert_eq!(db.info().memory.forwarding, 0);
            assert_eq!(db.check().unwrap().problems, []);
            assert_eq!(db.recount(true).unwrap(), []);
        }
    }
}
