//! Filling the primary index of a table, and its unique ones, when it is opened.
//!
//! The tags are cut into parts. A worker takes a span of parts, reads the pieces of the index file
//! that hold them, adds the keys of segments that the file does not cover (hashed and sorted
//! before, a segment a worker), and builds the parts, so that every core writes its own share of
//! the index and nothing is gathered whole.
//!
//! Unique indexes have no files: all their entries come from the rows.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use esker_arena::{Import, PartitionedHash, tag_of};
use esker_format::index_file::IndexEntry;
use esker_format::{ColumnSlice, Field, Room, invariant};
use esker_table::segment::Segment;
use esker_table::table::UniqueKeys;
use esker_table::view::RowGroup;
use esker_table::{Location, Table as TableCore};
use esker_vfs::Tasks;
use esker_vfs::sync::Mutex;

use crate::engine::Engine;
use crate::maintenance::IndexFile;
use crate::{Error, Result};

/// Spans for each thread, so that none waits long for another at the end.
const SPANS_A_THREAD: usize = 4;

/// Fills the index from its checkpoint file, where there is one, and from the keys of segments that
/// the file does not cover. Returns the segments that the file covers.
pub(super) fn fill(engine: &Engine, table: &Arc<TableCore>, index_file: u64) -> Result<Vec<u64>> {
    let view = table.view();
    if view.schema.key_positions().is_empty() {
        return Ok(Vec::new());
    }
    let covered = match index_file {
        0 => None,
        number => Some(Covered::open(engine, table, number)?),
    };
    let covers = |id: u64| covered.as_ref().is_some_and(|c| c.ids().any(|own| own == id));
    let loose: Vec<&Arc<Segment>> = view.segments().filter(|s| !covers(s.id())).collect();
    let tasks = engine.environment.tasks.as_ref();
    let sorted = for_each(tasks, loose.len(), &|i| match loose.get(i) {
        Some(segment) => SortedKeys::of(table, segment, view.schema.key_fields(), None),
        None => Err(Error::corrupt("a segment is missing")),
    })?;
    import_all(tasks, table.index(), covered.as_ref(), &sorted)?;
    // default: without an index file nothing is covered
    Ok(covered.map_or_else(Vec::new, |c| c.ids().collect()))
}

/// Fills the unique indexes from the living rows.
pub(super) fn fill_uniques(engine: &Engine, table: &Arc<TableCore>) -> Result<()> {
    let (view, tasks) = (table.view(), engine.environment.tasks.as_ref());
    let segments: Vec<&Arc<Segment>> = view.segments().collect();
    for keys in table.uniques().iter() {
        let sorted = for_each(tasks, segments.len(), &|i| match segments.get(i) {
            Some(segment) => SortedKeys::of(table, segment, keys.fields(&view.schema), Some(keys)),
            None => Err(Error::corrupt("a segment is missing")),
        })?;
        import_all(tasks, keys.entries(), None, &sorted)?;
        let is_open = |row_group: &&RowGroup| matches!(row_group, RowGroup::Group(_));
        for row_group in view.row_groups.iter().filter(is_open) {
            let is_alive = |row: &usize| row_group.deleted(*row) == 0;
            for row in (0..row_group.row_count()).filter(is_alive) {
                if let Some(hash) = keys.hash_at(table, &view.schema, row_group, row)? {
                    let word = Location::new(row_group.id(), row).word();
                    keys.entries().insert(hash, word).map_err(esker_table::Error::from)?;
                }
            }
        }
    }
    Ok(())
}

/// Fills an index from a file, where there is one, and from the keys of segments.
fn import_all(
    tasks: &dyn Tasks,
    index: &PartitionedHash,
    covered: Option<&Covered>,
    sorted: &[SortedKeys],
) -> Result<()> {
    // default: without an index file nothing is covered
    let in_file = covered.map_or(0, |c| c.file.entries());
    let expected = in_file + sorted.iter().map(|s| s.entries.len() as u64).sum::<u64>();
    if expected > 0 {
        let import = index.start_import(expected)?;
        let parts = import.parts();
        let spans = (tasks.parallelism() * SPANS_A_THREAD) as u64;
        let span_parts = parts.div_ceil(spans);
        // default: a number of tasks, which is small
        let count = usize::try_from(parts.div_ceil(span_parts)).unwrap_or_default();
        for_each(tasks, count, &|i| {
            let first = i as u64 * span_parts;
            let span = first..(first + span_parts).min(parts);
            build_span(&import, covered, sorted, span)
        })?;
        import.finish()?;
    }
    Ok(())
}

/// Runs a job for each number on all threads; the results, or the first error.
fn for_each<T: Send>(
    tasks: &dyn Tasks,
    count: usize,
    job: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let results: Vec<Mutex<Option<Result<T>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    tasks.parallel(count, &|i| {
        let result = job(i);
        if let Some(slot) = results.get(i) {
            // default: a panic leaves what is locked as it was, or whole
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    });
    let results = results.into_iter();
    // default: a panic leaves what is locked as it was, or whole
    let done = results.filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    done.collect()
}

/// Builds the parts of a span from all sources.
fn build_span(
    import: &Import<'_>,
    covered: Option<&Covered>,
    sorted: &[SortedKeys],
    span: Range<u64>,
) -> Result<()> {
    let mut from_file = match covered {
        Some(covered) => Some(FileEntries::start(covered, import, span.start)?),
        None => None,
    };
    let mut entries = Vec::new();
    for part in span {
        entries.clear();
        if let Some(file) = &mut from_file {
            file.take_part(import, part, &mut entries)?;
        }
        for keys in sorted {
            keys.take_part(import, part, &mut entries);
        }
        // A file's entries are sorted, and so are a segment's; both together are not. A stable sort
        // merges what is sorted already.
        if !entries.is_sorted_by_key(|entry| entry.0) {
            entries.sort();
        }
        import.build(part, &entries)?;
    }
    Ok(())
}

/// The living rows of a segment by the tags of their keys: `tag << 32 | row`, sorted. Rows with a
/// NULL in their key, that of a unique index, are left out, and so are those that it has not.
struct SortedKeys {
    segment: u64,
    entries: Vec<u64>,
}

impl SortedKeys {
    fn of<'a>(
        table: &Arc<TableCore>,
        segment: &Arc<Segment>,
        fields: impl Iterator<Item = &'a Field>,
        unique: Option<&UniqueKeys>,
    ) -> Result<Self> {
        if let Some(keys) = unique.filter(|keys| keys.is_computed()) {
            return Self::computed(table, segment, keys);
        }
        let paths = unique.filter(|keys| keys.has_path());
        let fields: Vec<&Field> = fields.collect();
        let mut entries = Vec::with_capacity(segment.row_count());
        let mut start = 0;
        while start < segment.row_count() {
            let end = segment.zone_end(start);
            let room = Room::default();
            let columns: Vec<ColumnSlice<'_>> = fields
                .iter()
                .map(|field| segment.column(field, start..end, &room))
                .collect::<esker_table::Result<_>>()?;
            let has_null = |row: usize| columns.iter().any(|column| column.is_null(row - start));
            for row in start..end {
                if segment.deleted(row) != 0 || has_null(row) {
                    continue;
                }
                let key = columns.iter().map(|column| column.value(row - start));
                let hash = match paths {
                    None => table.hasher().hash_key(key),
                    Some(keys) => {
                        let key: Vec<_> = keys.compared(key).collect();
                        if key.iter().any(|value| value.is_null()) {
                            continue;
                        }
                        table.hasher().hash_key(key)
                    }
                };
                entries.push(u64::from(tag_of(hash)) << 32 | row as u64);
            }
            start = end;
        }
        entries.sort_unstable();
        Ok(Self { segment: segment.id(), entries })
    }

    /// Those of an index of which something is computed.
    fn computed(table: &Arc<TableCore>, segment: &Arc<Segment>, keys: &UniqueKeys) -> Result<Self> {
        let (schema, mut entries, mut start) = (table.schema(), Vec::new(), 0);
        while start < segment.row_count() {
            let end = segment.zone_end(start);
            let room = Room::default();
            let columns = keys.columns_of(&schema, (segment, start..end, &room))?;
            for row in (start..end).filter(|row| segment.deleted(*row) == 0) {
                if let Some(key) = columns.key(row - start) {
                    let hash = table.hasher().hash_key(key);
                    entries.push(u64::from(tag_of(hash)) << 32 | row as u64);
                }
            }
            start = end;
        }
        entries.sort_unstable();
        Ok(Self { segment: segment.id(), entries })
    }

    fn take_part(&self, import: &Import<'_>, part: u64, out: &mut Vec<(u32, u64)>) {
        let part_of = |entry: &u64| import.part_of(tag_of(*entry));
        let start = self.entries.partition_point(|entry| part_of(entry) < part);
        // default: behind the last there is none
        let rest = self.entries.get(start..).unwrap_or_default();
        out.extend(rest.iter().take_while(|entry| part_of(entry) == part).map(|entry| {
            // default: 32 bits, which fit
            let row = usize::try_from(entry & u64::from(u32::MAX)).unwrap_or_default();
            (tag_of(*entry), Location::new(self.segment, row).word())
        }));
    }
}

/// An index file, and which of the segments that it names are still there.
struct Covered {
    file: IndexFile,
    /// By their positions in the file: number and rows.
    segments: Vec<Option<(u64, usize)>>,
}

impl Covered {
    fn open(engine: &Engine, table: &Arc<TableCore>, number: u64) -> Result<Self> {
        let file = IndexFile::open(&engine.environment, &engine.dir, number)?;
        let header = file.header();
        let is_own = header.database == engine.database && header.table == table.id();
        invariant!(is_own, file.path().display(), "it belongs to table {}", header.table.0);
        let view = table.view();
        let known = |id: &u64| {
            let segment = view.segments().find(|segment| segment.id() == *id);
            segment.map(|segment| (*id, segment.row_count()))
        };
        let segments = header.segments.iter().map(known).collect();
        Ok(Self { file, segments })
    }

    /// The segments that are still there.
    fn ids(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().flatten().map(|(id, _)| *id)
    }

    /// Where an entry leads; nowhere when the segment is gone.
    fn location(&self, entry: &IndexEntry) -> Result<Option<Location>> {
        let (position, row) = (usize::from(entry.segment), entry.row as usize);
        let segment = self.segments.get(position);
        let is_row = segment.is_some_and(|known| known.is_none_or(|(_, rows)| row < rows));
        let path = self.file.path().display();
        invariant!(is_row, path, "an entry leads to row {row} of segment number {position}");
        Ok(segment.copied().flatten().map(|(id, _)| Location::new(id, row)))
    }
}

/// The entries of an index file from some part on.
struct FileEntries<'a> {
    covered: &'a Covered,
    /// The next piece to read.
    piece: u64,
    entries: Vec<IndexEntry>,
    /// Entries that were taken.
    taken: usize,
}

impl<'a> FileEntries<'a> {
    /// Finds the first entry of a part by bisection over the pieces.
    fn start(covered: &'a Covered, import: &Import<'_>, part: u64) -> Result<Self> {
        let mut this = Self { covered, piece: 0, entries: Vec::new(), taken: 0 };
        // The piece sought is the last one that starts before the part, or the first.
        let (mut low, mut high) = (0, covered.file.pieces().saturating_sub(1));
        while low < high && part > 0 {
            let middle = high - (high - low) / 2;
            this.read(middle)?;
            // default: an empty piece has no parts before it
            let first = this.entries.first().map_or(0, |entry| import.part_of(entry.tag));
            if first < part { low = middle } else { high = middle - 1 }
        }
        this.entries.clear();
        this.piece = low;
        while this.fill()? {
            // default: behind the last there is none
            let rest = this.entries.get(this.taken..).unwrap_or_default();
            this.taken += rest.partition_point(|entry| import.part_of(entry.tag) < part);
            if this.taken < this.entries.len() {
                break;
            }
        }
        Ok(this)
    }

    fn read(&mut self, piece: u64) -> Result<()> {
        self.entries.clear();
        self.taken = 0;
        self.covered.file.read_piece(piece, &mut self.entries)
    }

    /// Reads on when all was taken; false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.taken < self.entries.len() {
            return Ok(true);
        }
        if self.piece >= self.covered.file.pieces() {
            return Ok(false);
        }
        self.read(self.piece)?;
        self.piece += 1;
        Ok(true)
    }

    /// Appends the entries of a part. Parts come in order.
    fn take_part(
        &mut self,
        import: &Import<'_>,
        part: u64,
        out: &mut Vec<(u32, u64)>,
    ) -> Result<()> {
        while self.fill()? {
            // default: behind the last there is none
            let rest = self.entries.get(self.taken..).unwrap_or_default();
            // An entry of an earlier part is out of order; the import refuses it.
            let own = rest.iter().take_while(|entry| import.part_of(entry.tag) <= part);
            let before = self.taken;
            for entry in own {
                self.taken += 1;
                if let Some(location) = self.covered.location(entry)? {
                    out.push((entry.tag, location.word()));
                }
            }
            if self.taken < self.entries.len() || self.taken == before {
                break;
            }
        }
        Ok(())
    }
}
