//! Scalar functions over vectors. What each means is in the table of [`Function`]s.

mod json;
mod json_edit;
mod moment;
mod number;
mod rounding;
mod text;

use esker_format::{DataType, Value};

pub(crate) use moment::Unit;
pub(super) use text::concat_pair;

use super::{choose, evaluate};
use crate::bind::{Bound, Comparison};
use crate::exec::rows::Rows;
use crate::exec::vector::{Lanes, Selection, Vector};
use crate::model::Function;
use crate::{Error, Result};

/// Computes a call.
pub(super) fn call<'a>(
    function: Function,
    operands: &'a [Bound],
    data_type: DataType,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    use Function as F;
    if function == F::Coalesce {
        return choose::coalesce(operands, data_type, rows, selection);
    }
    let unit = match operands.first().and_then(Bound::as_literal) {
        Some(Value::Text(unit)) => Unit::from_name(unit),
        _ => None,
    };
    let vectors = operands.iter().map(|operand| evaluate(operand, rows, selection));
    let call = Call { function, vectors: vectors.collect::<Result<Vec<_>>>()?, data_type };
    match function {
        F::Greatest => Ok(choose::extreme(&call.vectors, Comparison::Gt, data_type)),
        F::Least => Ok(choose::extreme(&call.vectors, Comparison::Lt, data_type)),
        F::Abs | F::Sign | F::Round | F::Floor | F::Ceil | F::Power | F::Sqrt => {
            number::call(&call)
        }
        F::DatePart | F::DateTrunc => match unit {
            Some(unit) if function == F::DatePart => moment::part(&call, unit),
            Some(unit) => moment::truncate(&call, unit),
            None => Err(call.undefined()),
        },
        F::DateAdd => moment::add(&call),
        F::JsonGet | F::JsonText | F::JsonNumber | F::JsonType | F::JsonLength | F::JsonKeys => {
            json::call(&call)
        }
        F::JsonContains
        | F::JsonObject
        | F::JsonArray
        | F::JsonSet
        | F::JsonPush
        | F::JsonRemove
        | F::JsonMerge => json_edit::call(&call, selection.len()),
        _ => text::call(&call, selection.len()),
    }
}

/// A function and the values of its operands.
struct Call<'a> {
    function: Function,
    vectors: Vec<Vector<'a>>,
    data_type: DataType,
}

impl<'a> Call<'a> {
    fn undefined(&self) -> Error {
        let name = self.function.entry().name;
        let types: Vec<_> = self.vectors.iter().map(|v| v.data_type.to_string()).collect();
        Error::invalid(format!("{name} is not defined for {}", types.join(", ")))
    }

    fn operand(&self, i: usize) -> Result<&Vector<'a>> {
        self.vectors.get(i).ok_or_else(|| self.undefined())
    }

    fn has(&self, i: usize) -> bool {
        i < self.vectors.len()
    }

    fn ints(&self, i: usize) -> Result<&[i64]> {
        match &self.operand(i)?.lanes {
            Lanes::Ints(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    fn floats(&self, i: usize) -> Result<&[f64]> {
        match &self.operand(i)?.lanes {
            Lanes::Floats(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    fn texts(&self, i: usize) -> Result<&[std::borrow::Cow<'a, [u8]>]> {
        match &self.operand(i)?.lanes {
            Lanes::Bytes(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    /// The operand's value of a row, or what it is without one.
    fn int(&self, i: usize, row: usize, otherwise: i64) -> Result<i64> {
        if !self.has(i) {
            return Ok(otherwise);
        }
        Ok(self.ints(i)?.get(row).copied().unwrap_or(otherwise))
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::out_of_range(format!("{}: {message}", self.function.entry().name))
    }

    /// One value for each row that has all operands; the others, and those that `one` gives none,
    /// are NULL.
    fn map<T: Default>(
        &self,
        len: usize,
        lanes: impl FnOnce(Vec<T>) -> Lanes<'a>,
        mut one: impl FnMut(usize) -> Result<Option<T>>,
    ) -> Result<Vector<'a>> {
        let mut nulls = vec![false; len];
        let mut values = Vec::with_capacity(len);
        for (row, null) in nulls.iter_mut().enumerate() {
            let known = !self.vectors.iter().any(|v| v.is_null(row));
            let value = if known { one(row)? } else { None };
            *null = value.is_none();
            values.push(value.unwrap_or_default());
        }
        let nulls = nulls.contains(&true).then_some(nulls);
        Ok(Vector::new(self.data_type, lanes(values), nulls))
    }
}
