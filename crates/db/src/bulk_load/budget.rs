//! How much memory a load takes, and how it makes do with little.
//!
//! Rows gathered, and segments being written, are counted before they take memory. With a high
//! limit segments are as large as they should be, and every core writes one. Otherwise they are
//! smaller, and fewer are written at a time:
//!
//! ```text
//! no memory for the next rows?
//!    used batches wait for rows      ─► free them
//!    enough rows for a small segment ─► write it
//!    segments are being written      ─► wait until one is done
//!    groups can be sealed            ─► have them sealed
//!    some rows have been gathered    ─► write them, few as they are
//!    more than one row is to come    ─► try with half of them
//!    none of it                      ─► refuse with the number needed
//! ```

use esker_arena::{Category, Reservation};
use esker_format::{Batch, Column, Schema, Value};

use crate::engine::Engine;

/// Bytes gathered before a segment is written.
const SEGMENT_BYTES: u64 = 192 << 20;
/// The same, however little memory there is.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Smaller segments are not worth a core of their own.
const SEGMENT_BYTES_WANTED: u64 = 16 << 20;
/// What writing and indexing a row takes beside its values: row id, hash and location.
const ROW_BYTES: u64 = 24;
/// What writing takes beside that: the bytes of one write, a block, and some heads.
const WRITE_BYTES: u64 = (2 << 20) + (128 << 10);
/// Memory of what is gathered, over its bytes: it grows by doubling.
const GATHERED_FACTOR: u64 = 2;
/// What encoding takes, over the bytes of the largest column.
const ENCODED_FACTOR: u64 = 2;
/// What a memory database writes to, over the bytes of the segment, which it keeps.
const MEMORY_FACTOR: u64 = 3;
/// Allowed for rows when segments are sized, in percent of what values take.
const ROWS_PERCENT: u64 = 25;

/// What a load may gather and write at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes gathered before a segment is written.
    pub segment_bytes: usize,
    /// Segments written at a time, at the most.
    pub workers: usize,
    /// What writing takes, over the bytes of the rows.
    write_factor: u64,
    /// What a row takes beside its values.
    row_bytes: u64,
}

impl Budget {
    pub fn of(engine: &Engine, schema: &Schema) -> Self {
        let write_factor = if engine.is_durable() { 0 } else { MEMORY_FACTOR };
        let factor = GATHERED_FACTOR + ENCODED_FACTOR + write_factor;
        let share = engine.load_share() * 100 / (factor * (100 + ROWS_PERCENT));
        let cores = engine.environment.tasks.parallelism().max(1);
        // default: a limit beyond all memory
        let by_share = usize::try_from(share / SEGMENT_BYTES_WANTED).unwrap_or(usize::MAX);
        let workers = by_share.saturating_sub(1).clamp(1, cores);
        let bytes = (share / (workers as u64 + 1)).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES);
        let nullable = schema.fields().iter().filter(|field| field.nullable).count() as u64;
        Self {
            // default: a limit beyond all memory
            segment_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            workers,
            write_factor,
            row_bytes: ROW_BYTES + GATHERED_FACTOR * nullable,
        }
    }

    /// What the gathered rows of a small load take as rows of values, which a commit that looks
    /// each key up is made of.
    pub fn rows_cost(fields: usize, rows: usize, bytes: usize) -> u64 {
        let row = size_of::<Vec<Value>>() + fields * size_of::<Value>();
        let values = (rows as u64).saturating_mul(row as u64);
        GATHERED_FACTOR.saturating_mul(values.saturating_add(bytes as u64))
    }

    fn writing(&self, rows: usize, bytes: u64, largest: u64) -> u64 {
        let written = self.write_factor * bytes + WRITE_BYTES.min(GATHERED_FACTOR * bytes);
        ENCODED_FACTOR * largest + written + self.row_bytes * rows as u64
    }
}

/// Rows and the memory counted for them.
pub(super) struct Gathered {
    pub batch: Batch,
    /// Bytes of the values.
    pub bytes: usize,
    pub held: Reservation,
    /// What the batch had set aside when it was empty.
    capacity: u64,
}

impl Gathered {
    /// An empty batch, of new or used memory that `held` counts.
    pub fn new(batch: Batch, held: Reservation) -> Self {
        let capacity = held.bytes();
        Self { batch, bytes: 0, held, capacity }
    }

    /// A batch without memory.
    pub fn fresh(batch: Batch, engine: &Engine) -> Self {
        Self::new(batch, Reservation::new(&engine.arena, Category::Load))
    }

    /// What this takes with some more rows, at the most, until it is a segment.
    pub fn needed_with(&self, budget: &Budget, rows: usize, bytes: usize) -> u64 {
        let (rows, bytes) = (self.batch.len() + rows, (self.bytes + bytes) as u64);
        self.capacity.max(GATHERED_FACTOR * bytes) + budget.writing(rows, bytes, bytes)
    }

    /// Ends gathering: counts what there is, not what might have come.
    pub fn settle(&mut self, budget: &Budget) {
        let columns = || self.batch.columns.iter().map(|column| column.byte_count() as u64);
        // default: no columns take nothing
        let (bytes, largest) = (columns().sum(), columns().max().unwrap_or_default());
        let writing = budget.writing(self.batch.len(), bytes, largest);
        self.held.shrink(capacity(&self.batch) + writing);
    }

    /// Counts the batch and so many bytes more, for rows made of it. False, and nothing changed,
    /// when there is no memory.
    pub fn settle_as_rows(&mut self, engine: &Engine, rows_cost: u64) -> bool {
        let needed = capacity(&self.batch) + rows_cost;
        if !engine.reserve_for_load(&mut self.held, needed) {
            return false;
        }
        self.held.shrink(needed);
        true
    }

    /// Has an empty batch set memory aside?
    pub fn is_spare(&self) -> bool {
        self.batch.is_empty() && self.capacity > 0
    }

    /// Empties the batch and keeps its memory.
    pub fn into_spare(mut self) -> (Batch, Reservation) {
        self.batch.columns.iter_mut().for_each(Column::clear);
        self.held.shrink(capacity(&self.batch));
        (self.batch, self.held)
    }
}

fn capacity(batch: &Batch) -> u64 {
    batch.columns.iter().map(|column| column.capacity_bytes() as u64).sum()
}

/// How many of a batch's rows from `start` on, at least one and at most `most`, have up to
/// `bytes_max` bytes together; and their bytes.
pub(super) fn rows_that_fit(
    batch: &Batch,
    start: usize,
    most: usize,
    bytes_max: usize,
) -> (usize, usize) {
    let bytes_of = |rows: usize| -> usize {
        batch.columns.iter().map(|column| column.byte_count_of(start..start + rows)).sum()
    };
    let all = bytes_of(most);
    if all <= bytes_max {
        return (most, all);
    }
    let (mut fits, mut too_many) = (1, most);
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        if bytes_of(middle) <= bytes_max { fits = middle } else { too_many = middle }
    }
    (fits, bytes_of(fits))
}
