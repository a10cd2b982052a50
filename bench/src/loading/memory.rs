//! Memory while loading much more than there is memory for.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use esker::Options;
use esker_format::Schema;
use esker_import::{Format, ImportOptions, ImportReader};
use esker_vfs::Environment;

use super::invoices::INVOICES;
use super::table::Form;
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::outcome::Outcome;
use crate::process::ChildProcess;

/// What the database may take.
const LIMIT_BYTES: u64 = 512 << 20;
/// Rows whose texts are made beforehand.
const MADE: u64 = 4_096;

/// What stands before the key of a row.
const START: &str = "{\"key\":\"";

/// Loads invoices as NDJSON in a process of its own; its greatest memory, what it maps included.
pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let dir = bench.place("memory")?;
    let (place, bytes) = (dir.display().to_string(), bench.load_bytes.to_string());
    let mut child = ChildProcess::start(&["load-memory", &place, &bytes])?;
    let numbers = child.numbers()?;
    child.finish()?;
    let [peak, own, rows, seconds] = numbers.as_slice() else {
        return Err(format!("a child process told {numbers:?}").into());
    };
    std::fs::remove_dir_all(&dir)?;
    Ok(Outcome::default()
        .and(*peak, None)
        .note(format!(
            "{:.0} MB of text, {rows} rows in {seconds:.1} s",
            bench.load_bytes as f64 / 1e6
        ))
        .note(format!("{:.0} MiB at the end are in no file", own / 1024.0 / 1024.0)))
}

/// The task of the child: loads so many bytes, prints its greatest memory.
pub(crate) fn child(dir: &Path, bytes: u64) -> Result<()> {
    let schema = INVOICES.schema()?;
    let made = (0..MADE).map(|i| {
        let mut line = Vec::new();
        INVOICES.line(&schema, i, Form::Ndjson, &mut line);
        // The key is written anew.
        let mut rest = line.split_off(START.len().min(line.len()));
        let quote = rest.iter().position(|b| *b == b'"').unwrap_or(0);
        rest.split_off(quote)
    });
    let text = Text { made: made.collect(), bytes, row: 0, rest: Vec::new(), read: 0 };
    let start = Instant::now();
    let rows = load(dir, schema, text)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let find = |name: &str| -> Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let text = line.ok_or("no memory figures in /proc/self/status")?;
        Ok(text.trim().trim_end_matches("kB").trim().parse::<f64>()? * 1024.0)
    };
    println!("{} {} {rows} {seconds}", find("VmHWM:")?, find("RssAnon:")?);
    Ok(())
}

fn load(dir: &Path, schema: Schema, text: Text) -> Result<u64> {
    let environment = Environment::os();
    let options = ImportOptions::default()
        .format(Format::Ndjson)
        .schema(schema)
        .memory_bytes(LIMIT_BYTES / 8);
    let bytes = Some(text.bytes);
    let reader = ImportReader::from_reader(&environment, "invoices.ndjson", text, bytes, options)?;
    let database = Options::new().memory_limit(LIMIT_BYTES).open(dir)?;
    let table = database.create_table(INVOICES.name, reader.schema().clone())?;
    let mut load = table.load()?;
    load.reserve_input(reader.memory_bytes())?;
    reader.read(|batch, _| load.push(batch).map_err(boxed))?;
    let rows = load.finish()?.rows;
    if table.count()? != rows {
        return Err("rows are missing".into());
    }
    drop(table);
    database.close()?;
    Ok(rows)
}

/// A file of NDJSON that is never whole anywhere.
struct Text {
    made: Vec<Vec<u8>>,
    bytes: u64,
    row: usize,
    rest: Vec<u8>,
    read: u64,
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.rest.len() < buffer.len() && self.read < self.bytes {
            let before = self.rest.len();
            self.rest.extend_from_slice(format!("{START}INV-{:010}", self.row).as_bytes());
            let made = self.made.get(self.row % self.made.len());
            self.rest.extend_from_slice(made.map(Vec::as_slice).unwrap_or_default());
            self.row += 1;
            self.read += (self.rest.len() - before) as u64;
        }
        let count = self.rest.len().min(buffer.len());
        let (part, rest) = self.rest.split_at(count);
        buffer.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        self.rest = rest.to_vec();
        Ok(count)
    }
}
