//! Checking a database from end to end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use esker_format::{Value, ValueRef};
use esker_log::RESERVE_FILE;
use esker_table::segment::run_of_file;
use esker_table::segment::{Segment, is_unnamed_run, run_file_number, segment_file_id};
use esker_table::table::describe_key;
use esker_table::value_file::{value_file_id, value_file_name};
use esker_table::view::{Resolved, RowGroup, View};
use esker_table::{Location, RowHasher, Table as TableCore};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::maintenance::parse_number;
use crate::recovery::LOCK_FILE;
use crate::{Database, Result, Snapshot, TransactionOptions};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The table, or the file.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

/// What a check looked at, and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckReport {
    /// What is wrong. Empty for a sound database.
    pub problems: Vec<Problem>,
    /// What is unusual, and does no harm: files that nothing names. A load or a merge under way
    /// has some, and so has one that failed; they go at the next opening.
    pub notes: Vec<Problem>,
    /// Tables looked at.
    pub tables: usize,
    /// Visible rows read.
    pub rows: u64,
    /// Segments whose every block was verified.
    pub segments: usize,
    /// Bytes of segment files verified.
    pub bytes: u64,
    /// Index entries followed.
    pub index_entries: u64,
}

impl CheckReport {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn add(&mut self, place: &str, message: impl Into<String>) {
        self.problems.push(Problem { place: place.to_owned(), message: message.into() });
    }
}

impl Database {
    /// Verifies every checksum, every index entry in both directions, keys, NULLs, row ids,
    /// counts, references, and that every segment of the catalogue has its file.
    ///
    /// # Errors
    /// Only when the check itself cannot be done; what is wrong is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let snapshot = self.snapshot()?;
        let engine = self.engine();
        let tables: Vec<Arc<TableCore>> = {
            let catalogue = engine.lock();
            catalogue.tables.values().map(|entry| Arc::clone(entry.writer.table())).collect()
        };
        for table in &tables {
            report.tables += 1;
            check_segments(engine, table, &mut report);
            check_rows(&snapshot, table, &mut report);
            check_index(table, &mut report);
            check_replaced(table, &mut report);
            super::unique_entries::check(engine, table, &mut report);
        }
        self.check_references(&mut report)?;
        if let Some(message) = self.clock().warning() {
            report.notes.push(Problem { place: "clock".to_owned(), message });
        }
        if !engine.dir.as_os_str().is_empty() {
            self.check_files(&tables, &mut report)?;
        }
        Ok(report)
    }

    /// Every row that refers to another finds it.
    fn check_references(&self, report: &mut CheckReport) -> Result<()> {
        let snapshot = self.begin_with(TransactionOptions::new().read_only(true))?;
        for name in snapshot.tables()? {
            if let Err(e) = snapshot.check_references(&name) {
                report.add(&name, e.to_string());
            }
        }
        Ok(())
    }

    /// Every segment of the catalogue has its file, and every file is one of the catalogue's.
    fn check_files(&self, tables: &[Arc<TableCore>], report: &mut CheckReport) -> Result<()> {
        let engine = self.engine();
        // Before the names are listed: what a view has had is there for as long as the view.
        let views: Vec<_> = tables.iter().map(|table| table.view()).collect();
        let value_files = engine.segment_files.values();
        let held = value_files.files();
        let names = engine.environment.files.list(&engine.dir)?;
        for file in held.iter().filter(|file| value_files.contains(file.id())) {
            let name = value_file_name(file.id());
            if !names.contains(&name) {
                report.add(&name, "the file is missing");
            }
        }
        drop(held);
        for view in &views {
            for segment in view.segments() {
                let name = esker_table::segment::segment_file_name(segment.id());
                if !names.contains(&name) {
                    report.add(&name, "the file is missing");
                }
            }
        }
        self.note_stray_files(&views, &names, report);
        Ok(())
    }

    fn note_stray_files(&self, views: &[Arc<View>], names: &[String], report: &mut CheckReport) {
        let engine = self.engine();
        let (checkpoint, mut index_files) = {
            let catalogue = engine.lock();
            let indexes = catalogue.tables.values().map(|entry| entry.index_file).collect();
            (catalogue.checkpoint_number, indexes)
        };
        engine.add_old_index_files(&mut index_files);
        let is_segment = |id| views.iter().any(|view| view.segments().any(|s| s.id() == id));
        let is_value_file = |id| engine.segment_files.values().contains(id);
        let is_named = |name: &str| {
            name == LOCK_FILE
                || name == RESERVE_FILE
                || parse_number(name, "log-").is_some()
                || parse_number(name, "checkpoint-") == Some(checkpoint)
                || parse_number(name, "index-").is_some_and(|number| index_files.contains(&number))
                || segment_file_id(name).is_some_and(is_segment)
                || is_unnamed_run(name)
                || run_file_number(name)
                    .and_then(run_of_file)
                    .is_some_and(|(segment, _)| is_segment(segment))
                || value_file_id(name).is_some_and(is_value_file)
        };
        for name in names.iter().filter(|name| !is_named(name)) {
            let message = "nothing names this file".to_owned();
            report.notes.push(Problem { place: name.clone(), message });
        }
    }
}

fn check_segments(engine: &Engine, table: &Arc<TableCore>, report: &mut CheckReport) {
    let view = table.view();
    for row_group in
        view.row_groups.iter().filter(|row_group| matches!(row_group, RowGroup::Group(_)))
    {
        if let Err(e) = row_group.verify_long(view.schema.fields()) {
            report.add(&table.name(), e.to_string());
        }
    }
    for segment in table.view().segments() {
        report.segments += 1;
        report.bytes += segment.file_bytes();
        if let Err(e) = segment.verify_all() {
            report.add(&table.name(), e.to_string());
        }
        let schema = table.schema();
        if let Err(e) = segment.verify_sketches(schema.fields()) {
            report.add(&table.name(), e.to_string());
        }
        if let Err(e) = esker_table::key_order::verify(segment, &schema) {
            report.add(&table.name(), e.to_string());
        }
        for run in segment.runs().iter() {
            if let Err(e) = run.verify(segment, &schema) {
                report.add(&table.name(), e.to_string());
            }
        }
        // Again when no writer is between a dead row and its count.
        let uncounted = uncounted_deletes(segment).and_then(|_| {
            let _catalogue = engine.lock();
            uncounted_deletes(segment)
        });
        if let Some((dead, counted)) = uncounted {
            let message = format!("segment {}: {dead} dead rows, {counted} counted", segment.id());
            report.add(&table.name(), message);
        }
    }
}

/// How many rows of a segment are dead, and how many have been counted, when these are fewer.
fn uncounted_deletes(segment: &Segment) -> Option<(u64, u64)> {
    let dead = (0..segment.row_count()).filter(|row| segment.deleted(*row) != 0).count() as u64;
    let counted = segment.dead_count();
    (dead > counted).then_some((dead, counted))
}

/// Every visible row is found by its key, once, and is the row that was found.
fn check_rows(snapshot: &Snapshot, table: &Arc<TableCore>, report: &mut CheckReport) {
    let at = snapshot.commit();
    let rows = match snapshot.table_core(table) {
        Ok(rows) => rows,
        Err(e) => return report.add(&table.name(), e.to_string()),
    };
    let schema = table.schema();
    let mut row_ids: BTreeMap<u64, u32> = BTreeMap::new();
    let mut count = 0u64;
    let positions = schema.key_positions();
    let outcome = rows.for_each(|row_id, values| {
        count += 1;
        if row_ids.insert(row_id, 0).is_some() {
            report.add(&table.name(), format!("row id {row_id} is visible twice"));
        }
        for (field, value) in schema.fields().iter().zip(values) {
            if value.is_null() && !field.nullable {
                report.add(&table.name(), format!("row {row_id}: {:?} is null", field.name));
            }
        }
        let id = [ValueRef::Uint(row_id)];
        let key: Vec<ValueRef<'_>> = match positions {
            [] => id.to_vec(),
            _ => positions.iter().filter_map(|p| values.get(*p).copied()).collect(),
        };
        let found = table.find(
            &key,
            || at,
            |found| {
                let same = found.row_group.row_id(found.row)? == row_id;
                Ok((same, found.values()?))
            },
        )?;
        let same = |copy: &Vec<Value>| {
            copy.iter().zip(values).all(|(a, b)| a.as_ref() == *b) && copy.len() == values.len()
        };
        match found {
            Some((true, copy)) if same(&copy) => {}
            Some(_) => {
                let key = describe_key(&schema, &key);
                report.add(&table.name(), format!("{key} leads to another row than {row_id}"));
            }
            None => {
                let key = describe_key(&schema, &key);
                report.add(&table.name(), format!("{key} of row {row_id} is not found by its key"));
            }
        }
        Ok(())
    });
    if let Err(e) = outcome {
        report.add(&table.name(), e.to_string());
    }
    report.rows += count;
    match rows.count() {
        Ok(counted) if counted == count => {}
        Ok(counted) => report.add(&table.name(), format!("{count} rows read, {counted} counted")),
        Err(e) => report.add(&table.name(), e.to_string()),
    }
}

/// A reader of an older version of a row comes to one, or to none.
fn check_replaced(table: &Arc<TableCore>, report: &mut CheckReport) {
    let view = table.view();
    for row_group in view.row_groups.iter().filter(|row_group| row_group.is_asked_for_older()) {
        for row in 0..row_group.row_count() {
            if let Some(location) = replaced_nowhere(table, &view, (row_group, row)) {
                let (row_group, of) = (row_group.id(), location.row_group());
                let before = location.row();
                let message = format!(
                    "row {row} of row group {row_group} replaced row {before} of row group {of}, \
                     which is not there"
                );
                report.add(&table.name(), message);
            }
        }
    }
}

/// What a row names as replaced, when that leads nowhere by the row groups of now.
///
/// A word and a view are two reads, between which merges may lead the word on, to row groups that
/// the view does not know, and forget where it led before. While the newest view has the row's row
/// group and is the same before and after the word is read, the word has been led on to what that
/// view knows. The words of a row group that a merge has taken out since are not relocated.
fn replaced_nowhere(
    table: &TableCore,
    view: &Arc<View>,
    (row_group, row): (&RowGroup, usize),
) -> Option<Location> {
    let mut view = Arc::clone(view);
    loop {
        let location = row_group.replaced(row)?;
        if !matches!(view.link_previous(location), Resolved::Unknown) {
            return None;
        }
        let newest = table.view();
        if Arc::ptr_eq(&view, &newest) {
            return Some(location);
        }
        newest.row_group(row_group.id())?;
        view = newest;
    }
}

/// Every index entry leads to a version whose key hashes to where the entry stands.
fn check_index(table: &Arc<TableCore>, report: &mut CheckReport) {
    let mut entries = Vec::new();
    entries.extend(table.index().export(0..=u32::MAX));
    for (tag, word) in entries {
        report.index_entries += 1;
        let Some(location) = Location::from_word(word) else { continue };
        let Some(problem) = problem_of_entry(table, tag, location) else { continue };
        let (row, row_group) = (location.row(), location.row_group());
        let row = format!("row {row} of row group {row_group}");
        // An entry that a writer or a merge has moved meanwhile is no problem.
        if table.index().export(tag..=tag).into_iter().any(|(_, now)| now == word) {
            report.add(&table.name(), format!("the index entry of {row} {problem}"));
        }
    }
}

/// What is wrong with an index entry, if it still stands.
fn problem_of_entry(table: &Arc<TableCore>, tag: u32, location: Location) -> Option<String> {
    let view = table.view();
    let (row_group, row): (&RowGroup, usize) = match view.resolve(location) {
        Resolved::Row(row_group, row) => (row_group, row),
        Resolved::Gone => return None,
        Resolved::Unknown => return Some("leads nowhere".to_owned()),
    };
    if row >= row_group.row_count() {
        return Some("is past the last row".to_owned());
    }
    match RowHasher::new(table, &view.schema).hash(row_group, row) {
        Ok(hash) if u32::try_from(hash >> 32) == Ok(tag) => {
            let mut found = false;
            let _ = table.index().candidates(hash, |candidate| {
                found |= candidate == location.word();
                if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let lost = !found && row_group.is_alive(row);
            lost.then(|| "is not found by its hash".to_owned())
        }
        Ok(_) => Some("stands under another hash".to_owned()),
        Err(e) => Some(format!("leads to damage: {e}")),
    }
}
