//! Calls of functions, and the words that the standard has for some of them.

use esker_format::DataType;
use esker_format::schema::EVENT_ID_NAME;
use esker_query::model::{Aggregate, Expr, Function, Operator};
use sqlparser::ast;

use crate::expression::Names;
use crate::statement::unsupported;
use crate::{
    Error, Result, aggregate_in_words, group, interval, looked_up, table_function, window,
};

impl Names {
    /// `EXTRACT`, `SUBSTRING … FROM`, `TRIM … FROM`, `POSITION … IN`, `CEIL` and `FLOOR`, which the
    /// grammar has apart, and `SIMILAR TO`.
    pub(crate) fn special(&self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Extract { field, expr: operand, .. } => {
                let unit = Expr::literal(field.to_string().to_lowercase());
                Ok(Expr::call(Function::DatePart, [unit, self.convert(operand)?]))
            }
            E::Array(list) => self.list(list),
            E::CompoundFieldAccess { root, access_chain } => {
                if let E::Function(function) = &**root
                    && looked_up::is_lookup(function)
                {
                    return self.looked_up(function, access_chain);
                }
                self.part_of_list(root, access_chain, expr)
            }
            E::AtTimeZone { timestamp, time_zone } => {
                let operands = [self.convert(time_zone)?, self.convert(timestamp)?];
                Ok(Expr::call(Function::Timezone, operands))
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
            E::SimilarTo { negated, expr: text, pattern, escape_char } => {
                let similar = self.similar(text, pattern, escape_char.as_deref())?;
                Ok(if *negated { Expr::Apply(Operator::Not, vec![similar]) } else { similar })
            }
            other => Err(unsupported("this expression", other)),
        }
    }

    pub(crate) fn function(&self, function: &ast::Function) -> Result<Expr> {
        let name = function.name.to_string();
        let aggregate = Aggregate::from_name(&name);
        let is_plain =
            !function.uses_odbc_syntax && function.parameters == ast::FunctionArguments::None;
        if let (Some(over), true) = (&function.over, is_plain) {
            return self.windowed(function, over);
        }
        let extras = [
            ("OVER", function.over.is_some()),
            ("WITHIN GROUP", !function.within_group.is_empty() && aggregate.is_none()),
            ("NULLS", function.null_treatment.is_some()),
            ("the ODBC syntax", function.uses_odbc_syntax),
            ("a list of parameters", function.parameters != ast::FunctionArguments::None),
        ];
        if let Some((what, _)) = extras.iter().find(|(_, found)| *found) {
            return Err(unsupported(what, function));
        }
        window::expect_over(&name)?;
        if looked_up::is_lookup(function) {
            return Err(looked_up::without_field(function));
        }
        if group::is_grouping(&name) {
            return self.grouping(function);
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
        if let Some(expr) = self.aggregate_in_words(function, list)? {
            return Ok(expr);
        }
        if let Some(aggregate) = aggregate {
            let aggregate = self.aggregate(function, aggregate, list)?;
            let Some(filter) = &function.filter else { return Ok(aggregate) };
            return Ok(aggregate.filtered(self.convert(filter)?));
        }
        if function.filter.is_some() {
            return Err(unsupported("FILTER here", function));
        }
        match list.clauses.as_slice() {
            [] => {}
            [ast::FunctionArgumentClause::OrderBy(_)] => {
                return Err(unsupported("ORDER BY here", function));
            }
            _ => return Err(unsupported("a clause inside a call", function)),
        }
        if let Some(expr) = self.in_other_words(&name, &list.args)? {
            return Ok(expr);
        }
        if let Some(row) = table_function::in_select(function, &list.args, self)? {
            return Ok(row);
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

    /// `id(events)`: the id of the event at hand.
    fn event_id(&self, table: &str) -> Result<Expr> {
        match self.has_one_table() {
            true if self.is_table(table) => Ok(Expr::field(EVENT_ID_NAME)),
            true => {
                let message = format!("id({table}): expected what the stream is called here");
                Err(Error::invalid(message))
            }
            false => Ok(Expr::Field(format!("{table}.{EVENT_ID_NAME}"))),
        }
    }

    /// A call that is another expression: `date_add(moment, INTERVAL …)`, `if(condition, a, b)`.
    fn in_other_words(&self, name: &str, args: &[ast::FunctionArg]) -> Result<Option<Expr>> {
        use ast::{FunctionArg as A, FunctionArgExpr as E};
        let is = |known: &[&str]| known.iter().any(|k| k.eq_ignore_ascii_case(name));
        match args {
            [A::Unnamed(E::Expr(moment)), A::Unnamed(E::Expr(interval))]
                if is(&["date_add", "date_sub"]) =>
            {
                let operator = if is(&["date_sub"]) { Operator::Subtract } else { Operator::Add };
                let interval = Expr::Cast(Box::new(self.convert(interval)?), DataType::Interval);
                Ok(Some(self.convert(moment)?.binary(operator, interval)))
            }
            [A::Unnamed(E::Expr(ast::Expr::Identifier(table)))] if is(&["id"]) => {
                self.event_id(&table.value).map(Some)
            }
            args if is(&["make_interval"]) && args.iter().any(is_named) => {
                self.made_interval(args).map(Some)
            }
            [A::Unnamed(E::Expr(ast::Expr::Interval(interval))), moments @ ..]
                if is(&["date_bin", "time_bucket"]) =>
            {
                let (months, us) = interval::months_and_us(interval)?;
                if months != 0 {
                    let message = format!("{name}: expected an interval without months");
                    return Err(Error::invalid(message));
                }
                let mut operands = vec![Expr::literal(us)];
                for moment in moments {
                    let A::Unnamed(E::Expr(moment)) = moment else {
                        return Err(unsupported("this argument", moment));
                    };
                    operands.push(self.convert(moment)?);
                }
                Ok(Some(Expr::Call(Function::DateBin, operands)))
            }
            [A::Unnamed(E::Expr(condition)), A::Unnamed(E::Expr(then)), rest @ ..]
                if is(&["iif", "if"]) =>
            {
                let mut operands = vec![self.convert(condition)?, self.convert(then)?];
                match rest {
                    [] => {}
                    [A::Unnamed(E::Expr(otherwise))] => operands.push(self.convert(otherwise)?),
                    _ => {
                        let message = format!("{name} takes 2 to 3 operands, found {}", args.len());
                        return Err(Error::invalid(message));
                    }
                }
                Ok(Some(Expr::Apply(Operator::Case, operands)))
            }
            _ => Ok(None),
        }
    }
}

/// The names of the operands of `make_interval`.
const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

fn is_named(argument: &ast::FunctionArg) -> bool {
    matches!(argument, ast::FunctionArg::Named { .. })
}

impl Names {
    /// `make_interval(days => 10)`: the operands that are not named are in front, in their order.
    fn made_interval(&self, args: &[ast::FunctionArg]) -> Result<Expr> {
        let mut parts = PARTS.map(|_| None);
        for (i, argument) in args.iter().enumerate() {
            let (at, expr) = match argument {
                ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(expr), .. } => {
                    (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part)), expr)
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => {
                    if args.iter().take(i).any(is_named) {
                        return Err(Error::invalid(format!(
                            "make_interval: expected a name before {argument}, which is behind an \
                             operand with one"
                        )));
                    }
                    (Some(i), expr)
                }
                other => return Err(unsupported("this argument", other)),
            };
            let part = at.and_then(|at| parts.get_mut(at)).ok_or_else(|| {
                let known = PARTS.join(", ");
                Error::invalid(format!("make_interval takes {known}, found {argument}"))
            })?;
            if part.is_some() {
                let message = format!("make_interval: expected each part once, found {argument}");
                return Err(Error::invalid(format!("{message} beside another one of it")));
            }
            *part = Some(self.convert(expr)?);
        }
        // default: a part that is not given is zero
        let parts = parts.map(|part| part.unwrap_or_else(|| Expr::literal(0i64)));
        Ok(Expr::Call(Function::MakeInterval, parts.into()))
    }
}

/// Without a field or a scale.
fn is_plain(kind: &ast::CeilFloorKind) -> bool {
    matches!(kind, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime))
}

/// The error for a name that no function has, with the names that are like it.
fn unknown_function(name: &str) -> Error {
    let aggregates = Aggregate::ALL.into_iter().map(Aggregate::name);
    let known = aggregates.chain(Function::names()).chain(aggregate_in_words::names());
    let near = esker_format::suggest::did_you_mean(name, known);
    Error::invalid(format!("unknown function {name}{near}"))
}
