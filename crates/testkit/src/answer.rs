//! What a read of a table answered, and whether that is right.

use esker::{Schema, Value};

use crate::model::TableState;

/// What a read found.
#[derive(Clone, Debug)]
pub enum Saw {
    /// All rows, with their row ids.
    Rows(Vec<(u64, Vec<Value>)>),
    /// The row of a key.
    Row(u64, Option<Vec<Value>>),
    /// The number of rows.
    Count(u64),
    /// All rows, without row ids.
    Answer(Vec<Vec<Value>>),
    /// The fields and checks.
    Schema(Box<Schema>),
    /// That there is no such table.
    Nothing,
}

impl Saw {
    /// Compares with the table that was read; `None` when there was none. Row ids are not looked
    /// at.
    ///
    /// # Errors
    /// The difference.
    pub fn compare(&self, table: Option<&TableState>) -> Result<(), String> {
        let Some(table) = table else {
            return match self {
                Self::Nothing => Ok(()),
                saw => Err(format!("{saw:?} in a table that did not exist then")),
            };
        };
        match self {
            Self::Nothing => Err("there was no such table".to_owned()),
            Self::Schema(schema) => table.schema.compare(schema),
            Self::Answer(rows) => compare_rows(rows.iter(), table),
            Self::Rows(rows) => compare_rows(rows.iter().map(|(_, row)| row), table),
            Self::Count(count) => {
                let want = table.rows.len() as u64;
                match *count == want {
                    true => Ok(()),
                    false => Err(format!("counted {count}, expected {want}")),
                }
            }
            Self::Row(ident, values) => {
                let want = table.rows.get(ident).map(|row| &row.values);
                match values.as_ref() == want {
                    true => Ok(()),
                    false => Err(format!("key {ident}: found {values:?}, expected {want:?}")),
                }
            }
        }
    }
}

fn compare_rows<'a>(
    rows: impl Iterator<Item = &'a Vec<Value>>,
    table: &TableState,
) -> Result<(), String> {
    let mut found: Vec<_> = rows.map(|row| (ident_of(table, row), row)).collect();
    found.sort_by_key(|(ident, _)| *ident);
    let expected = table.rows.iter().map(|(ident, row)| (Some(*ident), &row.values));
    match found.iter().copied().eq(expected) {
        true => Ok(()),
        false => Err(format!("answered {found:?}, expected {:?}", table.rows)),
    }
}

fn ident_of(table: &TableState, row: &[Value]) -> Option<u64> {
    let refs: Vec<_> = row.iter().map(Value::as_ref).collect();
    table.kind.ident(&refs)
}
