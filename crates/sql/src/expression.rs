//! Expressions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use esker_format::Value;
use esker_format::event_id::{event_id_text, parse_event_id};
use esker_format::schema::{EVENT_ID_NAME, ROW_ID_NAME};
use esker_query::model::{
    EXPR_DEPTH_MAX as DEPTH_MAX, Expr, Function, Operator, Parameter, SelectItem, TableCall, Window,
};
use sqlparser::ast;

use crate::collation::{self, GroupedText};
use crate::pattern_list::{self, Matching};
use crate::qualified_name::without_schema;
use crate::statement::unsupported;
use crate::{Error, Result, list_query, literal, type_name};

/// The names of a statement's parameters, by position.
pub(crate) type ParameterNames = Arc<[String]>;

/// What the table may be called in qualified names, and the parameters.
#[derive(Debug)]
pub(crate) struct Names {
    tables: Vec<String>,
    /// Tables with the schema that is written before them.
    whole: Vec<String>,
    parameters: ParameterNames,
    /// The names of select items, where they may stand for these.
    aliases: Vec<String>,
    /// The windows of the clause WINDOW.
    pub(crate) windows: Vec<(String, Window)>,
    /// Whether a select item with a collation is a key that rows are grouped by.
    pub(crate) groups_texts: bool,
    /// The texts among the select items that rows are grouped by the keys of, and those that
    /// GROUP BY names.
    pub(crate) shown_texts: Vec<GroupedText>,
    pub(crate) grouped_texts: Vec<GroupedText>,
    /// How deep the expression at hand lies in others.
    depth: Cell<usize>,
    /// Where functions may make rows: the calls of those that do.
    calls: Option<RefCell<Vec<TableCall>>>,
}

impl Names {
    pub(crate) fn new(tables: Vec<String>, parameters: &ParameterNames) -> Self {
        let (parameters, aliases) = (Arc::clone(parameters), Vec::new());
        Self {
            tables,
            whole: Vec::new(),
            parameters,
            aliases,
            windows: Vec::new(),
            groups_texts: false,
            shown_texts: Vec::new(),
            grouped_texts: Vec::new(),
            depth: Cell::new(0),
            calls: None,
        }
    }

    /// The same for tables that are written with their schema before them.
    pub(crate) fn with_whole(self, whole: Vec<String>) -> Self {
        Self { whole, ..self }
    }

    /// For clauses in which the name of a select item stands for it.
    pub(crate) fn beside(self, select: &[SelectItem]) -> Self {
        Self { aliases: select.iter().filter_map(|item| item.alias.clone()).collect(), ..self }
    }

    /// The same where functions may make rows, which [`Self::take_calls`] has.
    pub(crate) fn making_rows(self) -> Self {
        Self { calls: Some(RefCell::default()), ..self }
    }

    /// The calls that make rows; from here on there are no others.
    pub(crate) fn take_calls(&mut self) -> Vec<TableCall> {
        // default: there are none where none may be
        self.calls.take().map(RefCell::into_inner).unwrap_or_default()
    }

    /// How many calls that make rows were noted.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.as_ref().map_or(0, |calls| calls.borrow().len())
    }

    /// Notes a call that makes rows, and tells its place among all; `None` where it may not stand.
    pub(crate) fn note_call(&self, call: TableCall) -> Option<usize> {
        let mut calls = self.calls.as_ref()?.borrow_mut();
        calls.push(call);
        Some(calls.len() - 1)
    }

    /// Turns a parsed expression into the model's.
    pub(crate) fn convert(&self, expr: &ast::Expr) -> Result<Expr> {
        // Parentheses are no level of their own.
        let mut expr = expr;
        while let ast::Expr::Nested(inner) = expr {
            expr = inner;
        }
        let depth = self.depth.get();
        if depth >= DEPTH_MAX {
            let message = format!("an expression nests too deep: at most {DEPTH_MAX} levels");
            return Err(Error::invalid(message));
        }
        self.depth.set(depth + 1);
        let converted = self.convert_shallow(expr);
        self.depth.set(depth);
        converted
    }

    fn convert_shallow(&self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Identifier(name) => Ok(Expr::Field(name.value.clone())),
            E::CompoundIdentifier(names) => self.qualified(names, expr),
            E::Value(value) => match &value.value {
                ast::Value::Placeholder(name) => self.parameter(name),
                value => literal::convert(value, false).map(Expr::Literal),
            },
            E::TypedString(string) => literal::typed(string).map(Expr::Literal),
            E::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            E::UnaryOp { op, expr: operand } => self.unary(expr, op, operand),
            E::IsNull(operand) => self.apply(Operator::IsNull, &[operand]),
            E::IsNotNull(operand) => self.apply(Operator::IsNotNull, &[operand]),
            E::IsTrue(operand) => self.is_known(operand, true),
            E::IsFalse(operand) => self.is_known(operand, false),
            E::IsNotTrue(operand) => self.is_known(operand, true).map(not),
            E::IsNotFalse(operand) => self.is_known(operand, false).map(not),
            E::InList { expr: operand, list, negated } => {
                self.among(if *negated { Operator::NotIn } else { Operator::In }, operand, list)
            }
            E::Tuple(values) => {
                values.iter().map(|e| self.convert(e)).collect::<Result<_>>().map(Expr::Row)
            }
            E::Between { expr: operand, negated, low, high } => {
                let operator = if *negated { Operator::NotBetween } else { Operator::Between };
                self.apply(operator, &[operand, low, high])
            }
            E::Like { negated, any, expr: text, pattern, escape_char } => {
                self.pattern((false, *negated, *any), text, pattern, escape_char.as_deref())
            }
            E::ILike { negated, any, expr: text, pattern, escape_char } => {
                self.pattern((true, *negated, *any), text, pattern, escape_char.as_deref())
            }
            E::RLike { negated, expr: operand, pattern, .. } => {
                let found = self.regular(operand, pattern, false)?;
                Ok(if *negated { not(found) } else { found })
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Cast { kind, expr: operand, data_type, format: None, .. } => {
                let name = data_type;
                let data_type = type_name::convert(name)?;
                if type_name::length(name, data_type)?.is_some() {
                    return Err(unsupported("a length in CAST", expr));
                }
                let operand = self.convert(operand)?;
                Ok(match kind {
                    ast::CastKind::TryCast | ast::CastKind::SafeCast => {
                        let name = Expr::literal(data_type.to_string());
                        Expr::call(Function::TryCast, [operand, name])
                    }
                    _ => Expr::Cast(Box::new(operand), data_type),
                })
            }
            E::IsDistinctFrom(left, right) => self.is_same(left, right).map(not),
            E::IsNotDistinctFrom(left, right) => self.is_same(left, right),
            E::Function(function) if let Some(query) = list_query::of(function) => {
                self.list_of(query)
            }
            E::Function(function) => self.function(function),
            E::Collate { expr: text, collation } => self.beside_nothing(text, collation),
            E::Interval(interval) => self.interval(interval),
            _ if asks(expr) => crate::relation::subquery(expr, self),
            other => self.special(other),
        }
    }

    fn parameter(&self, name: &str) -> Result<Expr> {
        let position = self.parameters.iter().position(|known| known == name);
        let position = position.and_then(|at| u32::try_from(at).ok());
        let position =
            position.ok_or_else(|| Error::invalid(format!("unknown parameter {name}")))?;
        Ok(Expr::Parameter(Parameter { position, name: name.to_owned() }))
    }

    /// Equal, or both NULL.
    fn is_same(&self, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let [left, right] = <[Expr; 2]>::try_from(self.compared(&[left, right])?)
            .map_err(|_| Error::invalid("expected two operands"))?;
        let is_null = |e: &Expr| Expr::Apply(Operator::IsNull, vec![e.clone()]);
        let both_null = is_null(&left).and(is_null(&right));
        let same = left.binary(Operator::Eq, right);
        Ok(Expr::call(Function::Coalesce, [same, both_null]))
    }

    fn qualified(&self, names: &[ast::Ident], expr: &ast::Expr) -> Result<Expr> {
        let joined = |names: &[ast::Ident]| {
            names.iter().map(|name| name.value.as_str()).collect::<Vec<_>>().join(".")
        };
        let is_whole = |schema: &ast::Ident, table: &ast::Ident| {
            let said = format!("{}.{}", schema.value, table.value);
            self.whole.iter().any(|whole| whole.eq_ignore_ascii_case(&said))
        };
        let names = match names {
            [schema, table, _, ..] if is_whole(schema, table) => {
                names.get(1..).unwrap_or_default() // default: there are three at least
            }
            names => names,
        };
        match without_schema(names, !self.tables.is_empty(), &|name| self.is_table(name)) {
            [table, path @ ..] if !path.is_empty() && self.is_table(&table.value) => {
                let (name, field) = (joined(path), Expr::Field(joined(path)));
                // A name with its table's is a field's, never that of a select item.
                let is_alias = self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(&name));
                Ok(match is_alias {
                    true => Expr::call(Function::Coalesce, [field]),
                    false => field,
                })
            }
            // A path into a field of JSON, or a field of the new row, `excluded`: binding knows.
            names @ [_, _, ..] => Ok(Expr::Field(joined(names))),
            _ => Err(unsupported("a path", expr)),
        }
    }

    pub(crate) fn parameters(&self) -> &ParameterNames {
        &self.parameters
    }

    /// Whether names are of one table, by which it may be called.
    pub(crate) fn has_one_table(&self) -> bool {
        !self.tables.is_empty()
    }

    pub(crate) fn is_table(&self, name: &str) -> bool {
        self.tables.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn apply(&self, operator: Operator, operands: &[&ast::Expr]) -> Result<Expr> {
        let operands = match collation::is_compared(operator) {
            true => self.compared(operands)?,
            false => operands.iter().map(|e| self.convert(e)).collect::<Result<Vec<_>>>()?,
        };
        if operands.iter().any(|operand| matches!(operand, Expr::Row(_))) {
            return rows(operator, operands);
        }
        Ok(event_with_id(operator, &operands).unwrap_or(Expr::Apply(operator, operands)))
    }

    /// `value = ANY (ARRAY[…])`.
    pub(crate) fn compared_with_any(
        &self,
        operator: Operator,
        value: &ast::Expr,
        list: &[ast::Expr],
    ) -> Result<Expr> {
        match operator {
            _ if list.is_empty() => Ok(Expr::literal(false)),
            Operator::Eq => self.among(Operator::In, value, list),
            _ => Ok(Expr::Apply(Operator::Or, self.compared_with_each(operator, value, list)?)),
        }
    }

    /// `value <> ALL (ARRAY[…])`.
    pub(crate) fn compared_with_all(
        &self,
        operator: Operator,
        value: &ast::Expr,
        list: &[ast::Expr],
    ) -> Result<Expr> {
        match operator {
            _ if list.is_empty() => Ok(Expr::literal(true)),
            Operator::Neq => self.among(Operator::NotIn, value, list),
            _ => Ok(Expr::Apply(Operator::And, self.compared_with_each(operator, value, list)?)),
        }
    }

    fn among(&self, operator: Operator, value: &ast::Expr, list: &[ast::Expr]) -> Result<Expr> {
        let operands: Vec<_> = std::iter::once(value).chain(list).collect();
        self.apply(operator, &operands)
    }

    fn compared_with_each(
        &self,
        operator: Operator,
        value: &ast::Expr,
        list: &[ast::Expr],
    ) -> Result<Vec<Expr>> {
        list.iter().map(|other| self.apply(operator, &[value, other])).collect()
    }

    fn is_known(&self, operand: &ast::Expr, truth: bool) -> Result<Expr> {
        let operand = self.convert(operand)?;
        let operand = if truth { operand } else { not(operand) };
        Ok(Expr::call(Function::Coalesce, [operand, Expr::literal(false)]))
    }

    fn binary(
        &self,
        expr: &ast::Expr,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Expr> {
        use ast::BinaryOperator as B;
        let operator = match op {
            B::Plus => Operator::Add,
            B::Minus => Operator::Subtract,
            B::Multiply => Operator::Multiply,
            B::Divide => Operator::Divide,
            B::Modulo => Operator::Remainder,
            B::StringConcat => Operator::Concat,
            B::Eq => Operator::Eq,
            B::NotEq => Operator::Neq,
            B::Lt => Operator::Lt,
            B::LtEq => Operator::Lte,
            B::Gt => Operator::Gt,
            B::GtEq => Operator::Gte,
            B::Arrow | B::LongArrow => {
                let function = if *op == B::Arrow { Function::JsonGet } else { Function::JsonText };
                return Ok(Expr::Call(function, vec![self.convert(left)?, self.convert(right)?]));
            }
            B::HashArrow | B::HashLongArrow => {
                return self.part_by_path(left, right, *op == B::HashLongArrow);
            }
            B::PGExp
            | B::BitwiseAnd
            | B::BitwiseOr
            | B::PGBitwiseXor
            | B::PGBitwiseShiftLeft
            | B::PGBitwiseShiftRight => {
                let function = match op {
                    B::PGExp => Function::Power,
                    B::BitwiseAnd => Function::BitAnd,
                    B::BitwiseOr => Function::BitOr,
                    B::PGBitwiseXor => Function::BitXor,
                    B::PGBitwiseShiftLeft => Function::BitShiftLeft,
                    _ => Function::BitShiftRight,
                };
                return Ok(Expr::Call(function, vec![self.convert(left)?, self.convert(right)?]));
            }
            B::AtArrow | B::PGOverlap => {
                let is_overlap = *op == B::PGOverlap;
                let function = if is_overlap { Function::ListHasAny } else { Function::ListHasAll };
                return Ok(Expr::Call(function, vec![self.convert(left)?, self.convert(right)?]));
            }
            B::ArrowAt => {
                let operands = vec![self.convert(right)?, self.convert(left)?];
                return Ok(Expr::Call(Function::ListHasAll, operands));
            }
            B::And | B::Or => return self.chain(expr, op),
            B::PGRegexMatch => return self.regular(left, right, false),
            B::PGRegexIMatch => return self.regular(left, right, true),
            B::PGRegexNotMatch => return self.regular(left, right, false).map(not),
            B::PGRegexNotIMatch => return self.regular(left, right, true).map(not),
            other => return Err(unsupported(&format!("operator {other}"), expr)),
        };
        self.apply(operator, &[left, right])
    }

    /// Whether a regular expression is found in a text.
    pub(crate) fn regular(
        &self,
        text: &ast::Expr,
        expression: &ast::Expr,
        any_case: bool,
    ) -> Result<Expr> {
        let mut operands = vec![self.convert(text)?, self.convert(expression)?];
        operands.extend(any_case.then(|| Expr::literal("i")));
        Ok(Expr::Call(Function::RegexpLike, operands))
    }

    /// `a AND b AND c …` as one operator with all operands: chains may be long, and the parser
    /// nests them to the left.
    fn chain(&self, expr: &ast::Expr, op: &ast::BinaryOperator) -> Result<Expr> {
        let mut operands = Vec::new();
        let mut rest = expr;
        loop {
            match rest {
                ast::Expr::BinaryOp { left, op: same, right } if same == op => {
                    operands.push(self.convert(right)?);
                    rest = left;
                }
                first => {
                    operands.push(self.convert(first)?);
                    break;
                }
            }
        }
        operands.reverse();
        let is_and = *op == ast::BinaryOperator::And;
        Ok(Expr::Apply(if is_and { Operator::And } else { Operator::Or }, operands))
    }

    fn unary(
        &self,
        expr: &ast::Expr,
        op: &ast::UnaryOperator,
        operand: &ast::Expr,
    ) -> Result<Expr> {
        match (op, operand) {
            (ast::UnaryOperator::Minus, ast::Expr::Value(value))
                if !matches!(value.value, ast::Value::Placeholder(_) | ast::Value::Null) =>
            {
                literal::convert(&value.value, true).map(Expr::Literal)
            }
            (ast::UnaryOperator::Minus, operand) => self.apply(Operator::Negate, &[operand]),
            (ast::UnaryOperator::Plus, operand) => self.convert(operand),
            (ast::UnaryOperator::Not, operand) => self.apply(Operator::Not, &[operand]),
            (ast::UnaryOperator::PGSquareRoot, operand) => self.called(Function::Sqrt, operand),
            (ast::UnaryOperator::PGCubeRoot, operand) => self.called(Function::Cbrt, operand),
            (ast::UnaryOperator::BitwiseNot, operand) => self.called(Function::BitNot, operand),
            (ast::UnaryOperator::PGAbs, operand) => self.called(Function::Abs, operand),
            (ast::UnaryOperator::PGPostfixFactorial | ast::UnaryOperator::PGPrefixFactorial, _) => {
                Err(unsupported("the factorial", expr))
            }
            _ => Err(unsupported("this operator", expr)),
        }
    }

    /// A function of one operand.
    fn called(&self, function: Function, operand: &ast::Expr) -> Result<Expr> {
        Ok(Expr::Call(function, vec![self.convert(operand)?]))
    }

    /// `LIKE` and `ILIKE`, with one pattern, or with a list of them.
    fn pattern(
        &self,
        (any_case, negated, any): (bool, bool, bool),
        text: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let quantified = match any {
            true => Some((true, pattern)),
            false => pattern_list::quantified(pattern),
        };
        match (quantified, escape) {
            (None, _) => {
                let operator = match (any_case, negated) {
                    (false, false) => Operator::Like,
                    (false, true) => Operator::NotLike,
                    (true, false) => Operator::Ilike,
                    (true, true) => Operator::NotIlike,
                };
                self.like(operator, text, pattern, escape)
            }
            (Some((is_any, list)), None) => {
                self.matched_with_list(Matching::like(any_case, negated), is_any, text, list)
            }
            (Some(_), Some(escape)) => Err(unsupported("ESCAPE behind a list of patterns", escape)),
        }
    }

    pub(crate) fn like(
        &self,
        operator: Operator,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let operands: Vec<_> = [operand, pattern].into_iter().chain(escape).collect();
        self.apply(operator, &operands)
    }

    fn case(
        &self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let operand = operand.map(|e| self.collated(e)).transpose()?;
        let mut operands = Vec::with_capacity(conditions.len() * 2 + 1);
        for ast::CaseWhen { condition, result } in conditions {
            operands.push(match &operand {
                Some(operand) => {
                    let sides = vec![operand.clone(), self.collated(condition)?];
                    Expr::Apply(Operator::Eq, collation::compared(sides)?)
                }
                None => self.convert(condition)?,
            });
            operands.push(self.convert(result)?);
        }
        operands.extend(otherwise.map(|e| self.convert(e)).transpose()?);
        Ok(Expr::Apply(Operator::Case, operands))
    }
}

/// Whether a query stands in it, one level down.
fn asks(expr: &ast::Expr) -> bool {
    use ast::Expr as E;
    let is_query = matches!(expr, E::Subquery(_) | E::Exists { .. } | E::InSubquery { .. });
    is_query || matches!(expr, E::AnyOp { .. } | E::AllOp { .. })
}

fn not(operand: Expr) -> Expr {
    Expr::Apply(Operator::Not, vec![operand])
}

/// A comparison of rows as one of their values.
fn rows(operator: Operator, operands: Vec<Expr>) -> Result<Expr> {
    use Operator::{Between, Eq, Gte, In, Lte, NotBetween, NotIn};
    let mut rows = operands.into_iter().map(Expr::into_row);
    let mut next = || rows.next().ok_or_else(|| Error::invalid("expected a row, found nothing"));
    let first = next()?;
    match operator {
        In | NotIn => {
            let same = rows.map(|row| Expr::compare_rows(Eq, first.clone(), row));
            let mut same = same.collect::<Result<Vec<_>>>()?;
            let any = match same.len() {
                1 => same.remove(0),
                _ => Expr::Apply(Operator::Or, same),
            };
            Ok(if operator == In { any } else { not(any) })
        }
        Between | NotBetween => {
            let (low, high) = (next()?, next()?);
            let low = Expr::compare_rows(Gte, first.clone(), low)?;
            let within = low.and(Expr::compare_rows(Lte, first, high)?);
            Ok(if operator == Between { within } else { not(within) })
        }
        _ => {
            let other = next()?;
            Expr::compare_rows(operator, first, other)
        }
    }
}

/// `id(events) = 'TEXT'`, however its letters are written, with what finds the row: its row id.
fn event_with_id(operator: Operator, operands: &[Expr]) -> Option<Expr> {
    let (Operator::Eq, [one, other]) = (operator, operands) else { return None };
    let text = match (one, other) {
        (Expr::Field(name), Expr::Literal(Value::Text(text)))
        | (Expr::Literal(Value::Text(text)), Expr::Field(name))
            if name == EVENT_ID_NAME =>
        {
            text
        }
        _ => return None,
    };
    let (time_ms, row_id) = parse_event_id(text)?;
    let is =
        |name: &str, value: Value| Expr::field(name).binary(Operator::Eq, Expr::Literal(value));
    let event = is(EVENT_ID_NAME, Value::Text(event_id_text(time_ms, row_id)));
    Some(event.and(is(ROW_ID_NAME, Value::Uint(row_id))))
}
