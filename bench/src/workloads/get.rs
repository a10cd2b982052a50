//! Rows of the large table by random keys, on one core.

use std::time::Instant;

use esker::{Table, Value};

use crate::Result;
use crate::bench::{Bench, TABLE, check_row, segments};
use crate::data::{Texts, key, mix};
use crate::outcome::Outcome;
use crate::process::CpuTime;

const GETS: u64 = 1_000_000;
const CHECKED: u64 = 50_000;
const SEED: u64 = 0x6765_7473;

/// Random keys, and the sum of the first words of their texts.
pub(crate) struct Probes {
    pub(crate) keys: Vec<Value>,
    pub(crate) sum: u64,
}

impl Probes {
    pub(crate) fn new(texts: &Texts, rows: u64, count: u64, seed: u64) -> Self {
        let rows = (0..count).map(|i| mix(mix(i ^ seed)) % rows);
        let sum = rows.clone().map(|row| first_word(texts.text(row)));
        let sum = sum.fold(0, u64::wrapping_add);
        Self { keys: rows.map(|row| Value::Text(key(row))).collect(), sum }
    }
}

/// The first eight bytes of a text, as a number: enough to see that it is the right one.
pub(crate) fn first_word(text: &str) -> u64 {
    text.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The first word of the text of a key.
pub(crate) fn get_word(table: &Table, key: &Value) -> Result<u64> {
    match table.get(std::slice::from_ref(key))?.as_ref().map(|row| row.values()) {
        Some([_, Value::Text(text)]) => Ok(first_word(text)),
        other => Err(format!("key {key:?}: found {other:?}").into()),
    }
}

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows;
    let (database, table) = bench.big()?;
    let probes = Probes::new(&bench.texts, rows, GETS, SEED);
    // Every block is read and checked against its checksum once; that is not measured.
    let query = esker_sql::parse("SELECT count(*) FROM kv WHERE value = '' OR key = ''")?;
    database.query(&query)?;
    for i in 0..CHECKED {
        check_row(&table, &bench.texts, mix(i) % rows)?;
    }
    let cpu = CpuTime::of_thread()?;
    let start = Instant::now();
    let mut sum = 0u64;
    for key in &probes.keys {
        sum = sum.wrapping_add(get_word(&table, key)?);
    }
    let (elapsed, busy) = (start.elapsed().as_secs_f64(), cpu.seconds()?);
    if sum != probes.sum {
        return Err("the values of random gets are wrong".into());
    }
    let segments = segments(&database, TABLE);
    let limit = bench.machine.load_ns * 3.0;
    Ok(Outcome::of(elapsed * 1e9 / GETS as f64, limit)
        .segments(segments)
        .note(format!("{:.0} ns on the CPU", busy * 1e9 / GETS as f64)))
}
