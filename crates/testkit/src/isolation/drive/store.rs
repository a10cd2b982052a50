//! Lists and registers as rows, texts and entries of a database.
//!
//! | what | where |
//! |---|---|
//! | a register | a row `(id, space, value, stamp)` of one of four tables; their indexes differ |
//! | a list of row 3 n | a text of numbers |
//! | 3 n + 1 | rows `(list, place, value)` |
//! | 3 n + 2 | an entry of a bucket |
//!
//! An append reads the list first, and the history has that read: so the database cannot know that
//! it is an append, and has to refuse the second of two.

use esker::{
    DataType, Database, Error, ErrorKind, NewIndex, Result, Row, Schema, Transaction, Value,
    index_expression,
};
use esker_query::model::{Expr, Operator, OrderBy, Query};

use crate::isolation::{Cell, Condition, Key};

const TEXTS: &str = "texts";
const ITEMS: &str = "items";
const ENTRIES: &str = "entries";
/// The tables of registers.
const CELLS: [&str; 4] = ["cells_a", "cells_b", "cells_c", "cells_d"];

/// Makes the tables and the bucket, unless they are there.
pub(super) fn create(db: &Database) -> Result<()> {
    let new = |name: &str, schema: Schema| match db.table(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => db.create_table(name, schema).map(drop),
        other => other.map(drop),
    };
    let texts = Schema::builder().field("id", DataType::U64).field("list", DataType::Text);
    new(TEXTS, texts.primary_key(["id"]).build()?)?;
    let items = Schema::builder()
        .field("list", DataType::U64)
        .field("place", DataType::U64)
        .field("value", DataType::U64);
    new(ITEMS, items.primary_key(["list", "place"]).build()?)?;
    for (number, name) in (0..).zip(CELLS) {
        let cells = Schema::builder()
            .field("id", DataType::U64)
            .field("space", DataType::U64)
            .field("value", DataType::I64)
            .field("stamp", DataType::U64)
            .add_index(by_value(number)?);
        new(name, cells.primary_key(["id"]).build()?)?;
    }
    db.bucket(ENTRIES).map(drop)
}

/// An index that finds registers by their values: on fields, on something computed, or of a part
/// of the rows.
fn by_value(table: u64) -> Result<NewIndex> {
    let index = NewIndex::new("by_value", ["space", "value"]);
    let at_least = |field: &str, least: Value| {
        index_expression(&Expr::field(field).binary(Operator::Gte, Expr::literal(least)))
    };
    Ok(match table {
        COMPUTED => {
            let next = next_value();
            let written = next.to_string();
            NewIndex::new("by_value", ["space"]).expression(written, index_expression(&next)?)
        }
        2 => index.filter(at_least("value", Value::Int(0))?),
        3 => NewIndex::new("by_value", ["value"]).filter(at_least("space", Value::Uint(3))?),
        _ => index,
    })
}

/// The table whose index computes something of the value, by which it is asked for registers.
const COMPUTED: u64 = 1;

fn next_value() -> Expr {
    Expr::field("value").binary(Operator::Add, Expr::literal(1i64))
}

fn id(key: Key) -> u64 {
    u64::from(key.table) << 32 | u64::from(key.row)
}

fn cells(table: u32) -> &'static str {
    CELLS.get(table as usize % CELLS.len()).copied().unwrap_or(ENTRIES)
}

fn strange(value: Option<&Value>) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("read {value:?}"))
}

fn unsigned(value: Option<&Value>) -> Result<u64> {
    match value {
        Some(Value::Uint(n)) => Ok(*n),
        Some(Value::Int(n)) => Ok(n.cast_unsigned()),
        other => Err(strange(other)),
    }
}

fn signed(value: Option<&Value>) -> Result<i64> {
    unsigned(value).map(u64::cast_signed)
}

/// Numbers with commas between them.
fn parse(text: &str) -> Result<Vec<u64>> {
    let numbers = text.split(',').filter(|word| !word.is_empty());
    numbers
        .map(|word| word.parse().map_err(|_| strange(Some(&Value::Text(text.to_owned())))))
        .collect()
}

fn joined(values: &[u64], value: u64) -> String {
    values.iter().chain([&value]).map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// What a list holds.
pub(super) fn read_list(transaction: &Transaction, key: Key) -> Result<Vec<u64>> {
    let id = id(key);
    match key.row % 3 {
        0 => match transaction.table(TEXTS)?.get(&[Value::Uint(id)])? {
            Some(row) => match row.get("list") {
                Some(Value::Text(text)) => parse(text),
                other => Err(strange(other)),
            },
            None => Ok(Vec::new()),
        },
        1 => {
            let all = vec![Value::Uint(id), Value::Uint(0)]
                ..=vec![Value::Uint(id), Value::Uint(u64::MAX)];
            let rows = transaction.table(ITEMS)?.range(all)?;
            rows.map(|row| unsigned(row?.get("value"))).collect()
        }
        _ => match transaction.bucket(ENTRIES)?.get(id.to_le_bytes())? {
            Some(bytes) => match std::str::from_utf8(bytes.as_ref()) {
                Ok(text) => parse(text),
                Err(_) => Err(strange(None)),
            },
            None => Ok(Vec::new()),
        },
    }
}

/// A list that holds so much has one more value.
pub(super) fn append(transaction: &Transaction, key: Key, held: &[u64], value: u64) -> Result<()> {
    let id = id(key);
    match key.row % 3 {
        0 => {
            let row = [Value::Uint(id), Value::Text(joined(held, value))];
            transaction.table(TEXTS)?.upsert(&row).map(drop)
        }
        1 => {
            let row = [Value::Uint(id), Value::Uint(held.len() as u64), Value::Uint(value)];
            transaction.table(ITEMS)?.insert(&row).map(drop)
        }
        _ => transaction.bucket(ENTRIES)?.put(id.to_le_bytes(), joined(held, value)),
    }
}

/// What a register holds.
pub(super) fn read(transaction: &Transaction, key: Key) -> Result<Option<Cell>> {
    cell(transaction.table(cells(key.table))?.get(&[Value::Uint(id(key))])?)
}

/// The same, and nobody else may change it before the commit.
pub(super) fn hold(transaction: &Transaction, key: Key) -> Result<Option<Cell>> {
    cell(transaction.table(cells(key.table))?.get_for_update(&[Value::Uint(id(key))])?)
}

fn cell(row: Option<Row>) -> Result<Option<Cell>> {
    let Some(row) = row else { return Ok(None) };
    let (stamp, value) = (unsigned(row.get("stamp"))?, signed(row.get("value"))?);
    Ok(Some(Cell { stamp, value }))
}

/// A register holds something else.
pub(super) fn write(transaction: &Transaction, key: Key, cell: Cell) -> Result<()> {
    let row = [
        Value::Uint(id(key)),
        Value::Uint(u64::from(key.table)),
        Value::Int(cell.value),
        Value::Uint(cell.stamp),
    ];
    transaction.table(cells(key.table))?.upsert(&row).map(drop)
}

/// A register goes; whether it was there.
pub(super) fn delete(transaction: &Transaction, key: Key) -> Result<bool> {
    transaction.table(cells(key.table))?.delete(&[Value::Uint(id(key))])
}

/// The registers that meet a condition, by the index.
pub(super) fn look(transaction: &Transaction, asked: Condition) -> Result<Vec<(Key, Cell)>> {
    let mut query = Query::table(cells(asked.table));
    let space = Expr::field("space")
        .binary(Operator::Eq, Expr::literal(Value::Uint(u64::from(asked.table))));
    let is_computed = u64::from(asked.table) % CELLS.len() as u64 == COMPUTED;
    let (operand, more) = if is_computed { (next_value(), 1) } else { (Expr::field("value"), 0) };
    let [least, greatest] = [asked.least, asked.greatest]
        .map(|bound| Expr::literal(Value::Int(bound.saturating_add(more))));
    let within = Expr::Apply(Operator::Between, vec![operand, least, greatest]);
    query.filter = Some(space.and(within));
    for field in ["id", "value", "stamp"] {
        query.select(Expr::field(field));
    }
    query.order_by.push(OrderBy { expr: Expr::field("id"), descending: false, nulls_first: None });
    let mut found = Vec::new();
    for row in transaction.query(&query)?.to_rows() {
        let id = unsigned(row.first())?;
        let part = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
        let cell = Cell { value: signed(row.get(1))?, stamp: unsigned(row.get(2))? };
        found.push((Key::new(part(id >> 32), part(id)), cell));
    }
    Ok(found)
}
