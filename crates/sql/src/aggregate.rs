//! Calls of aggregates: what stands beside the operand, and the order of the rows.

use esker_format::Value;
use esker_query::model::{Aggregate, Collation, Expr, OrderBy};
use sqlparser::ast;

use crate::collation::{self, Collated};
use crate::expression::Names;
use crate::select::order_keys;
use crate::statement::unsupported;
use crate::{Error, Result};

impl Names {
    /// A call of an aggregate.
    pub(crate) fn aggregate(
        &self,
        call: &ast::Function,
        function: Aggregate,
        list: &ast::FunctionArgumentList,
    ) -> Result<Expr> {
        let (mut order, mut separator) = (Vec::new(), None);
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => order = order_keys(keys, None, self)?,
                ast::FunctionArgumentClause::Separator(value) => separator = Some(value),
                _ => return Err(unsupported("a clause inside a call", call)),
            }
        }
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        let mut operands = self.operands(call, function, &list.args, distinct)?;
        let function = self.collate(call, (function, distinct), &mut operands)?;
        let operands = operands.into_iter().map(|operand| operand.expr).collect::<Vec<_>>();
        let takes_separator = function == Aggregate::StringAgg && operands.len() == 1;
        if separator.is_some() && !(takes_separator && call.within_group.is_empty()) {
            return Err(unsupported("SEPARATOR here", call));
        }
        let within = order_keys(&call.within_group, None, self)?;
        let is_collated = |key: &ast::OrderByExpr| collation::is_collated(&key.expr);
        if call.within_group.iter().any(is_collated) {
            return Err(unsupported("COLLATE in WITHIN GROUP", call));
        }
        if !within.is_empty() {
            if !order.is_empty() {
                return Err(unsupported("ORDER BY beside WITHIN GROUP", call));
            }
            return self.within(call, function, (operands, distinct), within);
        }
        let mut operands = operands.into_iter();
        let operand = operands.next();
        let mut beside: Vec<Expr> = operands.collect();
        let (function, second) = match (function, beside.len()) {
            (Aggregate::Quantile { .. } | Aggregate::PercentileDisc { .. }, 1) => {
                (self.part(function, &beside.remove(0))?, None)
            }
            (Aggregate::StringAgg, 0) => {
                let text = match separator.map(|value| crate::literal::convert(&value.value, false))
                {
                    Some(text) => Expr::Literal(text?),
                    // As SQLite and DuckDB have it.
                    None => Expr::literal(","),
                };
                (function, Some(text))
            }
            (function, 1) if function.takes_second() => (function, beside.pop()),
            (function, 0) if !function.takes_second() => (function, None),
            _ => return Err(wrong_count(call, function)),
        };
        if let Some(expr) = second {
            order.insert(0, OrderBy { expr, descending: false, nulls_first: None });
        }
        let operand = operand.map(Box::new);
        Ok(Expr::Aggregate { function, operand, distinct, order })
    }

    /// The operands; none of `count(*)`.
    fn operands(
        &self,
        call: &ast::Function,
        function: Aggregate,
        arguments: &[ast::FunctionArg],
        distinct: bool,
    ) -> Result<Vec<Collated>> {
        use ast::{FunctionArg as A, FunctionArgExpr as E};
        let is_count = function == Aggregate::Count && !distinct;
        match arguments {
            [A::Unnamed(E::Wildcard)] if is_count => Ok(Vec::new()),
            [] if call.within_group.is_empty() => Err(wrong_count(call, function)),
            arguments => {
                let operand = |argument: &A| match argument {
                    A::Unnamed(E::Expr(expr)) => self.collated(expr),
                    _ => Err(wrong_count(call, function)),
                };
                arguments.iter().map(operand).collect()
            }
        }
    }

    /// What an aggregate of a text with a collation is.
    fn collate(
        &self,
        call: &ast::Function,
        (function, distinct): (Aggregate, bool),
        operands: &mut Vec<Collated>,
    ) -> Result<Aggregate> {
        let is_plain = |operand: &Collated| matches!(operand.by, None | Some(Collation::Binary));
        if operands.iter().all(is_plain) {
            return Ok(function);
        }
        let [operand] = operands.as_mut_slice() else {
            return Err(unsupported("COLLATE in this aggregate", call));
        };
        let by = operand.by.take();
        let key = Collated { expr: operand.expr.clone(), by };
        match function {
            Aggregate::Count if distinct => {
                *operand = Collated { expr: key.key(), by: None };
                Ok(function)
            }
            // The text of which the key is the least or the greatest.
            Aggregate::Min | Aggregate::Max => {
                operands.push(Collated { expr: key.key(), by: None });
                let is_min = function == Aggregate::Min;
                Ok(if is_min { Aggregate::ArgMin } else { Aggregate::ArgMax })
            }
            _ => Err(unsupported("COLLATE in this aggregate", call)),
        }
    }

    /// `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` and its like.
    fn within(
        &self,
        call: &ast::Function,
        function: Aggregate,
        (mut operands, distinct): (Vec<Expr>, bool),
        mut keys: Vec<OrderBy>,
    ) -> Result<Expr> {
        let [key] = keys.as_mut_slice() else {
            return Err(unsupported("WITHIN GROUP with several keys", call));
        };
        let operand = Some(Box::new(key.expr.clone()));
        let function = match (function, operands.pop(), operands.is_empty()) {
            (Aggregate::Mode, None, _) => function,
            (Aggregate::Quantile { .. } | Aggregate::PercentileDisc { .. }, Some(part), true) => {
                match (self.part(function, &part)?, key.descending) {
                    (Aggregate::Quantile { millionths }, true) => {
                        Aggregate::Quantile { millionths: 1_000_000 - millionths }
                    }
                    (Aggregate::PercentileDisc { .. }, true) => {
                        return Err(unsupported("WITHIN GROUP in descending order", call));
                    }
                    (function, _) => function,
                }
            }
            // As the standard has `listagg(text, separator) WITHIN GROUP (ORDER BY key)`.
            (Aggregate::StringAgg, Some(last), is_only) => {
                let (text, separator) = match is_only {
                    true => (last, Expr::literal("")),
                    false => (operands.remove(0), last),
                };
                let second = OrderBy { expr: separator, descending: false, nulls_first: None };
                keys.insert(0, second);
                let operand = Some(Box::new(text));
                return Ok(Expr::Aggregate { function, operand, distinct, order: keys });
            }
            _ => return Err(unsupported("WITHIN GROUP here", call)),
        };
        Ok(Expr::Aggregate { function, operand, distinct, order: Vec::new() })
    }

    /// The quantile of a constant part, from 0 to 1.
    fn part(&self, function: Aggregate, part: &Expr) -> Result<Aggregate> {
        let value = match part {
            Expr::Literal(Value::Int(v)) => Some(*v as f64),
            Expr::Literal(Value::Decimal(v)) => Some(v.to_f64()),
            Expr::Literal(Value::Float(v)) => Some(*v),
            _ => None,
        };
        value.and_then(|part| function.with_part(part)).ok_or_else(|| {
            let name = function.name();
            Error::invalid(format!("{name}: expected a part from 0 to 1, found `{part}`"))
        })
    }
}

fn wrong_count(call: &ast::Function, function: Aggregate) -> Error {
    let (name, count) = (function.name(), if function.takes_second() { "two" } else { "one" });
    let operands = if count == "two" { "operands" } else { "operand" };
    Error::invalid(format!("{name} takes {count} {operands}, found `{call}`"))
}
