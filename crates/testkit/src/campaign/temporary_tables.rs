//! Scenarios of a session's temporary tables: nothing of them is stored, whatever comes between.

use esker::{BackupOptions, Database, Options, Query};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, expect, insert, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("temporary tables, a checkpoint, and a crash", nothing_is_stored),
    ("temporary tables and a backup", nothing_is_backed_up),
];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

/// A database with a table, and a session's own beside it, which has one of the same name.
fn begun(machine: &Simulation) -> Result<(Database, Database), String> {
    let db = open(options(), machine)?;
    insert(&db, "rows", 6)?;
    let own = db.private().map_err(said)?;
    insert(&own, "rows", 3)?;
    insert(&own, "others", 9)?;
    own.create_view("view", &Query::table("others")).map_err(said)?;
    Ok((db, own))
}

/// What there is for all.
fn expect_one_table(db: &Database) -> Outcome {
    match (db.tables().as_slice(), db.views().as_slice()) {
        ([rows], []) if rows == "rows" => {
            let rows = db.table("rows").and_then(|rows| rows.count()).map_err(said)?;
            expect("rows", rows, 6)
        }
        (tables, views) => Err(format!("tables {tables:?} with {} views", views.len())),
    }
}

fn nothing_is_stored() -> Outcome {
    let machine = machine();
    let (db, own) = begun(&machine)?;
    expect_one_table(&db)?;
    for makes_checkpoint in [false, true] {
        if makes_checkpoint {
            db.checkpoint().map_err(said)?;
        }
        insert(&own, "others", 0)?;
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            expect_one_table(&db)?;
        }
    }
    let count = own.table("others").and_then(|others| others.count()).map_err(said)?;
    expect("rows of the session", count, 9)
}

fn nothing_is_backed_up() -> Outcome {
    let machine = machine();
    let (db, _own) = begun(&machine)?;
    db.backup("copy", &BackupOptions::default(), &mut |_, _| {}).map_err(said)?;
    let copy = options().environment(machine.environment()).open("copy").map_err(said)?;
    expect_one_table(&copy)
}
