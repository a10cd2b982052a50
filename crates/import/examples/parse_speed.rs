//! Measures how fast CSV becomes batches: `cargo run --release -p esker-import --example
//! parse_speed [FILE.csv…]`. Without files: 5 million made-up rows of a 16-byte key and a
//! 100-byte text, from memory.

use std::fmt::Write as _;
use std::path::Path;

use esker_import::{Error, ImportOptions, ImportReader, schema_text};
use esker_vfs::Environment;

fn main() -> Result<(), Error> {
    let environment = Environment::os();
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let text = keys_and_texts(5_000_000);
        for round in 1..=3 {
            let schema = schema_text::parse("key text not null, value text not null")?;
            let options = ImportOptions::default().schema(schema);
            let bytes = std::io::Cursor::new(text.clone());
            let started = environment.clock.monotonic_ns();
            let reader = ImportReader::from_reader(&environment, "memory", bytes, None, options)?;
            measure(&environment, &format!("16 + 100 bytes, round {round}"), started, reader)?;
        }
    }
    for file in &files {
        for round in 1..=3 {
            let options = ImportOptions::default().nulls(["", "NA"]);
            let started = environment.clock.monotonic_ns();
            let reader = ImportReader::open(&environment, Path::new(file), options)?;
            let opened_ms = (environment.clock.monotonic_ns() - started) / 1_000_000;
            let name = format!("{file}, round {round}, types inferred in {opened_ms} ms");
            measure(&environment, &name, started, reader)?;
        }
    }
    Ok(())
}

fn measure(
    environment: &Environment,
    name: &str,
    started: u64,
    reader: ImportReader,
) -> Result<(), Error> {
    let mut values = 0;
    let report = reader.read(|batch, _| {
        values += batch.len() * batch.columns.len();
        Ok::<_, Error>(())
    })?;
    let seconds = (environment.clock.monotonic_ns() - started) as f64 / 1e9;
    let (rows, bytes) = (report.rows as f64, report.file_bytes as f64);
    println!(
        "{name}: {rows} rows, {values} values in {seconds:.3} s: {:.2} M rows/s, {:.0} MB/s",
        rows / seconds / 1e6,
        bytes / seconds / 1e6
    );
    Ok(())
}

fn keys_and_texts(rows: u64) -> Vec<u8> {
    let mut text = String::from("key,value\n");
    let mut state = 1u64;
    for row in 0..rows {
        let _ = write!(text, "{row:016x},");
        for _ in 0..5 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let _ = write!(text, "{:020}", state);
        }
        text.push('\n');
    }
    text.into_bytes()
}
