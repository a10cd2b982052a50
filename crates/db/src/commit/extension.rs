//! A commit while hooks add to it.

use esker_format::{Moment, invariant};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::conflict::conflict;
use crate::commit::hooks::{Stage, StagedCommit};
use crate::commit::options::CommitOptions;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine::Engine;
use crate::table_version::TableVersion;

/// A commit that is staged, and what it takes to stage more.
pub(crate) struct Extension<'c, 'r> {
    pub engine: &'c Engine,
    pub catalogue: &'c mut Catalogue,
    pub set: &'c mut WriteSet<'r>,
    pub options: CommitOptions<'c>,
    /// Whether the rows that are deleted are those whose time is over.
    pub ends_expired: bool,
}

impl<'r> StagedCommit<'r> for Extension<'_, 'r> {
    fn writes(&self) -> &[TableWrites<'r>] {
        self.set.as_slice()
    }

    fn now(&self) -> Moment {
        self.engine.now()
    }

    fn add(&mut self, current: TableVersion, stage: Stage<'_, 'r>) -> Result<()> {
        let Self { engine, catalogue, set, options, .. } = self;
        let id = current.core.id();
        let is_new = set.as_slice().iter().all(|writes| writes.current.core.id() != id);
        invariant!(is_new, format_args!("table {}", id.0), "a hook adds what is changed already");
        if options.definitions.is_some_and(|new| !new.leaves(&current)) {
            let name = current.core.name();
            return Err(conflict(format!("table {name:?} is another with this commit")));
        }
        let mut added = TableWrites::new(current);
        engine.stage(catalogue, &mut added, *options, stage)?;
        set.push(added);
        Ok(())
    }
}
