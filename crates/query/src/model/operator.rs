//! The one table of operators: names, symbols, how many operands, and how they are typed.
//! Validation, display and every query language read it; nothing else lists operators.

use serde::{Deserialize, Serialize};

/// What an expression applies to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operator {
    /// Sum; a date and days; a timestamp and microseconds.
    Add,
    /// Difference; a date and days, a timestamp and microseconds; days between dates,
    /// microseconds between timestamps.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient: of integers truncated towards zero, by zero NULL.
    Divide,
    /// Remainder, with the sign of the dividend; by zero NULL.
    Remainder,
    /// The operands as text one after another, or bytes; NULL when one is.
    Concat,
    /// Minus one operand.
    Negate,
    /// Equal.
    Eq,
    /// Not equal.
    Neq,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// All of the operands.
    And,
    /// Any of the operands.
    Or,
    /// The opposite.
    Not,
    /// The first operand equals one of the others.
    In,
    /// The first operand equals none of the others.
    NotIn,
    /// The first operand lies between the others, both included.
    Between,
    /// The first operand does not lie between the others.
    NotBetween,
    /// Text matches a pattern (`%` any run, `_` one character); the third operand is the escape.
    Like,
    /// Text does not match a pattern.
    NotLike,
    /// Like [`Operator::Like`], letters compared without case.
    Ilike,
    /// Like [`Operator::NotLike`], letters compared without case.
    NotIlike,
    /// The operand is NULL.
    IsNull,
    /// The operand is not NULL.
    IsNotNull,
    /// Operands are condition, value, condition, value, …, and last the value otherwise.
    Case,
}

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

const fn entry(
    operator: Operator,
    name: &'static str,
    symbol: &'static str,
    form: Form,
    operands: (usize, usize),
    typing: Typing,
) -> Entry {
    let (operands_min, operands_max) = operands;
    Entry { operator, name, symbol, form, operands_min, operands_max, typing }
}

/// Every operator.
pub const OPERATORS: &[Entry] = &{
    use Form::{Infix, Predicate, Prefix};
    use Operator as O;
    use Typing::{Arithmetic, Comparison, Logic, Pattern};
    [
        entry(O::Add, "add", "+", Infix(5), (2, 2), Arithmetic),
        entry(O::Subtract, "subtract", "-", Infix(5), (2, 2), Arithmetic),
        entry(O::Multiply, "multiply", "*", Infix(6), (2, 2), Arithmetic),
        entry(O::Divide, "divide", "/", Infix(6), (2, 2), Arithmetic),
        entry(O::Remainder, "remainder", "%", Infix(6), (2, 2), Arithmetic),
        entry(O::Concat, "concat", "||", Infix(6), (2, 2), Typing::Text),
        entry(O::Negate, "negate", "-", Prefix(7), (1, 1), Typing::Number),
        entry(O::Eq, "eq", "=", Infix(4), (2, 2), Comparison),
        entry(O::Neq, "neq", "<>", Infix(4), (2, 2), Comparison),
        entry(O::Lt, "lt", "<", Infix(4), (2, 2), Comparison),
        entry(O::Lte, "lte", "<=", Infix(4), (2, 2), Comparison),
        entry(O::Gt, "gt", ">", Infix(4), (2, 2), Comparison),
        entry(O::Gte, "gte", ">=", Infix(4), (2, 2), Comparison),
        entry(O::And, "and", "AND", Infix(2), (1, MANY), Logic),
        entry(O::Or, "or", "OR", Infix(1), (1, MANY), Logic),
        entry(O::Not, "not", "NOT", Prefix(3), (1, 1), Logic),
        entry(O::In, "in", "IN", Predicate, (1, MANY), Comparison),
        entry(O::NotIn, "not_in", "NOT IN", Predicate, (1, MANY), Comparison),
        entry(O::Between, "between", "BETWEEN", Predicate, (3, 3), Comparison),
        entry(O::NotBetween, "not_between", "NOT BETWEEN", Predicate, (3, 3), Comparison),
        entry(O::Like, "like", "LIKE", Predicate, (2, 3), Pattern),
        entry(O::NotLike, "not_like", "NOT LIKE", Predicate, (2, 3), Pattern),
        entry(O::Ilike, "ilike", "ILIKE", Predicate, (2, 3), Pattern),
        entry(O::NotIlike, "not_ilike", "NOT ILIKE", Predicate, (2, 3), Pattern),
        entry(O::IsNull, "is_null", "IS NULL", Predicate, (1, 1), Typing::Any),
        entry(O::IsNotNull, "is_not_null", "IS NOT NULL", Predicate, (1, 1), Typing::Any),
        entry(O::Case, "case", "CASE", Form::Case, (2, MANY), Typing::Case),
    ]
};

impl Operator {
    /// The operator's line in the table.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        const FALLBACK: Entry =
            entry(Operator::Eq, "unknown", "?", Form::Predicate, (0, 0), Typing::Any);
        OPERATORS.iter().find(|e| e.operator == self).unwrap_or(&FALLBACK)
    }
}
