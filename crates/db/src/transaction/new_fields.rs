//! Adding fields of which every row gets a value of its own, in a transaction.

use esker_format::Schema;
use esker_format::schema::Alteration;

use crate::catalog::new_fields::{NewFields, is_of_each_row};
use crate::{Database, Error, ErrorKind, Result, Transaction};

/// Attempts, where other commits write rows of the table meanwhile.
const ATTEMPTS_MAX: usize = 64;

impl Database {
    /// Changes a table to which fields are added that every row gets a value of its own for.
    /// Returns the commit.
    pub(crate) fn alter_and_fill(&self, name: &str, alterations: &[Alteration]) -> Result<u64> {
        let is_apart = |a: &Alteration| match a {
            Alteration::AddIndex(new) => new.unique,
            Alteration::SetExpiry(_) => true,
            _ => false,
        };
        if alterations.iter().any(is_apart) {
            return Err(Error::invalid(format!(
                "table {name:?}: a new field with another value in each row is expected without \
                 a unique index or a change of expiry beside it: add that afterwards"
            )));
        }
        for _ in 0..ATTEMPTS_MAX {
            let transaction = self.begin()?;
            transaction.alter_table(name, alterations)?;
            match transaction.commit() {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        let message = format!(
            "table {name:?}: other commits changed its rows during each of {ATTEMPTS_MAX} attempts \
             to give a new field its values; try again with fewer writers"
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

impl Transaction {
    /// Changes a table and gives its rows their values; all of it or nothing.
    pub(crate) fn alter_and_fill(&self, name: &str, new: &NewFields) -> Result<()> {
        self.all_or_nothing(|_| {
            let old = std::sync::Arc::clone(self.table(name)?.schema());
            self.alter_definition(name, &new.nullable, true)?;
            let altered = std::sync::Arc::clone(self.table(name)?.schema());
            crate::statement::fill_within(self, name, &added(&old, &altered))?;
            match new.not_null.as_slice() {
                [] => Ok(()),
                not_null => self.alter_definition(name, not_null, true),
            }
        })
    }
}

/// The names of the fields that have come, or are computed otherwise, and that every row gets a
/// value of its own for.
fn added(old: &Schema, altered: &Schema) -> Vec<String> {
    let is_new = |field: &&esker_format::Field| {
        old.field_of(field.id)
            .is_none_or(|before| before.generated != field.generated && field.generated.is_some())
    };
    let fields = altered.fields().iter().filter(is_new).filter(|field| is_of_each_row(field));
    fields.map(|field| field.name.clone()).collect()
}
