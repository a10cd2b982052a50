//! Namespaces within a transaction: the schemas of SQL.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::Namespace;
use esker_format::namespace::NAMESPACES_MAX;

use super::Transaction;
use super::definitions::Definitions;
use super::undo::Taken;
use crate::catalog::names::Names;
use crate::catalog::namespace::NamespaceInfo;
use crate::catalog::own_sequence;
use crate::catalog::usable_name::expect_usable_namespace;
use crate::commit::changed_namespaces::ChangedNamespace;
use crate::{Error, ErrorKind, Result};

impl Transaction {
    /// Creates a namespace, a schema of SQL: see [`crate::Database::create_namespace`]. Others see
    /// it with the commit.
    ///
    /// # Errors
    /// As for [`crate::Database::create_namespace`]; `ReadOnly` in a transaction that only reads.
    pub fn create_namespace(&self, name: &str) -> Result<()> {
        expect_usable_namespace(name)?;
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = &definitions.names;
            if names.namespaces.contains_key(name) {
                let message = format!("schema {name:?} exists already");
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            if names.namespaces.len() >= NAMESPACES_MAX {
                return Err(Error::invalid(format!("at most {NAMESPACES_MAX} schemas")));
            }
            if let Some(table) = names.of_namespace(name).next() {
                let message =
                    format!("the name of {table:?} says schema {name:?}: rename it first");
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            let names = Arc::make_mut(&mut definitions.names);
            names.namespaces.insert(name.to_owned(), Namespace::default());
            Ok(Taken::Nothing)
        })
    }

    /// Removes a namespace, which has no tables, views and sequences.
    ///
    /// # Errors
    /// As for [`crate::Database::drop_namespace`].
    pub fn drop_namespace(&self, name: &str) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = &definitions.names;
            if !names.namespaces.contains_key(name) {
                return Err(names.no_namespace(name));
            }
            if let Some(left) = names.of_namespace(name).next() {
                return Err(Error::invalid(format!(
                    "schema {name:?}: {left:?} is in it: drop that first, or CASCADE"
                )));
            }
            if let Some(left) = self.sequences_of(names, name).first() {
                return Err(Error::invalid(format!(
                    "schema {name:?}: sequence {left:?} is in it: drop that first"
                )));
            }
            Arc::make_mut(&mut definitions.names).namespaces.remove(name);
            Ok(Taken::Nothing)
        })
    }

    /// Says what a namespace is for; nothing any more without a comment.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn comment_on_namespace(&self, name: &str, comment: Option<&str>) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = Arc::make_mut(&mut definitions.names);
            if !names.namespaces.contains_key(name) {
                return Err(names.no_namespace(name));
            }
            let namespace = Namespace { comment: comment.map(str::to_owned) };
            names.namespaces.insert(name.to_owned(), namespace);
            Ok(Taken::Nothing)
        })
    }

    /// The namespaces that the transaction sees, by name.
    ///
    /// # Errors
    /// As for [`Transaction::tables`].
    pub fn namespaces(&self) -> Result<Vec<NamespaceInfo>> {
        Ok(NamespaceInfo::all(&*self.names()?))
    }

    /// Puts a namespace in place as another database has it.
    pub(crate) fn copy_namespace(&self, name: &str, namespace: &Namespace) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = Arc::make_mut(&mut definitions.names);
            names.namespaces.insert(name.to_owned(), namespace.clone());
            Ok(Taken::Nothing)
        })
    }

    /// The sequences in a namespace that are not those of fields.
    fn sequences_of(&self, names: &Names, namespace: &str) -> Vec<String> {
        let prefix = format!("{namespace}.");
        let sequences = self.engine.sequences.load();
        let schemas: Vec<_> = names.values().map(|table| table.schema()).collect();
        let owned: BTreeSet<&str> =
            schemas.iter().flat_map(|schema| own_sequence::gone(schema, None)).collect();
        let is_in = |name: &&String| name.starts_with(&prefix) && !owned.contains(name.as_str());
        sequences.keys().filter(is_in).cloned().collect()
    }
}

impl Definitions {
    /// The namespaces that are not as they were.
    pub(super) fn changed_namespaces(&self) -> Vec<ChangedNamespace> {
        let (base, now) = (&self.base.namespaces, &self.names.namespaces);
        let all: BTreeSet<&String> = base.keys().chain(now.keys()).collect();
        let changed = all.into_iter().filter(|name| base.get(*name) != now.get(*name));
        let of = |name: &String| ChangedNamespace {
            name: name.clone(),
            before: base.get(name).cloned(),
            after: now.get(name).cloned(),
        };
        changed.map(of).collect()
    }
}
