//! The fields that a file is read into: declared, or those that inference proposes.

use esker_format::schema::{Alteration, FieldId};
use esker_format::suggest::did_you_mean;
use esker_format::{DataType, Field, Schema};

use crate::chunk::Layout;
use crate::dialect::Dialect;
use crate::header::Header;
use crate::inference::{Inference, Survey};
use crate::kinds::Kinds;
use crate::opening::{KEY_NAME, Opening};
use crate::options::Unknown;
use crate::{Error, Result};

impl Opening<'_> {
    /// Matches the columns of the file to a given schema.
    pub(crate) fn declared(&mut self, mut layout: Layout, schema: Schema) -> Result<Layout> {
        if layout.dialect.is_json() {
            return Ok(Layout { schema, ..layout });
        }
        let fields = schema.fields();
        let is_field = |name: &String| fields.iter().any(|field| field.name == *name);
        if layout.blank.is_some_and(|at| layout.columns.get(at).is_some_and(is_field)) {
            layout.blank = None;
        }
        let named = layout.columns.len() - usize::from(layout.blank.is_some());
        let mut unknown: Vec<String> = layout.columns.iter().take(named).cloned().collect();
        unknown.retain(|name| !is_field(name));
        if !unknown.is_empty() && self.may_rename(&layout.columns, named, fields) {
            for (column, field) in layout.columns.iter_mut().zip(fields) {
                if *column != field.name {
                    self.notes.push(format!("column {column:?} is {}", field.name));
                    column.clone_from(&field.name);
                }
            }
            unknown.clear();
        }
        match (unknown.as_slice(), &self.options.unknown) {
            ([], _) => {}
            (names, Unknown::Ignore) => self.notes.push(format!("left out: {}", names.join(", "))),
            (names, Unknown::Field(field)) => {
                self.notes.push(format!("in {field}: {}", names.join(", ")));
                if layout.columns.contains(field) {
                    let names = names.join(", ");
                    return Err(Error::data(format!(
                        "the column {field:?} is the field that takes what no field is called \
                         after, which {names} are: rename or leave out one or the others"
                    )));
                }
                let at = |name| layout.columns.iter().position(|column| column == name);
                layout.rest_columns = names.iter().filter_map(at).collect();
                layout.rest = Some(rest_field(&schema, field)?);
            }
            (names, Unknown::Infer) => return Err(unknown_columns(names, fields).contradicting()),
            (names, Unknown::Error) => return Err(unknown_columns(names, fields)),
        }
        if let Some(blank) = layout.blank {
            self.notes.push(format!("column {} has no name and no value: left out", blank + 1));
        }
        let mut sources = sources_of(&layout.columns, fields)?;
        if let Some(source) = layout.rest.and_then(|rest| sources.get_mut(rest)) {
            *source = layout.rest_columns.first().copied();
        }
        let missing = fields.iter().zip(&sources).filter(|(_, source)| source.is_none());
        let missing: Vec<&str> = missing.map(|(field, _)| field.name.as_str()).collect();
        if !missing.is_empty() {
            self.notes.push(format!("no column for {}: default values", missing.join(", ")));
        }
        Ok(Layout { sources, schema, ..layout })
    }

    /// Whether a schema may name the columns: there are as many, and none that has the name of a
    /// field is elsewhere.
    fn may_rename(&self, columns: &[String], named: usize, fields: &[Field]) -> bool {
        let is_elsewhere = |(at, column): (usize, &String)| {
            fields.iter().position(|field| field.name == *column).is_some_and(|field| field != at)
        };
        self.options.names_columns
            && named == fields.len()
            && !columns.iter().take(named).enumerate().any(is_elsewhere)
    }

    /// The types that hold what was seen. The fields of a schema stay what they are.
    pub(crate) fn typed(
        &mut self,
        layout: Layout,
        survey: &Survey,
        inference: Inference,
    ) -> Result<Layout> {
        let mut key = self.options.key.clone();
        if layout.dialect.is_json() {
            expect_members(survey, inference)?;
        }
        let declared = self.options.schema.clone();
        if layout.dialect == Dialect::Keyed && key.is_empty() && declared.is_none() {
            key.push(KEY_NAME.to_owned());
        }
        let columns = columns_of(&layout, survey, declared.as_ref());
        let names = match layout.dialect {
            Dialect::Csv(_) => columns.clone(),
            _ => {
                let header = Header::of(columns.clone());
                self.notes.extend(header.changes);
                header.names
            }
        };
        let is_declared =
            |name: &String| declared.as_ref().is_some_and(|schema| schema.position(name).is_some());
        let blank = layout.blank.filter(|at| {
            let name = columns.get(*at);
            name.is_some_and(|name| {
                survey.is_blank(name) && !key.contains(name) && !is_declared(name)
            })
        });
        // A column that only other files have is none of this one.
        let is_here = |at: &usize| layout.dialect.is_json() || *at < layout.columns.len();
        let (mut fields, mut sources, mut untyped) = (Vec::new(), Vec::new(), Vec::new());
        for (position, (name, field)) in columns.iter().zip(&names).enumerate() {
            if blank == Some(position) {
                self.leave_blank(position, name);
                continue;
            }
            if is_declared(field) {
                continue;
            }
            let seen = survey.column(name);
            let kinds = seen.map(|column| column.kinds).unwrap_or_default(); // default: no rows.
            self.hint(field, kinds, inference);
            let has_null = seen.is_none_or(|column| survey.has_null(column));
            let has_all = self.options.strict && !has_null && survey.rows > 0;
            if !inference.whole && kinds.is_blank() {
                untyped.push(fields.len());
            }
            let nullable = !has_all && !key.contains(field);
            fields.push((field.clone(), kinds.data_type(), nullable));
            sources.push(Some(position).filter(is_here));
        }
        let schema = match &declared {
            None => build(fields, key)?,
            Some(declared) => {
                self.note_missing(declared, &there(&layout, &columns, survey, declared), inference);
                let of_declared = sources_of(&columns, declared.fields())?;
                let of_declared = of_declared.into_iter().map(|source| source.filter(is_here));
                sources = of_declared.chain(sources).collect();
                with_fields(declared, fields)?
            }
        };
        let columns = if layout.dialect.is_json() { columns } else { layout.columns.clone() };
        let note = note_of(inference);
        Ok(Layout { sources, schema, columns, note, blank, untyped, spellings: true, ..layout })
    }

    /// Says which fields of a schema of some fields have no column: a name may be mistyped.
    fn note_missing(&mut self, declared: &Schema, columns: &[String], inference: Inference) {
        let all = if inference.whole { "" } else { " so far" };
        for field in declared.fields().iter().filter(|field| !columns.contains(&field.name)) {
            let near = did_you_mean(&field.name, columns.iter().map(String::as_str));
            let name = &field.name;
            self.notes.push(format!("no column for {name}{all}: default values{near}"));
        }
    }

    /// Says that a column goes, in the place of what was said of its name.
    fn leave_blank(&mut self, position: usize, name: &str) {
        let number = position + 1;
        self.notes.retain(|note| *note != format!("column {number} has no name: {name}"));
        self.notes.push(format!("column {number} has no name and no value: left out"));
    }

    /// Says what would make another type of a column that is text.
    fn hint(&mut self, name: &str, kinds: Kinds, inference: Inference) {
        let all = if inference.whole { "" } else { " so far" };
        if let Some((spelling, data_type)) = kinds.null_like() {
            self.notes.push(format!(
                "{name} would be {data_type}{all} but for {spelling:?}: --null {spelling} makes \
                 that NULL"
            ));
        } else if kinds.is_comma_number() {
            self.notes
                .push(format!("{name} has decimal commas{all}: --decimal , makes numbers of it"));
        } else if kinds.is_day_month() {
            self.notes.push(format!(
                "{name} looks like dates{all}: --date-format says their order, such as '%d/%m/%Y' \
                 or '%m/%d/%Y'"
            ));
        }
    }
}

/// Refuses a file of JSON that has nothing to infer fields from.
fn expect_members(survey: &Survey, inference: Inference) -> Result<()> {
    let what = match (survey.rows, survey.columns.as_slice()) {
        (0, _) => "rows",
        (_, []) => "members",
        _ => return Ok(()),
    };
    let message = format!("the file has no {what} to infer fields from; give a schema");
    let error = Error::data(message);
    // Some may come later, or in another file.
    Err(if inference.whole { error } else { error.contradicting() })
}

/// What errors about values say of types that come from some rows only.
fn note_of(inference: Inference) -> String {
    if inference.whole {
        return String::new();
    }
    let rows = inference.rows;
    format!(
        "; the types were inferred from the first {rows} rows: declare them in a schema \
         (--schema on the command line)"
    )
}

/// The columns that inference makes fields of. Those of CSV are those of the header, whatever rows
/// there are, and those that other files have.
fn columns_of(layout: &Layout, survey: &Survey, declared: Option<&Schema>) -> Vec<String> {
    let names = survey.names();
    let first = match declared {
        // Members stand in the order of the fields that take them.
        Some(schema) if layout.dialect.is_json() => {
            schema.fields().iter().map(|field| field.name.clone()).collect()
        }
        None if layout.dialect.is_json() => Vec::new(),
        _ => layout.columns.clone(),
    };
    let others: Vec<String> = names.into_iter().filter(|name| !first.contains(name)).collect();
    [first, others].concat()
}

/// The columns that a row has.
fn there(layout: &Layout, columns: &[String], survey: &Survey, declared: &Schema) -> Vec<String> {
    let mut names = match layout.dialect {
        Dialect::Csv(_) => columns.to_vec(),
        _ => survey.names_seen(),
    };
    if layout.dialect == Dialect::Keyed {
        // The name of a row.
        names.extend(declared.key_fields().map(|field| field.name.clone()));
    }
    names
}

/// Fields by name and type, and whether they may be NULL.
type Fields = Vec<(String, DataType, bool)>;

fn build(fields: Fields, key: Vec<String>) -> Result<Schema> {
    let builder = fields.into_iter().fold(Schema::builder(), |builder, (name, data_type, null)| {
        if null { builder.nullable(name, data_type) } else { builder.field(name, data_type) }
    });
    builder.primary_key(key).build().map_err(|e| Error::options(e.to_string()))
}

/// A schema with more fields behind its own.
fn with_fields(schema: &Schema, fields: Fields) -> Result<Schema> {
    let mut changes = Vec::new();
    for (name, data_type, nullable) in fields {
        // Its number is given out.
        changes.push(Alteration::AddField(Field::new(FieldId(0), name.clone(), data_type, true)));
        if !nullable {
            changes.push(Alteration::SetNotNull(name));
        }
    }
    let changed = schema.alter(&changes).map_err(|e| Error::options(e.to_string()))?;
    Ok(changed.with_version(schema.version()))
}

/// The field that takes what no other does.
pub(crate) fn rest_field(schema: &Schema, name: &str) -> Result<usize> {
    let position = schema.expect_position(name).map_err(|e| Error::options(e.to_string()))?;
    let field = schema.fields().get(position);
    if field.is_none_or(|field| field.data_type != DataType::Json) {
        return Err(Error::options(format!(
            "the field {name:?} takes what the rows have beside; expected it to be json"
        )));
    }
    Ok(position)
}

/// The column of each field.
fn sources_of(columns: &[String], fields: &[Field]) -> Result<Vec<Option<usize>>> {
    let names = columns.join(", ");
    let sources = fields.iter().map(|field| {
        let column = columns.iter().position(|column| *column == field.name);
        if column.is_none() && !field.may_be_left_out() {
            let name = &field.name;
            let message = format!(
                "no column for field {name:?}, which must have a value; the columns are {names}"
            );
            return Err(Error::data(message));
        }
        Ok(column)
    });
    sources.collect()
}

fn unknown_columns(names: &[String], fields: &[Field]) -> Error {
    let what = if names.len() == 1 { "a column" } else { "columns" };
    let named: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let fields: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    Error::data(format!(
        "the file has {what} {} that the schema has not (it has {})",
        named.join(", "),
        fields.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_no_field_has_are_all_named() {
        let schema = Schema::builder().field("a", DataType::I64).build().unwrap();
        let error = unknown_columns(&["b".to_owned(), "c".to_owned()], schema.fields());
        assert_eq!(
            error.to_string(),
            "the file has columns \"b\", \"c\" that the schema has not (it has a)"
        );
    }
}
