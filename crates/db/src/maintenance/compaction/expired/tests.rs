use std::time::Duration;

use esker_arena::{Category, Reservation};
use esker_vfs::sim::{Options as SimOptions, Simulation};

use crate::{DataType, Database, Options, Schema, Table, Value};

const SECOND_US: i64 = 1_000_000;
const ROWS: i64 = 6_000;

/// A table whose rows, all of them in segments, expire after ten seconds; small groups are sealed.
fn filled(machine: &Simulation, limit_bytes: u64) -> (Database, Table) {
    let options = Options::new().environment(machine.environment()).background(false);
    let options = options.memory_limit(limit_bytes).group_limit(1_000, 64 << 20);
    let db = options.small_group_limit(0).open("db").unwrap();
    let schema = Schema::builder().field("n", DataType::I64).field("ends", DataType::Timestamp);
    let schema = schema.primary_key(["n"]).expires_by("ends").build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    (db, table)
}

fn put(db: &Database, table: &Table, n: i64) -> crate::Result<()> {
    let ends = Value::Timestamp(db.engine().now().date_us + 10 * SECOND_US);
    table.insert(&[n.into(), ends]).map(drop)
}

fn dead(table: &Table) -> u64 {
    table.core().view().row_groups.iter().map(esker_table::view::RowGroup::dead_count).sum()
}

/// Deleting takes memory, and a commit that finds none once it is numbered is the last.
#[test]
fn expired_rows_are_not_deleted_with_the_last_memory() {
    let machine = Simulation::new(1, SimOptions::default());
    let limit_bytes = 32 << 20;
    let (db, table) = filled(&machine, limit_bytes);
    (0..ROWS).for_each(|n| put(&db, &table, n).unwrap());
    db.wait_idle().unwrap();
    let old = db.snapshot().unwrap();
    put(&db, &table, ROWS).unwrap();
    machine.advance_clock(Duration::from_secs(11));
    let arena = &db.engine().arena;
    let mut others = Reservation::new(arena, Category::Load);
    let left_bytes = 4 << 10;
    assert!(others.grow(limit_bytes - left_bytes - arena.used_bytes(), u64::MAX, u64::MAX));
    db.wait_idle().unwrap();
    assert_eq!(dead(&table), 0);
    drop(others);
    put(&db, &table, ROWS + 1).unwrap();
    machine.advance_clock(Duration::from_secs(11));
    db.wait_idle().unwrap();
    assert!(dead(&table) >= u64::try_from(ROWS).unwrap(), "now there is memory");
    assert_eq!(old.table("t").unwrap().count().unwrap(), u64::try_from(ROWS).unwrap());
    assert_eq!(table.count().unwrap(), 0);
    drop(old);
    db.wait_idle().unwrap();
    assert_eq!(db.check().unwrap().problems, []);
}
