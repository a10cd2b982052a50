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

read! {
    Decimal: "a decimal of at most 28 digits", |value| match value {
        ValueRef::Decimal(v) => {
            Self::try_from_i128_with_scale(v.mantissa(), v.scale().into()).ok()
        }
        _ => None,
    };
}
