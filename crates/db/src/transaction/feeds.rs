//! The feeds of tables that a transaction creates, renames, alters or drops: they come, change and
//! go with these.

use std::sync::Arc;

use esker_format::Schema;

use super::Transaction;
use super::definitions::Definitions;
use super::tables::refuse_name;
use crate::Result;
use crate::catalog::view_needs::refuse_read;
use crate::feed::shape::{kept_for, name_of, schema_of};

/// All within one definition.
impl Transaction {
    /// A table keeps its changes from now on.
    pub(super) fn create_feed(
        &self,
        definitions: &mut Definitions,
        table: &str,
        keep_us: u64,
    ) -> Result<()> {
        let name = name_of(table);
        refuse_name(definitions, &name)?;
        let core = self.engine.new_numbered_table(&name, schema_of(keep_us)?)?;
        definitions.create(&core, Vec::new())
    }

    /// A table is gone, or keeps no changes.
    pub(super) fn drop_feed(&self, definitions: &mut Definitions, table: &str) -> Result<()> {
        let name = name_of(table);
        refuse_read(&definitions.names, "table", &name, true)?;
        let feed = self.version_within(definitions, &name)?;
        definitions.drop_table(&name, &feed)
    }

    /// A table has another name.
    pub(super) fn rename_feed(
        &self,
        definitions: &mut Definitions,
        (from, to): (&str, &str),
    ) -> Result<()> {
        let (from, to) = (name_of(from), name_of(to));
        refuse_name(definitions, &to)?;
        refuse_read(&definitions.names, "table", &from, false)?;
        let feed = self.version_within(definitions, &from)?;
        definitions.rename(&from, &to, &feed)
    }

    /// A table has another schema, by which its feed begins, ends, or is kept for another time.
    pub(super) fn alter_feed(
        &self,
        definitions: &mut Definitions,
        table: &str,
        (before, after): (&Schema, &Schema),
    ) -> Result<()> {
        let kept = |schema: &Schema| schema.kept_changes().map(|(keep_us, _)| keep_us);
        match (kept(before), kept(after)) {
            (None, Some(keep_us)) => self.create_feed(definitions, table, keep_us),
            (Some(_), None) => self.drop_feed(definitions, table),
            (Some(before), Some(keep_us)) if before != keep_us => {
                let name = name_of(table);
                let feed = self.version_within(definitions, &name)?;
                let schema = Arc::new(kept_for(&feed.schema, keep_us)?);
                definitions.alter(&name, &feed, (&schema, false), Vec::new())
            }
            _ => Ok(()),
        }
    }
}
