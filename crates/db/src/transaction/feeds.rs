//! The feeds of tables that a transaction creates, renames, alters or drops: they come, change and
//! go with these.

use std::sync::Arc;

use esker_format::{Schema, TableId};

use super::Transaction;
use super::definitions::Definitions;
use super::tables::refuse_name;
use crate::catalog::view_needs::refuse_read;
use crate::feed::shape::{kept_for, name_of, schema_of};
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// All within one definition.
impl Transaction {
    /// A table that is new, with the feed that it is to have.
    pub(super) fn with_new_feed(
        &self,
        definitions: &mut Definitions,
        (table, schema): (&str, Schema),
    ) -> Result<Schema> {
        if schema.is_companion() {
            let message = "a feed is made with the table whose changes it has, a history with its \
                           materialized view";
            return Err(Error::invalid(message));
        }
        let kept = schema.kept_changes();
        let create = |(keep_us, _)| self.create_feed(definitions, table, keep_us);
        Ok(schema.with_feed(kept.map(create).transpose()?))
    }

    /// A table keeps its changes from now on.
    fn create_feed(
        &self,
        definitions: &mut Definitions,
        table: &str,
        keep_us: u64,
    ) -> Result<TableId> {
        let name = name_of(table);
        refuse_name(definitions, &name)?;
        let core = self.engine.new_numbered_table(&name, schema_of(keep_us)?)?;
        definitions.create(&core, Vec::new())?;
        Ok(core.id())
    }

    /// The feed of a table and its name, where it keeps its changes.
    fn feed_within(
        &self,
        definitions: &Definitions,
        (table, schema): (&str, &Schema),
    ) -> Result<Option<(String, TableVersion)>> {
        let (Some(id), name) = (schema.feed(), name_of(table)) else { return Ok(None) };
        let feed = self.version_within(definitions, &name)?;
        if feed.core.id() != id || !feed.schema.is_feed() {
            let message = format!("table {table:?} has another feed than {name:?}");
            return Err(Error::corrupt(message));
        }
        Ok(Some((name, feed)))
    }

    /// A table is gone, or keeps no changes.
    pub(super) fn drop_feed(
        &self,
        definitions: &mut Definitions,
        of: (&str, &Schema),
    ) -> Result<()> {
        let Some((name, feed)) = self.feed_within(definitions, of)? else { return Ok(()) };
        refuse_read(&definitions.names, "table", &name, true)?;
        definitions.drop_table(&name, &feed)
    }

    /// A table has another name.
    pub(super) fn rename_feed(
        &self,
        definitions: &mut Definitions,
        of: (&str, &Schema),
        to: &str,
    ) -> Result<()> {
        let Some((from, feed)) = self.feed_within(definitions, of)? else { return Ok(()) };
        let to = name_of(to);
        refuse_name(definitions, &to)?;
        refuse_read(&definitions.names, "table", &from, false)?;
        definitions.rename(&from, &to, &feed)
    }

    /// A table has another schema, by which its feed begins, ends, or is kept for another time, and
    /// which the histories of its rollups have to fit.
    pub(super) fn alter_companions(
        &self,
        definitions: &mut Definitions,
        table: &str,
        (before, after): (&Schema, Arc<Schema>),
    ) -> Result<Arc<Schema>> {
        self.expect_histories_outlive(definitions, (table, &after))?;
        if before.feed() != after.feed() {
            self.drop_feed(definitions, (table, before))?;
        }
        let Some((keep_us, _)) = after.kept_changes() else { return Ok(after) };
        let Some((name, feed)) = self.feed_within(definitions, (table, &after))? else {
            let feed = self.create_feed(definitions, table, keep_us)?;
            return Ok(Arc::new((*after).clone().with_feed(Some(feed))));
        };
        if before.kept_changes().is_none_or(|(before, _)| before != keep_us) {
            let schema = Arc::new(kept_for(&feed.schema, keep_us)?);
            definitions.alter(&name, &feed, (&schema, false), Vec::new())?;
        }
        Ok(after)
    }
}
