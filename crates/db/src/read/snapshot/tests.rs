//! The tests named `fault_…` pin wrong answers; each says what is right.

use std::collections::BTreeSet;

use esker_format::DataType;

use crate::{ErrorKind, Options, Schema};

/// Right: a row that is looked up in a snapshot with the rows of a transaction is found, as
/// [`SnapshotTable::count`](crate::SnapshotTable::count) and queries find it.
#[test]
fn fault_d_a_row_is_not_looked_up_in_a_snapshot_with_a_transactions_rows() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build().unwrap();
    db.create_table("t", schema).unwrap();
    let transaction = db.begin().unwrap();
    let snapshot = || transaction.snapshot_of(BTreeSet::from(["t".to_owned()])).unwrap();
    assert_eq!(snapshot().table("t").unwrap().get(&[1i64.into()]).unwrap(), None);
    transaction.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    let table = snapshot().table("t").unwrap();
    assert_eq!(table.count().unwrap(), 1);
    let found = table.get(&[1i64.into()]).unwrap_err();
    assert_eq!(found.kind(), ErrorKind::Corrupt, "{found}");
    let exists = table.exists(&[1i64.into()]).unwrap_err();
    assert_eq!(exists.kind(), ErrorKind::Corrupt, "{exists}");
}
