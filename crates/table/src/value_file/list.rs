//! The value files that a growing group refers to.

use std::sync::{Arc, OnceLock};

use super::ValueFile;

/// Files, in the order in which they were first needed: one writer, any number of readers, and
/// what has been lent stays where it is.
#[derive(Default)]
pub(crate) struct FileList {
    first: OnceLock<Box<Link>>,
}

struct Link {
    file: Arc<ValueFile>,
    next: OnceLock<Box<Link>>,
}

impl FileList {
    /// All files.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ValueFile>> {
        let mut link = self.first.get();
        std::iter::from_fn(move || {
            let now = link?;
            link = now.next.get();
            Some(&now.file)
        })
    }

    /// The file with a number.
    pub fn get(&self, id: u64) -> Option<&Arc<ValueFile>> {
        self.iter().find(|file| file.id() == id)
    }

    /// Adds a file, unless it is there.
    pub fn add(&self, file: &Arc<ValueFile>) {
        let mut slot = &self.first;
        while let Some(link) = slot.get() {
            if link.file.id() == file.id() {
                return;
            }
            slot = &link.next;
        }
        let _ = slot.set(Box::new(Link { file: Arc::clone(file), next: OnceLock::new() }));
    }
}
