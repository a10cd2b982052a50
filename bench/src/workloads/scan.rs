//! Queries that scan a sealed table on one core: a count with a filter that zone maps cannot
//! answer, plain aggregates, and groups.

use std::time::Instant;

use esker::{Database, Options, QueryResult, Value};
use esker_format::{Batch, Column, DataType, Values};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::mix;
use crate::environment::cores;
use crate::outcome::{Outcome, median};
use crate::process::CpuTime;

/// The value that is counted; every thousandth row or so has it.
const WANTED: i64 = 0x5EED_5EED;
const BATCH_ROWS: u64 = 1 << 18;
const REPEATS: usize = 5;

/// The table that is scanned, and the right answers about it.
pub(crate) struct Flat {
    database: Database,
    rows: u64,
    wanted: i64,
    /// Sum, least and greatest of `amount`.
    amounts: (i64, i64, i64),
    /// Count and sum by `kind`.
    kinds: Vec<(i64, i64)>,
}

/// Rows per second.
#[derive(Clone, Copy, Debug)]
struct Rate {
    rate: f64,
    /// By the time that the thread was on the CPU.
    on_cpu: f64,
}

/// Columns of one row: any value, an amount whose sum fits, one of 256 kinds.
fn row(number: u64) -> (i64, i64, u8) {
    let random = mix(number);
    let value = if random.is_multiple_of(1_000) { WANTED } else { mix(random).cast_signed() };
    let amount = (random >> 24).cast_signed() - (1 << 39);
    (value, amount, random.to_le_bytes()[0])
}

impl Flat {
    fn make(bench: &Bench) -> Result<Self> {
        let fields = [("value", DataType::I64), ("amount", DataType::I64), ("kind", DataType::U8)];
        let dir = bench.place("flat")?;
        let database = Options::new().environment(cores(1)).open(dir)?;
        let table = database.create_table("flat", schema(&fields, &[])?)?;
        let mut load = table.load()?;
        let (mut wanted, mut amounts) = (0, (0, i64::MAX, i64::MIN));
        let mut kinds = vec![(0, 0); 256];
        for start in (0..bench.rows).step_by(1 << 18) {
            let rows: Vec<_> = (start..bench.rows.min(start + BATCH_ROWS)).map(row).collect();
            for (value, amount, kind) in &rows {
                wanted += i64::from(*value == WANTED);
                let (sum, least, greatest) = amounts;
                amounts = (sum + amount, least.min(*amount), greatest.max(*amount));
                if let Some(group) = kinds.get_mut(usize::from(*kind)) {
                    *group = (group.0 + 1, group.1 + amount);
                }
            }
            let column = |data_type, values| Column { data_type, values, nulls: None };
            let values = rows.iter().map(|r| r.0).collect();
            let amounts = rows.iter().map(|r| r.1).collect();
            let kinds = rows.iter().map(|r| r.2).collect();
            load.push(Batch {
                columns: vec![
                    column(DataType::I64, Values::I64(values)),
                    column(DataType::I64, Values::I64(amounts)),
                    column(DataType::U8, Values::U8(kinds)),
                ],
            })?;
        }
        load.finish()?;
        database.wait_idle()?;
        Ok(Self { database, rows: bench.rows, wanted, amounts, kinds })
    }

    /// Rows per second, after a first time that is not measured; `check` sees every answer.
    fn time(&self, sql: &str, check: impl Fn(&QueryResult) -> bool) -> Result<Rate> {
        let query = esker_sql::parse(sql)?;
        let (mut times, mut on_cpu) = (Vec::new(), Vec::new());
        for repeat in 0..=REPEATS {
            let cpu = CpuTime::of_thread()?;
            let start = Instant::now();
            let result = self.database.query(&query)?;
            let (elapsed, busy) = (start.elapsed().as_secs_f64(), cpu.seconds()?);
            if !check(&result) {
                return Err(format!("wrong answer to {sql}: {:?}", result.to_rows()).into());
            }
            if repeat > 0 {
                times.push(elapsed);
                on_cpu.push(busy);
            }
        }
        let rows = self.rows as f64;
        Ok(Rate { rate: rows / median(&times), on_cpu: rows / median(&on_cpu) })
    }

    fn outcome(&self, rates: &[Rate], limit: f64) -> Outcome {
        let outcome = Outcome::default().segments(segments(&self.database, "flat"));
        let outcome = rates.iter().fold(outcome, |o, rate| o.and(rate.rate, Some(limit)));
        let on_cpu = rates.iter().map(|rate| format!("{:.2}", rate.on_cpu / 1e9));
        let on_cpu = on_cpu.collect::<Vec<_>>().join(", ");
        outcome.note(format!("by time on the CPU {on_cpu} G rows/s"))
    }
}

fn flat(bench: &mut Bench) -> Result<&Flat> {
    if bench.flat.is_none() {
        bench.flat = Some(Flat::make(bench)?);
    }
    bench.flat.as_ref().ok_or_else(|| "no table to scan".into())
}

fn is_int(value: Option<&Value>, wanted: i64) -> bool {
    match value {
        Some(Value::Int(found)) => *found == wanted,
        Some(Value::Uint(found)) => i64::try_from(*found) == Ok(wanted),
        _ => false,
    }
}

fn is_one_int(result: &QueryResult, wanted: i64) -> bool {
    let rows = result.to_rows();
    rows.len() == 1 && is_int(rows.first().and_then(|row| row.first()), wanted)
}

pub(crate) fn count(bench: &mut Bench) -> Result<Outcome> {
    let limit = bench.machine.read_rate / 8.0;
    let flat = flat(bench)?;
    let sql = format!("SELECT count(*) FROM flat WHERE value = {WANTED}");
    let rate = flat.time(&sql, |result| is_one_int(result, flat.wanted))?;
    Ok(flat.outcome(&[rate], limit))
}

pub(crate) fn aggregate(bench: &mut Bench) -> Result<Outcome> {
    let limit = bench.machine.read_rate / 8.0;
    let flat = flat(bench)?;
    let (sum, least, greatest) = flat.amounts;
    let mean = sum as f64 / flat.rows as f64;
    let is_mean = |result: &QueryResult| {
        let rows = result.to_rows();
        let found = rows.first().and_then(|row| row.first());
        matches!(found, Some(Value::Float(m)) if (m - mean).abs() <= mean.abs() * 1e-9)
    };
    let integer = |name: &str, wanted: i64| {
        let sql = format!("SELECT {name}(amount) FROM flat");
        flat.time(&sql, |result| is_one_int(result, wanted))
    };
    let rates = [
        integer("sum", sum)?,
        flat.time("SELECT avg(amount) FROM flat", is_mean)?,
        integer("min", least)?,
        integer("max", greatest)?,
    ];
    let all = "SELECT sum(amount), avg(amount), min(amount), max(amount) FROM flat";
    let all = flat.time(all, |_| true)?.on_cpu / 1e9;
    let outcome = flat.outcome(&rates, limit);
    Ok(outcome.note(format!("all four at once {all:.2} G rows/s on the CPU")))
}

pub(crate) fn group_by(bench: &mut Bench) -> Result<Outcome> {
    let limit = bench.machine.read_rate / 9.0;
    let flat = flat(bench)?;
    let check = |result: &QueryResult| {
        let rows = result.to_rows();
        let is_right = |row: &Vec<Value>| match row.as_slice() {
            [kind, count, sum] => {
                let kind = (0..256).find(|k| is_int(Some(kind), *k));
                let group = kind.and_then(|k| flat.kinds.get(usize::try_from(k).ok()?));
                group.is_some_and(|g| is_int(Some(count), g.0) && is_int(Some(sum), g.1))
            }
            _ => false,
        };
        let groups = flat.kinds.iter().filter(|group| group.0 > 0).count();
        rows.len() == groups && rows.iter().all(is_right)
    };
    let sql = "SELECT kind, count(*), sum(amount) FROM flat GROUP BY kind";
    let rate = flat.time(sql, check)?;
    Ok(flat.outcome(&[rate], limit))
}
