//! Updates by operators: what they ask of the engine and, worked out in another way, what they do
//! to a row of the model.

use esker::operators::Operator;
use esker::{DataType, Decimal, ErrorKind, Update, Value};
use esker_vfs::sim::Generator;

use crate::model::{SERIAL, TableState};
use crate::schema::ModelField;

/// Operators on fields, each on another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Operators {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
struct Step {
    operator: Operator,
    field: String,
    operand: Value,
}

impl Operators {
    /// Draws operators that a table can take, usually: the serial number is always set.
    #[must_use]
    pub fn draw(table: &TableState, serial: u64, generator: &mut Generator) -> Self {
        let set = |field: &str, operand| Step {
            operator: Operator::Set,
            field: field.to_owned(),
            operand,
        };
        let mut steps = vec![set(SERIAL, Value::Uint(serial))];
        for field in table.schema.fields.iter().skip(table.kind.fixed_fields()) {
            if generator.chance(500_000) {
                let operator = draw_operator(field, generator);
                let operand = match operator {
                    Operator::Set => field.draw(generator),
                    Operator::Min | Operator::Max => not_null(field, generator),
                    Operator::Unset => Value::Null,
                    _ => Value::Int(i64::try_from(generator.below(9)).unwrap_or_default() - 3),
                };
                steps.push(Step { operand, operator, ..set(&field.name, Value::Null) });
            }
        }
        Self { steps }
    }

    /// The operators as the engine takes them.
    #[must_use]
    pub fn to_update(&self) -> Update {
        let add = |update: Update, step: &Step| {
            update.with(step.operator, step.field.clone(), step.operand.clone())
        };
        self.steps.iter().fold(Update::new(), add)
    }

    /// Does it to a row of the model; false when there is none.
    ///
    /// # Errors
    /// What the engine has to refuse it for: nothing has changed then.
    pub fn apply(&self, table: &mut TableState, ident: u64) -> Result<bool, ErrorKind> {
        let schema = std::sync::Arc::clone(&table.schema);
        let Some(row) = table.rows.get_mut(&ident) else { return Ok(false) };
        let mut values = row.values.clone();
        for step in &self.steps {
            let position = schema.position(&step.field)?;
            let field = schema.fields.get(position).ok_or(ErrorKind::InvalidInput)?;
            let slot = values.get_mut(position).ok_or(ErrorKind::InvalidInput)?;
            *slot = field.fit(&step.result(field, slot)?)?;
        }
        schema.test(&values)?;
        row.values = values;
        Ok(true)
    }
}

fn draw_operator(field: &ModelField, generator: &mut Generator) -> Operator {
    use Operator as O;
    match field.data_type {
        DataType::Json => generator.pick([O::Set, O::Unset, O::Push, O::Push]),
        DataType::Text | DataType::Enum | DataType::List(_) => generator.pick([O::Set, O::Unset]),
        DataType::F32 | DataType::F64 => generator.pick([O::Set, O::Unset, O::Increment]),
        _ => generator.pick([O::Set, O::Unset, O::Increment, O::Multiply, O::Min, O::Max]),
    }
}

fn not_null(field: &ModelField, generator: &mut Generator) -> Value {
    let field = ModelField { nullable: false, ..field.clone() };
    field.draw(generator)
}

impl Step {
    /// What comes of a value, not yet fitted to its field.
    fn result(&self, field: &ModelField, old: &Value) -> Result<Value, ErrorKind> {
        Ok(match self.operator {
            Operator::Push => return self.pushed(old),
            Operator::Increment | Operator::Multiply => return self.calculated(field, old),
            Operator::Min | Operator::Max => {
                let wants_less = self.operator == Operator::Min;
                let (new, there) = (number(&self.operand), number(old));
                match (new, there) {
                    (Some(new), Some(there)) if (new < there) != wants_less => old.clone(),
                    (Some(new), Some(there)) if new == there => old.clone(),
                    _ => self.operand.clone(),
                }
            }
            _ => self.operand.clone(),
        })
    }

    fn pushed(&self, old: &Value) -> Result<Value, ErrorKind> {
        let (text, new) = (old.to_string(), &self.operand);
        let array = match (old, text.strip_suffix(']')) {
            (Value::Null, _) => format!("[{new}]"),
            (_, Some("[")) => format!("[{new}]"),
            (_, Some(items)) if text.starts_with('[') => format!("{items},{new}]"),
            _ => return Err(ErrorKind::InvalidInput),
        };
        Value::json(&array).map_err(|_| ErrorKind::InvalidInput)
    }

    fn calculated(&self, field: &ModelField, old: &Value) -> Result<Value, ErrorKind> {
        let Value::Int(by) = self.operand else { return Err(ErrorKind::InvalidInput) };
        match old {
            // Quarters, of which a float holds every one that comes up.
            Value::Float(v) => return Ok(Value::Float(v + by as f64)),
            Value::Float32(v) => return Ok(Value::Float(f64::from(*v) + by as f64)),
            Value::Null if matches!(field.data_type, DataType::F32 | DataType::F64) => {
                return Ok(Value::Float(by as f64));
            }
            _ => {}
        }
        let old = if *old == Value::Null { (0, 0) } else { number_of(old)? };
        let (mantissa, scale) = old;
        let unit = 10i128.pow(u32::from(scale));
        let result = match self.operator {
            Operator::Increment => mantissa.checked_add(i128::from(by) * unit),
            _ => mantissa.checked_mul(by.into()),
        };
        let decimal = result.and_then(|result| Decimal::new(result, scale));
        let decimal = decimal.ok_or(ErrorKind::InvalidInput)?;
        if field.data_type.is_integer() {
            let whole = decimal.mantissa();
            return match (i64::try_from(whole), u64::try_from(whole)) {
                (Ok(whole), _) => Ok(Value::Int(whole)),
                (_, Ok(whole)) => Ok(Value::Uint(whole)),
                _ => Err(ErrorKind::InvalidInput),
            };
        }
        Ok(Value::Decimal(decimal))
    }
}

/// A whole number or a decimal, as a mantissa and its digits behind the point.
fn number_of(value: &Value) -> Result<(i128, u8), ErrorKind> {
    match value {
        Value::Int(v) => Ok((i128::from(*v), 0)),
        Value::Uint(v) => Ok((i128::from(*v), 0)),
        Value::Decimal(v) => Ok((v.mantissa(), v.scale())),
        _ => Err(ErrorKind::InvalidInput),
    }
}

/// The same with ten digits behind the point, to be compared.
fn number(value: &Value) -> Option<i128> {
    let (mantissa, scale) = number_of(value).ok()?;
    mantissa.checked_mul(10i128.pow(10u32.saturating_sub(scale.into())))
}
