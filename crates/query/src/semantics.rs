//! What SQL leaves open and a statement may choose: where NULLs go in an order that does not say
//! it, and what a division by zero is.
//!
//! Binding looks here once and writes the choice into the plan: each key of an order has its NULLs
//! at one end, and each division is one of two operators. What runs later asks no setting.

use std::fmt::{self, Display, Formatter};

use esker_format::suggest::near_or_all;

use crate::model::{Expr, Function, Operator, OrderBy};
use crate::{Error, Result};

/// Where NULLs go in an order that does not say `NULLS FIRST` or `NULLS LAST`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NullsOrder {
    /// NULL is less than every value: first, and last in a descending order. As in SQLite.
    #[default]
    Smallest,
    /// NULL is greater than every value: last, and first in a descending order. As in PostgreSQL.
    Greatest,
    /// First in every order.
    First,
    /// Last in every order. As in DuckDB.
    Last,
}

impl NullsOrder {
    /// Its names, that by which it is shown first.
    const NAMES: [(&'static str, Self); 7] = [
        ("smallest", Self::Smallest),
        ("greatest", Self::Greatest),
        ("first", Self::First),
        ("last", Self::Last),
        ("sqlite", Self::Smallest),
        ("postgres", Self::Greatest),
        ("postgresql", Self::Greatest),
    ];
}

/// What `/`, `%` and `mod` by zero are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DivisionByZero {
    /// NULL, as in SQLite.
    #[default]
    Null,
    /// An error, as in PostgreSQL.
    Error,
}

impl DivisionByZero {
    const NAMES: [(&'static str, Self); 2] = [("null", Self::Null), ("error", Self::Error)];
}

/// Whether groupings are answered by what is kept of materialized views. The answers are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RollupUse {
    /// Where that takes less time.
    #[default]
    On,
    /// They are computed of the rows.
    Off,
}

impl RollupUse {
    const NAMES: [(&'static str, Self); 4] =
        [("on", Self::On), ("off", Self::Off), ("true", Self::On), ("false", Self::Off)];
}

/// What a statement chooses; what it does not choose is as its session, its database, or the
/// defaults have it.
///
/// ```
/// use esker_query::{DivisionByZero, NullsOrder, Semantics};
///
/// let chosen = Semantics::default().with("nulls_order", Some("postgres"))?;
/// assert_eq!(chosen.nulls_order, Some(NullsOrder::Greatest));
/// assert_eq!(chosen.value_of("division_by_zero")?, "null");
/// let both = chosen.or(Semantics::postgres());
/// assert_eq!(both.division_by_zero, Some(DivisionByZero::Error));
/// let error = chosen.with("nulls_order", Some("lost")).unwrap_err().to_string();
/// assert!(error.starts_with("nulls_order: unknown value \"lost\""), "{error}");
/// # Ok::<(), esker_query::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// Where NULLs go; [`NullsOrder::Smallest`] by default.
    pub nulls_order: Option<NullsOrder>,
    /// What a division by zero is; [`DivisionByZero::Null`] by default.
    pub division_by_zero: Option<DivisionByZero>,
    /// Whether rollups are used; [`RollupUse::On`] by default.
    pub use_rollups: Option<RollupUse>,
}

impl Semantics {
    /// The names of what is chosen.
    pub const SETTINGS: [&'static str; 3] = ["nulls_order", "division_by_zero", "use_rollups"];

    /// Those on which answers depend.
    pub const MEANINGS: [&'static str; 2] = ["nulls_order", "division_by_zero"];

    /// What PostgreSQL does.
    #[must_use]
    pub fn postgres() -> Self {
        Self {
            nulls_order: Some(NullsOrder::Greatest),
            division_by_zero: Some(DivisionByZero::Error),
            use_rollups: None,
        }
    }

    /// The same, and where it does not choose, as another does.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            nulls_order: self.nulls_order.or(other.nulls_order),
            division_by_zero: self.division_by_zero.or(other.division_by_zero),
            use_rollups: self.use_rollups.or(other.use_rollups),
        }
    }

    /// The same with another value of a setting, or without a choice of it.
    ///
    /// # Errors
    /// `InvalidQuery` for an unknown setting or value, with those that there are.
    pub fn with(self, setting: &str, value: Option<&str>) -> Result<Self> {
        match known(setting)? {
            "nulls_order" => {
                let nulls_order = value.map(|v| named(setting, v, &NullsOrder::NAMES));
                Ok(Self { nulls_order: nulls_order.transpose()?, ..self })
            }
            "use_rollups" => {
                let use_rollups = value.map(|v| named(setting, v, &RollupUse::NAMES));
                Ok(Self { use_rollups: use_rollups.transpose()?, ..self })
            }
            _ => {
                let division = value.map(|v| named(setting, v, &DivisionByZero::NAMES));
                Ok(Self { division_by_zero: division.transpose()?, ..self })
            }
        }
    }

    /// The value of a setting: what is chosen, or the default.
    ///
    /// # Errors
    /// `InvalidQuery` for an unknown setting.
    pub fn value_of(self, setting: &str) -> Result<&'static str> {
        Ok(match known(setting)? {
            "nulls_order" => name_of(self.nulls_order.unwrap_or_default(), &NullsOrder::NAMES),
            "use_rollups" => name_of(self.use_rollups.unwrap_or_default(), &RollupUse::NAMES),
            _ => name_of(self.division_by_zero.unwrap_or_default(), &DivisionByZero::NAMES),
        })
    }

    /// Whether NULLs are first in a key of an order.
    pub(crate) fn nulls_first(self, key: &OrderBy) -> bool {
        key.nulls_first.unwrap_or_else(|| self.nulls_first_in(key.descending))
    }

    /// The same for a key that does not say it.
    pub(crate) fn nulls_first_in(self, descending: bool) -> bool {
        match self.nulls_order.unwrap_or_default() {
            NullsOrder::Smallest => !descending,
            NullsOrder::Greatest => descending,
            NullsOrder::First => true,
            NullsOrder::Last => false,
        }
    }

    /// The operator that is meant by one.
    pub(crate) fn operator(self, operator: Operator) -> Operator {
        match (self.division_by_zero.unwrap_or_default(), operator) {
            (DivisionByZero::Error, Operator::Divide) => Operator::DivideOrFail,
            (DivisionByZero::Error, Operator::Remainder) => Operator::RemainderOrFail,
            _ => operator,
        }
    }

    /// An expression as it is meant, for what is kept: it means that under any other choice.
    ///
    /// ```
    /// use esker_query::Semantics;
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let share = Expr::field("a").binary(Operator::Divide, Expr::field("b"));
    /// let meant = Semantics::postgres().meant(share.clone());
    /// assert_eq!(meant, Expr::field("a").binary(Operator::DivideOrFail, Expr::field("b")));
    /// assert_eq!(meant.to_string(), share.to_string());
    /// ```
    #[must_use]
    pub fn meant(self, mut expr: Expr) -> Expr {
        for operand in expr.operands_mut() {
            *operand = self.meant(std::mem::replace(operand, Expr::Default));
        }
        match expr {
            Expr::Apply(operator, operands) => Expr::Apply(self.operator(operator), operands),
            Expr::Call(Function::Mod, operands)
                if self.division_by_zero == Some(DivisionByZero::Error) =>
            {
                Expr::Apply(Operator::RemainderOrFail, operands)
            }
            other => other,
        }
    }
}

/// What is not as by default, as cursors note it; nothing where all is.
impl Display for Semantics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (nulls_order, division) = (self.nulls_order, self.division_by_zero);
        if let Some(order) = nulls_order.filter(|order| *order != NullsOrder::default()) {
            write!(f, " nulls_order {}", name_of(order, &NullsOrder::NAMES))?;
        }
        if let Some(division) = division.filter(|by| *by != DivisionByZero::default()) {
            write!(f, " division_by_zero {}", name_of(division, &DivisionByZero::NAMES))?;
        }
        Ok(())
    }
}

fn known(setting: &str) -> Result<&'static str> {
    let found = Semantics::SETTINGS.into_iter().find(|name| name.eq_ignore_ascii_case(setting));
    found.ok_or_else(|| {
        let near = near_or_all(setting, "settings", Semantics::SETTINGS);
        Error::invalid(format!("unknown setting {setting:?}{near}"))
    })
}

fn named<T: Copy>(setting: &str, value: &str, names: &[(&'static str, T)]) -> Result<T> {
    let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|(_, found)| *found).ok_or_else(|| {
        let near = near_or_all(value, "values", names.iter().map(|(name, _)| *name));
        Error::invalid(format!("{setting}: unknown value {value:?}{near}"))
    })
}

fn name_of<T: PartialEq>(value: T, names: &[(&'static str, T)]) -> &'static str {
    let found = names.iter().find(|(_, known)| *known == value);
    found.map(|(name, _)| *name).unwrap_or_default()
}
