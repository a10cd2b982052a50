//! Named sequences: no value is given out twice.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test stops where it fails, and has threads of its own"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    Alteration, BackupOptions, ChangeOptions, DataType, Database, DefaultValue, Durability,
    ErrorKind, Identity, Options, Schema, Value,
};
use esker_query::model::{Change, Expr, Insert};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const ASYNC: Durability = Durability::Async { at_most: Duration::from_secs(1) };

fn open(machine: &Simulation) -> Database {
    open_with(machine, Durability::Sync)
}

fn open_with(machine: &Simulation, durability: Durability) -> Database {
    let options = Options::new().environment(machine.environment()).durability(durability);
    options.open("db").unwrap()
}

fn orders() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .default_next("orders")
        .field("item", DataType::Text)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn ids(db: &Database) -> Vec<Value> {
    let rows = db.table("orders").unwrap().snapshot().unwrap().rows().unwrap();
    rows.into_iter().map(|(_, row)| row[0].clone()).collect()
}

#[test]
fn rows_take_the_next_value() {
    let db = Options::new().memory().unwrap();
    let e = db.create_table("orders", orders()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert_eq!(e.to_string(), "field \"id\": default: no sequence \"orders\"; sequences: none");
    db.create_sequence("orders", 10, 5).unwrap();
    let again = db.create_sequence("orders", 1, 1).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert_eq!(db.create_sequence("o", 1, 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    let table = db.create_table("orders", orders()).unwrap();
    for _ in 0..100 {
        table.insert_fields(&[("item", "tea".into())]).unwrap();
    }
    assert_eq!(ids(&db), (0..100).map(|i| Value::Int(10 + 5 * i)).collect::<Vec<_>>());
    assert_eq!(db.next_value("orders").unwrap(), 510);
    let info = db.sequences().remove(0);
    assert_eq!((info.name.as_str(), info.start, info.increment), ("orders", 10, 5));
    assert_eq!(info.next, Some(515));
    let e = db.drop_sequence("orders").unwrap_err();
    let wanted = "sequence \"orders\" is the default of field \"id\" of table \"orders\"";
    assert!(e.to_string().starts_with(wanted), "{e}");
    let forget = Alteration::SetDefault { field: "id".into(), default: None };
    db.alter_table("orders", &[forget]).unwrap();
    db.drop_sequence("orders").unwrap();
    assert_eq!(db.drop_sequence("orders").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.next_value("orders").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn values_are_returned_and_do_not_come_back_after_a_refusal() {
    let db = Options::new().memory().unwrap();
    db.create_sequence("orders", 1, 1).unwrap();
    let table = db.create_table("orders", orders()).unwrap();
    let values = vec![vec![Expr::Default, Expr::literal("tea")]; 3];
    let insert = Insert {
        returning: Some(vec![esker_query::model::SelectItem {
            expr: Expr::field("id"),
            alias: None,
        }]),
        ..Insert::values("orders", values)
    };
    let insert = Change::Insert(insert);
    let returned = |options: &ChangeOptions| {
        db.change_with(&insert, options).unwrap().returning.unwrap().to_rows().concat()
    };
    assert_eq!(returned(&ChangeOptions::default()), [1, 2, 3].map(Value::Int));
    table.insert(&[5.into(), "in the way".into()]).unwrap();
    assert_eq!(db.change(&insert).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let dry_run = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    assert_eq!(returned(&dry_run), [7, 8, 9].map(Value::Int));
    assert_eq!(returned(&ChangeOptions::default()), [10, 11, 12].map(Value::Int));
}

#[test]
fn ends_and_does_not_begin_again() {
    let db = Options::new().memory().unwrap();
    db.create_sequence("few", i64::MAX - 1, 1).unwrap();
    assert_eq!(db.next_value("few").unwrap(), i64::MAX - 1);
    assert_eq!(db.next_value("few").unwrap(), i64::MAX);
    for _ in 0..2 {
        let e = db.next_value("few").unwrap_err();
        assert_eq!(e.to_string(), "sequence \"few\" has no more values");
    }
    assert_eq!(db.sequences()[0].next, None);
    // Past what the field holds.
    db.create_sequence("small", 255, 1).unwrap();
    let schema = Schema::builder().field("n", DataType::U8).default_next("small").build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    table.insert_fields(&[]).unwrap();
    let e = table.insert_fields(&[]).unwrap_err();
    assert_eq!(e.to_string(), "field \"n\": expected u8, found integer 256");
}

#[test]
fn only_integers_take_values_of_sequences() {
    let text = Schema::builder().field("id", DataType::Text).default_next("orders");
    let e = text.build().unwrap_err();
    assert_eq!(e.to_string(), "field \"id\": the default gives an integer, the field is text");
    let db = Options::new().memory().unwrap();
    db.create_sequence("numbers", 1, 1).unwrap();
    let schema = Schema::builder().field("id", DataType::I64).build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    table.insert(&[1.into()]).unwrap();
    let default = Some(DefaultValue::NextValue("nubmers".into()));
    let set = Alteration::SetDefault { field: "id".into(), default };
    let e = db.alter_table("t", &[set]).unwrap_err();
    let wanted = "no sequence \"nubmers\"; did you mean \"numbers\"?";
    assert!(e.to_string().ends_with(wanted), "{e}");
}

#[test]
fn go_on_after_a_close_a_checkpoint_and_in_a_backup() {
    let machine = Simulation::new(1, SimOptions::default());
    let mut next = 1;
    for round in 0..4 {
        let db = open(&machine);
        if round == 0 {
            db.create_sequence("orders", 1, 1).unwrap();
            db.create_sequence("gone", 1, 1).unwrap();
        }
        for _ in 0..50 {
            assert_eq!(db.next_value("orders").unwrap(), next, "round {round}");
            next += 1;
        }
        match round {
            1 => db.checkpoint().unwrap(),
            2 => db.drop_sequence("gone").unwrap(),
            _ => {}
        }
        db.close().unwrap();
    }
    let db = open(&machine);
    db.backup("copy", &BackupOptions::default(), &mut |_, _| {}).unwrap();
    let copy = Options::new().environment(machine.environment()).open("copy").unwrap();
    assert_eq!(copy.sequences(), db.sequences());
    assert_eq!(copy.sequences().len(), 1);
    assert!(copy.next_value("orders").unwrap() >= next);
    copy.close().unwrap();
    db.close().unwrap();
    let options = Options::new().environment(machine.environment()).read_only(true);
    let db = options.open("db").unwrap();
    assert_eq!(db.next_value("orders").unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// What was answered, or is in a row that survived, is not given out again; wherever the machine
/// dies.
#[test]
fn no_crash_brings_a_value_back() {
    assert!(crash_beside_values(Durability::Sync) > 100);
}

/// Rows may be lost then; numbers that were answered stay gone.
#[test]
fn no_crash_brings_a_value_back_where_commits_do_not_wait() {
    assert!(crash_beside_values(ASYNC) > 20);
}

/// Returns how many crashes there were.
fn crash_beside_values(durability: Durability) -> u32 {
    let options = SimOptions { record: true, ..SimOptions::default() };
    let machine = Simulation::new(9, options);
    let db = open_with(&machine, durability);
    db.create_sequence("orders", 1, 1).unwrap();
    let table = db.create_table("orders", orders()).unwrap();
    db.sync().unwrap();
    let created_at = machine.io_count();
    let mut told: Vec<(u64, i64)> = Vec::new();
    for i in 0..60 {
        match i % 3 {
            0 => told.push((machine.io_count(), db.next_value("orders").unwrap())),
            _ => drop(table.insert_fields(&[("item", "tea".into())]).unwrap()),
        }
        if let Some(last) = told.last_mut().filter(|_| i % 3 == 0) {
            last.0 = machine.io_count();
        }
        if i == 40 {
            db.checkpoint().unwrap();
        }
    }
    drop(table);
    db.close().unwrap();
    let mut cursor = machine.journal().unwrap().cursor();
    let mut reopened = 0;
    loop {
        if cursor.position() > created_at {
            for choice in [CrashChoice::Subset(0), CrashChoice::Random(1), CrashChoice::Random(2)] {
                let image = cursor.crash_image(choice);
                let after = Simulation::from_image(&image, 4, SimOptions::default());
                let db = open(&after);
                let before = told.iter().filter(|(at, _)| *at <= cursor.position());
                let mut seen: BTreeSet<Value> = before.map(|(_, n)| Value::Int(*n)).collect();
                for id in ids(&db) {
                    assert!(seen.insert(id.clone()), "{id}: {}", cursor.describe());
                }
                for _ in 0..3 {
                    let next = Value::Int(db.next_value("orders").unwrap());
                    assert!(seen.insert(next.clone()), "{next}: {}", cursor.describe());
                }
                reopened += 1;
            }
        }
        if !cursor.advance() {
            break;
        }
    }
    reopened
}

#[test]
fn threads_get_different_values() {
    let db = Arc::new(Options::new().memory().unwrap());
    db.create_sequence("orders", 1, 1).unwrap();
    let table = db.create_table("orders", orders()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    table.insert_fields(&[("item", "tea".into())]).unwrap();
                }
            });
        }
    });
    assert_eq!(db.next_value("orders").unwrap(), 2_001);
    assert_eq!(table.count().unwrap(), 2_000);
}

fn own(always: bool) -> Schema {
    let identity = Identity { is_always: always, start: 5, increment: 2 };
    let schema = Schema::builder().field("id", DataType::I64).identity(identity);
    schema.nullable("item", DataType::Text).primary_key(["id"]).build().unwrap()
}

fn names(db: &Database) -> Vec<String> {
    db.sequences().into_iter().map(|sequence| sequence.name).collect()
}

/// After a crash at any I/O the sequence of an identity is there if its table is, and none of its
/// values is given out again.
#[test]
fn the_sequence_of_an_identity_comes_and_goes_with_its_table() {
    let machine = Simulation::new(1, SimOptions { record: true, ..SimOptions::default() });
    let db = open(&machine);
    let table = db.create_table("t", own(false)).unwrap();
    assert_eq!(names(&db), ["t_id_seq"]);
    table.insert_fields(&[("item", "tea".into())]).unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_table("u", own(true)).unwrap();
    let values = ["milk", "jam"].map(|item| vec![Expr::Default, Expr::literal(item)]);
    transaction.change(&Change::Insert(Insert::values("u", values.to_vec()))).unwrap();
    // Nobody else is told of it, and no checkpoint has it.
    assert_eq!(names(&db), ["t_id_seq"]);
    db.checkpoint().unwrap();
    transaction.commit().unwrap();
    assert_eq!(names(&db), ["t_id_seq", "u_id_seq"]);
    db.table("u").unwrap().insert_fields(&[("item", "rice".into())]).unwrap();
    db.checkpoint().unwrap();
    db.drop_table("t").unwrap();
    assert_eq!(names(&db), ["u_id_seq"]);
    let transaction = db.begin().unwrap();
    transaction.create_table("v", own(false)).unwrap();
    transaction.rollback();
    assert_eq!(names(&db), ["u_id_seq"]);
    let mut cursor = machine.journal().unwrap().cursor();
    while cursor.advance() {
        let image = cursor.crash_image(CrashChoice::KeepNone);
        let db = open(&Simulation::from_image(&image, 4, SimOptions::default()));
        let own: Vec<String> = db.tables().into_iter().map(|t| format!("{t}_id_seq")).collect();
        assert_eq!(names(&db), own);
        for name in db.tables() {
            let table = db.table(&name).unwrap();
            table.insert_fields(&[("item", "new".into())]).unwrap();
            let ids: Vec<Value> =
                table.iter().unwrap().map(|row| row.unwrap().values()[0].clone()).collect();
            assert!(ids.is_sorted(), "{ids:?}");
        }
    }
}

#[test]
fn a_copy_of_a_database_has_the_sequences_of_its_identities() {
    if crate::is_on_disk() {
        return; // Only a database in memory is saved.
    }
    let db = Options::new().memory().unwrap();
    let table = db.create_table("t", own(true)).unwrap();
    table.insert_fields(&[("item", "tea".into())]).unwrap();
    let dir = Directory::new("identity-save");
    db.save(dir.0.join("copy")).unwrap();
    let copy = Options::new().open(dir.0.join("copy")).unwrap();
    copy.table("t").unwrap().insert_fields(&[("item", "jam".into())]).unwrap();
    let rows = copy.table("t").unwrap().snapshot().unwrap().rows().unwrap();
    let ids: Vec<Value> = rows.into_iter().map(|(_, row)| row[0].clone()).collect();
    assert_eq!(ids, [5, 7].map(Value::Int));
}
