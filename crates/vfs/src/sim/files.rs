//! Names, directories and locks of the simulated machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, NameChange, NodeId, ROOT, View};
use super::effect::Effect;
use super::faults::{CallKind, FaultKind};
use super::file::SimFile;
use super::world::{State, World, error};
use crate::{Error, ErrorKind, File, FileLock, FileSystem, LockMode, OpenMode, Result};

/// The file system.
#[derive(Debug)]
pub(crate) struct SimFiles(pub(crate) Arc<World>);

impl SimFiles {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>> {
        const CALL: CallKind = CallKind::Create;
        let mut state = self.0.lock();
        let fault = state.begin(CALL, path)?;
        let (dir, name) = state.parent(CALL, path)?;
        if state.disk.resolve(path).is_some() {
            return Err(error(ErrorKind::AlreadyExists, CALL, path, "the file exists already"));
        }
        let full = || state.is_full(1).then_some(FaultKind::NoSpaceOnCreate);
        if let Some(fault) = fault.or_else(full) {
            return Err(state.fail(fault, CALL, path));
        }
        let node = state.disk.nodes.len();
        state.apply(Effect::Create { dir, name });
        Ok(Arc::new(SimFile::new(&self.0, &mut state, node, path, true)))
    }

    /// Removes a name, of a file or an emptied directory.
    fn unlink(&self, path: &Path, file_wanted: bool) -> Result<()> {
        const CALL: CallKind = CallKind::Remove;
        let mut state = self.0.lock();
        let fault = state.begin(CALL, path)?;
        let (dir, name) = state.parent(CALL, path)?;
        let node = state.existing(CALL, path)?;
        if file_wanted && state.disk.file(node).is_none() {
            return Err(error(ErrorKind::Io, CALL, path, "it is a directory"));
        }
        if let Some(fault) = fault {
            return Err(state.fail(fault, CALL, path));
        }
        state.apply(Effect::Name(NameChange::Remove { dir, name, node }));
        state.nameless.push(node);
        Ok(())
    }
}

impl FileSystem for SimFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if mode == OpenMode::CreateNew {
            return self.create(path);
        }
        let mut state = self.0.lock();
        let fault = state.begin(CallKind::Open, path)?;
        let node = state.existing(CallKind::Open, path)?;
        if state.disk.file(node).is_none() {
            return Err(error(ErrorKind::Io, CallKind::Open, path, "it is a directory"));
        }
        if let Some(fault) = fault {
            return Err(state.fail(fault, CallKind::Open, path));
        }
        let writable = mode == OpenMode::Write;
        Ok(Arc::new(SimFile::new(&self.0, &mut state, node, path, writable)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.unlink(path, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        const CALL: CallKind = CallKind::Rename;
        let mut state = self.0.lock();
        let fault = state.begin(CALL, to)?;
        let (from_dir, from_name) = state.parent(CALL, from)?;
        let node = state.existing(CALL, from)?;
        let (to_dir, to_name) = state.parent(CALL, to)?;
        let replaced = state.disk.resolve(to);
        if replaced.is_some_and(|node| state.disk.directory(node).is_some()) {
            return Err(error(ErrorKind::Io, CALL, to, "it is a directory"));
        }
        if let Some(fault) = fault {
            return Err(state.fail(fault, CALL, to));
        }
        if replaced == Some(node) {
            return Ok(());
        }
        state.nameless.extend(replaced);
        let (from, to) = (from_name, to_name);
        state.apply(Effect::Name(NameChange::Rename { from_dir, from, to_dir, to, node }));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        const CALL: CallKind = CallKind::Create;
        let mut state = self.0.lock();
        let fault = state.begin(CALL, to)?;
        let node = state.existing(CALL, from)?;
        let (dir, name) = state.parent(CALL, to)?;
        if state.disk.resolve(to).is_some() {
            return Err(error(ErrorKind::AlreadyExists, CALL, to, "the file exists already"));
        }
        if state.disk.file(node).is_none() {
            return Err(error(ErrorKind::Io, CALL, from, "it is a directory"));
        }
        if let Some(fault) = fault {
            return Err(state.fail(fault, CALL, to));
        }
        state.apply(Effect::Name(NameChange::Create { dir, name, node }));
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let mut state = self.0.lock();
        let fault = state.begin(CallKind::Look, dir)?;
        let node = state.existing(CallKind::Look, dir)?;
        if let Some(fault) = fault {
            return Err(state.fail(fault, CallKind::Look, dir));
        }
        let Some(names) = state.disk.names(node, View::Current) else {
            return Err(error(ErrorKind::Io, CallKind::Look, dir, "it is not a directory"));
        };
        Ok(names.keys().map(|name| name.to_string()).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        const CALL: CallKind = CallKind::MakeDirectory;
        let mut state = self.0.lock();
        if let Some(fault) = state.begin(CallKind::Look, dir)? {
            return Err(state.fail(fault, CallKind::Look, dir));
        }
        let mut paths: Vec<&Path> = dir.ancestors().collect();
        paths.reverse();
        for path in paths {
            match state.disk.resolve(path) {
                Some(node) if state.disk.directory(node).is_some() => {}
                Some(_) => {
                    let words = "a file of this name exists";
                    return Err(error(ErrorKind::AlreadyExists, CALL, path, words));
                }
                None => {
                    if let Some(fault) = state.begin(CALL, path)? {
                        return Err(state.fail(fault, CALL, path));
                    }
                    let (dir, name) = state.parent(CALL, path)?;
                    state.apply(Effect::MakeDirectory { dir, name });
                }
            }
        }
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> Result<()> {
        let mut below = Vec::new();
        {
            let mut state = self.0.lock();
            if let Some(fault) = state.begin(CallKind::Look, dir)? {
                return Err(state.fail(fault, CallKind::Look, dir));
            }
            let node = state.existing(CallKind::Look, dir)?;
            collect(&state.disk, node, dir, &mut below);
            if node != ROOT {
                below.push(dir.to_owned());
            }
        }
        below.iter().try_for_each(|path| self.unlink(path, false))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        const CALL: CallKind = CallKind::SyncDirectory;
        let mut state = self.0.lock();
        let fault = state.begin(CALL, dir)?;
        let node = state.existing(CALL, dir)?;
        match fault {
            Some(FaultKind::LyingSyncDirectory) => {
                state.faults.fired.count(FaultKind::LyingSyncDirectory);
            }
            Some(fault) => return Err(state.fail(fault, CALL, dir)),
            None => {
                state.apply(Effect::SyncDirectory { dir: node });
                state.forget_nameless();
            }
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let mut state = self.0.lock();
        if let Some(fault) = state.begin(CallKind::Look, path)? {
            return Err(state.fail(fault, CallKind::Look, path));
        }
        Ok(state.disk.resolve(path).is_some())
    }

    fn lock(&self, path: &Path, mode: LockMode, holder: &str) -> Result<Box<dyn FileLock>> {
        const CALL: CallKind = CallKind::Lock;
        let mut state = self.0.lock();
        if let Some(fault) = state.begin(CALL, path)? {
            return Err(state.fail(fault, CALL, path));
        }
        let node = match state.disk.resolve(path) {
            Some(node) => node,
            None if mode == LockMode::Shared => return Err(missing(CALL, path)),
            None => {
                let (dir, name) = state.parent(CALL, path)?;
                let node = state.disk.nodes.len();
                state.apply(Effect::CreateDurably { dir, name });
                node
            }
        };
        let locks = state.locks.entry(node).or_default();
        if let Some(holder) = &locks.exclusive {
            return Err(Error::locked(path, holder));
        }
        match mode {
            LockMode::Exclusive if locks.shared > 0 => return Err(Error::locked(path, "")),
            LockMode::Exclusive => locks.exclusive = Some(holder.to_owned()),
            LockMode::Shared => locks.shared += 1,
        }
        Ok(Box::new(SimLock { world: Arc::clone(&self.0), node, mode }))
    }
}

/// The paths of everything below a directory, children before parents.
fn collect(disk: &Disk, node: NodeId, path: &Path, found: &mut Vec<PathBuf>) {
    for (name, child) in disk.names(node, View::Current).into_iter().flatten() {
        let path = path.join(name.as_ref());
        collect(disk, *child, &path, found);
        found.push(path);
    }
}

fn missing(call: CallKind, path: &Path) -> Error {
    error(ErrorKind::NotFound, call, path, "no such file or directory")
}

impl State {
    fn existing(&self, call: CallKind, path: &Path) -> Result<NodeId> {
        self.disk.resolve(path).ok_or_else(|| missing(call, path))
    }

    fn parent(&self, call: CallKind, path: &Path) -> Result<(NodeId, Arc<str>)> {
        self.disk.resolve_parent(path).ok_or_else(|| missing(call, path))
    }
}

/// A held lock.
#[derive(Debug)]
struct SimLock {
    world: Arc<World>,
    node: NodeId,
    mode: LockMode,
}

impl FileLock for SimLock {
    fn describe(&self, holder: &str) -> Result<()> {
        let mut state = self.world.lock();
        if let Some(locks) = state.locks.get_mut(&self.node)
            && self.mode == LockMode::Exclusive
        {
            locks.exclusive = Some(holder.to_owned());
        }
        Ok(())
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.world.lock();
        if let Some(locks) = state.locks.get_mut(&self.node) {
            match self.mode {
                LockMode::Exclusive => locks.exclusive = None,
                LockMode::Shared => locks.shared -= 1,
            }
        }
    }
}
