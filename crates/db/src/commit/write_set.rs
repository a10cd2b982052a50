//! One commit of changes to several tables (protocol rule 7): one frame has all of them, in the
//! order of the tables' numbers, so that recovery applies all or none. What is more than a frame
//! takes goes by way of segments, the largest tables first: see [`overflow`](super::overflow).

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::commit::private_rows::PrivateRows;
use crate::commit::staged::Staged;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The changes of one table within a commit.
pub(crate) struct TableWrites<'r> {
    pub current: Cow<'r, TableVersion>,
    pub staged: Staged<'r>,
    /// What a transaction has put into segments already.
    pub private: Option<PrivateRows>,
}

impl<'r> TableWrites<'r> {
    /// No changes yet.
    pub fn new(current: impl Into<Cow<'r, TableVersion>>) -> Self {
        Self { current: current.into(), staged: Staged::default(), private: None }
    }

    pub fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.private.is_none()
    }
}

/// The changes of a commit, by table.
#[allow(clippy::large_enum_variant, reason = "a box would be allocated for each commit")]
pub(crate) enum WriteSet<'r> {
    /// Of one table, as nearly all commits are: nothing is allocated for it.
    One(TableWrites<'r>),
    Many(Vec<TableWrites<'r>>),
}

impl<'r> WriteSet<'r> {
    pub fn as_slice(&self) -> &[TableWrites<'r>] {
        match self {
            Self::One(writes) => std::slice::from_ref(writes),
            Self::Many(writes) => writes,
        }
    }

    pub fn as_mut_slice(&mut self) -> &mut [TableWrites<'r>] {
        match self {
            Self::One(writes) => std::slice::from_mut(writes),
            Self::Many(writes) => writes,
        }
    }

    /// True when nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.as_slice().iter().all(TableWrites::is_empty)
    }

    /// Adds changes of one more table.
    pub fn push(&mut self, writes: TableWrites<'r>) {
        let mut all = std::mem::replace(self, Self::Many(Vec::new())).into_vec();
        all.push(writes);
        *self = Self::Many(all);
    }

    /// Takes out the changes of all tables but the first ones.
    pub fn split_off(&mut self, kept: usize) -> Vec<TableWrites<'r>> {
        match self {
            Self::One(_) => Vec::new(),
            Self::Many(all) => all.split_off(kept.min(all.len())),
        }
    }

    /// The tables that are changed.
    pub fn into_changed(self) -> Vec<TableWrites<'r>> {
        let mut all = self.into_vec();
        all.retain(|writes| !writes.is_empty());
        all
    }

    fn into_vec(self) -> Vec<TableWrites<'r>> {
        match self {
            Self::One(first) => vec![first],
            Self::Many(all) => all,
        }
    }

    /// How the commit is to be acknowledged, as the staging of the first table has it: what hooks
    /// add comes behind it.
    pub fn sync(&self) -> Option<bool> {
        self.as_slice().first()?.staged.sync
    }

    /// Refuses two parts of one table.
    pub fn expect_distinct(&self) -> Result<()> {
        let Self::Many(all) = self else { return Ok(()) };
        let mut tables = BTreeSet::new();
        if all.iter().all(|writes| tables.insert(writes.current.core.id())) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "a table was cleared meanwhile; try again"))
    }
}
