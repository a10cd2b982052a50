//! Scenarios of references: rows refer to rows that are there, whoever comes first, and what a
//! reference does is in the same commit.

use esker::{
    Alteration, DataType, Database, ErrorKind, NewReference, Options, ReferenceAction, Schema,
    Table, Value,
};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, count, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 4] = [
    ("a row comes that refers to one that goes", one_comes_as_one_goes),
    ("rows of a load that refer to one that goes", load_as_one_goes),
    ("a cascade, and a crash at every I/O", crash_at_every_io),
    ("references, a checkpoint, and a crash", references_in_a_checkpoint),
];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

fn row(id: u64, user: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Uint(user)]
}

/// Users 0 to 3, each with two orders.
fn begun(machine: &Simulation, on_delete: ReferenceAction) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let users = Schema::builder().field("id", DataType::U64).primary_key(["id"]).build();
    let users = db.create_table("users", users.map_err(|e| e.to_string())?);
    let users = users.map_err(said)?;
    (0..4).try_for_each(|id| users.insert(&[Value::Uint(id)]).map(drop)).map_err(said)?;
    let reference = NewReference::new(["user"], "users").named("of").on_delete(on_delete);
    let orders = Schema::builder().field("id", DataType::U64).field("user", DataType::U64);
    let orders = orders.primary_key(["id"]).reference(reference).build();
    let orders = db.create_table("orders", orders.map_err(|e| e.to_string())?).map_err(said)?;
    let rows: Vec<_> = (0..8).map(|id| row(id, id % 4)).collect();
    orders.insert_many(&rows).map_err(said)?;
    Ok(db)
}

fn table(db: &Database, name: &str) -> Result<Table, String> {
    db.table(name).map_err(said)
}

fn is_sound(db: &Database) -> Outcome {
    match db.check().map_err(said)?.problems.first() {
        Some(problem) => Err(format!("{}: {}", problem.place, problem.message)),
        None => Ok(()),
    }
}

/// A transaction removes a user while an order of that user comes, and the other way round.
fn one_comes_as_one_goes() -> Outcome {
    let db = begun(&machine(), ReferenceAction::Cascade)?;
    let going = db.begin().map_err(said)?;
    going.table("users").and_then(|users| users.delete(&[Value::Uint(3)])).map_err(said)?;
    table(&db, "orders")?.insert(&row(20, 3)).map_err(said)?;
    conflicts(going.commit())?;
    is_sound(&db)?;
    let coming = db.begin().map_err(said)?;
    coming.table("orders").and_then(|orders| orders.insert(&row(21, 2))).map_err(said)?;
    table(&db, "users")?.delete(&[Value::Uint(2)]).map_err(said)?;
    conflicts(coming.commit())?;
    is_sound(&db)?;
    expect("orders", count(&db, "orders")?, 7)
}

fn conflicts(commit: esker::Result<u64>) -> Outcome {
    match commit {
        Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
        Err(e) => Err(said(e)),
        Ok(_) => Err("a row refers to one that is gone".to_owned()),
    }
}

fn load_as_one_goes() -> Outcome {
    let db = begun(&machine(), ReferenceAction::Cascade)?;
    let mut load = table(&db, "orders")?.load().map_err(said)?;
    (0..70_000).try_for_each(|id| load.push_row(&row(100 + id, id % 4))).map_err(said)?;
    load.wait().map_err(said)?;
    table(&db, "users")?.delete(&[Value::Uint(3)]).map_err(said)?;
    if load.finish().is_ok() {
        return Err("a load refers to a row that is gone".to_owned());
    }
    is_sound(&db)?;
    expect("orders", count(&db, "orders")?, 6)
}

/// The user and its orders are there, or all of them are gone.
fn crash_at_every_io() -> Outcome {
    let (mut befores, mut afters) = (0, 0);
    for io in 0..200 {
        let machine = machine();
        let db = begun(&machine, ReferenceAction::Cascade)?;
        machine.crash_after_io(Some(io));
        let done = db.table("users").and_then(|users| users.delete(&[Value::Uint(1)]));
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            let is_after = match (count(&db, "users")?, count(&db, "orders")?) {
                (4, 8) => false,
                (3, 6) => true,
                (users, orders) => return Err(format!("I/O {io}: {users} users, {orders} orders")),
            };
            is_sound(&db)?;
            if done.is_ok() && !is_after {
                return Err(format!("I/O {io}: what was acknowledged is lost"));
            }
            (befores, afters) = (befores + u64::from(!is_after), afters + u64::from(is_after));
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

fn references_in_a_checkpoint() -> Outcome {
    let machine = machine();
    let db = begun(&machine, ReferenceAction::Restrict)?;
    db.checkpoint().map_err(said)?;
    db.rename_table("users", "people").map_err(said)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(options(), &revived(&machine.crash_image(choice)))?;
        if table(&db, "people")?.delete(&[Value::Uint(1)]).is_ok() {
            return Err("a row went that others refer to".to_owned());
        }
        if table(&db, "orders")?.insert(&row(20, 9)).is_ok() {
            return Err("a row refers to none".to_owned());
        }
    }
    db.alter_table("orders", &[Alteration::DropReference("of".to_owned())]).map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    table(&db, "people")?.delete(&[Value::Uint(1)]).map(drop).map_err(said)
}
