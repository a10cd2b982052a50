//! Rows inserted one by one, each its own commit, on the disk a little later.

use std::time::{Duration, Instant};

use esker::{DataType, Durability, Options, Value};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::mix;
use crate::machine::touch;
use crate::outcome::Outcome;
use crate::process::CpuTime;

const WINDOW: Duration = Duration::from_millis(100);

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let fields = [("id", DataType::I64), ("amount", DataType::I64), ("note", DataType::Text)];
    let dir = bench.place("insert-async")?;
    let database = Options::new().durability(Durability::Async { at_most: WINDOW }).open(&dir)?;
    let table = database.create_table("t", schema(&fields, &["id"])?)?;
    let rows = i64::try_from(bench.rows / 5)?;
    let mut row = [Value::Int(0), Value::Int(0), Value::Text("sixteen letters.".to_owned())];
    touch(1 << 30);
    let cpu = CpuTime::of_thread()?;
    let start = Instant::now();
    for i in 0..rows {
        let [id, amount, _] = &mut row;
        (*id, *amount) = (Value::Int(i), Value::Int(i * 2));
        table.insert(&row)?;
    }
    let (elapsed, busy) = (start.elapsed().as_secs_f64(), cpu.seconds()?);
    let start = Instant::now();
    database.sync()?;
    let sync = start.elapsed().as_secs_f64();
    if table.count()? != u64::try_from(rows)? {
        return Err(format!("{} rows, not {rows}", table.count()?).into());
    }
    for probe in 0..1_000 {
        let i = i64::try_from(mix(probe) % u64::try_from(rows)?)?;
        let found = table.get(&[Value::Int(i)])?;
        match found.as_ref().map(|row| row.values()) {
            Some([_, Value::Int(amount), _]) if *amount == i * 2 => {}
            other => return Err(format!("key {i}: found {other:?}").into()),
        }
    }
    database.wait_idle()?;
    let segments = segments(&database, "t");
    database.close()?;
    Ok(Outcome::of(rows as f64 / elapsed, 1e9 / bench.machine.load_ns)
        .segments(segments)
        .note(format!("the rest was durable {:.1} ms later", sync * 1e3))
        .note(CpuTime::note(rows as f64, busy)))
}
