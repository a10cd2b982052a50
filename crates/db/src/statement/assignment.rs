//! What a statement sets: whole fields, and places inside documents.
//!
//! A place is set by the document with a value there, so that statements compute whole fields only:
//! `SET doc.a = 1, doc.b = 2` is `SET doc = json_set(json_set(doc, 'a', 1), 'b', 2)`. A place that
//! another one is set to is taken as it is there, not as text.

use std::borrow::Cow;

use esker_format::Schema;
use esker_format::json::steps_of;
use esker_query::model::{Expr, Function};

use crate::operators::Path;
use crate::{Error, Result};

/// A field, or a place inside one, and its new value.
type Assignment = (String, Expr);

/// Assignments to whole fields that do the same; `field_of` makes a name of a field an expression.
///
/// # Errors
/// `InvalidInput` for an unknown field, a place inside one that is not JSON, and a place that is
/// set twice, or within another one.
pub(super) fn whole_fields<'s>(
    schema: &Schema,
    set: &'s [Assignment],
    field_of: &dyn Fn(&str) -> Expr,
) -> Result<Cow<'s, [Assignment]>> {
    if set.iter().all(|(name, _)| schema.resolve(name).is_ok()) {
        return Ok(set.into());
    }
    let mut whole: Vec<Assignment> = Vec::new();
    let mut seen: Vec<Path> = Vec::new();
    for (name, value) in set {
        let path = path_of(schema, name)?;
        if let Some(other) = seen.iter().find(|seen| seen.holds(&path) || path.holds(seen)) {
            let how = if other.steps == path.steps { "set twice" } else { "set within another" };
            return Err(Error::invalid(format!("{name:?} is {how}")));
        }
        // default: the error names what was written
        let field = schema.fields().get(path.position).map_or(name, |field| &field.name);
        let Some(steps) = Some(&path.steps).filter(|steps| !steps.is_empty()) else {
            whole.push((name.clone(), value.clone()));
            seen.push(path);
            continue;
        };
        let at = whole.iter().position(|(known, _)| known == field);
        let document = match at {
            Some(at) => whole.remove(at).1,
            None => field_of(field),
        };
        let mut operands = vec![document];
        operands.extend(steps_of(steps).into_iter().map(Expr::literal));
        // default: a value that is no part stays whole
        operands.push(part_of(schema, value, Function::JsonGet).unwrap_or_else(|| value.clone()));
        let made = (field.clone(), Expr::call(Function::JsonSet, operands));
        // default: it comes last
        whole.insert(at.unwrap_or(whole.len()), made);
        seen.push(path);
    }
    Ok(whole.into())
}

/// The part of a document at a place, by the function that takes it out.
pub(super) fn part_of(schema: &Schema, value: &Expr, function: Function) -> Option<Expr> {
    let Expr::Field(name) = value else { return None };
    let path = path_of(schema, name).ok().filter(|path| !path.steps.is_empty())?;
    let mut operands = vec![Expr::field(&schema.fields().get(path.position)?.name)];
    operands.extend(steps_of(&path.steps).into_iter().map(Expr::literal));
    Some(Expr::call(function, operands))
}

fn path_of(schema: &Schema, name: &str) -> Result<Path> {
    if let Ok(position) = schema.resolve(name) {
        return Ok(Path { position, steps: Vec::new() });
    }
    let path = Path::parse(schema, name)?;
    path.field(schema)?;
    Ok(path)
}
