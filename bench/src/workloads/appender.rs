//! Rows of five integers through an appender into a memory database, keys generated.

use std::time::Instant;

use esker::{DataType, Options, Value};
use esker_format::ValueRef;

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::environment::cores;
use crate::outcome::Outcome;
use crate::process::CpuTime;

/// Five integers and the row's share of what the engine keeps about rows.
const BYTES: f64 = 48.0;

/// Appends twice, and measures the second time: memory that the virtual machine has not used for
/// a while must first come from its host, which takes several times as long as all the rest.
pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    append(bench)?;
    append(bench)
}

fn append(bench: &Bench) -> Result<Outcome> {
    let fields = ["a", "b", "c", "d", "e"].map(|name| (name, DataType::I64));
    let options = Options::new().environment(cores(1)).memory_limit(16 << 30);
    let database = options.memory()?;
    let table = database.create_table("numbers", schema(&fields, &[])?)?;
    let rows = i64::try_from(bench.rows)?;
    let cpu = CpuTime::of_thread()?;
    let start = Instant::now();
    let mut appender = table.appender();
    for i in 0..rows {
        let row = [i, i ^ 0x55, i.wrapping_mul(3), -i, 7].map(Value::Int);
        appender.append(&row)?;
    }
    appender.finish()?;
    let (elapsed, busy) = (start.elapsed().as_secs_f64(), cpu.seconds()?);
    let query = esker_sql::parse("SELECT count(*), sum(c), min(d), sum(e) FROM numbers")?;
    let result = database.query(&query)?;
    let answer: Vec<Vec<ValueRef<'_>>> = result.rows().collect();
    let wanted = [rows, (0..rows).map(|i| i * 3).sum(), 1 - rows, 7 * rows];
    let right = answer.first().is_some_and(|row| {
        row.len() == wanted.len()
            && row.iter().zip(wanted).all(|(v, w)| matches!(v, ValueRef::Int(v) if *v == w))
    });
    if !right {
        return Err(format!("wrong answer: {answer:?}, not {wanted:?}").into());
    }
    let limit = bench.machine.fresh_rate / BYTES;
    Ok(Outcome::of(rows as f64 / elapsed, limit)
        .segments(segments(&database, "numbers"))
        .note(CpuTime::note(rows as f64, busy)))
}
