//! The first rows of an order out of the runs of several parts at once.
//!
//! Each part alone would give as many rows as are wanted, of which most are not: with seven parts
//! six of seven. Side by side, the walk that has come least far takes the next step, and all end
//! once enough rows lie before where each of them stands.
//!
//! ```text
//! wanted 5          greatest key so far
//! part 0   1 4 9        9
//! part 1   2 3 5        5   ← 1 2 3 4 5 lie before or at it: what comes is greater
//! part 2   6 8          8
//! ```
//!
//! Invariant: what a walk takes later is not less, in the order, than any row that it has taken.

use crate::Result;
use crate::exec::sort::index_order_scan::{
    BLOCK_ENTRIES, IndexOrderRows, IndexOrderScan, Position, Step,
};

/// The most rows that are found so, and how many more are looked at before walks go on one by one,
/// in parallel.
const ROWS_MAX: usize = 4_096;

/// A walk, and how far it has come.
struct Walker<'w, 'a> {
    walk: &'w IndexOrderScan<'w, 'a>,
    position: Position,
    /// The greatest key among its rows, and its part: of equal keys the one of the first part
    /// comes first.
    greatest: (Option<Vec<u8>>, u32),
}

/// The first rows of the order; `None` where the walks had better be taken one by one.
///
/// # Errors
/// When a run or a column cannot be read.
pub(crate) fn rows(
    walks: &[Option<IndexOrderScan<'_, '_>>],
    wanted: usize,
) -> Result<Option<IndexOrderRows>> {
    let count = walks.iter().flatten().count();
    if count < 2 || wanted > ROWS_MAX {
        return Ok(None);
    }
    let (least, most) = BLOCK_ENTRIES;
    let block_entries = (wanted / count).clamp(least, most);
    let mut walkers = Vec::with_capacity(count);
    for (walk, part) in walks.iter().zip(0..) {
        let Some(walk) = walk else { continue };
        let position = walk.start(block_entries)?;
        walkers.push(Walker { walk, position, greatest: (None, part) });
    }
    let mut walked = IndexOrderRows::new(wanted);
    while let Some(at) = least_far(&walkers)
        && let Some(walker) = walkers.get_mut(at)
    {
        let known = walked.sorter.last_wanted();
        if known.is_some_and(|(key, part)| {
            (Some(key), part) <= (walker.greatest.0.as_deref(), walker.greatest.1)
        }) {
            break;
        }
        let before = walked.sorter.len();
        match walker.walk.step(&mut walker.position, &mut walked)? {
            Step::Taken => {
                if let Some(key) = walked.sorter.greatest_from(before) {
                    walker.greatest.0 = Some(key.to_vec());
                }
            }
            Step::Ended => drop(walkers.swap_remove(at)),
            Step::TooMany => return Ok(None),
        }
        if walked.counts.rows_scanned > (wanted + ROWS_MAX) as u64 {
            return Ok(None);
        }
    }
    Ok(Some(walked))
}

/// The walk that has come least far.
fn least_far(walkers: &[Walker<'_, '_>]) -> Option<usize> {
    let places = walkers.iter().enumerate();
    places.min_by(|(_, a), (_, b)| a.greatest.cmp(&b.greatest)).map(|(at, _)| at)
}
