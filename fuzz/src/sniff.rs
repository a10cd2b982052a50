//! What is found out of a file, its dialect and its types, does not depend on how it is cut for the
//! workers, nor on how many rows are looked at first.

use esker_format::{Schema, Value};
use esker_import::{Again, Error, ErrorKind, Format, ImportOptions, ImportReader};
use esker_vfs::sim::{Options, Simulation};

/// The longest file tried. Cut into single records, it is as many tasks.
const FILE_BYTES_MAX: usize = 512;

/// The schema, the rows, and how many were left out.
type Found = (Schema, Vec<Vec<Value>>, usize);

/// The target: a byte of options, then the file.
pub fn run(data: &[u8]) {
    let Some((choices, text)) = data.split_first() else { return };
    let text = text.get(..FILE_BYTES_MAX).unwrap_or(text);
    let options = options(*choices);
    let whole = read(*choices, text, options.clone());
    let cut = read(*choices, text, options.clone().chunk_bytes(1));
    let sampled = options.chunk_bytes(1).whole_bytes_max(1).sample_rows(1);
    let sampled = read(*choices, text, sampled);
    for (how, other) in [("cut", cut), ("sampled", sampled)] {
        match (&whole, other) {
            (Ok(whole), Ok(other)) => assert_eq!(*whole, other, "{how} {choices:#x}"),
            // Of several faults, either may be met first.
            (Err(_), Err(_)) => {}
            (whole, other) => panic!("whole: {whole:?}, {how}: {other:?}"),
        }
    }
}

fn options(choices: u8) -> ImportOptions {
    let is = |bit: u8| choices & 1 << bit != 0;
    let format = if is(0) { Format::Json } else { Format::Csv };
    let options = ImportOptions::default().format(format).spellings().find_rows();
    let options = options.strict(is(1)).pass_over(is(2)).decimal_comma(is(3));
    let options = if is(4) { options.nulls(["NA", "-"]) } else { options };
    if is(5) {
        return options.sniff_delimiter();
    }
    options.sniff_delimiter().sniff_quote().sniff_comment().sniff_header()
}

/// Reads a file; begins again, once, where its first rows do not speak for all.
fn read(choices: u8, text: &[u8], options: ImportOptions) -> Result<Found, Error> {
    let simulation = Simulation::new(u64::from(choices), Options::default());
    let environment = simulation.environment();
    let bytes = std::io::Cursor::new(text.to_vec());
    let length = Some(text.len() as u64);
    let reader = ImportReader::from_reader(&environment, "fuzz", bytes, length, options)?;
    let again = reader.again();
    match rows_of(choices, reader) {
        Err(error) if error.kind() == ErrorKind::Contradicted => {
            let again = again.map(Again::open);
            rows_of(choices, again.unwrap_or(Err(error))?)
        }
        found => found,
    }
}

fn rows_of(choices: u8, reader: ImportReader) -> Result<Found, Error> {
    let schema = reader.schema().clone();
    let (mut rows, mut rejects) = (Vec::new(), 0);
    let mut consume = |batch: esker_format::Batch| {
        for row in 0..batch.len() {
            let values = batch.columns.iter().map(|column| column.value(row).to_owned());
            rows.push(values.collect());
        }
        Ok::<_, Error>(())
    };
    let report = if choices & 4 != 0 {
        reader.read_or_reject(
            |batch, _| consume(batch),
            |_, _| {
                rejects += 1;
                Ok(())
            },
        )?
    } else {
        reader.read(|batch, _| consume(batch))?
    };
    assert_eq!((report.rows, report.rejects), (rows.len() as u64, rejects as u64));
    Ok((schema, rows, rejects))
}
