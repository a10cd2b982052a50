//! Which field a name is.

use std::collections::BTreeMap;

use super::unescaped;

/// The fields of a table, by name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// As JSON writes them at its simplest, in the order of the fields.
    quoted: Vec<Vec<u8>>,
    positions: BTreeMap<Vec<u8>, usize>,
}

impl Names {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for name in names {
            all.add(name);
        }
        all
    }

    fn add(&mut self, name: &str) -> usize {
        let position = self.quoted.len();
        self.quoted.push([b"\"", name.as_bytes(), b"\""].concat());
        self.positions.insert(name.as_bytes().to_vec(), position);
        position
    }

    /// The field that a name in quotes is; `guess` is tried first.
    #[inline]
    pub(crate) fn find(&self, quoted: &[u8], guess: usize) -> Option<usize> {
        if self.quoted.get(guess).is_some_and(|name| name.as_slice() == quoted) {
            return Some(guess);
        }
        self.look_up(quoted)
    }

    #[cold]
    fn look_up(&self, quoted: &[u8]) -> Option<usize> {
        let plain = quoted.get(1..quoted.len().saturating_sub(1))?;
        self.positions.get(unescaped(plain)?.as_ref()).copied()
    }

    /// The field that a name in quotes is, a new one when there is none; `None` when the name is
    /// not text.
    pub(crate) fn find_or_add(&mut self, quoted: &[u8], guess: usize) -> Option<usize> {
        if let Some(position) = self.find(quoted, guess) {
            return Some(position);
        }
        let plain = unescaped(quoted.get(1..quoted.len().saturating_sub(1))?)?.into_owned();
        Some(self.add(&String::from_utf8(plain).ok()?))
    }

    /// The names, in the order of the fields.
    pub(crate) fn into_names(self) -> Vec<String> {
        let mut names = vec![String::new(); self.quoted.len()];
        for (name, position) in self.positions {
            if let Some(slot) = names.get_mut(position) {
                *slot = String::from_utf8(name).unwrap_or_default();
            }
        }
        names
    }
}
