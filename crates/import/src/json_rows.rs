//! New rows in a body of JSON, an object or a list of them, by column.
//!
//! This is the reader of files on bytes that are there as a whole. It reads what is as it should be
//! at once. Where anything is not, it says nothing of it: a caller reads the rows one by one then,
//! by [`parse_new_json_row`](crate::parse_new_json_row), and learns what is wrong with which.

use esker_format::{Batch, Schema};
use memchr::memchr2;

use crate::chunk::{Layout, parse_some};
use crate::dialect::Dialect;
use crate::json::Names;
use crate::nulls::Nulls;
use crate::options::{ImportOptions, Unknown};
use crate::splitter::Chunk;

/// Reads the new rows of one schema: made once, used for any number of bodies.
///
/// ```
/// let schema = esker_import::schema_text::parse("id i64 not null, name text")?;
/// let rows = esker_import::JsonRows::new(&schema);
/// let (batch, _) = rows.read(b"[{\"id\": 7}, {\"id\": 8, \"name\": \"b\"}]".to_vec(), 10);
/// assert_eq!(batch.unwrap().len(), 2);
/// assert!(rows.read(b"{\"id\": 7, \"nmae\": \"b\"}".to_vec(), 10).0.is_none());
/// # Ok::<(), esker_import::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonRows {
    object: Layout,
    list: Layout,
}

impl JsonRows {
    /// A reader of rows of a schema.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self { object: layout(schema, Dialect::Lines), list: layout(schema, Dialect::Array) }
    }

    /// The rows of a body, an object or a list of them: `None` unless all is as it should be. A row
    /// that says nothing about a field is [marked](esker_format::Column::DEFAULT_MARK) so, where
    /// the field has a default. Of more than `most` rows nothing is read. The body comes back.
    #[must_use]
    pub fn read(&self, body: Vec<u8>, most: usize) -> (Option<Batch>, Vec<u8>) {
        let Some((layout, start)) = self.layout_of(&body) else { return (None, body) };
        let is_list = layout.dialect == Dialect::Array;
        let parsed = parse_some(layout, Chunk::whole(body, start), most);
        let batch = parsed.rows.ok().map(|rows| rows.batch);
        let has_right_count = |batch: &Batch| batch.len() <= most && (is_list || batch.len() == 1);
        (batch.filter(has_right_count), parsed.buffer)
    }

    /// How a body is read, and from where on.
    fn layout_of(&self, body: &[u8]) -> Option<(&Layout, usize)> {
        std::str::from_utf8(body).ok()?;
        let start = body.iter().position(|byte| !byte.is_ascii_whitespace())?;
        match body.get(start) {
            Some(b'[') => Some((&self.list, start + 1)),
            // Lines of objects end where a line does.
            _ if memchr2(b'\n', b'\r', body.trim_ascii()).is_some() => None,
            _ => Some((&self.object, start)),
        }
    }
}

fn layout(schema: &Schema, dialect: Dialect) -> Layout {
    let columns: Vec<String> = schema.fields().iter().map(|field| field.name.clone()).collect();
    let rest = schema.rest_position();
    let rest_name = rest.and_then(|at| columns.get(at)).cloned();
    Layout {
        dialect,
        nulls: Nulls::new(&[]),
        names: Names::new(columns.iter().map(String::as_str)),
        key: None,
        schema: schema.clone(),
        sources: (0..columns.len()).map(Some).collect(),
        columns,
        note: String::new(),
        notation: ImportOptions::default().notation(),
        spellings: false,
        unknown: rest_name.map_or(Unknown::Error, Unknown::Field),
        rest,
        blank: None,
        untyped: Vec::new(),
        rest_columns: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
