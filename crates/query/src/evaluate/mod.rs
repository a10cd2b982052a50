//! Expressions, computed for the selected rows of a batch.
//!
//! What an expression makes counts towards the memory of the statement before it is made, and while
//! it is made it is seen whether the statement is to end ([`meter`]). Where memory does not
//! hold what is made of all selected rows, fewer rows are computed at a time.

mod arithmetic;
mod cast;
mod choose;
mod compare;
mod concat;
mod decimal;
mod decimal_words;
mod dictionary;
mod function;
pub(crate) mod gather;
mod interval;
pub(crate) mod key_codec;
mod logic;
pub(crate) mod mask;
mod parts;
mod ranked;
pub(crate) mod rows;
pub(crate) mod vector;
mod written;

use esker_format::{DataType, Value};
pub(crate) use ranked::{keys_of, value_of};

use super::{Error, ErrorKind, Result};
use crate::Limits;
use crate::bound::{Bound, Node};
pub(crate) use function::{moved, shifted};
use gather::gather;
pub(crate) use mask::Mask;
pub(crate) use rows::Rows;
pub(crate) use vector::{Lanes, Picked, Selection, Vector, either_null};

/// Computes an expression.
///
/// # Errors
/// `OutOfRange` when arithmetic overflows or a cast fails on a selected row, `OverBudget` with the
/// number of bytes needed, `Cancelled` and `TimedOut` when the statement is to end.
pub(crate) fn evaluate<'a>(
    bound: &'a Bound,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    match compute(bound, rows, selection) {
        Err(e) if e.kind() == ErrorKind::OverBudget && selection.len() > 1 => {
            parts::evaluate(bound, rows, selection)
        }
        computed => computed,
    }
}

/// Computes an expression for all selected rows at once.
fn compute<'a>(bound: &'a Bound, rows: &Rows<'a>, selection: Selection<'_>) -> Result<Vector<'a>> {
    if let Some(vector) = dictionary::evaluate_distinct(bound, rows, selection)? {
        return Ok(vector);
    }
    let meter = rows.meter();
    meter.work(selection.len())?;
    let mut room = meter.room("an expression");
    room.take(Lanes::size(bound.data_type(), selection.len()))?;
    Ok(node(bound, rows, selection)?.within(room))
}

fn node<'a>(bound: &'a Bound, rows: &Rows<'a>, selection: Selection<'_>) -> Result<Vector<'a>> {
    let again = |operand: &'a Bound| compute(operand, rows, selection);
    let meter = rows.meter();
    match &bound.node {
        Node::Field(position) => Ok(gather(&rows.column(*position)?, selection)),
        Node::Literal(value) => Ok(Vector::repeat(value, bound.data_type(), selection.len())),
        Node::Unanswered => Err(Error::invalid("a subquery has not been answered")),
        Node::Arithmetic(operator, left, right)
            if interval::is_of_intervals(bound, left, right) =>
        {
            interval::apply(*operator, bound.data_type(), &again(left)?, &again(right)?, meter)
        }
        Node::Arithmetic(operator, left, right) if bound.data_type().is_decimal() => {
            decimal::apply(*operator, bound.data_type(), &again(left)?, &again(right)?)
        }
        Node::Arithmetic(operator, left, right) => {
            arithmetic::apply(*operator, bound.data_type(), again(left)?, again(right)?)
        }
        Node::Compare(comparison, left, right) => {
            compare::compare(*comparison, &again(left)?, &again(right)?, meter)
        }
        Node::And(members) => logic::all(members, rows, selection),
        Node::Or(members) => logic::any(members, rows, selection),
        Node::Not(operand) => Ok(logic::not(again(operand)?)),
        Node::In(operand, values) => compare::in_list(again(operand)?, values, meter),
        Node::Match(operand, pattern) => compare::matches(again(operand)?, pattern, meter),
        Node::IsNull(operand) => {
            let operand = again(operand)?;
            let values = operand.nulls.unwrap_or_else(|| vec![false; selection.len()]);
            Ok(Vector::bools(values, None))
        }
        Node::Negate(operand) if bound.data_type() == DataType::Interval => {
            interval::negate(&again(operand)?, meter)
        }
        Node::Negate(operand) => arithmetic::negate(again(operand)?),
        Node::Concat(operands) => {
            let operands = operands.iter().map(again).collect::<Result<Vec<_>>>()?;
            concat::concat(&operands, bound.data_type(), meter)
        }
        Node::Call(function, operands) => {
            function::call(*function, operands, bound.data_type(), rows, selection)
        }
        Node::Regular(function, expression, operands) => {
            let data_type = bound.data_type();
            function::regular(*function, expression, operands, data_type, rows, selection)
        }
        Node::Case(branches, otherwise) => {
            choose::case(branches, otherwise, bound.data_type(), rows, selection)
        }
        Node::Ranked(keys, value) => {
            let keys = keys.iter().map(|key| Ok((key, again(&key.bound)?)));
            ranked::rank(&keys.collect::<Result<Vec<_>>>()?, &again(value)?, meter)
        }
        Node::Pair(y, x) => ranked::pair(&again(y)?, &again(x)?, meter),
        Node::Cast(operand) => cast::cast(again(operand)?, bound.data_type(), meter),
    }
}

/// Computes an expression if it is constant, and no literal yet. The value is held for as long as
/// the statement runs.
pub(crate) fn constant(bound: &Bound, limits: &Limits) -> Result<Option<Value>> {
    let varies = bound.has_field() || bound.is_unanswered() || bound.is_random();
    if varies || matches!(bound.node, Node::Literal(_)) {
        return Ok(None);
    }
    let rows = Rows::constant(limits);
    let mut vector = evaluate(bound, &rows, Selection::All(1))?;
    let value = vector.take_value(0);
    // It counts once.
    drop(vector);
    hold(&value, limits)?;
    Ok(Some(value))
}

/// Counts a value for as long as the statement runs.
pub(crate) fn hold(value: &Value, limits: &Limits) -> Result<()> {
    let mut held = limits.memory.charge();
    held.set(value.as_ref().as_bytes().map_or(0, <[u8]>::len))?;
    held.keep();
    Ok(())
}

impl Vector<'_> {
    /// The value of row `i`, which the vector has no more; NULL past the end.
    fn take_value(&mut self, i: usize) -> Value {
        if let (false, Lanes::Bytes(values), DataType::Text) =
            (self.is_null(i), &mut self.lanes, self.data_type)
            && let Some(text) = values.get_mut(i)
            && let Ok(text) = String::from_utf8(std::mem::take(text).into_owned())
        {
            return Value::Text(text);
        }
        self.value(i).to_owned()
    }
}
