//! What a database must hold: plain maps, changed one commit at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::{DataType, ErrorKind, NewIndex, Schema, Value, ValueRef};
use esker_vfs::sim::Generator;

use crate::schema::{FieldChange, ModelField, TableSchema};

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
    /// The fields and checks.
    pub schema: Arc<TableSchema>,
    /// The rows, by key.
    pub rows: BTreeMap<u64, ModelRow>,
}

/// A database after some commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The tables, by name.
    pub tables: BTreeMap<String, Arc<TableState>>,
}

/// The field with the serial number, in a row of any kind.
pub(crate) const SERIAL: &str = "serial";

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
        let builder =
            self.first_indexes().into_iter().fold(builder, |builder, new| builder.add_index(new));
        Ok(builder.build()?)
    }

    /// The indexes of a new table: values that no two rows have anyway, and some that are refused.
    fn first_indexes(self) -> Vec<NewIndex> {
        match self {
            Self::Text => vec![NewIndex::new("by_serial", [SERIAL]).unique()],
            Self::Composite => vec![NewIndex::new("by_amount", ["amount"]).unique()],
            Self::Integer | Self::Generated => Vec::new(),
        }
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

    /// What orders a declared key among others.
    #[must_use]
    pub fn place(self, ident: u64) -> (String, i64) {
        let mut place = (String::new(), 0);
        for value in self.key(ident) {
            match value {
                Value::Text(text) => place.0 = text,
                Value::Int(n) => place.1 = n,
                _ => {}
            }
        }
        place
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

    /// The fields of a table that has just been created.
    #[must_use]
    pub fn first_schema(self) -> TableSchema {
        use DataType as T;
        let fields = match self {
            Self::Text => vec![("k", T::Text), (SERIAL, T::U64)],
            Self::Composite => vec![(SERIAL, T::U64), ("a", T::Text), ("b", T::I16)],
            Self::Integer => vec![("id", T::I64), (SERIAL, T::U64)],
            Self::Generated => vec![("origin", T::U64), (SERIAL, T::U64)],
        };
        let fields = fields.into_iter().map(|(name, t)| ModelField::new(name, t, false));
        let other = [("note", T::Text), ("amount", T::I32)];
        let other = other.map(|(name, t)| ModelField::new(name, t, true));
        let (checks, indexes) = (Vec::new(), self.first_indexes());
        TableSchema { version: 0, fields: fields.chain(other).collect(), checks, indexes }
    }

    /// A row of a new table with this key, its other values drawn.
    #[must_use]
    pub fn row(self, ident: u64, serial: u64, generator: &mut Generator) -> NewRow {
        self.row_of(&self.first_schema(), ident, serial, generator)
    }

    /// A row with this key, its other values drawn so that they fit and meet the checks. A
    /// generated key has `ident == serial`.
    #[must_use]
    pub fn row_of(
        self,
        schema: &TableSchema,
        ident: u64,
        serial: u64,
        generator: &mut Generator,
    ) -> NewRow {
        let mut key = self.key(ident).into_iter();
        let mut next = || key.next().unwrap_or(Value::Null);
        let mut values = match self {
            Self::Text | Self::Integer => vec![next(), Value::Uint(serial)],
            Self::Composite => vec![Value::Uint(serial), next(), next()],
            Self::Generated => vec![Value::Uint(ident), Value::Uint(serial)],
        };
        let others = schema.fields.iter().skip(self.fixed_fields());
        values.extend(others.map(|field| field.draw(generator)));
        // Some rows are refused.
        if !generator.chance(30_000) {
            schema.meet_checks(&mut values, self.fixed_fields());
        }
        NewRow { ident, serial, values }
    }

    /// Changes for an update: the serial number always, another field sometimes.
    #[must_use]
    pub fn changes(
        self,
        schema: &TableSchema,
        serial: u64,
        generator: &mut Generator,
    ) -> Vec<(String, Value)> {
        let mut changes = vec![(SERIAL.to_owned(), Value::Uint(serial))];
        let others = schema.fields.iter().skip(self.fixed_fields());
        for field in others {
            if generator.chance(350_000) {
                changes.push((field.name.clone(), field.draw(generator)));
            }
        }
        changes
    }

    /// Where the serial number stands.
    #[must_use]
    pub fn serial_position(self) -> usize {
        usize::from(self != Self::Composite)
    }

    /// The fields of the key and the serial number: they stand first, and stay.
    #[must_use]
    pub fn fixed_fields(self) -> usize {
        2 + usize::from(self == Self::Composite)
    }

    /// Whether a field of the key stands there.
    #[must_use]
    pub fn is_key(self, position: usize) -> bool {
        match self {
            Self::Text | Self::Integer => position == 0,
            Self::Composite => position == 1 || position == 2,
            Self::Generated => false,
        }
    }
}

pub(crate) fn draw_note(generator: &mut Generator) -> Value {
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
    /// An empty table.
    #[must_use]
    pub fn new(kind: TableKind, incarnation: u64) -> Self {
        let (schema, rows) = (Arc::new(kind.first_schema()), BTreeMap::new());
        Self { kind, incarnation, schema, rows }
    }

    /// Whether no two rows have the same values in a unique index.
    #[must_use]
    pub fn has_unique_values(&self) -> bool {
        self.schema.has_unique_values(self.rows.values().map(|row| row.values.as_slice()))
    }

    /// Writes a row: a living row keeps the time of its birth.
    ///
    /// # Errors
    /// `InvalidInput` when it does not fit.
    pub fn put(&mut self, row: &NewRow) -> Result<(), ErrorKind> {
        let values = self.schema.fit(&row.values)?;
        self.put_fitted(row, values);
        Ok(())
    }

    pub(crate) fn put_fitted(&mut self, row: &NewRow, values: Vec<Value>) {
        match self.rows.get_mut(&row.ident) {
            Some(existing) => existing.values = values,
            None => {
                self.rows.insert(row.ident, ModelRow { born: row.serial, values });
            }
        }
    }

    /// Changes some fields of a row; false when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown field or one of the key, or a value that does not fit.
    pub fn update(&mut self, ident: u64, changes: &[(String, Value)]) -> Result<bool, ErrorKind> {
        let mut fitted = Vec::new();
        for (name, value) in changes {
            let position = self.schema.position(name)?;
            let field = self.schema.fields.get(position).ok_or(ErrorKind::InvalidInput)?;
            if self.kind.is_key(position) {
                return Err(ErrorKind::InvalidInput);
            }
            fitted.push((position, field.fit(value)?));
        }
        let Some(row) = self.rows.get_mut(&ident) else { return Ok(false) };
        let mut values = row.values.clone();
        for (position, value) in fitted {
            if let Some(slot) = values.get_mut(position) {
                *slot = value;
            }
        }
        self.schema.test(&values)?;
        row.values = values;
        Ok(true)
    }

    /// Gives a row the key of another one, which comes with it.
    ///
    /// # Errors
    /// `AlreadyExists` when a row has it; what the checks say.
    pub fn move_row(&mut self, ident: u64, to: &NewRow) -> Result<(), ErrorKind> {
        if ident == to.ident {
            return Ok(());
        }
        if self.rows.contains_key(&to.ident) {
            return Err(ErrorKind::AlreadyExists);
        }
        let Some(mut row) = self.rows.remove(&ident) else { return Ok(()) };
        let slots = row.values.iter_mut().enumerate().filter(|(at, _)| self.kind.is_key(*at));
        for ((_, slot), value) in slots.zip(self.kind.key(to.ident)) {
            *slot = value;
        }
        self.schema.test(&row.values)?;
        row.born = to.serial;
        self.rows.insert(to.ident, row);
        Ok(())
    }

    /// Changes the fields.
    ///
    /// # Errors
    /// What the engine says of a change that cannot be made: nothing has changed then.
    pub fn alter(&mut self, changes: &[FieldChange]) -> Result<(), ErrorKind> {
        let (mut schema, mut rows) = ((*self.schema).clone(), self.rows.clone());
        schema.alter(self.kind, changes, rows.values_mut().map(|row| &mut row.values))?;
        (self.schema, self.rows) = (Arc::new(schema), rows);
        Ok(())
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
                assert_eq!(values.get(kind.serial_position()), Some(&ValueRef::Uint(ident)));
                assert_eq!(values.len(), kind.schema().unwrap().fields().len());
                kind.first_schema().compare(&kind.schema().unwrap()).unwrap();
            }
        }
    }
}
