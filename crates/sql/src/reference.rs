//! `REFERENCES`, of a field and as a constraint of a table.

use esker_format::schema::{NewReference, ReferenceAction};
use sqlparser::ast;

use crate::qualified_name::written;
use crate::statement::unsupported;
use crate::{Error, Result};

/// A reference of some fields; the name that stands before it may be written apart.
pub(crate) fn declared(
    key: &ast::ForeignKeyConstraint,
    fields: Vec<String>,
    named: Option<&ast::Ident>,
) -> Result<NewReference> {
    if let Some(index) = &key.index_name {
        return Err(unsupported("a name of the index of a reference", index));
    }
    if let Some(kind) = &key.match_kind
        && *kind != ast::ConstraintReferenceMatchKind::Simple
    {
        return Err(unsupported("this MATCH (a row with a NULL names none: MATCH SIMPLE)", kind));
    }
    expect_immediate(key.characteristics.as_ref())?;
    let columns = key.referred_columns.iter().map(|column| column.value.clone());
    let name = named.or(key.name.as_ref()).map(|name| name.value.clone());
    let reference = NewReference::new(fields, written(&key.foreign_table)?).to(columns);
    let reference = reference.on_delete(action(key.on_delete.as_ref()));
    let reference = reference.on_update(action(key.on_update.as_ref()));
    // default: it is named after the table and the fields
    Ok(reference.named(name.unwrap_or_default()))
}

/// A constraint of a table: `[CONSTRAINT name] FOREIGN KEY (a, b) REFERENCES t (c, d)`.
pub(crate) fn constraint(key: &ast::ForeignKeyConstraint) -> Result<NewReference> {
    if key.columns.is_empty() {
        return Err(Error::invalid("FOREIGN KEY: expected fields in parentheses"));
    }
    declared(key, key.columns.iter().map(|column| column.value.clone()).collect(), None)
}

/// A reference holds at the end of each statement, and is not put off.
fn expect_immediate(characteristics: Option<&ast::ConstraintCharacteristics>) -> Result<()> {
    let Some(characteristics) = characteristics else { return Ok(()) };
    let is_deferred = characteristics.deferrable == Some(true)
        || characteristics.initially == Some(ast::DeferrableInitial::Deferred)
        || characteristics.enforced == Some(false);
    match is_deferred {
        false => Ok(()),
        true => Err(unsupported(
            "this property of a reference, which holds at the end of each statement",
            characteristics,
        )),
    }
}

fn action(action: Option<&ast::ReferentialAction>) -> ReferenceAction {
    use ast::ReferentialAction as A;
    match action {
        None | Some(A::NoAction) => ReferenceAction::NoAction,
        Some(A::Restrict) => ReferenceAction::Restrict,
        Some(A::Cascade) => ReferenceAction::Cascade,
        Some(A::SetNull) => ReferenceAction::SetNull,
        Some(A::SetDefault) => ReferenceAction::SetDefault,
    }
}
