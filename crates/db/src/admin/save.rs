//! Databases in memory that outlast their process: saved to a directory, and begun from one.
//!
//! ```text
//! directory with the file that says "not finished" ─► a database in it ─► every sequence, table
//!   and bucket of one commit, loaded as segments ─► synced and closed ─► the file is removed
//! ```
//!
//! What is written is a database like any other: `Options::open` opens it, `Options::memory_from`
//! takes it to memory. Rows get new row ids, and commits begin at 1; values, keys, expiry, indexes,
//! checks, defaults and sequences are the same.

use std::path::Path;
use std::sync::Arc;

use esker_format::Batch;
use esker_vfs::OpenMode;

use crate::bulk_load::Load;
use crate::catalog::looked_up;
use crate::read::snapshot::SnapshotTable;
use crate::recovery::unfinished_backup::UNFINISHED_FILE;
use crate::{Database, Options, Result, Table, Transaction};

/// Rows that are handed over at a time.
const BATCH_ROWS: usize = 8_192;
/// Bytes of them, about, at the most.
const BATCH_BYTES: usize = 4 << 20;

impl Database {
    /// Saves what the database holds now, as of one commit, to a directory that does not exist or
    /// is empty. It is a database there. Writers go on meanwhile. Meant for databases in memory;
    /// [`Database::backup`] copies files, which takes less.
    ///
    /// ```
    /// use esker::Options;
    ///
    /// let dir = std::env::temp_dir().join(format!("esker-save-{}", std::process::id()));
    /// let db = Options::new().memory()?;
    /// db.bucket("settings")?.put(b"colour", b"green")?;
    /// db.save(&dir)?;
    /// drop(db);
    /// let db = Options::new().memory_from(&dir)?;
    /// assert_eq!(db.bucket("settings")?.get_copy(b"colour")?.as_deref(), Some(&b"green"[..]));
    /// # std::fs::remove_dir_all(dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a directory that is not empty, `NoSpace`, `Io`. What an attempt that
    /// failed leaves in the directory is no database.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let (engine, dir) = (self.engine(), dir.as_ref());
        engine.refuse_used(dir)?;
        let files = &engine.environment.files;
        files.create_dir_all(dir)?;
        let unfinished = dir.join(UNFINISHED_FILE);
        // Durable before anything else is: what a crash leaves is no database.
        files.open(&unfinished, OpenMode::CreateNew)?.sync_data()?;
        files.sync_dir(dir)?;
        let environment = Some(engine.environment.clone());
        let options = Options { environment, unfinished: true, ..Options::new() };
        let memory_limit_bytes = engine.options.memory_limit_bytes;
        let saved = Options { memory_limit_bytes, ..options }.open(dir)?;
        saved.copy_from(self)?;
        saved.close()?;
        files.remove(&unfinished)?;
        files.sync_dir(dir)?;
        Ok(())
    }

    /// Takes all that another database holds, as of one commit, into this one, which is empty.
    pub(crate) fn copy_from(&self, from: &Self) -> Result<()> {
        let snapshot = from.snapshot()?;
        // Times to live are copied as they are.
        self.engine().go_by_clock_of(from.engine());
        // Sequences have no versions: what they gave out since the snapshot stays given out.
        let sequences = from.engine().sequences.load();
        for (name, sequence) in sequences.iter().filter(|(_, known)| !known.is_pending()) {
            self.add_sequence(name, sequence.given(), false)?;
        }
        Transaction::run(self.engine(), |within| {
            let names = snapshot.names();
            let mut namespaces = names.namespaces.iter();
            namespaces.try_for_each(|(name, namespace)| within.copy_namespace(name, namespace))
        })?;
        let tables = snapshot.table_names().into_iter().map(|name| {
            let table = snapshot.table(&name)?;
            let looks_up = looked_up::looks_up(table.schema())?;
            Ok((looks_up, name, table))
        });
        let mut tables = tables.collect::<Result<Vec<(bool, String, SnapshotTable)>>>()?;
        // The tables in which rows are looked up come before those that they are looked up for.
        tables.sort_by_key(|(looks_up, ..)| *looks_up);
        // No cursor of a feed is taken for one of its copy, where the rows have other row ids.
        let next = from.engine().lock().next_table;
        self.engine().lock().next_table = next;
        for (_, name, table) in &tables {
            // A feed comes with its table, a history with its view.
            if !table.schema().is_companion() {
                let schema = (**table.schema()).clone().with_feed(None);
                self.create_table(name, schema)?;
            }
        }
        // Before there are rows: events may end as soon as they are there.
        Transaction::run(self.engine(), |within| {
            let names = snapshot.names();
            names.views.iter().try_for_each(|(name, view)| within.copy_view(name, view))?;
            let histories = tables.iter().filter(|(.., table)| table.schema().is_history());
            for (_, name, table) in histories {
                within.copy_history(name, table.schema())?;
            }
            Ok(())
        })?;
        for are_companions in [false, true] {
            let is_it = |table: &SnapshotTable| table.schema().is_companion() == are_companions;
            for (_, name, table) in tables.iter().filter(|(.., table)| is_it(table)) {
                copy_rows(table, self.table(name)?)?;
            }
        }
        self.wait_idle()
    }
}

fn copy_rows(from: &SnapshotTable, to: Table) -> Result<()> {
    let schema = Arc::clone(from.schema());
    let mut load = Load::copy(to)?;
    let (mut batch, mut bytes) = (Batch::empty(&schema), 0);
    from.for_each(|_, row| {
        for (column, value) in batch.columns.iter_mut().zip(row) {
            column.push(*value)?;
            // default: what is no bytes is a word
            bytes += value.as_bytes().map_or(size_of::<u64>(), <[u8]>::len);
        }
        if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
            load.push(std::mem::replace(&mut batch, Batch::empty(&schema)))?;
            bytes = 0;
        }
        Ok(())
    })?;
    load.push(batch)?;
    load.finish()?;
    Ok(())
}
