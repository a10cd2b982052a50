//! What a CSV file holds does not depend on how it is cut for the workers, and neither does what is
//! wrong with it.

use esker_format::{Schema, Value};
use esker_import::{Error, ImportOptions, ImportReader};
use esker_vfs::sim::{Options, Simulation};

/// The longest file tried. Cut into single records, it is as many tasks.
const FILE_BYTES_MAX: usize = 512;

/// The target: a byte of options, then the file.
pub fn run(data: &[u8]) {
    let Some((choices, text)) = data.split_first() else { return };
    let text = text.get(..FILE_BYTES_MAX).unwrap_or(text);
    let whole = read(*choices, text, 1 << 20);
    let cut = read(*choices, text, 1);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => assert_eq!(whole, cut, "{choices:#x}"),
        (Err(whole), Err(cut)) => {
            assert_eq!(whole.kind(), cut.kind());
            assert_eq!(whole.to_string(), cut.to_string());
        }
        (whole, cut) => panic!("whole: {whole:?}, cut: {cut:?}"),
    }
}

fn read(choices: u8, text: &[u8], chunk_bytes: usize) -> Result<(Schema, Vec<Vec<Value>>), Error> {
    let simulation = Simulation::new(u64::from(choices), Options::default());
    let options = ImportOptions::default()
        .header(choices & 1 == 0)
        .delimiter(if choices & 2 == 0 { b',' } else { b'\t' })
        .nulls(if choices & 4 == 0 { vec![""] } else { vec!["NA", "null"] })
        .chunk_bytes(chunk_bytes);
    let bytes = std::io::Cursor::new(text.to_vec());
    let environment = simulation.environment();
    let reader = ImportReader::from_reader(&environment, "fuzz.csv", bytes, None, options)?;
    let schema = reader.schema().clone();
    let mut rows = Vec::new();
    let report = reader.read(|batch, _| {
        for row in 0..batch.len() {
            let values = batch.columns.iter().map(|column| column.value(row).to_owned());
            rows.push(values.collect());
        }
        Ok::<_, Error>(())
    })?;
    assert_eq!(report.rows, rows.len() as u64);
    Ok((schema, rows))
}
