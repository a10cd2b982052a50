//! What a field gets in a row that is written without a value for it.

use std::sync::atomic::Ordering;

use esker_format::calendar::DAY_US;
use esker_format::schema::{Alteration, DefaultValue};
use esker_format::{Batch, Column, DataType, Field, Schema, Value};
use esker_query::model::Expr;
use esker_query::{ComputedDefault, Semantics};

use crate::catalog::new_fields::is_of_each_row;
use crate::commit::fit::fit_value;
use crate::engine::Engine;
use crate::{Error, QueryOptions, Result, Table};

/// Bits of the counter below the milliseconds of a UUID.
const COUNTER_BITS: u32 = 12;

/// An expression as a default that is evaluated for each row that is written without a value.
///
/// ```
/// use esker::{DataType, Options, Schema, Value};
/// use esker_query::model::{Expr, Function, Operator};
///
/// let tomorrow = Expr::Call(Function::CurrentDate, Vec::new());
/// let tomorrow = tomorrow.binary(Operator::Add, Expr::literal(1i64));
/// let schema = Schema::builder()
///     .field("task", DataType::Text)
///     .field("due", DataType::Date)
///     .default_value(esker::computed_default(&tomorrow)?)
///     .build()?;
/// let db = Options::new().memory()?;
/// let tasks = db.create_table("tasks", schema)?;
/// tasks.insert_fields(&[("task", "water the plants".into())])?;
/// let row = tasks.iter()?.next().expect("inserted above")?;
/// assert!(matches!(row.get("due"), Some(Value::Date(days)) if *days > 20_000));
/// # Ok::<(), esker::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` for an expression that reads fields, parameters or tables, or takes values of a
/// sequence ([`DefaultValue::NextValue`] does), and for one that nests too deep.
pub fn computed_default(expr: &Expr) -> Result<DefaultValue> {
    Ok(DefaultValue::Computed(ComputedDefault::encode(expr)?))
}

impl Engine {
    /// The value of a field in a new row that has none.
    pub fn default_of(&self, schema: &Schema, field: &Field) -> Result<Value> {
        Ok(match &field.default {
            None => Value::Null,
            Some(DefaultValue::Literal(value)) => value.clone(),
            Some(DefaultValue::Now) => time_as(self.now_of(schema, field), field.data_type),
            Some(DefaultValue::After(after_us)) => {
                Value::Timestamp(later(self.now_of(schema, field), *after_us))
            }
            Some(DefaultValue::Uuid) => Value::Uuid(self.new_uuid()),
            Some(DefaultValue::NextValue(sequence)) => {
                let value = self.next_for_row(sequence);
                Value::Int(value.map_err(|e| e.at(format_args!("field {:?}", field.name)))?)
            }
            Some(DefaultValue::Computed(stored)) => {
                let value = self.computed(stored, self.now_of(schema, field), field.data_type);
                value.map_err(|e| e.at(format_args!("field {:?}: default", field.name)))?
            }
        })
    }

    /// The value of the expression of a default, as its field takes it.
    fn computed(&self, stored: &str, now_us: i64, data_type: DataType) -> Result<Value> {
        let mut inputs = self.statement_options(&QueryOptions::default()).inputs;
        inputs.now_us = now_us;
        // What it gives does not depend on who writes the row.
        inputs.semantics = Semantics::postgres();
        let value = esker_query::constant(&ComputedDefault::decode(stored)?, &inputs)?;
        Ok(esker_query::assign(value, data_type)?)
    }

    /// What the wall clock of the machine shows, as a date, a time or a timestamp.
    pub fn wall_as(&self, data_type: DataType) -> Value {
        time_as(self.environment.clock.wall_us(), data_type)
    }

    /// The time that a default of a field takes: what decides when rows expire goes by what their
    /// expiry goes by, the time of an event by the date of the database, all else by the wall clock
    /// of the machine.
    fn now_of(&self, schema: &Schema, field: &Field) -> i64 {
        match schema.expiry_field() {
            Some(expiry) if expiry.id == field.id => self.now().of(schema),
            _ if schema.stream().is_some_and(|stream| stream.time == field.id) => {
                self.now().date_us
            }
            _ => self.environment.clock.wall_us(),
        }
    }

    /// A UUID, version 7 (RFC 9562): milliseconds, a counter in place of the 12 random bits after
    /// them so that the ones of a process rise, then 62 random bits.
    fn new_uuid(&self) -> [u8; 16] {
        let now_ms = self.environment.clock.wall_us().div_euclid(1_000).max(0).cast_unsigned();
        let next = |last: u64| (now_ms << COUNTER_BITS).max(last + 1);
        let last = self
            .last_uuid
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // default: the update never refuses
        let stamp = next(last.unwrap_or_default());
        let (ms, counter) = (stamp >> COUNTER_BITS, stamp & ((1 << COUNTER_BITS) - 1));
        let high = ms << 16 | 7 << 12 | counter;
        let low = 0b10 << 62 | self.environment.random.next_u64() >> 2;
        let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        bytes.reverse();
        bytes
    }

    /// A change with defaults as its field takes them, and with the value that older rows have for
    /// a new field: its default, where they have no other.
    pub fn with_values(&self, schema: &Schema, alteration: &Alteration) -> Result<Alteration> {
        Ok(match alteration {
            Alteration::AddField(field) => {
                let mut field = field.clone();
                let is_one = field.default.is_some() && !is_of_each_row(&field);
                if field.initial.is_null() && is_one {
                    field.initial = self.default_of(schema, &field)?;
                }
                Alteration::AddField(field)
            }
            Alteration::SetDefault { field, default: Some(DefaultValue::Literal(value)) } => {
                let position = schema.resolve(field)?;
                let data_type = schema.fields().get(position).map(|field| field.data_type);
                let value = match data_type {
                    Some(data_type) => esker_query::assign(value.clone(), data_type)?,
                    None => value.clone(),
                };
                let default = Some(DefaultValue::Literal(value));
                Alteration::SetDefault { field: field.clone(), default }
            }
            Alteration::SetDefault { field, default: Some(DefaultValue::Computed(stored)) } => {
                let position = schema.resolve(field)?;
                if let Some(field) = schema.fields().get(position) {
                    let value =
                        self.computed(stored, self.now_of(schema, field), field.data_type)?;
                    if !value.is_null() {
                        fit_value(field, &value)?;
                    }
                }
                alteration.clone()
            }
            other => other.clone(),
        })
    }

    /// Gives rows of a batch that are marked so the defaults of their fields.
    pub fn fill_batch(&self, schema: &Schema, batch: &mut Batch) -> Result<()> {
        for (field, column) in schema.fields().iter().zip(&mut batch.columns) {
            let marked = |marks: &Vec<u8>| marks.contains(&Column::DEFAULT_MARK);
            // What is wrong with a batch is found where it is used.
            let fits = column.data_type == field.data_type && field.default.is_some();
            if fits && column.nulls.as_ref().is_some_and(marked) {
                *column = self.filled(schema, field, column)?;
            }
        }
        Ok(())
    }

    fn filled(&self, schema: &Schema, field: &Field, column: &Column) -> Result<Column> {
        let mut filled = Column::empty(field.data_type);
        // default: without NULLs there are no marks
        let marks = column.nulls.as_deref().unwrap_or_default();
        for (row, mark) in marks.iter().enumerate() {
            if *mark == Column::DEFAULT_MARK {
                let value = fit_value(field, &self.default_of(schema, field)?)?;
                filled.push(value.as_ref())?;
            } else {
                filled.push(column.value(row))?;
            }
        }
        Ok(filled)
    }

    /// A row with values for some fields; the others have their defaults.
    pub fn fill_row(
        &self,
        schema: &Schema,
        values: impl IntoIterator<Item = (usize, Value)>,
    ) -> Result<Vec<Value>> {
        let mut given: Vec<Option<Value>> = vec![None; schema.fields().len()];
        for (position, value) in values {
            if let Some(slot) = given.get_mut(position) {
                *slot = Some(value);
            }
        }
        let fields = schema.fields().iter().zip(given);
        fields
            // default: what is not given is the default
            .map(|(field, value)| value.map_or_else(|| self.default_of(schema, field), Ok))
            .collect()
    }
}

impl Table {
    /// Adds a row by the names of its fields; those that are not named get their defaults.
    /// Returns its row id.
    ///
    /// ```
    /// use esker::{DataType, DefaultValue, Options, Schema, Value};
    ///
    /// let schema = Schema::builder()
    ///     .field("id", DataType::Uuid)
    ///     .default_value(DefaultValue::Uuid)
    ///     .field("name", DataType::Text)
    ///     .primary_key(["id"])
    ///     .build()?;
    /// let db = Options::new().memory()?;
    /// let users = db.create_table("users", schema)?;
    /// users.insert_fields(&[("name", "Ada".into())])?;
    /// users.insert_fields(&[("name", "Bob".into())])?;
    /// assert_eq!(users.count()?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::insert`]; `InvalidInput` for a field that is unknown or named twice.
    pub fn insert_fields(&self, values: &[(&str, Value)]) -> Result<u64> {
        self.attempt(|current| {
            let row = self.fill_fields(&current.schema, values)?;
            self.put_once(current, &row, true)
        })
    }

    /// A row from values for some fields, by name; the others have their defaults.
    ///
    /// # Errors
    /// `InvalidInput` for a field that is unknown or named twice.
    pub fn row_of_fields(&self, values: &[(&str, Value)]) -> Result<Vec<Value>> {
        self.fill_fields(&self.schema(), values)
    }

    /// Gives rows of a batch that say nothing about a field ([`Column::DEFAULT_MARK`]) its default;
    /// [`Load::push`](crate::Load::push) does so itself.
    ///
    /// # Errors
    /// `InvalidInput` for a default that does not fit, such as the value of a sequence that has
    /// come too far.
    pub fn fill_defaults(&self, batch: &mut Batch) -> Result<()> {
        self.engine.fill_batch(&self.schema(), batch)
    }

    fn fill_fields(&self, schema: &Schema, values: &[(&str, Value)]) -> Result<Vec<Value>> {
        let mut placed = Vec::with_capacity(values.len());
        for (name, value) in values {
            let position = schema.expect_position(name)?;
            if placed.iter().any(|(known, _)| *known == position) {
                return Err(Error::invalid(format!("field {name:?} is named twice")));
            }
            placed.push((position, value.clone()));
        }
        self.engine.fill_row(schema, placed)
    }

    /// What a field gets in a row that is written without a value for it, now: what
    /// [`Load`](crate::Load) and [`Appender`](crate::Appender), which take whole rows, leave to
    /// the caller. The value of a sequence is only for a row: see [`crate::Database::next_value`].
    ///
    /// # Errors
    /// As for [`crate::Database::next_value`].
    pub fn default_of(&self, field: &Field) -> Result<Value> {
        self.engine.default_of(&self.schema(), field)
    }
}

/// A time in microseconds as a date, a time or a timestamp.
fn time_as(now_us: i64, data_type: DataType) -> Value {
    match data_type {
        // default: a date beyond all that can be stored
        DataType::Date => Value::Date(i32::try_from(now_us.div_euclid(DAY_US)).unwrap_or(i32::MAX)),
        DataType::Time => Value::Time(now_us.rem_euclid(DAY_US)),
        _ => Value::Timestamp(now_us),
    }
}

/// The moment so many microseconds later; the last one there is when there is no such.
pub(crate) fn later(now_us: i64, after_us: u64) -> i64 {
    now_us.saturating_add_unsigned(after_us)
}
