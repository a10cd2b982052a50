//! Scenarios of tables that change: the order of events in each is what matters.

use std::time::Duration;

use esker::{
    Alteration, BackupOptions, DataType, Database, Durability, ErrorKind, Field, FieldId, Options,
    Value,
};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::{CallKind, CrashChoice, FaultKind, Repeat, Script};

use super::directed::{
    Outcome, Scenario, count, expect, insert, machine, open, revived, row, said,
};

pub(super) const SCENARIOS: [Scenario; 10] = [
    ("a change of fields between seal and checkpoint", alter_between_seal_and_checkpoint),
    ("a change of fields that a crash takes back", alter_lost),
    ("a table emptied before a crash", truncate_and_crash),
    ("a table emptied before it is durable", truncate_without_sync),
    ("rows that a check refuses", checks_refuse),
    ("a table renamed, and another of its old name", rename_and_create),
    ("a field dropped under a snapshot, then a merge", drop_field_under_snapshot),
    ("a load that began before a change of fields", load_before_alter),
    ("a checkpoint between two changes of fields", checkpoint_between),
    ("a backup in the middle of merges", backup_in_merge),
];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

/// Adds a field that is so much in the rows there are.
fn add(name: &str, initial: u64) -> Alteration {
    let field = Field::new(FieldId(0), name.to_owned(), DataType::U64, false);
    Alteration::AddField(Field { initial: Value::Uint(initial), ..field })
}

fn drop_text() -> Alteration {
    Alteration::DropField("text".to_owned())
}

/// The rows are `0..rows`, with these other values.
fn expect_rows(db: &Database, name: &str, rows: u64, others: &[Value]) -> Outcome {
    let found = db.snapshot().and_then(|s| s.table(name)?.rows()).map_err(said)?;
    expect("rows", found.len() as u64, rows)?;
    let is_right = |(id, (_, row)): (u64, &(u64, Vec<Value>))| {
        row.split_first() == Some((&Value::Uint(id), others))
    };
    let report = db.check().map_err(said)?;
    match (0..).zip(&found).all(is_right) && report.is_sound() {
        true => Ok(()),
        false => Err(format!("{found:?}, {report:?}")),
    }
}

fn alter_between_seal_and_checkpoint() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    insert(&db, "rows", 6)?;
    db.wait_idle().map_err(said)?;
    db.alter_table("rows", &[add("n", 5), drop_text()]).map_err(said)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(options(), &revived(&machine.crash_image(choice)))?;
        expect_rows(&db, "rows", 6, &[Value::Uint(5)])?;
    }
    db.checkpoint().map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect_rows(&db, "rows", 6, &[Value::Uint(5)])
}

fn alter_lost() -> Outcome {
    let machine = machine();
    let at_most = Duration::from_secs(60);
    let db = open(options().durability(Durability::Async { at_most }), &machine)?;
    insert(&db, "rows", 1)?;
    db.sync().map_err(said)?;
    db.alter_table("rows", &[add("n", 5)]).map_err(said)?;
    db.rename_table("rows", "lines").map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    let text = row(0).pop().unwrap_or_default();
    match db.table("lines") {
        Ok(_) => expect_rows(&db, "lines", 1, &[text, Value::Uint(5)]),
        Err(_) => expect_rows(&db, "rows", 1, &[text]),
    }
}

fn truncate_and_crash() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    insert(&db, "rows", 6)?;
    db.wait_idle().map_err(said)?;
    let before = db.snapshot().map_err(said)?;
    db.truncate_table("rows").map_err(said)?;
    insert(&db, "rows", 2)?;
    let then = before.table("rows").and_then(|table| table.count()).map_err(said)?;
    expect("rows of an older snapshot", then, 6)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(options(), &revived(&machine.crash_image(choice)))?;
        expect("rows after a crash", count(&db, "rows")?, 2)?;
    }
    Ok(())
}

/// Until it is durable that the rows are gone, their files have to stay.
fn truncate_without_sync() -> Outcome {
    let machine = machine();
    let at_most = Duration::from_secs(60);
    let db = open(options().durability(Durability::Async { at_most }), &machine)?;
    for name in ["rows", "others"] {
        insert(&db, name, 6)?;
    }
    db.sync().map_err(said)?;
    db.wait_idle().map_err(said)?;
    let no_sync = FaultKind::SyncErrorXfs;
    machine.add_script(Script::fault(CallKind::Sync, 0, no_sync, Repeat::ForEver));
    // Neither may be known to be durable: the answer does not matter.
    let _ = db.truncate_table("rows");
    let _ = db.drop_table("others");
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepAll)))?;
    for name in ["rows", "others"] {
        match count(&db, name) {
            Ok(0) | Err(_) => {}
            Ok(rows) => expect("rows after a crash", rows, 6)?,
        }
    }
    expect("problems", db.check().map_err(said)?.problems.len() as u64, 0)
}

/// A row that a check refuses, by every way that rows come in.
fn checks_refuse() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    insert(&db, "rows", 3)?;
    let condition = Expr::field("id").binary(Operator::Lt, Expr::literal(100i64));
    let check = esker::check("small", &condition).map_err(said)?;
    db.alter_table("rows", &[Alteration::AddCheck(check)]).map_err(said)?;
    let table = db.table("rows").map_err(said)?;
    let large = || vec![row(7), row(100)];
    let append = || {
        let mut appender = table.appender();
        large().iter().try_for_each(|row| appender.append(row))?;
        appender.finish().map(drop)
    };
    let load = || {
        let mut load = table.load()?;
        large().iter().try_for_each(|row| load.push_row(row))?;
        load.finish().map(drop)
    };
    let outcomes = [
        ("insert", table.insert(&row(100)).map(drop)),
        ("upsert", table.upsert(&row(100)).map(drop)),
        ("insert_if_absent", table.insert_if_absent(&row(100)).map(drop)),
        ("insert_many", table.insert_many(&large())),
        ("upsert_many", table.upsert_many(&large())),
        ("append", append()),
        ("load", load()),
    ];
    for (way, outcome) in outcomes {
        match outcome {
            Err(e) if e.kind() == ErrorKind::ConstraintViolated => {}
            other => return Err(format!("{way}: {other:?}")),
        }
    }
    expect("rows", count(&db, "rows")?, 3)
}

fn rename_and_create() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    insert(&db, "rows", 6)?;
    let before = db.snapshot().map_err(said)?;
    db.rename_table("rows", "lines").map_err(said)?;
    insert(&db, "rows", 3)?;
    for _ in ["from the log", "from a checkpoint"] {
        let then = before.table("rows").and_then(|table| table.count()).map_err(said)?;
        expect("rows of an older snapshot", then, 6)?;
        if before.table("lines").is_ok() {
            return Err("an older snapshot knows the new name".to_owned());
        }
        let after = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
        expect("rows of the renamed", count(&after, "lines")?, 6)?;
        expect("rows of the other", count(&after, "rows")?, 3)?;
        db.checkpoint().map_err(said)?;
    }
    Ok(())
}

fn drop_field_under_snapshot() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    insert(&db, "rows", 6)?;
    db.wait_idle().map_err(said)?;
    let before = db.snapshot().map_err(said)?;
    db.alter_table("rows", &[drop_text(), add("text", 9)]).map_err(said)?;
    let table = db.table("rows").map_err(said)?;
    for id in 0..3 {
        table.delete(&[Value::Uint(id)]).map_err(said)?;
    }
    db.compact(false, &mut |_, _| {}).map_err(said)?;
    let then = before.table("rows").and_then(|table| table.rows()).map_err(said)?;
    let expected: Vec<Vec<Value>> = (0..6).map(row).collect();
    if !then.iter().map(|(_, row)| row).eq(&expected) {
        return Err(format!("an older snapshot reads {then:?}"));
    }
    expect("rows now", table.count().map_err(said)?, 3)
}

fn load_before_alter() -> Outcome {
    let machine = machine();
    let db = open(options().segment_limit(3), &machine)?;
    insert(&db, "rows", 2)?;
    let table = db.table("rows").map_err(said)?;
    let mut load = table.load().map_err(said)?;
    for id in 10..17 {
        load.push_row(&row(id)).map_err(said)?;
    }
    db.alter_table("rows", &[add("n", 5)]).map_err(said)?;
    match load.finish() {
        Err(e) if e.kind() == ErrorKind::Conflict => {}
        other => return Err(format!("the load ended with {other:?}")),
    }
    let text = Value::Text(String::new());
    table.insert(&[Value::Uint(10), text, Value::Uint(1)]).map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepAll)))?;
    expect("rows after a crash", count(&db, "rows")?, 3)
}

fn checkpoint_between() -> Outcome {
    let machine = machine();
    let options = || options().small_group_limit(1 << 20);
    let db = open(options(), &machine)?;
    insert(&db, "rows", 3)?;
    db.alter_table("rows", &[add("n", 5), drop_text()]).map_err(said)?;
    db.checkpoint().map_err(said)?;
    db.alter_table("rows", &[add("text", 7)]).map_err(said)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(options(), &revived(&machine.crash_image(choice)))?;
        expect_rows(&db, "rows", 3, &[Value::Uint(5), Value::Uint(7)])?;
        db.wait_idle().map_err(said)?;
        expect_rows(&db, "rows", 3, &[Value::Uint(5), Value::Uint(7)])?;
    }
    Ok(())
}

/// Background work merges at every pause of the backup.
fn backup_in_merge() -> Outcome {
    let machine = super::directed::busy_machine();
    let db = open(options().background(true), &machine)?;
    insert(&db, "rows", 1)?;
    let table = db.table("rows").map_err(said)?;
    for round in 1..6 {
        for id in 0..12 {
            table.insert(&row(round * 100 + id)).map_err(said)?;
        }
        table.delete(&[Value::Uint(round * 100)]).map_err(said)?;
        let (dir, copy) = (format!("copy-{round}"), round % 2 == 0);
        let options = BackupOptions { copy, ..BackupOptions::default() };
        db.backup(&dir, &options, &mut |_, _| {}).map_err(said)?;
        let reader = Options::new().environment(machine.environment()).read_only(true);
        let backup = reader.open(&dir).map_err(said)?;
        expect("rows of the backup", count(&backup, "rows")?, 1 + round * 11)?;
        expect("problems", backup.check().map_err(said)?.problems.len() as u64, 0)?;
    }
    Ok(())
}
