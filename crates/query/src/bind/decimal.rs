//! Types of decimals: how many digits a result may need. What needs more than there are is refused
//! when it is met, never rounded.

use esker_format::decimal::{DIGITS_MAX, digit_count};
use esker_format::{DataType, Value};

use crate::bound::Bound;
use crate::model::{Function, Operator};
use crate::{Error, Result};

/// How many digits the values of an integer or decimal type may have, and how many of them behind
/// the point; `None` for other types.
pub(super) fn digits(data_type: DataType) -> Option<(u8, u8)> {
    use DataType as T;
    Some(match data_type {
        T::I8 | T::U8 => (3, 0),
        T::I16 | T::U16 => (5, 0),
        T::I32 | T::U32 => (10, 0),
        T::I64 => (19, 0),
        T::U64 => (20, 0),
        T::Decimal { precision, scale } => (precision, scale),
        _ => return None,
    })
}

/// The same for an expression: a constant that was written has the digits it has.
fn digits_of(bound: &Bound) -> Option<(u8, u8)> {
    let constant = bound.as_written().and_then(|v| v.as_ref().as_word());
    match (bound.data_type?, constant) {
        (t, Some(word)) if t.is_integer() && t != DataType::U64 => {
            Some((digit_count(word.into()), 0))
        }
        (t, _) => digits(t),
    }
}

fn decimal(whole: u8, scale: u8) -> DataType {
    DataType::Decimal { precision: (whole + scale).clamp(1, DIGITS_MAX), scale }
}

/// The type that values of both types can take: the more digits on either side of the point.
pub(super) fn common((p, s): (u8, u8), (q, t): (u8, u8)) -> DataType {
    decimal((p - s).max(q - t), s.max(t))
}

/// The type of a sum, a difference, a product or a remainder of numbers one of which is a decimal.
pub(super) fn arithmetic(operator: Operator, left: &Bound, right: &Bound) -> Result<DataType> {
    let of = |bound| digits_of(bound).unwrap_or((1, 0));
    let ((p, s), (q, t)) = (of(left), of(right));
    if operator == Operator::Multiply {
        let scale = s + t;
        if scale > DIGITS_MAX {
            return Err(Error::invalid(format!(
                "a product of {s} and {t} digits behind the point would have {scale}, at most \
                 {DIGITS_MAX}: cast one to fewer"
            )));
        }
        return Ok(decimal((p - s) + (q - t), scale));
    }
    let carry = u8::from(!operator.is_remainder());
    Ok(decimal((p - s).max(q - t) + carry, s.max(t)))
}

/// The type of a function of a number of type `first`: that type, unless it is a decimal and the
/// result has other digits. `second` is what a number is rounded to.
pub(super) fn outcome(function: Function, first: DataType, second: Option<&Bound>) -> DataType {
    let DataType::Decimal { precision, scale } = first else { return first };
    let whole = precision - scale;
    match (function, second.map(Bound::as_literal)) {
        (Function::Round, Some(Some(Value::Int(digits)))) => {
            let kept = u8::try_from((*digits).clamp(0, scale.into())).unwrap_or(scale);
            let carry = u8::from(*digits < scale.into());
            decimal(whole + carry, kept)
        }
        (Function::Round, Some(_)) => decimal(whole + 1, scale),
        (Function::Trunc, Some(Some(Value::Int(digits)))) => {
            decimal(whole, u8::try_from((*digits).clamp(0, scale.into())).unwrap_or(scale))
        }
        (Function::Trunc, None) => decimal(whole, 0),
        (Function::Round | Function::Floor | Function::Ceil, None) => {
            decimal(whole + u8::from(scale > 0), 0)
        }
        (Function::Sign, _) => decimal(1, 0),
        _ => first,
    }
}
