//! Index checkpoints: the primary index of a large table in a file, so that opening does not read
//! every key.
//!
//! The file is written before the checkpoint fixes its commit, and the checkpoint is named only
//! once that commit is durable. So whatever an exported partition had seen (a key that has moved
//! to an open group, say) is part of the checkpoint or of the log that follows it. Entries that
//! name anything but a committed segment are left out. The invariants of the file are in the head
//! of [`esker_format::index_file`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::index_file::{IndexEntry, IndexHeader, PIECE_ENTRIES, SEGMENTS_MAX};
use esker_format::{PrimaryKey, Schema, TableId, invariant};
use esker_log::sabotage::Bug;
use esker_table::segment::Segment;
use esker_table::view::{Resolved, RowGroup};
use esker_table::{Location, Table as TableCore};
use esker_vfs::{Environment, ErrorKind as VfsErrorKind, File, OpenMode};

use super::checkpoint::index_path;
use crate::engine::Engine;
use crate::{Error, Result};

/// One part of so many of a table's rows is a fair share of them. A file has 8 bytes a row, so that
/// closing writes at most so many times 8 bytes for each row that was loaded.
const STALE_SHARE: usize = 64;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

impl Engine {
    /// Writes index files for the tables whose file is missing or out of date. The older ones are
    /// noted; they are needed until the next checkpoint is durable.
    pub(super) fn write_index_files(&self) -> Result<()> {
        let tables: Vec<(TableId, Arc<TableCore>, u64, Vec<u64>)> = {
            let catalogue = self.lock();
            let tables = catalogue.tables.iter();
            tables
                .map(|(id, entry)| {
                    let covered = entry.index_covers.clone();
                    (*id, Arc::clone(entry.writer.table()), entry.index_file, covered)
                })
                .collect()
        };
        let mut wrote = false;
        for (id, table, old, covered) in tables {
            let Some(segments) = indexable_segments(&table, self.options.index_rows_min) else {
                continue;
            };
            if old != 0 && covered == segments {
                continue;
            }
            let number = self.new_row_group();
            let path = index_path(&self.dir, number);
            self.write_index_file(&table, number, &segments)
                .inspect_err(|_| self.segment_files.remove_other(&path))?;
            wrote = true;
            let mut catalogue = self.lock();
            if let Some(entry) = catalogue.tables.get_mut(&id) {
                entry.index_file = number;
                entry.index_covers = segments;
            }
            if old != 0 {
                self.maintenance_state().old_index_files.push(old);
            }
        }
        if wrote {
            self.environment.files.sync_dir(&self.dir)?;
        }
        Ok(())
    }

    /// Whether the next opening would read so many keys from segments that index files are worth
    /// their writing: many in all, or a fair share of a table that has a file. Many small loads,
    /// each by a program that ends, would make each opening slower than the last.
    pub(crate) fn are_index_files_stale(&self) -> bool {
        let rows_min = self.options.index_rows_min;
        let (mut all, mut is_share) = (0_usize, false);
        for (uncovered, rows) in self.uncovered_by_table() {
            all = all.saturating_add(uncovered);
            is_share |=
                uncovered > 0 && rows >= rows_min && uncovered.saturating_mul(STALE_SHARE) >= rows;
        }
        all >= rows_min || is_share
    }

    /// How many sealed rows no index file covers.
    pub(crate) fn uncovered_rows(&self) -> usize {
        self.uncovered_by_table().iter().map(|(uncovered, _)| uncovered).sum()
    }

    /// How many sealed rows of each table no index file covers, and how many there are.
    fn uncovered_by_table(&self) -> Vec<(usize, usize)> {
        let catalogue = self.lock();
        let uncovered = catalogue.tables.values().map(|entry| {
            let table = entry.writer.table();
            if table.has_generated_key() {
                return (0, 0);
            }
            let view = table.view();
            // A checkpoint would cover none of so many.
            if view.segments().count() > SEGMENTS_MAX {
                return (0, 0);
            }
            let rows = view.segments().map(|segment| segment.row_count()).sum();
            let loose = view
                .segments()
                .filter(|s| !s.is_loading() && !entry.index_covers.contains(&s.id()));
            let rows_min = self.options.index_rows_min;
            (loose.map(|s| rows_to_read(&view.schema, s, rows_min)).sum(), rows)
        });
        uncovered.collect()
    }

    fn write_index_file(&self, table: &TableCore, number: u64, segments: &[u64]) -> Result<()> {
        let positions: BTreeMap<u64, u16> = segments.iter().copied().zip(0u16..).collect();
        let path = index_path(&self.dir, number);
        let file = self.environment.files.open(&path, OpenMode::CreateNew)?;
        let mut header = IndexHeader {
            database: self.database,
            number,
            table: table.id(),
            segments: segments.to_vec(),
            entries: 0,
        };
        let start = header.encode().len() as u64;
        let (mut out, mut piece) = (Vec::new(), Vec::with_capacity(PIECE_ENTRIES));
        let mut written = start;
        let view = table.view();
        for (tag, word) in table.index().export(0..=u32::MAX) {
            let Some(location) = Location::from_word(word) else { continue };
            // An entry that is not repointed yet names a row group that is gone.
            let (row_group, row) = match view.resolve(location) {
                Resolved::Row(RowGroup::Segment(segment), row) => (segment.id(), row),
                _ => continue,
            };
            let Some(segment) = positions.get(&row_group).copied() else { continue };
            let beyond = |_| Error::corrupt(format!("segment {row_group}: no row {row}"));
            let row = u32::try_from(row).map_err(beyond)?;
            // default: as many as there can be, none of which is in the list
            let count = u16::try_from(positions.len()).unwrap_or(u16::MAX);
            let segment = segment + if Bug::IndexEntryOfNoSegment.is_planted() { count } else { 0 };
            piece.push(IndexEntry { tag, segment, row });
            header.entries += 1;
            if piece.len() == PIECE_ENTRIES {
                let position = written + out.len() as u64;
                header.encode_piece(&mut out, position, &piece);
                piece.clear();
                if out.len() >= WRITE_BYTES {
                    file.write_all_at(&out, written)?;
                    written += out.len() as u64;
                    out.clear();
                    self.environment.tasks.pause();
                }
            }
        }
        if !piece.is_empty() {
            let position = written + out.len() as u64;
            header.encode_piece(&mut out, position, &piece);
        }
        file.write_all_at(&out, written)?;
        file.write_all_at(&header.encode(), 0)?;
        file.sync_data()?;
        Ok(())
    }
}

/// How many rows a segment counts as when it is judged whether an index is worth a file: enough on
/// its own where keys lie among values. Opening without the file would read all of them, and a
/// damaged value would be in the way of it.
fn rows_to_read(schema: &Schema, segment: &Segment, rows_min: usize) -> usize {
    let is_among_values = schema.key_fields().any(|key| segment.shares_heap(key));
    segment.row_count().max(if is_among_values { rows_min } else { 0 })
}

/// The committed segments of a table that is worth an index file.
fn indexable_segments(table: &TableCore, rows_min: usize) -> Option<Vec<u64>> {
    let view = table.view();
    if *view.schema.primary_key() == PrimaryKey::Generated {
        return None;
    }
    let ready: Vec<_> = view.segments().filter(|s| !s.is_loading()).collect();
    let rows: usize = ready.iter().map(|s| rows_to_read(&view.schema, s, rows_min)).sum();
    let worth = rows >= rows_min && ready.len() <= SEGMENTS_MAX;
    worth.then(|| ready.iter().map(|s| s.id()).collect())
}

/// An index file that is open for reading.
pub(crate) struct IndexFile {
    path: PathBuf,
    file: Arc<dyn File>,
    header: IndexHeader,
    /// Where the pieces start.
    first: u64,
}

impl IndexFile {
    /// Opens a file and reads its header.
    pub(crate) fn open(environment: &Environment, dir: &Path, number: u64) -> Result<Self> {
        let path = index_path(dir, number);
        let at = |e: esker_format::Error| Error::from(e).at(path.display());
        let file = environment.files.open(&path, OpenMode::Read).map_err(|e| match e.kind() {
            // An older checkpoint than the newest is opened only where that is damaged.
            VfsErrorKind::NotFound => {
                Error::corrupt(format!("{e}, though the checkpoint names it"))
            }
            _ => e.into(),
        })?;
        let len = file.len()?;
        // default: below 64 KiB, which fits
        let mut bytes = vec![0; usize::try_from(len.min(64 << 10)).unwrap_or_default()];
        file.read_exact_at(&mut bytes, 0)?;
        let (header, first) = IndexHeader::decode(&bytes, number).map_err(at)?;
        let first = first as u64;
        let pieces = header.entries.div_ceil(PIECE_ENTRIES as u64);
        let end = header.entries.saturating_mul(8).saturating_add(first + pieces * 8);
        if end > len {
            let message = format!("offset {len}: the file ends early");
            return Err(at(esker_format::Error::corrupt(message)));
        }
        invariant!(end == len, path.display(), "it has {len} bytes, its header says {end}");
        Ok(Self { path, file, header, first })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub(crate) fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// How many entries it holds.
    pub(crate) fn entries(&self) -> u64 {
        self.header.entries
    }

    /// How many pieces they are in.
    pub(crate) fn pieces(&self) -> u64 {
        self.header.entries.div_ceil(PIECE_ENTRIES as u64)
    }

    /// Appends the entries of a piece.
    pub(crate) fn read_piece(&self, piece: u64, out: &mut Vec<IndexEntry>) -> Result<()> {
        let before = piece * PIECE_ENTRIES as u64;
        let count = self.header.entries.saturating_sub(before).min(PIECE_ENTRIES as u64);
        let position = self.first + before * 8 + piece * 8;
        // default: at most so many entries as a piece has, which fits
        let mut bytes = vec![0; usize::try_from(count * 8 + 8).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, position)?;
        let decoded = self.header.decode_piece(position, &bytes, |entry| out.push(entry));
        decoded.map_err(|e| Error::from(e).at(self.path.display()))
    }
}
