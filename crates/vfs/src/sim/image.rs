//! What a disk may hold after a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;
use super::disk::{Change, DirectoryNode, Disk, FileNode, NameChange, Node, NodeId, View};
use super::effect::Effect;
use super::faults::{FaultCounts, FaultKind};
use super::pending::PendingAt;
use super::random::{Generator, mix};
use super::tear::{Outcome, Profile};
use super::trace::fold;
use crate::{FileSystem, OpenMode, Result};

/// Which pending changes a crash keeps.
///
/// Directory changes are kept or lost whole; a rename is one change. Changes are applied in the
/// order they were made, with those that were lost left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashChoice {
    /// Only what was synced.
    KeepNone,
    /// Everything, as if the cache had been written out just in time.
    KeepAll,
    /// Pending change *i* is kept, whole, when bit *i* is set. Those past 64 are lost. With
    /// every mask below 2^[`pending_count`](super::JournalCursor::pending_count), all subsets.
    Subset(u64),
    /// Like [`CrashChoice::Subset`], with each kept write torn in a way drawn from the seed.
    TornSubset {
        /// Which to keep.
        mask: u64,
        /// How to tear.
        seed: u64,
    },
    /// Each change kept, lost, torn, or half there, with odds that are themselves drawn from
    /// the seed, so that images differ in kind and not only in detail.
    Random(u64),
}

/// A disk after a crash: all that is on it is durable, and no lock is held.
///
/// Open it with [`Simulation::from_image`](super::Simulation::from_image). Cloning is cheap.
#[derive(Clone, Debug)]
pub struct CrashImage {
    pub(crate) disk: Disk,
    faults: FaultCounts,
}

impl CrashImage {
    /// An image of an empty disk.
    #[must_use]
    pub fn empty() -> Self {
        Self { disk: Disk::new(), faults: FaultCounts::default() }
    }

    /// What a crash of `disk` leaves.
    pub(crate) fn of(disk: &Disk, choice: CrashChoice) -> Self {
        let pending = disk.pending();
        let mut generator = Generator::new(choice.seed(), 11);
        let outcomes = choice.outcomes(disk, &pending, &mut generator);
        let mut faults = FaultCounts::default();
        let mut settled = disk.settled();
        let mut lost_before = false;
        for (at, outcome) in pending.iter().zip(&outcomes) {
            let lost = matches!(outcome, Outcome::Lost);
            match at {
                PendingAt::Name { index } => {
                    let Some(pending) = disk.pending_names.get(*index) else { continue };
                    if lost {
                        faults.count(lost_name(&pending.change));
                    } else {
                        settled.change_names(&pending.change, View::Durable);
                    }
                }
                PendingAt::Contents { node, index } => {
                    let Some(change) = disk.pending_change(*node, *index) else { continue };
                    let Some(file) = settled.file_mut(*node) else { continue };
                    if lost {
                        faults.count(FaultKind::LostWrite);
                    } else if lost_before {
                        faults.count(FaultKind::ReorderedWrite);
                    }
                    lost_before |= lost;
                    let contents = Arc::make_mut(&mut file.durable);
                    outcome.apply(change, contents, &mut generator, &mut faults);
                }
            }
        }
        settled.finish_crash();
        Self { disk: settled, faults }
    }

    /// What happened to pending changes on the way to this image, by kind.
    #[must_use]
    pub fn faults_fired(&self) -> BTreeMap<FaultKind, u64> {
        self.faults.to_map()
    }

    /// A hash of all names and bytes. Two images with the same fingerprint are the same, so that
    /// a campaign need not check both.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0;
        for (path, node) in self.disk.paths(View::Durable) {
            hash = fold(hash, path.as_os_str().as_encoded_bytes());
            hash = self.disk.file(node).map_or(hash, |file| file.durable.fold_into(hash));
        }
        mix(hash)
    }

    /// The paths of all files, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.disk.paths(View::Durable).into_iter().map(|(path, _)| path).collect()
    }

    /// The bytes of a file; nothing when there is none at `path`.
    #[must_use]
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        Some(self.disk.file(self.disk.resolve(path.as_ref())?)?.durable.to_vec())
    }

    /// The length of a file in bytes; nothing when there is none at `path`.
    #[must_use]
    pub fn file_len(&self, path: impl AsRef<Path>) -> Option<u64> {
        Some(self.disk.file(self.disk.resolve(path.as_ref())?)?.durable.len())
    }

    /// Inverts one bit of a file, as rot does. False when there is no such byte.
    pub fn flip_bit(&mut self, path: impl AsRef<Path>, byte: u64, bit: u8) -> bool {
        let flipped = self.edit(path.as_ref(), |contents| contents.flip(byte, bit));
        if flipped {
            self.faults.count(FaultKind::BitFlip);
        }
        flipped
    }

    /// Overwrites a range of a file, as a stray writer does. False when there is no such file.
    pub fn overwrite(&mut self, path: impl AsRef<Path>, offset: u64, bytes: &[u8]) -> bool {
        self.edit(path.as_ref(), |contents| {
            contents.write(bytes, offset);
            true
        })
    }

    /// Cuts or extends a file. False when there is no such file.
    pub fn truncate(&mut self, path: impl AsRef<Path>, len: u64) -> bool {
        self.edit(path.as_ref(), |contents| {
            contents.set_len(len);
            true
        })
    }

    /// Puts a file there, in place of any of that name, as if it had always been: for images made
    /// by hand, from fixtures or by a fuzzer. False when a directory of that name, or a file where
    /// a directory is needed, stands in the way.
    pub fn insert(&mut self, path: impl AsRef<Path>, bytes: &[u8]) -> bool {
        let path = path.as_ref();
        let mut above: Vec<_> = path.ancestors().skip(1).collect();
        above.reverse();
        for dir in above {
            if self.disk.resolve(dir).is_none()
                && let Some((dir, name)) = self.disk.resolve_parent(dir)
            {
                self.disk.apply(&Effect::MakeDirectory { dir, name });
            }
        }
        if self.disk.resolve(path).is_none()
            && let Some((dir, name)) = self.disk.resolve_parent(path)
        {
            self.disk.apply(&Effect::CreateDurably { dir, name });
        }
        self.edit(path, |contents| {
            contents.set_len(0);
            contents.write(bytes, 0);
            true
        })
    }

    /// Writes all files below a directory of another file system, say to look at an image that
    /// made trouble.
    ///
    /// # Errors
    /// Those of the file system; files of the same names must not exist.
    pub fn copy_to(&self, files: &dyn FileSystem, dir: &Path) -> Result<()> {
        for (path, node) in self.disk.paths(View::Durable) {
            let to = dir.join(path.strip_prefix("/").unwrap_or(&path));
            files.create_dir_all(to.parent().unwrap_or(dir))?;
            let file = files.open(&to, OpenMode::CreateNew)?;
            let bytes = self.disk.file(node).map(|file| file.durable.to_vec());
            file.write_all_at(&bytes.unwrap_or_default(), 0)?;
        }
        Ok(())
    }

    fn edit(&mut self, path: &Path, edit: impl FnOnce(&mut Contents) -> bool) -> bool {
        let Some(node) = self.disk.resolve(path) else { return false };
        let Some(file) = self.disk.file_mut(node) else { return false };
        let done = edit(Arc::make_mut(&mut file.durable));
        file.current = Arc::clone(&file.durable);
        done
    }
}

impl CrashChoice {
    fn seed(self) -> u64 {
        match self {
            Self::TornSubset { seed, .. } | Self::Random(seed) => seed,
            _ => 0,
        }
    }

    /// What becomes of each pending change.
    fn outcomes(
        self,
        disk: &Disk,
        pending: &[PendingAt],
        generator: &mut Generator,
    ) -> Vec<Outcome> {
        if let Self::Random(_) = self {
            let profile = Profile::draw(generator, pending.len());
            let outcome = |(i, at): (usize, &PendingAt)| match at {
                PendingAt::Name { .. } => profile.name(i, generator),
                PendingAt::Contents { node, index } => {
                    let write = disk
                        .pending_change(*node, *index)
                        .is_some_and(|change| matches!(change, Change::Write { .. }));
                    profile.contents(i, write, generator)
                }
            };
            return pending.iter().enumerate().map(outcome).collect();
        }
        let kept = |i: usize| match self {
            Self::KeepAll => true,
            Self::Subset(mask) | Self::TornSubset { mask, .. } => i < 64 && mask >> i & 1 == 1,
            Self::KeepNone | Self::Random(_) => false,
        };
        let torn = matches!(self, Self::TornSubset { .. });
        let outcome = |(i, at): (usize, &PendingAt)| match at {
            _ if !kept(i) => Outcome::Lost,
            PendingAt::Contents { .. } if torn => Outcome::torn(generator),
            _ => Outcome::Whole,
        };
        pending.iter().enumerate().map(outcome).collect()
    }
}

fn lost_name(change: &NameChange) -> FaultKind {
    match change {
        NameChange::Create { .. } => FaultKind::LostCreate,
        NameChange::Remove { .. } => FaultKind::LostRemove,
        NameChange::Rename { .. } => FaultKind::LostRename,
    }
}

impl Disk {
    /// The durable state, with nothing pending. Nodes in which nothing is pending are shared.
    fn settled(&self) -> Self {
        let settle = |node: &Option<Arc<Node>>| {
            let node = node.as_ref()?;
            Some(match node.as_ref() {
                Node::File(file) if !file.is_settled() => Arc::new(Node::File(FileNode {
                    current: Arc::default(),
                    durable: Arc::clone(&file.durable),
                    pending: Vec::new(),
                })),
                Node::Directory(directory)
                    if !Arc::ptr_eq(&directory.current, &directory.durable) =>
                {
                    Arc::new(Node::Directory(DirectoryNode {
                        current: Arc::default(),
                        durable: Arc::clone(&directory.durable),
                    }))
                }
                _ => Arc::clone(node),
            })
        };
        let nodes = self.nodes.iter().map(settle).collect();
        Self { nodes, pending_names: Vec::new(), next_sequence: 0 }
    }

    /// Makes what is durable current, and forgets what has no name.
    fn finish_crash(&mut self) {
        let reachable = self.reachable(View::Durable);
        for id in 0..self.nodes.len() {
            if !reachable.contains(&id) {
                self.apply(&Effect::Forget { node: id });
            } else if !self.is_settled(id) {
                if let Some(file) = self.file_mut(id) {
                    file.current = Arc::clone(&file.durable);
                } else if let Some(directory) = self.directory_mut(id) {
                    directory.current = Arc::clone(&directory.durable);
                }
            }
        }
    }

    fn is_settled(&self, id: NodeId) -> bool {
        self.file(id).is_some_and(FileNode::is_settled)
            || self.directory(id).is_some_and(|d| Arc::ptr_eq(&d.current, &d.durable))
    }
}

impl FileNode {
    fn is_settled(&self) -> bool {
        self.pending.is_empty() && Arc::ptr_eq(&self.current, &self.durable)
    }
}
