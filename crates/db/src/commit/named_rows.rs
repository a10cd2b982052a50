//! Rows of other tables that a commit depends on: its own rows refer to them, or *name* them.
//!
//! A commit gathers them as rows are staged, a transaction as it puts rows. Under the commit lock
//! each is looked up in the newest versions, since it may have gone meanwhile. A row is kept once,
//! however many rows name it.

use std::collections::BTreeMap;

use esker_format::schema::Reference;
use esker_format::{Value, ValueRef};
use esker_log::sabotage::Bug;

use crate::catalog::reference_target::ReferenceTarget;
use crate::catalogue::Catalogue;
use crate::commit::value_set::ValueSet;
use crate::{Error, ErrorKind, Result};

/// Rows that have to be there.
#[derive(Default)]
pub(crate) struct NamedRows {
    /// By the table and the reference.
    references: BTreeMap<(String, String), NamedRowsOf>,
}

/// Those that one reference of a table names.
pub(crate) struct NamedRowsOf {
    /// The table whose rows name them.
    pub table: String,
    pub reference: String,
    pub target: ReferenceTarget,
    /// As the columns of the target have them.
    pub values: ValueSet,
    /// Those that come with the commit.
    pub coming: ValueSet,
}

impl NamedRows {
    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.references.values().map(NamedRowsOf::byte_count).sum()
    }

    /// Those of a reference, none at first.
    pub fn of(
        &mut self,
        table: &str,
        reference: &Reference,
        target: &ReferenceTarget,
    ) -> &mut NamedRowsOf {
        let name = (table.to_owned(), reference.name.clone());
        let new = || NamedRowsOf::new(table, reference, target);
        self.references.entry(name).or_insert_with(new)
    }

    /// Refuses a row that is not there in the newest version of its table. Under the commit lock.
    ///
    /// # Errors
    /// An error of a kind, which names the reference and the values.
    pub fn expect_there(&self, catalogue: &mut Catalogue, kind: ErrorKind) -> Result<()> {
        if kind == ErrorKind::Conflict && Bug::ReferenceCheckedAsOfSnapshot.is_planted() {
            return Ok(());
        }
        self.references.values().try_for_each(|of| of.expect_there(catalogue, kind))
    }
}

impl NamedRowsOf {
    /// None yet.
    pub fn new(table: &str, reference: &Reference, target: &ReferenceTarget) -> Self {
        Self {
            table: table.to_owned(),
            reference: reference.name.clone(),
            target: target.clone(),
            values: ValueSet::default(),
            coming: ValueSet::default(),
        }
    }

    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.values.byte_count() + self.coming.byte_count()
    }

    /// A row names another one, by some values; true when it is the first to.
    ///
    /// # Errors
    /// `ConstraintViolated` for values that the columns of the target cannot hold.
    pub fn note(&mut self, values: &[ValueRef<'_>]) -> Result<bool> {
        let Self { table, reference, target, values: set, .. } = self;
        match target.fit_refs(values) {
            Some(fitted) => Ok(set.insert(target.hash_of(&fitted), &fitted)),
            None => {
                let shown: Vec<Value> = values.iter().map(|v| (*v).to_owned()).collect();
                Err(Error::violated(missing(table, reference, target, &shown)))
            }
        }
    }

    /// A row comes that may be named, by values of the columns.
    pub fn note_coming(&mut self, values: &[ValueRef<'_>]) {
        let hash = self.target.hash_of(values);
        self.coming.insert(hash, values);
    }

    /// Refuses a row that is not there. Under the commit lock.
    pub fn expect_there(&self, catalogue: &mut Catalogue, kind: ErrorKind) -> Result<()> {
        self.values.iter_from(0).try_for_each(|values| self.expect_values(catalogue, values, kind))
    }

    /// Refuses one of the rows, by its number among them. Under the commit lock.
    pub fn expect_one(&self, catalogue: &mut Catalogue, at: usize, kind: ErrorKind) -> Result<()> {
        match self.values.iter_from(at).next() {
            Some(values) => self.expect_values(catalogue, values, kind),
            None => Ok(()),
        }
    }

    fn expect_values(
        &self,
        catalogue: &mut Catalogue,
        values: &[Value],
        kind: ErrorKind,
    ) -> Result<()> {
        let Self { table, reference, target, coming, .. } = self;
        let Some(entry) = catalogue.tables.get(&target.core.id()) else {
            let name = target.core.name();
            let message = format!(
                "table {name:?}, which reference {reference:?} of table {table:?} needs, was \
                 dropped or truncated meanwhile; begin again"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        let borrowed: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let comes = || coming.contains(target.hash_of(&borrowed), &borrowed);
        if (coming.len() == 0 || !comes()) && !target.has_row(&entry.writer, values)? {
            return Err(Error::new(kind, missing(table, reference, target, values)));
        }
        Ok(())
    }
}

/// What is said of a row that is named and not there.
pub(crate) fn missing(
    table: &str,
    reference: &str,
    target: &ReferenceTarget,
    values: &[Value],
) -> String {
    let (name, shown) = (target.core.name(), target.shown(values));
    format!(
        "reference {reference:?} of table {table:?}: expected a row of table {name:?} with \
         {shown}, found none"
    )
}

/// The values of a row in the fields of a reference; `None` when one of them is NULL.
pub(crate) fn named_by<'r>(
    positions: &[usize],
    value: impl Fn(usize) -> Option<ValueRef<'r>>,
) -> Option<Vec<ValueRef<'r>>> {
    let values = positions.iter().filter_map(|at| value(*at)).collect::<Vec<_>>();
    Some(values).filter(|values| !values.contains(&ValueRef::Null))
}
