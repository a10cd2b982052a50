//! Scalar functions over vectors. What each means is in the table of [`Function`]s.

mod call;
mod json;
mod json_edit;
mod moment;
mod number;
mod rounding;
mod text;

use esker_format::{DataType, Value};

use crate::Result;
use crate::bound::{Bound, Comparison};
use crate::evaluate::{Rows, Selection, Vector};
use crate::model::Function;
use crate::model::date_unit::Unit;

use self::call::Call;
use super::{choose, compute};

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
    let vectors = operands.iter().map(|operand| compute(operand, rows, selection));
    let (vectors, meter) = (vectors.collect::<Result<Vec<_>>>()?, rows.meter());
    let call = Call { function, entry: function.entry(), vectors, data_type, meter };
    match function {
        F::Greatest => choose::extreme(&call.vectors, Comparison::Gt, data_type, meter),
        F::Least => choose::extreme(&call.vectors, Comparison::Lt, data_type, meter),
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
