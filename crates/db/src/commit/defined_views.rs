//! Views that one commit makes, replaces and drops.
//!
//! Invariant: a view is read as it was looked at. Where another commit has come between, of what
//! the view reads, or of a view that reads what goes, the commit is a conflict.

use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::{Schema, TableId};

use crate::Result;
use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::Names;
use crate::commit::conflict::conflict;
use crate::commit::definitions::NewDefinitions;

/// A view that comes, goes, or gets another query.
pub(crate) struct ChangedView {
    pub name: String,
    /// As it was when that was decided.
    pub before: Option<Arc<DefinedView>>,
    pub after: Option<Arc<DefinedView>>,
    /// What it reads that the commit itself does not change.
    pub inputs: Vec<KnownInput>,
}

/// Something that a view reads, as it was looked at.
pub(crate) struct KnownInput {
    pub name: String,
    pub is: InputKind,
}

/// What it was.
pub(crate) enum InputKind {
    Table(TableId, Arc<Schema>),
    View(Arc<DefinedView>),
}

impl ChangedView {
    /// What the log says of it.
    pub fn edit(&self) -> Edit {
        let name = self.name.clone();
        match &self.after {
            Some(after) => Edit::SetView { name, view: after.stored.clone() },
            None => Edit::DropView { name },
        }
    }

    fn expect_as_it_was(&self, newest: &Names) -> Result<()> {
        let name = &self.name;
        if !is_same(newest.views.get(name), self.before.as_ref()) {
            return Err(conflict(format!("view {name:?} was changed by another commit meanwhile")));
        }
        for KnownInput { name: input, is } in &self.inputs {
            let is_known = match is {
                InputKind::Table(id, schema) => newest
                    .get(input)
                    .is_some_and(|table| table.id() == *id && *table.schema() == **schema),
                InputKind::View(view) => is_same(newest.views.get(input), Some(view)),
            };
            if !is_known {
                let why = format!("which view {name:?} reads, was changed by another commit");
                return Err(conflict(format!("{input:?}, {why} meanwhile")));
            }
        }
        Ok(())
    }
}

fn is_same(a: Option<&Arc<DefinedView>>, b: Option<&Arc<DefinedView>>) -> bool {
    a.map(Arc::as_ptr) == b.map(Arc::as_ptr)
}

impl NewDefinitions {
    /// A view that comes, by its name.
    pub(crate) fn view(&self, name: &str) -> Option<&Arc<DefinedView>> {
        let views = self.views.iter().filter(|view| view.name == name);
        views.filter_map(|view| view.after.as_ref()).next()
    }

    /// Refuses views that others have changed, and changes of what views read that are not known.
    pub(crate) fn expect_views_as_known(&self, newest: &Names) -> Result<()> {
        self.views.iter().try_for_each(|view| view.expect_as_it_was(newest))?;
        let Some(known) = &self.views_known else { return Ok(()) };
        let tables = self.dropped.iter().map(|table| &table.before);
        let tables = tables.chain(self.altered.iter().map(|table| &table.before));
        let tables = tables.map(|before| before.name.as_str());
        let replaced = self.views.iter().filter(|view| view.before.is_some());
        let changed: Vec<&str> = tables.chain(replaced.map(|view| view.name.as_str())).collect();
        for (name, view) in &newest.views {
            let is_own = self.views.iter().any(|own| own.name == *name);
            if is_own || is_same(known.views.get(name), Some(view)) {
                continue;
            }
            if let Some(input) = changed.iter().find(|input| view.stored.reads(input)) {
                let why = format!("view {name:?} reads it since another commit");
                return Err(conflict(format!("{input:?}: {why}")));
            }
        }
        Ok(())
    }
}
