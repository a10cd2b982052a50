//! Scenarios of tables that a transaction creates, alters and drops: all of it or nothing.

use esker::{
    Alteration, DataType, Database, ErrorKind, Field, FieldId, NewIndex, Options, Schema, Value,
};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, count, expect, insert, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("a transaction that rewrites tables, and a crash at every I/O", crash_at_every_io),
    ("the same with rows that are too many for a frame", crash_at_every_io_of_a_large_one),
    ("tables of a transaction that came too late", too_late),
];

fn options(is_large: bool) -> Options {
    let options = Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0);
    if is_large { options.commit_limit(256) } else { options }
}

fn schema() -> Result<Schema, String> {
    let fields = Schema::builder().field("id", DataType::U64).nullable("n", DataType::U64);
    fields.primary_key(["id"]).build().map_err(|e| e.to_string())
}

fn add(name: &str, initial: u64) -> Alteration {
    let field = Field::new(FieldId(0), name.to_owned(), DataType::U64, false);
    Alteration::AddField(Field { initial: Value::Uint(initial), ..field })
}

/// The tables that there are at first.
const ALL: [&str; 4] = ["emptied", "gone", "kept", "old"];

/// Four tables: one is about to be rewritten, one altered, one truncated, one dropped.
fn begun(options: Options, machine: &Simulation) -> Result<Database, String> {
    let db = open(options, machine)?;
    insert(&db, "old", 6)?;
    insert(&db, "kept", 5)?;
    insert(&db, "gone", 3)?;
    insert(&db, "emptied", 4)?;
    db.wait_idle().map_err(said)?;
    Ok(db)
}

/// Another table takes the place of `old`, `kept` gets a field, and `gone` goes.
fn rewrite(db: &Database) -> esker::Result<u64> {
    let transaction = db.begin()?;
    let fields = Schema::builder().field("id", DataType::U64).nullable("n", DataType::U64);
    let new = transaction.create_table("new", fields.primary_key(["id"]).build()?)?;
    for id in 0..9u64 {
        new.insert(&[id.into(), (id * 10).into()])?;
    }
    transaction
        .alter_table("new", &[Alteration::AddIndex(NewIndex::new("by_n", ["n"]).unique())])?;
    transaction.drop_table("old")?;
    transaction.rename_table("new", "old")?;
    transaction.drop_table("gone")?;
    transaction.truncate_table("emptied")?;
    transaction.table("emptied")?.insert(&[40u64.into(), "anew".into()])?;
    transaction.alter_table("kept", &[add("more", 7)])?;
    let kept = transaction.table("kept")?;
    for id in 3..8u64 {
        kept.upsert(&[id.into(), "text".into(), (id + 100).into()])?;
    }
    kept.delete(&[0u64.into()])?;
    transaction.commit()
}

/// Everything is as before the transaction, or (true) as after it.
fn is_rewritten(db: &Database) -> Result<bool, String> {
    let rows = |name: &str| db.snapshot().and_then(|s| s.table(name)?.rows()).map_err(said);
    let (old, kept, emptied) = (rows("old")?, rows("kept")?, rows("emptied")?);
    let report = db.check().map_err(said)?;
    if !report.is_sound() {
        return Err(format!("{report:?}"));
    }
    let number = |row: &[Value], at: usize| match row.get(at) {
        Some(Value::Uint(n)) => Some(*n),
        _ => None,
    };
    let is_new = number(old.first().map_or(&[][..], |(_, row)| row), 1).is_some();
    let tables: &[&str] = if is_new { &["emptied", "kept", "old"] } else { &ALL };
    if db.tables() != tables {
        return Err(format!("tables {:?}, expected {tables:?}", db.tables()));
    }
    let is_right = match is_new {
        false => {
            emptied.len() == 4
                && old.len() == 6
                && kept.len() == 5
                && kept.iter().all(|(_, row)| row.len() == 2)
        }
        true => {
            let more = |id: u64| if id < 3 { 7 } else { id + 100 };
            let ids = kept.iter().map(|(_, row)| (number(row, 0), number(row, 2)));
            ids.eq((1..8).map(|id| (Some(id), Some(more(id)))))
                && old.iter().all(|(_, row)| number(row, 1) == number(row, 0).map(|id| id * 10))
                && old.len() == 9
                && emptied.len() == 1
        }
    };
    if !is_right {
        return Err(format!("{old:?}, {kept:?}"));
    }
    if is_new {
        let twice = db.table("old").map_err(said)?.insert(&[90u64.into(), 80u64.into()]);
        if !twice.is_err_and(|e| e.kind() == ErrorKind::AlreadyExists) {
            return Err("a value of a unique index was taken twice".to_owned());
        }
    }
    Ok(is_new)
}

fn crash_at_every_io() -> Outcome {
    crash_at_each(false)
}

fn crash_at_every_io_of_a_large_one() -> Outcome {
    crash_at_each(true)
}

fn crash_at_each(is_large: bool) -> Outcome {
    let (mut ios, mut old, mut new) = (0, 0u64, 0u64);
    loop {
        let machine = machine();
        let db = begun(options(is_large), &machine)?;
        machine.crash_after_io(Some(machine.io_count() + ios));
        let committed = rewrite(&db).and_then(|_| db.checkpoint());
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let again = revived(&machine.crash_image(choice));
            let db = open(options(is_large), &again)?;
            let is_new = is_rewritten(&db).map_err(|e| format!("I/O {ios}, {choice:?}: {e}"))?;
            if committed.is_ok() && !is_new {
                return Err(format!("I/O {ios}: an acknowledged transaction is lost"));
            }
            (old, new) = (old + u64::from(!is_new), new + u64::from(is_new));
            db.checkpoint().map_err(said)?;
            drop(db);
            let db = open(options(is_large), &again)?;
            expect("as rewritten", is_rewritten(&db)?.into(), is_new.into())?;
        }
        if !machine.has_crashed() {
            committed.map_err(said)?;
            let seen = old > 0 && new > 2;
            return seen.then_some(()).ok_or(format!("{old} crashes before, {new} after"));
        }
        ios += 1;
    }
}

/// Nothing of a transaction that meets a conflict is left, whatever is written afterwards.
fn too_late() -> Outcome {
    let machine = machine();
    let db = begun(options(false), &machine)?;
    let transaction = db.begin().map_err(said)?;
    let made = transaction.create_table("made", schema()?).map_err(said)?;
    made.insert(&[1u64.into(), 1u64.into()]).map_err(said)?;
    transaction.drop_table("old").map_err(said)?;
    let kept = transaction.table("kept").map_err(said)?;
    kept.delete(&[1u64.into()]).map_err(said)?;
    db.table("kept").and_then(|kept| kept.delete(&[1u64.into()])).map_err(said)?;
    match transaction.commit() {
        Err(e) if e.kind() == ErrorKind::Conflict => {}
        other => return Err(format!("a commit that came too late: {other:?}")),
    }
    for _ in 0..2 {
        db.checkpoint().map_err(said)?;
        insert(&db, "others", 3)?;
        db.drop_table("others").map_err(said)?;
    }
    let db = open(options(false), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect("rows of a table that stays", count(&db, "old")?, 6)?;
    match db.tables() == ALL {
        true => Ok(()),
        false => Err(format!("tables {:?}", db.tables())),
    }
}
