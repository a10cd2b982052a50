//! What a commit adds to the feeds of the tables that it changes.
//!
//! Under the commit lock all changes are staged, and what they replace can be read: the events of a
//! feed are made there, and are in the same frame. A table without a feed pays one look at its
//! schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::schema::ChangedRows;
use esker_format::value_file::LONG_BYTES;
use esker_format::{Schema, Value, json};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::table::Existing;

use crate::commit::extension::Extension;
use crate::commit::hooks::StagedCommit;
use crate::commit::options::CommitOptions;
use crate::commit::staged::{Staged, key_bytes};
use crate::commit::write_set::TableWrites;
use crate::feed::shape::{ChangeKind, refuse_companion};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Bytes that one commit of rows that expire adds to a feed, about. The reserve of the log, by
/// which they end on a full disk, is twice as large at the least.
const EXPIRY_BYTES_MAX: usize = 8 << 10;
/// Bytes of an event beside its key and its rows, about.
const EVENT_BYTES: usize = 64;

/// An event of a feed, but for its time and how many follow.
struct Event {
    kind: ChangeKind,
    key: Value,
    new: Value,
    old: Value,
}

/// The feed of a table, and what a commit adds to it.
struct Added {
    feed: TableVersion,
    events: Vec<Event>,
}

impl Extension<'_, '_> {
    /// Adds the changes of tables that keep them to their feeds.
    pub fn add_changes(&mut self) -> Result<()> {
        let mut added = Vec::new();
        let truncated = self.options.definitions.iter().flat_map(|new| &new.truncated);
        for table in truncated.filter(|_| !Bug::FeedCursorSkipsAfterTruncate.is_planted()) {
            let after = table.replacement.core.schema();
            if after.kept_changes().is_some() {
                let (key, new, old) = (Value::Null, Value::Null, Value::Null);
                let event = Event { kind: ChangeKind::Truncate, key, new, old };
                let feed = self.feed_of(&table.old.before.name, &after)?;
                added.push(Added { feed, events: vec![event] });
            }
        }
        for writes in self.set.as_slice().iter().filter(|writes| !writes.is_empty()) {
            let schema = &writes.current.schema;
            let Some((_, rows)) = schema.kept_changes() else { continue };
            let mut events = events_of(writes, rows, self.ends_expired)?;
            if Bug::FeedMissesExpiry.is_planted() {
                events.retain(|event| event.kind != ChangeKind::Expire);
            }
            let feed = self.feed_of(&writes.current.core.name(), schema)?;
            match added.iter_mut().find(|other| other.feed.core.id() == feed.core.id()) {
                Some(other) => other.events.extend(events),
                None => added.push(Added { feed, events }),
            }
        }
        let known = self.set.as_slice().len();
        added.into_iter().try_for_each(|added| self.add_events(added))?;
        if Bug::FeedEventInOtherCommit.is_planted() {
            let feeds = self.set.split_off(known);
            let options = CommitOptions { sync: self.options.sync, ..CommitOptions::default() };
            if !feeds.is_empty() {
                self.engine.commit_in_frame(self.catalogue, &feeds, options)?;
            }
        }
        Ok(())
    }

    fn add_events(&mut self, Added { feed, events }: Added) -> Result<()> {
        let at = Value::Timestamp(self.now().date_us);
        let (count, mut events) = (events.len() as u64, (1..).zip(events));
        self.add(feed, &mut |writer, added| {
            for (nth, Event { kind, key, new, old }) in events.by_ref() {
                let kind = Value::Text(kind.as_str().to_owned());
                let more = Value::Uint(count.saturating_sub(nth));
                let row = vec![at.clone(), kind, Value::Uint(nth), more, key, new, old];
                let prepared = writer.prepare_put(&row, false)?;
                added.staged.put(row, prepared);
            }
            Ok(())
        })
    }

    /// The feed of a table as it is after the commit, by its number: the names of both may be
    /// others by then.
    fn feed_of(&self, table: &str, schema: &Schema) -> Result<TableVersion> {
        let definitions = self.options.definitions;
        let feed = schema.feed();
        let entry = feed.and_then(|feed| self.catalogue.tables.get(&feed));
        let core = entry.map(|entry| entry.writer.table()).filter(|core| core.schema().is_feed());
        let Some(core) = core else {
            let message = "keeps its changes, and its feed is not there";
            return Err(Error::corrupt(format!("table {table:?} {message}")));
        };
        let after = definitions.and_then(|new| new.altered(core.id()));
        let schema = match after {
            Some(new) => Arc::clone(&new.after.schema),
            None => core.schema(),
        };
        Ok(TableVersion::new(Arc::clone(core), schema))
    }
}

/// Refuses changes of feeds that no change of their tables has made.
pub(super) fn refuse_feeds(writes: &[TableWrites<'_>]) -> Result<()> {
    let feeds = writes.iter().filter(|writes| writes.current.schema.is_feed());
    feeds
        .map(|writes| &writes.current)
        .try_for_each(|current| refuse_companion(&current.core.name(), &current.schema, "written"))
}

/// Refuses rows of a history that the end of events has not made; rows of it may be deleted.
pub(super) fn refuse_other_history(writes: &TableWrites<'_>) -> Result<()> {
    let TableWrites { current, staged, private } = writes;
    let has_rows = staged.put_count() > 0 || private.is_some();
    match has_rows && current.schema.is_history() {
        true => refuse_companion(&current.core.name(), &current.schema, "written"),
        false => Ok(()),
    }
}

/// The events of the changes of one table, in their order.
fn events_of(writes: &TableWrites<'_>, rows: ChangedRows, ends: bool) -> Result<Vec<Event>> {
    let TableWrites { current, staged, private } = writes;
    let schema = &*current.schema;
    if private.is_some() || staged.batch.is_some() {
        let name = current.core.name();
        let message = format!(
            "table {name:?} keeps its changes, and a transaction has changed more rows of it than \
             memory holds: expected several smaller ones, or ALTER TABLE … RESET (changes) before"
        );
        return Err(Error::new(ErrorKind::OverBudget, message));
    }
    let keeps_old = rows == ChangedRows::Old;
    let mut events = Vec::with_capacity(staged.puts.len() + staged.deletes.len());
    for existing in &staged.deletes {
        let expires = ends || existing.expired;
        let kind = if expires { ChangeKind::Expire } else { ChangeKind::Delete };
        events.push(gone(current, existing, (kind, rows))?);
    }
    // Where the row of a key was put last, where several may be put.
    let (mut last, may_come_again) = (BTreeMap::new(), staged.puts.len() > 1);
    for (at, put) in staged.puts.iter().enumerate() {
        let again = match may_come_again {
            true => last.insert(key_bytes(schema, &put.row), at),
            false => None,
        };
        let existing = put.prepared.existing.filter(|before| before.deleted == 0);
        let existing = existing.filter(|_| again.is_none());
        if let Some(expired) = existing.filter(|existing| existing.expired) {
            events.push(gone(current, &expired, (ChangeKind::Expire, rows))?);
        }
        let before = existing.filter(|existing| !existing.expired);
        let is_update = before.is_some() || again.is_some();
        let kind = if is_update { ChangeKind::Update } else { ChangeKind::Insert };
        let old = match (before, again.and_then(|at| staged.row_at(at))) {
            (Some(before), _) if keeps_old => {
                object(schema, &as_now(&current.core, schema, &before)?, |_| true)?
            }
            (None, Some(row)) if keeps_old => object(schema, row, |_| true)?,
            _ => Value::Null,
        };
        let new = object(schema, &put.row, |_| true)?;
        events.push(Event { kind, key: key(schema, &put.row)?, new, old });
    }
    Ok(events)
}

/// The event of a row that is gone. Rows that expire go in the frame of a commit that waits for no
/// file, so that a long old row is left out.
fn gone(
    current: &TableVersion,
    existing: &Existing,
    (kind, rows): (ChangeKind, ChangedRows),
) -> Result<Event> {
    let schema = &*current.schema;
    let before = as_now(&current.core, schema, existing)?;
    let old = match rows {
        ChangedRows::Old => object(schema, &before, |_| true)?,
        ChangedRows::Key => Value::Null,
    };
    let is_long = byte_count(&old) > LONG_BYTES && kind == ChangeKind::Expire;
    let old = if is_long { Value::Null } else { old };
    Ok(Event { kind, key: key(schema, &before)?, new: Value::Null, old })
}

fn byte_count(value: &Value) -> usize {
    // default: NULL has no bytes
    value.as_ref().as_bytes().map_or(0, <[u8]>::len)
}

/// Rows that expire, cut so that a frame holds what each part adds to the feed of their table.
pub(super) fn cut_for_feed(
    current: &TableVersion,
    expired: Staged<'_>,
) -> Result<Vec<Vec<Existing>>> {
    let Some((_, rows)) = current.schema.kept_changes() else {
        return Ok(vec![expired.deletes]);
    };
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for existing in expired.deletes {
        let event = gone(current, &existing, (ChangeKind::Expire, rows))?;
        bytes += EVENT_BYTES + byte_count(&event.key) + byte_count(&event.old);
        if bytes > EXPIRY_BYTES_MAX && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        part.push(existing);
    }
    parts.push(part);
    Ok(parts)
}

/// A row as the fields that the commit knows have it.
fn as_now(core: &TableCore, schema: &Schema, existing: &Existing) -> Result<Vec<Value>> {
    let (stored, row) = (core.schema(), core.row_at(existing.location)?);
    if stored.version() == schema.version() {
        return Ok(row);
    }
    let value = |field: &esker_format::Field| {
        let at = stored.fields().iter().position(|other| other.id == field.id);
        // default: a field that comes with the commit had its initial value before
        at.and_then(|at| row.get(at)).unwrap_or(&field.initial).clone()
    };
    Ok(schema.fields().iter().map(value).collect())
}

fn key(schema: &Schema, row: &[Value]) -> Result<Value> {
    object(schema, row, |at| schema.key_positions().contains(&at))
}

/// Some fields of a row as an object.
fn object(schema: &Schema, row: &[Value], has: impl Fn(usize) -> bool) -> Result<Value> {
    let fields = schema.fields().iter().zip(row).enumerate().filter(|(at, _)| has(*at));
    let mut members = Vec::with_capacity(row.len());
    for (_, (field, value)) in fields {
        let shown = json::from_value(value.as_ref());
        let text = |_| json::string(&value.as_ref().to_string());
        // default: a float that JSON has no number for is a string
        members.push((&*field.name, shown.unwrap_or_else(text)));
    }
    let members = members.iter().map(|(name, value)| (*name, json::Json::document(value)));
    Ok(Value::Json(json::object(members, &mut |_| Ok(()))?))
}
