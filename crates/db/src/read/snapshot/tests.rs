//! A snapshot with the rows of a transaction.

use std::collections::BTreeSet;

use esker_format::{DataType, Value};

use crate::{Options, Schema, SnapshotTable, Transaction};

fn within(transaction: &Transaction) -> SnapshotTable {
    let snapshot = transaction.snapshot_of(BTreeSet::from(["t".to_owned()])).unwrap();
    snapshot.table("t").unwrap()
}

/// The rows with keys 1 to 5: their second value.
fn found(table: &SnapshotTable) -> Vec<Option<Value>> {
    let value = |key: i64| {
        let row = table.get(&[key.into()]).unwrap();
        assert_eq!(table.exists(&[key.into()]).unwrap(), row.is_some(), "{key}");
        row.and_then(|row| row.get("v").cloned())
    };
    (1..=5).map(value).collect()
}

/// The look-up failed with `Corrupt`, while counts and queries found the row.
#[test]
fn a_row_is_looked_up_among_the_rows_of_a_transaction() {
    let db = Options::new().memory().unwrap();
    let fields = Schema::builder().field("n", DataType::I64).field("v", DataType::I64);
    db.create_table("t", fields.primary_key(["n"]).build().unwrap()).unwrap();
    let row = |n: i64, v: i64| vec![n.into(), v.into()];
    db.table("t").unwrap().insert_many(&[row(1, 10), row(2, 20), row(3, 30)]).unwrap();
    for is_sealed in [false, true] {
        if is_sealed {
            db.checkpoint().unwrap();
            db.wait_idle().unwrap();
        }
        let transaction = db.begin().unwrap();
        let ints = |values: [i64; 5]| values.map(|v| (v > 0).then_some(Value::Int(v)));
        assert_eq!(found(&within(&transaction)), ints([10, 20, 30, 0, 0]));
        let table = transaction.table("t").unwrap();
        table.insert(&row(4, 40)).unwrap();
        table.update(&[1i64.into()], &[("v", 11i64.into())]).unwrap();
        table.delete(&[2i64.into()]).unwrap();
        let before = within(&transaction);
        assert_eq!(found(&before), ints([11, 0, 30, 40, 0]));
        assert_eq!(before.count().unwrap(), 3);
        table.delete(&[4i64.into()]).unwrap();
        table.insert(&row(2, 22)).unwrap();
        assert_eq!(found(&within(&transaction)), ints([11, 22, 30, 0, 0]));
        transaction.rollback();
        assert_eq!(db.table("t").unwrap().count().unwrap(), 3);
    }
}

/// The same where the row id is the key.
#[test]
fn a_row_is_looked_up_by_its_row_id_among_the_rows_of_a_transaction() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("v", DataType::I64).build().unwrap();
    db.create_table("t", schema).unwrap();
    let old = db.table("t").unwrap().insert(&[10i64.into()]).unwrap();
    let transaction = db.begin().unwrap();
    let table = transaction.table("t").unwrap();
    table.insert(&[20i64.into()]).unwrap();
    let within = within(&transaction);
    let rows = within.rows().unwrap();
    assert_eq!(rows.len(), 2);
    for (row_id, values) in rows {
        let row = within.get(&[row_id.into()]).unwrap().unwrap();
        assert_eq!(row.values(), values, "{row_id}");
    }
    table.delete(&[old.into()]).unwrap();
    let after = super::tests::within(&transaction);
    assert_eq!(after.get(&[old.into()]).unwrap(), None);
}
