//! Statements that change several rows: what they ask of the engine, and what they do to the model.

use std::collections::BTreeSet;

use esker::{ErrorKind, Value};
use esker_query::model::{
    Change, ConflictUpdate, Delete, Expr, Insert, InsertRows, OnConflict, Operator, Update,
};
use esker_vfs::sim::Generator;

use crate::model::{ModelRow, NewRow, SERIAL, TableKind, TableState};
use crate::schema::TableSchema;

/// A statement on one table.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// New rows, with values for some fields only.
    Insert {
        /// The rows, with a value for every field.
        rows: Vec<NewRow>,
        /// The fields that are named; the others have their defaults.
        fields: Vec<String>,
        /// What happens to a row whose key exists.
        on_conflict: Conflict,
    },
    /// New values in the rows that match.
    Update {
        /// Fields and values.
        set: Vec<(String, Value)>,
        /// The rows.
        condition: Condition,
    },
    /// The row with a serial number gets another key.
    Move {
        /// The row.
        serial: u64,
        /// Its new key, and when it is born under that.
        to: NewRow,
        /// The kind of the table, which says which fields are the key.
        kind: TableKind,
    },
    /// The rows that match go.
    Delete {
        /// The rows.
        condition: Condition,
    },
}

/// What happens to a new row whose key exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Conflict {
    /// The statement fails.
    Fail,
    /// The row is left out.
    Skip,
    /// The row replaces the old one.
    Replace,
    /// Fields of the old row are set to those of the new one, if the old one matches.
    Update(Vec<String>, Condition),
}

/// A field of numbers is less than so much; of NULL this is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The field.
    pub field: String,
    /// What it has to be below.
    pub below: u64,
}

impl Condition {
    fn expr(&self) -> Expr {
        Expr::field(&self.field).binary(Operator::Lt, Expr::literal(Value::Uint(self.below)))
    }

    fn holds(&self, schema: &TableSchema, row: &[Value]) -> Result<bool, ErrorKind> {
        let value = row.get(schema.position(&self.field)?);
        Ok(matches!(value, Some(Value::Uint(n)) if *n < self.below))
    }

    /// Some of the rows, the older ones.
    fn draw(table: &TableState, generator: &mut Generator) -> Self {
        let position = table.kind.serial_position();
        let serials = table.rows.values().filter_map(|row| match row.values.get(position) {
            Some(Value::Uint(serial)) => Some(*serial),
            _ => None,
        });
        let mut serials: Vec<u64> = serials.collect();
        serials.sort_unstable();
        let some = serials.get(generator.index(serials.len().clamp(1, 6)));
        Self { field: SERIAL.to_owned(), below: some.map_or(1, |serial| serial + 1) }
    }
}

impl Statement {
    /// Draws a statement that a table can take, usually. `row` draws rows.
    pub fn draw(
        table: &TableState,
        generator: &mut Generator,
        mut row: impl FnMut(&mut Generator) -> NewRow,
    ) -> Self {
        let first = table.kind.fixed_fields();
        match generator.below(10) {
            0..6 => {
                let rows = (0..1 + generator.below(5)).map(|_| row(generator)).collect();
                let mut fields = Vec::new();
                for (position, field) in table.schema.fields.iter().enumerate() {
                    let needed = position < first || !(field.nullable || field.default.is_some());
                    if needed || generator.chance(600_000) {
                        fields.push(field.name.clone());
                    }
                }
                let on_conflict = Conflict::draw(table, &fields, generator);
                Self::Insert { rows, fields, on_conflict }
            }
            6..8 => {
                let fields = &table.schema.fields;
                let some = fields.iter().skip(first).filter(|_| generator.chance(400_000));
                let fields: Vec<_> = some.cloned().collect();
                let set = fields.iter().map(|field| (field.name.clone(), field.draw(generator)));
                let set: Vec<_> = set.collect();
                let condition = Condition::draw(table, generator);
                match set.is_empty() {
                    true => Self::Delete { condition },
                    false => Self::Update { set, condition },
                }
            }
            8 if table.kind != TableKind::Generated && !table.rows.is_empty() => {
                let at = generator.index(table.rows.len());
                let serial = table.rows.values().nth(at).and_then(|row| serial_of(table, row));
                let to = row(generator);
                match serial {
                    Some(serial) => Self::Move { serial, to, kind: table.kind },
                    None => Self::Delete { condition: Condition::draw(table, generator) },
                }
            }
            _ => Self::Delete { condition: Condition::draw(table, generator) },
        }
    }

    /// The keys that it may write; `None` for any there are.
    #[must_use]
    pub fn idents(&self) -> Option<Vec<u64>> {
        match self {
            Self::Insert { rows, .. } => Some(rows.iter().map(|row| row.ident).collect()),
            Self::Update { .. } | Self::Move { .. } | Self::Delete { .. } => None,
        }
    }

    /// The statement as the engine takes it. Rows have the fields of a schema.
    #[must_use]
    pub fn to_change(&self, table: &str, schema: &TableSchema) -> Change {
        let table = table.to_owned();
        match self {
            Self::Insert { rows, fields, on_conflict } => {
                let value = |row: &NewRow, name: &String| {
                    let value = schema.position(name).ok().and_then(|p| row.values.get(p));
                    Expr::Literal(value.cloned().unwrap_or(Value::Null))
                };
                let row = |row| fields.iter().map(|name| value(row, name)).collect();
                let rows = InsertRows::Values(rows.iter().map(row).collect());
                let insert = Insert::values(table, Vec::new());
                let on_conflict = on_conflict.to_engine();
                Change::Insert(Insert { rows, fields: fields.clone(), on_conflict, ..insert })
            }
            Self::Update { set, condition } => {
                let literal =
                    |(name, value): &(String, Value)| (name.clone(), Expr::Literal(value.clone()));
                let (set, filter) = (set.iter().map(literal).collect(), Some(condition.expr()));
                Change::Update(Update { table, set, filter, ..Update::default() })
            }
            Self::Move { serial, to, kind } => {
                let key = schema.fields.iter().enumerate().filter(|(at, _)| kind.is_key(*at));
                let values = kind.key(to.ident).into_iter().map(Expr::Literal);
                let set = key.map(|(_, field)| field.name.clone()).zip(values).collect();
                let is = Expr::field(SERIAL).binary(Operator::Eq, Expr::literal(*serial));
                let filter = Some(is);
                Change::Update(Update { table, set, filter, ..Update::default() })
            }
            Self::Delete { condition } => {
                let filter = Some(condition.expr());
                Change::Delete(Delete { table, filter, ..Delete::default() })
            }
        }
    }

    /// Does it to a table of the model: how many rows it adds, changes or removes. Rows are of
    /// the schema that the table had when they were drawn.
    ///
    /// # Errors
    /// What the engine has to refuse it for; nothing may be relied on then.
    pub fn apply(&self, table: &mut TableState, drawn: &TableSchema) -> Result<u64, ErrorKind> {
        match self {
            Self::Insert { rows, fields, on_conflict } => {
                insert(table, drawn, rows, fields, on_conflict)
            }
            Self::Update { set, condition } => {
                table.schema.position(&condition.field)?;
                for (name, _) in set {
                    table.schema.position(name)?;
                }
                let matching = matching(table, condition)?;
                for ident in &matching {
                    table.update(*ident, set)?;
                }
                Ok(matching.len() as u64)
            }
            Self::Move { serial, to, .. } => {
                let is = |(_, row): &(&u64, &ModelRow)| serial_of(table, row) == Some(*serial);
                let Some(ident) = table.rows.iter().find(is).map(|(ident, _)| *ident) else {
                    return Ok(0);
                };
                table.move_row(ident, to)?;
                Ok(1)
            }
            Self::Delete { condition } => {
                let matching = matching(table, condition)?;
                table.rows.retain(|ident, _| !matching.contains(ident));
                Ok(matching.len() as u64)
            }
        }
    }
}

impl Conflict {
    fn draw(table: &TableState, fields: &[String], generator: &mut Generator) -> Self {
        match generator.below(4) {
            0 => Self::Fail,
            1 => Self::Skip,
            2 => Self::Replace,
            _ => {
                let is_key = |name: &&String| {
                    table.schema.position(name).is_ok_and(|p| table.kind.is_key(p))
                };
                let set = fields.iter().filter(|name| !is_key(name)).cloned().collect();
                Self::Update(set, Condition::draw(table, generator))
            }
        }
    }

    fn to_engine(&self) -> OnConflict {
        match self {
            Self::Fail => OnConflict::Fail,
            Self::Skip => OnConflict::Skip,
            Self::Replace => OnConflict::Replace,
            Self::Update(set, condition) => {
                let excluded =
                    |name: &String| (name.clone(), Expr::field(format!("excluded.{name}")));
                let (set, filter) = (set.iter().map(excluded).collect(), Some(condition.expr()));
                OnConflict::Update(ConflictUpdate { set, filter })
            }
        }
    }
}

/// The serial number of a row.
fn serial_of(table: &TableState, row: &ModelRow) -> Option<u64> {
    match row.values.get(table.kind.serial_position()) {
        Some(Value::Uint(serial)) => Some(*serial),
        _ => None,
    }
}

fn matching(table: &TableState, condition: &Condition) -> Result<BTreeSet<u64>, ErrorKind> {
    table.schema.position(&condition.field)?;
    let mut found = BTreeSet::new();
    for (ident, row) in &table.rows {
        if condition.holds(&table.schema, &row.values)? {
            found.insert(*ident);
        }
    }
    Ok(found)
}

fn insert(
    table: &mut TableState,
    drawn: &TableSchema,
    rows: &[NewRow],
    fields: &[String],
    on_conflict: &Conflict,
) -> Result<u64, ErrorKind> {
    let schema = std::sync::Arc::clone(&table.schema);
    let mut placed = Vec::new();
    for row in rows {
        let defaults = schema.fields.iter().map(|f| f.default.clone().unwrap_or(Value::Null));
        let mut values: Vec<Value> = defaults.collect();
        for name in fields {
            let value = drawn.position(name).ok().and_then(|p| row.values.get(p));
            if let Some(slot) = values.get_mut(schema.position(name)?) {
                *slot = value.cloned().unwrap_or(Value::Null);
            }
        }
        placed.push((row, schema.fit(&values)?));
    }
    let mut count = 0;
    for (row, values) in placed {
        let old = table.rows.get(&row.ident).filter(|_| table.kind != TableKind::Generated);
        let has_values = |other: &ModelRow| schema.has_values_of(&values, &other.values);
        if *on_conflict == Conflict::Skip && table.rows.values().any(has_values) {
            continue;
        }
        let values = match (old, on_conflict) {
            (None, _) | (Some(_), Conflict::Replace) => values,
            (Some(_), Conflict::Fail) => return Err(ErrorKind::AlreadyExists),
            (Some(_), Conflict::Skip) => continue,
            (Some(old), Conflict::Update(set, condition)) => {
                if !condition.holds(&schema, &old.values)? {
                    continue;
                }
                let mut changed = old.values.clone();
                for name in set {
                    let position = schema.position(name)?;
                    let new = values.get(position).cloned().unwrap_or(Value::Null);
                    if let Some(slot) = changed.get_mut(position) {
                        *slot = new;
                    }
                }
                schema.fit(&changed)?
            }
        };
        table.put_fitted(row, values);
        count += 1;
    }
    Ok(count)
}
