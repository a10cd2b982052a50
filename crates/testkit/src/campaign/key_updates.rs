//! Scenarios of rows that get other keys: each is there once, under its old key or its new one.

use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_query::model::{Change, Expr, Operator, Update};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("keys that change, and a crash at every I/O", crash_at_every_io),
    ("a key changes while others write it", beside_others),
];

const ROWS: i64 = 6;

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

fn begun(machine: &Simulation) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = schema.primary_key(["id"]).build().map_err(|e| e.to_string())?;
    let table = db.create_table("t", schema).map_err(said)?;
    let rows: Vec<_> = (0..ROWS).map(|id| vec![id.into(), id.into()]).collect();
    table.insert_many(&rows).map_err(said)?;
    Ok(db)
}

/// `UPDATE t SET id = id + …`
fn shift(db: &Database, by: i64) -> esker::Result<u64> {
    let sum = Expr::field("id").binary(Operator::Add, Expr::literal(by));
    let set = vec![("id".to_owned(), sum)];
    db.change(&Change::Update(Update { table: "t".into(), set, ..Update::default() }))
}

/// How far all rows have been moved; an error unless each is there once.
fn moved(db: &Database) -> Result<i64, String> {
    let mut rows = Vec::new();
    for row in db.table("t").and_then(|t| t.iter()).map_err(said)? {
        let row = row.map_err(said)?;
        match row.values() {
            [Value::Int(id), Value::Int(n)] => rows.push((*n, id - n)),
            other => return Err(format!("{other:?}")),
        }
    }
    rows.sort_unstable();
    // default: an error below
    let by = rows.first().map(|(_, by)| *by).unwrap_or_default();
    let wanted: Vec<_> = (0..ROWS).map(|n| (n, by)).collect();
    match rows == wanted {
        true => Ok(by),
        false => Err(format!("{rows:?}, expected {wanted:?}")),
    }
}

fn crash_at_every_io() -> Outcome {
    let (mut befores, mut afters) = (0, 0);
    for io in 0..200 {
        let machine = machine();
        let db = begun(&machine)?;
        machine.crash_after_io(Some(io));
        let done = shift(&db, 1).and_then(|_| shift(&db, 100));
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            let by = moved(&db).map_err(|e| format!("I/O {io}: {e}"))?;
            if done.is_ok() && by != 101 {
                return Err(format!("I/O {io}: what was acknowledged is lost"));
            }
            (befores, afters) = (befores + u64::from(by < 101), afters + u64::from(by == 101));
            shift(&db, -1).map_err(said)?;
            moved(&db)?;
        }
        if done.is_ok() {
            break;
        }
    }
    match befores > 0 && afters > 0 {
        true => Ok(()),
        false => Err(format!("{befores} images before and {afters} after it")),
    }
}

/// A transaction that moves a row conflicts with one that changes it, or takes its new key.
fn beside_others() -> Outcome {
    let db = begun(&machine())?;
    let table = db.table("t").map_err(said)?;
    let (to, from) = ([("id", Value::Int(50))], [Value::Int(1)]);
    let moving = db.begin().map_err(said)?;
    moving.table("t").and_then(|t| t.update(&from, &to)).map_err(said)?;
    table.update(&from, &[("n", Value::Int(1))]).map_err(said)?;
    conflicts(moving.commit())?;
    let moving = db.begin().map_err(said)?;
    moving.table("t").and_then(|t| t.update(&from, &to)).map_err(said)?;
    table.insert(&[Value::Int(50), Value::Int(50)]).map_err(said)?;
    conflicts(moving.commit())?;
    table.delete(&[Value::Int(50)]).map_err(said)?;
    moved(&db).map(drop)?;
    table.update(&from, &to).map_err(said)?;
    table.update(&[Value::Int(50)], &[("id", Value::Int(1))]).map_err(said)?;
    moved(&db).map(drop)
}

fn conflicts(commit: esker::Result<u64>) -> Outcome {
    match commit {
        Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
        Err(e) => Err(said(e)),
        Ok(_) => Err("a row got another key though it had been changed".to_owned()),
    }
}
