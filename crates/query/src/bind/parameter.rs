//! The values of parameters.

use esker_format::{Value, ValueRef};

use crate::model::{Parameter, RowCount};
use crate::{Error, Inputs, Result};

/// The value that a statement is run with for a parameter.
pub(super) fn value_of<'a>(parameter: &Parameter, inputs: &'a Inputs) -> Result<&'a Value> {
    let position = usize::try_from(parameter.position).unwrap_or(usize::MAX);
    inputs
        .parameters
        .get(position)
        .ok_or_else(|| Error::invalid(format!("parameter {} has no value", parameter.name)))
}

/// The number of rows of a clause.
pub(crate) fn row_count(clause: &str, count: &RowCount, inputs: &Inputs) -> Result<u64> {
    let parameter = match count {
        RowCount::Number(number) => return Ok(*number),
        RowCount::Parameter(parameter) => parameter,
    };
    let value = value_of(parameter, inputs).map_err(|e| e.at(clause))?;
    let number = match value.as_ref() {
        ValueRef::Int(number) => u64::try_from(number).ok(),
        ValueRef::Uint(number) => Some(number),
        _ => None,
    };
    number.ok_or_else(|| {
        let name = &parameter.name;
        let found = format!("found {} {value}", value.as_ref().kind_name());
        Error::invalid(format!("{clause}: parameter {name}: expected a number of rows, {found}"))
    })
}
