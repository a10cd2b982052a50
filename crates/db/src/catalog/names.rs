//! Which tables there are, now and at the commits that somebody may still read at.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_table::Table as TableCore;

/// The tables there are.
pub(crate) type Names = BTreeMap<String, Arc<TableCore>>;

/// The tables by name; replaced whole, under the commit lock.
pub(crate) struct NameHistory {
    newest: Arc<Names>,
    /// What readers at commits before the first see, by rising commit.
    past: Vec<(u64, Arc<Names>)>,
}

impl NameHistory {
    /// Without a past.
    pub fn new(names: Names) -> Self {
        Self { newest: Arc::new(names), past: Vec::new() }
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
        (past.len() < self.past.len()).then(|| Self { newest: Arc::clone(&self.newest), past })
    }

    /// The tables once `commit` has made them these. What only readers before `oldest` see is
    /// forgotten.
    pub fn changed(&self, commit: u64, oldest: u64, names: Names) -> Self {
        // default: nothing is to be forgotten
        let mut past = self.settled(oldest).map_or_else(|| self.past.clone(), |kept| kept.past);
        past.push((commit, Arc::clone(&self.newest)));
        Self { newest: Arc::new(names), past }
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
            history = history.changed(commit, 2, Names::new());
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
        let history = history.changed(12, 5, Names::new());
        assert_eq!([5, 8, 9, 11].map(|commit| seen(&history, commit)), [2, 2, 3, 3].map(Some));
        assert_eq!(history.past.len(), 2);
    }
}
