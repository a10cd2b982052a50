//! The operators as methods of expressions.

use super::FilterOperator;
use crate::model::{Expr, Function, Operator};

/// Methods that make a condition of an expression and one other.
macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident = $make:expr;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(self, other: impl Into<Expr>) -> Expr {
                let make: fn(Expr, Expr) -> Expr = $make;
                make(self, other.into())
            }
        )*
    };
}

fn length(of: Expr) -> Expr {
    Expr::call(Function::Length, [of])
}

fn call(function: Function, of: Expr, other: Expr) -> Expr {
    Expr::call(function, [of, other])
}

/// The operators of [`FILTER_OPERATORS`](crate::operator::FILTER_OPERATORS). The other side is a
/// value or an expression: `Expr::field("age").lt(Expr::field("rank"))` is `lt_field`.
///
/// ```
/// use esker_query::model::Expr;
///
/// let smith = Expr::field("name").contains("smith");
/// let wanted = Expr::field("age").between(30i64, 40i64).and(smith);
/// assert_eq!(wanted.to_string(), "age BETWEEN 30 AND 40 AND contains(name, 'smith')");
/// ```
impl Expr {
    conditions! {
        /// Equal.
        eq = |a, b| a.binary(Operator::Eq, b);
        /// Not equal.
        neq = |a, b| a.binary(Operator::Neq, b);
        /// Less.
        lt = |a, b| a.binary(Operator::Lt, b);
        /// Greater.
        gt = |a, b| a.binary(Operator::Gt, b);
        /// Less or equal.
        lte = |a, b| a.binary(Operator::Lte, b);
        /// Greater or equal.
        gte = |a, b| a.binary(Operator::Gte, b);
        /// Text like a pattern: `%` stands for any run of characters, `_` for one.
        like = |a, b| a.binary(Operator::Like, b);
        /// Text unlike a pattern.
        not_like = |a, b| a.binary(Operator::NotLike, b);
        /// Text like a pattern, whatever the case of letters.
        ilike = |a, b| a.binary(Operator::Ilike, b);
        /// Text unlike a pattern, whatever the case of letters.
        not_ilike = |a, b| a.binary(Operator::NotIlike, b);
        /// Text with a part.
        contains = |a, b| call(Function::Contains, a, b);
        /// Text without a part.
        not_contains = |a, b| call(Function::Contains, a, b).negated();
        /// Text with a part, whatever the case of letters.
        icontains = |a, b| call(Function::Icontains, a, b);
        /// Text without a part, whatever the case of letters.
        not_icontains = |a, b| call(Function::Icontains, a, b).negated();
        /// Text that begins with a part.
        starts = |a, b| call(Function::StartsWith, a, b);
        /// Text that ends with a part.
        ends = |a, b| call(Function::EndsWith, a, b);
        /// Text that begins with a part, whatever the case of letters.
        istarts = |a, b| call(Function::IstartsWith, a, b);
        /// Text that ends with a part, whatever the case of letters.
        iends = |a, b| call(Function::IendsWith, a, b);
        /// Text of so many characters.
        len_eq = |a, b| length(a).eq(b);
        /// Text of fewer or more characters.
        len_neq = |a, b| length(a).neq(b);
        /// Text of fewer characters.
        len_lt = |a, b| length(a).lt(b);
        /// Text of more characters.
        len_gt = |a, b| length(a).gt(b);
        /// Text of at most so many characters.
        len_lte = |a, b| length(a).lte(b);
        /// Text of at least so many characters.
        len_gte = |a, b| length(a).gte(b);
        /// Text in which a regular expression is found.
        regex = |a, b| call(Function::RegexpLike, a, b);
        /// Text in which a regular expression is not found.
        not_regex = |a, b| call(Function::RegexpLike, a, b).negated();
    }

    /// From one value to another, both included.
    #[must_use]
    pub fn between(self, least: impl Into<Expr>, greatest: impl Into<Expr>) -> Expr {
        Expr::Apply(Operator::Between, vec![self, least.into(), greatest.into()])
    }

    /// Text of as many characters as from one number to another, both included.
    #[must_use]
    pub fn len_between(self, least: impl Into<Expr>, greatest: impl Into<Expr>) -> Expr {
        length(self).between(least, greatest)
    }

    /// Equal to one of some values.
    #[must_use]
    pub fn is_in<E: Into<Expr>>(self, values: impl IntoIterator<Item = E>) -> Expr {
        Expr::Apply(Operator::In, with(self, values))
    }

    /// Equal to none of some values.
    #[must_use]
    pub fn not_in<E: Into<Expr>>(self, values: impl IntoIterator<Item = E>) -> Expr {
        Expr::Apply(Operator::NotIn, with(self, values))
    }

    /// Not NULL.
    #[must_use]
    pub fn exists(self) -> Expr {
        Expr::Apply(Operator::IsNotNull, vec![self])
    }

    /// NULL.
    #[must_use]
    pub fn not_exists(self) -> Expr {
        Expr::Apply(Operator::IsNull, vec![self])
    }

    /// The condition of an operator of the table.
    ///
    /// # Errors
    /// `InvalidQuery` for an unknown name, and when there are too many or too few values.
    pub fn test(self, operator: &str, values: Vec<Expr>) -> crate::Result<Expr> {
        FilterOperator::expect(operator)?.apply(self, values)
    }
}

fn with<E: Into<Expr>>(subject: Expr, values: impl IntoIterator<Item = E>) -> Vec<Expr> {
    std::iter::once(subject).chain(values.into_iter().map(Into::into)).collect()
}

impl<V: Into<esker_format::Value>> From<V> for Expr {
    fn from(value: V) -> Self {
        Self::Literal(value.into())
    }
}
