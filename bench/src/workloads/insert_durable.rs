//! One thread that inserts row by row, each durable, turn about with bare writes and syncs of as
//! many bytes.

use std::time::Instant;

use esker::{DataType, Database, Options, Table, Value};

use crate::Result;
use crate::bench::{Bench, schema};
use crate::machine::BareSync;
use crate::outcome::{Goal, Outcome, median, percentile};

const TURNS: i64 = 2_000;
const WARM_UP: i64 = 200;

/// A new database with a table of small rows.
pub(crate) fn small_rows(bench: &Bench, name: &str) -> Result<(Database, Table)> {
    let fields = [("id", DataType::I64), ("note", DataType::Text)];
    let database = Options::new().open(bench.place(name)?)?;
    let table = database.create_table("t", schema(&fields, &["id"])?)?;
    Ok((database, table))
}

pub(crate) fn small_row(id: i64) -> [Value; 2] {
    [Value::Int(id), Value::Text("a note of thirty-two characters.".to_owned())]
}

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let (database, table) = small_rows(bench, "insert-durable")?;
    let bare_path = bench.place("insert-durable-bare")?;
    let mut bare = BareSync::create(&bare_path)?;
    let before = database.info().log_bytes;
    for id in 0..WARM_UP {
        table.insert(&small_row(-1 - id))?;
    }
    let frame = (database.info().log_bytes - before) / WARM_UP.unsigned_abs();
    let bytes = usize::try_from(frame)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for id in 0..TURNS {
        let row = small_row(id);
        let start = Instant::now();
        table.insert(&row)?;
        ours.push(start.elapsed().as_secs_f64() * 1e6);
        theirs.push(bare.turn(bytes)?);
    }
    let (mine, base) = (median(&ours), median(&theirs));
    if table.count()? != (TURNS + WARM_UP).unsigned_abs() {
        return Err(format!("{} rows", table.count()?).into());
    }
    database.close()?;
    std::fs::remove_file(bare_path)?;
    let p99 = (percentile(&mut ours, 99), percentile(&mut theirs, 99));
    let note = format!(
        "{mine:.1} µs beside {base:.1} µs bare, ratio {:.3}; p99 {:.0} beside {:.0} µs; \
         {bytes} bytes a commit",
        mine / base,
        p99.0,
        p99.1
    );
    let goal = Goal::AtMost((base * 0.05).max(10.0));
    Ok(Outcome::default().and_with_goal(mine - base, base, goal).note(note))
}
