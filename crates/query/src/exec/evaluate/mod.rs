//! Expressions, computed for the selected rows of a batch.

mod arithmetic;
mod cast;
mod choose;
mod compare;
mod decimal;
mod dictionary;
mod function;
mod logic;
mod ranked;

use esker_format::DataType;
pub(crate) use function::Unit;
pub(crate) use ranked::{keys_of, value_of};

use super::gather::gather;
use super::rows::Rows;
use super::vector::{Selection, Vector};
use crate::bind::{Bound, Node};
use crate::{Error, Result};

/// Computes an expression.
///
/// # Errors
/// `OutOfRange` when arithmetic overflows or a cast fails on a selected row.
pub(crate) fn evaluate<'a>(
    bound: &'a Bound,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    if let Some(vector) = dictionary::evaluate_distinct(bound, rows, selection)? {
        return Ok(vector);
    }
    let again = |operand: &'a Bound| evaluate(operand, rows, selection);
    match &bound.node {
        Node::Field(position) => Ok(gather(&rows.column(*position)?, selection)),
        Node::Literal(value) => Ok(Vector::repeat(value, bound.data_type(), selection.len())),
        Node::Unanswered => Err(Error::invalid("a subquery has not been answered")),
        Node::Arithmetic(operator, left, right) if bound.data_type().is_decimal() => {
            decimal::apply(*operator, bound.data_type(), &again(left)?, &again(right)?)
        }
        Node::Arithmetic(operator, left, right) => {
            arithmetic::apply(*operator, bound.data_type(), again(left)?, again(right)?)
        }
        Node::Compare(comparison, left, right) => {
            Ok(compare::compare(*comparison, &again(left)?, &again(right)?))
        }
        Node::And(members) => {
            let members = members.iter().map(again).collect::<Result<Vec<_>>>()?;
            Ok(logic::all(&members, selection.len()))
        }
        Node::Or(members) => {
            let members = members.iter().map(again).collect::<Result<Vec<_>>>()?;
            Ok(logic::any(&members, selection.len()))
        }
        Node::Not(operand) => Ok(logic::not(again(operand)?)),
        Node::In(operand, values) => Ok(compare::in_list(again(operand)?, values)),
        Node::Match(operand, pattern) => Ok(compare::matches(again(operand)?, pattern)),
        Node::IsNull(operand) => {
            let operand = again(operand)?;
            let values = operand.nulls.unwrap_or_else(|| vec![false; selection.len()]);
            Ok(Vector::bools(values, None))
        }
        Node::Negate(operand) => arithmetic::negate(again(operand)?),
        Node::Concat(left, right) => Ok(function::concat_pair(&again(left)?, &again(right)?)),
        Node::Call(function, operands) => {
            function::call(*function, operands, bound.data_type(), rows, selection)
        }
        Node::Case(branches, otherwise) => {
            choose::case(branches, otherwise, bound.data_type(), rows, selection)
        }
        Node::Ranked(keys, value) => {
            let keys = keys.iter().map(|key| Ok((key, again(&key.bound)?)));
            Ok(ranked::rank(&keys.collect::<Result<Vec<_>>>()?, &again(value)?))
        }
        Node::Cast(operand) => cast::cast(again(operand)?, bound.data_type()),
    }
}

/// Computes an expression if it is constant.
pub(crate) fn fold(bound: Bound) -> Result<Bound> {
    if bound.has_field() || matches!(bound.node, Node::Literal(_)) || bound.is_unanswered() {
        return Ok(bound);
    }
    let data_type: DataType = bound.data_type();
    let value = {
        let vector = evaluate(&bound, &Rows::constant(), Selection::All(1))?;
        vector.value(0).to_owned()
    };
    Ok(Bound::new(Node::Literal(value), data_type))
}
