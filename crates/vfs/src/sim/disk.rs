//! The state of a simulated disk: what programs see, what would survive, and what lies between.
//!
//! ```text
//!                write, set_len              sync_data
//!   file:      ───────────────► pending ───────────────────► durable contents
//!                └► current contents (the page cache): every read sees these at once
//!
//!                create, rename, remove       sync_dir
//!   directory: ───────────────► pending ───────────────────► durable names
//!                └► current names
//! ```
//!
//! Invariants:
//! * `current` = `durable` with all pending changes applied in order, unless a fault (a failed
//!   sync, a misdirected write) has torn them apart.
//! * Contents and names are independent: syncing a file does not make its name durable, nor does
//!   syncing a directory touch contents.
//! * Everything is shared copy-on-write, so that a clone costs a word per file.
//! * The state changes through [`Disk::apply`](super::effect) only. A recorded list of effects
//!   therefore rebuilds every state the disk went through.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;

/// The position of a file or directory in [`Disk::nodes`]; never reused.
pub(crate) type NodeId = usize;

/// The directory that all paths start from.
pub(crate) const ROOT: NodeId = 0;

/// The names in a directory.
pub(crate) type Names = BTreeMap<Arc<str>, NodeId>;

/// Files, directories, and what is pending.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) nodes: Vec<Option<Arc<Node>>>,
    pub(crate) pending_names: Vec<PendingName>,
    pub(crate) next_sequence: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FileNode {
    pub(crate) current: Arc<Contents>,
    pub(crate) durable: Arc<Contents>,
    pub(crate) pending: Vec<PendingChange>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DirectoryNode {
    pub(crate) current: Arc<Names>,
    pub(crate) durable: Arc<Names>,
}

/// A change of contents that no sync has made durable yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingChange {
    pub(crate) sequence: u64,
    pub(crate) change: Change,
}

/// A change of the contents of a file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen { len: u64 },
}

/// A change of names that no sync has made durable yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingName {
    pub(crate) sequence: u64,
    pub(crate) change: NameChange,
}

/// A change of names. A rename is one change, of two directories perhaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameChange {
    Create { dir: NodeId, name: Arc<str>, node: NodeId },
    Remove { dir: NodeId, name: Arc<str>, node: NodeId },
    Rename { from_dir: NodeId, from: Arc<str>, to_dir: NodeId, to: Arc<str>, node: NodeId },
}

/// Which of the two sets of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Current,
    Durable,
}

impl Disk {
    /// A disk with an empty root directory.
    pub(crate) fn new() -> Self {
        let root = Arc::new(Node::Directory(DirectoryNode::default()));
        Self { nodes: vec![Some(root)], pending_names: Vec::new(), next_sequence: 0 }
    }

    pub(crate) fn file(&self, id: NodeId) -> Option<&FileNode> {
        match self.nodes.get(id)?.as_deref()? {
            Node::File(file) => Some(file),
            Node::Directory(_) => None,
        }
    }

    pub(crate) fn file_mut(&mut self, id: NodeId) -> Option<&mut FileNode> {
        match Arc::make_mut(self.nodes.get_mut(id)?.as_mut()?) {
            Node::File(file) => Some(file),
            Node::Directory(_) => None,
        }
    }

    pub(crate) fn directory(&self, id: NodeId) -> Option<&DirectoryNode> {
        match self.nodes.get(id)?.as_deref()? {
            Node::Directory(directory) => Some(directory),
            Node::File(_) => None,
        }
    }

    pub(crate) fn directory_mut(&mut self, id: NodeId) -> Option<&mut DirectoryNode> {
        match Arc::make_mut(self.nodes.get_mut(id)?.as_mut()?) {
            Node::Directory(directory) => Some(directory),
            Node::File(_) => None,
        }
    }

    pub(crate) fn names(&self, id: NodeId, view: View) -> Option<&Names> {
        let directory = self.directory(id)?;
        Some(match view {
            View::Current => &directory.current,
            View::Durable => &directory.durable,
        })
    }

    /// The file or directory that a path names now.
    pub(crate) fn resolve(&self, path: &Path) -> Option<NodeId> {
        let mut at = ROOT;
        for name in parts(path) {
            at = *self.names(at, View::Current)?.get(name.as_ref())?;
        }
        Some(at)
    }

    /// The directory that holds, or would hold, the last name of a path, and that name.
    pub(crate) fn resolve_parent(&self, path: &Path) -> Option<(NodeId, Arc<str>)> {
        let mut names = parts(path);
        let last = names.pop()?;
        let mut at = ROOT;
        for name in names {
            at = *self.names(at, View::Current)?.get(name.as_ref())?;
        }
        self.directory(at)?;
        Some((at, last))
    }

    /// Applies a change to one set of names. Names that are not there (because an earlier change
    /// was lost) are not an error: a rename then just makes the new name.
    pub(crate) fn change_names(&mut self, change: &NameChange, view: View) {
        match change {
            NameChange::Create { dir, name, node } => self.link(*dir, name, *node, view),
            NameChange::Remove { dir, name, node } => self.unlink(*dir, name, *node, view),
            NameChange::Rename { from_dir, from, to_dir, to, node } => {
                self.unlink(*from_dir, from, *node, view);
                self.link(*to_dir, to, *node, view);
            }
        }
    }

    fn names_mut(&mut self, id: NodeId, view: View) -> Option<&mut Names> {
        let directory = self.directory_mut(id)?;
        Some(Arc::make_mut(match view {
            View::Current => &mut directory.current,
            View::Durable => &mut directory.durable,
        }))
    }

    fn link(&mut self, dir: NodeId, name: &Arc<str>, node: NodeId, view: View) {
        if let Some(names) = self.names_mut(dir, view) {
            names.insert(Arc::clone(name), node);
        }
    }

    fn unlink(&mut self, dir: NodeId, name: &Arc<str>, node: NodeId, view: View) {
        if let Some(names) = self.names_mut(dir, view)
            && names.get(name) == Some(&node)
        {
            names.remove(name);
        }
    }

    /// All files and directories that can be reached from the root.
    pub(crate) fn reachable(&self, view: View) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::from([ROOT]);
        self.reach(ROOT, view, &mut reached);
        reached
    }

    /// Adds everything below `from`.
    pub(crate) fn reach(&self, from: NodeId, view: View, reached: &mut BTreeSet<NodeId>) {
        for child in self.names(from, view).into_iter().flat_map(BTreeMap::values) {
            if reached.insert(*child) {
                self.reach(*child, view, reached);
            }
        }
    }

    /// The paths of all files, in order.
    pub(crate) fn paths(&self, view: View) -> Vec<(PathBuf, NodeId)> {
        let mut paths = Vec::new();
        self.walk(ROOT, Path::new("/"), view, &mut paths);
        paths
    }

    fn walk(&self, dir: NodeId, path: &Path, view: View, found: &mut Vec<(PathBuf, NodeId)>) {
        for (name, node) in self.names(dir, view).into_iter().flatten() {
            let path = path.join(name.as_ref());
            if self.file(*node).is_some() {
                found.push((path, *node));
            } else {
                self.walk(*node, &path, view, found);
            }
        }
    }

    /// The nodes to which some name leads, durable, current or pending.
    pub(crate) fn named_nodes(&self) -> BTreeSet<NodeId> {
        let directories = self.nodes.iter().filter_map(|entry| match entry.as_deref() {
            Some(Node::Directory(directory)) => Some(directory),
            _ => None,
        });
        let named = directories.flat_map(|d| d.current.values().chain(d.durable.values()));
        let pending = self.pending_names.iter().map(|pending| pending.change.node());
        named.copied().chain(pending).collect()
    }

    /// Bytes in all files that have a name.
    pub(crate) fn used_bytes(&self) -> u64 {
        let files = self.reachable(View::Current);
        files.into_iter().filter_map(|id| self.file(id)).map(|file| file.current.len()).sum()
    }
}

impl NameChange {
    /// The file or directory whose name changes.
    pub(crate) fn node(&self) -> NodeId {
        match self {
            Self::Create { node, .. } | Self::Remove { node, .. } | Self::Rename { node, .. } => {
                *node
            }
        }
    }

    /// True when syncing `dir` makes this change durable.
    pub(crate) fn touches(&self, id: NodeId) -> bool {
        match self {
            Self::Create { dir, .. } | Self::Remove { dir, .. } => *dir == id,
            Self::Rename { from_dir, to_dir, .. } => *from_dir == id || *to_dir == id,
        }
    }
}

impl Change {
    /// Applies the whole change.
    pub(crate) fn apply(&self, contents: &mut Contents) {
        match self {
            Self::Write { offset, bytes } => contents.write(bytes, *offset),
            Self::SetLen { len } => contents.set_len(*len),
        }
    }
}

/// The names in a path. Paths are taken from the root, whether they start there or not.
fn parts(path: &Path) -> Vec<Arc<str>> {
    let mut parts: Vec<Arc<str>> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(name.to_string_lossy().into()),
            Component::ParentDir => {
                parts.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    parts
}
