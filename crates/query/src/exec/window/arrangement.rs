//! Rows by partition and order: sorted once for all calls over the same window.
//!
//! ```text
//! row      3 0 5 | 1 4 2      numbers of rows, partition by partition
//! mark     2 1 0 | 2 0 1      2 begins a partition, 1 begins other peers
//! ```
//!
//! Rows are sorted by numbers of few bits ([`Keys::Codes`]) or, where keys have no fixed width, by
//! bytes. They are worked on in chunks of whole partitions, all threads side by side.

use std::ops::Range;

use esker_format::{Batch, Column};
use esker_vfs::parallel_map;

use super::columns::{in_order, vector};
use super::key_codes::{KeyCodes, Keys};
use crate::bind::sort_key::encode_value;
use crate::bind::window::Key;
use crate::bound::{Bound, OrderKey};
use crate::budget::Charge;
use crate::exec::sort::runs::Runs;
use crate::exec::sort::{Location, Sorter};
use crate::meter::Meter;
use crate::{Error, Options, Result, ZONE_ROWS};

/// The fewest rows of a chunk, where there are more.
const CHUNK_ROWS: usize = 8 * ZONE_ROWS;

/// How many batches are sorted by one thread at a time.
const RUN_BATCHES: usize = 16;

/// What a row takes while keys are sorted: its key in a run, with all others, and in a piece.
const SORT_BYTES: usize = 3 * size_of::<u128>();

/// What a row takes then.
const ROW_BYTES: usize = 13;

/// A row begins other peers.
const PEERS: u8 = 1;
/// A row begins another partition.
const PARTITION: u8 = 2;

/// The rows in the order of a window.
pub(super) struct Arrangement<'o> {
    rows: Vec<u32>,
    marks: Vec<u8>,
    chunks: Vec<Range<usize>>,
    /// Of each row, by its number, the chunk that it is in, and its place there.
    pub(super) places: Vec<(u32, u32)>,
    _charge: Charge<'o>,
}

/// Whole partitions, in order.
pub(super) struct Chunk<'a> {
    rows: &'a [u32],
    marks: &'a [u8],
    batches: &'a [Batch],
    is_ordered: bool,
    pub(super) meter: Meter<'a>,
}

impl<'o> Arrangement<'o> {
    /// The rows of full batches in the order of a window.
    ///
    /// # Errors
    /// `OverBudget` with the number of bytes needed; when the query is to end.
    pub(super) fn of(
        batches: &[Batch],
        partition: &[usize],
        order: &[Key<usize>],
        options: &'o Options,
    ) -> Result<Self> {
        let count = batches.iter().map(Batch::len).sum::<usize>();
        let mut charge = options.memory().charge();
        charge.set(count.saturating_mul(ROW_BYTES))?;
        let (rows, marks) = if partition.is_empty() && order.is_empty() {
            let mut marks = vec![0; count];
            marks.first_mut().into_iter().for_each(|first| *first = PARTITION);
            ((0u32..).take(count).collect(), marks)
        } else {
            let keys = Keys::of(batches, partition, order, options)?;
            let mut held = options.memory().charge();
            held.set(keys.bytes())?;
            match &keys {
                Keys::Codes(codes) => by_codes(batches, codes, count, options)?,
                Keys::Bytes(partitions) => {
                    by_bytes(batches, partitions.as_deref(), order, options)?
                }
            }
        };
        let chunks = chunks(&marks);
        let mut places = vec![(0, 0); count];
        for (number, chunk) in (0u32..).zip(&chunks) {
            let rows = rows.get(chunk.clone()).unwrap_or_default();
            for (row, place) in rows.iter().zip(0u32..) {
                if let Some(to) = places.get_mut(*row as usize) {
                    *to = (number, place);
                }
            }
        }
        Ok(Self { rows, marks, chunks, places, _charge: charge })
    }

    /// What `compute` makes of each chunk, in order. Where they are not ordered, all rows of a
    /// partition are peers.
    ///
    /// # Errors
    /// What `compute` fails with; when the query is to end.
    pub(super) fn each_chunk<T: Send>(
        &self,
        batches: &[Batch],
        is_ordered: bool,
        options: &Options,
        compute: impl Fn(&Chunk<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let done = parallel_map(&*options.tasks, &self.chunks, |range| {
            options.expect_time_left()?;
            compute(&Chunk {
                rows: self.rows.get(range.clone()).unwrap_or_default(),
                marks: self.marks.get(range.clone()).unwrap_or_default(),
                batches,
                is_ordered,
                meter: Meter::new(options.limits()),
            })
        });
        done.into_iter().collect()
    }
}

/// Ranges of whole partitions.
fn chunks(marks: &[u8]) -> Vec<Range<usize>> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    while start < marks.len() {
        let least = marks.len().min(start + CHUNK_ROWS);
        let rest = marks.get(least..).unwrap_or_default();
        let next = rest.iter().position(|mark| *mark == PARTITION);
        // default: no other partition begins
        let end = next.map_or(marks.len(), |next| least + next);
        chunks.push(start..end);
        start = end;
    }
    chunks
}

/// Rows of a piece of the order, their marks, and the first and the last key.
struct Piece {
    rows: Vec<u32>,
    marks: Vec<u8>,
    ends: Option<(u128, u128)>,
}

fn by_codes(
    batches: &[Batch],
    codes: &KeyCodes,
    count: usize,
    options: &Options,
) -> Result<(Vec<u32>, Vec<u8>)> {
    let mut charge = options.memory().charge();
    charge.set(count.saturating_mul(SORT_BYTES))?;
    let jobs: Vec<(usize, &[Batch])> = batches.chunks(RUN_BATCHES).enumerate().collect();
    let runs = parallel_map(&*options.tasks, &jobs, |(job, batches)| {
        let mut runs = Runs::default();
        runs.reserve(batches.iter().map(Batch::len).sum());
        let mut first = job * RUN_BATCHES * ZONE_ROWS;
        for batch in *batches {
            options.expect_time_left()?;
            let keys = codes.of_rows(batch, first)?;
            keys.iter().zip(first as u128..).for_each(|(key, row)| runs.push(key << 32 | row));
            first += batch.len();
        }
        runs.sort_last();
        Ok::<_, Error>(runs)
    });
    let mut all = Runs::default();
    all.reserve(count);
    runs.into_iter().try_for_each(|run| run.map(|run| all.merge(&run, 0)))?;
    let order_bits = codes.order_bits() + 32;
    let mark = |before: u128, key: u128| match (before ^ key).checked_shr(32) {
        Some(0) | None => 0,
        // default: more bits than there are tell no partitions apart
        _ if (before ^ key).checked_shr(order_bits).unwrap_or_default() == 0 => PEERS,
        _ => PARTITION,
    };
    let pieces = all.finish(options, |keys| {
        let mut marks = vec![0u8; keys.len().min(1)];
        let pairs = keys.iter().zip(keys.iter().skip(1));
        marks.extend(pairs.map(|(before, key)| mark(*before, *key)));
        let ends = keys.first().copied().zip(keys.last().copied());
        #[allow(clippy::cast_possible_truncation, reason = "the number of a row has 32 bits")]
        Piece { rows: keys.iter().map(|key| *key as u32).collect(), marks, ends }
    })?;
    let (mut rows, mut marks) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut before = None;
    for piece in pieces {
        let Some((first, last)) = piece.ends else { continue };
        let start = marks.len();
        rows.extend(piece.rows);
        marks.extend(piece.marks);
        let begins = before.map_or(PARTITION, |before| mark(before, first));
        marks.get_mut(start).into_iter().for_each(|mark| *mark = begins);
        before = Some(last);
    }
    Ok((rows, marks))
}

/// As keys: the number of the partition, then the keys of the order as they are sorted by.
fn by_bytes(
    batches: &[Batch],
    partitions: Option<&[u32]>,
    order: &[Key<usize>],
    options: &Options,
) -> Result<(Vec<u32>, Vec<u8>)> {
    let jobs: Vec<(usize, &[Batch])> = batches.chunks(RUN_BATCHES).enumerate().collect();
    let sorters = parallel_map(&*options.tasks, &jobs, |(job, batches)| {
        let (mut sorter, mut charge) = (Sorter::new(usize::MAX), options.memory().charge());
        let mut first = job * RUN_BATCHES * ZONE_ROWS;
        for batch in *batches {
            options.expect_time_left()?;
            let numbers = partitions.map(|all| all.get(first..).unwrap_or_default());
            add_keys(&mut sorter, batch, first, numbers, order)?;
            charge.set(sorter.bytes())?;
            first += batch.len();
        }
        Ok::<_, Error>((sorter, charge))
    });
    let (mut all, mut charge) = (Sorter::new(usize::MAX), options.memory().charge());
    for done in sorters {
        let (sorter, _own) = done?;
        all.merge(&sorter);
        charge.set(all.bytes())?;
    }
    let number_bytes = if partitions.is_some() { size_of::<u32>() } else { 0 };
    let (mut rows, mut marks) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
    let mut before: Option<Vec<u8>> = None;
    all.in_order(options, &mut |key, location| {
        let mark = match &before {
            Some(before) if before.as_slice() == key => 0,
            Some(before) if before.get(..number_bytes) == key.get(..number_bytes) => PEERS,
            _ => PARTITION,
        };
        if mark != 0 {
            let into = before.get_or_insert_default();
            into.clear();
            into.extend_from_slice(key);
        }
        marks.push(mark);
        rows.push(location.row);
    })?;
    Ok((rows, marks))
}

/// Adds the rows of a batch, of which the first has some number.
fn add_keys(
    sorter: &mut Sorter,
    batch: &Batch,
    first: usize,
    numbers: Option<&[u32]>,
    order: &[Key<usize>],
) -> Result<()> {
    let vectors = order.iter().map(|key| Ok((key, vector(batch, key.value)?)));
    let vectors = vectors.collect::<Result<Vec<_>>>()?;
    let keys = vectors.iter().map(|(key, vector)| OrderKey {
        bound: Bound::field(key.value, vector.data_type),
        descending: key.descending,
        nulls_first: key.nulls_first,
    });
    let keys: Vec<OrderKey> = keys.collect();
    let mut bytes = Vec::new();
    for (i, row) in (0..batch.len()).zip(first..) {
        bytes.clear();
        if let Some(number) = numbers.and_then(|numbers| numbers.get(i)) {
            bytes.extend(number.to_le_bytes().iter().rev());
        }
        for (key, (_, vector)) in keys.iter().zip(&vectors) {
            encode_value(&mut bytes, key, vector.data_type, vector.value(i));
        }
        let row = u32::try_from(row).map_err(|_| Error::invalid("too many rows of a window"))?;
        sorter.push(&bytes, Location { part: 0, row });
    }
    Ok(())
}

impl Chunk<'_> {
    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The values of a column, in order.
    ///
    /// # Errors
    /// `OutOfRange` when texts would pass 4 GiB.
    pub(super) fn column(&self, column: usize) -> Result<Column> {
        self.meter.work(self.len())?;
        in_order(self.batches, column, self.rows)
    }

    /// The partitions.
    pub(super) fn partitions(&self) -> impl Iterator<Item = Range<usize>> {
        self.ranges(|mark| mark == PARTITION, 0..self.len())
    }

    /// The groups of peers in a partition.
    pub(super) fn peers(&self, partition: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.ranges(|mark| mark != 0 && self.is_ordered, partition)
    }

    /// Whether a row begins other peers than those before it.
    pub(super) fn begins_peers(&self, row: usize) -> bool {
        match self.marks.get(row) {
            Some(&PARTITION) => true,
            Some(&PEERS) => self.is_ordered,
            _ => false,
        }
    }

    /// Ranges of rows, each up to the next whose mark begins another.
    fn ranges(
        &self,
        begins: impl Fn(u8) -> bool,
        within: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let mut start = within.start;
        std::iter::from_fn(move || {
            let first = start.checked_add(1).filter(|_| start < within.end)?;
            let rest = self.marks.get(first..within.end).unwrap_or_default();
            let next = rest.iter().position(|mark| begins(*mark));
            // default: the last range goes up to the end
            let end = next.map_or(within.end, |next| first + next);
            let range = start..end;
            start = end;
            Some(range)
        })
    }
}
