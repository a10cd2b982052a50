//! Calls of functions, and the words that the standard has for some of them.

use esker_format::Value;
use esker_query::model::{Aggregate, Expr, Function};
use sqlparser::ast;

use crate::expression::Names;
use crate::interval;
use crate::select::order_keys;
use crate::statement::unsupported;
use crate::{Error, Result};

impl Names {
    /// `EXTRACT`, `SUBSTRING … FROM`, `TRIM … FROM`, `POSITION … IN`, `CEIL` and `FLOOR`, which the
    /// grammar has apart.
    pub(crate) fn special(&self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Extract { field, expr: operand, .. } => {
                let unit = Expr::literal(field.to_string().to_lowercase());
                Ok(Expr::call(Function::DatePart, [unit, self.convert(operand)?]))
            }
            E::Ceil { expr: operand, field } if is_plain(field) => {
                Ok(Expr::call(Function::Ceil, [self.convert(operand)?]))
            }
            E::Floor { expr: operand, field } if is_plain(field) => {
                Ok(Expr::call(Function::Floor, [self.convert(operand)?]))
            }
            E::Position { expr: part, r#in: text } => {
                Ok(Expr::call(Function::Strpos, [self.convert(text)?, self.convert(part)?]))
            }
            E::Substring { expr: text, substring_from, substring_for, .. } => {
                let mut operands = vec![self.convert(text)?];
                match substring_from {
                    Some(from) => operands.push(self.convert(from)?),
                    None if substring_for.is_some() => operands.push(Expr::literal(1i64)),
                    None => {}
                }
                if let Some(count) = substring_for {
                    operands.push(self.convert(count)?);
                }
                Ok(Expr::Call(Function::Substr, operands))
            }
            E::Trim { trim_where, trim_what, expr: text, trim_characters } => {
                let function = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => Function::Trim,
                    Some(ast::TrimWhereField::Leading) => Function::Ltrim,
                    Some(ast::TrimWhereField::Trailing) => Function::Rtrim,
                };
                let mut operands = vec![self.convert(text)?];
                for characters in
                    trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten())
                {
                    operands.push(self.convert(characters)?);
                }
                Ok(Expr::Call(function, operands))
            }
            other => Err(unsupported("this expression", other)),
        }
    }

    /// A moment and an interval.
    pub(crate) fn shifted(
        &self,
        moment: &ast::Expr,
        interval: &ast::Interval,
        is_back: bool,
    ) -> Result<Expr> {
        let (months, us) = interval::parse(interval)?;
        let signed = |v: i64| {
            let v = if is_back { v.checked_neg() } else { Some(v) };
            v.map(Expr::literal).ok_or_else(|| interval::bad(interval))
        };
        let operands = [self.convert(moment)?, signed(months)?, signed(us)?];
        Ok(Expr::call(Function::DateAdd, operands))
    }

    pub(crate) fn function(&self, function: &ast::Function) -> Result<Expr> {
        let name = function.name.to_string();
        let extras = [
            ("OVER", function.over.is_some()),
            ("WITHIN GROUP", !function.within_group.is_empty()),
            ("NULLS", function.null_treatment.is_some()),
            ("the ODBC syntax", function.uses_odbc_syntax),
            ("a list of parameters", function.parameters != ast::FunctionArguments::None),
        ];
        if let Some((what, _)) = extras.iter().find(|(_, found)| *found) {
            return Err(unsupported(what, function));
        }
        let list = match &function.args {
            ast::FunctionArguments::List(list) => list,
            // CURRENT_DATE and its like.
            ast::FunctionArguments::None => match Function::from_name(&name) {
                Some(scalar) => return Ok(Expr::Call(scalar, Vec::new())),
                None => return Err(unknown_function(&name)),
            },
            ast::FunctionArguments::Subquery(_) => return Err(unsupported("this call", function)),
        };
        let order = match list.clauses.as_slice() {
            [] => Vec::new(),
            [ast::FunctionArgumentClause::OrderBy(keys)] => order_keys(keys, None, self)?,
            _ => return Err(unsupported("a clause inside a call", function)),
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        if let Some(aggregate) = Aggregate::from_name(&name) {
            let aggregate = self.aggregate(function, aggregate, &list.args, distinct)?;
            let aggregate = aggregate.in_order(order);
            let Some(filter) = &function.filter else { return Ok(aggregate) };
            return Ok(aggregate.filtered(self.convert(filter)?));
        }
        if function.filter.is_some() {
            return Err(unsupported("FILTER here", function));
        }
        if !order.is_empty() {
            return Err(unsupported("ORDER BY here", function));
        }
        let scalar = Function::from_name(&name).ok_or_else(|| unknown_function(&name))?;
        if list.duplicate_treatment.is_some() {
            return Err(unsupported("DISTINCT here", function));
        }
        let operand = |argument: &ast::FunctionArg| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => self.convert(expr),
            other => Err(unsupported("this argument", other)),
        };
        let operands = list.args.iter().map(operand).collect::<Result<_>>()?;
        Ok(Expr::Call(scalar, operands))
    }

    fn aggregate(
        &self,
        call: &ast::Function,
        mut function: Aggregate,
        arguments: &[ast::FunctionArg],
        distinct: bool,
    ) -> Result<Expr> {
        let operand = match arguments {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]
                if function == Aggregate::Count && !distinct =>
            {
                None
            }
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr))] => {
                Some(Box::new(self.convert(expr)?))
            }
            [
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(part)),
            ] if matches!(function, Aggregate::Quantile { .. }) => {
                function = self.part(part)?;
                Some(Box::new(self.convert(expr)?))
            }
            _ => {
                let name = function.name();
                return Err(Error::invalid(format!("{name} takes one operand, found `{call}`")));
            }
        };
        Ok(Expr::Aggregate { function, operand, distinct, order: Vec::new() })
    }

    /// The quantile of a constant part, from 0 to 1.
    fn part(&self, part: &ast::Expr) -> Result<Aggregate> {
        let value = match self.convert(part)? {
            Expr::Literal(Value::Int(v)) => Some(v as f64),
            Expr::Literal(Value::Decimal(v)) => Some(v.to_f64()),
            Expr::Literal(Value::Float(v)) => Some(v),
            _ => None,
        };
        value.and_then(Aggregate::quantile).ok_or_else(|| {
            Error::invalid(format!("quantile: expected a part from 0 to 1, found `{part}`"))
        })
    }
}

/// Without a field or a scale.
fn is_plain(kind: &ast::CeilFloorKind) -> bool {
    matches!(kind, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime))
}

/// The error for a name that no function has, with the names that are like it.
fn unknown_function(name: &str) -> Error {
    let aggregates = Aggregate::ALL.into_iter().map(Aggregate::name);
    let known = aggregates.chain(Function::names());
    let near = esker_format::suggest::did_you_mean(name, known);
    Error::invalid(format!("unknown function {name}{near}"))
}
