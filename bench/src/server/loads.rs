//! Bulk loads over one connection: sent, loaded and on the disk.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use esker::Durability;
use esker_client::{Client, Duplicates, Format, ValueRef};

use super::service::{Service, TABLE};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::key;
use crate::outcome::Outcome;

/// Rows of text that are made at a time, within what is measured for neither side.
const TEXT_ROWS: u64 = 1 << 20;

pub(super) fn packed(bench: &mut Bench) -> Result<Outcome> {
    let service = Service::start(bench, "server-bulk", Durability::Sync)?;
    let mut client = service.connect()?;
    let mut load = client.load(TABLE, Format::MessagePack, Duplicates::Error).map_err(boxed)?;
    let mut seconds = 0.0;
    for first in (0..bench.rows).step_by(usize::try_from(TEXT_ROWS)?) {
        let rows = first..bench.rows.min(first + TEXT_ROWS);
        // The texts lie scattered in a pool: they are gathered before they are sent.
        let (mut text, mut ends) = (String::new(), Vec::new());
        for row in rows {
            text.push_str(&key(row));
            ends.push(text.len());
            text.push_str(bench.texts.text(row));
            ends.push(text.len());
        }
        let start = Instant::now();
        let mut at = 0;
        for pair in ends.chunks_exact(2) {
            let values = pair.iter().map(|end| {
                let value = text.get(at..*end).unwrap_or_default();
                at = *end;
                ValueRef::Text(value)
            });
            load.push_refs(values).map_err(boxed)?;
        }
        seconds += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    load.finish().map_err(boxed)?;
    seconds += start.elapsed().as_secs_f64();
    drop(client);
    Ok(finish(bench, service, seconds)?.note(NOTE))
}

const NOTE: &str = "the rows are made between what is timed, when the server may be working";

fn finish(bench: &Bench, service: Service, seconds: f64) -> Result<Outcome> {
    let count = service.count()?;
    if count != bench.rows {
        return Err(format!("{count} rows, not {}", bench.rows).into());
    }
    service.stop()?;
    Ok(Outcome::default().and(bench.rows as f64 / seconds, None))
}

pub(super) fn csv(bench: &mut Bench) -> Result<Outcome> {
    let path = bench.csv()?;
    let service = Service::start(bench, "server-bulk", Durability::Sync)?;
    let mut client = service.connect()?;
    let seconds = send_file(&mut client, TABLE, Format::Csv, &path)?;
    drop(client);
    finish(bench, service, seconds)
}

/// Reads a file and sends it, until all is on the disk; the seconds of that.
pub(super) fn send_file(
    client: &mut Client,
    table: &str,
    format: Format,
    path: &Path,
) -> Result<f64> {
    let start = Instant::now();
    let mut load = client.load(table, format, Duplicates::Error).map_err(boxed)?;
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        load.push_text(buffer.get(..n).unwrap_or_default()).map_err(boxed)?;
    }
    load.finish().map_err(boxed)?;
    Ok(start.elapsed().as_secs_f64())
}

pub(super) fn ndjson(bench: &mut Bench) -> Result<Outcome> {
    let service = Service::start(bench, "server-bulk", Durability::Sync)?;
    let mut client = service.connect()?;
    let mut load = client.load(TABLE, Format::Ndjson, Duplicates::Error).map_err(boxed)?;
    let (mut seconds, mut text) = (0.0, String::new());
    for first in (0..bench.rows).step_by(usize::try_from(TEXT_ROWS)?) {
        text.clear();
        for row in first..bench.rows.min(first + TEXT_ROWS) {
            text.push_str("{\"key\":\"");
            text.push_str(&key(row));
            text.push_str("\",\"value\":\"");
            text.push_str(bench.texts.text(row));
            text.push_str("\"}\n");
        }
        let start = Instant::now();
        load.push_text(text.as_bytes()).map_err(boxed)?;
        seconds += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    load.finish().map_err(boxed)?;
    seconds += start.elapsed().as_secs_f64();
    drop(client);
    Ok(finish(bench, service, seconds)?.note(NOTE))
}
