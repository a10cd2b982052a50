//! Rows as structs, one after another.

use std::iter::FusedIterator;
use std::sync::Arc;

use super::{Binding, Record};
use crate::read::table_rows::RowPages;
use crate::{Result, SnapshotTable};

/// All rows of a table as structs, as of one commit, in storage order: see
/// [`TypedTable::iter`](super::TypedTable::iter). An error ends the walk.
pub struct TypedRows<T> {
    pages: RowPages<T>,
    binding: Arc<Binding>,
}

impl<T> TypedRows<T> {
    pub(super) fn new(rows: SnapshotTable, binding: Arc<Binding>) -> Self {
        Self { pages: RowPages::new(rows), binding }
    }
}

impl<T: Record> Iterator for TypedRows<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let binding = &self.binding;
        self.pages.next(&|_, row| binding.record(row))
    }
}

impl<T: Record> FusedIterator for TypedRows<T> {}

impl<T> std::fmt::Debug for TypedRows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedRows").finish_non_exhaustive()
    }
}
