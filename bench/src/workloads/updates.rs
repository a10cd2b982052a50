//! As many updates as the large table has rows, of 1,000 keys: disk must not grow with them.

use std::path::Path;
use std::time::{Duration, Instant};

use esker::{DataType, Durability, Options, Value};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::mix;
use crate::outcome::Outcome;
use crate::process::Files;

const KEYS: u64 = 1_000;

/// Bytes of disk outside the log.
fn disk(dir: &Path) -> Result<f64> {
    Ok(Files::of(dir, |name| !name.starts_with("log-"))?.bytes as f64)
}

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let fields = [("id", DataType::I64), ("value", DataType::I64), ("text", DataType::Text)];
    let dir = bench.place("updates")?;
    let window = Durability::Async { at_most: Duration::from_millis(100) };
    let database = Options::new().durability(window).open(&dir)?;
    let table = database.create_table("t", schema(&fields, &["id"])?)?;
    let mut newest = vec![0u64; usize::try_from(KEYS)?];
    let mut most = 0.0f64;
    let start = Instant::now();
    for i in 0..bench.rows {
        let key = mix(i) % KEYS;
        let text = bench.texts.text(i).to_owned();
        let value = Value::Int(i64::try_from(i)?);
        table.upsert(&[Value::Int(i64::try_from(key)?), value, Value::Text(text)])?;
        if let Some(newest) = newest.get_mut(usize::try_from(key)?) {
            *newest = i;
        }
        if i % (1 << 18) == 0 {
            most = most.max(disk(&dir)?);
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
    database.sync()?;
    for (key, newest) in newest.iter().enumerate() {
        let found = table.get(&[Value::Int(i64::try_from(key)?)])?;
        match found.as_ref().map(|row| row.values()) {
            Some([_, Value::Int(value), Value::Text(text)])
                if value.unsigned_abs() == *newest && text == bench.texts.text(*newest) => {}
            other => return Err(format!("key {key}: found {other:?}, not {newest}").into()),
        }
    }
    database.wait_idle()?;
    most = most.max(disk(&dir)?);
    let segments = segments(&database, "t");
    let memory = database.info().memory.total as f64 / 1024.0 / 1024.0;
    database.close()?;
    let log = Files::of(&dir, |name| name.starts_with("log-"))?.bytes as f64 / 1024.0 / 1024.0;
    let rate = bench.rows as f64 / elapsed / 1e6;
    let note = format!(
        "the most at any time; {rate:.2} M updates/s; at the end {:.1} MiB and {log:.1} MiB of \
         log; {memory:.0} MiB of memory",
        disk(&dir)? / 1024.0 / 1024.0
    );
    Ok(Outcome::default().and(most, None).segments(segments).note(note))
}
