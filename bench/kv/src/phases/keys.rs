//! Keys that were chosen to be bad for an index, beside random ones.

use std::path::Path;

use super::timed;
use crate::data::{Data, KeyKind};
use crate::store::{Kind, Reader, Result};

/// Entries of each kind.
const ENTRIES: usize = 100_000;
/// Of so many tries the fastest counts.
const TRIES: usize = 3;
/// Of all keys.
const SEED: u64 = 11;

const BAD: [KeyKind; 3] = [KeyKind::SharedPrefix, KeyKind::Counter, KeyKind::EqualHashes];

/// How fast single puts and reads of the worst kind of keys are, as parts of those of random keys.
pub fn worst(kind: &Kind, dir: &Path) -> Result<(f64, f64)> {
    let random = fastest(kind, dir, KeyKind::Random)?;
    let (mut puts, mut reads) = (f64::MAX, f64::MAX);
    for keys in BAD {
        let seconds = fastest(kind, dir, keys)?;
        eprintln!(
            "  {:8} {keys:?}: {:.2}, {:.2}",
            kind.name,
            random.0 / seconds.0,
            random.1 / seconds.1
        );
        puts = puts.min(random.0 / seconds.0);
        reads = reads.min(random.1 / seconds.1);
    }
    Ok((puts, reads))
}

fn fastest(kind: &Kind, dir: &Path, keys: KeyKind) -> Result<(f64, f64)> {
    let data = Data::of_kind(keys, ENTRIES, SEED);
    let mut fastest = (f64::MAX, f64::MAX);
    for number in 0..TRIES {
        let dir = dir.join(format!("keys-{keys:?}-{number}"));
        std::fs::create_dir_all(&dir)?;
        let store = (kind.open)(&dir, &data)?;
        let puts = timed(|| store.put_unsynced(&data, 0..ENTRIES))?;
        let reads = timed(|| read_all(&*store.reader()?, &data))?;
        drop(store);
        std::fs::remove_dir_all(&dir)?;
        fastest = (fastest.0.min(puts), fastest.1.min(reads));
    }
    Ok(fastest)
}

fn read_all(reader: &dyn Reader, data: &Data) -> Result<()> {
    for at in &data.shuffled {
        let at = *at as usize;
        if !reader.has(data.key(at), data.value(at))? {
            return Err(format!("entry {at} is wrong").into());
        }
    }
    Ok(())
}
