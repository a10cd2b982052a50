//! What a file of JSON rows holds does not depend on how it is cut for the workers, and neither
//! does what is wrong with it.

use esker_format::{Schema, Value};
use esker_import::{Error, Format, ImportOptions, ImportReader, schema_text};
use esker_vfs::sim::{Options, Simulation};

/// The longest file tried. Cut into single rows, it is as many tasks.
const FILE_BYTES_MAX: usize = 512;

/// A field of every kind that is read in its own way.
const FIELDS: &str = "a i64, b text, c bool, d f64, e date, f bytes, key text not null, \
                      primary key (key)";

/// The target `json`: a byte of options, then an array or object of rows.
pub fn run(data: &[u8]) {
    agree(Format::Json, data);
}

/// The target `ndjson`: a byte of options, then lines.
pub fn run_lines(data: &[u8]) {
    agree(Format::Ndjson, data);
}

fn agree(format: Format, data: &[u8]) {
    let Some((choices, text)) = data.split_first() else { return };
    let text = text.get(..FILE_BYTES_MAX).unwrap_or(text);
    let whole = read(format, *choices, text, 1 << 20);
    for chunk_bytes in [1, 2 + usize::from(*choices >> 2)] {
        match (&whole, &read(format, *choices, text, chunk_bytes)) {
            (Ok(whole), Ok(cut)) => assert_eq!(whole, cut, "{choices:#x}"),
            (Err(whole), Err(cut)) => {
                assert_eq!(whole.kind(), cut.kind());
                assert_eq!(whole.to_string(), cut.to_string());
            }
            (whole, cut) => panic!("whole: {whole:?}, cut: {cut:?}"),
        }
    }
}

/// The rows, and the lines of what was left out.
type Found = (Schema, Vec<Vec<Value>>, Vec<u64>);

fn read(format: Format, choices: u8, text: &[u8], chunk_bytes: usize) -> Result<Found, Error> {
    let simulation = Simulation::new(u64::from(choices), Options::default());
    let mut options = ImportOptions::default().format(format).chunk_bytes(chunk_bytes);
    if choices & 1 == 0 {
        options = options.schema(schema_text::parse(FIELDS)?);
    }
    let bytes = std::io::Cursor::new(text.to_vec());
    let environment = simulation.environment();
    let reader = ImportReader::from_reader(&environment, "fuzz.json", bytes, None, options)?;
    let schema = reader.schema().clone();
    let (mut rows, mut rejects) = (Vec::new(), Vec::new());
    let consume = |batch: esker_format::Batch, _| {
        for row in 0..batch.len() {
            let values = batch.columns.iter().map(|column| column.value(row).to_owned());
            rows.push(values.collect());
        }
        Ok::<_, Error>(())
    };
    let report = if choices & 2 == 0 {
        reader.read(consume)?
    } else {
        reader.read_or_reject(consume, |reject, _| {
            rejects.extend(reject.error.line());
            Ok(())
        })?
    };
    assert_eq!((report.rows, report.rejects), (rows.len() as u64, rejects.len() as u64));
    Ok((schema, rows, rejects))
}
