//! Namespaces that one commit makes, changes and drops.
//!
//! Invariant: one that goes has no tables and views left, and those that come have theirs: where
//! another commit has come between, the commit is a conflict.

use std::collections::BTreeSet;

use esker_format::Namespace;
use esker_format::edit::Edit;
use esker_format::namespace::NAMESPACES_MAX;

use crate::Result;
use crate::catalog::names::Names;
use crate::commit::conflict::conflict;
use crate::commit::definitions::NewDefinitions;

/// A namespace that comes, goes, or gets another comment.
pub(crate) struct ChangedNamespace {
    pub name: String,
    /// As it was when that was decided.
    pub before: Option<Namespace>,
    pub after: Option<Namespace>,
}

impl ChangedNamespace {
    /// What the log says of it.
    pub fn edit(&self) -> Edit {
        let name = self.name.clone();
        match &self.after {
            Some(after) => Edit::SetNamespace { name, namespace: after.clone() },
            None => Edit::DropNamespace { name },
        }
    }
}

impl NewDefinitions {
    /// Refuses namespaces that others have changed, and names in one that is gone.
    pub(crate) fn expect_namespaces_as_known(&self, newest: &Names) -> Result<()> {
        let given_up: BTreeSet<&str> = self.names_given_up().collect();
        for ChangedNamespace { name, before, after } in &self.namespaces {
            if newest.namespaces.get(name) != before.as_ref() {
                let why = "was changed by another commit meanwhile";
                return Err(conflict(format!("schema {name:?} {why}")));
            }
            let mut left = newest.of_namespace(name).filter(|table| !given_up.contains(table));
            if let Some(table) = left.next().filter(|_| after.is_some() != before.is_some()) {
                let why = "was created by another commit meanwhile";
                return Err(conflict(format!("schema {name:?}: {table:?} {why}")));
            }
        }
        let coming = self.namespaces.iter().filter(|changed| changed.before.is_none()).count();
        if newest.namespaces.len() + coming > NAMESPACES_MAX && coming > 0 {
            return Err(conflict(format!(
                "at most {NAMESPACES_MAX} schemas: others came meanwhile"
            )));
        }
        let Some(known) = &self.views_known else { return Ok(()) };
        for name in self.names_coming() {
            let Some((namespace, _)) = known.in_namespace(&name) else { continue };
            let own = self.namespaces.iter().find(|changed| changed.name == namespace);
            let is_there = match own {
                Some(own) => own.after.is_some(),
                None => newest.namespaces.contains_key(namespace),
            };
            if !is_there {
                let why = "was dropped by another commit meanwhile";
                return Err(conflict(format!("schema {namespace:?} of {name:?} {why}")));
            }
        }
        Ok(())
    }
}
