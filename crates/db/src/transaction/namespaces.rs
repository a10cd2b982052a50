//! Namespaces within a transaction: the schemas of SQL.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::Namespace;
use esker_format::comment::expect_short;
use esker_format::namespace::NAMESPACES_MAX;

use super::Transaction;
use super::definitions::Definitions;
use super::undo::Taken;
use crate::catalog::namespace::NamespaceInfo;
use crate::catalog::own_sequence;
use crate::catalog::shared_sequence::refuse_default;
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
            let gone = definitions.sequences_gone.get(name);
            let is_left = |left: &&String| gone.is_none_or(|gone| !gone.contains(*left));
            if let Some(left) = self.sequences_of(definitions, name).iter().find(is_left) {
                return Err(Error::invalid(format!(
                    "schema {name:?}: sequence {left:?} is in it: drop that first, or CASCADE"
                )));
            }
            Arc::make_mut(&mut definitions.names).namespaces.remove(name);
            Ok(Taken::Nothing)
        })
    }

    /// Removes the sequences in a namespace, but for those of fields. They give out values until
    /// the commit.
    ///
    /// # Errors
    /// `NotFound` without the namespace, `InvalidInput` when one is the default of a field.
    pub fn drop_sequences_in(&self, namespace: &str) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = Arc::clone(&definitions.names);
            if !names.namespaces.contains_key(namespace) {
                return Err(names.no_namespace(namespace));
            }
            let gone: BTreeSet<String> =
                self.sequences_of(definitions, namespace).into_iter().collect();
            for (table, core) in names.iter() {
                let schema = self.schema_within(definitions, core)?;
                gone.iter().try_for_each(|gone| refuse_default(table, &schema, gone))?;
            }
            if !gone.is_empty() {
                definitions.sequences_gone.entry(namespace.to_owned()).or_default().extend(gone);
            }
            Ok(Taken::Nothing)
        })
    }

    /// Says what a namespace is for; nothing any more without a comment.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` for a comment that is too long.
    pub fn comment_on_namespace(&self, name: &str, comment: Option<&str>) -> Result<()> {
        expect_short("a schema", comment)?;
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
    fn sequences_of(&self, definitions: &Definitions, namespace: &str) -> Vec<String> {
        let Definitions { names, base, .. } = definitions;
        let schemas = base.values().chain(names.values()).map(|table| table.schema());
        let schemas: Vec<_> = schemas.collect();
        let owned: BTreeSet<&str> =
            schemas.iter().flat_map(|schema| own_sequence::gone(schema, None)).collect();
        let mut all = self.engine.sequences_in(namespace);
        all.retain(|name| !owned.contains(name.as_str()));
        all
    }
}

impl Definitions {
    /// The namespaces that are not as they were.
    pub(super) fn changed_namespaces(&self) -> Vec<ChangedNamespace> {
        let (base, now) = (&self.base.namespaces, &self.names.namespaces);
        let all: BTreeSet<&String> = base.keys().chain(now.keys()).collect();
        let gone = &self.sequences_gone;
        let is_changed =
            |name: &&String| base.get(*name) != now.get(*name) || gone.contains_key(*name);
        let changed = all.into_iter().filter(is_changed);
        let of = |name: &String| ChangedNamespace {
            name: name.clone(),
            before: base.get(name).cloned(),
            after: now.get(name).cloned(),
            sequences: gone.get(name).cloned().unwrap_or_default(), // default: none goes
        };
        changed.map(of).collect()
    }
}
