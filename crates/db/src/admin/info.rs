//! Figures about a database.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use esker_arena::Category;
use esker_format::schema::{Index, IndexKind};
use esker_table::Table;
use esker_table::view::View;
use esker_vfs::{DurationCounts, OpenMode};
use serde::{Deserialize, Serialize};

use crate::catalog::names::Names;
use crate::engine::Engine;
use crate::introspection::definition;
use crate::maintenance::{RunCounts, WorkInfo, count_runs, parse_number};
use crate::{Database, Result, SequenceInfo};

/// An index, and how much of it is built. What is not built is scanned.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// Its fields, those with the greatest value first as `field desc`.
    pub fields: Vec<String>,
    /// What is true of its rows, where it has not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// How it finds rows.
    #[serde(with = "kind_by_name")]
    pub kind: IndexKind,
    /// Whether no two rows have the same values in its fields.
    pub unique: bool,
    /// Bytes of memory that it takes: those of a unique index, to look values up.
    pub memory_bytes: u64,
    /// The segments for which it is built.
    pub built: usize,
    /// The segments among these in which the field of a bitmap index has too many values: they are
    /// scanned.
    pub too_many_values: usize,
    /// The segments of the table.
    pub of: usize,
}

/// Figures about one table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Rows alive.
    pub live_rows: u64,
    /// Dead versions that still take space.
    pub dead_rows: u64,
    /// Sealed segments.
    pub segments: usize,
    /// Open and frozen groups.
    pub groups: usize,
    /// Bytes of segment files.
    pub segment_bytes: u64,
    /// Bytes of row data in groups.
    pub group_bytes: u64,
    /// Bytes of memory of the primary index.
    pub index_bytes: u64,
    /// Entries of the primary index.
    pub index_entries: u64,
    /// The other indexes, in the order in which they were created.
    pub indexes: Vec<IndexInfo>,
}

/// Bytes of memory, by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryInfo {
    /// Rows that are not sealed.
    pub groups: u64,
    /// Primary and unique indexes.
    pub indexes: u64,
    /// Which rows are visible at which commit.
    pub visibility: u64,
    /// Rows that bulk loads and appenders have gathered, and what it takes to write them.
    pub loads: u64,
    /// Blocks of compressed heaps that were read lately.
    pub blocks: u64,
    /// Where rows of sealed groups and merged segments went: for as long as somebody is led there,
    /// which is a moment, and not counted in `total`.
    pub forwarding: u64,
    /// All of it.
    pub total: u64,
    /// The most that all of it may take.
    pub limit: u64,
}

/// Figures about a database.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Info {
    /// The tables, by name.
    pub tables: Vec<TableInfo>,
    /// The sequences, by name.
    pub sequences: Vec<SequenceInfo>,
    /// Memory.
    pub memory: MemoryInfo,
    /// Bytes of log files.
    pub log_bytes: u64,
    /// How often the log was synced for commits since the database was opened, and how long that
    /// took.
    pub syncs: DurationCounts,
    /// Open rows that became segments.
    pub seals: WorkInfo,
    /// Segments that became others.
    pub merges: WorkInfo,
    /// Files of long values.
    pub value_files: usize,
    /// Bytes of them, those included that nothing refers to any more.
    pub value_bytes: u64,
    /// The newest commit that is applied; reads see it once it is acknowledged.
    pub published_commit: u64,
    /// The newest commit that reads see.
    pub visible_commit: u64,
    /// The commit of the newest checkpoint.
    pub checkpoint_commit: u64,
    /// Snapshots and transactions that are held, the oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    /// Why the last background job failed, if it did.
    pub last_error: Option<String>,
}

/// A snapshot or transaction that is held. What it can see is kept, though no other reader can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotInfo {
    /// The commit that it reads.
    pub commit: u64,
    /// For how long it has been held.
    pub age: Duration,
}

/// Files of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileInfo {
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The kind of an index as text, by its name.
mod kind_by_name {
    use esker_format::schema::IndexKind;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "what is derived passes a reference")]
    pub(crate) fn serialize<S: Serializer>(kind: &IndexKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.name())
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<IndexKind, D::Error> {
        let name = String::deserialize(from)?;
        let expected =
            || D::Error::custom(format!("expected the kind of an index, found {name:?}"));
        let kinds = IndexKind::ALL.into_iter().chain([IndexKind::Rollup]);
        kinds.into_iter().find(|kind| kind.name() == name).ok_or_else(expected)
    }
}

/// The indexes of a table.
fn index_infos(table: &Table) -> Vec<IndexInfo> {
    let (schema, uniques) = (table.schema(), table.uniques());
    let info = |index: &Index| {
        let RunCounts { built, of, too_many_values } = count_runs(table, index);
        let keys = uniques.iter().find(|keys| keys.index().id == index.id);
        // default: an index that is not unique has no entries in memory
        let memory_bytes = keys.map_or(0, |keys| keys.entries().memory_bytes());
        let (name, fields) = (index.name.clone(), definition::parts_text(&schema, index));
        let filter = definition::filter_text(&schema, index);
        let (kind, unique) = (index.kind, index.unique);
        IndexInfo { name, fields, filter, kind, unique, memory_bytes, built, too_many_values, of }
    };
    schema.indexes().iter().map(info).collect()
}

impl Engine {
    /// Bytes of value files.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.segment_files.values().files().iter().map(|file| file.byte_count()).sum()
    }

    /// The snapshots and transactions that are held, the oldest first.
    pub(crate) fn snapshot_infos(&self) -> Vec<SnapshotInfo> {
        let now = self.environment.clock.monotonic_ns();
        let info = |(commit, began): (u64, u64)| {
            let age = Duration::from_nanos(now.saturating_sub(began));
            SnapshotInfo { commit, age }
        };
        let mut held: Vec<SnapshotInfo> = self.registry.list().into_iter().map(info).collect();
        held.sort_unstable_by_key(|held| (Reverse(held.age), held.commit));
        held
    }

    /// Bytes of memory, by what they are for.
    pub(crate) fn memory_info(&self) -> MemoryInfo {
        // Without the commit lock: a statement asks.
        let forwarding = forwarding_bytes(self.names.load().newest());
        let arena = &self.arena;
        MemoryInfo {
            groups: arena.used_by(Category::Group),
            indexes: arena.used_by(Category::Index),
            visibility: arena.used_by(Category::Visibility),
            loads: arena.used_by(Category::Load),
            blocks: arena.used_by(Category::Blocks),
            forwarding,
            total: arena.used_bytes(),
            limit: self.options.memory_limit_bytes,
        }
    }

    /// Bytes of log files. Opened for reading there is no log to ask, but files that stay as they
    /// are; those that cannot be looked at count nothing.
    fn log_bytes(&self) -> u64 {
        if let Some(log) = self.journal.log() {
            return log.bytes();
        }
        if self.dir.as_os_str().is_empty() {
            return 0;
        }
        let files = &self.environment.files;
        // default: a figure: what cannot be read counts as nothing
        let names = files.list(&self.dir).unwrap_or_default();
        let logs = names.iter().filter(|name| parse_number(name, "log-").is_some());
        let opened = logs.map(|name| files.open(&self.dir.join(name), OpenMode::Read));
        // default: a figure: what cannot be read counts as nothing
        opened.map(|file| file.and_then(|file| file.len()).unwrap_or_default()).sum()
    }
}

fn forwarding_bytes(names: &Names) -> u64 {
    let views = names.values().map(|table| table.view());
    let of = |view: Arc<View>| view.retired.iter().map(|retired| retired.byte_count()).sum::<u64>();
    views.map(of).sum()
}

impl Database {
    /// The snapshots and transactions that are held in this process, the oldest first. Each keeps
    /// the versions of rows that it can see, until it is dropped.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// let db = esker::Options::new().memory()?;
    /// let snapshot = db.snapshot()?;
    /// let held = db.snapshots();
    /// assert_eq!(held.len(), 1);
    /// assert_eq!(held[0].commit, snapshot.commit());
    /// drop(snapshot);
    /// assert_eq!(db.snapshots(), []);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.engine().snapshot_infos()
    }

    /// The newest commit that is applied; reads see it once it is acknowledged. As long as it stays
    /// the same, nothing was changed.
    #[must_use]
    pub fn published_commit(&self) -> u64 {
        self.engine().watermarks.published()
    }

    /// The files in the directory of this database; none of one in memory.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// let db = esker::Options::new().memory()?;
    /// assert_eq!(db.files()?.count, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the directory cannot be listed. Files that go meanwhile have no bytes.
    pub fn files(&self) -> Result<FileInfo> {
        let engine = self.engine();
        if engine.dir.as_os_str().is_empty() {
            return Ok(FileInfo::default());
        }
        let files = &engine.environment.files;
        let names = files.list(&engine.dir)?;
        let opened = names.iter().map(|name| files.open(&engine.dir.join(name), OpenMode::Read));
        // default: a figure: what cannot be read counts as nothing
        let bytes = opened.map(|file| file.and_then(|file| file.len()).unwrap_or_default()).sum();
        Ok(FileInfo { count: names.len() as u64, bytes })
    }

    /// Figures about this database.
    #[must_use]
    pub fn info(&self) -> Info {
        let engine = self.engine();
        let memory = engine.memory_info();
        let catalogue = engine.lock();
        let history = engine.names.load();
        let names = history.newest();
        let tables = names.iter().filter_map(|(name, core)| {
            let id = &core.id();
            let table = catalogue.tables.get(id)?.writer.table();
            let view = table.view();
            Some(TableInfo {
                name: name.clone(),
                live_rows: table.live_rows(),
                dead_rows: view
                    .row_groups
                    .iter()
                    .map(esker_table::view::RowGroup::dead_count)
                    .sum(),
                segments: view.segments().count(),
                groups: view.groups().count(),
                segment_bytes: view.segments().map(|s| s.file_bytes()).sum(),
                group_bytes: view.groups().map(|g| g.byte_count()).sum(),
                index_bytes: table.index().memory_bytes(),
                index_entries: table.index().len() as u64,
                indexes: index_infos(table),
            })
        });
        Info {
            tables: tables.collect(),
            sequences: self.sequences(),
            memory,
            log_bytes: engine.log_bytes(),
            // default: a database in memory has no log
            syncs: engine.journal.log().map(|log| log.syncs()).unwrap_or_default(),
            seals: engine.seals.info(),
            merges: engine.merges.info(),
            value_files: engine.segment_files.values().files().len(),
            value_bytes: engine.value_bytes(),
            published_commit: engine.watermarks.published(),
            visible_commit: engine.visible(),
            checkpoint_commit: catalogue.checkpoint_commit,
            snapshots: self.snapshots(),
            last_error: engine.maintenance_state().last_error.clone(),
        }
    }
}
