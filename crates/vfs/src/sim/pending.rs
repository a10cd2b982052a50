//! The changes that a crash may keep or lose.

use std::collections::BTreeMap;
use std::fmt;

use super::disk::{Change, Disk, NameChange, NodeId, View};

/// A change that no sync has made durable yet: one bit of
/// [`CrashChoice::Subset`](super::CrashChoice::Subset).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The file or the new name, as a path where it has one now.
    pub path: String,
    /// What would happen to it.
    pub kind: PendingKind,
}

/// What kind of change is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PendingKind {
    /// `len` bytes at `offset`.
    Write {
        /// Where they go.
        offset: u64,
        /// How many there are.
        len: u64,
    },
    /// A new length.
    SetLen {
        /// The length in bytes.
        len: u64,
    },
    /// A file appears.
    Create,
    /// A file disappears.
    Remove,
    /// A file moves; [`Pending::path`] is the new name.
    Rename,
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            PendingKind::Write { offset, len } => write!(f, "write {path} {len} at {offset}"),
            PendingKind::SetLen { len } => write!(f, "set length {path} {len}"),
            PendingKind::Create => write!(f, "create {path}"),
            PendingKind::Remove => write!(f, "remove {path}"),
            PendingKind::Rename => write!(f, "rename to {path}"),
        }
    }
}

/// Where in a [`Disk`] a pending change is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PendingAt {
    Name { index: usize },
    Contents { node: NodeId, index: usize },
}

impl Disk {
    /// What is pending in files that a crash might leave a name for, in the order it was done.
    pub(crate) fn pending(&self) -> Vec<PendingAt> {
        let mut reachable = self.reachable(View::Durable);
        for pending in &self.pending_names {
            let node = pending.change.node();
            if reachable.insert(node) {
                self.reach(node, View::Durable, &mut reachable);
            }
        }
        let mut found: Vec<(u64, PendingAt)> = Vec::new();
        for (index, pending) in self.pending_names.iter().enumerate() {
            found.push((pending.sequence, PendingAt::Name { index }));
        }
        for node in reachable {
            let changes = self.file(node).map(|file| file.pending.as_slice()).unwrap_or_default();
            for (index, pending) in changes.iter().enumerate() {
                found.push((pending.sequence, PendingAt::Contents { node, index }));
            }
        }
        found.sort_unstable_by_key(|(sequence, _)| *sequence);
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// The change of contents at a place.
    pub(crate) fn pending_change(&self, node: NodeId, index: usize) -> Option<&Change> {
        Some(&self.file(node)?.pending.get(index)?.change)
    }

    /// The pending changes in words.
    pub(crate) fn describe_pending(&self) -> Vec<Pending> {
        let mut paths = BTreeMap::new();
        for view in [View::Durable, View::Current] {
            paths.extend(self.paths(view).into_iter().map(|(path, id)| (id, path)));
        }
        let path = |id: &NodeId| {
            paths.get(id).map_or_else(|| format!("file {id}"), |path| path.display().to_string())
        };
        let describe = |at: &PendingAt| match at {
            PendingAt::Name { index } => {
                let (kind, path) = match &self.pending_names.get(*index)?.change {
                    NameChange::Create { node, .. } => (PendingKind::Create, path(node)),
                    NameChange::Remove { node, .. } => (PendingKind::Remove, path(node)),
                    NameChange::Rename { node, .. } => (PendingKind::Rename, path(node)),
                };
                Some(Pending { path, kind })
            }
            PendingAt::Contents { node, index } => {
                let kind = match self.pending_change(*node, *index)? {
                    Change::Write { offset, bytes } => {
                        PendingKind::Write { offset: *offset, len: bytes.len() as u64 }
                    }
                    Change::SetLen { len } => PendingKind::SetLen { len: *len },
                };
                Some(Pending { path: path(node), kind })
            }
        };
        self.pending().iter().filter_map(describe).collect()
    }
}
