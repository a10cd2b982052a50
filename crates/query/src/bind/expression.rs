//! Resolving and typing expressions.

use std::sync::Arc;

use esker_format::{DataType, Value};
use esker_vfs::sabotage::Bug;

use super::day::{Day, is_date};
use super::function::call;
use super::parameter::value_of;
use super::scope::Scope;
use super::typing::{
    common_type, comparable_values, convert, is_written_as_text, make_comparable, typed,
};
use super::{decimal, interval, list};
use crate::bound::{Bound, Comparison, Node};
use crate::evaluate::constant;
use crate::model::{Answer, Expr, Function, Operator, Typing};
use crate::pattern::Pattern;
use crate::{Error, ErrorKind, Inputs, Limits, Result};

/// Resolves the names of an expression and checks its types. Constant parts are computed.
pub(crate) fn bind(expr: &Expr, scope: &mut dyn Scope) -> Result<Bound> {
    bind_as(expr, scope, false)
}

/// As [`bind`]; of what may never be evaluated, a constant part that cannot be computed stays as it
/// is.
fn bind_as(expr: &Expr, scope: &mut dyn Scope, is_optional: bool) -> Result<Bound> {
    if let Some(bound) = scope.resolve(expr)? {
        return Ok(bound);
    }
    let bound = match expr {
        Expr::Field(name) => return Err(scope.unknown_field(name)),
        Expr::Literal(value) => return Ok(Bound::literal(value.clone())),
        Expr::Parameter(parameter) => {
            return Ok(Bound::literal(value_of(parameter, scope.inputs())?.clone()));
        }
        Expr::Answer(answer) => return Ok(value_answered(answer)),
        Expr::Default
        | Expr::Item(_)
        | Expr::AllItems
        | Expr::AllFields(_)
        | Expr::Grouping(_)
        | Expr::Subquery { .. }
        | Expr::Lookup(_)
        | Expr::Row(_)
        | Expr::Aggregate { .. }
        | Expr::Window(_) => return Err(misplaced(expr)),
        Expr::Cast(operand, to) => {
            let operand = bind_as(operand, scope, is_optional)?;
            cast(operand, *to).map_err(|e| e.at(expr))?
        }
        Expr::Call(function, operands) => {
            let is_first_enough = *function == Function::Coalesce;
            let operands = bind_all(operands, scope, (is_optional, is_first_enough))?;
            call(*function, operands, scope.inputs()).map_err(|e| e.at(expr))?
        }
        Expr::Apply(operator, operands) => {
            let operator = scope.inputs().semantics.operator(*operator);
            let bound = bind_operator(operator, operands, scope, is_optional)?;
            bound.map_err(|e| e.at(expr))?
        }
    };
    // What is computed of typed constants is one.
    let mut is_typed = bound.is_typed;
    bound.operands(&mut |operand| is_typed |= operand.is_typed);
    match folded(bound, &scope.inputs().limits) {
        Err((bound, e)) if is_optional && is_of_the_value(&e) => Ok(bound),
        folded => {
            let folded = folded.map_err(|(_, e)| e.at(expr))?;
            let is_typed = is_typed && folded.as_literal().is_some();
            Ok(Bound { is_typed, ..folded })
        }
    }
}

/// The error for an expression that has a place elsewhere only.
fn misplaced(expr: &Expr) -> Error {
    Error::invalid(match expr {
        Expr::Default => "DEFAULT stands only as a whole value in VALUES".to_owned(),
        Expr::Item(place) => {
            format!("{place} stands for a column only as a whole key of GROUP BY or ORDER BY")
        }
        Expr::AllItems => "ALL stands only alone in GROUP BY and ORDER BY".to_owned(),
        Expr::AllFields(_) => format!("{expr} stands only as a whole select item"),
        Expr::Grouping(_) => format!("{expr} is not allowed here: there are no groups"),
        Expr::Subquery { .. } => format!("a subquery has no place here: {expr}"),
        Expr::Lookup(_) => format!(
            "{expr} has no place here: rows of other tables are looked up in queries, and for \
             fields that are generated and STORED"
        ),
        Expr::Row(_) => {
            format!(
                "{expr}: expected one value; rows stand only beside others in comparisons and IN"
            )
        }
        Expr::Aggregate { .. } => format!("{expr} is not allowed here: no rows to aggregate"),
        _ => format!(
            "{expr} is not allowed here: window functions stand in SELECT, ORDER BY and \
             QUALIFY only"
        ),
    })
}

/// True where what cannot be computed may be another matter for another row, or none.
fn is_of_the_value(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::OutOfRange | ErrorKind::OverBudget)
}

/// An expression, computed if it is constant; as it is, and why, where it cannot be computed.
fn folded(bound: Bound, limits: &Limits) -> std::result::Result<Bound, (Bound, Error)> {
    match constant(&bound, limits) {
        Ok(Some(value)) => Ok(Bound::new(Node::Literal(value), bound.data_type())),
        Ok(None) => Ok(bound),
        Err(error) => Err((bound, error)),
    }
}

/// Binds an operator; what it says of its operands is the inner error.
fn bind_operator(
    operator: Operator,
    operands: &[Expr],
    scope: &mut dyn Scope,
    is_optional: bool,
) -> Result<Result<Bound>> {
    if let (Operator::In, [operand, Expr::Answer(answer)]) = (operator, operands) {
        return bind_as(operand, scope, is_optional).map(|operand| among(operand, answer));
    }
    let entry = operator.entry();
    let is_constant = |operand: &Expr| matches!(operand, Expr::Literal(_));
    let is_list = matches!(operator, Operator::In | Operator::NotIn)
        && operands.iter().skip(1).all(is_constant);
    // Constants become one value, however many there are.
    let most = if is_list { usize::MAX } else { entry.operands_max };
    let least = entry.operands_min;
    if !(least..=most).contains(&operands.len()) {
        let (symbol, found) = (entry.symbol, operands.len());
        let want = if least == most { least.to_string() } else { format!("{least} to {most}") };
        return Err(Error::invalid(format!("{symbol} takes {want} operands, found {found}")));
    }
    // What decides AND and OR keeps the rest from being evaluated.
    let is_first_enough = matches!(entry.typing, Typing::Case | Typing::Logic);
    let operands = match operator {
        Operator::Concat => {
            let chain = chain(operands, scope)?;
            chain.into_iter().map(|operand| bind_as(operand, scope, is_optional)).collect()
        }
        _ => bind_all(operands, scope, (is_optional, is_first_enough)),
    };
    Ok(apply(operator, operands?, scope.inputs()))
}

/// The operands of `a || b || …`, which nests as `(a || b) || …`. What has a meaning of its own as
/// a whole, as a key of GROUP BY does, is one of them.
fn chain<'e>(operands: &'e [Expr], scope: &mut dyn Scope) -> Result<Vec<&'e Expr>> {
    let mut chain = Vec::new();
    let mut rest = operands;
    while let [left, right] = rest {
        chain.push(right);
        match left {
            Expr::Apply(Operator::Concat, inner) if scope.resolve(left)?.is_none() => rest = inner,
            _ => {
                chain.push(left);
                break;
            }
        }
    }
    chain.reverse();
    Ok(chain)
}

/// Binds operands: whether all of them may never be evaluated, or all but the first.
fn bind_all(
    operands: &[Expr],
    scope: &mut dyn Scope,
    (is_optional, is_first_enough): (bool, bool),
) -> Result<Vec<Bound>> {
    let operands = operands.iter().enumerate();
    operands.map(|(i, o)| bind_as(o, scope, is_optional || (is_first_enough && i > 0))).collect()
}

fn apply(operator: Operator, operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    match operator.entry().typing {
        Typing::Arithmetic => arithmetic(operator, pair(operands)?),
        Typing::Number => negate(operands),
        Typing::Comparison => comparison(operator, operands),
        Typing::Logic => logic(operator, operands),
        Typing::Pattern => pattern(operator, operands),
        Typing::Any => {
            let [operand] = exactly(operands)?;
            let operand = typed(operand, DataType::I64);
            let is_null = Bound::new(Node::IsNull(Box::new(operand)), DataType::Bool);
            Ok(if operator == Operator::IsNotNull { not(is_null) } else { is_null })
        }
        Typing::Text => concat(operands, inputs),
        Typing::Case => case(operands),
    }
}

fn exactly<const N: usize>(operands: Vec<Bound>) -> Result<[Bound; N]> {
    let found = operands.len();
    operands.try_into().map_err(|_| Error::invalid(format!("expected {N} operands, found {found}")))
}

fn pair(operands: Vec<Bound>) -> Result<(Bound, Bound)> {
    let [left, right] = exactly(operands)?;
    Ok((left, right))
}

/// Refuses an operand that is not of a wanted type; NULL is of every type.
pub(super) fn expect(
    operand: &Bound,
    wanted: &str,
    is_wanted: impl Fn(DataType) -> bool,
) -> Result<()> {
    match operand.data_type {
        Some(found) if !is_wanted(found) => {
            let constant = operand.as_literal().map_or(String::new(), |v| format!(" '{v}'"));
            Err(Error::invalid(format!("expected {wanted}, found {found}{constant}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn arithmetic(operator: Operator, (left, right): (Bound, Bound)) -> Result<Bound> {
    use DataType::{Date, F64, I64, Interval, Time, Timestamp};
    let make = |left, right, data_type| {
        let node = Node::Arithmetic(operator, Box::new(left), Box::new(right));
        Ok(Bound::new(node, data_type))
    };
    if interval::is_interval(&left) || interval::is_interval(&right) {
        return interval::arithmetic(operator, left, right);
    }
    if let Some((left, right)) = interval::beside_moment(operator, &left, &right)? {
        return arithmetic(operator, (left, right));
    }
    let is_integer = |b: &Bound| b.data_type.is_none_or(DataType::is_integer);
    let moment = |b: &Bound| b.data_type.filter(|t| matches!(t, Date | Timestamp));
    match (operator, moment(&left), moment(&right)) {
        (Operator::Add | Operator::Subtract, Some(moment), None) if is_integer(&right) => {
            return make(left, convert(right, I64)?, moment);
        }
        (Operator::Add, None, Some(moment)) if is_integer(&left) => {
            return make(right, convert(left, I64)?, moment);
        }
        (Operator::Subtract, Some(Date), Some(Date)) => return make(left, right, I64),
        (Operator::Subtract, ..) if [&left, &right].map(|b| b.data_type) == [Some(Time); 2] => {
            return make(left, right, Interval);
        }
        (Operator::Subtract, Some(_), Some(_)) => {
            return make(convert(left, Timestamp)?, convert(right, Timestamp)?, Interval);
        }
        // NULL, which may as well be a moment.
        (Operator::Subtract, None, Some(_)) if left.data_type.is_none() => {
            let of_days = right.data_type == Some(Date);
            return Ok(Bound { data_type: Some(if of_days { I64 } else { Interval }), ..left });
        }
        _ => {}
    }
    for operand in [&left, &right] {
        expect(operand, "a number", DataType::is_numeric)?;
    }
    let either =
        |is: fn(DataType) -> bool| [&left, &right].iter().any(|b| b.data_type.is_some_and(is));
    let either_float = either(DataType::is_float);
    let either_decimal = either(DataType::is_decimal);
    if either_decimal && !either_float && !operator.is_quotient() {
        let data_type = decimal::arithmetic(operator, &left, &right)?;
        return make(typed(left, I64), typed(right, I64), data_type);
    }
    let data_type = if either_float || either_decimal { F64 } else { I64 };
    make(convert(left, data_type)?, convert(right, data_type)?, data_type)
}

fn negate(operands: Vec<Bound>) -> Result<Bound> {
    let [operand] = exactly(operands)?;
    if interval::is_interval(&operand) {
        return Ok(Bound::new(Node::Negate(Box::new(operand)), DataType::Interval));
    }
    expect(&operand, "a number", DataType::is_numeric)?;
    let data_type = match operand.data_type {
        Some(decimal) if decimal.is_decimal() => decimal,
        Some(float) if float.is_float() => DataType::F64,
        _ => DataType::I64,
    };
    let operand = convert(operand, data_type)?;
    Ok(Bound::new(Node::Negate(Box::new(operand)), data_type))
}

/// A label as the text it is; anything else as it is.
pub(super) fn label_as_text(operand: Bound) -> Result<Bound> {
    match operand.data_type {
        Some(DataType::Enum) => convert(operand, DataType::Text),
        _ => Ok(operand),
    }
}

/// Anything as the text that it is written as; bytes where `data_type` says so.
pub(super) fn as_text(operand: Bound, data_type: DataType, limits: &Limits) -> Result<Bound> {
    match operand.data_type {
        None => Ok(typed(operand, data_type)),
        Some(found) if found == data_type => Ok(operand),
        Some(_) => {
            let cast = Bound::new(Node::Cast(Box::new(operand)), data_type);
            folded(cast, limits).map_err(|(_, e)| e)
        }
    }
}

/// Bytes and bytes, or the text of anything else: `a || b || …` as `(a || b) || …`.
fn concat(operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    let limits = &inputs.limits;
    let mut operands = operands.into_iter();
    let mut whole = operands.next().ok_or_else(|| Error::invalid("|| takes 2 operands"))?;
    for (i, right) in operands.enumerate() {
        if list::is_list(&whole) || list::is_list(&right) {
            whole = list::concat(whole, right, inputs)?;
            continue;
        }
        let both_bytes = whole.data_type.or(right.data_type) == Some(DataType::Bytes)
            && right.data_type.is_none_or(|t| t == DataType::Bytes);
        let data_type = if both_bytes { DataType::Bytes } else { DataType::Text };
        let right = as_text(right, data_type, limits)?;
        whole = match whole {
            // One that was written here goes on, however many there are.
            Bound { node: Node::Concat(mut before), data_type: Some(found), .. }
                if i > 0 && found == data_type =>
            {
                before.push(right);
                Bound::new(Node::Concat(before), data_type)
            }
            left => {
                let left = as_text(left, data_type, limits)?;
                Bound::new(Node::Concat(vec![left, right]), data_type)
            }
        };
    }
    Ok(whole)
}

fn comparison(operator: Operator, mut operands: Vec<Bound>) -> Result<Bound> {
    if let Some(comparison) = Comparison::from_operator(operator) {
        let (left, right) = pair(operands)?;
        return compare(comparison, left, right);
    }
    let first = operands.remove(0);
    match operator {
        Operator::In => in_list(first, operands),
        Operator::NotIn => in_list(first, operands).map(not),
        _ => {
            let (least, greatest) = pair(operands)?;
            let both = vec![
                compare(Comparison::Gte, first.clone(), least)?,
                compare(Comparison::Lte, first, greatest)?,
            ];
            let within = Bound::new(Node::And(both), DataType::Bool);
            Ok(if operator == Operator::Between { within } else { not(within) })
        }
    }
}

pub(super) fn compare(comparison: Comparison, left: Bound, right: Bound) -> Result<Bound> {
    match (Day::of(&left), Day::of(&right)) {
        (Some(moment), None) if is_date(&right) => {
            return Ok(moment.compare(comparison.mirrored(), right));
        }
        (None, Some(moment)) if is_date(&left) => return Ok(moment.compare(comparison, left)),
        _ => {}
    }
    let (left, right) = make_comparable(left, right)?;
    let node = if left.as_literal().is_some() {
        Node::Compare(comparison.mirrored(), Box::new(right), Box::new(left))
    } else {
        Node::Compare(comparison, Box::new(left), Box::new(right))
    };
    Ok(Bound::new(node, DataType::Bool))
}

/// Constants go into one list; NULL and what is not constant become equalities beside it.
pub(super) fn in_list(first: Bound, members: Vec<Bound>) -> Result<Bound> {
    let mut values = Vec::new();
    let mut any = Vec::new();
    let mut compared = first.clone();
    for member in members {
        let (left, right) = make_comparable(first.clone(), member.clone())?;
        match right.node {
            Node::Literal(value)
                if !value.is_null() && (left == first || interval::is_interval(&first)) =>
            {
                values.push(value);
                compared = left;
            }
            _ => any.push(compare(Comparison::Eq, first.clone(), member)?),
        }
    }
    values.sort();
    values.dedup();
    if any.is_empty() && values.is_empty() {
        // Nothing equals a member of an empty list, not even NULL perhaps.
        return Ok(Bound::literal(Value::Bool(false)));
    }
    if !values.is_empty() {
        any.push(Bound::new(Node::In(Box::new(compared), values), DataType::Bool));
    }
    Ok(match <[Bound; 1]>::try_from(any) {
        Ok([only]) => only,
        Err(any) => Bound::new(Node::Or(any), DataType::Bool),
    })
}

/// The one value that a subquery has answered.
fn value_answered(answer: &Answer) -> Bound {
    let node = match answer.as_unanswered() {
        Some(_) => Node::Unanswered,
        None => Node::Literal(answer.values().first().cloned().unwrap_or_default()),
    };
    let bound = Bound::new(node, answer.data_type());
    Bound { is_typed: true, ..bound.with_labels(answer.labels()) }
}

/// Whether an operand is one of the values that a subquery has answered.
fn among(operand: Bound, answer: &Answer) -> Result<Bound> {
    if answer.as_unanswered().is_some() {
        let unanswered = value_answered(answer);
        return compare(Comparison::Eq, operand, unanswered);
    }
    let column = (answer.values(), answer.data_type());
    let (operand, mut values) = comparable_values(operand, column, answer.labels())?;
    let has_null = values.iter().any(Value::is_null);
    values.retain(|value| !value.is_null());
    values.sort();
    values.dedup();
    let null = || Bound::new(Node::Literal(Value::Null), DataType::Bool);
    match (values.is_empty(), has_null) {
        (true, true) => Ok(null()),
        (true, false) => Ok(Bound::literal(Value::Bool(false))),
        (false, _) => {
            let found = Bound::new(Node::In(Box::new(operand), values), DataType::Bool);
            let any = |found| Bound::new(Node::Or(vec![found, null()]), DataType::Bool);
            Ok(if has_null { any(found) } else { found })
        }
    }
}

pub(super) fn not(operand: Bound) -> Bound {
    Bound::new(Node::Not(Box::new(operand)), DataType::Bool)
}

fn logic(operator: Operator, operands: Vec<Bound>) -> Result<Bound> {
    let mut flat = Vec::with_capacity(operands.len());
    for operand in operands {
        expect(&operand, "a condition", |t| t == DataType::Bool)?;
        match (operator, typed(operand, DataType::Bool)) {
            (Operator::And, Bound { node: Node::And(inner), .. })
            | (Operator::Or, Bound { node: Node::Or(inner), .. }) => flat.extend(inner),
            (_, operand) => flat.push(operand),
        }
    }
    Ok(match operator {
        Operator::And => Bound::new(Node::And(flat), DataType::Bool),
        Operator::Or => Bound::new(Node::Or(flat), DataType::Bool),
        _ => {
            let [operand] = exactly(flat)?;
            not(operand)
        }
    })
}

pub(super) fn pattern(operator: Operator, operands: Vec<Bound>) -> Result<Bound> {
    let mut operands = operands.into_iter();
    let (Some(text), Some(pattern)) = (operands.next(), operands.next()) else {
        return Err(Error::invalid("expected a text and a pattern"));
    };
    let text = label_as_text(text)?;
    expect(&text, "text", |t| t == DataType::Text)?;
    let null = || Bound::new(Node::Literal(Value::Null), DataType::Bool);
    let escape = match operands.next().map(|e| e.node) {
        None => None,
        Some(Node::Literal(Value::Null)) if Bug::EscapeNullIsNone.is_planted() => None,
        Some(Node::Literal(Value::Null)) => return Ok(null()),
        Some(Node::Unanswered) => return Ok(Bound::new(Node::Unanswered, DataType::Bool)),
        Some(Node::Literal(Value::Text(escape))) if escape.chars().count() == 1 => {
            escape.chars().next()
        }
        Some(_) => return Err(Error::invalid("ESCAPE takes one character")),
    };
    let any_case = matches!(operator, Operator::Ilike | Operator::NotIlike);
    let matches = match pattern.node {
        Node::Literal(Value::Text(pattern)) => {
            let pattern = Arc::new(Pattern::like(&pattern, escape, any_case)?);
            let text = typed(text, DataType::Text);
            Bound::new(Node::Match(Box::new(text), pattern), DataType::Bool)
        }
        Node::Literal(Value::Null) => null(),
        Node::Unanswered => Bound::new(Node::Unanswered, DataType::Bool),
        _ => return Err(Error::invalid("a pattern must be a constant text")),
    };
    let negated = matches!(operator, Operator::NotLike | Operator::NotIlike);
    Ok(if negated { not(matches) } else { matches })
}

pub(super) fn to_common_type(operands: Vec<Bound>) -> Result<(Vec<Bound>, DataType)> {
    let mut common = None;
    // A text constant is taken for what it stands beside.
    let is_text_constant =
        |o: &Bound| o.data_type == Some(DataType::Text) && o.as_written().is_some();
    // A number from 0 on, written as a constant, is a u64 beside one.
    let is_count_constant = |o: &Bound| matches!(o.as_written(), Some(Value::Int(0..)));
    let is_constant = |o: &Bound| is_text_constant(o) || is_count_constant(o);
    for operand in operands.iter().filter(|o| !is_constant(o)) {
        common = common_type(common, operand.data_type)?;
    }
    for operand in operands.iter().filter(|o| is_count_constant(o)) {
        if common != Some(DataType::U64) {
            common = common_type(common, operand.data_type)?;
        }
    }
    for operand in operands.iter().filter(|o| is_text_constant(o)) {
        if !common.is_some_and(is_written_as_text) {
            common = common_type(common, operand.data_type)?;
        }
    }
    let data_type = common.unwrap_or(DataType::Text);
    let operands = operands.into_iter().map(|o| convert(o, data_type)).collect::<Result<_>>()?;
    Ok((operands, data_type))
}

fn case(operands: Vec<Bound>) -> Result<Bound> {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut operands = operands.into_iter();
    let mut otherwise = Bound::literal(Value::Null);
    while let Some(first) = operands.next() {
        match operands.next() {
            Some(value) => {
                expect(&first, "a condition", |t| t == DataType::Bool)?;
                conditions.push(typed(first, DataType::Bool));
                values.push(value);
            }
            None => otherwise = first,
        }
    }
    values.push(otherwise);
    if values.iter().all(|value| value.data_type.is_none()) {
        return Ok(Bound::literal(Value::Null));
    }
    let (mut values, data_type) = to_common_type(values)?;
    let otherwise = values.pop().unwrap_or_else(|| Bound::literal(Value::Null));
    let branches = conditions.into_iter().zip(values).collect();
    Ok(Bound::new(Node::Case(branches, Box::new(otherwise)), data_type))
}

pub(super) fn cast(operand: Bound, to: DataType) -> Result<Bound> {
    use DataType::{Bool, Bytes, Date, Interval, Ipv6, List, Text, Time, Timestamp, Uuid};
    let Some(from) = operand.data_type else { return convert(operand, to) };
    let possible = match (from, to) {
        _ if from == to => return Ok(operand),
        (List(_), List(_) | DataType::Json | Text) | (DataType::Json | Text, List(_)) => true,
        (List(_), _) | (_, List(_)) => false,
        (Bytes, Uuid | Ipv6) | (Uuid | Ipv6, Bytes) | (Timestamp, Time) => true,
        (Time, Interval) | (Interval, Time) => true,
        (Bytes, _) | (_, Bytes) => from == Text,
        (_, DataType::Enum) => false,
        (_, Text) | (Text, _) | (Date, Timestamp) | (Timestamp, Date) => true,
        (Bool, other) | (other, Bool) => other.is_integer(),
        (from, to) => from.is_numeric() && to.is_numeric(),
    };
    if !possible && to == Interval && from.is_numeric() {
        let message = "expected a unit, as in INTERVAL 3 DAY";
        return Err(Error::invalid(format!("cannot cast {from} to {to}: {message}")));
    }
    if !possible {
        return Err(Error::invalid(format!("cannot cast {from} to {to}")));
    }
    Ok(Bound::new(Node::Cast(Box::new(operand)), to))
}
