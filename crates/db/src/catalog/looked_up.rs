//! Tables in which rows are looked up for fields of others: what they must be, and what may not
//! change while they are looked up in.
//!
//! A field says the name of the table and of its field, and the type of that: names and type stay
//! while a field says them.

use std::sync::Arc;

use esker_format::schema::{Alteration, Generated};
use esker_format::{DataType, Schema};
use esker_query::GeneratedValue;
use esker_query::model::{Expr, Lookup};
use esker_table::Table as TableCore;

use crate::catalog::checks::{Checks, exact};
use crate::catalog::generated::{expression, of_schema, set_expression};
use crate::catalog::names::Names;
use crate::commit::conflict::conflict;
use crate::commit::definitions::{Described, NewDefinitions};
use crate::{Error, Result};

/// Finds what a table is, by its name.
type SchemaOf<'a> = dyn FnMut(&str) -> Result<Arc<Schema>> + 'a;

/// A look-up in the stored form of an expression: what has none is not read.
const STORED_MARK: &str = "\"lookup\"";

fn may_look_up(generated: &Generated) -> bool {
    generated.expression.contains(STORED_MARK)
}

/// Whether rows of other tables are looked up for fields of a schema.
///
/// # Errors
/// `Corrupt` when an expression cannot be read.
pub(crate) fn looks_up(schema: &Schema) -> Result<bool> {
    Ok(!lookups_of(schema)?.is_empty())
}

/// What fields of a schema look up, with their names.
fn lookups_of(schema: &Schema) -> Result<Vec<(String, Lookup)>> {
    let mut all = Vec::new();
    for (field, generated) in of_schema(schema).filter(|(_, generated)| may_look_up(generated)) {
        let expr = expression(generated)?;
        all.extend(expr.lookups().into_iter().map(|lookup| (field.name.clone(), lookup.clone())));
    }
    Ok(all)
}

/// The schema of a new table with the tables looked at in which rows are looked up for it.
///
/// # Errors
/// `NotFound` for an unknown table, `InvalidInput` for one in which no rows can be looked up.
pub(crate) fn settled(schema: Schema, find: &mut SchemaOf<'_>) -> Result<Schema> {
    let mut steps = Vec::new();
    for (field, generated) in of_schema(&schema).filter(|(_, generated)| may_look_up(generated)) {
        let mut expr = expression(generated)?;
        settle(&mut expr, find).map_err(|e| e.at(format_args!("field {:?}", field.name)))?;
        steps.push(set_expression(field, generated, &expr)?);
    }
    if steps.is_empty() {
        return Ok(schema);
    }
    let version = schema.version();
    Ok(schema.alter(&steps)?.with_version(version))
}

/// The same of changes of a table.
///
/// # Errors
/// As for [`settled`].
pub(crate) fn settled_changes(
    alterations: &[Alteration],
    find: &mut SchemaOf<'_>,
) -> Result<Vec<Alteration>> {
    let mut settled = alterations.to_vec();
    for alteration in &mut settled {
        let (name, generated) = match alteration {
            Alteration::AddField(field) => (&field.name, &mut field.generated),
            Alteration::SetGenerated { field, generated: Some(generated) } => {
                let mut own = Some(Arc::new(generated.clone()));
                settle_generated(field, &mut own, find)?;
                own.into_iter().for_each(|own| *generated = Arc::unwrap_or_clone(own));
                continue;
            }
            _ => continue,
        };
        settle_generated(name, generated, find)?;
    }
    Ok(settled)
}

fn settle_generated(
    field: &str,
    generated: &mut Option<Arc<Generated>>,
    find: &mut SchemaOf<'_>,
) -> Result<()> {
    let Some(known) = generated.as_ref().filter(|generated| may_look_up(generated)) else {
        return Ok(());
    };
    let mut expr = expression(known)?;
    settle(&mut expr, find).map_err(|e| e.at(format_args!("field {field:?}")))?;
    let expression = GeneratedValue::encode(&expr)?;
    *generated = Some(Arc::new(Generated { expression, ..(**known).clone() }));
    Ok(())
}

/// Fills in what look-ups have of their tables.
fn settle(expr: &mut Expr, find: &mut SchemaOf<'_>) -> Result<()> {
    expr.change_lookups(&mut |lookup| {
        let schema = find(&lookup.table)?;
        expect_usable(lookup, &schema)?;
        lookup.field = exact(&schema, &lookup.field)?.to_owned();
        lookup.data_type = type_of(lookup, &schema);
        Ok(())
    })
}

fn type_of(lookup: &Lookup, schema: &Schema) -> Option<DataType> {
    let field = schema.fields().get(schema.resolve(&lookup.field).ok()?)?;
    (field.labels.is_none()).then_some(field.data_type)
}

/// Refuses a table in which rows are looked up that has no key, or whose rows go by themselves.
fn expect_usable(lookup: &Lookup, schema: &Schema) -> Result<()> {
    let refused = |found: &str| {
        let table = &lookup.table;
        let message = format!("{lookup}: expected a table with a declared key, found {found}");
        Err(Error::invalid(format!("table {table:?}: {message}")))
    };
    if schema.is_bucket() {
        return refused("a bucket");
    }
    if schema.stream().is_some() {
        return refused("a stream");
    }
    if schema.key_positions().is_empty() {
        return refused("one whose key is generated");
    }
    if schema.expiry_field().is_some() {
        return refused("one whose rows expire");
    }
    if looks_up(schema)? {
        return refused("one for which rows are looked up itself");
    }
    let (want, got) = (schema.key_positions().len(), lookup.keys.len());
    if want != got {
        let key: Vec<&str> = schema.key_fields().map(|field| field.name.as_str()).collect();
        let (key, table) = (key.join(", "), &lookup.table);
        let message = format!("{lookup}: expected a value for each field of the key of {table:?}");
        return Err(Error::invalid(format!("{message}, ({key}), found {got}")));
    }
    let field = schema.fields().get(schema.resolve(&lookup.field)?);
    if field.is_some_and(|field| field.labels.is_some()) {
        let message = format!("{lookup}: expected a field of another type than enum: take text");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Refuses a schema whose fields look up what is not there as they say.
///
/// # Errors
/// `NotFound`, and `InvalidInput` for a value of another type than the key has.
pub(crate) fn expect_fits(name: &str, schema: &Schema, find: &mut SchemaOf<'_>) -> Result<()> {
    if !looks_up(schema)? {
        return Ok(());
    }
    for (field, lookup, types) in Checks::of(schema)?.generated().lookups() {
        let at = |e: Error| e.at(format_args!("field {field:?}"));
        if lookup.table == name {
            let message = format!("{lookup}: expected another table, found its own");
            return Err(at(Error::invalid(message)));
        }
        let other = find(&lookup.table).map_err(at)?;
        expect_usable(lookup, &other).map_err(at)?;
        let last = types.len().checked_sub(1).filter(|_| other.is_key_by_time());
        for (i, (key, given)) in other.key_fields().zip(&types).enumerate() {
            let Some(given) = given else { continue };
            let is_integer = |of: DataType| of.is_numeric() && !of.is_float();
            let to = key.data_type;
            let is_text = *given == DataType::Text && to == DataType::Enum;
            let fits = *given == to
                || (Some(i) != last && (is_text || (is_integer(*given) && is_integer(to))));
            if !fits {
                let key = &key.name;
                let message = format!("{lookup}: {key:?} is {to}, and the value for it {given}");
                return Err(at(Error::invalid(message)));
            }
        }
    }
    Ok(())
}

/// Refuses that a table goes, or gets another name, while rows are looked up in it.
///
/// # Errors
/// `InvalidInput` naming who looks them up.
pub(crate) fn refuse_gone(
    names: &Names,
    name: &str,
    schema_of: &dyn Fn(&Arc<TableCore>) -> Result<Arc<Schema>>,
) -> Result<()> {
    let Some((table, field, _)) = readers_of(names, name, schema_of)?.into_iter().next() else {
        return Ok(());
    };
    Err(Error::invalid(format!(
        "table {name:?}: rows are looked up in it for field {field:?} of table {table:?}; drop \
         that before"
    )))
}

/// Refuses that a table becomes one in which rows cannot be looked up as they are.
///
/// # Errors
/// `InvalidInput` naming who looks them up.
pub(crate) fn refuse_changed(
    names: &Names,
    (name, after): (&str, &Schema),
    schema_of: &dyn Fn(&Arc<TableCore>) -> Result<Arc<Schema>>,
) -> Result<()> {
    for (table, field, lookup) in readers_of(names, name, schema_of)? {
        let why = match still_fits(&lookup, after) {
            Ok(true) => continue,
            Ok(false) => format!("its field {:?}, which stays as it is", lookup.field),
            Err(e) => e.to_string(),
        };
        return Err(Error::invalid(format!(
            "table {name:?}: field {field:?} of table {table:?} looks up {why}; drop that before"
        )));
    }
    Ok(())
}

fn still_fits(lookup: &Lookup, schema: &Schema) -> Result<bool> {
    if schema.resolve(&lookup.field).is_err() {
        return Ok(false);
    }
    expect_usable(lookup, schema)?;
    Ok(type_of(lookup, schema) == lookup.data_type)
}

/// The tables and fields for which rows are looked up in a table.
fn readers_of(
    names: &Names,
    name: &str,
    schema_of: &dyn Fn(&Arc<TableCore>) -> Result<Arc<Schema>>,
) -> Result<Vec<(String, String, Lookup)>> {
    let mut readers = Vec::new();
    for (other, core) in names.iter().filter(|(other, _)| *other != name) {
        // default: a table that is new to a transaction is read by its own schema
        if !core.schema().has_generated() && !schema_of(core)?.has_generated() {
            continue;
        }
        let lookups = lookups_of(&*schema_of(core)?)?;
        let own = lookups.into_iter().filter(|(_, lookup)| lookup.table == name);
        readers.extend(own.map(|(field, lookup)| (other.clone(), field, lookup)));
    }
    Ok(readers)
}

impl NewDefinitions {
    /// Refuses what other commits have left without a table in which it looks up rows, or that
    /// takes one from them.
    ///
    /// # Errors
    /// `Conflict`: a second attempt gets the reason.
    pub(crate) fn expect_lookups(&self, newest: &Names) -> Result<()> {
        let own = |name: &str| self.described(newest, name);
        let gone = self.dropped.iter().map(|table| table.before.name.as_str());
        let altered = self.altered.iter().map(|table| table.before.name.as_str());
        let changed: Vec<&str> = gone.chain(altered).collect();
        let coming = self.created.iter().map(|table| table.core.name().to_string());
        let coming = coming.chain(self.altered.iter().map(|table| table.after.name.clone()));
        let coming: Vec<String> = coming.collect();
        let others = newest.iter().filter(|_| !changed.is_empty());
        let others = others.filter(|(_, core)| core.schema().has_generated());
        let readers = others.map(|(name, _)| name.clone()).chain(coming.iter().cloned());
        for reader in readers {
            let Some(schema) = own(&reader) else { continue };
            for (field, lookup) in lookups_of(&schema)? {
                let is_changed = changed.contains(&lookup.table.as_str());
                if !is_changed && !coming.contains(&reader) {
                    continue;
                }
                let fits = own(&lookup.table)
                    .is_some_and(|other| still_fits(&lookup, &other).is_ok_and(|fits| fits));
                if !fits {
                    let table = &lookup.table;
                    return Err(conflict(format!(
                        "table {table:?}, in which rows for field {field:?} of table {reader:?} \
                         are looked up, is another one since another commit"
                    )));
                }
            }
        }
        Ok(())
    }

    /// What a table is after these changes, by its name then.
    fn described(&self, newest: &Names, name: &str) -> Option<Arc<Schema>> {
        let created = self.created.iter().find(|table| **table.core.name() == *name);
        if let Some(created) = created {
            return Some(created.core.schema());
        }
        let is_it = |described: &&Described| described.name == name;
        let mut after = self.altered.iter().map(|table| &table.after);
        if let Some(after) = after.find(is_it) {
            return Some(Arc::clone(&after.schema));
        }
        let altered = self.altered.iter().map(|table| &table.before);
        let mut before = altered.chain(self.dropped.iter().map(|table| &table.before));
        if before.any(|before| before.name == name) {
            return None;
        }
        newest.get(name).map(|core| core.schema())
    }
}
