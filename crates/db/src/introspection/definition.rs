//! A table as the statement that makes it.

use esker_format::schema::{
    DefaultValue, Identity, Index, IndexField, IndexKind, Reference, ReferenceAction,
};
use esker_format::{Field, Interval, Schema, Value};
use esker_query::index_expression::with_names;
use esker_query::model::{Expr, Function, Operator, name_text};
use esker_query::{ComputedDefault, Constraint};

use crate::Result;
pub use crate::catalog::computed_index::{
    expression_text, filter_text, new_filter_text, parts_text,
};
use crate::catalog::{computed_index, generated};

/// `CREATE TABLE`, with all that the table is but its rows. `None` for what no statement makes: a
/// bucket, and a table whose rows lie in the order of their key.
///
/// # Errors
/// `Corrupt` when a check, or what computes a field, cannot be read.
pub fn create_table(name: &str, schema: &Schema) -> Result<Option<String>> {
    if schema.is_bucket() || schema.is_ordered_by_key() || schema.is_companion() {
        return Ok(None);
    }
    let mut parts = schema.fields().iter().map(field).collect::<Result<Vec<_>>>()?;
    let key: Vec<String> = schema.key_fields().map(|field| name_text(&field.name)).collect();
    if !key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    for (name, condition) in checks(schema)? {
        parts.push(format!("CONSTRAINT {} CHECK ({condition})", name_text(&name)));
    }
    parts.extend(schema.references().iter().map(|reference| referred(schema, reference)));
    let (alone, within): (Vec<&Index>, Vec<&Index>) =
        schema.row_indexes().partition(|index| index.filter.is_some());
    parts.extend(within.into_iter().map(|index| declared(schema, index)));
    let parts = parts.join(",\n  ");
    let made = format!("CREATE TABLE {} (\n  {parts}\n)", name_text(name));
    let mut options = schema.stream_options()?;
    options.extend(schema.changes_options());
    options.extend(schema.expiry_field().map(|field| ("expires", field.name.clone())));
    let option = |(name, value): (&str, String)| format!("{name} = {}", Expr::literal(value));
    let options: Vec<String> = options.into_iter().map(option).collect();
    let made = match options.is_empty() {
        true => made,
        false => format!("{made} WITH ({})", options.join(", ")),
    };
    // A condition is written in a statement of its own.
    let alone = alone.into_iter().map(|index| format!(";\n{}", create_index(name, schema, index)));
    Ok(Some(made + &alone.collect::<String>()))
}

/// The checks of a table: their names, and their conditions in SQL.
///
/// # Errors
/// `Corrupt` when one cannot be read.
pub fn checks(schema: &Schema) -> Result<Vec<(String, String)>> {
    let check = |check: &esker_format::schema::Check| {
        let condition = Constraint::decode(&check.condition)?;
        Ok((check.name.clone(), condition.to_string()))
    };
    schema.checks().iter().map(check).collect()
}

/// What a field gets that is written without a value, in SQL; `None` for NULL, and for an identity,
/// which [`extra_text`] tells.
#[must_use]
pub fn default_text(field: &Field) -> Option<String> {
    if field.identity.is_some() {
        return None;
    }
    let now = || Expr::Call(Function::Now, Vec::new());
    let default = match field.default.as_ref()? {
        DefaultValue::Literal(value) => Expr::Literal(value.clone()),
        DefaultValue::Now => now(),
        DefaultValue::Uuid => return Some("uuid()".to_owned()),
        DefaultValue::After(us) => {
            // default: no row lives for so long
            let us = i64::try_from(*us).unwrap_or(i64::MAX);
            let after = Interval::new(0, 0, us);
            now().binary(Operator::Add, Expr::Literal(Value::Interval(after)))
        }
        DefaultValue::Computed(stored) => match ComputedDefault::decode(stored) {
            Ok(expr) => expr,
            // What cannot be read is shown as it is.
            Err(_) => return Some(stored.clone()),
        },
        DefaultValue::NextValue(name) => {
            Expr::call(Function::Nextval, [Expr::literal(name.as_str())])
        }
    };
    Some(default.to_string())
}

/// What computes the values of a field, in SQL; `None` where nothing does.
///
/// # Errors
/// `Corrupt` when it cannot be read.
pub fn generated_text(field: &Field) -> Result<Option<String>> {
    let Some(generated) = &field.generated else { return Ok(None) };
    Ok(Some(generated::expression(generated)?.to_string()))
}

/// What a field has of itself, as statements write it: that it is generated, or an identity.
///
/// # Errors
/// `Corrupt` when what computes it cannot be read.
pub fn extra_text(field: &Field) -> Result<Option<String>> {
    if let (Some(expr), Some(generated)) = (generated_text(field)?, &field.generated) {
        return Ok(Some(format!("GENERATED ALWAYS AS ({expr}) {}", generated.kind())));
    }
    Ok(field.identity.map(identity_text))
}

fn identity_text(identity: Identity) -> String {
    let how = if identity.is_always { "ALWAYS" } else { "BY DEFAULT" };
    let Identity { start, increment, .. } = identity;
    let options = match (start, increment) {
        (1, 1) => String::new(),
        (start, 1) => format!(" (START WITH {start})"),
        (1, increment) => format!(" (INCREMENT BY {increment})"),
        (start, increment) => format!(" (START WITH {start} INCREMENT BY {increment})"),
    };
    format!("GENERATED {how} AS IDENTITY{options}")
}

/// The type of a field as statements write it.
#[must_use]
pub fn type_text(field: &Field) -> String {
    let Some(labels) = &field.labels else { return field.type_text() };
    let labels: Vec<String> = labels.iter().map(|label| Expr::literal(label).to_string()).collect();
    format!("{}({})", field.data_type, labels.join(", "))
}

/// `CREATE INDEX`, as a statement of its own.
#[must_use]
pub fn create_index(table: &str, schema: &Schema, index: &Index) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let using = led(" USING ", using(index));
    let (name, table, fields) = (name_text(&index.name), name_text(table), fields(schema, index));
    let filter = led(" WHERE ", filter_text(schema, index).as_deref());
    format!("CREATE {unique}INDEX {name} ON {table}{using} ({fields}){filter}")
}

fn field(field: &Field) -> Result<String> {
    let not_null = if field.nullable { "" } else { " NOT NULL" };
    let default = led(" DEFAULT ", default_text(field).as_deref());
    let extra = led(" ", extra_text(field)?.as_deref());
    Ok(format!("{} {}{not_null}{default}{extra}", name_text(&field.name), type_text(field)))
}

/// An index within the statement that makes its table.
fn declared(schema: &Schema, index: &Index) -> String {
    let (name, fields) = (name_text(&index.name), fields(schema, index));
    let using = led(" USING ", using(index));
    match index.unique {
        true => format!("CONSTRAINT {name} UNIQUE ({fields})"),
        false => format!("INDEX {name}{using} ({fields})"),
    }
}

/// A reference within the statement that makes its table.
fn referred(schema: &Schema, reference: &Reference) -> String {
    let names =
        |names: &mut dyn Iterator<Item = &str>| names.map(name_text).collect::<Vec<_>>().join(", ");
    let fields = names(&mut schema.names_of(&reference.fields).into_iter());
    let columns = names(&mut reference.columns.iter().map(String::as_str));
    let (name, table) = (name_text(&reference.name), name_text(&reference.table));
    let rule = |when: &str, action: ReferenceAction| match action {
        ReferenceAction::NoAction => String::new(),
        action => format!(" ON {when} {}", action.name()),
    };
    let (update, delete) =
        (rule("UPDATE", reference.on_update), rule("DELETE", reference.on_delete));
    format!(
        "CONSTRAINT {name} FOREIGN KEY ({fields}) REFERENCES {table} ({columns}){update}{delete}"
    )
}

/// A text with what stands before it, or nothing.
fn led(before: &str, text: Option<&str>) -> String {
    text.map(|text| format!("{before}{text}")).into_iter().collect()
}

fn using(index: &Index) -> Option<&'static str> {
    (index.kind != IndexKind::Ordered).then(|| index.kind.name())
}

/// The fields of an index, in parentheses of a statement.
fn fields(schema: &Schema, index: &Index) -> String {
    let text = |part: &IndexField| {
        if let Some(expression) = &part.expression {
            let order = if part.descending { " DESC" } else { "" };
            let written = computed_index::written(expression, schema);
            let is_call = matches!(with_names(expression, schema), Ok(Expr::Call(..)));
            return if is_call {
                format!("{written}{order}")
            } else {
                format!("({written}){order}")
            };
        }
        // default: the schema has refused an index on no field
        let name = schema.field_of(part.field).map_or("", |field| field.name.as_str());
        let steps = std::iter::once(name).chain(part.path.iter().map(String::as_str));
        let place: Vec<String> = steps.map(name_text).collect();
        format!("{}{}", place.join("."), if part.descending { " DESC" } else { "" })
    };
    index.fields.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The statement that makes a view.
pub(crate) fn create_view(
    name: &str,
    view: &esker_format::View,
    retention: Option<&str>,
) -> String {
    let columns: Vec<String> = view.columns.iter().map(|column| name_text(&column.name)).collect();
    let kind = if view.is_rollup { "MATERIALIZED VIEW" } else { "VIEW" };
    let with = retention.map(|kept| format!(" WITH (retention = '{kept}')"));
    let with = with.unwrap_or_default(); // default: nothing is kept
    format!("CREATE {kind} {} ({}){with} AS {}", name_text(name), columns.join(", "), view.text)
}
