//! Rows in the order of the key: ranges, from either end.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use esker_format::{Moment, Room, Schema, Value, ValueRef};
use esker_table::key_order::{Direction, KeyBounds, KeyCursor, KeyForm, KeyRow};

use crate::commit::fit::fit_reference;
use crate::{Error, Result, Row, SnapshotTable};

/// The rows of a range of keys, by key, as of one commit. See [`SnapshotTable::range`].
///
/// Both ends can be taken from. An error ends the walk.
pub struct KeyRange {
    walk: KeyWalk,
    schema: Arc<Schema>,
}

/// The places of rows of a range of keys.
pub(crate) struct KeyWalk {
    rows: Arc<SnapshotTable>,
    form: Arc<KeyForm>,
    least: Bound<Vec<u8>>,
    greatest: Bound<Vec<u8>>,
    front: Option<KeyCursor>,
    back: Option<KeyCursor>,
    /// The rows that were given last, from the front and from the back: which part, which row.
    given: [Option<(usize, usize)>; 2],
    ended: bool,
}

impl SnapshotTable {
    /// The rows whose keys lie within bounds, in the order of the key. A bound has the values of
    /// the first fields of the key, or of all. Where rows lie as they came, and not in the order of
    /// the key ([`ordered_by_key`](esker_format::schema::SchemaBuilder::ordered_by_key)), the first
    /// walk sorts the keys of each segment, which takes four bytes a row from then on.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder()
    ///     .field("sensor", DataType::Text)
    ///     .field("hour", DataType::I32)
    ///     .primary_key(["sensor", "hour"])
    ///     .ordered_by_key()
    ///     .build()?;
    /// let table = db.create_table("readings", schema)?;
    /// for hour in [3i64, 1, 2] {
    ///     table.insert(&["roof".into(), hour.into()])?;
    ///     table.insert(&["cellar".into(), hour.into()])?;
    /// }
    /// let roof: Vec<Value> = vec!["roof".into()];
    /// let hours = table.snapshot()?.range(roof.clone()..=roof)?;
    /// let hours: Vec<_> = hours.map(|row| row.map(|row| row.get("hour").cloned())).collect();
    /// assert_eq!(hours.len(), 3);
    /// assert_eq!(hours[0].as_ref().ok(), Some(&Some(1i64.into())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a table with a generated key, and for bounds that do not fit the key;
    /// `Corrupt` when a block does not fit its checksum.
    pub fn range<R: RangeBounds<Vec<Value>>>(self, bounds: R) -> Result<KeyRange> {
        let schema = Arc::clone(self.schema());
        if schema.key_positions().is_empty() {
            return Err(Error::invalid("ranges: expected a table with key fields"));
        }
        let form = Arc::new(KeyForm::of(&schema));
        let least = key_bound(&schema, &form, bounds.start_bound(), true)?;
        let greatest = key_bound(&schema, &form, bounds.end_bound(), false)?;
        Ok(KeyRange { walk: KeyWalk::new(Arc::new(self), form, least, greatest), schema })
    }
}

/// A bound as bytes. One of the first fields only stands for all keys that begin with them.
fn key_bound(
    schema: &Schema,
    form: &KeyForm,
    bound: Bound<&Vec<Value>>,
    is_least: bool,
) -> Result<Bound<Vec<u8>>> {
    let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return Ok(Bound::Unbounded) };
    let fields: Vec<_> = schema.key_fields().collect();
    if key.is_empty() || key.len() > fields.len() {
        let (most, found) = (fields.len(), key.len());
        let message = format!("a bound of a key: expected 1 to {most} values, found {found}");
        return Err(Error::invalid(message));
    }
    let pairs = fields.iter().zip(key);
    let fitted = pairs.map(|(field, value)| fit_reference(field, value.as_ref()));
    let fitted: Vec<ValueRef<'_>> = fitted.collect::<Result<_>>()?;
    let bytes = form.encode(&fitted);
    let is_included = matches!(bound, Bound::Included(_));
    if key.len() == fields.len() {
        return Ok(if is_included { Bound::Included(bytes) } else { Bound::Excluded(bytes) });
    }
    // Keys that begin with the bytes are included at the lower end, or all excluded.
    Ok(match is_included == is_least {
        true if is_least => Bound::Included(bytes),
        true => Bound::Excluded(bytes),
        // default: a prefix of greatest bytes has no end
        false => prefix_end(bytes).map_or(Bound::Unbounded, |end| match is_least {
            true => Bound::Included(end),
            false => Bound::Excluded(end),
        }),
    })
}

/// The least byte string above all that begin with a prefix; `None` when there is none.
pub(crate) fn prefix_end(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl KeyWalk {
    /// The moment as of which it reads.
    pub(crate) fn moment(&self) -> Moment {
        self.rows.moment()
    }

    pub fn new(
        rows: Arc<SnapshotTable>,
        form: Arc<KeyForm>,
        least: Bound<Vec<u8>>,
        greatest: Bound<Vec<u8>>,
    ) -> Self {
        let (front, back, given) = (None, None, [None, None]);
        Self { rows, form, least, greatest, front, back, given, ended: false }
    }

    /// The same walk once more, from the beginning.
    pub fn anew(&self) -> Self {
        let (rows, form) = (Arc::clone(&self.rows), Arc::clone(&self.form));
        Self::new(rows, form, self.least.clone(), self.greatest.clone())
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &Arc<Schema> {
        self.rows.schema()
    }

    /// In how many sorted sequences of rows it looks.
    pub fn source_count(&self) -> Result<usize> {
        let (rows, bounds) = (self.rows.rows_as_of(), self.bounds());
        Ok(KeyCursor::new(rows, &self.form, bounds, Direction::Up)?.source_count())
    }

    /// Gives nothing any more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    fn bounds(&self) -> KeyBounds<'_> {
        (as_slice(&self.least), as_slice(&self.greatest))
    }

    /// The next row from one end, unless the other end has given it.
    pub fn step(&mut self, direction: Direction) -> Result<Option<KeyRow>> {
        if self.ended {
            return Ok(None);
        }
        let outcome = self.take(direction);
        self.ended = !matches!(outcome, Ok(Some(_)));
        outcome
    }

    fn take(&mut self, direction: Direction) -> Result<Option<KeyRow>> {
        let is_front = direction == Direction::Up;
        let cursor = if is_front { &self.front } else { &self.back };
        if cursor.is_none() {
            let bounds = self.bounds();
            let new = KeyCursor::new(self.rows.rows_as_of(), &self.form, bounds, direction)?;
            let slot = if is_front { &mut self.front } else { &mut self.back };
            *slot = Some(new);
        }
        let cursor = if is_front { &mut self.front } else { &mut self.back };
        let Some(cursor) = cursor else { return Ok(None) };
        let Some(found) = cursor.next()? else { return Ok(None) };
        let [front, back] = &mut self.given;
        let other = if is_front { &*back } else { &*front };
        let parts = self.rows.rows_as_of().parts();
        if let Some((part, row)) = other {
            let (mut key, mut end) = (Vec::new(), Vec::new());
            self.form.read(found.part.row_group(), found.row, &mut key)?;
            let missing = || Error::invalid("a walk has lost the row that it gave last");
            let part = parts.get(*part).ok_or_else(missing)?;
            self.form.read(part.row_group(), *row, &mut end)?;
            if if is_front { key >= end } else { key <= end } {
                return Ok(None);
            }
        }
        let part = parts.iter().position(|part| Arc::ptr_eq(part, &found.part));
        *(if is_front { front } else { back }) = part.map(|part| (part, found.row));
        Ok(Some(found))
    }
}

impl KeyRange {
    fn row(&self, found: &KeyRow) -> Result<Row> {
        let row_group = found.part.row_group();
        let values = self.schema.fields().iter();
        let room = Room::default();
        let values = values.map(|field| Ok(row_group.value(field, found.row, &room)?.to_owned()));
        Ok(Row::new(Arc::clone(&self.schema), values.collect::<Result<_>>()?))
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Row>> {
        match self.walk.step(direction) {
            Ok(None) => None,
            Ok(Some(found)) => {
                let row = self.row(&found);
                if row.is_err() {
                    self.walk.end();
                }
                Some(row)
            }
            Err(e) => Some(Err(e)),
        }
    }
}

impl Iterator for KeyRange {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.step(Direction::Up)
    }
}

impl DoubleEndedIterator for KeyRange {
    fn next_back(&mut self) -> Option<Result<Row>> {
        self.step(Direction::Down)
    }
}
