//! An update bound to a schema.

use esker_format::json::from_value;
use esker_format::{DataType, Field, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;

use super::path::Path;
use super::{Operand, Operator, Step, Update, json, typed};
use crate::commit::fit::{fit_value, has_key_field};
use crate::engine::Engine;
use crate::statement::fit_assigned;
use crate::{Error, Result};

/// An update that can be applied to rows of a schema.
pub(crate) struct Bound<'s> {
    steps: Vec<BoundStep<'s>>,
}

struct BoundStep<'s> {
    operator: Operator,
    /// As it was written, for errors.
    text: &'s str,
    path: Path,
    field: &'s Field,
    operand: BoundOperand,
}

enum BoundOperand {
    None,
    /// As the field takes it.
    Value(Value),
    /// A document.
    Json(Vec<u8>),
    /// A path inside the same field.
    Path(Vec<String>),
}

impl<'s> Bound<'s> {
    /// Binds an update.
    ///
    /// # Errors
    /// `InvalidInput` naming the operator and the path of what cannot be done with any row.
    pub fn new(schema: &'s Schema, update: &'s Update, engine: &Engine) -> Result<Self> {
        if update.is_empty() {
            return Err(Error::invalid("expected at least one operator, found none"));
        }
        let bind = |step| bind(schema, step, engine).map_err(|e| at(step, e));
        let steps = update.steps.iter().map(bind).collect::<Result<Vec<_>>>()?;
        expect_apart(&steps)?;
        Ok(Self { steps })
    }

    /// Whether it changes the key of rows.
    pub fn changes_key(&self, schema: &Schema) -> bool {
        has_key_field(schema, self.steps.iter().map(|step| step.path.position))
    }

    /// The row that comes of a row.
    ///
    /// # Errors
    /// `InvalidInput` naming the operator, the path, what was found there and what was expected.
    pub fn apply(&self, row: &[Value]) -> Result<Vec<Value>> {
        // The fields that change, and what they are then: a long value is not copied for it.
        let mut changed: Vec<(usize, Value)> = Vec::with_capacity(self.steps.len());
        let left_out = usize::from(Bug::OperatorsStopEarly.is_planted() && self.steps.len() > 1);
        for step in self.steps.iter().take(self.steps.len() - left_out) {
            let position = step.path.position;
            let at = changed.iter().position(|(other, _)| *other == position);
            let before = at.and_then(|at| changed.get(at)).map(|(_, value)| value);
            let Some(old) = before.or(row.get(position)) else { continue };
            let new = step.apply(old);
            let new = new.map_err(|e| e.at(format_args!("{} {:?}", step.operator, step.text)))?;
            match at.and_then(|at| changed.get_mut(at)) {
                Some((_, slot)) => *slot = new,
                None => changed.push((position, new)),
            }
        }
        let mut value = |(at, old): (usize, &Value)| {
            let new = changed.iter_mut().find(|(position, _)| *position == at);
            // default: what is not changed stays
            new.map_or_else(|| old.clone(), |(_, new)| std::mem::take(new))
        };
        Ok(row.iter().enumerate().map(&mut value).collect())
    }
}

fn at(step: &Step, e: Error) -> Error {
    e.at(format_args!("{} {:?}", step.operator, step.path))
}

fn bind<'s>(schema: &'s Schema, step: &'s Step, engine: &Engine) -> Result<BoundStep<'s>> {
    let path = Path::parse(schema, &step.path)?;
    let field = path.field(schema)?;
    field.refuse_given()?;
    schema.refuse_fixed(field)?;
    let operator = step.operator;
    if field.data_type != DataType::Json {
        typed::expect_defined(operator, field)?;
    }
    let operand = match operator.entry().operand {
        _ if operator == Operator::CurrentTime => current_time(field, engine)?,
        Operand::None => BoundOperand::None,
        Operand::Path => BoundOperand::Path(target(schema, &path, &step.operand)?),
        Operand::Number if !is_number(step.operand.as_ref()) => {
            let (kind, found) = (step.operand.as_ref().kind_name(), &step.operand);
            return Err(Error::invalid(format!("expected a number, found {kind} {found}")));
        }
        _ if field.data_type == DataType::Json => {
            let is_null = path.steps.is_empty() && operator == Operator::Set;
            match &step.operand {
                Value::Null if is_null => BoundOperand::Value(fit_value(field, &Value::Null)?),
                value => BoundOperand::Json(from_value(value.as_ref())?),
            }
        }
        Operand::Number => BoundOperand::Value(step.operand.clone()),
        Operand::Value => {
            let fitted = fit_assigned(schema, path.position, &step.operand)?;
            if fitted.is_null() && operator != Operator::Set {
                return Err(Error::invalid("expected a value, found null"));
            }
            BoundOperand::Value(fitted)
        }
    };
    Ok(BoundStep { operator, text: &step.path, path, field, operand })
}

fn is_number(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Decimal(_) => true,
        ValueRef::Float(v) => v.is_finite(),
        ValueRef::Float32(v) => v.is_finite(),
        _ => false,
    }
}

/// The time as the field takes it.
fn current_time(field: &Field, engine: &Engine) -> Result<BoundOperand> {
    match field.data_type {
        DataType::Timestamp | DataType::Date | DataType::Time => {
            Ok(BoundOperand::Value(engine.wall_as(field.data_type)))
        }
        DataType::Json => {
            let text = engine.wall_as(DataType::Timestamp).to_string();
            Ok(BoundOperand::Json(from_value(ValueRef::Text(&text))?))
        }
        _ => Ok(BoundOperand::None),
    }
}

/// Where a rename leads.
fn target(schema: &Schema, from: &Path, operand: &Value) -> Result<Vec<String>> {
    let Value::Text(text) = operand else {
        let kind = operand.as_ref().kind_name();
        return Err(Error::invalid(format!("expected a path as text, found {kind} {operand}")));
    };
    let to = Path::parse(schema, text).map_err(|e| e.at(format_args!("to {text:?}")))?;
    if to.position != from.position || to.steps.is_empty() || from.steps.is_empty() {
        let message = format!("expected a path inside the same json field, found {text:?}");
        return Err(Error::invalid(message));
    }
    Ok(to.steps)
}

/// Refuses two operators of which one works within what the other changes.
fn expect_apart(steps: &[BoundStep<'_>]) -> Result<()> {
    if let [only] = steps
        && !matches!(only.operand, BoundOperand::Path(_))
    {
        return Ok(());
    }
    let mut paths: Vec<(Path, &BoundStep<'_>)> = Vec::with_capacity(steps.len());
    for step in steps {
        paths.push((step.path.clone(), step));
        if let BoundOperand::Path(to) = &step.operand {
            let path = Path { position: step.path.position, steps: to.clone() };
            paths.push((path, step));
        }
    }
    paths.sort_by(|a, b| a.0.order().cmp(&b.0.order()));
    for pair in paths.windows(2) {
        if let [(a, first), (b, second)] = pair
            && a.holds(b)
        {
            return Err(Error::invalid(format!(
                "{} {:?} and {} {:?}: expected operators on different places",
                first.operator, first.text, second.operator, second.text
            )));
        }
    }
    Ok(())
}

impl BoundStep<'_> {
    /// The value of the field that comes of a value.
    fn apply(&self, old: &Value) -> Result<Value> {
        let new = match (&self.operand, self.operator) {
            (BoundOperand::Value(value), Operator::Set | Operator::CurrentTime) => {
                return Ok(value.clone());
            }
            (BoundOperand::Value(operand), operator) => {
                typed::apply(self.field, operator, old, operand)?
            }
            (BoundOperand::None, Operator::Unset) if self.path.steps.is_empty() => Value::Null,
            (BoundOperand::Json(operand), operator) => {
                json::apply(old, &self.path.steps, operator, operand)?
            }
            (BoundOperand::None, operator) => json::apply(old, &self.path.steps, operator, &[])?,
            (BoundOperand::Path(to), _) => json::rename(old, &self.path.steps, to)?,
        };
        match &new {
            // Made of a document, it is one: only its length is left to be looked at.
            Value::Json(document) => json::expect_length(self.field, document)?,
            value => return fit_value(self.field, value),
        }
        Ok(new)
    }
}
