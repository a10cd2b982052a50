//! Reading a segment.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use esker_arena::{Arena, Category, SparseWords};
use esker_format::checksum::checksum;
use esker_format::edit::SegmentEntry;
use esker_format::schema::IndexId;
use esker_format::segment::{
    BLOCK_BYTES, ColumnLayout, Encoding, Extent, Footer, MAGIC, TRAILER_BYTES, Trailer, ZONE_ROWS,
};
use esker_format::{Codes, DataType, Field, TableId, Value, ValueRef, invariant};
use esker_log::sabotage::Bug;
use esker_vfs::Mapping;
use esker_vfs::sync::{ArcSwap, ArcSwapOption, AtomicBool, AtomicU64, Mutex};

use super::blocks::{Blocks, FOOTER_BLOCK, TRAILER_BLOCK, block_place};
use super::delete_bitmap::DeleteBitmap;
use super::file_name::run_file_id;
use super::files::SegmentFiles;
use super::forms::FormMap;
use super::known_lengths::KnownLengths;
use super::plain::{byte, cast};
use super::runs::Runs;
use super::scattered_heap::ScatteredHeap;
use crate::column_map::ColumnMap;
use crate::dead_blocks::DeadBlocks;
use crate::delete_stamp::DeleteStamp;
use crate::index_run::IndexRun;
use crate::key_order::SortedRows;
use crate::known_expiry::KnownExpiry;
use crate::location::{Location, row_word};
use crate::segment::cell_map::CellMap;
use crate::value_file::ValueFile;
use crate::{Error, Result};

/// Who opens a segment does not know how many rows it has.
pub(crate) const ANY_ROWS: u32 = u32::MAX;

/// When the rows of a segment were created, while some snapshot may be older than that.
pub enum CreateStamp {
    /// All by one commit whose number is stored here once it is known; [`u64::MAX`] before that.
    Load(Arc<AtomicU64>),
    /// Runs of rows (first row, commit), by rising row.
    Runs(Vec<(u32, u64)>),
}

/// An immutable run of rows, and which of them have died.
pub struct Segment {
    pub(super) id: u64,
    pub(super) footer: Footer,
    pub(super) mapping: Mapping,
    pub(super) blocks: Option<Blocks>,
    pub(super) files: Option<Arc<SegmentFiles>>,
    pub(super) value_files: Arc<[Arc<ValueFile>]>,
    /// Of the columns that have long values.
    pub(super) heaps: BTreeMap<usize, ScatteredHeap>,
    file_bytes: u64,
    holds_through: u64,
    /// What is added to the row ids in the file.
    pub(super) row_id_shift: AtomicU64,
    pub(super) column_map: ColumnMap,
    pub(super) cells: CellMap,
    pub(super) forms: FormMap,
    deleted: SparseWords,
    /// Of which rows `deleted` says something.
    pub(super) delete_bitmap: DeleteBitmap,
    pub(crate) replaced: SparseWords,
    dead: AtomicU64,
    /// The commit from which on all rows are dead that did not die before; 0 while there is none.
    ended_at: AtomicU64,
    pub(crate) dead_blocks: DeadBlocks,
    /// How many rows have got a successor after they had died.
    succeeded: AtomicU64,
    created: ArcSwapOption<CreateStamp>,
    /// No row was created after this commit.
    created_through: AtomicU64,
    doomed: AtomicBool,
    /// Its rows in the order of indexes, as far as they are built.
    runs: ArcSwap<Runs>,
    /// Bytes of each column when it is not encoded, once they were needed.
    pub(super) decoded: OnceLock<Vec<u64>>,
    /// Its rows by row id, where they do not lie so, while the log is replayed.
    pub(super) by_row_id: Mutex<Option<Arc<Vec<u32>>>>,
    /// The least and the greatest row id of each zone as the file has them, once they were needed.
    pub(super) row_id_zones: OnceLock<Box<[(u64, u64)]>>,
    /// Its rows in the order of the key, where they do not lie so, once it was needed.
    pub(crate) by_key: SortedRows,
    /// When its rows expire, once it was needed.
    pub(crate) expiry: KnownExpiry,
    /// What queries found out of the lengths of texts.
    pub(super) lengths: KnownLengths,
}

impl Segment {
    /// Opens a segment file: reads and verifies footer and trailer, maps the data.
    ///
    /// # Errors
    /// `Corrupt` naming the file, or what the machine says.
    pub fn open(
        files: &Arc<SegmentFiles>,
        entry: &SegmentEntry,
        arena: &Arc<Arena>,
    ) -> Result<Self> {
        let path = files.path(entry.id);
        let database = files.database();
        let at = |e: Error| e.at(path.display());
        let file = files.open(entry.id)?;
        let len = file.len()?;
        if len != entry.file_bytes {
            let want = entry.file_bytes;
            return Err(at(Error::corrupt(format!("{len} bytes long, the catalogue says {want}"))));
        }
        let mut tail = vec![0; TRAILER_BYTES];
        let tail_offset = len.saturating_sub(TRAILER_BYTES as u64);
        file.read_exact_at(&mut tail, tail_offset).map_err(|e| at(e.into()))?;
        let place = |block| block_place(database, entry.id, block);
        let trailer = Trailer::decode(&tail, place(TRAILER_BLOCK)).map_err(|e| at(e.into()))?;
        let footer_end = trailer.footer_offset.checked_add(trailer.footer_len);
        if footer_end != Some(tail_offset) {
            return Err(at(Error::corrupt("the footer does not end at the trailer")));
        }
        let Ok(footer_len) = usize::try_from(trailer.footer_len) else {
            let message = format!("a footer of {} bytes", trailer.footer_len);
            return Err(at(Error::corrupt(message)));
        };
        let mut bytes = vec![0; footer_len];
        file.read_exact_at(&mut bytes, trailer.footer_offset)?;
        if checksum(place(FOOTER_BLOCK), &bytes) != trailer.footer_checksum {
            let offset = trailer.footer_offset;
            return Err(at(Error::corrupt(format!("offset {offset}: footer checksum"))));
        }
        let footer = Footer::decode(&bytes, trailer.footer_offset, trailer.version);
        let mut footer = footer.map_err(|e| at(e.into()))?;
        let is_any = entry.rows == ANY_ROWS;
        if footer.segment != entry.id || !(is_any || footer.rows == entry.rows) {
            return Err(at(Error::corrupt("the footer names another segment")));
        }
        // Nothing is mapped where copies are read.
        let mapped = if files.copies() { 0 } else { trailer.footer_offset };
        let mapping = file.map(mapped)?;
        let checksums = std::mem::take(&mut footer.block_checksums);
        let data_end = trailer.footer_offset;
        let blocks = Blocks::new(file, path.clone(), database, entry.id, data_end, checksums);
        files.keep_heap_blocks(arena);
        let mut segment = Self::assemble(footer, mapping, arena)?;
        segment.blocks = Some(if files.copies() { blocks.with_copies()? } else { blocks });
        segment.files = Some(Arc::clone(files));
        segment.file_bytes = len;
        segment.holds_through = entry.holds_through;
        segment.shift_row_ids(entry.row_id_shift).map_err(|e| e.at(path.display()))?;
        segment.open_value_files().map_err(|e| e.at(path.display()))?;
        Ok(segment)
    }

    /// A segment over bytes in memory, as [`super::SegmentWriter`] made them.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a segment.
    pub fn in_memory(mapping: Mapping, arena: &Arc<Arena>, holds_through: u64) -> Result<Self> {
        let mut tail = esker_format::codec::Reader::new(&mapping);
        tail.raw(mapping.len().saturating_sub(TRAILER_BYTES) + MAGIC.len())?;
        let (version, _reserved) = (tail.u32()?, tail.u32()?);
        let (offset, len) = (tail.u64()?, tail.u64()?);
        let (from, to) = (byte(offset), byte(offset + len));
        let Some(footer) = mapping.get(from..to) else {
            return Err(Error::corrupt(format!("a footer at {from}..{to} of {}", mapping.len())));
        };
        let footer = Footer::decode(footer, offset, version)?;
        let file_bytes = mapping.len() as u64;
        let mut segment = Self::assemble(footer, mapping, arena)?;
        segment.file_bytes = file_bytes;
        segment.holds_through = holds_through;
        Ok(segment)
    }

    fn assemble(footer: Footer, mapping: Mapping, arena: &Arc<Arena>) -> Result<Self> {
        let column_map = ColumnMap::new(footer.columns.iter().map(|column| column.field));
        let cells = CellMap::of(&footer.columns);
        let forms = FormMap::of(&footer.columns);
        Ok(Self {
            id: footer.segment,
            footer,
            mapping,
            blocks: None,
            files: None,
            value_files: Arc::new([]),
            heaps: BTreeMap::new(),
            file_bytes: 0,
            holds_through: 0,
            row_id_shift: AtomicU64::new(0),
            column_map,
            cells,
            forms,
            deleted: SparseWords::new(arena, Category::Visibility)?,
            delete_bitmap: DeleteBitmap::default(),
            dead_blocks: DeadBlocks::default(),
            replaced: SparseWords::new(arena, Category::Visibility)?,
            dead: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
            created: ArcSwapOption::empty(),
            created_through: AtomicU64::new(0),
            doomed: AtomicBool::new(false),
            runs: ArcSwap::default(),
            decoded: OnceLock::new(),
            by_row_id: Mutex::default(),
            row_id_zones: OnceLock::new(),
            by_key: SortedRows::default(),
            expiry: KnownExpiry::default(),
            lengths: KnownLengths::default(),
        })
    }

    /// At recovery: rows that were dead when the file was written died before any snapshot of this
    /// opening.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn mark_initially_dead(&self) -> Result<()> {
        let Some(extent) = self.footer.dead else { return Ok(()) };
        let bits: Vec<u8> = self.bytes(extent, 0..byte(extent.len))?.to_vec();
        for row in 0..self.row_count() {
            if bits.get(row / 8).is_some_and(|b| b >> (row % 8) & 1 == 1) {
                self.mark_deleted(row, 1)?;
            }
        }
        Ok(())
    }

    /// The table of its rows.
    #[must_use]
    pub fn table(&self) -> TableId {
        self.footer.table
    }

    /// The number.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many rows it has, dead ones included.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.footer.rows as usize
    }

    /// How many rows are dead, at any commit.
    #[must_use]
    pub fn dead_count(&self) -> u64 {
        match self.ended_at() {
            Some(_) => u64::from(self.footer.rows),
            None => self.dead.load(Ordering::Acquire),
        }
    }

    /// The commit that ended all rows which lived then.
    #[must_use]
    pub fn ended_at(&self) -> Option<u64> {
        Some(self.ended_at.load(Ordering::Acquire)).filter(|commit| *commit != 0)
    }

    /// True when all rows had ended for readers at a commit.
    #[must_use]
    pub fn has_ended_at(&self, at: u64) -> bool {
        let is_planted = Bug::EndedSegmentSeenByNewerReader.is_planted();
        self.ended_at().is_some_and(|commit| commit <= at) && !is_planted
    }

    /// Ends all rows that live, in one step; says how many these are. Under the commit lock, or at
    /// recovery. A segment that has ended stays as it is.
    pub fn end(&self, commit: u64) -> u64 {
        if self.ended_at().is_some() {
            return 0;
        }
        let living = u64::from(self.footer.rows).saturating_sub(self.dead_count());
        self.ended_at.store(commit, Ordering::Release);
        living
    }

    /// The length of the file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// It holds the effects of all commits up to this one.
    #[must_use]
    pub fn holds_through(&self) -> u64 {
        self.holds_through
    }

    /// Its entry in the catalogue.
    #[must_use]
    pub fn entry(&self) -> SegmentEntry {
        SegmentEntry {
            id: self.id,
            rows: self.footer.rows,
            file_bytes: self.file_bytes,
            holds_through: self.holds_through,
            row_id_shift: self.row_id_shift.load(Ordering::Acquire),
        }
    }

    /// Says when its rows were created; they count as created long ago otherwise.
    pub fn set_create_stamp(&self, created: CreateStamp) {
        self.created_through.store(u64::MAX, Ordering::Release);
        self.created.store(Some(Arc::new(created)));
    }

    /// Forgets when rows were created, once no snapshot is older than the newest of them.
    pub fn settle(&self, oldest: u64) {
        if self.newest_commit() <= oldest {
            self.created.store(None);
            self.created_through.store(0, Ordering::Release);
        }
    }

    /// The newest commit that created a row; [`u64::MAX`] while a load is not committed.
    #[must_use]
    pub fn newest_commit(&self) -> u64 {
        match self.created.load().as_deref() {
            None => 0,
            Some(CreateStamp::Load(commit)) => commit.load(Ordering::Acquire),
            Some(CreateStamp::Runs(runs)) => runs.iter().map(|run| run.1).fold(0, u64::max),
        }
    }

    /// True while the load that wrote it has not committed.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        matches!(self.created.load().as_deref(),
            Some(CreateStamp::Load(commit)) if commit.load(Ordering::Acquire) == u64::MAX)
    }

    /// True when a row had been created at commit `at`.
    #[must_use]
    #[inline]
    pub fn is_created_at(&self, row: usize, at: u64) -> bool {
        let mut newest = self.created_through.load(Ordering::Acquire);
        if newest == u64::MAX {
            // Once it is known, no reader looks at all runs again.
            newest = self.newest_commit();
            self.created_through.fetch_min(newest, Ordering::AcqRel);
        }
        newest <= at || self.created(row) <= at
    }

    /// The commit that created a row; 0 when that was long ago.
    #[must_use]
    pub fn created(&self, row: usize) -> u64 {
        match self.created.load().as_deref() {
            None => 0,
            Some(CreateStamp::Load(commit)) => commit.load(Ordering::Acquire),
            Some(CreateStamp::Runs(runs)) => {
                let after = runs.partition_point(|run| run.0 as usize <= row);
                let run = after.checked_sub(1).and_then(|at| runs.get(at));
                debug_assert!(run.is_some(), "row {row} of segment {} is in no run", self.id);
                // default: the first run begins with the first row
                run.map_or(0, |run| run.1)
            }
        }
    }

    /// The commit that killed a row, 0 while it lives.
    #[must_use]
    #[inline]
    pub fn deleted(&self, row: usize) -> u64 {
        self.delete_stamp(row).commit()
    }

    #[inline]
    pub(crate) fn delete_stamp(&self, row: usize) -> DeleteStamp {
        let is_dead = self.delete_bitmap.has(row);
        let own = if is_dead { self.deleted.get(row_word(row)) } else { 0 };
        match (own, self.ended_at.load(Ordering::Acquire)) {
            (0, ended_at) if ended_at != 0 => DeleteStamp::deleted(ended_at),
            _ => DeleteStamp::from_word(own),
        }
    }

    /// Marks a row dead from `commit` on. Under the commit lock, or at recovery.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn mark_deleted(&self, row: usize, commit: u64) -> Result<()> {
        self.delete(row, DeleteStamp::deleted(commit))
    }

    pub(crate) fn delete(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        // A second count would make a block look dead while one of its rows lives.
        let killed_by = self.deleted(row);
        let place = format_args!("segment {}", self.id);
        invariant!(killed_by == 0, place, "row {row} dies once, found dead since {killed_by}");
        self.set_delete_stamp(row, delete_stamp)?;
        if !Bug::DeleteBitNotSet.is_planted() {
            self.delete_bitmap.mark(row, self.row_count());
        }
        if !self.delete_bitmap.has(row) {
            let message = format!("segment {}: the delete of row {row} is not found", self.id);
            return Err(Error::corrupt(message));
        }
        self.dead_blocks.note(row, delete_stamp.commit());
        // A reader that sees the count sees the rows that it counts.
        self.dead.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Notes that a dead row has a successor.
    pub(crate) fn supersede(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        self.set_delete_stamp(row, delete_stamp.with_successor())?;
        self.succeeded.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn succeeded_count(&self) -> u64 {
        self.succeeded.load(Ordering::Acquire)
    }

    fn set_delete_stamp(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        Ok(self.deleted.set(row_word(row), delete_stamp.word())?)
    }

    /// The version that a row superseded.
    #[must_use]
    pub fn replaced(&self, row: usize) -> Option<Location> {
        Location::from_word(self.replaced.get(row_word(row)))
    }

    /// Notes the version that a row supersedes, before anybody can find the row.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn set_replaced(&self, row: usize, older: Location) -> Result<()> {
        Ok(self.replaced.set(row_word(row), older.word())?)
    }

    /// Removes the file when the last user of this segment is gone.
    pub fn mark_for_deletion(&self) {
        self.doomed.store(true, Ordering::SeqCst);
        self.runs.load().iter().for_each(|run| run.entries().mark_for_deletion());
    }

    /// Keeps the file of a segment without runs after all.
    pub fn keep_files(&self) {
        self.doomed.store(false, Ordering::SeqCst);
    }

    /// Its rows in the order of indexes, as far as they are built.
    #[must_use]
    pub fn runs(&self) -> Arc<Runs> {
        self.runs.load_full()
    }

    /// Adds a run; readers that begin later use it. One thread at a time adds and removes runs.
    ///
    /// # Errors
    /// `Corrupt` when it is of other rows.
    pub fn add_run(&self, run: Arc<IndexRun>) -> Result<()> {
        let (index, rows) = (run.index().id, run.row_count());
        let is_own = run.entries().id() == run_file_id(self.id, index)
            && run.entries().table() == self.footer.table
            && rows == self.row_count();
        invariant!(
            is_own,
            format_args!("segment {}", self.id),
            "its run of index {} has the entries of {rows} rows of another segment",
            index.0
        );
        let mut runs = self.runs().to_vec();
        runs.push(Arc::clone(&run));
        self.runs.store(Arc::new(Runs::new(runs)));
        if self.doomed.load(Ordering::SeqCst) {
            run.entries().mark_for_deletion();
        }
        Ok(())
    }

    /// Forgets the runs of indexes that are gone, and their files.
    pub fn retain_runs(&self, is_wanted: impl Fn(IndexId) -> bool) {
        let (kept, gone): (Vec<_>, Vec<_>) =
            self.runs().iter().cloned().partition(|run| is_wanted(run.index().id));
        if !gone.is_empty() {
            gone.iter().for_each(|run| run.entries().mark_for_deletion());
            self.runs.store(Arc::new(Runs::new(kept)));
        }
    }

    /// Takes the pages of the file out of memory; they come back at the next touch.
    pub fn release(&self) {
        self.mapping.release();
    }

    /// Reads and verifies every block of the file, and every long value.
    ///
    /// # Errors
    /// `Corrupt` naming file and offset.
    pub fn verify_all(&self) -> Result<()> {
        if let Some(blocks) = &self.blocks {
            blocks.verify_all()?;
        }
        self.verify_compressed()?;
        self.verify_long()
    }

    #[inline(always)]
    pub(super) fn bytes(&self, extent: Extent, range: Range<usize>) -> Result<&[u8]> {
        if range.end > byte(extent.len) {
            return Err(self.outside(extent, &range));
        }
        let (start, end) = (byte(extent.offset) + range.start, byte(extent.offset) + range.end);
        if let Some(blocks) = &self.blocks {
            blocks.ensure(start as u64, end as u64)?;
        }
        self.raw(start..end).ok_or_else(|| self.missing_bytes(start..end))
    }

    #[cold]
    fn outside(&self, extent: Extent, range: &Range<usize>) -> Error {
        let (id, Extent { offset, len, .. }) = (self.id, extent);
        Error::corrupt(format!("segment {id}: bytes {range:?} of the {len} at offset {offset}"))
    }

    #[cold]
    fn missing_bytes(&self, range: Range<usize>) -> Error {
        Error::corrupt(format!("segment {}: bytes {range:?} are missing", self.id))
    }

    /// Bytes of blocks that have been verified.
    #[inline]
    pub(crate) fn raw(&self, range: Range<usize>) -> Option<&[u8]> {
        match self.blocks.as_ref().and_then(Blocks::copies) {
            None => self.mapping.get(range),
            Some(copies) => copies.get(range),
        }
    }

    pub(super) fn typed<T: bytemuck::Pod>(
        &self,
        extent: Extent,
        rows: Range<usize>,
    ) -> Result<&[T]> {
        let size = size_of::<T>();
        let bytes = self.bytes(extent, rows.start * size..rows.end * size)?;
        cast(bytes).map_err(|e| e.at(format!("segment {}", self.id)))
    }

    pub(super) fn codes(&self, width: u8, extent: Extent, rows: Range<usize>) -> Result<Codes<'_>> {
        Ok(match width {
            1 => Codes::U8(self.typed(extent, rows)?),
            2 => Codes::U16(self.typed(extent, rows)?),
            _ => Codes::U32(self.typed(extent, rows)?),
        })
    }

    pub(super) fn layout(&self, field: &Field) -> Option<&ColumnLayout> {
        self.indexed_layout(field).map(|(_, layout)| layout)
    }

    /// True when its rows were written with a field.
    pub(crate) fn has_column(&self, field: &Field) -> bool {
        self.layout(field).is_some()
    }

    pub(super) fn indexed_layout(&self, field: &Field) -> Option<(usize, &ColumnLayout)> {
        let index = self.column_map.get(field.id)?;
        Some((index, self.footer.columns.get(index)?))
    }

    /// The type in which a field's values are stored, if they are.
    pub(crate) fn stored_type(&self, field: &Field) -> Option<DataType> {
        self.layout(field).map(|layout| layout.data_type)
    }

    /// Whether some row may have no value of a field.
    #[must_use]
    pub fn has_nulls(&self, field: &Field) -> bool {
        let may = |layout: &ColumnLayout| {
            layout.validity.is_some() || matches!(layout.encoding, Encoding::Constant(_))
        };
        self.layout(field).is_none_or(may)
    }

    /// The zone map entry of a column: the least value (NULL when all are), the greatest when it
    /// is known, and how many rows are NULL.
    #[must_use]
    pub fn zone(
        &self,
        field: &Field,
        zone: usize,
    ) -> Option<(ValueRef<'_>, Option<ValueRef<'_>>, usize)> {
        let layout = self.layout(field)?;
        let entry = layout.zones.get(zone)?;
        let (least, greatest) = (entry.least.as_ref(), entry.greatest.as_ref().map(Value::as_ref));
        if layout.data_type == field.data_type {
            return Some((least, greatest, entry.null_count as usize));
        }
        // Bounds beyond the reader's type are those of rows that it cannot see.
        let least = least.coerce(field.data_type).ok()?;
        let greatest = match greatest {
            Some(greatest) => Some(greatest.coerce(field.data_type).ok()?),
            None => None,
        };
        Some((least, greatest, entry.null_count as usize))
    }

    /// The end of the zone that holds `row`.
    #[must_use]
    pub fn zone_end(&self, row: usize) -> usize {
        ((row / ZONE_ROWS + 1) * ZONE_ROWS).min(self.row_count())
    }

    /// Bytes of the file per block, for reports.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        self.file_bytes.div_ceil(BLOCK_BYTES as u64)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let Some(files) = &self.files else { return };
        if self.footer.columns.iter().any(|column| column.encoding.is_packed())
            && let Some(blocks) = files.heap_blocks()
        {
            blocks.forget(self.id);
        }
        if self.doomed.load(Ordering::Relaxed) {
            files.remove(self.id);
        }
    }
}
