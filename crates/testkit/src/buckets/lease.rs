//! A table whose rows expire by one of two fields, or by none for a while, with indexes and a JSON
//! field: its rows in the model, and every way of reading them.

use std::collections::BTreeMap;

use esker::{DataType, Database, NewIndex, Query, Row, Schema, SnapshotTable, Value};
use esker_query::model::{Aggregate, Expr, Operator};

use super::observe::Moment;
use crate::oracle::said;

/// The table.
pub(super) const LEASES: &str = "leases";
/// Keys of its rows.
pub(super) const IDS: u64 = 24;
/// Values of the field that is not unique.
pub(super) const SIZES: u64 = 5;

/// By which field the rows expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiresBy {
    /// As the table is made.
    #[default]
    Until,
    /// By the other field.
    Later,
    /// By none.
    Nothing,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// A number that many rows have.
    pub size: i64,
    /// A number that few rows have.
    pub tag: Option<i64>,
    /// A number within a document.
    pub inner: i64,
    /// When it expires by [`ExpiresBy::Until`], in microseconds since 1970; `None`: never.
    pub until_us: Option<i64>,
    /// The time by [`ExpiresBy::Later`].
    pub later_us: Option<i64>,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases {
    /// The rows by key; those that have expired stay here until something replaces them, or until
    /// rows expire by another field.
    pub rows: BTreeMap<i64, Lease>,
    /// By which field they expire.
    pub by: ExpiresBy,
}

/// The table's schema.
///
/// # Errors
/// None: the names are fixed.
pub(super) fn schema() -> esker::Result<Schema> {
    let fields = Schema::builder()
        .field("id", DataType::I64)
        .field("size", DataType::I64)
        .nullable("tag", DataType::I64)
        .nullable("doc", DataType::Json)
        .nullable("until", DataType::Timestamp)
        .nullable("later", DataType::Timestamp);
    let indexes = fields
        .add_index(NewIndex::new("by_size", ["size"]))
        .add_index(NewIndex::new("by_tag", ["tag", "size"]));
    Ok(indexes.primary_key(["id"]).expires_by("until").build()?)
}

impl ExpiresBy {
    /// The name of the field.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Until => Some("until"),
            Self::Later => Some("later"),
            Self::Nothing => None,
        }
    }
}

impl Leases {
    /// The row of a key at a time.
    #[must_use]
    pub fn get(&self, id: i64, now_us: i64) -> Option<&Lease> {
        self.rows.get(&id).filter(|lease| lease.is_there(self.by, now_us))
    }

    /// From a time on rows expire by another field: what has expired by then does not come back.
    pub fn expire_by(&mut self, by: ExpiresBy, now_us: i64) {
        self.rows.retain(|_, lease| lease.is_there(self.by, now_us));
        self.by = by;
    }

    /// What has expired by a date does not come back.
    pub fn end(&mut self, date_us: i64) {
        self.expire_by(self.by, date_us);
    }

    /// When rows end, or would if the other field told.
    pub fn ends(&self) -> impl Iterator<Item = i64> + '_ {
        self.rows.values().flat_map(|lease| [lease.until_us, lease.later_us]).flatten()
    }

    /// When rows end.
    pub fn ends_that_tell(&self) -> impl Iterator<Item = i64> + '_ {
        self.rows.values().filter_map(|lease| lease.end_us(self.by))
    }
}

impl Lease {
    /// When it ends, in microseconds since 1970; `None`: never.
    #[must_use]
    pub fn end_us(&self, by: ExpiresBy) -> Option<i64> {
        match by {
            ExpiresBy::Until => self.until_us,
            ExpiresBy::Later => self.later_us,
            ExpiresBy::Nothing => None,
        }
    }

    /// Whether it is there at a time.
    #[must_use]
    pub fn is_there(&self, by: ExpiresBy, now_us: i64) -> bool {
        self.end_us(by).is_none_or(|end_us| end_us > now_us)
    }

    /// The row as it is stored.
    ///
    /// # Errors
    /// None: the document is one.
    pub(super) fn values(&self, id: i64) -> esker::Result<Vec<Value>> {
        let tag = self.tag.map_or(Value::Null, Value::Int);
        let end = |us: Option<i64>| us.map_or(Value::Null, Value::Timestamp);
        let (until, later) = (end(self.until_us), end(self.later_us));
        let doc = Value::json(&format!("{{\"inner\":{}}}", self.inner))?;
        Ok(vec![Value::Int(id), Value::Int(self.size), tag, doc, until, later])
    }
}

fn id_of(values: &[Value]) -> Option<i64> {
    match values.first() {
        Some(Value::Int(id)) => Some(*id),
        _ => None,
    }
}

/// Rows that were read are those that must be there, and perhaps those that may.
pub(super) fn expect(
    found: &[Vec<Value>],
    expected: &Leases,
    moment: Moment,
) -> Result<(), String> {
    let mut by_id = BTreeMap::new();
    for row in found {
        if by_id.insert(id_of(row), row).is_some() {
            return Err(format!("{row:?} and another row of its key"));
        }
    }
    let is_there = |lease: &Lease, us| lease.is_there(expected.by, us);
    for (id, lease) in &expected.rows {
        let (must, may) = (is_there(lease, moment.high_us), is_there(lease, moment.now_us));
        let wanted = lease.values(*id).map_err(|e| said(&e))?;
        match by_id.remove(&Some(*id)) {
            None if must => return Err(format!("row {id} is not there: {lease:?}, {moment:?}")),
            Some(row) if !may => return Err(format!("{row:?} has expired: {lease:?}, {moment:?}")),
            Some(row) if *row != wanted => {
                return Err(format!("found {row:?}, expected {wanted:?}"));
            }
            _ => {}
        }
    }
    match by_id.pop_first() {
        Some((_, row)) => Err(format!("{row:?}, which was not put")),
        None => Ok(()),
    }
}

/// Rows expire by the field that they should: else two states look the same until then.
pub(super) fn expect_field(snapshot: &SnapshotTable, expected: &Leases) -> Result<(), String> {
    let found = snapshot.schema().expiry_field().map(|field| field.name.as_str());
    match expected.by.field() {
        wanted if found == wanted => Ok(()),
        wanted => Err(format!("rows expire by {found:?}, expected {wanted:?}")),
    }
}

/// Compares, in every way of reading; the rows that are there.
pub(super) fn compare(
    db: &Database,
    expected: &Leases,
    moment: Moment,
) -> Result<Vec<Vec<Value>>, String> {
    let table = db.table(LEASES).map_err(|e| said(&e))?;
    let snapshot = table.snapshot().map_err(|e| said(&e))?;
    expect_field(&snapshot, expected)?;
    let found = rows(&snapshot)?;
    expect(&found, expected, moment)?;
    let counted = table.count().map_err(|e| said(&e))?;
    if counted != found.len() as u64 {
        return Err(format!("counted {counted}, scanned {}", found.len()));
    }
    for id in expected.rows.keys() {
        let got = table.get(&[Value::Int(*id)]).map_err(|e| said(&e))?.map(Row::into_values);
        let scanned = found.iter().find(|row| id_of(row) == Some(*id));
        if got.as_ref() != scanned {
            return Err(format!("row {id}: got {got:?}, scanned {scanned:?}"));
        }
    }
    for size in 0..i64::try_from(SIZES).unwrap_or_default() {
        ask(db, &found, ("size", 1), Value::Int(size))?;
    }
    for tag in expected.rows.values().filter_map(|lease| lease.tag) {
        ask(db, &found, ("tag", 2), Value::Int(tag))?;
    }
    let mut query = Query::table(LEASES);
    query.select(Expr::count()).select(Expr::aggregate(Aggregate::Max, Expr::field("size")));
    let answer = db.query(&query).map_err(|e| said(&e))?.to_rows();
    let greatest = found.iter().filter_map(|row| row.get(1)).max_by_key(|value| match value {
        Value::Int(n) => *n,
        _ => i64::MIN,
    });
    let wanted = vec![Value::Uint(found.len() as u64), greatest.cloned().unwrap_or_default()];
    match answer.as_slice() == [wanted.clone()] {
        true => Ok(found),
        false => Err(format!("{query}: {answer:?}, expected {wanted:?}")),
    }
}

/// All rows, in the order of their keys.
pub(super) fn rows(snapshot: &SnapshotTable) -> Result<Vec<Vec<Value>>, String> {
    let rows = snapshot.rows().map_err(|e| said(&e))?;
    let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| id_of(row));
    Ok(rows)
}

/// An index finds the rows that a scan finds.
fn ask(
    db: &Database,
    found: &[Vec<Value>],
    (field, position): (&str, usize),
    value: Value,
) -> Result<(), String> {
    let mut query = Query::table(LEASES);
    query.filter = Some(Expr::field(field).binary(Operator::Eq, Expr::literal(value.clone())));
    let mut answer = db.query(&query).map_err(|e| said(&e))?.to_rows();
    answer.sort_by_key(|row| id_of(row));
    let wanted = found.iter().filter(|row| row.get(position) == Some(&value));
    match answer.iter().eq(wanted) {
        true => Ok(()),
        false => Err(format!("{query}: {answer:?}, scanned {found:?}")),
    }
}

/// The rows without those that had expired before a crash and are gone for good.
pub(super) fn without_dropped(leases: &mut Leases, found: &[Vec<Value>], moment: Moment) {
    let by = leases.by;
    leases.rows.retain(|id, lease| {
        !lease.is_there(by, moment.now_us) || found.iter().any(|row| id_of(row) == Some(*id))
    });
}
