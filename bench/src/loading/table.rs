//! What rows are measured by: written to a file, loaded, read, exported.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use esker::{Database, Options, Schema, Table, Value, ValueRef};
use esker_import::{Format, ImportOptions, ImportReader, Pipeline, RowWriter, schema_text};
use esker_vfs::Environment;

use super::invoices::INVOICES;
use crate::Result;
use crate::bench::{Bench, boxed, segments};
use crate::data::mix;
use crate::machine::{disk_rate, touch};
use crate::outcome::Outcome;
use crate::process::CpuTime;

/// Rows compared one by one.
const PROBES: u64 = 1_000;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    Ndjson,
}

/// A field of a row that has a value, as text.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: &'static str,
    text: String,
    /// In quotes in JSON.
    quoted: bool,
}

impl Member {
    pub(super) fn text(name: &'static str, text: String) -> Self {
        Self { name, text, quoted: true }
    }

    pub(super) fn bare(name: &'static str, text: String) -> Self {
        Self { name, text, quoted: false }
    }
}

pub(crate) type Values = Vec<Member>;

/// Rows that follow from their numbers.
pub(crate) struct Rows {
    pub(crate) name: &'static str,
    pub(super) schema: &'static str,
    pub(super) values: fn(u64) -> Values,
    /// A field of numbers, and what stands in it.
    pub(super) number: &'static str,
    pub(super) number_of: fn(u64) -> u64,
}

impl Rows {
    pub(crate) fn schema(&self) -> Result<Schema> {
        Ok(schema_text::parse(self.schema)?)
    }

    /// One row as a line of a file.
    pub(super) fn line(&self, schema: &Schema, i: u64, form: Form, out: &mut Vec<u8>) {
        let values = (self.values)(i);
        if form == Form::Ndjson {
            for (position, Member { name, text, quoted }) in values.iter().enumerate() {
                let quote = if *quoted { "\"" } else { "" };
                let before = if position == 0 { "{" } else { "," };
                let _ = write!(out, "{before}\"{name}\":{quote}{text}{quote}");
            }
            out.extend_from_slice(b"}\n");
            return;
        }
        let texts: BTreeMap<&str, &str> =
            values.iter().map(|member| (member.name, member.text.as_str())).collect();
        for (position, field) in schema.fields().iter().enumerate() {
            out.extend_from_slice(if position == 0 { b"" } else { b"," });
            let text = texts.get(field.name.as_str()).copied().unwrap_or_default();
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'\n');
    }

    /// The names of the columns as a line.
    pub(super) fn header(schema: &Schema) -> Vec<u8> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name.as_str()).collect();
        format!("{}\n", names.join(",")).into_bytes()
    }

    /// The first rows, in a file.
    pub(crate) fn file(&self, bench: &Bench, form: Form, count: u64) -> Result<PathBuf> {
        let dir = bench.place(&format!("{}-{form:?}", self.name))?;
        std::fs::create_dir_all(&dir)?;
        let path = dir.join(if form == Form::Csv { "rows.csv" } else { "rows.ndjson" });
        let schema = self.schema()?;
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        if form == Form::Csv {
            out.write_all(&Self::header(&schema))?;
        }
        let mut line = Vec::new();
        for i in 0..count {
            line.clear();
            self.line(&schema, i, form, &mut line);
            out.write_all(&line)?;
        }
        out.flush()?;
        // Writing it back must not disturb what is measured.
        out.into_inner()?.sync_all()?;
        Ok(path)
    }

    fn key(i: u64, values: &Values) -> Result<Value> {
        let key = values.first().ok_or_else(|| format!("row {i} is empty"))?;
        Ok(Value::Text(key.text.clone()))
    }
}

fn format_of(form: Form) -> Format {
    if form == Form::Csv { Format::Csv } else { Format::Ndjson }
}

/// Loads a file into a new table, as `esker load` does.
fn load_file(
    rows: &Rows,
    schema: &Schema,
    dir: &Path,
    (path, form): (&Path, Form),
) -> Result<(Database, u64)> {
    let environment = Environment::os();
    let options = ImportOptions::default().format(format_of(form)).schema(rows.schema()?);
    let reader = ImportReader::open(&environment, path, options)?;
    let database = Options::new().open(dir)?;
    let table = database.create_table(rows.name, schema.clone())?;
    let mut load = table.load()?;
    load.reserve_input(reader.memory_bytes())?;
    reader.read(|batch, _| load.push(batch).map_err(boxed))?;
    let report = load.finish()?;
    Ok((database, report.rows))
}

/// Compares the sum of a field, and a thousand rows value by value, with what they follow from.
pub(crate) fn check(rows: &Rows, database: &Database, count: u64) -> Result<()> {
    let table = &database.table(rows.name)?;
    let text = format!("SELECT count(*), sum({}) FROM {}", rows.number, rows.name);
    let result = database.query(&esker_sql::parse(&text)?)?;
    let answer: Vec<Vec<String>> =
        result.rows().map(|row| row.iter().map(ToString::to_string).collect()).collect();
    let sum: u64 = (0..count).map(rows.number_of).sum();
    let right = answer.first().is_some_and(|row| {
        let number = |at: usize| row.get(at).and_then(|text| text.parse::<f64>().ok());
        number(0) == Some(count as f64) && number(1) == Some(sum as f64)
    });
    if !right {
        return Err(format!("wrong answer: {answer:?}, expected {count} and {sum}").into());
    }
    for probe in 0..PROBES {
        let i = mix(probe) % count;
        check_row(rows, table, i)?;
    }
    Ok(())
}

/// Compares one row with the texts that it was made of.
fn check_row(rows: &Rows, table: &Table, i: u64) -> Result<()> {
    let values = (rows.values)(i);
    let found = table.get(&[Rows::key(i, &values)?])?.ok_or_else(|| format!("no row {i}"))?;
    let schema = table.schema();
    let texts: BTreeMap<&str, &str> =
        values.iter().map(|member| (member.name, member.text.as_str())).collect();
    for (field, value) in schema.fields().iter().zip(found.values()) {
        let shown = value.to_string();
        let wanted = texts.get(field.name.as_str()).copied();
        if (*value == Value::Null) != wanted.is_none() || wanted.is_some_and(|w| w != shown) {
            return Err(format!("row {i}, {}: {shown:?}, not {wanted:?}", field.name).into());
        }
    }
    Ok(())
}

/// What a load took.
pub(crate) struct Loaded {
    /// The database, once everything is merged.
    pub(crate) database: Database,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) text_bytes: u64,
    /// Rows a second, and at the rate of the disk.
    pub(crate) rate: f64,
    pub(crate) bare: f64,
    pub(crate) segments: usize,
}

/// Loads a file, durable at the end.
pub(super) fn load(bench: &mut Bench, rows: &Rows, form: Form) -> Result<Outcome> {
    let loaded = load_as(bench, rows, &rows.schema()?, form)?;
    loaded.database.close()?;
    let megabytes = loaded.text_bytes as f64 / loaded.seconds / 1e6;
    Ok(Outcome::of(loaded.rate, loaded.bare)
        .segments(loaded.segments)
        .note(format!("{:.2} s, {megabytes:.0} MB/s of text", loaded.seconds))
        .note(CpuTime::note(bench.rows as f64, loaded.cpu_seconds)))
}

/// Loads a file into a new table of a schema, durable at the end.
pub(crate) fn load_as(
    bench: &mut Bench,
    rows: &Rows,
    schema: &Schema,
    form: Form,
) -> Result<Loaded> {
    let path = rows.file(bench, form, bench.rows)?;
    let dir = bench.place(rows.name)?;
    let text_bytes = std::fs::metadata(&path)?.len();
    let bare = disk_rate(&bench.place("bare")?, text_bytes)?;
    touch(4 << 30);
    let cpu = CpuTime::of_process()?;
    let start = Instant::now();
    let (database, count) = load_file(rows, schema, &dir, (&path, form))?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = cpu.seconds()?;
    if count != bench.rows {
        return Err(format!("loaded {count} rows, not {}", bench.rows).into());
    }
    check(rows, &database, count)?;
    database.wait_idle()?;
    let segments = segments(&database, rows.name);
    let (rate, bare) = (count as f64 / seconds, bare * count as f64 / text_bytes as f64);
    Ok(Loaded { database, seconds, cpu_seconds, text_bytes, rate, bare, segments })
}

/// Opens a table of rows, loaded when there is none.
fn loaded(bench: &Bench, rows: &Rows) -> Result<Database> {
    let path = rows.file(bench, Form::Csv, bench.rows)?;
    let dir = bench.place(rows.name)?;
    let (database, _) = load_file(rows, &rows.schema()?, &dir, (&path, Form::Csv))?;
    database.wait_idle()?;
    database.close()?;
    Ok(Options::new().create(false).open(&dir)?)
}

/// Exports all rows to a file of CSV, durable at the end, and compares its lines with those that
/// the table was made of, in any order.
pub(super) fn export(bench: &mut Bench, rows: &Rows) -> Result<Outcome> {
    let database = loaded(bench, rows)?;
    let schema = rows.schema()?;
    let path = bench.place("export.csv")?;
    touch(1 << 30);
    let cpu = CpuTime::of_process()?;
    let start = Instant::now();
    let count = export_csv(&database, rows, &schema, &path)?;
    let elapsed = start.elapsed().as_secs_f64();
    let busy = cpu.seconds()?;
    let bytes = std::fs::metadata(&path)?.len();
    let hash = |line: &[u8]| line.iter().fold(0u64, |h, b| mix(h ^ u64::from(*b)));
    let (mut wanted, mut found, mut line) = (0u64, 0u64, Vec::new());
    for i in 0..bench.rows {
        line.clear();
        rows.line(&schema, i, Form::Csv, &mut line);
        wanted = wanted.wrapping_add(hash(&line));
    }
    let mut reader = BufReader::new(File::open(&path)?);
    reader.read_until(b'\n', &mut Vec::new())?;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        found = found.wrapping_add(hash(&line));
    }
    if count != bench.rows || found != wanted {
        return Err(format!("{count} rows, and not those of the table").into());
    }
    database.close()?;
    std::fs::remove_file(&path)?;
    let bare = disk_rate(&bench.place("bare")?, bytes)?;
    let note = format!("{elapsed:.2} s, {:.0} MB/s of text", bytes as f64 / elapsed / 1e6);
    let rate = count as f64 / elapsed;
    Ok(Outcome::of(rate, bare * count as f64 / bytes as f64)
        .note(note)
        .note(CpuTime::note(count as f64, busy)))
}

/// Writes a table as `esker export` does.
fn export_csv(database: &Database, rows: &Rows, schema: &Schema, path: &Path) -> Result<u64> {
    let names = schema.fields().iter().map(|field| field.name.as_str());
    let writer = RowWriter::new(Format::Csv, b',', names);
    let shared = writer.clone();
    let mut texts = Pipeline::new(&Environment::os().tasks, "export", move |batch| {
        let mut text = Vec::new();
        shared.write(&mut text, &batch);
        text
    });
    let mut file = Written::create(path)?;
    file.append(&writer.start())?;
    let (mut count, mut outcome) = (0, Ok(()));
    let query = esker_sql::parse(&format!("SELECT * FROM {}", rows.name))?;
    database.snapshot()?.stream(&query, |batch| {
        count += batch.len() as u64;
        texts.push(batch);
        if texts.in_flight() >= texts.depth() {
            outcome = file.append(&texts.next().unwrap_or_default());
        }
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome?;
    while let Some(text) = texts.next() {
        file.append(&text)?;
    }
    file.file.sync_data()?;
    Ok(count)
}

/// A file whose writing to the disk is begun early.
struct Written {
    file: Arc<dyn esker_vfs::File>,
    bytes: u64,
}

impl Written {
    fn create(path: &Path) -> Result<Self> {
        let file = Environment::os().files.open(path, esker_vfs::OpenMode::CreateNew)?;
        Ok(Self { file, bytes: 0 })
    }

    fn append(&mut self, text: &[u8]) -> esker_vfs::Result<()> {
        self.file.write_all_at(text, self.bytes)?;
        self.file.start_writeback(self.bytes, text.len() as u64);
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// Reads invoices by their keys: the first after opening, then many.
pub(super) fn get_invoice(bench: &mut Bench) -> Result<Outcome> {
    let database = loaded(bench, &INVOICES)?;
    let table = database.table(INVOICES.name)?;
    let key = |i| Rows::key(i, &(INVOICES.values)(i));
    let first = key(bench.rows / 2)?;
    let start = Instant::now();
    table.get(&[first])?.ok_or("no such row")?;
    let cold_us = start.elapsed().as_secs_f64() * 1e6;
    for probe in 0..PROBES {
        check_row(&INVOICES, &table, mix(probe) % bench.rows)?;
    }
    let keys: Vec<[Value; 1]> =
        (0..100_000).map(|probe| Ok([key(mix(probe) % bench.rows)?])).collect::<Result<_>>()?;
    for key in &keys {
        table.get(key)?.ok_or("no such row")?;
    }
    let (start, mut filled) = (Instant::now(), 0);
    for key in &keys {
        let row = table.get(key)?.ok_or("no such row")?;
        filled += row.values().iter().filter(|v| !matches!(v.as_ref(), ValueRef::Null)).count();
    }
    let warm_us = start.elapsed().as_secs_f64() * 1e6 / keys.len() as f64;
    if filled != keys.len() * 27 {
        return Err(format!("{filled} values that are not NULL").into());
    }
    drop(table);
    database.close()?;
    let note = format!("the first after opening: {cold_us:.0} µs");
    Ok(Outcome::default().and(warm_us, None).note(note))
}
