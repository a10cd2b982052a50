//! Tables that a transaction creates, alters, renames and drops.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use esker::{
    Alteration, BucketOptions, DataType, Database, ErrorKind, Field, FieldId, NewIndex, Options,
    Query, Schema, TransactionOptions, Value,
};
use esker_query::model::{Expr, Operator};

fn numbers(name: &str) -> Schema {
    let fields = Schema::builder().field("id", DataType::I64).field(name, DataType::I64);
    fields.primary_key(["id"]).ordered_by_key().build().unwrap()
}

fn row(id: i64, n: i64) -> Vec<Value> {
    vec![id.into(), n.into()]
}

fn database() -> Database {
    let db = Options::new().background(false).group_limit(4, 1 << 20).memory().unwrap();
    let t = db.create_table("t", numbers("n")).unwrap();
    (0..10).for_each(|id| t.insert(&row(id, id * 10)).map(drop).unwrap());
    db.wait_idle().unwrap();
    db
}

fn add(name: &str, initial: i64) -> Alteration {
    let field = Field::new(FieldId(0), name.to_owned(), DataType::I64, false);
    Alteration::AddField(Field { initial: initial.into(), ..field })
}

#[test]
fn rows_are_read_by_the_schema_of_the_transaction() {
    let db = database();
    let transaction = db.begin().unwrap();
    let before = transaction.table("t").unwrap();
    before.update(&[3i64.into()], &[("n", 31i64.into())]).unwrap();
    transaction.alter_table("t", &[add("more", 7), Alteration::DropField("n".into())]).unwrap();
    let t = transaction.table("t").unwrap();
    t.update(&[4i64.into()], &[("more", 8i64.into())]).unwrap();
    t.delete(&[5i64.into()]).unwrap();
    for id in 0..10i64 {
        let found = t.get(&[id.into()]).unwrap().map(|row| row.values().to_vec());
        let more = if id == 4 { 8 } else { 7 };
        assert_eq!(found, (id != 5).then(|| row(id, more)), "{id}");
    }
    let range = t.range(vec![2i64.into()]..vec![6i64.into()]).unwrap();
    let found: Vec<_> = range.map(|row| row.unwrap().values().to_vec()).collect();
    assert_eq!(found, [row(2, 7), row(3, 7), row(4, 8)]);
    assert_eq!(t.count().unwrap(), 9);
    // What was taken before the alteration is of another shape.
    let e = before.insert(&row(20, 1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("take it again"), "{e}");
    assert!(before.get(&[1i64.into()]).is_err() && before.count().is_err());
    assert_eq!(t.delete_range(vec![7i64.into()]..).unwrap(), 3);
    transaction.commit().unwrap();
    let now = db.table("t").unwrap();
    assert_eq!(now.count().unwrap(), 6);
    assert_eq!(now.get(&[4i64.into()]).unwrap().unwrap().values(), row(4, 8));
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn generated_keys_of_a_new_table_begin_at_one_and_go_on() {
    let db = database();
    let transaction = db.begin().unwrap();
    assert!(transaction.is_unchanged());
    let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
    let new = transaction.create_table("new", schema).unwrap();
    assert!(!transaction.is_unchanged());
    assert_eq!([1i64, 2, 3].map(|n| new.insert(&[n.into()]).unwrap()), [1, 2, 3]);
    assert!(new.delete(&[2u64.into()]).unwrap());
    assert_eq!(transaction.tables().unwrap(), ["new", "t"]);
    transaction.alter_table("new", &[add("m", 5)]).unwrap();
    let new = transaction.table("new").unwrap();
    assert_eq!(new.insert(&row(4, 6)).unwrap(), 4);
    transaction.commit().unwrap();
    let new = db.table("new").unwrap();
    assert_eq!(new.insert(&row(5, 7)).unwrap(), 5);
    let found = [1u64, 2, 3, 4].map(|id| new.get(&[id.into()]).unwrap().is_some());
    assert_eq!(found, [true, false, true, true]);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn unique_values_of_a_new_table_are_compared_at_the_commit() {
    let db = database();
    for is_twice in [true, false] {
        let transaction = db.begin().unwrap();
        let new = transaction.create_table("new", numbers("n")).unwrap();
        new.insert_many(&[row(1, 1), row(2, if is_twice { 1 } else { 2 })]).unwrap();
        let unique = NewIndex::new("by_n", ["n"]).unique();
        transaction.alter_table("new", &[Alteration::AddIndex(unique)]).unwrap();
        match transaction.commit() {
            Ok(_) => assert!(!is_twice),
            Err(e) => {
                assert_eq!((e.kind(), is_twice), (ErrorKind::AlreadyExists, true), "{e}");
                assert_eq!(db.tables(), ["t"]);
            }
        }
    }
    let e = db.table("new").unwrap().insert(&row(3, 2)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_unique_index_that_is_dropped_refuses_no_row_of_the_same_commit() {
    let db = database();
    db.create_index("t", NewIndex::new("by_n", ["n"]).unique()).unwrap();
    let transaction = db.begin().unwrap();
    transaction.alter_table("t", &[Alteration::DropIndex("by_n".into())]).unwrap();
    let t = transaction.table("t").unwrap();
    t.insert(&row(20, 10)).unwrap();
    transaction.alter_table("t", &[add("m", 0)]).unwrap();
    transaction.table("t").unwrap().insert(&[21i64.into(), 10i64.into(), 1i64.into()]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.table("t").unwrap().count().unwrap(), 12);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_table_that_the_transaction_dropped_is_gone_for_it_alone() {
    let db = database();
    let transaction = db.begin().unwrap();
    let t = transaction.table("t").unwrap();
    t.insert(&row(50, 1)).unwrap();
    let savepoint = transaction.savepoint();
    transaction.drop_table("t").unwrap();
    let e = t.get(&[1i64.into()]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("was dropped by the transaction"), "{e}");
    assert_eq!(transaction.table("t").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.table("t").unwrap().count().unwrap(), 10);
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!((t.count().unwrap(), t.exists(&[50i64.into()]).unwrap()), (11, true));
    transaction.drop_table("t").unwrap();
    transaction.create_table("t", numbers("other")).unwrap().insert(&row(1, 2)).unwrap();
    transaction.commit().unwrap();
    let found = db.table("t").unwrap().get(&[1i64.into()]).unwrap().unwrap();
    assert_eq!((found.get("other"), db.tables().len()), (Some(&2i64.into()), 1));
}

#[test]
fn rows_that_an_alteration_keeps_twice_are_within_the_memory_of_the_transaction() {
    if crate::is_on_disk() {
        return; // Others write to files.
    }
    let db = database();
    let options = TransactionOptions::new().memory_limit(200_000);
    let transaction = db.begin_with(options).unwrap();
    let t = transaction.table("t").unwrap();
    for id in 100..600 {
        t.insert(&row(id, 1)).unwrap();
    }
    let _savepoint = transaction.savepoint();
    let e = transaction.alter_table("t", &[add("more", 7)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    assert_eq!((t.count().unwrap(), t.schema().fields().len()), (510, 2));
    assert_eq!(transaction.table("t").unwrap().schema().fields().len(), 2);
}

#[test]
fn rows_that_are_put_after_going_back_on_an_alteration_are_of_the_first_schema() {
    let db = database();
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    transaction.alter_table("t", &[add("more", 7)]).unwrap();
    let t = transaction.table("t").unwrap();
    t.insert(&[20i64.into(), 200i64.into(), 1i64.into()]).unwrap();
    transaction.rollback_to(savepoint).unwrap();
    let t = transaction.table("t").unwrap();
    t.insert(&row(21, 210)).unwrap();
    assert_eq!(t.count().unwrap(), 11);
    transaction.commit().unwrap();
    let now = db.table("t").unwrap();
    assert_eq!(now.get(&[21i64.into()]).unwrap().unwrap().values(), row(21, 210));
    assert_eq!((now.count().unwrap(), now.schema().fields().len()), (11, 2));
}

/// Its rows were taken: one of another schema was committed, or kept the commit from its row.
#[test]
fn a_table_of_an_alteration_that_was_taken_back_is_refused() {
    let db = database();
    let transaction = db.begin().unwrap();
    let first = transaction.table("t").unwrap();
    first.insert(&row(20, 200)).unwrap();
    let savepoint = transaction.savepoint();
    for changes in [vec![add("more", 7), Alteration::DropField("n".into())], vec![add("more", 7)]] {
        transaction.alter_table("t", &changes).unwrap();
        let t = transaction.table("t").unwrap();
        transaction.rollback_to(savepoint).unwrap();
        let mut values = row(21, 7);
        values.resize(t.schema().fields().len(), 1i64.into());
        let e = t.insert(&values).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
        assert!(e.to_string().contains("taken back"), "{e}");
        assert!(t.get(&[1i64.into()]).is_err() && t.count().is_err());
    }
    transaction.create_table("new", numbers("n")).unwrap();
    transaction.truncate_table("t").unwrap();
    let gone = ["new", "t"].map(|name| transaction.table(name).unwrap());
    transaction.rollback_to(savepoint).unwrap();
    for table in gone {
        let e = table.insert(&row(22, 220)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    }
    // A name says nothing about rows.
    transaction.rename_table("t", "u").unwrap();
    let renamed = transaction.table("u").unwrap();
    transaction.rollback_to(savepoint).unwrap();
    for (table, id) in [(first, 23), (renamed, 24)] {
        table.insert(&row(id, id * 10)).unwrap();
    }
    transaction.commit().unwrap();
    let now = db.table("t").unwrap();
    let found = |id: i64| now.get(&[id.into()]).unwrap().map(|row| row.values().to_vec());
    let expected = [20, 23, 24].map(|id| Some(row(id, id * 10)));
    assert_eq!([20, 23, 24].map(found), expected);
    assert_eq!((found(21), now.count().unwrap()), (None, 13));
}

/// They were found by the version of the schema, which the next one has, too.
#[test]
fn checks_of_an_alteration_that_was_taken_back_hold_for_no_other() {
    let check = |bound: i64, operator| {
        let condition = Expr::field("n").binary(operator, Expr::literal(bound));
        Alteration::AddCheck(esker::check("bounds", &condition).unwrap())
    };
    let db = database();
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    transaction.alter_table("t", &[check(-1, Operator::Gt)]).unwrap();
    let t = transaction.table("t").unwrap();
    transaction.rollback_to(savepoint).unwrap();
    t.insert(&row(20, 1)).unwrap_err();
    drop(transaction);
    db.alter_table("t", &[check(100, Operator::Lt)]).unwrap();
    let t = db.table("t").unwrap();
    let e = t.insert(&row(21, 1_000)).unwrap_err();
    assert!(e.to_string().contains("n < 100 is false"), "{e}");
    t.insert(&row(22, -7)).unwrap();
}

#[test]
fn entries_of_a_bucket_that_was_taken_back_are_not_there() {
    let db = database();
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    let bucket = transaction.create_bucket("b", &BucketOptions::default()).unwrap();
    bucket.put("k", "v").unwrap();
    transaction.rollback_to(savepoint).unwrap();
    let refused = [
        bucket.get("k").err(),
        bucket.get_for_update("k").err(),
        bucket.get_with_expiry("k").err(),
        bucket.expect_since("k", transaction.read_at(), true).err(),
        bucket.put("k", "v").err(),
        bucket.len().err(),
    ];
    let kinds = refused.map(|e| e.map(|e| e.kind()));
    assert_eq!(kinds, [Some(ErrorKind::InvalidInput); 6]);
}

#[test]
fn a_table_is_truncated_with_the_transaction() {
    let db = database();
    let (handle, older) = (db.table("t").unwrap(), db.snapshot().unwrap());
    let transaction = db.begin().unwrap();
    let before = transaction.table("t").unwrap();
    before.insert(&row(50, 1)).unwrap();
    transaction.truncate_table("t").unwrap();
    let e = before.insert(&row(51, 1)).unwrap_err();
    assert!(e.to_string().contains("take it again by its name"), "{e}");
    let t = transaction.table("t").unwrap();
    assert_eq!(t.count().unwrap(), 0);
    t.insert(&row(3, 33)).unwrap();
    let savepoint = transaction.savepoint();
    transaction.truncate_table("t").unwrap();
    assert_eq!(transaction.table("t").unwrap().count().unwrap(), 0);
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(transaction.table("t").unwrap().count().unwrap(), 1);
    assert_eq!(handle.count().unwrap(), 10);
    transaction.commit().unwrap();
    assert_eq!(handle.count().unwrap(), 1, "handles go on working");
    assert_eq!(handle.get(&[3i64.into()]).unwrap().unwrap().values(), row(3, 33));
    handle.insert(&row(4, 44)).unwrap();
    assert_eq!(older.table("t").unwrap().count().unwrap(), 10);
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.truncate_table("none").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn truncation_beside_others_is_a_conflict() {
    type Change = fn(&Database) -> esker::Result<()>;
    let changes: [(&str, Change); 4] = [
        ("rows were changed", |db| db.table("t")?.insert(&row(60, 1)).map(drop)),
        ("was altered", |db| db.alter_table("t", &[add("more", 1)])),
        ("renamed or truncated", |db| db.truncate_table("t")),
        ("was dropped", |db| db.drop_table("t")),
    ];
    for (why, change) in changes {
        let db = database();
        let transaction = db.begin().unwrap();
        transaction.truncate_table("t").unwrap();
        change(&db).unwrap();
        let e = transaction.commit().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        assert!(e.to_string().contains(why), "{e}");
    }
}

/// What was counted for the step back grew with the versions that a query hid since.
#[test]
fn going_back_before_an_alteration_counts_what_it_had_counted() {
    let db = database();
    let transaction = db.begin().unwrap();
    transaction.table("t").unwrap().update(&[1i64.into()], &[("n", 5i64.into())]).unwrap();
    let savepoint = transaction.savepoint();
    transaction.alter_table("t", &[add("more", 7)]).unwrap();
    let t = transaction.table("t").unwrap();
    t.update(&[2i64.into()], &[("more", 8i64.into())]).unwrap();
    assert_eq!(transaction.query(&Query::table("t")).unwrap().to_rows().len(), 10);
    transaction.rollback_to(savepoint).unwrap();
    transaction.table("t").unwrap().update(&[2i64.into()], &[("n", 6i64.into())]).unwrap();
    transaction.commit().unwrap();
    let t = db.table("t").unwrap();
    assert_eq!(t.get(&[2i64.into()]).unwrap().unwrap().values(), row(2, 6));
}
