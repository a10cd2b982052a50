//! References as tables are defined with them: what they name is looked at, and both tables know.

use std::collections::BTreeMap;

use esker_format::schema::{Alteration, IndexKind, NewIndex, Reference, Referrer, validate_name};
use esker_format::{Field, Schema};

use crate::catalog::reference_target::{ReferenceTarget, key_of};
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// The new referrers of other tables, by the names of these.
pub(crate) type Told = BTreeMap<String, Vec<Referrer>>;

/// A table whose references are to be completed.
pub(crate) struct Completing<'a> {
    pub name: &'a str,
    pub schema: Schema,
    /// Finds a table by its name.
    pub find: &'a dyn Fn(&str) -> Result<TableVersion>,
}

impl Completing<'_> {
    /// Completes the references from number `first` on: their names, columns and indexes. Returns
    /// the schema, and the referrers that other tables get; its own are in the schema.
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `InvalidInput` for what cannot be referred to.
    pub fn complete(self, first: usize) -> Result<(Schema, Told)> {
        let Self { name, mut schema, find } = self;
        let mut references = schema.references().to_vec();
        let mut told = Told::new();
        let count = references.len();
        for at in first..count {
            let (before, rest) = references.split_at_mut(at);
            let Some(reference) = rest.first_mut() else { break };
            if reference.name.is_empty() {
                reference.name = free_name(name, &schema, before, reference);
            }
            validate_name("reference", &reference.name)?;
            let own = schema.clone();
            let called = reference.name.clone();
            let at = |e: Error| e.at(format_args!("reference {called:?}"));
            let referrer = complete_one((name, &own), reference, find).map_err(at)?;
            told.entry(reference.table.clone()).or_default().push(referrer);
            schema = with_index(schema, reference)?;
        }
        let mut referrers = schema.referrers().to_vec();
        // default: a table that does not refer to itself tells itself nothing
        referrers.extend(told.remove(name).unwrap_or_default());
        let version = schema.version();
        let bound = schema.bound_anew(references, referrers)?;
        Ok((bound.with_version(version), told))
    }
}

/// Fills in the columns of a reference; returns the referrer that their table gets.
fn complete_one(
    (name, schema): (&str, &Schema),
    reference: &mut Reference,
    find: &dyn Fn(&str) -> Result<TableVersion>,
) -> Result<Referrer> {
    let is_own = reference.table == name;
    let found = if is_own { None } else { Some(find(&reference.table)?) };
    // default: without another table it is this one
    let named = found.as_ref().map_or(schema, |found| &*found.schema);
    if named.is_bucket() {
        let table = &reference.table;
        return Err(Error::invalid(format!("{table:?} is a bucket, which has no records")));
    }
    if named.stream().is_some() {
        let table = &reference.table;
        let message = "whose events end without a look at what refers to them";
        return Err(Error::invalid(format!("{table:?} is a stream, {message}")));
    }
    if reference.columns.is_empty() {
        reference.columns = named.key_fields().map(|field| field.name.clone()).collect();
        if reference.columns.is_empty() {
            let table = &reference.table;
            return Err(Error::invalid(format!(
                "table {table:?} has no primary key: name the columns of a unique index of it"
            )));
        }
    }
    let (want, got) = (reference.fields.len(), reference.columns.len());
    if want != got {
        let columns = reference.columns.join(", ");
        return Err(Error::invalid(format!(
            "expected {want} columns of table {:?}, found {got}: {columns}",
            reference.table
        )));
    }
    let position = |column: &String| Ok(named.resolve(column)?);
    let positions = reference.columns.iter().map(position).collect::<Result<Vec<_>>>()?;
    match &found {
        Some(found) => {
            drop(ReferenceTarget::of(&found.core, &found.schema, &reference.columns)?);
        }
        None if key_of(named, &positions).is_some() => {}
        None => {
            return Err(Error::invalid(format!(
                "({}): expected the primary key, or the fields of a unique index",
                reference.columns.join(", ")
            )));
        }
    }
    let columns: Vec<&Field> = positions.iter().filter_map(|at| named.fields().get(*at)).collect();
    let fields = reference.fields.iter().filter_map(|id| schema.field_of(*id));
    fields.zip(&columns).try_for_each(|(field, column)| expect_fits(field, column))?;
    reference.columns = columns.iter().map(|column| column.name.clone()).collect();
    let (table, fields) = (name.to_owned(), columns.iter().map(|column| column.id).collect());
    Ok(Referrer { table, reference: reference.name.clone(), fields })
}

/// Values of a field are compared with those of a column: each of them must be one of those.
fn expect_fits(field: &Field, column: &Field) -> Result<()> {
    let same_labels = field.labels == column.labels;
    if field.data_type.widens_to(column.data_type) && same_labels {
        return Ok(());
    }
    let (name, other) = (&field.name, &column.name);
    let (found, wanted) = (field.type_text(), column.type_text());
    Err(Error::invalid(format!(
        "field {name:?} is {found}, and {other:?}, to which it refers, {wanted}: expected the \
         same type, or one that widens to it"
    )))
}

/// A name that no constraint of the table has: `orders_user_fkey`.
fn free_name(table: &str, schema: &Schema, before: &[Reference], reference: &Reference) -> String {
    let fields = schema.names_of(&reference.fields).join("_");
    let is_taken = |name: &str| {
        schema.checks().iter().any(|check| check.name == name)
            || schema.references().iter().chain(before).any(|known| known.name == name)
    };
    let name = format!("{table}_{fields}_fkey");
    let numbered = (1..).map(|number| format!("{name}{number}"));
    // default: some number is free
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The schema with an index by which rows are found that name some row.
fn with_index(schema: Schema, reference: &Reference) -> Result<Schema> {
    let fields = &reference.fields;
    let leads = |parts: &mut dyn Iterator<Item = esker_format::FieldId>| {
        let first: Vec<_> = parts.take(fields.len()).collect();
        first.len() == fields.len() && fields.iter().all(|field| first.contains(field))
    };
    let is_key = leads(&mut schema.key_fields().map(|field| field.id))
        && schema.key_positions().len() == fields.len();
    let is_indexed = schema.indexes().iter().any(|index| {
        let is_plain = index.filter.is_none() && index.fields.iter().all(|part| part.is_field());
        let mut parts = index.fields.iter().map(|part| part.field);
        index.kind == IndexKind::Ordered && is_plain && leads(&mut parts)
    });
    if is_key || is_indexed {
        return Ok(schema);
    }
    let names = schema.names_of(fields).into_iter().map(|name| (name.to_owned(), false));
    let mut index = NewIndex::on(names.collect());
    let is_taken = |name: &str| schema.indexes().iter().any(|index| index.name == name);
    if is_taken(&index.name) {
        index.name.clone_from(&reference.name);
    }
    let version = schema.version();
    Ok(schema.alter(&[Alteration::AddIndex(index)])?.with_version(version))
}

/// Changes as they are meant: a constraint that is dropped by its name may be a reference.
pub(crate) fn meant(schema: &Schema, alterations: &[Alteration]) -> Vec<Alteration> {
    let meant = |alteration: &Alteration| match alteration {
        Alteration::DropCheck(name)
            if schema.reference(name).is_some()
                && schema.checks().iter().all(|check| check.name != *name) =>
        {
            Alteration::DropReference(name.clone())
        }
        other => other.clone(),
    };
    alterations.iter().map(meant).collect()
}

/// True when changes of a table are changes of others, too.
pub(crate) fn concern_others(schema: &Schema, alterations: &[Alteration]) -> bool {
    alterations.iter().any(|alteration| match alteration {
        Alteration::AddReference(_)
        | Alteration::DropReference(_)
        | Alteration::SetChangesKept(_)
        | Alteration::SetChangesBy(_) => true,
        Alteration::DropCheck(name) => schema.reference(name).is_some(),
        Alteration::RenameField { .. } => !schema.referrers().is_empty(),
        _ => false,
    })
}

/// Refuses that an index goes, or expiry comes, while references need what there is.
pub(crate) fn expect_targets(schema: &Schema) -> Result<()> {
    for Referrer { table, reference, fields } in schema.referrers() {
        let positions = schema.positions_of(fields)?;
        if key_of(schema, &positions).is_none() {
            let names = schema.names_of(fields).join(", ");
            return Err(Error::invalid(format!(
                "reference {reference:?} of table {table:?} needs the unique index on ({names}): \
                 drop that reference before"
            )));
        }
    }
    Ok(())
}

/// Refuses that a table goes, or all its rows, while rows of others name them: but for some
/// tables, which go with it.
pub(crate) fn refuse_named(name: &str, schema: &Schema, beside: &[&str]) -> Result<()> {
    let goes =
        |referrer: &&Referrer| referrer.table == name || beside.contains(&referrer.table.as_str());
    let Some(referrer) = schema.referrers().iter().find(|referrer| !goes(referrer)) else {
        return Ok(());
    };
    let Referrer { table, reference, .. } = referrer;
    Err(Error::invalid(format!(
        "table {name:?}: table {table:?} refers to it, reference {reference:?}; drop that before, \
         or say CASCADE"
    )))
}
