//! Rows by an index, without a query around it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use esker_format::order_key::{self, KeyRange};
use esker_format::schema::{Index, IndexKind};
use esker_format::{Field, Room, Value, ValueRef};
use esker_table::index_run::IndexRun;
use esker_table::table::SnapshotPart;
use esker_table::view::RowGroup;

use crate::commit::fit::fit_reference;
use crate::{Error, Result, Row, SnapshotTable};

/// Finds rows by the fields of one index, over and over: what a query would have to plan each time
/// is done once.
///
/// Rows that are in no segment yet, and those of a segment whose part of the index is not built
/// yet, are looked at one by one.
pub struct Finder<'a> {
    table: &'a SnapshotTable,
    index: &'a Index,
    /// The fields of the index, in its order.
    fields: Vec<&'a Field>,
    parts: Vec<Searched<'a>>,
}

/// A part of the table.
struct Searched<'a> {
    part: &'a SnapshotPart,
    run: Option<Arc<IndexRun>>,
    /// No row has to be tested for being visible.
    all_visible: bool,
}

/// Rows that were found, in no order that means something.
#[derive(Debug)]
pub struct FoundRows<'f> {
    finder: &'f Finder<'f>,
    /// What is left: rows of one part after the other.
    parts: std::vec::IntoIter<(usize, Cow<'f, [u32]>)>,
    part: usize,
    rows: Cow<'f, [u32]>,
    next: usize,
}

/// A row that was found, of which nothing is read yet.
#[derive(Clone, Copy)]
pub struct FoundRow<'f> {
    part: &'f SnapshotPart,
    table: &'f SnapshotTable,
    row: usize,
}

impl SnapshotTable {
    /// What finds rows by an index: for programs that ask for one key after the other.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder()
    ///     .field("name", DataType::Text)
    ///     .field("city", DataType::Text)
    ///     .index("by_city", ["city"])
    ///     .build()?;
    /// let people = db.create_table("people", schema)?;
    /// people.insert_many(&[
    ///     vec!["Ada".into(), "London".into()],
    ///     vec!["Grace".into(), "New York".into()],
    /// ])?;
    /// let snapshot = people.snapshot()?;
    /// let finder = snapshot.finder("by_city")?;
    /// for found in finder.find(&["London".into()])? {
    ///     assert_eq!(found.row()?.get("name"), Some(&Value::Text("Ada".into())));
    /// }
    /// assert_eq!(finder.find(&["Paris".into()])?.count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for an unknown index, and for one that is not ordered.
    pub fn finder(&self, index: &str) -> Result<Finder<'_>> {
        let schema = self.schema();
        let index = schema.index(index)?;
        if index.kind != IndexKind::Ordered {
            let (name, kind) = (&index.name, index.kind.name());
            let message = format!("index {name:?}: expected an ordered one, found {kind}");
            return Err(Error::invalid(message));
        }
        if index.fields.iter().any(|part| !part.path.is_empty()) {
            let message = format!("index {:?}: expected one of fields, found a path", index.name);
            return Err(Error::invalid(message));
        }
        if index.is_computed() {
            let (name, filter) = (&index.name, index.filter.is_some());
            let found = if filter { "one of some rows" } else { "an expression" };
            let message = format!("index {name:?}: expected fields, and all rows, found {found}");
            return Err(Error::invalid(message));
        }
        let field = |part: &esker_format::schema::IndexField| schema.field_of(part.field);
        let fields = index.fields.iter().map(field).collect::<Option<Vec<_>>>();
        let fields = fields.ok_or_else(|| Error::invalid("an index of a field that is gone"))?;
        let parts = self.rows_as_of().parts().iter().map(|part| Searched {
            part,
            run: run_of(part, index),
            all_visible: part.known_count().is_some(),
        });
        Ok(Finder { table: self, index, fields, parts: parts.collect() })
    }
}

fn run_of(part: &SnapshotPart, index: &Index) -> Option<Arc<IndexRun>> {
    let RowGroup::Segment(segment) = part.row_group() else { return None };
    let runs = segment.runs();
    let run = runs.iter().find(|run| run.index().id == index.id)?;
    run.is_readable_by(part.schema()).then(|| Arc::clone(run))
}

impl Finder<'_> {
    /// The rows whose values of the first fields of the index are these. NULL finds the rows
    /// without a value.
    ///
    /// # Errors
    /// `InvalidInput` for more values than the index has fields, for none, and for one that does
    /// not fit its field; `Corrupt` when a block does not fit its checksum.
    pub fn find(&self, key: &[Value]) -> Result<FoundRows<'_>> {
        let (given, fields) = (key.len(), self.fields.len());
        if given == 0 || given > fields {
            let message = format!("index {:?}: expected 1 to {fields} values", self.index.name);
            return Err(Error::invalid(format!("{message}, found {given}")));
        }
        if let ([field, ..], [value]) = (self.fields.as_slice(), key) {
            let value = fitted(field, value)?;
            return self.find_fitted(&[value], &[range_of(value)]);
        }
        let pairs = self.fields.iter().zip(key);
        let key = pairs.map(|(field, value)| fitted(field, value)).collect::<Result<Vec<_>>>()?;
        let ranges: Vec<_> = key.iter().map(|value| range_of(*value)).collect();
        self.find_fitted(&key, &ranges)
    }

    fn find_fitted(&self, key: &[ValueRef<'_>], ranges: &[KeyRange<'_>]) -> Result<FoundRows<'_>> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for (number, searched) in self.parts.iter().enumerate() {
            let rows = match &searched.run {
                Some(run) => searched.by_run(run, ranges)?,
                None => searched.one_by_one(&self.fields, key)?,
            };
            if !rows.is_empty() {
                parts.push((number, rows));
            }
        }
        let (parts, rows) = (parts.into_iter(), Cow::Borrowed(Default::default()));
        Ok(FoundRows { finder: self, parts, part: 0, rows, next: 0 })
    }
}

/// A value of a key as its field has it.
fn fitted<'a>(field: &'a Field, value: &'a Value) -> Result<ValueRef<'a>> {
    match value {
        Value::Null => Ok(ValueRef::Null),
        value => fit_reference(field, value.as_ref()),
    }
}

/// The range of one value, which has the type of its field.
fn range_of(value: ValueRef<'_>) -> KeyRange<'_> {
    match value.as_bytes() {
        _ if value.is_null() => KeyRange::Null,
        Some(bytes) => KeyRange::Bytes(Bound::Included(bytes), Bound::Included(bytes)),
        None => KeyRange::Keys(order_key::key(value), order_key::key(value)),
    }
}

impl Searched<'_> {
    fn by_run<'r>(&self, run: &'r IndexRun, ranges: &[KeyRange<'_>]) -> Result<Cow<'r, [u32]>> {
        let RowGroup::Segment(segment) = self.part.row_group() else { return Ok(Cow::default()) };
        let mut entries = 0..run.len();
        for (number, range) in ranges.iter().enumerate() {
            entries = run.find(segment, self.part.schema(), entries, number, range)?;
            if entries.is_empty() {
                return Ok(Cow::default());
            }
        }
        let rows = run.rows(entries)?;
        if self.all_visible {
            return Ok(rows);
        }
        let is_visible = |row: &&u32| self.part.is_visible(**row as usize);
        Ok(rows.iter().filter(is_visible).copied().collect::<Vec<_>>().into())
    }

    fn one_by_one(&self, fields: &[&Field], key: &[ValueRef<'_>]) -> Result<Cow<'static, [u32]>> {
        let (row_group, mut found) = (self.part.row_group(), Vec::new());
        for (row, number) in (0..self.part.row_count()).zip(0u32..) {
            let mut is_it = true;
            for (field, value) in fields.iter().zip(key) {
                let room = Room::default();
                let stored = row_group.value(field, row, &room)?;
                is_it &= match (stored.is_null(), value.is_null()) {
                    (false, false) => stored.compare(*value).is_eq(),
                    (stored, value) => stored && value,
                };
                if !is_it {
                    break;
                }
            }
            if is_it && (self.all_visible || self.part.is_visible(row)) {
                found.push(number);
            }
        }
        Ok(found.into())
    }
}

impl<'f> Iterator for FoundRows<'f> {
    type Item = FoundRow<'f>;

    fn next(&mut self) -> Option<FoundRow<'f>> {
        loop {
            if let Some(row) = self.rows.get(self.next) {
                self.next += 1;
                let part = self.finder.parts.get(self.part)?.part;
                return Some(FoundRow { part, table: self.finder.table, row: *row as usize });
            }
            (self.part, self.rows) = self.parts.next()?;
            self.next = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let later = self.parts.as_slice().iter().map(|(_, rows)| rows.len());
        let left = later.sum::<usize>() + self.rows.len().saturating_sub(self.next);
        (left, Some(left))
    }

    fn count(self) -> usize {
        self.size_hint().0
    }
}

impl FoundRow<'_> {
    /// Reads the row.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn row(&self) -> Result<Row> {
        let schema = self.table.schema();
        let values = schema.fields().iter().map(|field| self.read(field));
        Ok(Row::new(Arc::clone(schema), values.collect::<Result<_>>()?))
    }

    /// Reads one field.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown field, `Corrupt` when a block does not fit its checksum.
    pub fn get(&self, field: &str) -> Result<Value> {
        let schema = self.table.schema();
        let position = schema.expect_position(field)?;
        let missing = || Error::corrupt(format!("no field at position {position}"));
        self.read(schema.fields().get(position).ok_or_else(missing)?)
    }

    fn read(&self, field: &Field) -> Result<Value> {
        Ok(self.part.row_group().value(field, self.row, &Room::default())?.to_owned())
    }
}

impl fmt::Debug for Finder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finder").field("index", &self.index.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for FoundRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundRow").field("row", &self.row).finish_non_exhaustive()
    }
}
