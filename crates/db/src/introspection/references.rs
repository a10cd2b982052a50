//! References in the tables about tables.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::ValueRef::Text as T;
use esker_format::schema::Reference;
use esker_query::RowCollector;

use super::facts::{Facts, TableFacts, number};
use super::information_schema::{CATALOG, MAIN};
use crate::catalog::reference_target::{TargetKey, key_of};
use crate::{Error, Result};

/// A reference, and the constraint of the other table that it names.
pub(super) struct NamedConstraint<'t> {
    pub reference: &'t Reference,
    /// The names of its fields.
    pub fields: Vec<&'t str>,
    /// The constraint.
    pub constraint: String,
    /// The place of the column of each field in the constraint.
    pub places: Vec<usize>,
}

/// The references of a table.
///
/// # Errors
/// `Corrupt` when one names what is not there.
pub(super) fn named<'t>(
    facts: &Facts<'_>,
    table: &'t TableFacts,
) -> Result<Vec<NamedConstraint<'t>>> {
    let references = table.schema.references();
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let tables = facts.tables()?;
    references.iter().map(|reference| constraint(&tables, table, reference)).collect()
}

fn constraint<'t>(
    tables: &[TableFacts],
    table: &'t TableFacts,
    reference: &'t Reference,
) -> Result<NamedConstraint<'t>> {
    let gone = || {
        let name = &reference.name;
        Error::corrupt(format!("reference {name:?} names what is not there"))
    };
    let other = tables.iter().find(|other| other.name == reference.table).ok_or_else(gone)?;
    let schema: &Arc<Schema> = &other.schema;
    let position = |column: &String| schema.position(column).ok_or_else(gone);
    let positions = reference.columns.iter().map(position).collect::<Result<Vec<_>>>()?;
    let (key, order) = key_of(schema, &positions).ok_or_else(gone)?;
    let constraint = match key {
        TargetKey::Primary => other.key_name(),
        TargetKey::Unique(id) => {
            let index = schema.indexes().iter().find(|index| index.id == id).ok_or_else(gone)?;
            index.name.clone()
        }
    };
    let place = |at: usize| order.iter().position(|column| *column == at).ok_or_else(gone);
    let places = (0..positions.len()).map(place).collect::<Result<_>>()?;
    let fields = table.schema.names_of(&reference.fields);
    Ok(NamedConstraint { reference, fields, constraint, places })
}

pub(super) fn referential_constraints(
    facts: &Facts<'_>,
    rows: &mut RowCollector<'_>,
) -> Result<()> {
    for table in &facts.tables()? {
        for NamedConstraint { reference, constraint, .. } in named(facts, table)? {
            let (name, of) = (T(&reference.name), T(&constraint));
            let (update, delete) = (reference.on_update.name(), reference.on_delete.name());
            rows.push(&[CATALOG, MAIN, name, CATALOG, MAIN, of, T("NONE"), T(update), T(delete)])?;
        }
    }
    Ok(())
}

/// The fields of references, one a row.
pub(super) fn columns(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for (at, reference) in table.schema.references().iter().enumerate() {
            let fields = table.schema.names_of(&reference.fields);
            for (position, (field, column)) in fields.iter().zip(&reference.columns).enumerate() {
                rows.push(&[
                    T(&table.name),
                    T(&reference.name),
                    number(at + 1)?,
                    number(position + 1)?,
                    T(field),
                    T(&reference.table),
                    T(column),
                    T(reference.on_update.name()),
                    T(reference.on_delete.name()),
                ])?;
            }
        }
    }
    Ok(())
}
