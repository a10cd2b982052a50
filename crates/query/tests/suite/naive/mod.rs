//! Queries answered one row at a time, in the plainest way there is.

use std::cmp::Ordering;

use esker_format::calendar::DAY_US;
use esker_format::text::parse_value;
use esker_format::{DataType, Decimal, Schema, Value};
use esker_query::model::{Aggregate, Expr, Function, Operator, Query, RowCount};

/// A computation that overflowed; the engine must refuse too.
#[derive(Debug, PartialEq, Eq)]
pub struct Overflow;

type Result<T> = std::result::Result<T, Overflow>;

/// The rows of a query's answer.
pub fn answer(query: &Query, schema: &Schema, rows: &[Vec<Value>]) -> Result<Vec<Vec<Value>>> {
    let mut kept = Vec::new();
    for row in rows {
        let passes = match &query.filter {
            None => true,
            Some(filter) => eval(filter, &Context::row(schema, row))? == Value::Bool(true),
        };
        if passes {
            kept.push(row);
        }
    }
    let contexts: Vec<Context<'_>> = if query.is_grouped() {
        let mut groups: Vec<(Vec<Value>, Vec<&Vec<Value>>)> = Vec::new();
        if query.group_by.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for row in kept {
            let context = Context::row(schema, row);
            let keys = query.group_by.iter().map(|key| eval(key, &context));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            match groups.iter_mut().find(|(known, _)| *known == keys) {
                Some((_, members)) => members.push(row),
                None => groups.push((keys, vec![row])),
            }
        }
        let context =
            |(keys, members)| Context { schema, row: None, query: Some(query), keys, members };
        groups.into_iter().map(context).collect()
    } else {
        kept.into_iter().map(|row| Context::row(schema, row)).collect()
    };
    let mut shown: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    for context in &contexts {
        let keys = query.order_by.iter().map(|key| eval(&key.expr, context));
        let values = query.select.iter().map(|item| eval(&item.expr, context));
        // A sum that overflows fails the query even where HAVING leaves its group out.
        let row = (keys.collect::<Result<_>>()?, values.collect::<Result<_>>()?);
        if let Some(having) = &query.having
            && eval(having, context)? != Value::Bool(true)
        {
            continue;
        }
        shown.push(row);
    }
    if query.distinct {
        let mut distinct: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        for row in shown {
            if !distinct.iter().any(|known| known.1 == row.1) {
                distinct.push(row);
            }
        }
        shown = distinct;
    }
    shown.sort_by(|a, b| compare_keys(query, &a.0, &b.0));
    let skip = rows_of(&query.offset);
    let take = query.limit.as_ref().map_or(usize::MAX, rows_of);
    Ok(shown.into_iter().map(|(_, row)| row).skip(skip).take(take).collect())
}

fn compare_keys(query: &Query, a: &[Value], b: &[Value]) -> Ordering {
    for ((key, a), b) in query.order_by.iter().zip(a).zip(b) {
        let nulls_first = key.nulls_first.unwrap_or(!key.descending);
        let ordering = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ if key.descending => b.cmp(a),
            _ => a.cmp(b),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// What names stand for: a row, or a group.
struct Context<'a> {
    schema: &'a Schema,
    row: Option<&'a [Value]>,
    query: Option<&'a Query>,
    keys: Vec<Value>,
    members: Vec<&'a Vec<Value>>,
}

impl<'a> Context<'a> {
    fn row(schema: &'a Schema, row: &'a [Value]) -> Self {
        Self { schema, row: Some(row), query: None, keys: Vec::new(), members: Vec::new() }
    }
}

fn eval(expr: &Expr, context: &Context<'_>) -> Result<Value> {
    if let Some(query) = context.query
        && let Some(at) = query.group_by.iter().position(|key| key == expr)
    {
        return Ok(context.keys[at].clone());
    }
    match expr {
        Expr::Field(name) => {
            Ok(context.row.unwrap()[context.schema.position(name).unwrap()].clone())
        }
        Expr::Literal(value) => Ok(value.clone()),
        Expr::Cast(..)
        | Expr::Answer(_)
        | Expr::Parameter(_)
        | Expr::Window(_)
        | Expr::Default
        | Expr::Row(_)
        | Expr::Item(_)
        | Expr::AllFields(_)
        | Expr::AllItems
        | Expr::Grouping(_)
        | Expr::Lookup(_)
        | Expr::Subquery { .. } => {
            unreachable!("the generator makes none")
        }
        Expr::Aggregate { function, operand, distinct, .. } => {
            let mut values = Vec::new();
            for row in &context.members {
                values.push(match operand {
                    None => Value::Bool(true),
                    Some(operand) => eval(operand, &Context::row(context.schema, row))?,
                });
            }
            values.retain(|v| !v.is_null());
            if *distinct {
                values.sort();
                values.dedup();
            }
            aggregate(*function, &values)
        }
        Expr::Apply(Operator::Case, operands) => {
            for pair in operands.chunks(2) {
                match pair {
                    [when, then] if eval(when, context)? == Value::Bool(true) => {
                        return eval(then, context);
                    }
                    [otherwise] => return eval(otherwise, context),
                    _ => {}
                }
            }
            Ok(Value::Null)
        }
        Expr::Call(function, operands) => {
            let operands = operands.iter().map(|o| eval(o, context)).collect::<Result<Vec<_>>>()?;
            Ok(call(*function, &operands))
        }
        Expr::Apply(operator, operands) => {
            let operands = operands.iter().map(|o| eval(o, context)).collect::<Result<Vec<_>>>()?;
            apply(*operator, &operands)
        }
    }
}

fn aggregate(function: Aggregate, values: &[Value]) -> Result<Value> {
    let integers: Option<Vec<i128>> = values.iter().map(integer).collect();
    let decimals: Option<Vec<Decimal>> = values.iter().map(decimal).collect();
    Ok(match function {
        Aggregate::Count => Value::Int(i64::try_from(values.len()).unwrap()),
        Aggregate::Min => values.iter().min().cloned().unwrap_or_default(),
        Aggregate::Max => values.iter().max().cloned().unwrap_or_default(),
        _ if values.is_empty() => Value::Null,
        Aggregate::Sum if integers.is_none() && decimals.is_some() => {
            let (sum, scale) = sum_decimals(&decimals.unwrap());
            Value::Decimal(Decimal::new(sum, scale).ok_or(Overflow)?)
        }
        Aggregate::Avg if integers.is_none() && decimals.is_some() => {
            let (sum, scale) = sum_decimals(&decimals.unwrap());
            Value::Float(sum as f64 / values.len() as f64 / 10f64.powi(scale.into()))
        }
        Aggregate::Sum => match integers {
            Some(integers) => {
                let sum: i128 = integers.iter().sum();
                let unsigned = values.iter().all(|v| matches!(v, Value::Uint(_)));
                if unsigned {
                    Value::Uint(u64::try_from(sum).map_err(|_| Overflow)?)
                } else {
                    Value::Int(i64::try_from(sum).map_err(|_| Overflow)?)
                }
            }
            None => Value::Float(values.iter().map(float).sum()),
        },
        _ => match integers {
            Some(integers) => {
                Value::Float(integers.iter().sum::<i128>() as f64 / integers.len() as f64)
            }
            None => Value::Float(values.iter().map(float).sum::<f64>() / values.len() as f64),
        },
    })
}

fn sum_decimals(decimals: &[Decimal]) -> (i128, u8) {
    (decimals.iter().map(|v| v.mantissa()).sum(), decimals[0].scale())
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(v) => Some((*v).into()),
        Value::Uint(v) => Some((*v).into()),
        _ => None,
    }
}

fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Decimal(v) => Some(*v),
        other => Decimal::whole(integer(other)?),
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Decimal(v) => v.to_f64(),
        Value::Float(v) => *v,
        Value::Float32(v) => (*v).into(),
        other => integer(other).unwrap() as f64,
    }
}

fn apply(operator: Operator, operands: &[Value]) -> Result<Value> {
    use Operator as O;
    let [first, ..] = operands else { unreachable!() };
    Ok(match operator {
        O::IsNull => Value::Bool(first.is_null()),
        O::IsNotNull => Value::Bool(!first.is_null()),
        O::And => decide(operands.iter().map(truth), false),
        O::Or => decide(operands.iter().map(truth), true),
        O::Not => truth_value(truth(first).map(|t| !t)),
        O::In => any_equal(operands),
        O::NotIn => truth_value(truth(&any_equal(operands)).map(|t| !t)),
        O::Between | O::NotBetween => {
            let both = [compare(O::Gte, first, &operands[1]), compare(O::Lte, first, &operands[2])];
            let within = truth(&decide(both.iter().map(truth), false));
            truth_value(within.map(|t| t == (operator == O::Between)))
        }
        O::Eq | O::Neq | O::Lt | O::Lte | O::Gt | O::Gte => compare(operator, first, &operands[1]),
        O::Like | O::NotLike | O::Ilike | O::NotIlike => like(operator, operands),
        _ => return arithmetic(operator, operands),
    })
}

fn call(function: Function, operands: &[Value]) -> Value {
    let [first, ..] = operands else { unreachable!() };
    match (function, first) {
        (Function::Coalesce, _) => {
            operands.iter().find(|v| !v.is_null()).cloned().unwrap_or_default()
        }
        (Function::Length, Value::Text(v)) => Value::Int(i64::try_from(v.chars().count()).unwrap()),
        (Function::Ascii, Value::Text(v)) => {
            Value::Int(v.chars().next().map_or(0, |c| i64::from(u32::from(c))))
        }
        (Function::BitLength, Value::Text(v)) => Value::Int(i64::try_from(v.len() * 8).unwrap()),
        (Function::Initcap, Value::Text(v)) => {
            let words = v.split_inclusive(|c: char| !c.is_alphanumeric());
            let word = |word: &str| {
                let mut rest = word.chars();
                let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
                first + &rest.flat_map(char::to_lowercase).collect::<String>()
            };
            Value::Text(words.map(word).collect())
        }
        (Function::Upper, Value::Text(v)) => Value::Text(v.to_uppercase()),
        (Function::Reverse, Value::Text(v)) => Value::Text(v.chars().rev().collect()),
        _ => Value::Null,
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(v) => Some(*v),
        _ => None,
    }
}

fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

fn decide(members: impl Iterator<Item = Option<bool>>, decisive: bool) -> Value {
    let members: Vec<_> = members.collect();
    if members.contains(&Some(decisive)) {
        Value::Bool(decisive)
    } else if members.contains(&None) {
        Value::Null
    } else {
        Value::Bool(!decisive)
    }
}

fn any_equal(operands: &[Value]) -> Value {
    let equal = operands[1..].iter().map(|v| truth(&compare(Operator::Eq, &operands[0], v)));
    decide(equal, true)
}

fn compare(operator: Operator, a: &Value, b: &Value) -> Value {
    if a.is_null() || b.is_null() {
        return Value::Null;
    }
    let (a, b) = (alike(a, b), alike(b, a));
    let ordering = a.cmp(&b);
    Value::Bool(match operator {
        Operator::Eq => ordering.is_eq(),
        Operator::Neq => ordering.is_ne(),
        Operator::Lt => ordering.is_lt(),
        Operator::Lte => ordering.is_le(),
        Operator::Gt => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}

/// `value` as it compares with `other`.
fn alike(value: &Value, other: &Value) -> Value {
    match (value, other) {
        (Value::Text(text), Value::Date(_)) => parse_value(text, DataType::Date).unwrap(),
        (Value::Text(text), Value::Timestamp(_)) => parse_value(text, DataType::Timestamp).unwrap(),
        (Value::Text(text), Value::Time(_)) => parse_value(text, DataType::Time).unwrap(),
        (Value::Text(text), Value::Uuid(_)) => parse_value(text, DataType::Uuid).unwrap(),
        (Value::Text(text), Value::Ipv4(_)) => parse_value(text, DataType::Ipv4).unwrap(),
        (Value::Text(text), Value::Enum(_)) => {
            crate::generate::labels().find(text).unwrap().to_owned()
        }
        (Value::Text(text), Value::Json(_)) => Value::json(text).unwrap(),
        (Value::Text(text), Value::Ipv6(_)) => parse_value(text, DataType::Ipv6).unwrap(),
        (Value::Date(day), Value::Timestamp(_)) => Value::Timestamp(i64::from(*day) * DAY_US),
        _ => value.clone(),
    }
}

fn like(operator: Operator, operands: &[Value]) -> Value {
    let (Value::Text(text), Value::Text(pattern)) = (&operands[0], &operands[1]) else {
        return Value::Null;
    };
    let any_case = matches!(operator, Operator::Ilike | Operator::NotIlike);
    // Character by character: in a whole text the lower case of a sigma depends on its neighbours.
    let lower = |c: char| if c == 'ς' { vec!['σ'] } else { c.to_lowercase().collect() };
    let of = |s: &str| match any_case {
        true => s.chars().flat_map(lower).collect(),
        false => s.to_owned(),
    };
    let (text, pattern) = (of(text), of(pattern));
    let (text, pattern): (Vec<_>, Vec<_>) = (text.chars().collect(), pattern.chars().collect());
    let matches = matches(&text, &pattern);
    Value::Bool(matches == matches!(operator, Operator::Like | Operator::Ilike))
}

fn matches(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| matches(&text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && matches(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && matches(&text[1..], rest),
    }
}

fn decimals(operator: Operator, a: Decimal, b: Decimal) -> Result<Value> {
    use Operator as O;
    let scale = a.scale().max(b.scale());
    let (x, y) = (a.rescale(scale).ok_or(Overflow)?, b.rescale(scale).ok_or(Overflow)?);
    let (value, scale) = match operator {
        O::Add => (x.mantissa().checked_add(y.mantissa()), scale),
        O::Subtract => (x.mantissa().checked_sub(y.mantissa()), scale),
        O::Multiply => (a.mantissa().checked_mul(b.mantissa()), a.scale() + b.scale()),
        _ if y.mantissa() == 0 => return Ok(Value::Null),
        _ => (x.mantissa().checked_rem(y.mantissa()), scale),
    };
    value.and_then(|v| Decimal::new(v, scale)).map(Value::Decimal).ok_or(Overflow)
}

fn arithmetic(operator: Operator, operands: &[Value]) -> Result<Value> {
    use Operator as O;
    if operands.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let fit = |v: i128| i64::try_from(v).map(Value::Int).map_err(|_| Overflow);
    if let [Value::Decimal(a)] = operands {
        let mantissa = -a.mantissa();
        return Ok(Value::Decimal(Decimal::new(mantissa, a.scale()).unwrap()));
    }
    if let [a] = operands {
        return match integer(a) {
            Some(v) => fit(-v),
            None => Ok(Value::Float(-float(a))),
        };
    }
    let (a, b) = (&operands[0], &operands[1]);
    if let (Some(x), Some(y)) = (decimal(a), decimal(b))
        && operator != O::Divide
        && (integer(a).is_none() || integer(b).is_none())
    {
        return decimals(operator, x, y);
    }
    match (a, b, integer(a), integer(b)) {
        (Value::Date(a), Value::Date(b), ..) => Ok(Value::Int(i64::from(*a) - i64::from(*b))),
        (Value::Date(a), _, _, Some(b)) => {
            let sum = i128::from(*a) + if operator == O::Add { b } else { -b };
            i32::try_from(sum).map(Value::Date).map_err(|_| Overflow)
        }
        (_, _, Some(a), Some(b)) => {
            // Operands are 64-bit signed integers first.
            let (a, b) = (
                i128::from(i64::try_from(a).map_err(|_| Overflow)?),
                i128::from(i64::try_from(b).map_err(|_| Overflow)?),
            );
            match operator {
                O::Add => fit(a + b),
                O::Subtract => fit(a - b),
                O::Multiply => fit(a * b),
                _ if b == 0 => Ok(Value::Null),
                O::Divide => fit(a / b),
                _ => fit(a % b),
            }
        }
        _ => {
            let (a, b) = (float(a), float(b));
            Ok(match operator {
                O::Add => Value::Float(a + b),
                O::Subtract => Value::Float(a - b),
                O::Multiply => Value::Float(a * b),
                _ if b == 0.0 => Value::Null,
                O::Divide => Value::Float(a / b),
                _ => Value::Float(a % b),
            })
        }
    }
}

fn rows_of(count: &RowCount) -> usize {
    match count {
        RowCount::Number(number) => usize::try_from(*number).unwrap(),
        RowCount::Parameter(parameter) => panic!("{parameter:?}"),
    }
}
