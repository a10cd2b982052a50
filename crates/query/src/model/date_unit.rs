//! Parts of dates and times, as functions name them.

use esker_format::DataType;

use super::Function;
use crate::{Error, Result};

macro_rules! units {
    ($($unit:ident $name:literal),*) => {
        /// A part of a date or time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Unit {
            $($unit),*
        }

        const UNITS: &[(&str, Unit)] = &[$(($name, Unit::$unit)),*];
    };
}

units! {
    Microsecond "microsecond", Millisecond "millisecond", Second "second", Minute "minute",
    Hour "hour", Day "day", Week "week", Month "month", Quarter "quarter", Year "year",
    Isoyear "isoyear", Doy "doy", Dow "dow", Isodow "isodow", Epoch "epoch", Decade "decade",
    Century "century", Millennium "millennium", Julian "julian"
}

impl Unit {
    /// The unit of a name in any case, in the singular or plural.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let single = match name.as_str() {
            "centuries" => "century",
            "millennia" => "millennium",
            name => name.strip_suffix('s').unwrap_or(name),
        };
        UNITS.iter().find(|(known, _)| *known == name || *known == single).map(|(_, unit)| *unit)
    }

    /// True for a part of a day.
    pub(crate) const fn is_clock(self) -> bool {
        use Unit::{Hour, Microsecond, Millisecond, Minute, Second};
        matches!(self, Microsecond | Millisecond | Second | Minute | Hour)
    }

    /// The part that a function is named after.
    pub(crate) fn of_function(function: Function) -> Option<&'static str> {
        use Function as F;
        Some(match function {
            F::Year => "year",
            F::Quarter => "quarter",
            F::Month => "month",
            F::Week => "week",
            F::Day => "day",
            F::DayOfYear => "doy",
            F::DayOfWeek => "dow",
            F::Isodow => "isodow",
            F::Isoyear => "isoyear",
            F::Hour => "hour",
            F::Minute => "minute",
            F::Second => "second",
            F::Millisecond => "millisecond",
            F::Microsecond => "microsecond",
            F::Epoch => "epoch",
            _ => return None,
        })
    }

    /// Refuses a name that is no unit, or none for this function of this type.
    pub(crate) fn expect(name: &str, function: Function, data_type: DataType) -> Result<()> {
        let possible = |unit: &Self| {
            let is_clock = unit.is_clock();
            let is_only_part =
                matches!(unit, Self::Doy | Self::Dow | Self::Isodow | Self::Epoch | Self::Julian);
            let is_numbered = is_only_part && *unit != Self::Epoch;
            match function {
                _ if data_type == DataType::Interval => {
                    let is_of_weeks = matches!(unit, Self::Week | Self::Isoyear);
                    let is_epoch = *unit == Self::Epoch && function != Function::DatePart;
                    !is_numbered && !is_of_weeks && !is_epoch
                }
                Function::DatePart => {
                    data_type != DataType::Time || is_clock || *unit == Self::Epoch
                }
                _ => !is_only_part,
            }
        };
        if Self::from_name(name).as_ref().is_some_and(possible) {
            return Ok(());
        }
        let article = if data_type == DataType::Interval { "an" } else { "a" };
        let known: Vec<_> = UNITS.iter().filter(|(_, u)| possible(u)).map(|(n, _)| *n).collect();
        Err(Error::invalid(format!(
            "unknown unit {name:?} of {article} {data_type}; known: {}",
            known.join(", ")
        )))
    }
}

impl Unit {
    /// How long a step of a unit may be, in microseconds: the time so long after one begins lies in
    /// the next.
    pub(crate) fn longest_us(self) -> i64 {
        const SECOND: i64 = 1_000_000;
        const DAY: i64 = 86_400 * SECOND;
        match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1_000,
            Self::Second => SECOND,
            Self::Minute => 60 * SECOND,
            Self::Hour => 3_600 * SECOND,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 31 * DAY,
            Self::Quarter => 92 * DAY,
            Self::Decade => 3_653 * DAY,
            Self::Century => 36_525 * DAY,
            Self::Millennium => 365_243 * DAY,
            // Years by whatever count.
            _ => 371 * DAY,
        }
    }

    /// Whether a step of it is made of whole steps of another.
    pub(crate) fn has_steps(self, finer: Self) -> bool {
        use Unit as U;
        let order = [
            U::Microsecond,
            U::Millisecond,
            U::Second,
            U::Minute,
            U::Hour,
            U::Day,
            U::Month,
            U::Quarter,
            U::Year,
        ];
        let place = |unit: Unit| order.iter().position(|known| *known == unit);
        match (place(finer), self) {
            (Some(finer), U::Week) => finer <= 5,
            (Some(finer), unit) => place(unit).is_some_and(|place| finer <= place),
            (None, _) => false,
        }
    }
}
