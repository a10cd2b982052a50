//! Which tables and views there are: now, and at earlier commits that readers still hold.
//!
//! # Invariants
//!
//! 1. The commits that changed the names rise: they are published under the commit lock, in the
//!    order of numbers. `changed` refuses one that does not come after the last.
//! 2. What a reader may ask for is kept: `settled` forgets what only readers before the oldest
//!    registered commit see.
//! 3. A view has no name of a table: commits refuse it, see `commit/definitions`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use esker_format::Namespace;
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;

use crate::catalog::defined_view::DefinedView;
use crate::{Error, ErrorKind, Result};

/// The schema of the tables that users make.
pub const MAIN_SCHEMA: &str = "main";

/// The schema of the temporary tables of a session.
pub const TEMPORARY_SCHEMA: &str = "temp";

/// The schema of the tables of the standard.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// What stands before the names of a session's temporary tables.
pub(crate) const TEMPORARY_PREFIX: &str = "temp.";

/// What stands before the names of other tables, where it has to be said.
pub(crate) const MAIN_PREFIX: &str = "main.";

/// The tables there are, and beside them the views and the namespaces.
#[derive(Clone, Default)]
pub(crate) struct Names {
    tables: BTreeMap<String, Arc<TableCore>>,
    pub views: BTreeMap<String, Arc<DefinedView>>,
    pub namespaces: BTreeMap<String, Namespace>,
}

impl Names {
    /// The error for a namespace that is not there.
    pub fn no_namespace(&self, name: &str) -> Error {
        let all = self.namespaces.keys().map(String::as_str);
        let known = all.chain([MAIN_SCHEMA, TEMPORARY_SCHEMA, INFORMATION_SCHEMA]);
        let known = esker_format::suggest::near_or_all(name, "schemas", known);
        Error::new(ErrorKind::NotFound, format!("no schema {name:?}{known}"))
    }

    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with views and namespaces.
    pub fn with_others(
        self,
        views: BTreeMap<String, Arc<DefinedView>>,
        namespaces: BTreeMap<String, Namespace>,
    ) -> Self {
        Self { views, namespaces, ..self }
    }

    /// The namespace that the name of a table or view says, and its name there.
    pub fn in_namespace<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        name.split_once('.').filter(|(namespace, _)| self.namespaces.contains_key(*namespace))
    }

    /// The tables and views whose names begin with that of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &str> {
        let prefix = format!("{namespace}.");
        let all = self.tables.keys().chain(self.views.keys()).map(String::as_str);
        all.filter(move |name| name.starts_with(&prefix))
    }

    /// What has a name, in words; `None` when it is free.
    pub fn taken(&self, name: &str) -> Option<String> {
        if let Some(view) = self.views.get(name) {
            return Some(format!("{} {name:?} exists already", view.kind()));
        }
        let table = self.tables.get(name)?;
        let kind = if table.schema().is_bucket() { "bucket" } else { "table" };
        Some(format!("{kind} {name:?} exists already"))
    }

    /// The views that read a table or view by themselves.
    pub fn readers_of<'n>(
        &'n self,
        name: &'n str,
    ) -> impl Iterator<Item = (&'n String, &'n Arc<DefinedView>)> {
        self.views.iter().filter(move |(_, view)| view.stored.reads(name))
    }

    /// The views that read a table or view, by themselves or by others: none before those that
    /// read it.
    pub fn dependants_of(&self, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        self.add_dependants(name, &mut all);
        all
    }

    fn add_dependants(&self, name: &str, all: &mut Vec<String>) {
        for (reader, _) in self.readers_of(name) {
            if !all.contains(reader) {
                self.add_dependants(reader, all);
                all.push(reader.clone());
            }
        }
    }

    /// What is read where some names are: in place of views the tables that they read, and the
    /// views. Names that nothing has stay, as those of tables.
    pub fn read_by(&self, names: BTreeSet<String>) -> ReadNames {
        let (mut read, mut next) = (ReadNames::default(), names.into_iter().collect::<Vec<_>>());
        while let Some(name) = next.pop() {
            match self.views.get(&name) {
                None => drop(read.tables.insert(name)),
                Some(view) => {
                    if let Some(history) = self.history_of(&name, view) {
                        read.tables.insert(history);
                    }
                    if read.views.insert(name, Arc::clone(view)).is_none() {
                        next.extend(view.stored.inputs.iter().map(|input| input.name.clone()));
                    }
                }
            }
        }
        read
    }
}

impl Names {
    /// The name of the history of a view, where it has one.
    pub fn history_of(&self, name: &str, view: &DefinedView) -> Option<String> {
        let history = Some(history_name(name)).filter(|_| view.stored.is_rollup)?;
        self.tables.get(&history)?.schema().is_history().then_some(history)
    }
}

/// The name of the history of a view. That a table of this name is one says its schema.
pub(crate) fn history_name(view: &str) -> String {
    format!("{view}$history")
}

/// What a statement reads.
#[derive(Default)]
pub(crate) struct ReadNames {
    pub tables: BTreeSet<String>,
    pub views: BTreeMap<String, Arc<DefinedView>>,
}

impl Deref for Names {
    type Target = BTreeMap<String, Arc<TableCore>>;

    fn deref(&self) -> &Self::Target {
        &self.tables
    }
}

impl DerefMut for Names {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.tables
    }
}

impl FromIterator<(String, Arc<TableCore>)> for Names {
    fn from_iter<I: IntoIterator<Item = (String, Arc<TableCore>)>>(tables: I) -> Self {
        let tables = tables.into_iter().collect();
        Self { tables, views: BTreeMap::new(), namespaces: BTreeMap::new() }
    }
}

/// The tables by name; replaced whole, under the commit lock.
pub(crate) struct NameHistory {
    newest: Arc<Names>,
    /// What readers at commits before the first see, by rising commit.
    past: Vec<(u64, Arc<Names>)>,
    /// The commit of the newest change; 0 before the first.
    changed_at: u64,
}

impl NameHistory {
    /// Without a past.
    pub fn new(names: Names) -> Self {
        Self { newest: Arc::new(names), past: Vec::new(), changed_at: 0 }
    }

    /// The tables by the newest commit.
    pub fn newest(&self) -> &Arc<Names> {
        &self.newest
    }

    /// The tables as of a commit that was registered before this was loaded.
    pub fn at(&self, commit: u64) -> &Arc<Names> {
        let past = self.past.iter().find(|(until, _)| commit < *until);
        // default: no change since is the newest
        past.map_or(&self.newest, |(_, names)| names)
    }

    /// True when readers before some commit may see other tables.
    pub fn has_past(&self) -> bool {
        !self.past.is_empty()
    }

    /// The same without what only readers before `oldest` see; `None` when there is nothing of
    /// that kind.
    pub fn settled(&self, oldest: u64) -> Option<Self> {
        let still = |(until, _): &&(u64, Arc<Names>)| *until > oldest;
        let past: Vec<_> = self.past.iter().filter(still).cloned().collect();
        let newest = Arc::clone(&self.newest);
        (past.len() < self.past.len()).then_some(Self { newest, past, ..*self })
    }

    /// The tables once `commit` has made them these. What only readers before `oldest` see is
    /// forgotten.
    ///
    /// # Errors
    /// `Corrupt` when the newest change is of this commit or a later one.
    pub fn changed(&self, commit: u64, oldest: u64, names: Names) -> Result<Self> {
        let newest = self.changed_at;
        let commit = if Bug::NamesOfOlderCommit.is_planted() { newest } else { commit };
        if commit <= newest {
            let message = format!("names: those of commit {commit} after those of {newest}");
            return Err(Error::corrupt(message));
        }
        // default: nothing is to be forgotten
        let mut past = self.settled(oldest).map_or_else(|| self.past.clone(), |kept| kept.past);
        past.push((commit, Arc::clone(&self.newest)));
        Ok(Self { newest: Arc::new(names), past, changed_at: commit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_find_the_names_of_their_commit() {
        let (mut history, mut versions) = (NameHistory::new(Names::new()), Vec::new());
        for commit in [3, 5, 9] {
            versions.push(Arc::clone(history.newest()));
            history = history.changed(commit, 2, Names::new()).unwrap();
        }
        versions.push(Arc::clone(history.newest()));
        let seen = |history: &NameHistory, commit: u64| {
            versions.iter().position(|names| Arc::ptr_eq(names, history.at(commit)))
        };
        let expected = [(2, 0), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (u64::MAX, 3)];
        for (commit, version) in expected {
            assert_eq!(seen(&history, commit), Some(version), "at commit {commit}");
        }
        // Nobody reads before 5 any more.
        let history = history.changed(12, 5, Names::new()).unwrap();
        assert_eq!([5, 8, 9, 11].map(|commit| seen(&history, commit)), [2, 2, 3, 3].map(Some));
        assert_eq!(history.past.len(), 2);
    }

    #[test]
    fn names_of_an_older_commit_are_refused() {
        let history = NameHistory::new(Names::new()).changed(7, 2, Names::new()).unwrap();
        for commit in [3, 7] {
            let refused = history.changed(commit, 7, Names::new()).err().unwrap();
            assert!(refused.to_string().contains("after those of 7"), "{refused}");
        }
        // What is forgotten of the past does not make an older change a newer one.
        let settled = history.settled(9).unwrap();
        assert!(!settled.has_past() && settled.changed(7, 9, Names::new()).is_err());
        assert!(settled.changed(8, 9, Names::new()).is_ok());
    }
}
