//! What a commit adds to the feeds of the tables that it changes.
//!
//! Under the commit lock all changes are staged, and what they replace can be read: the events of a
//! feed are made there, and are in the same frame. A table without a feed pays one look at its
//! schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::schema::ChangedRows;
use esker_format::{Schema, Value, json};
use esker_table::Table as TableCore;
use esker_table::table::Existing;

use crate::commit::definitions::NewDefinitions;
use crate::commit::extension::Extension;
use crate::commit::hooks::StagedCommit;
use crate::commit::staged::key_bytes;
use crate::commit::write_set::TableWrites;
use crate::feed::ChangeKind;
use crate::feed::shape::{name_of, refuse_feed};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

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
        for table in truncated {
            if table.old.before.schema.kept_changes().is_some() {
                let core = &table.old.core;
                let (key, new, old) = (Value::Null, Value::Null, Value::Null);
                let events = vec![Event { kind: ChangeKind::Truncate, key, new, old }];
                if let Some(feed) = self.feed_of(core)? {
                    added.push(Added { feed, events });
                }
            }
        }
        for writes in self.set.as_slice().iter().filter(|writes| !writes.is_empty()) {
            let Some((_, rows)) = writes.current.schema.kept_changes() else { continue };
            let events = events_of(writes, rows, self.ends_expired)?;
            let feed = self.feed_of(&writes.current.core)?.ok_or_else(|| no_feed(writes))?;
            match added.iter_mut().find(|other| other.feed.core.id() == feed.core.id()) {
                Some(other) => other.events.extend(events),
                None => added.push(Added { feed, events }),
            }
        }
        added.into_iter().try_for_each(|added| self.add_events(added))
    }

    fn add_events(&mut self, Added { feed, events }: Added) -> Result<()> {
        let at = Value::Timestamp(self.now().date_us);
        let mut more = events.len() as u64;
        let mut events = events.into_iter();
        self.add(feed, &mut |writer, added| {
            for Event { kind, key, new, old } in events.by_ref() {
                more = more.saturating_sub(1);
                let kind = Value::Text(kind.as_str().to_owned());
                let row = vec![at.clone(), kind, Value::Uint(more), key, new, old];
                let prepared = writer.prepare_put(&row, false)?;
                added.staged.put(row, prepared);
            }
            Ok(())
        })
    }

    /// The feed of a table as it is after the commit; `None` where it goes with it.
    fn feed_of(&self, table: &TableCore) -> Result<Option<TableVersion>> {
        let name = name_of(&table.name());
        let definitions = self.options.definitions;
        if let Some(core) = definitions.and_then(|new| coming(new, &name)) {
            return Ok(Some(TableVersion::newest(core)));
        }
        let names = self.engine.names.load();
        let renamed = || {
            let altered = definitions.into_iter().flat_map(|new| &new.altered);
            altered.map(|table| (&table.core, &table.after)).find(|(_, after)| after.name == name)
        };
        let found = names.newest().get(&name).or_else(|| renamed().map(|(core, _)| core));
        let Some(core) = found.filter(|core| core.schema().is_feed()) else { return Ok(None) };
        let after = definitions.and_then(|new| new.altered(core.id()));
        let schema = match after {
            Some(new) => Arc::clone(&new.after.schema),
            None => core.schema(),
        };
        let feed = TableVersion::new(Arc::clone(core), schema);
        Ok(Some(feed).filter(|feed| definitions.is_none_or(|new| new.leaves(feed))))
    }
}

/// A feed that comes with the commit.
fn coming<'d>(new: &'d NewDefinitions, name: &str) -> Option<&'d Arc<TableCore>> {
    let cores = new.created.iter().map(|created| &created.core);
    cores.filter(|core| core.schema().is_feed()).find(|core| **core.name() == *name)
}

fn no_feed(writes: &TableWrites<'_>) -> Error {
    let name = writes.current.core.name();
    Error::corrupt(format!("table {name:?} keeps its changes, and its feed is not there"))
}

/// Refuses changes of feeds that no change of their tables has made.
pub(super) fn refuse_feeds(writes: &[TableWrites<'_>]) -> Result<()> {
    writes.iter().try_for_each(|writes| {
        refuse_feed(&writes.current.core.name(), &writes.current.schema, "written")
    })
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
    let gone = |existing: &Existing, kind| {
        let before = as_now(&current.core, schema, existing)?;
        let old = if keeps_old { object(schema, &before, |_| true)? } else { Value::Null };
        Ok::<_, Error>(Event { kind, key: key(schema, &before)?, new: Value::Null, old })
    };
    for existing in &staged.deletes {
        let has_expired = ends || existing.expired;
        let kind = if has_expired { ChangeKind::Expire } else { ChangeKind::Delete };
        events.push(gone(existing, kind)?);
    }
    let mut seen = BTreeSet::new();
    let may_come_again = staged.puts.len() > 1;
    for put in &staged.puts {
        let existing = put.prepared.existing.filter(|existing| existing.deleted == 0);
        let comes_again = may_come_again && !seen.insert(key_bytes(schema, &put.row));
        let before = existing.filter(|existing| !existing.expired && !comes_again);
        if let Some(expired) = existing.filter(|existing| existing.expired && !comes_again) {
            events.push(gone(&expired, ChangeKind::Expire)?);
        }
        let is_update = before.is_some() || comes_again;
        let kind = if is_update { ChangeKind::Update } else { ChangeKind::Insert };
        let old = match before.filter(|_| keeps_old) {
            Some(before) => object(schema, &as_now(&current.core, schema, &before)?, |_| true)?,
            None => Value::Null,
        };
        let new = object(schema, &put.row, |_| true)?;
        events.push(Event { kind, key: key(schema, &put.row)?, new, old });
    }
    Ok(events)
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
