//! Rows of a 16-byte key and a 100-byte text, from CSV into an indexed table, durable at the end.

use std::time::Instant;

use crate::Result;
use crate::bench::{Bench, TABLE, check_big, segments};
use crate::data::ROW_BYTES;
use crate::machine::{disk_rate, touch};
use crate::outcome::Outcome;
use crate::process::CpuTime;

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    bench.csv()?;
    let rows = bench.rows;
    let bare = disk_rate(&bench.place("bare")?, rows * ROW_BYTES as u64)?;
    touch(4 << 30);
    let cpu = CpuTime::of_process()?;
    let elapsed = bench.load_big()?;
    let busy = cpu.seconds()?;
    let start = Instant::now();
    let (database, table) = bench.big()?;
    check_big(&table, &bench.texts, rows)?;
    database.wait_idle()?;
    let idle = start.elapsed().as_secs_f64();
    let segments = segments(&database, TABLE);
    drop((database, table));
    let start = Instant::now();
    bench.closed_big()?;
    let close = start.elapsed().as_secs_f64();
    Ok(Outcome::of(rows as f64 / elapsed, bare / ROW_BYTES as f64)
        .segments(segments)
        .note(format!("{elapsed:.2} s; idle {idle:.2} s later; closed in {close:.2} s"))
        .note(CpuTime::note(rows as f64, busy)))
}
