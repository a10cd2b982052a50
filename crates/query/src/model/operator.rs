//! The one table of operators: names, symbols, how many operands, and how they are typed.
//! Validation, display and every query language read it; nothing else lists operators.

use serde::{Deserialize, Serialize};

/// How an operator is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `a symbol b`; a higher number binds tighter.
    Infix(u8),
    /// `symbol a`; a higher number binds tighter.
    Prefix(u8),
    /// `a symbol b, c …` in its own way, binding like a comparison.
    Predicate,
    /// `CASE WHEN …`.
    Case,
}

/// How operands are typed, and what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// Numbers, or a date or timestamp with a number; the like.
    Arithmetic,
    /// One number; the same.
    Number,
    /// Operands that compare with the first; a bool.
    Comparison,
    /// Bools; a bool.
    Logic,
    /// Text and constant text; a bool.
    Pattern,
    /// Anything; a bool.
    Any,
    /// Bytes, or anything as text; the same.
    Text,
    /// Bools and values alternating; the common type of the values.
    Case,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The operator.
    pub operator: Operator,
    /// Its name, in serialised queries and errors.
    pub name: &'static str,
    /// Its symbol or keyword, in text.
    pub symbol: &'static str,
    /// How it is written.
    pub form: Form,
    /// The fewest operands.
    pub operands_min: usize,
    /// The most operands.
    pub operands_max: usize,
    /// How operands are typed.
    pub typing: Typing,
}

const MANY: usize = 65_536;

macro_rules! operators {
    ($(
        $(#[$about:meta])*
        $operator:ident = $name:literal $symbol:literal, $form:ident $(($binds:literal))?,
            $least:literal ..= $most:tt $typing:ident;
    )*) => {
        /// What an expression applies to its operands.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Operator {
            $($(#[$about])* $operator,)*
        }

        impl Operator {
            /// The operator's line in the table.
            #[must_use]
            pub const fn entry(self) -> &'static Entry {
                match self {$(
                    Self::$operator => {
                        const ENTRY: &Entry = &Entry {
                            operator: Operator::$operator,
                            name: $name,
                            symbol: $symbol,
                            form: Form::$form $(($binds))?,
                            operands_min: $least,
                            operands_max: $most,
                            typing: Typing::$typing,
                        };
                        ENTRY
                    }
                )*}
            }
        }

        /// Every operator.
        pub const OPERATORS: &[Entry] = &[$(*Operator::$operator.entry()),*];
    };
}

operators! {
    /// Sum; a date and days; a timestamp and microseconds.
    Add = "add" "+", Infix(5), 2..=2 Arithmetic;
    /// Difference; a date and days, a timestamp and microseconds; days between dates,
    /// microseconds between timestamps.
    Subtract = "subtract" "-", Infix(5), 2..=2 Arithmetic;
    /// Product.
    Multiply = "multiply" "*", Infix(6), 2..=2 Arithmetic;
    /// Quotient: of integers truncated towards zero, by zero NULL.
    Divide = "divide" "/", Infix(6), 2..=2 Arithmetic;
    /// Remainder, with the sign of the dividend; by zero NULL.
    Remainder = "remainder" "%", Infix(6), 2..=2 Arithmetic;
    /// Quotient as of [`Operator::Divide`], by zero an error.
    DivideOrFail = "divide_or_fail" "/", Infix(6), 2..=2 Arithmetic;
    /// Remainder as of [`Operator::Remainder`], by zero an error.
    RemainderOrFail = "remainder_or_fail" "%", Infix(6), 2..=2 Arithmetic;
    /// The operands as text one after another, or bytes; NULL when one is.
    Concat = "concat" "||", Infix(6), 2..=2 Text;
    /// Minus one operand.
    Negate = "negate" "-", Prefix(7), 1..=1 Number;
    /// Equal.
    Eq = "eq" "=", Infix(4), 2..=2 Comparison;
    /// Not equal.
    Neq = "neq" "<>", Infix(4), 2..=2 Comparison;
    /// Less.
    Lt = "lt" "<", Infix(4), 2..=2 Comparison;
    /// Less or equal.
    Lte = "lte" "<=", Infix(4), 2..=2 Comparison;
    /// Greater.
    Gt = "gt" ">", Infix(4), 2..=2 Comparison;
    /// Greater or equal.
    Gte = "gte" ">=", Infix(4), 2..=2 Comparison;
    /// All of the operands.
    And = "and" "AND", Infix(2), 1..=MANY Logic;
    /// Any of the operands.
    Or = "or" "OR", Infix(1), 1..=MANY Logic;
    /// The opposite.
    Not = "not" "NOT", Prefix(3), 1..=1 Logic;
    /// The first operand equals one of the others.
    In = "in" "IN", Predicate, 1..=MANY Comparison;
    /// The first operand equals none of the others.
    NotIn = "not_in" "NOT IN", Predicate, 1..=MANY Comparison;
    /// The first operand lies between the others, both included.
    Between = "between" "BETWEEN", Predicate, 3..=3 Comparison;
    /// The first operand does not lie between the others.
    NotBetween = "not_between" "NOT BETWEEN", Predicate, 3..=3 Comparison;
    /// Text matches a pattern (`%` any run, `_` one character); the third operand is the escape.
    Like = "like" "LIKE", Predicate, 2..=3 Pattern;
    /// Text does not match a pattern.
    NotLike = "not_like" "NOT LIKE", Predicate, 2..=3 Pattern;
    /// Like [`Operator::Like`], letters compared without case.
    Ilike = "ilike" "ILIKE", Predicate, 2..=3 Pattern;
    /// Like [`Operator::NotLike`], letters compared without case.
    NotIlike = "not_ilike" "NOT ILIKE", Predicate, 2..=3 Pattern;
    /// The operand is NULL.
    IsNull = "is_null" "IS NULL", Predicate, 1..=1 Any;
    /// The operand is not NULL.
    IsNotNull = "is_not_null" "IS NOT NULL", Predicate, 1..=1 Any;
    /// Operands are condition, value, condition, value, …, and last the value otherwise.
    Case = "case" "CASE", Case, 2..=MANY Case;
}

impl Operator {
    /// True for `/`, whatever it is by zero.
    pub(crate) fn is_quotient(self) -> bool {
        matches!(self, Self::Divide | Self::DivideOrFail)
    }

    /// True for `%`, whatever it is by zero.
    pub(crate) fn is_remainder(self) -> bool {
        matches!(self, Self::Remainder | Self::RemainderOrFail)
    }

    /// True where zero on the right is an error.
    pub(crate) fn fails_by_zero(self) -> bool {
        matches!(self, Self::DivideOrFail | Self::RemainderOrFail)
    }
}
