//! Tables that are there, or are made.

use std::collections::BTreeSet;

use esker_format::schema::{Index, NewReference, Profile, Reference};
use esker_format::{Field, Schema};

use crate::catalog::computed_index;
use crate::{Database, Error, ErrorKind, Result, Table, Transaction, TransactionTable};

impl Database {
    /// The table of a name, which is created when there is none: of threads that ask at the same
    /// time one creates it, and all get it.
    ///
    /// A table that is there has to have the fields of the schema, in this order, with their types,
    /// NULL and labels, and the same key; what is unique in the schema has to be so, and its
    /// references have to be there. Defaults, checks and other indexes may differ.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = |born| {
    ///     let schema = Schema::builder().field("name", DataType::Text).field("born", born);
    ///     schema.primary_key(["name"]).build()
    /// };
    /// let people = db.table_or_create("people", schema(DataType::I32)?)?;
    /// people.insert(&["Ada".into(), 1815i64.into()])?;
    /// assert_eq!(db.table_or_create("people", schema(DataType::I32)?)?.count()?, 1);
    /// let differs = db.table_or_create("people", schema(DataType::Text)?).unwrap_err();
    /// assert_eq!(
    ///     differs.to_string(),
    ///     r#"table "people": field "born": expected text not null, found i32 not null"#
    /// );
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the field about which a table that is there differs; as for
    /// [`Database::create_table`], but `AlreadyExists`.
    pub fn table_or_create(&self, name: &str, schema: Schema) -> Result<Table> {
        let open = || {
            let table = self.table(name)?;
            expect_alike(name, &table.schema(), &schema)?;
            Ok(table)
        };
        open_or_create(open, || self.create_table(name, schema.clone()))
    }
}

impl Transaction {
    /// The table of a name as the transaction sees it, which is created as a part of it when there
    /// is none: see [`Database::table_or_create`]. That another commit creates one of this name
    /// meanwhile is a `Conflict` of [`Transaction::commit`], after which
    /// [`Database::transact`] begins again and finds it.
    ///
    /// # Errors
    /// As for [`Database::table_or_create`] and [`Transaction::create_table`].
    pub fn table_or_create(&self, name: &str, schema: Schema) -> Result<TransactionTable<'_>> {
        let open = || {
            let table = self.table(name)?;
            expect_alike(name, table.schema(), &schema)?;
            Ok(table)
        };
        open_or_create(open, || self.create_table(name, schema.clone()))
    }
}

/// How often a name that is taken away again and again is tried.
const ATTEMPTS_MAX: usize = 100;

/// What has a name, or is created when there is none; again, when another commit came first with
/// the one, and one after that took it away.
pub(crate) fn open_or_create<R>(
    open: impl Fn() -> Result<R>,
    create: impl Fn() -> Result<R>,
) -> Result<R> {
    let mut attempts = 1;
    loop {
        match open() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        match create() {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && attempts < ATTEMPTS_MAX => {
                attempts += 1;
            }
            made => return made,
        }
    }
}

/// Refuses a table that is not as a schema has it.
///
/// # Errors
/// `InvalidInput` naming the field about which they differ.
pub(crate) fn expect_alike(name: &str, found: &Schema, expected: &Schema) -> Result<()> {
    alike(found, expected).map_err(|e| e.at(format_args!("table {name:?}")))
}

fn alike(found: &Schema, expected: &Schema) -> Result<()> {
    if found.profile() != expected.profile() {
        let kind = |schema: &Schema| match schema.profile() {
            Profile::Bucket => "a bucket",
            Profile::Stream => "a stream",
            Profile::Table => "a table",
        };
        let message = format!("expected {}, found {}", kind(expected), kind(found));
        return Err(Error::invalid(message));
    }
    for field in expected.fields() {
        let position = found.expect_position(&field.name)?;
        let there = found.fields().get(position).ok_or_else(|| {
            Error::from(esker_format::Error::broken("schema", "a position is one of its fields"))
        })?;
        let there = described(there);
        if there != described(field) {
            let message = format!("expected {}, found {there}", described(field));
            return Err(Error::invalid(format!("field {:?}: {message}", field.name)));
        }
    }
    let is_more = |field: &&Field| expected.position(&field.name).is_none();
    if let Some(field) = found.fields().iter().find(is_more) {
        let message = format!("field {:?}: expected none, found {}", field.name, described(field));
        return Err(Error::invalid(message));
    }
    let names = |schema: &Schema| {
        let names = schema.fields().iter().map(|field| field.name.clone());
        names.collect::<Vec<_>>()
    };
    let pairs = names(expected).into_iter().zip(names(found));
    if let Some((place, (expected, found))) = (1..).zip(pairs).find(|(_, (a, b))| a != b) {
        let message = format!("expected {expected:?} as field {place}, found {found:?}");
        return Err(Error::invalid(message));
    }
    expect_key(found, &key_of(expected))?;
    let all_of = |schema: &Schema| {
        let computed = schema.unique_indexes().filter(|index| index.is_computed());
        let described = |index: &Index| {
            let parts = computed_index::parts_text(schema, index);
            (parts, computed_index::filter_text(schema, index))
        };
        computed.map(described).collect::<Vec<_>>()
    };
    let there = all_of(found);
    if let Some((parts, filter)) = all_of(expected).into_iter().find(|of| !there.contains(of)) {
        let filter = filter.iter().map(|filter| format!(" WHERE {filter}")).collect::<String>();
        let parts = parts.join(", ");
        let message = format!("expected a unique index on ({parts}){filter}, found none");
        return Err(Error::invalid(message));
    }
    let plain = expected.unique_indexes().filter(|index| !index.is_computed());
    let unique = plain.map(|index| places_of(expected, index)).collect::<Vec<_>>();
    unique.into_iter().try_for_each(|fields| expect_unique(found, &fields))?;
    let references = expected.references().iter();
    references
        .map(|reference| to_new(expected, reference))
        .try_for_each(|reference| expect_reference(found, &reference))
}

/// A reference of a schema, with its fields by their names.
fn to_new(schema: &Schema, reference: &Reference) -> NewReference {
    let Reference { fields, table, columns, on_delete, on_update, .. } = reference;
    let new = NewReference::new(schema.names_of(fields), table).to(columns);
    new.on_delete(*on_delete).on_update(*on_update)
}

/// The type of a field as people write it.
fn described(field: &Field) -> String {
    format!("{}{}", field.type_text(), if field.nullable { "" } else { " not null" })
}

fn key_of(schema: &Schema) -> Vec<&str> {
    schema.key_fields().map(|field| field.name.as_str()).collect()
}

/// What an index is on.
fn places_of(schema: &Schema, index: &Index) -> Vec<String> {
    index.fields.iter().map(|part| schema.place_of(part)).collect()
}

/// Refuses a schema with another key.
///
/// # Errors
/// `InvalidInput` with both keys.
pub(crate) fn expect_key(schema: &Schema, expected: &[&str]) -> Result<()> {
    let found = key_of(schema);
    if found == expected {
        return Ok(());
    }
    let shown = |key: &[&str]| match key {
        [] => "a generated one".to_owned(),
        names => format!("({})", names.join(", ")),
    };
    let message = format!("primary key: expected {}, found {}", shown(expected), shown(&found));
    Err(Error::invalid(message))
}

/// Refuses a schema in which some fields together may have the same values in two rows.
///
/// # Errors
/// `InvalidInput` naming the fields.
pub(crate) fn expect_unique<N: AsRef<str>>(schema: &Schema, fields: &[N]) -> Result<()> {
    let expected: BTreeSet<&str> = fields.iter().map(AsRef::as_ref).collect();
    let is_key = key_of(schema).into_iter().collect::<BTreeSet<_>>() == expected;
    let is_it = |index: &Index| {
        if index.is_computed() {
            return false;
        }
        let places = places_of(schema, index);
        places.iter().map(String::as_str).collect::<BTreeSet<_>>() == expected
    };
    if is_key || schema.unique_indexes().any(is_it) {
        return Ok(());
    }
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    let message = format!(
        "expected a unique index on ({}), found none: Database::create_index makes one",
        fields.join(", ")
    );
    Err(Error::invalid(message))
}

/// Refuses a schema without a reference, whatever that is called.
///
/// # Errors
/// `InvalidInput` with its fields and what they refer to.
pub(crate) fn expect_reference(schema: &Schema, expected: &NewReference) -> Result<()> {
    // Fields and what they refer to, in any order. Without fields of the other table, its key is
    // meant.
    let pairs = |of: &NewReference, columns: &[String]| {
        let columns = columns.iter().map(|column| column.to_lowercase());
        let mut pairs: Vec<_> = of.fields.iter().cloned().zip(columns).collect();
        pairs.sort_unstable();
        pairs
    };
    let is_it = |found: &Reference| {
        let found = to_new(schema, found);
        let columns = if expected.columns.is_empty() { &found.columns } else { &expected.columns };
        found.table == expected.table
            && found.fields.len() == expected.fields.len()
            && pairs(&found, &found.columns) == pairs(expected, columns)
            && found.on_delete == expected.on_delete
            && found.on_update == expected.on_update
    };
    if schema.references().iter().any(is_it) {
        return Ok(());
    }
    let NewReference { fields, table, columns, on_delete, on_update, .. } = expected;
    let columns = match columns.as_slice() {
        [] => String::new(),
        columns => format!("({})", columns.join(", ")),
    };
    let message = format!(
        "expected a reference of ({}) to {table}{columns} ON DELETE {} ON UPDATE {}, found none \
         like it: ALTER TABLE … ADD FOREIGN KEY makes one",
        fields.join(", "),
        on_delete.name(),
        on_update.name(),
    );
    Err(Error::invalid(message))
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS_MAX, open_or_create};
    use crate::{Error, ErrorKind, Result};

    #[test]
    fn a_name_that_is_never_there_and_always_taken_ends() {
        let (opened, created) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let open = || -> Result<()> {
            opened.set(opened.get() + 1);
            Err(Error::new(ErrorKind::NotFound, "none"))
        };
        let create = || {
            created.set(created.get() + 1);
            Err(Error::new(ErrorKind::AlreadyExists, "taken"))
        };
        let error = open_or_create(open, create).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!((opened.get(), created.get()), (ATTEMPTS_MAX, ATTEMPTS_MAX));
    }
}
