//! Tasks of child processes: what needs a fresh process, or one that is killed. Each prints one
//! line of numbers when it is where its parent wants it.

use std::path::Path;
use std::time::{Duration, Instant};

use esker::{DataType, Durability, Options, Value};

use crate::Result;
use crate::bench::{TABLE, load, schema};
use crate::data::{Texts, key};
use crate::process::Resident;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["open", dir, table] => open(Path::new(dir), table),
        ["grow", dir, from, more] => grow(Path::new(dir), from.parse()?, more.parse()?),
        ["load", dir, csv] => load_and_wait(Path::new(dir), Path::new(csv)),
        ["make-tables", dir, count] => make_tables(Path::new(dir), count.parse()?),
        ["open-tables", dir, count] => open_tables(Path::new(dir), count.parse()?),
        ["load-memory", dir, bytes] => crate::loading::memory_child(Path::new(dir), bytes.parse()?),
        _ => Err(format!("no such task: {words:?}").into()),
    }
}

/// Prints how long opening took, and how much memory was taken.
fn report(seconds: f64, before: Resident) -> Result<()> {
    let taken = Resident::now()?.since(before);
    println!("{seconds} {} {}", taken.own, taken.all);
    Ok(())
}

/// Opens a table and reads one row.
fn open(dir: &Path, table: &str) -> Result<()> {
    let before = Resident::now()?;
    let start = Instant::now();
    let database = Options::new().create(false).open(dir)?;
    let table = database.table(table)?;
    let found = table.get(&[Value::Text(key(0))])?;
    let seconds = start.elapsed().as_secs_f64();
    if found.is_none() {
        return Err("the first row is missing".into());
    }
    report(seconds, before)?;
    database.close()?;
    Ok(())
}

/// Inserts rows one by one until all are durable, and waits to be killed.
fn grow(dir: &Path, from: u64, more: u64) -> Result<()> {
    let window = Durability::Async { at_most: Duration::from_millis(50) };
    let database = Options::new().create(false).durability(window).open(dir)?;
    let table = database.table(TABLE)?;
    let texts = Texts::new();
    for row in from..from + more {
        table.insert(&[Value::Text(key(row)), Value::Text(texts.text(row).to_owned())])?;
    }
    database.sync()?;
    wait_for_the_end()
}

fn load_and_wait(dir: &Path, csv: &Path) -> Result<()> {
    let _database = load(dir, csv)?;
    wait_for_the_end()
}

fn wait_for_the_end() -> Result<()> {
    println!("1");
    std::thread::sleep(Duration::from_secs(60));
    Err("nobody killed this process".into())
}

const SMALL_ROWS: i64 = 100;

fn make_tables(dir: &Path, count: u64) -> Result<()> {
    let window = Durability::Async { at_most: Duration::from_millis(50) };
    let database = Options::new().durability(window).open(dir)?;
    let fields = [("id", DataType::I64), ("name", DataType::Text), ("amount", DataType::I64)];
    for number in 0..count {
        let table = database.create_table(&format!("t{number}"), schema(&fields, &["id"])?)?;
        let row =
            |id: i64| vec![Value::Int(id), Value::Text(format!("name {id}")), Value::Int(id * 3)];
        table.insert_many(&(0..SMALL_ROWS).map(row).collect::<Vec<_>>())?;
    }
    database.wait_idle()?;
    database.close()?;
    println!("1");
    Ok(())
}

/// Opens, then reads the rows of every table.
fn open_tables(dir: &Path, count: u64) -> Result<()> {
    let before = Resident::now()?;
    let start = Instant::now();
    let database = Options::new().create(false).open(dir)?;
    let seconds = start.elapsed().as_secs_f64();
    for number in 0..count {
        let table = database.table(&format!("t{number}"))?;
        let row = table.get(&[Value::Int(SMALL_ROWS - 1)])?;
        let amount = row.as_ref().and_then(|row| row.get("amount"));
        if table.count()? != 100 || !matches!(amount, Some(Value::Int(297))) {
            return Err(format!("table {number}: wrong rows").into());
        }
    }
    report(seconds, before)?;
    database.close()?;
    Ok(())
}
