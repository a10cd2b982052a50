//! `ANY` and `ALL` of a subquery that stands alone: what a value is compared with is the least or
//! the greatest of its values, and NULL where that is among them.

use std::sync::Arc;

use esker_format::{DataType, Value};

use super::subquery::{only_column, unanswered};
use super::{Answered, Context};
use crate::model::{Answer, Expr, Operator};
use crate::{Error, Query, Result};

impl Context<'_, '_> {
    /// Whether a comparison of an operand with any value of a query holds, or with all of them.
    pub(super) fn compared(
        &self,
        operand: Expr,
        operator: Operator,
        query: &Query,
        is_any: bool,
    ) -> Result<Expr> {
        match (operator, is_any) {
            (Operator::Eq, true) => return self.among(operand, query),
            (Operator::Neq, false) => return self.among(operand, query).map(Expr::negated),
            _ => {}
        }
        if matches!(operand, Expr::Row(_)) {
            return Err(one_value(operator, query));
        }
        let Answered { rows, plan, .. } = self.answer(query)?;
        self.note(query, plan);
        let column = only_column(&rows, query)?;
        let (data_type, labels) = (column.data_type, column.labels.clone());
        if !self.runs {
            let value = unanswered(query.to_string(), data_type, labels);
            return Ok(operand.binary(operator, value));
        }
        let mut values = rows.values(0);
        values.sort();
        values.dedup();
        let count = values.len();
        values.retain(|value| !value.is_null());
        let has_null = values.len() < count;
        let ends = match (values.as_slice(), data_type) {
            // Beside another's labels they are texts, which have another order.
            (_, DataType::Enum) => values,
            ([first, .., last], _) => needed(operator, is_any, first, last),
            _ => values,
        };
        let value = |value| {
            let answer = Answer::new(vec![value], data_type, labels.clone());
            operand.clone().binary(operator, Expr::Answer(Arc::new(answer)))
        };
        let nulls = has_null.then_some(Value::Null);
        let mut all: Vec<Expr> = ends.into_iter().chain(nulls).map(value).collect();
        let joint = if is_any { Operator::Or } else { Operator::And };
        Ok(match all.len() {
            // There are no values, but the types have to fit.
            0 => {
                let typed = value(Value::Null);
                let known = Expr::Apply(Operator::IsNull, vec![typed]);
                if is_any { known.negated() } else { known }
            }
            1 => all.remove(0),
            _ => Expr::Apply(joint, all),
        })
    }
}

/// The values that decide, of many.
fn needed(operator: Operator, is_any: bool, first: &Value, last: &Value) -> Vec<Value> {
    match (operator, is_any) {
        (Operator::Lt | Operator::Lte, true) | (Operator::Gt | Operator::Gte, false) => {
            vec![last.clone()]
        }
        (Operator::Lt | Operator::Lte, false) | (Operator::Gt | Operator::Gte, true) => {
            vec![first.clone()]
        }
        _ => vec![first.clone(), last.clone()],
    }
}

/// The error for rows where one value stands.
pub(super) fn one_value(operator: Operator, query: &Query) -> Error {
    let symbol = operator.entry().symbol;
    Error::invalid(format!(
        "{symbol} ANY and {symbol} ALL compare one value with those of a subquery, found a row: \
         ({query})"
    ))
}
