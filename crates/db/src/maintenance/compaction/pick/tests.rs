use std::time::Duration;

use esker_format::{DataType, Schema, Value};

use crate::maintenance::TableJob;
use crate::{Database, Options};

/// A table of more segments than it may keep.
fn due() -> Database {
    let options = Options::new().background(false).segment_limit(100);
    let db = options.memory().unwrap();
    let schema = Schema::builder().field("n", DataType::U64).build().unwrap();
    let t = db.create_table("due", schema).unwrap();
    let mut load = t.load().unwrap();
    (0..1_200u64).for_each(|n| load.push_row(&[Value::Uint(n)]).unwrap());
    load.finish().unwrap();
    db
}

fn back_off(db: &Database, until: u64) {
    let id = *db.engine().lock().tables.keys().next().unwrap();
    db.engine().maintenance_state().back_off.insert((id, TableJob::Merge), (1, until));
}

#[test]
fn a_table_whose_merge_failed_is_left_alone_by_the_patient_only() {
    let db = due();
    back_off(&db, u64::MAX);
    assert!(!db.engine().maintain(true).unwrap());
    assert_eq!(db.info().tables[0].segments, 12);
    assert!(db.engine().maintain(false).unwrap());
    assert!(db.info().tables[0].segments < 12);
    assert!(db.engine().maintenance_state().back_off.is_empty());
}

/// The time was over while another thread was at it: maintenance looked again every nanosecond.
#[test]
fn a_merge_that_is_due_is_not_looked_at_again_at_once() {
    let db = due();
    assert_eq!(db.engine().until_next_try(), None);
    back_off(&db, 0);
    assert_eq!(db.engine().until_next_try(), Some(Duration::from_millis(10)));
    back_off(&db, u64::MAX);
    assert!(db.engine().until_next_try().unwrap() > Duration::from_secs(1));
}
