//! Scenarios of unique indexes: each way in which two rows could come to have one value.

use esker::{DataType, Database, ErrorKind, NewIndex, Options, Schema, Table, Value};

use esker_vfs::sim::Simulation;
use esker_vfs::{Step, Task};

use super::directed::{Outcome, Scenario, busy_machine, machine, open, said};

pub(super) const SCENARIOS: [Scenario; 4] = [
    ("a value twice in one commit", twice_in_a_commit),
    ("a value in a load that another row has", in_a_load),
    ("a value in a large commit that another row has", in_a_large_commit),
    ("a value whose row a merge has moved", after_a_merge),
];

/// As many rows as go to a segment of their own.
const LOADED_ROWS: u64 = 70_000;

fn row(id: u64, mail: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Uint(mail)]
}

/// A table of ten rows.
fn filled(options: Options) -> Result<(Database, Table), String> {
    filled_on(&machine(), options)
}

fn filled_on(machine: &Simulation, options: Options) -> Result<(Database, Table), String> {
    let db = open(options, machine)?;
    let fields = Schema::builder().field("id", DataType::U64).field("mail", DataType::U64);
    let index = NewIndex::new("by_mail", ["mail"]).unique();
    let schema = fields.add_index(index).primary_key(["id"]).build().map_err(|e| e.to_string())?;
    let table = db.create_table("rows", schema).map_err(said)?;
    let rows: Vec<_> = (0..10).map(|id| row(id, id)).collect();
    table.insert_many(&rows).map_err(said)?;
    Ok((db, table))
}

fn refused<T>(what: &str, outcome: esker::Result<T>) -> Outcome {
    match outcome {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(said(e)),
        Ok(_) => Err(format!("{what}: two rows have one value")),
    }
}

fn is_sound(db: &Database) -> Outcome {
    match db.check().map_err(said)?.problems.first() {
        Some(problem) => Err(format!("{problem:?}")),
        None => Ok(()),
    }
}

fn twice_in_a_commit() -> Outcome {
    let (db, table) = filled(Options::new())?;
    refused("a commit", table.insert_many(&[row(20, 20), row(21, 20)]))?;
    is_sound(&db)
}

fn in_a_load() -> Outcome {
    let (db, table) = filled(Options::new())?;
    let mut load = table.load().map_err(said)?;
    let mut pushed = (0..LOADED_ROWS).map(|id| row(100 + id, 100 + id));
    let outcome = pushed.try_for_each(|row| load.push_row(&row));
    let outcome = outcome.and_then(|()| load.push_row(&row(99, 7)));
    refused("a load", outcome.and_then(|()| load.finish().map(drop)))?;
    is_sound(&db)
}

/// Gives a value to a row after some steps.
struct Second {
    table: Table,
    steps: u64,
}

impl Task for Second {
    fn step(&mut self) -> Step {
        if self.steps > 0 {
            self.steps -= 1;
            return Step::Again;
        }
        // Refused, or not, as the other one allows.
        let _ = self.table.insert(&row(99, 100));
        Step::Done
    }
}

/// It goes to segments of its own, and the lock is given up for that: somebody else may give the
/// value to a row meanwhile.
fn in_a_large_commit() -> Outcome {
    let rows = |last| (100..400).map(|id| row(id, id)).chain([row(98, last)]).collect::<Vec<_>>();
    for steps in (0..60).chain((60..1_500).step_by(40)) {
        let machine = busy_machine();
        let (db, table) =
            filled_on(&machine, Options::new().commit_limit(1_000).pause_large_commits())?;
        refused("a large commit", table.insert_many(&rows(7)))?;
        let second = Box::new(Second { table: table.clone(), steps });
        let task = machine.environment().tasks.spawn("second", second);
        let _ = table.insert_many(&rows(98));
        task.join();
        refused("after a large commit", table.insert(&row(97, 100)))?;
        is_sound(&db)?;
    }
    Ok(())
}

fn after_a_merge() -> Outcome {
    let (db, table) = filled(Options::new().small_group_limit(0).group_limit(4, 1 << 20))?;
    for round in 1..4 {
        for id in round * 10..round * 10 + 10 {
            table.insert(&row(id, id)).map_err(said)?;
        }
        table.delete(&[Value::Uint(round)]).map_err(said)?;
        db.compact(true, &mut |_, _| ()).map_err(said)?;
        // From now on nothing leads on from where rows were.
        db.wait_idle().map_err(said)?;
        for id in (0..round * 10 + 10).filter(|id| !(1..=round).contains(id)) {
            refused("after a merge", table.insert(&row(100 + id, id)))?;
        }
        is_sound(&db)?;
    }
    Ok(())
}
