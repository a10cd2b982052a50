use super::*;
use crate::ErrorKind;
use crate::commit::staged::Staged;
use crate::{DataType, Database, Options, Schema, Table, ValueRef};
use esker_vfs::sim::{Options as SimOptions, Simulation};

fn table() -> (Database, Table) {
    let db = Options::new().commit_limit(1 << 20).memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text);
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    (db, table)
}

fn row(id: i64, text: &str) -> Vec<Value> {
    vec![Value::Int(id), text.into()]
}

/// Stages puts and deletes, lets `meanwhile` happen, and commits by way of segments.
fn spill(
    table: &Table,
    puts: &[Vec<Value>],
    deletes: &[i64],
    meanwhile: impl FnOnce(&Table),
) -> Result<()> {
    let (engine, current) = (&table.engine, table.current());
    let mut staged = Staged::default();
    {
        let mut catalogue = engine.lock_for_change()?;
        let writer = &mut catalogue.entry(current.core.id())?.writer;
        for row in puts {
            staged.put(row.clone(), writer.prepare_put(row, false)?);
        }
        for id in deletes {
            let key = [ValueRef::Int(*id)];
            staged.delete(writer.existing(&key, current.hash(&key))?.expect("a row"));
        }
        staged.remember_deleted(&current.core)?;
    }
    let guard = engine.registry.register(|| engine.watermarks.published())?;
    meanwhile(table);
    let large = vec![TableWrites { staged, ..TableWrites::new(&current) }];
    engine.spill(large, Vec::new(), CommitOptions::default(), &guard).map(drop)
}

fn rows(table: &Table) -> Vec<(i64, String)> {
    let rows = table.snapshot().unwrap().rows().unwrap();
    let row = |(_, values): (u64, Vec<Value>)| match values.as_slice() {
        [Value::Int(id), text] => (*id, text.to_string()),
        other => panic!("{other:?}"),
    };
    let mut rows: Vec<_> = rows.into_iter().map(row).collect();
    rows.sort();
    rows
}

/// What a spill of a put of key 1 comes to when this happened meanwhile; nothing else changes.
fn conflicts(before: &[Vec<Value>], deletes: &[i64], meanwhile: impl Fn(&Table)) {
    let (_db, table) = table();
    table.insert_many(before).unwrap();
    let error = spill(&table, &[row(1, "large")], deletes, &meanwhile).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let (_other, expected) = self::table();
    expected.insert_many(before).unwrap();
    meanwhile(&expected);
    assert_eq!(rows(&table), rows(&expected));
}

/// Where the rows were that a large commit deletes was known for as long as it was registered.
#[test]
fn rows_to_be_deleted_are_found_wherever_merges_have_taken_them() {
    let machine = Simulation::new(1, SimOptions::default());
    let options = Options::new().environment(machine.environment()).background(false);
    let db = options.commit_limit(1 << 20).group_limit(8, 1 << 20).open("db").unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text);
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    table.insert_many(&(0..20).map(|id| row(id, "old")).collect::<Vec<_>>()).unwrap();
    let row_groups = || table.core().view().row_groups.iter().map(RowGroup::id).min();
    let before = row_groups();
    spill(&table, &[row(100, "large")], &[3, 7], |table| {
        for n in 0..40 {
            table.upsert(&row(10 + n % 10, "new")).unwrap();
        }
        db.wait_idle().unwrap();
        assert!(row_groups() > before, "what was there is rewritten");
        assert_eq!(db.info().memory.forwarding, 0);
    })
    .unwrap();
    let ids: Vec<i64> = rows(&table).into_iter().map(|(id, _)| id).collect();
    let wanted = (0..20).filter(|id| ![3, 7].contains(id)).chain([100]);
    assert_eq!(ids, wanted.collect::<Vec<_>>());
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_row_that_changed_while_segments_were_written_is_a_conflict() {
    let upsert = |table: &Table| assert!(table.upsert(&row(1, "quicker")).is_ok());
    let delete = |table: &Table| assert!(table.delete(&[Value::Int(1)]).unwrap());
    let again = |table: &Table| {
        delete(table);
        upsert(table);
    };
    conflicts(&[], &[], upsert);
    conflicts(&[row(1, "old")], &[], upsert);
    conflicts(&[row(1, "old")], &[], delete);
    conflicts(&[row(1, "old")], &[], again);
}

#[test]
fn a_row_to_delete_that_changed_while_segments_were_written_is_a_conflict() {
    let before = [row(2, "old")];
    conflicts(&before, &[2], |table| assert!(table.delete(&[Value::Int(2)]).unwrap()));
    conflicts(&before, &[2], |table| assert!(table.upsert(&row(2, "quicker")).is_ok()));
}

#[test]
fn what_others_do_to_other_rows_is_none() {
    let (_db, table) = table();
    table.insert_many(&[row(1, "a"), row(2, "b"), row(3, "c")]).unwrap();
    let meanwhile = |table: &Table| assert!(table.upsert(&row(3, "d")).is_ok());
    spill(&table, &[row(1, "large"), row(4, "new")], &[2], meanwhile).unwrap();
    let expected = [(1, "large"), (3, "d"), (4, "new")];
    assert_eq!(rows(&table), expected.map(|(id, text)| (id, text.to_owned())));
}

/// A new check is tested without a lock, and tested again when rows came meanwhile.
#[test]
fn a_spilled_commit_counts_as_a_change_of_its_table() {
    let (_db, table) = table();
    let changed_at = |table: &Table| {
        let mut catalogue = table.engine.lock_for_change().unwrap();
        catalogue.entry(table.core().id()).unwrap().changed_at
    };
    table.insert(&row(1, "a")).unwrap();
    let before = changed_at(&table);
    spill(&table, &[row(2, "b")], &[], |_| ()).unwrap();
    assert_eq!(changed_at(&table), table.engine.watermarks.published());
    assert!(changed_at(&table) > before);
}

/// A million rows of a short value each are more than a frame, though their values are not.
#[test]
fn changes_take_no_more_of_the_log_than_is_counted() {
    let types = [
        (DataType::Text, Value::from("a")),
        (DataType::I64, Value::Int(1)),
        (DataType::Uuid, Value::Uuid([7; 16])),
        (DataType::Bool, Value::Bool(true)),
    ];
    for (data_type, value) in types {
        let db = Options::new().memory().unwrap();
        let schema = Schema::builder().field("id", data_type).primary_key(["id"]);
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        let (engine, current) = (&table.engine, table.current());
        let mut catalogue = engine.lock_for_change().unwrap();
        let writer = &mut catalogue.entry(current.core.id()).unwrap().writer;
        let row = vec![value];
        let mut staged = Staged::default();
        let mut prepared = writer.prepare_put(&row, false).unwrap();
        prepared.row_id = u64::MAX;
        staged.put(row, prepared);
        let mut frame = Default::default();
        staged.encode(&mut frame, esker_format::TableId(u32::MAX), &current.schema).unwrap();
        let (taken, counted) = (frame.len(), staged.byte_count());
        assert!(taken <= counted, "{data_type:?}: {taken} bytes, counted {counted}");
    }
}
