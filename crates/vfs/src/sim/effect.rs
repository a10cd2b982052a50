//! What a call does to the disk, decided before it is applied, so that it can be recorded.

use std::sync::Arc;

use super::disk::{
    Change, DirectoryNode, Disk, FileNode, NameChange, Node, NodeId, PendingChange, PendingName,
    View,
};

/// One change of the state of a [`Disk`].
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// A new directory, durable at once.
    MakeDirectory { dir: NodeId, name: Arc<str> },
    /// A new, empty file.
    Create { dir: NodeId, name: Arc<str> },
    /// A new, empty file whose name is durable at once: a lock file, whose loss does no harm.
    CreateDurably { dir: NodeId, name: Arc<str> },
    /// New contents: in the page cache, on their way to the disk, or both.
    Modify { node: NodeId, change: Change, cache: bool, disk: bool },
    /// Everything pending in a file becomes durable.
    SyncFile { node: NodeId },
    /// A sync failed.
    SyncFailed { node: NodeId, loss: SyncLoss },
    /// A change of names.
    Name(NameChange),
    /// Everything pending in a directory becomes durable.
    SyncDirectory { dir: NodeId },
    /// The page cache lets go of what is clean.
    DropCache,
    /// A bit rots, on the disk and in the cache.
    FlipBit { node: NodeId, byte: u64, bit: u8 },
    /// Nothing leads to this file any more.
    Forget { node: NodeId },
}

/// What a failed sync did. The pages of every pending change are clean afterwards: whatever did
/// not reach the disk never will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncLoss {
    /// By pending change, in order: true when its bytes did not reach the disk.
    pub(crate) lost: Vec<bool>,
    /// The new length reached the disk even where the bytes did not.
    pub(crate) length_kept: bool,
    /// The page cache went back to what is on the disk.
    pub(crate) reverted: bool,
}

impl Disk {
    /// Changes the state. Effects on things that are gone do nothing.
    pub(crate) fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::MakeDirectory { dir, name } => {
                let node = self.add(Node::Directory(DirectoryNode::default()));
                self.name_durably(*dir, name, node);
            }
            Effect::Create { dir, name } => {
                let node = self.add(Node::File(FileNode::default()));
                self.name(&NameChange::Create { dir: *dir, name: Arc::clone(name), node });
            }
            Effect::CreateDurably { dir, name } => {
                let node = self.add(Node::File(FileNode::default()));
                self.name_durably(*dir, name, node);
            }
            Effect::Modify { node, change, cache, disk } => {
                self.modify(*node, change, *cache, *disk);
            }
            Effect::SyncFile { node } => self.sync_file(*node),
            Effect::SyncFailed { node, loss } => self.fail_sync(*node, loss),
            Effect::Name(change) => self.name(change),
            Effect::SyncDirectory { dir } => self.sync_directory(*dir),
            Effect::DropCache => self.drop_cache(),
            Effect::FlipBit { node, byte, bit } => {
                if let Some(file) = self.file_mut(*node) {
                    Arc::make_mut(&mut file.durable).flip(*byte, *bit);
                    Arc::make_mut(&mut file.current).flip(*byte, *bit);
                }
            }
            Effect::Forget { node } => {
                if let Some(slot) = self.nodes.get_mut(*node) {
                    *slot = None;
                }
            }
        }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(Some(Arc::new(node)));
        self.nodes.len() - 1
    }

    fn sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence
    }

    fn name(&mut self, change: &NameChange) {
        let sequence = self.sequence();
        self.change_names(change, View::Current);
        self.pending_names.push(PendingName { sequence, change: change.clone() });
    }

    fn name_durably(&mut self, dir: NodeId, name: &Arc<str>, node: NodeId) {
        let change = NameChange::Create { dir, name: Arc::clone(name), node };
        self.change_names(&change, View::Current);
        self.change_names(&change, View::Durable);
    }

    fn modify(&mut self, node: NodeId, change: &Change, cache: bool, disk: bool) {
        let sequence = self.sequence();
        let Some(file) = self.file_mut(node) else { return };
        if cache {
            change.apply(Arc::make_mut(&mut file.current));
        }
        if disk {
            file.pending.push(PendingChange { sequence, change: change.clone() });
        }
    }

    fn sync_file(&mut self, node: NodeId) {
        // Looked at first: a file without pending changes stays shared with other copies.
        if self.file(node).is_some_and(|file| file.pending.is_empty()) {
            return;
        }
        let Some(file) = self.file_mut(node) else { return };
        let durable = Arc::make_mut(&mut file.durable);
        for pending in file.pending.drain(..) {
            pending.change.apply(durable);
        }
    }

    fn fail_sync(&mut self, node: NodeId, loss: &SyncLoss) {
        let Some(file) = self.file_mut(node) else { return };
        let durable = Arc::make_mut(&mut file.durable);
        for (i, pending) in file.pending.drain(..).enumerate() {
            let lost = loss.lost.get(i).copied().unwrap_or(true);
            match &pending.change {
                change if !lost => change.apply(durable),
                Change::Write { offset, bytes } if loss.length_kept => {
                    durable.set_len(durable.len().max(offset + bytes.len() as u64));
                }
                Change::SetLen { len } if loss.length_kept => durable.set_len(*len),
                _ => {}
            }
        }
        if loss.reverted {
            file.current = Arc::clone(&file.durable);
        }
    }

    fn sync_directory(&mut self, dir: NodeId) {
        let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(|pending| pending.change.touches(dir));
        self.pending_names = rest;
        for pending in due {
            self.change_names(&pending.change, View::Durable);
        }
    }

    fn drop_cache(&mut self) {
        for node in 0..self.nodes.len() {
            let Some(file) = self.file_mut(node) else { continue };
            file.current = Arc::clone(&file.durable);
            if !file.pending.is_empty() {
                let current = Arc::make_mut(&mut file.current);
                file.pending.iter().for_each(|pending| pending.change.apply(current));
            }
        }
    }
}
