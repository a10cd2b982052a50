//! Scenarios of views: what they read stays while they read it, and they last.

use esker::{Alteration, Database, Options, Query, TableAs};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, expect, insert, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("a column dropped that a view reads", drop_what_is_read),
    ("views, a checkpoint, and a crash", views_in_a_checkpoint),
    ("tables and views of a transaction, and a crash at every I/O", crash_at_every_io),
];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

/// The rows of `rows` from a key on.
fn from(least: u64) -> Query {
    let mut query = Query::table("rows");
    query.select(Expr::field("id")).select(Expr::field("text"));
    query.filter = Some(Expr::field("id").binary(Operator::Gte, Expr::literal(least)));
    query
}

fn count(db: &Database, name: &str) -> Result<u64, String> {
    let rows = db.query(&Query::table(name)).map_err(said)?.row_count();
    Ok(rows as u64)
}

fn begun(machine: &Simulation) -> Result<Database, String> {
    let db = open(options(), machine)?;
    insert(&db, "rows", 6)?;
    db.create_view("late", &from(2)).map_err(said)?;
    db.create_view("later", &Query::table("late")).map_err(said)?;
    Ok(db)
}

/// A view can be read, or what it reads has not gone.
fn drop_what_is_read() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    let gone = db.alter_table("rows", &[Alteration::DropField("text".to_owned())]);
    if gone.is_ok() {
        return Err("a column went that a view reads".to_owned());
    }
    let drop_view = |name: &str| db.drop_view(name).map_err(said);
    if drop_view("late").is_ok() || db.drop_table("rows").is_ok() {
        return Err("a view or a table went that a view reads".to_owned());
    }
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect("rows of a view", count(&db, "later")?, 4)
}

fn views_in_a_checkpoint() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    db.checkpoint().map_err(said)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(options(), &revived(&machine.crash_image(choice)))?;
        expect("rows of a view", count(&db, "later")?, 4)?;
    }
    db.drop_view("later").map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect("rows of a view", count(&db, "late")?, 4)?;
    match db.query(&Query::table("later")) {
        Ok(_) => Err("a view that was dropped is back".to_owned()),
        Err(_) => Ok(()),
    }
}

/// A table of the rows of a view, with a view of it, in the place of both.
fn rewrite(db: &Database) -> esker::Result<u64> {
    let transaction = db.begin()?;
    transaction.create_table_as(
        "copy",
        &Query::table("later"),
        &TableAs::default(),
        &esker::ChangeOptions::default(),
    )?;
    transaction.drop_view("later")?;
    transaction.drop_view("late")?;
    transaction.drop_table("rows")?;
    transaction.create_view("late", &Query::table("copy"))?;
    transaction.commit()
}

/// What there is, whole: before or after.
fn is_after(db: &Database) -> Result<bool, String> {
    let views: Vec<String> = db.views().into_iter().map(|view| view.name).collect();
    expect("rows of a view", count(db, "late")?, 4)?;
    match (db.tables().as_slice(), views.as_slice()) {
        ([rows], [late, later]) if rows == "rows" && late == "late" && later == "later" => {
            expect("rows of a view of a view", count(db, "later")?, 4).map(|()| false)
        }
        ([copy], [late]) if copy == "copy" && late == "late" => Ok(true),
        (tables, views) => Err(format!("tables {tables:?} with views {views:?}")),
    }
}

fn crash_at_every_io() -> Outcome {
    let (mut befores, mut afters) = (0, 0);
    for io in 0..400 {
        let machine = machine();
        let db = begun(&machine)?;
        machine.crash_after_io(Some(io));
        let done = rewrite(&db);
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            let is_after = is_after(&db)?;
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
