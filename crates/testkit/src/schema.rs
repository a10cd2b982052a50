//! The fields, checks and indexes of a table in the model, and how they may change.
//!
//! The engine leaves rows as they are and explains older ones by older schemas. The model does the
//! plain thing: it rewrites every row, at once.

use std::sync::Arc;

use esker::{
    Alteration, Check, DataType, Decimal, DefaultValue, ErrorKind, Field, FieldId, Labels,
    ListElement, NewIndex, Schema, Value, ValueRef,
};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::Generator;

use crate::index;
use crate::model::{SERIAL, TableKind, draw_note};

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelField {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// What it is in rows that are written without it.
    pub default: Option<Value>,
}

/// A condition: a field that is NULL, or at least so much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCheck {
    /// Its name.
    pub name: String,
    /// The field, of integers.
    pub field: String,
    /// The least that it may be.
    pub least: i64,
}

/// The fields of a table after some commit.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    /// How often what a row is has been changed, and not only indexes.
    pub version: u64,
    /// The fields, those of the key and the serial number first.
    pub fields: Vec<ModelField>,
    /// The conditions.
    pub checks: Vec<ModelCheck>,
    /// The indexes, in the order in which they were created.
    pub indexes: Vec<NewIndex>,
}

/// A change of a table's fields.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldChange {
    /// A new last field, and what it is in the rows there are.
    Add(ModelField, Value),
    /// A field less.
    Drop(String),
    /// Another name.
    Rename(String, String),
    /// A wider type.
    Widen(String, DataType),
    /// The field may be NULL.
    DropNotNull(String),
    /// Another default, or none.
    SetDefault(String, Option<Value>),
    /// A condition more.
    AddCheck(ModelCheck),
    /// A condition less.
    DropCheck(String),
    /// An index more.
    AddIndex(NewIndex),
    /// An index less.
    DropIndex(String),
}

/// Names that fields come to have. Few, so that those of dropped fields come back.
const NAMES: [&str; 6] = ["note", "amount", "tint", "size", "mark", "weight"];
/// Fields that a table comes to have.
const FIELDS_MAX: usize = 9;

/// The labels of every enum.
const LABELS: [&str; 3] = ["red", "green", "dark red"];
/// Documents of every kind, some of them equal as numbers.
const DOCUMENTS: [&str; 7] =
    ["null", "true", "-1.50", "-1.5", r#""text""#, r#"[1,[],{"a":2}]"#, r#"{"a":{"b":"c"},"d":0}"#];

type Refused = ErrorKind;

impl ModelField {
    pub(crate) fn new(name: &str, data_type: DataType, nullable: bool) -> Self {
        Self { name: name.to_owned(), data_type, nullable, default: None }
    }

    /// The value as the field stores it.
    ///
    /// # Errors
    /// `InvalidInput` when it does not fit.
    pub fn fit(&self, value: &Value) -> Result<Value, Refused> {
        match self.to_field().coerce(value.as_ref()) {
            Ok(fitted) if self.nullable || *value != Value::Null => Ok(fitted.to_owned()),
            _ => Err(ErrorKind::InvalidInput),
        }
    }

    /// The field as the engine has it.
    #[must_use]
    pub fn to_field(&self) -> Field {
        let mut field = Field::new(FieldId(0), self.name.clone(), self.data_type, self.nullable);
        field.labels = self.labels();
        field.default = self.default.clone().map(DefaultValue::Literal);
        field
    }

    fn labels(&self) -> Option<Arc<Labels>> {
        let labels = (self.data_type == DataType::Enum).then(|| Labels::new(LABELS));
        labels?.ok().map(Arc::new)
    }

    /// A value that fits.
    #[must_use]
    pub fn draw(&self, generator: &mut Generator) -> Value {
        if self.nullable && generator.chance(200_000) {
            return Value::Null;
        }
        let most = match self.data_type {
            DataType::Text => return self.draw_text(generator),
            DataType::Enum => {
                let label = generator.pick(LABELS);
                let labels = self.labels();
                let value = labels.as_deref().and_then(|labels| labels.find(label));
                return value.map_or(Value::Null, ValueRef::to_owned);
            }
            DataType::Json => {
                return Value::json(generator.pick(DOCUMENTS)).unwrap_or_default();
            }
            DataType::List(element) => {
                let below = generator.pick([3, 300]);
                let count = generator.below(4);
                let items: Vec<_> = (0..count)
                    .map(|_| match generator.below(below) {
                        0 => Value::Null,
                        n => Value::Int(i64::try_from(n).unwrap_or_default()),
                    })
                    .collect();
                let list = Value::list(element, items.iter().map(Value::as_ref));
                return list.unwrap_or_default();
            }
            DataType::Decimal { precision, scale } => {
                let limit = 10u64.pow(u32::from(precision.min(18)));
                let below = generator.pick([2, 1_000, limit]);
                let mantissa = i128::from(generator.below(below)) - i128::from(below / 2);
                return Value::Decimal(Decimal::new(mantissa, scale).unwrap_or_default());
            }
            DataType::F32 => {
                let quarters = u16::try_from(generator.below(1_000)).unwrap_or_default();
                return Value::Float32(f32::from(quarters) / 4.0);
            }
            DataType::F64 => {
                let quarters = u32::try_from(generator.below(1 << 30)).unwrap_or_default();
                return Value::Float(f64::from(quarters) / 4.0);
            }
            DataType::U8 => return Value::Uint(generator.below(256)),
            DataType::U16 | DataType::U32 | DataType::U64 => {
                return Value::Uint(generator.below(60_000));
            }
            DataType::I16 => 60_000,
            // Few enough to come twice, sometimes.
            DataType::I32 => generator.pick([600, 100_000, 100_000]),
            _ => 1 << 40,
        };
        let value = i64::try_from(generator.below(most)).unwrap_or_default();
        Value::Int(value - i64::try_from(most / 2).unwrap_or_default())
    }

    fn draw_text(&self, generator: &mut Generator) -> Value {
        loop {
            let note = draw_note(generator);
            if self.nullable || note != Value::Null {
                return note;
            }
        }
    }

    fn is_integer(&self) -> bool {
        self.data_type.is_integer()
    }
}

impl ModelCheck {
    /// The condition as the engine has it.
    #[must_use]
    pub fn condition(&self) -> Expr {
        Expr::field(&self.field).binary(Operator::Gte, Expr::literal(self.least))
    }

    fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Int(n) => *n >= self.least,
            Value::Uint(n) => i64::try_from(*n).is_ok_and(|n| n >= self.least),
            _ => true,
        }
    }
}

impl FieldChange {
    /// The change as the engine takes it.
    ///
    /// # Errors
    /// None: the conditions are finite.
    pub fn to_alteration(&self) -> esker::Result<Alteration> {
        let literal = |value: &Value| DefaultValue::Literal(value.clone());
        Ok(match self.clone() {
            Self::Add(field, initial) => {
                Alteration::AddField(Field { initial, ..field.to_field() })
            }
            Self::Drop(name) => Alteration::DropField(name),
            Self::Rename(from, to) => Alteration::RenameField { from, to },
            Self::Widen(field, data_type) => {
                Alteration::Widen { field, data_type, length_max: None }
            }
            Self::DropNotNull(name) => Alteration::DropNotNull(name),
            Self::SetDefault(field, value) => {
                Alteration::SetDefault { field, default: value.as_ref().map(literal) }
            }
            Self::AddCheck(check) => {
                Alteration::AddCheck(esker::check(check.name.clone(), &check.condition())?)
            }
            Self::DropCheck(name) => Alteration::DropCheck(name),
            Self::AddIndex(index) => Alteration::AddIndex(index),
            Self::DropIndex(name) => Alteration::DropIndex(name),
        })
    }

    /// Draws changes that a table of this schema can take, usually.
    #[must_use]
    pub fn draw(kind: TableKind, schema: &TableSchema, generator: &mut Generator) -> Vec<Self> {
        if generator.chance(150_000) {
            return vec![Self::draw_check(schema, generator)];
        }
        if generator.chance(150_000) {
            let count = 1 + generator.index(2);
            return (0..count).map(|_| index::draw(schema, generator)).collect();
        }
        let count = 1 + generator.index(3);
        (0..count).map(|_| Self::draw_one(kind, schema, generator)).collect()
    }

    fn draw_check(schema: &TableSchema, generator: &mut Generator) -> Self {
        if let Some(check) = schema.checks.first().filter(|_| generator.chance(500_000)) {
            return Self::DropCheck(check.name.clone());
        }
        let integers: Vec<_> = schema.fields.iter().filter(|f| f.is_integer()).collect();
        let field = integers.get(generator.index(integers.len().max(1)));
        let field = field.map_or_else(String::new, |field| field.name.clone());
        let least = generator.pick([-50_000, -20_000, 0, 5]);
        let name = generator.pick(["enough", "large"]).to_owned();
        Self::AddCheck(ModelCheck { name, field, least })
    }

    fn draw_one(kind: TableKind, schema: &TableSchema, generator: &mut Generator) -> Self {
        let first = kind.fixed_fields();
        let fields = schema.fields.len();
        // The serial number keeps its name, by which everybody finds it.
        let any = schema.fields.get(generator.index(fields)).filter(|f| f.name != SERIAL);
        let other = first + generator.index(fields.saturating_sub(first).max(1));
        let other = schema.fields.get(other);
        let name = other.map_or_else(|| "note".to_owned(), |field| field.name.clone());
        match generator.below(100) {
            0..30 if fields < FIELDS_MAX => Self::draw_field(generator),
            0..50 => Self::Drop(name),
            50..65 => {
                let from = any.map_or(name, |field| field.name.clone());
                Self::Rename(from, generator.pick(NAMES).to_owned())
            }
            65..85 => Self::Widen(name, wider(other.map(|f| f.data_type), generator)),
            85..88 => index::draw(schema, generator),
            88..92 => Self::DropNotNull(name),
            _ => {
                let value = other.map(|field| field.draw(generator));
                let value = value.filter(|value| *value != Value::Null);
                Self::SetDefault(name, value.filter(|_| generator.chance(700_000)))
            }
        }
    }

    fn draw_field(generator: &mut Generator) -> Self {
        use DataType as T;
        let (short, long) =
            (T::Decimal { precision: 6, scale: 2 }, T::Decimal { precision: 20, scale: 4 });
        let list = T::List(ListElement::I16);
        let types = [T::Text, T::I16, T::I32, T::U8, T::F32, T::Enum, T::Json, short, long, list];
        let data_type = generator.pick(types);
        let mut field = ModelField::new(generator.pick(NAMES), data_type, true);
        let mut not_null = field.clone();
        not_null.nullable = false;
        field.nullable = generator.chance(500_000);
        if generator.chance(400_000) {
            field.default = Some(not_null.draw(generator));
        }
        // A field that may not be NULL has a value in older rows, or the change is refused.
        let initial = match generator.below(10) {
            0..6 => not_null.draw(generator),
            6..9 if !field.nullable && field.default.is_none() => not_null.draw(generator),
            _ => Value::Null,
        };
        Self::Add(field, initial)
    }
}

fn wider(data_type: Option<DataType>, generator: &mut Generator) -> DataType {
    use DataType as T;
    match data_type {
        Some(T::I16) => generator.pick([T::I32, T::I64]),
        Some(T::I32) => T::I64,
        Some(T::U8) => generator.pick([T::U16, T::U64, T::I32]),
        Some(T::U16) => generator.pick([T::U32, T::I64]),
        Some(T::F32) => T::F64,
        Some(T::Decimal { precision, scale }) => {
            T::Decimal { precision: (precision + generator.pick([1, 3, 12])).min(38), scale }
        }
        Some(same) => generator.pick([same, T::I64]),
        None => T::I64,
    }
}

impl TableSchema {
    /// The position of a field.
    ///
    /// # Errors
    /// `InvalidInput` when there is none of this name.
    pub fn position(&self, name: &str) -> Result<usize, Refused> {
        let found = self.fields.iter().position(|field| field.name == name);
        found.ok_or(ErrorKind::InvalidInput)
    }

    /// The name of a field.
    #[must_use]
    pub fn name(&self, position: usize) -> String {
        self.fields.get(position).map_or_else(String::new, |field| field.name.clone())
    }

    /// A row as it is stored.
    ///
    /// # Errors
    /// `InvalidInput` when a value does not fit, or a check does not hold.
    pub fn fit(&self, row: &[Value]) -> Result<Vec<Value>, Refused> {
        if row.len() != self.fields.len() {
            return Err(ErrorKind::InvalidInput);
        }
        let pairs = self.fields.iter().zip(row);
        let row: Vec<Value> =
            pairs.map(|(field, value)| field.fit(value)).collect::<Result<_, _>>()?;
        self.test(&row)?;
        Ok(row)
    }

    /// Whether every check holds.
    ///
    /// # Errors
    /// `InvalidInput` when one does not.
    pub fn test(&self, row: &[Value]) -> Result<(), Refused> {
        for check in &self.checks {
            let value = row.get(self.position(&check.field)?);
            if !value.is_some_and(|value| check.holds(value)) {
                return Err(ErrorKind::InvalidInput);
            }
        }
        Ok(())
    }

    /// Raises values to what the checks ask for, but those of the first `fixed` fields.
    pub fn meet_checks(&self, row: &mut [Value], fixed: usize) {
        for check in &self.checks {
            let position = self.position(&check.field).unwrap_or(usize::MAX);
            if let Some(value) = row.get_mut(position)
                && position >= fixed
                && !check.holds(value)
            {
                *value = match value {
                    Value::Uint(_) => Value::Uint(check.least.unsigned_abs()),
                    _ => Value::Int(check.least),
                };
            }
        }
    }

    /// Changes the fields, in one go, and `rows` with them.
    ///
    /// # Errors
    /// What the engine says of a change that cannot be made; nothing may be relied on then.
    pub fn alter<'a>(
        &mut self,
        kind: TableKind,
        changes: &[FieldChange],
        rows: impl Iterator<Item = &'a mut Vec<Value>>,
    ) -> Result<(), Refused> {
        let mut rows: Vec<&mut Vec<Value>> = rows.collect();
        self.alter_rows(kind, changes, &mut rows)?;
        // A field that every row has the same value of may be part of an index by now.
        let unique = self.has_unique_values(rows.iter().map(|row| row.as_slice()));
        if unique { Ok(()) } else { Err(ErrorKind::InvalidInput) }
    }

    /// The same, whatever values unique indexes have then.
    ///
    /// # Errors
    /// As for [`TableSchema::alter`].
    pub fn alter_rows(
        &mut self,
        kind: TableKind,
        changes: &[FieldChange],
        rows: &mut [&mut Vec<Value>],
    ) -> Result<(), Refused> {
        for change in changes {
            self.alter_one(kind, change, rows)?;
        }
        let about_indexes = |change: &FieldChange| match change {
            FieldChange::AddIndex(new) => !new.unique,
            FieldChange::DropIndex(_) => true,
            _ => false,
        };
        self.version += u64::from(!changes.iter().all(about_indexes));
        Ok(())
    }

    fn alter_one(
        &mut self,
        kind: TableKind,
        change: &FieldChange,
        rows: &mut [&mut Vec<Value>],
    ) -> Result<(), Refused> {
        const REFUSED: Result<(), Refused> = Err(ErrorKind::InvalidInput);
        match change {
            FieldChange::Add(field, initial) => {
                if self.position(&field.name).is_ok() {
                    return REFUSED;
                }
                let default = field.default.clone().filter(|_| *initial == Value::Null);
                let initial = field.fit(&default.unwrap_or_else(|| initial.clone()))?;
                rows.iter_mut().for_each(|row| row.push(initial.clone()));
                self.fields.push(field.clone());
            }
            FieldChange::Drop(name) => {
                let position = self.position(name)?;
                if kind.is_key(position) || self.checks.iter().any(|c| c.field == *name) {
                    return REFUSED;
                }
                self.fields.remove(position);
                rows.iter_mut().for_each(|row| drop(row.remove(position)));
                index::drop_field(&mut self.indexes, name);
            }
            FieldChange::Rename(from, to) => {
                if self.position(to).is_ok() {
                    return REFUSED;
                }
                self.field_mut(from)?.name.clone_from(to);
                let checks = self.checks.iter_mut().filter(|check| check.field == *from);
                checks.for_each(|check| check.field.clone_from(to));
                index::rename_field(&mut self.indexes, from, to);
            }
            FieldChange::Widen(name, data_type) => self.widen(kind, name, *data_type, rows)?,
            FieldChange::DropNotNull(name) => {
                if kind.is_key(self.position(name)?) {
                    return REFUSED;
                }
                self.field_mut(name)?.nullable = true;
            }
            FieldChange::SetDefault(name, value) => {
                let field = self.field_mut(name)?;
                field.default = value.as_ref().map(|value| field.fit(value)).transpose()?;
            }
            FieldChange::AddCheck(check) => {
                let position = self.position(&check.field)?;
                let is_integer = self.fields.get(position).is_some_and(ModelField::is_integer);
                let known = self.checks.iter().any(|other| other.name == check.name);
                let mut values = rows.iter().filter_map(|row| row.get(position));
                if known || !is_integer || !values.all(|value| check.holds(value)) {
                    return REFUSED;
                }
                self.checks.push(check.clone());
            }
            FieldChange::DropCheck(name) => {
                let at = self.checks.iter().position(|check| check.name == *name);
                self.checks.remove(at.ok_or(ErrorKind::InvalidInput)?);
            }
            FieldChange::AddIndex(index) => self.add_index(index)?,
            FieldChange::DropIndex(name) => self.drop_index(name)?,
        }
        Ok(())
    }

    fn widen(
        &mut self,
        kind: TableKind,
        name: &str,
        data_type: DataType,
        rows: &mut [&mut Vec<Value>],
    ) -> Result<(), Refused> {
        let position = self.position(name)?;
        let field = self.field_mut(name)?;
        if kind.is_key(position) || !field.data_type.widens_to(data_type) {
            return Err(ErrorKind::InvalidInput);
        }
        field.data_type = data_type;
        let field = field.clone();
        for value in rows.iter_mut().filter_map(|row| row.get_mut(position)) {
            *value = field.fit(value)?;
        }
        let default = field.default.as_ref().map(|value| field.fit(value));
        self.field_mut(name)?.default = default.transpose()?;
        Ok(())
    }

    fn field_mut(&mut self, name: &str) -> Result<&mut ModelField, Refused> {
        let found = self.fields.iter_mut().find(|field| field.name == name);
        found.ok_or(ErrorKind::InvalidInput)
    }

    /// Compares with the schema of a table.
    ///
    /// # Errors
    /// The difference.
    pub fn compare(&self, found: &Schema) -> Result<(), String> {
        let default = |field: &Field| match &field.default {
            Some(DefaultValue::Literal(value)) => Some(value.clone()),
            _ => None,
        };
        let fields: Vec<ModelField> = found
            .fields()
            .iter()
            .map(|field| ModelField {
                default: default(field),
                ..ModelField::new(&field.name, field.data_type, field.nullable)
            })
            .collect();
        for (field, found) in self.fields.iter().zip(found.fields()) {
            if field.labels() != found.labels {
                return Err(format!("labels {:?} of {:?}", found.labels, field.name));
            }
        }
        if self.fields != fields {
            return Err(format!("fields {fields:?}, expected {:?}", self.fields));
        }
        index::compare(&self.indexes, found)?;
        let check = |check: &ModelCheck| esker::check(&*check.name, &check.condition()).ok();
        let mut expected: Vec<Check> = self.checks.iter().filter_map(check).collect();
        let mut found = found.checks().to_vec();
        expected.sort_by(|a, b| a.name.cmp(&b.name));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        match expected == found {
            true => Ok(()),
            false => Err(format!("checks {found:?}, expected {expected:?}")),
        }
    }
}
