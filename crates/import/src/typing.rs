//! The fields that a file is read into: declared, or those that inference proposes.

use esker_format::{Field, Schema};

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
            (names, _) => return Err(unknown_columns(names, fields)),
        }
        if let Some(blank) = layout.blank {
            self.notes.push(format!("column {} has no name and no value: left out", blank + 1));
        }
        let sources = sources(&layout.columns, fields)?;
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

    /// The types that hold what was seen.
    pub(crate) fn typed(
        &mut self,
        layout: Layout,
        survey: &Survey,
        inference: Inference,
    ) -> Result<Layout> {
        let mut key = self.options.key.clone();
        if layout.dialect.is_json() && survey.rows == 0 {
            return Err(Error::data("the file has no rows to infer fields from; give a schema"));
        }
        if layout.dialect == Dialect::Keyed && key.is_empty() {
            key.push(KEY_NAME.to_owned());
        }
        // The columns of CSV are those of the header, whatever rows there are.
        let columns =
            if layout.dialect.is_json() { survey.names() } else { layout.columns.clone() };
        let names = match layout.dialect {
            Dialect::Csv(_) => columns.clone(),
            _ => {
                let header = Header::of(columns.clone());
                self.notes.extend(header.changes);
                header.names
            }
        };
        let blank = layout.blank.filter(|at| {
            let name = columns.get(*at);
            name.is_some_and(|name| survey.is_blank(name) && !key.contains(name))
        });
        let mut builder = Schema::builder();
        let mut sources = Vec::new();
        for (position, (name, field)) in columns.iter().zip(&names).enumerate() {
            if blank == Some(position) {
                self.leave_blank(position, name);
                continue;
            }
            let seen = survey.column(name);
            let kinds = seen.map(|column| column.kinds).unwrap_or_default(); // default: no rows.
            self.hint(field, kinds, inference);
            let has_null = seen.is_none_or(|column| survey.has_null(column));
            let has_all = self.options.strict && inference.whole && !has_null && survey.rows > 0;
            builder = match key.contains(field) || has_all {
                true => builder.field(field.as_str(), kinds.data_type()),
                false => builder.nullable(field.as_str(), kinds.data_type()),
            };
            sources.push(Some(position));
        }
        let schema = builder.primary_key(key).build();
        let schema = schema.map_err(|e| Error::options(e.to_string()))?;
        let note = if inference.whole {
            String::new()
        } else {
            let rows = inference.rows;
            format!(
                "; the types were inferred from the first {rows} rows: declare them in a schema \
                 (--schema on the command line)"
            )
        };
        Ok(Layout { sources, schema, columns, note, blank, spellings: true, ..layout })
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

/// The column of each field.
fn sources(columns: &[String], fields: &[Field]) -> Result<Vec<Option<usize>>> {
    let names = columns.join(", ");
    let sources = fields.iter().map(|field| {
        let column = columns.iter().position(|column| *column == field.name);
        if column.is_none() && !field.nullable && field.default.is_none() {
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
    use esker_format::DataType;

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
