//! Scalar functions over vectors. What each means is in the table of [`Function`]s.

mod between;
mod call;
mod coding;
mod format;
mod interval;
mod json;
mod json_edit;
mod letters;
mod list;
mod list_text;
pub(crate) mod moment;
mod number;
mod real;
mod regular;
mod rounding;
mod sqlite_time;
mod strftime;
mod text;
mod to_char;
mod zoned;

use esker_format::{DataType, Value};

use crate::bound::{Bound, Comparison};
use crate::evaluate::{Rows, Selection, Vector};
use crate::model::date_unit::Unit;
use crate::model::{Family, Function};
use crate::pattern::Captured;
use crate::{Error, Result};

use self::call::Call;
pub(crate) use self::moment::{moved, shifted};
use super::{cast, choose, compute};

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
        F::TryCast => {
            let operand = call.vectors.into_iter().next();
            let operand = operand.ok_or_else(|| Error::invalid("try_cast takes an operand"))?;
            cast::try_cast(operand, data_type, meter)
        }
        F::Abs | F::Sign | F::Round | F::Trunc | F::Floor | F::Ceil | F::Power | F::Sqrt => {
            number::call(&call)
        }
        F::DatePart | F::DateTrunc | F::DateDiff | F::DateSub => match unit {
            Some(unit) if function == F::DatePart => moment::part(&call, unit),
            Some(unit) if function == F::DateTrunc && call.has(2) => zoned::truncate(&call, unit),
            Some(unit) if function == F::DateTrunc => moment::truncate(&call, unit),
            Some(unit) => between::between(&call, unit),
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
        _ => of_values(&call, selection.len()),
    }
}

/// Computes a call of a function of texts, real numbers or times.
fn of_values<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    use Function as F;
    match call.function {
        F::Cbrt | F::Exp | F::Ln | F::Log | F::Log10 | F::Log2 | F::Degrees | F::Radians => {
            real::call(call, len)
        }
        F::Sin | F::Cos | F::Tan | F::Cot | F::Asin | F::Acos | F::Atan | F::Atan2 => {
            real::call(call, len)
        }
        F::Sinh | F::Cosh | F::Tanh | F::Asinh | F::Acosh | F::Atanh => real::call(call, len),
        F::Gcd | F::Lcm => real::divisors(call, len),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNot | F::BitShiftLeft | F::BitShiftRight => {
            real::bits(call, len)
        }
        F::Random | F::RandomUuid => real::random(call, len),
        F::ClockTimestamp => between::clock_timestamp(call, len),
        F::SplitPart | F::Lpad | F::Rpad | F::Translate | F::Initcap | F::Ascii | F::Chr => {
            letters::call(call, len)
        }
        F::ConcatWs | F::QuoteLiteral | F::QuoteNullable | F::QuoteIdent => {
            letters::call(call, len)
        }
        F::Format => format::call(call, len),
        F::ToHex | F::Hex | F::Unhex | F::Encode | F::Decode | F::Base64 | F::FromBase64 => {
            coding::call(call, len)
        }
        F::Md5 | F::Sha256 => coding::call(call, len),
        _ if call.entry.family == Family::List => list::call(call, len),
        F::ToTimestamp if call.has(1) => to_char::call(call, len),
        F::LastDay | F::MakeDate | F::MakeTime | F::MakeTimestamp | F::ToTimestamp => {
            between::made(call, len)
        }
        F::Timezone | F::ToUtc => zoned::call(call, len),
        F::DateBin => zoned::binned(call, len),
        F::MakeInterval
        | F::JustifyHours
        | F::JustifyDays
        | F::JustifyInterval
        | F::Age
        | F::Timediff
        | F::Isfinite => interval::call(call, len),
        F::DayName | F::MonthName => between::named(call, len),
        F::EventId => between::event_id(call, len),
        F::ToChar | F::ToDate => to_char::call(call, len),
        F::Strftime | F::Strptime | F::TryStrptime => strftime::call(call, len),
        F::SqliteDate | F::SqliteTime | F::SqliteDatetime | F::Julianday | F::Unixepoch => {
            sqlite_time::call(call, len)
        }
        _ => text::call(call, len),
    }
}

/// Computes a call of a function of a regular expression.
pub(super) fn regular<'a>(
    function: Function,
    expression: &Captured,
    operands: &'a [Bound],
    data_type: DataType,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    let vectors = operands.iter().map(|operand| compute(operand, rows, selection));
    let (vectors, meter) = (vectors.collect::<Result<Vec<_>>>()?, rows.meter());
    let call = Call { function, entry: function.entry(), vectors, data_type, meter };
    regular::call(&call, expression, selection.len())
}
