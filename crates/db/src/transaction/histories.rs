//! The histories of rollups that a transaction creates, renames or drops: they come and go with
//! these.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::{Alteration, StreamOption};
use esker_query::Rollup;
use esker_table::Table as TableCore;

use super::Transaction;
use super::definitions::Definitions;
use super::tables::refuse_name;
use super::undo::Taken;
use crate::catalog::defined_view::DefinedView;
use crate::catalog::kept_for::KeptFor;
use crate::catalog::names::history_name;
use crate::catalog::rollup_history::{self, expect_longer, schema_of};
use crate::catalog::usable_name::expect_usable;
use crate::catalog::view_needs::{TableSchemas, refuse_read};
use crate::{Error, Result};

impl Transaction {
    /// What the groups of a rollup came to is kept from now on when events end.
    pub(super) fn create_history(
        &self,
        name: &str,
        view: &DefinedView,
        kept: KeptFor,
    ) -> Result<()> {
        let at = |e: Error| e.at(format_args!("materialized view {name:?}"));
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let history = history_name(name);
            expect_usable("table", &history)?;
            refuse_name(definitions, &history)?;
            let rollup = self.rollup_within(definitions, view)?;
            let schema = self.version_within(definitions, &rollup.table)?.schema;
            let kept = schema_of((&rollup, &view.view), (schema.rollup(name), &schema), kept);
            let core = self.engine.new_numbered_table(&history, kept.map_err(at)?)?;
            definitions.create(&core, Vec::new())?;
            Ok(Taken::Nothing)
        })
    }

    fn rollup_within(&self, definitions: &Definitions, view: &DefinedView) -> Result<Rollup> {
        let names = Arc::clone(&definitions.names);
        let schema_of_table = |core: &Arc<TableCore>| self.schema_within(definitions, core);
        let (query, others) = (&view.view.query, view.others.clone());
        let tables = TableSchemas::of_query(&names, query, &schema_of_table, others)?;
        Ok(Rollup::of(query, &tables)?)
    }

    /// Refuses events that are kept for longer than what their groups come to.
    pub(super) fn expect_histories_outlive(
        &self,
        definitions: &Definitions,
        (name, schema): (&str, &Schema),
    ) -> Result<()> {
        for index in schema.indexes().iter().filter(|index| index.is_rollup()) {
            let Some(core) = rollup_history::of(&definitions.names, &index.name) else { continue };
            let history = self.schema_within(definitions, core)?;
            let kept = history.stream().and_then(|stream| stream.retention.keep_us);
            let view = definitions.names.views.get(&index.name);
            if let (Some(keep_us), Some(view)) = (kept, view) {
                let rollup = self.rollup_within(definitions, view)?;
                let longer = expect_longer(&rollup, schema, keep_us);
                longer.map_err(|e| {
                    e.at(format_args!("table {name:?}: materialized view {:?}", index.name))
                })?;
            }
        }
        Ok(())
    }

    /// Whether a rollup has a history.
    pub(super) fn has_history(&self, name: &str) -> Result<bool> {
        Ok(rollup_history::of(&*self.names()?, name).is_some())
    }

    /// A rollup is gone: so is its history.
    pub(super) fn drop_history(&self, name: &str) -> Result<()> {
        if !self.has_history(name)? {
            return Ok(());
        }
        self.define(&mut self.state(), |state, definitions| {
            let history = history_name(name);
            let current = self.version_within(definitions, &history)?;
            refuse_read(&definitions.names, "table", &history, true)?;
            definitions.drop_table(&history, &current)?;
            let id = current.core.id();
            Ok(Taken::Changes(id, state.changes.remove(&id).map(Box::new)))
        })
    }

    /// A rollup has another name.
    pub(super) fn rename_history(&self, from: &str, to: &str) -> Result<()> {
        if !self.has_history(from)? {
            return Ok(());
        }
        self.define(&mut self.state(), |_, definitions| {
            let (from, to) = (history_name(from), history_name(to));
            let current = self.version_within(definitions, &from)?;
            refuse_name(definitions, &to)?;
            refuse_read(&definitions.names, "table", &from, false)?;
            definitions.rename(&from, &to, &current)?;
            Ok(Taken::Nothing)
        })
    }

    /// Sets for how long the history of a rollup is kept.
    ///
    /// # Errors
    /// `NotFound` when there is no such rollup; `InvalidInput` when it has no history, or one whose
    /// groups have no time, or for a time that is shorter than that of the events.
    pub fn set_rollup_retention(&self, name: &str, kept: KeptFor) -> Result<()> {
        let Some((view, _)) = self.rollup_of(name)? else {
            let message = format!("no materialized view {name:?}");
            return Err(Error::new(crate::ErrorKind::NotFound, message));
        };
        if !self.has_history(name)? {
            let message = format!(
                "materialized view {name:?} has no history: expected one made WITH (retention = …)"
            );
            return Err(Error::invalid(message));
        }
        let events = self.current(&self.state(), &view.view.query.table)?.schema;
        let keep_us = match kept {
            KeptFor::Ever => None,
            KeptFor::Span(keep_us) => Some(keep_us),
        };
        self.define(&mut self.state(), |_, definitions| {
            if let Some(keep_us) = keep_us {
                expect_longer(&self.rollup_within(definitions, &view)?, &events, keep_us)?;
            }
            let history = history_name(name);
            let current = self.version_within(definitions, &history)?;
            let schema = kept_for(name, &current.schema, keep_us)?;
            definitions.alter(&history, &current, (&schema, false), Vec::new())?;
            Ok(Taken::Nothing)
        })
    }

    /// Puts the history of a rollup in place as another database has it.
    pub(crate) fn copy_history(&self, name: &str, schema: &Schema) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            refuse_name(definitions, name)?;
            let core = self.engine.new_numbered_table(name, schema.clone())?;
            definitions.create(&core, Vec::new())?;
            Ok(Taken::Nothing)
        })
    }
}

/// The same history, kept for another time.
fn kept_for(view: &str, schema: &Schema, keep_us: Option<u64>) -> Result<Arc<Schema>> {
    if schema.stream().is_none() {
        return match keep_us {
            None => Ok(Arc::new(schema.clone())),
            Some(_) => Err(Error::invalid(format!(
                "materialized view {view:?}: no key says when a group was, so that its history is \
                 kept for ever"
            ))),
        };
    }
    let retention = Alteration::SetStream(StreamOption::Retention(keep_us));
    Ok(Arc::new(schema.alter(&[retention])?))
}
