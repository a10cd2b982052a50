//! Keys and texts that need not be stored to be checked: both follow from a number.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Result;

/// Bytes of a text.
pub(crate) const TEXT_BYTES: usize = 100;
/// Bytes of a row of the large table: the key and the text.
pub(crate) const ROW_BYTES: usize = 16 + TEXT_BYTES;

const POOL_BYTES: usize = 64 << 10;

/// Mixes a number so that neighbours share nothing; no two numbers give the same.
pub(crate) fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The key of row `row` of the large table: 16 bytes.
pub(crate) fn key(row: u64) -> String {
    format!("{:016x}", mix(row))
}

/// Texts of [`TEXT_BYTES`] letters, digits and spaces.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    pool: String,
}

impl Texts {
    pub(crate) fn new() -> Self {
        let alphabet = b"abcdefghijklmnopqrstuvwxyz012345 678 9 ".as_slice();
        let letter = |i| {
            let place = usize::try_from(mix(i) >> 32).unwrap_or(0) % alphabet.len();
            char::from(alphabet.get(place).copied().unwrap_or(b' '))
        };
        Self { pool: (0..(POOL_BYTES + TEXT_BYTES) as u64).map(letter).collect() }
    }

    /// The text of row `row` of the large table.
    pub(crate) fn text(&self, row: u64) -> &str {
        let start = usize::try_from(mix(row) >> 20).unwrap_or(0) % POOL_BYTES;
        self.pool.get(start..start + TEXT_BYTES).unwrap_or_default()
    }
}

/// Writes the large table as CSV.
pub(crate) fn write_csv(path: &Path, rows: u64) -> Result<()> {
    let texts = Texts::new();
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    writeln!(out, "key,value")?;
    for row in 0..rows {
        writeln!(out, "{:016x},{}", mix(row), texts.text(row))?;
    }
    out.flush()?;
    Ok(())
}
