//! Changes of more rows than one commit is put together of.

use esker_format::{DataType, Schema, Value};

use super::table::COMMIT_ROWS_MAX;
use crate::{ErrorKind, Limits, Options, Scope};

/// They are done part by part: an error names the row among all, and nothing is changed then.
#[test]
fn a_change_in_parts_is_one_commit_and_numbers_its_rows() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    let count = COMMIT_ROWS_MAX + 2_500;
    let mut rows: Vec<Vec<Value>> = (0..count).map(|n| vec![Value::Uint(n as u64)]).collect();
    let limits = Limits::default();
    let scoped = Scope::table(&db, "t").unwrap();
    let twice = rows[7].clone();
    let last = std::mem::replace(&mut rows[count - 1], twice);
    let error = scoped.insert_many(&rows, &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert!(error.to_string().contains(&format!("row {count}: ")), "{error}");
    assert_eq!(table.count().unwrap(), 0);
    rows[count - 1] = last;
    scoped.insert_many(&rows, &limits).unwrap();
    assert_eq!(table.count().unwrap(), count as u64);
    assert_eq!(scoped.delete_many(&rows, &limits).unwrap(), count as u64);
    assert_eq!(table.count().unwrap(), 0);
}
