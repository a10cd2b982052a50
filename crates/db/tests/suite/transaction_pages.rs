//! Answers page by page within a transaction.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use esker::{
    DataType, Database, ErrorKind, Isolation, Options, PageOptions, Query, Schema, Transaction,
    TransactionOptions, Value,
};
use esker_query::model::{Expr, OrderBy};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("n", DataType::I64);
    let t = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    t.insert_many(&(0..40i64).map(row).collect::<Vec<_>>()).unwrap();
    let generated = Schema::builder().field("n", DataType::I64).build().unwrap();
    let generated = db.create_table("generated", generated).unwrap();
    generated.insert_many(&(0..20i64).map(|n| vec![(n % 3).into()]).collect::<Vec<_>>()).unwrap();
    db.bucket("b").unwrap().put_many((0..20u8).map(|n| ([n], [n % 4]))).unwrap();
    db
}

/// Many rows are equal in the order.
fn row(id: i64) -> Vec<Value> {
    let n = id % 4;
    vec![id.into(), if n == 3 { Value::Null } else { n.into() }]
}

fn ordered(table: &str, by: &str, descending: bool, limit: u64) -> Query {
    let order_by = vec![OrderBy { expr: Expr::field(by), descending, nulls_first: None }];
    Query { order_by, limit: Some(limit.into()), ..Query::table(table) }
}

fn at(cursor: Option<String>) -> PageOptions {
    PageOptions { cursor, ..PageOptions::default() }
}

/// All rows, page by page, forward, and again backward.
fn paged(transaction: &Transaction, query: &Query) -> [Vec<Vec<Value>>; 2] {
    let (mut forward, mut cursor, mut pages) = (Vec::new(), None, Vec::new());
    loop {
        let page = transaction.page(query, &at(cursor)).unwrap();
        forward.extend(page.result.to_rows());
        pages.push(page.previous);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let last = pages.pop().unwrap();
    let mut backward = Vec::new();
    let mut cursor = last;
    while let Some(previous) = cursor {
        let page = transaction.page(query, &at(Some(previous))).unwrap();
        backward.splice(0..0, page.result.to_rows());
        cursor = page.previous;
    }
    [forward, backward]
}

fn change(transaction: &Transaction) {
    let t = transaction.table("t").unwrap();
    t.upsert_many(&(35..50i64).map(|id| row(id + 1)).collect::<Vec<_>>()).unwrap();
    assert!(t.update(&[7i64.into()], &[("n", 0i64.into())]).unwrap());
    let bounds: [Vec<Value>; 2] = [vec![10i64.into()], vec![20i64.into()]];
    assert_eq!(t.delete_range(bounds[0].clone()..bounds[1].clone()).unwrap(), 10);
    let generated = transaction.table("generated").unwrap();
    for n in 0..7i64 {
        generated.insert(&[(n % 2).into()]).unwrap();
    }
    assert!(generated.delete(&[4u64.into()]).unwrap());
    let b = transaction.bucket("b").unwrap();
    (15..30u8).for_each(|n| b.put([n], [n % 2]).unwrap());
    assert!(b.remove([3]).unwrap());
}

#[test]
fn pages_of_a_transaction_are_its_answer_in_both_directions() {
    let db = database();
    let transaction = db.begin().unwrap();
    for changes in [false, true] {
        if changes {
            change(&transaction);
        }
        for (table, by) in [("t", "id"), ("t", "n"), ("generated", "n"), ("b", "value")] {
            for (descending, limit) in [(false, 1), (false, 7), (true, 3), (true, 100)] {
                let query = ordered(table, by, descending, limit);
                let [forward, backward] = paged(&transaction, &query);
                let whole = Query { limit: None, ..query.clone() };
                let whole = transaction.query(&whole).unwrap().to_rows();
                let mut sorted = [whole.clone(), forward.clone()];
                sorted.iter_mut().for_each(|rows| rows.sort_by_key(|row| format!("{row:?}")));
                assert_eq!(sorted[0], sorted[1], "{query}");
                // The last page is not among those before it.
                assert_eq!(forward[..backward.len()], backward, "{query}");
                assert!(forward.len() - backward.len() <= usize::try_from(limit).unwrap());
                let total = PageOptions { total: true, ..PageOptions::default() };
                let total = transaction.page(&query, &total).unwrap().total;
                assert_eq!(total, Some(whole.len() as u64), "{query}");
            }
        }
    }
}

#[test]
fn rows_that_stay_in_their_place_are_on_one_page_whatever_is_changed_between() {
    let db = database();
    let transaction = db.begin().unwrap();
    change(&transaction);
    let query = ordered("t", "n", false, 5);
    let staying = |rows: Vec<Vec<Value>>| -> Vec<Vec<Value>> {
        let is_old = |row: &Vec<Value>| (20..30i64).any(|id| row[0] == id.into());
        rows.into_iter().filter(is_old).collect()
    };
    let whole = Query { limit: None, ..query.clone() };
    let mut wanted = staying(transaction.query(&whole).unwrap().to_rows());
    let (mut seen, mut cursor, mut id) = (Vec::new(), None, 100i64);
    loop {
        let page = transaction.page(&query, &at(cursor)).unwrap();
        seen.extend(page.result.to_rows());
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        let t = transaction.table("t").unwrap();
        let savepoint = transaction.savepoint();
        t.upsert_many(&(id..id + 3).map(row).collect::<Vec<_>>()).unwrap();
        assert!(t.delete(&[(id - 100).into()]).unwrap());
        if id % 2 == 1 {
            transaction.rollback_to(savepoint).unwrap();
        }
        // Others do not disturb.
        db.table("t").unwrap().upsert(&row(1_000 + id)).unwrap();
        id += 1;
        assert!(id < 120, "pages end");
    }
    let mut seen = staying(seen);
    wanted.sort_by_key(|row| format!("{row:?}"));
    seen.sort_by_key(|row| format!("{row:?}"));
    assert_eq!((wanted.len(), seen), (10, wanted));
}

#[test]
fn a_cursor_is_of_its_transaction() {
    let db = database();
    let query = ordered("t", "id", false, 3);
    let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    let (one, other) = (db.begin_with(serializable).unwrap(), db.begin().unwrap());
    let of_one = one.page(&query, &at(None)).unwrap().next;
    let outside = db.page(&query, &at(None)).unwrap().next;
    for cursor in [of_one.clone(), outside.clone()] {
        let e = other.page(&query, &at(cursor)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains("outside of this transaction"), "{e}");
    }
    let e = db.page(&query, &at(of_one)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SnapshotGone);
    // A page counts as a look at the table.
    db.table("t").unwrap().upsert(&row(900)).unwrap();
    one.bucket("b").unwrap().put(b"k", b"v").unwrap();
    assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Conflict);
}
