//! Namespaces that one commit makes, changes and drops.
//!
//! Invariant: one that goes has no tables, views and sequences left, and those that come have
//! theirs: where another commit has come between, the commit is a conflict.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::Namespace;
use esker_format::edit::Edit;
use esker_format::namespace::NAMESPACES_MAX;

use crate::Result;
use crate::catalog::names::Names;
use crate::catalog::own_sequence;
use crate::catalog::shared_sequence::refuse_default;
use crate::catalogue::Catalogue;
use crate::commit::conflict::conflict;
use crate::commit::definitions::NewDefinitions;
use crate::engine::Engine;

/// A namespace that comes, goes, or gets another comment.
pub(crate) struct ChangedNamespace {
    pub name: String,
    /// As it was when that was decided.
    pub before: Option<Namespace>,
    pub after: Option<Namespace>,
    /// The sequences in it that go with it.
    pub sequences: BTreeSet<String>,
}

impl ChangedNamespace {
    /// What the log says of it.
    pub fn edits(&self) -> impl Iterator<Item = Edit> {
        let name = self.name.clone();
        let edit = match &self.after {
            Some(after) => Edit::SetNamespace { name, namespace: after.clone() },
            None => Edit::DropNamespace { name },
        };
        let gone = self.sequences.iter().map(|name| Edit::DropSequence { name: name.clone() });
        gone.chain([edit])
    }
}

impl NewDefinitions {
    /// Refuses that a namespace goes beside a sequence in it that others have made, and that a
    /// sequence goes that gives a field its values. Under the commit lock.
    pub(crate) fn expect_sequences_as_known(
        &self,
        engine: &Engine,
        catalogue: &Catalogue,
    ) -> Result<()> {
        for ChangedNamespace { name, after, sequences, .. } in &self.namespaces {
            let schemas = || catalogue.tables.values().map(|entry| entry.writer.table().schema());
            let is_own = |sequence: &str| {
                schemas().any(|schema| own_sequence::gone(&schema, None).any(|own| own == sequence))
            };
            let mut left = engine.sequences_in(name).into_iter().filter(|s| !sequences.contains(s));
            if after.is_none()
                && let Some(left) = left.find(|sequence| !is_own(sequence))
            {
                let why = "was created by another commit meanwhile";
                return Err(conflict(format!("schema {name:?}: sequence {left:?} {why}")));
            }
            for sequence in sequences {
                self.refuse_default_of(sequence, catalogue)?;
            }
        }
        Ok(())
    }

    /// Refuses a sequence that a field of a table has for its default after the commit.
    fn refuse_default_of(&self, sequence: &str, catalogue: &Catalogue) -> Result<()> {
        let is_dropped = |id| self.dropped.iter().any(|dropped| dropped.core.id() == id);
        let stay = catalogue.tables.iter().filter(|(id, _)| !is_dropped(**id));
        let stay = stay.map(|(id, entry)| match self.altered(*id) {
            Some(altered) => (altered.after.name.clone(), Arc::clone(&altered.after.schema)),
            None => (entry.name.clone(), entry.writer.table().schema()),
        });
        let come = self.created.iter().map(|new| (new.core.name().to_string(), new.core.schema()));
        stay.chain(come).try_for_each(|(table, schema)| refuse_default(&table, &schema, sequence))
    }

    /// Refuses namespaces that others have changed, and names in one that is gone.
    pub(crate) fn expect_namespaces_as_known(&self, newest: &Names) -> Result<()> {
        let given_up: BTreeSet<&str> = self.names_given_up().collect();
        for ChangedNamespace { name, before, after, .. } in &self.namespaces {
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
