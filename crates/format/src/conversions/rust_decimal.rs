//! Numbers of `rust_decimal`.

use ::rust_decimal::Decimal;

use super::read;
use crate::{Error, Result, Value, ValueRef};

impl TryFrom<Decimal> for Value {
    type Error = Error;

    fn try_from(v: Decimal) -> Result<Self> {
        let scale = u8::try_from(v.scale()).ok();
        let number = scale.and_then(|scale| crate::Decimal::new(v.mantissa(), scale));
        number.map(Self::Decimal).ok_or_else(|| Error::invalid(format!("a decimal like {v}")))
    }
}

/// The same number, with fewer zeros at its end where it has more digits than the type.
fn number_of(v: crate::Decimal) -> Option<Decimal> {
    let (mut mantissa, mut scale) = (v.mantissa(), u32::from(v.scale()));
    loop {
        match Decimal::try_from_i128_with_scale(mantissa, scale) {
            Ok(number) => return Some(number),
            Err(_) if scale == 0 || mantissa % 10 != 0 => return None,
            Err(_) => (mantissa, scale) = (mantissa / 10, scale - 1),
        }
    }
}

read! {
    Decimal: "a decimal of at most 28 digits", |value| match value {
        ValueRef::Decimal(v) => number_of(v),
        _ => None,
    };
}
