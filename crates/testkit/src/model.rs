//! What a database must hold: plain maps, changed one commit at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::{DataType, Schema, Value, ValueRef};
use esker_vfs::sim::Generator;

/// How the rows of a table are identified: one of each kind of key that the engine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// One text field.
    Text,
    /// A text and an integer field.
    Composite,
    /// One integer field.
    Integer,
    /// Given out by the database.
    Generated,
}

/// A row that an operation writes. `ident` names its key in the model.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRow {
    /// The key, as a number; for a generated key, the row's own serial number.
    pub ident: u64,
    /// A number that no other row written in this run has.
    pub serial: u64,
    /// The values, in the order of the schema's fields.
    pub values: Vec<Value>,
}

/// A living row.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    /// The serial number of the row when its key came to life: a row keeps its row id until then.
    pub born: u64,
    /// The values.
    pub values: Vec<Value>,
}

/// A table after some commit.
#[derive(Clone, Debug, PartialEq)]
pub struct TableState {
    /// Its kind of key.
    pub kind: TableKind,
    /// Tells tables of one name apart.
    pub incarnation: u64,
    /// The rows, by key.
    pub rows: BTreeMap<u64, ModelRow>,
}

/// A database after some commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The tables, by name.
    pub tables: BTreeMap<String, Arc<TableState>>,
}

/// Where the serial number stands in a row of any kind.
const SERIAL: &str = "serial";

impl TableKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Text, Self::Composite, Self::Integer, Self::Generated];

    /// The schema of a table of this kind.
    ///
    /// # Errors
    /// None: the names are fixed.
    pub fn schema(self) -> esker::Result<Schema> {
        let builder = Schema::builder();
        let builder = match self {
            Self::Text => builder.field("k", DataType::Text).field(SERIAL, DataType::U64),
            Self::Composite => builder
                .field(SERIAL, DataType::U64)
                .field("a", DataType::Text)
                .field("b", DataType::I16),
            Self::Integer => builder.field("id", DataType::I64).field(SERIAL, DataType::U64),
            Self::Generated => builder.field("origin", DataType::U64).field(SERIAL, DataType::U64),
        };
        let builder = builder.nullable("note", DataType::Text).nullable("amount", DataType::I32);
        let builder = match self {
            Self::Text => builder.primary_key(["k"]),
            Self::Composite => builder.primary_key(["a", "b"]),
            Self::Integer => builder.primary_key(["id"]),
            Self::Generated => builder,
        };
        Ok(builder.build()?)
    }

    /// The values of a declared key.
    #[must_use]
    pub fn key(self, ident: u64) -> Vec<Value> {
        let small = i64::try_from(ident).unwrap_or_default();
        match self {
            Self::Text if ident.is_multiple_of(5) => {
                let tail = usize::try_from(ident % 41).unwrap_or_default();
                vec![Value::Text(format!("k{ident}-{}", "é".repeat(tail)))]
            }
            Self::Text => vec![Value::Text(format!("k{ident}"))],
            Self::Composite => {
                vec![Value::Text(format!("g{}", ident % 7)), Value::Int(small / 7 - 3)]
            }
            Self::Integer => vec![Value::Int(small * 3 - 50)],
            Self::Generated => Vec::new(),
        }
    }

    /// The key in a row that was read, as a number.
    #[must_use]
    pub fn ident(self, values: &[ValueRef<'_>]) -> Option<u64> {
        match (self, values) {
            (Self::Text, [ValueRef::Text(key), ..]) => {
                let digits = key.strip_prefix('k')?;
                digits.split('-').next()?.parse().ok()
            }
            (Self::Composite, [_, ValueRef::Text(a), ValueRef::Int(b), ..]) => {
                let group: u64 = a.strip_prefix('g')?.parse().ok()?;
                Some(u64::try_from(b + 3).ok()? * 7 + group)
            }
            (Self::Integer, [ValueRef::Int(id), ..]) => u64::try_from((id + 50) / 3).ok(),
            (Self::Generated, [ValueRef::Uint(origin), ..]) => Some(*origin),
            _ => None,
        }
    }

    /// A row with this key, its other values drawn. A generated key has `ident == serial`.
    #[must_use]
    pub fn row(self, ident: u64, serial: u64, generator: &mut Generator) -> NewRow {
        let note = note(generator);
        let amount = match generator.below(5) {
            0 => Value::Null,
            1 => Value::Int(7),
            _ => Value::Int(i64::try_from(generator.below(100_000)).unwrap_or_default() - 50_000),
        };
        let mut key = self.key(ident).into_iter();
        let mut next = || key.next().unwrap_or(Value::Null);
        let mut values = match self {
            Self::Text | Self::Integer => vec![next(), Value::Uint(serial)],
            Self::Composite => vec![Value::Uint(serial), next(), next()],
            Self::Generated => vec![Value::Uint(ident), Value::Uint(serial)],
        };
        values.extend([note, amount]);
        NewRow { ident, serial, values }
    }

    /// Changes for an update: the serial number always, the others sometimes.
    #[must_use]
    pub fn changes(serial: u64, generator: &mut Generator) -> Vec<(&'static str, Value)> {
        let mut changes = vec![(SERIAL, Value::Uint(serial))];
        if generator.chance(500_000) {
            changes.push(("note", note(generator)));
        }
        if generator.chance(300_000) {
            changes.push(("amount", Value::Null));
        }
        changes
    }

    /// Where a field stands.
    #[must_use]
    pub fn position(self, field: &str) -> usize {
        let wide = usize::from(self == Self::Composite);
        match field {
            SERIAL => usize::from(self != Self::Composite),
            "note" => 2 + wide,
            _ => 3 + wide,
        }
    }
}

fn note(generator: &mut Generator) -> Value {
    let len = match generator.below(20) {
        0..4 => return Value::Null,
        4..9 => return Value::Text(generator.pick(["", "red", "green", "blue"]).to_owned()),
        19 => generator.index(1_500),
        _ => generator.index(24),
    };
    let letter = generator.pick(['a', 'b', 'ß', '\0']);
    Value::Text(letter.to_string().repeat(len))
}

impl State {
    /// A table of this state.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableState> {
        self.tables.get(name).map(Arc::as_ref)
    }

    /// The number of rows in all tables.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.tables.values().map(|table| table.rows.len()).sum()
    }

    pub(crate) fn table_mut(&mut self, name: &str) -> Option<&mut TableState> {
        self.tables.get_mut(name).map(Arc::make_mut)
    }
}

impl TableState {
    /// Writes a row: a living row keeps the time of its birth.
    pub(crate) fn put(&mut self, row: &NewRow) {
        let values = row.values.clone();
        match self.rows.get_mut(&row.ident) {
            Some(existing) => existing.values = values,
            None => {
                self.rows.insert(row.ident, ModelRow { born: row.serial, values });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_both_ways() {
        let mut generator = Generator::new(1, 1);
        for kind in TableKind::ALL {
            for ident in 0..100 {
                let row = kind.row(ident, ident, &mut generator);
                let values: Vec<_> = row.values.iter().map(Value::as_ref).collect();
                assert_eq!(kind.ident(&values), Some(ident), "{kind:?}");
                assert_eq!(values.get(kind.position(SERIAL)), Some(&ValueRef::Uint(ident)));
                assert_eq!(values.len(), kind.schema().unwrap().fields().len());
            }
        }
    }
}
