//! Scenarios of namespaces, the schemas of SQL: they last as tables do.

use esker::{DataType, Database, Options, Schema};
use esker_vfs::sim::CrashChoice;

use super::directed::{Outcome, Scenario, machine, open, revived};

pub(super) const SCENARIOS: [Scenario; 1] =
    [("schemas, a checkpoint, and a crash at every I/O", crash_at_every_io)];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

/// A schema and its table come at once; another schema is in a checkpoint.
fn change(db: &Database) -> esker::Result<()> {
    db.create_namespace("first")?;
    db.checkpoint()?;
    let transaction = db.begin()?;
    transaction.create_namespace("app")?;
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build();
    transaction.create_table("app.t", schema.map_err(esker::Error::from)?)?;
    transaction.commit().map(drop)
}

fn crash_at_every_io() -> Outcome {
    let mut afters = 0;
    for io in 0..400 {
        let machine = machine();
        let db = open(options(), &machine)?;
        machine.crash_after_io(Some(io));
        let done = change(&db);
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            let names = db.namespaces().into_iter().map(|namespace| namespace.name);
            let names: Vec<String> = names.collect();
            let has_table = db.table("app.t").is_ok();
            let is_whole = match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                [] | ["first"] => !has_table,
                ["app", "first"] => has_table,
                _ => false,
            };
            if !is_whole || (done.is_ok() && !has_table) {
                return Err(format!("I/O {io}: schemas {names:?}, table: {has_table}"));
            }
            afters += u64::from(has_table);
            if has_table && db.drop_namespace("app").is_ok() {
                return Err(format!("I/O {io}: a schema went that has a table"));
            }
        }
        if done.is_ok() {
            break;
        }
    }
    match afters > 0 {
        true => Ok(()),
        false => Err("it never was done".to_owned()),
    }
}
