//! Types of functions of lists: items and the lists beside them become one type.

use esker_format::json::{Json, Kind};
use esker_format::{DataType, ListElement, Value};

use super::expression::{compare, expect, in_list, label_as_text, not, to_common_type};
use super::list_pattern::ListPattern;
use super::typing::{common_type, convert, typed};
use crate::bound::{Bound, Comparison, Node};
use crate::model::Function;
use crate::{Error, Inputs, Result};

/// Longer constant lists are looked through, not written out.
const WRITTEN_OUT_MAX: usize = 64;

/// Whether an operand is a list.
pub(super) fn is_list(operand: &Bound) -> bool {
    matches!(operand.data_type, Some(DataType::List(_)))
}

/// `a || b` where one of them is a list.
pub(super) fn concat(left: Bound, right: Bound, inputs: &Inputs) -> Result<Bound> {
    let is_like_list = |operand: &Bound| match operand.as_written() {
        // NULL is a list, too: PostgreSQL has it so.
        Some(Value::Text(text)) => text.trim_start().starts_with(['{', '[']),
        Some(Value::Json(_)) => true,
        _ => operand.data_type.is_none() || is_list(operand),
    };
    let function = match (is_like_list(&left), is_like_list(&right)) {
        (true, false) => Function::ListAppend,
        (false, true) => Function::ListPrepend,
        _ => Function::ListConcat,
    };
    call(function, vec![left, right], inputs)
}

/// A call of a function of lists.
///
/// # Errors
/// `InvalidQuery` with what it takes.
pub(super) fn call(function: Function, mut operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    use Function as F;
    if let (F::ListHasAll, Some(DataType::Json)) =
        (function, operands.first().and_then(|operand| operand.data_type))
    {
        return super::function::call(F::JsonContains, operands, inputs);
    }
    let (operands, data_type) = match function {
        F::ListValue => return made(operands),
        F::ListAny | F::ListAll => return quantified(function, operands, inputs),
        F::StringToArray => {
            let text = |operand: Bound| {
                let operand = label_as_text(operand)?;
                expect(&operand, "text", |t| t == DataType::Text)?;
                Ok(typed(operand, DataType::Text))
            };
            let operands = operands.into_iter().map(text).collect::<Result<_>>()?;
            (operands, DataType::List(ListElement::Text))
        }
        F::ListPosition if operands.len() > 2 => {
            let start = operands.pop().unwrap_or_else(|| Bound::literal(Value::Null));
            expect(&start, "an integer", DataType::is_integer)?;
            let (mut operands, data_type) = with_items(operands, 0)?;
            operands.push(convert(start, DataType::I64)?);
            (operands, data_type)
        }
        F::ListAppend
        | F::ListPosition
        | F::ListPositions
        | F::ListRemove
        | F::ListReplace
        | F::ListContains => with_items(operands, 0)?,
        F::ListPrepend => with_items(operands, 1)?,
        F::ListConcat | F::ListHasAll | F::ListHasAny => lists(operands)?,
        _ => with_others(function, operands)?,
    };
    let element = data_type.element().unwrap_or(ListElement::Text).data_type();
    let data_type = match function {
        F::Cardinality | F::ArrayLength | F::ArrayLower | F::ArrayNdims | F::ListPosition => {
            DataType::I64
        }
        F::ListPositions => DataType::List(ListElement::I64),
        F::ListContains | F::ListHasAll | F::ListHasAny => DataType::Bool,
        F::ArrayToString => DataType::Text,
        F::ListExtract | F::ListMin | F::ListMax => element,
        F::ListSum => sum_of(element)?,
        F::ListAvg => sum_of(element).map(|_| DataType::F64)?,
        _ => data_type,
    };
    Ok(Bound::new(Node::Call(function, operands), data_type))
}

/// The type of a sum of items.
fn sum_of(element: DataType) -> Result<DataType> {
    Ok(match element {
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => DataType::U64,
        t if t.is_integer() => DataType::I64,
        t if t.is_float() => DataType::F64,
        DataType::Decimal { scale, .. } => {
            DataType::Decimal { precision: esker_format::decimal::DIGITS_MAX, scale }
        }
        other => {
            return Err(Error::invalid(format!("expected a list of numbers, found {other}[]")));
        }
    })
}

/// `ARRAY[…]`. Without items it takes the type of what it stands beside, as a text does.
fn made(operands: Vec<Bound>) -> Result<Bound> {
    if operands.is_empty() {
        return Ok(Bound::literal(Value::Text("{}".to_owned())));
    }
    let operands = operands.into_iter().map(label_as_text).collect::<Result<_>>()?;
    let (operands, common) = to_common_type(operands)?;
    Ok(Bound::new(Node::Call(Function::ListValue, operands), DataType::list(common)?))
}

/// What an operand is a list of; `None` where that is not known.
fn element(operand: &Bound) -> Result<Option<DataType>> {
    match operand.data_type {
        None => Ok(None),
        Some(DataType::List(element)) => Ok(Some(element.data_type())),
        Some(DataType::Text | DataType::Json) if operand.as_written().is_some() => Ok(None),
        Some(found) => Err(Error::invalid(format!("expected a list, found {found}"))),
    }
}

/// A list of which the type is known, or told by nothing but itself.
fn known(operand: Bound) -> Result<Bound> {
    let data_type = match (operand.as_written(), element(&operand)?) {
        (Some(Value::Json(document)), None) => array_type(Json::document(document))?,
        (Some(Value::Text(text)), None) if !matches!(text.trim(), "{}" | "[]") => {
            return Err(Error::invalid(format!(
                "expected a list, found text '{text}': CAST('{text}' AS text[]) is one"
            )));
        }
        (Some(Value::Text(_)), None) => DataType::List(ListElement::Text),
        _ => return Ok(typed(operand, DataType::List(ListElement::Text))),
    };
    convert(operand, data_type)
}

/// What an array is a list of that stands for itself: its items are of one kind.
fn array_type(document: Json<'_>) -> Result<DataType> {
    let refused = |found: &str| {
        Error::invalid(format!(
            "expected an array of texts, numbers or truth values, found {found}"
        ))
    };
    let Kind::Array(array) = document.kind() else { return Err(refused("other json")) };
    let mut common = None;
    for part in array.iter() {
        let item = match part.kind() {
            Kind::Null => continue,
            Kind::String(_) => DataType::Text,
            Kind::Bool(_) => DataType::Bool,
            Kind::Number(written) if written.parse::<i64>().is_ok() => DataType::I64,
            Kind::Number(_) => DataType::F64,
            Kind::Array(_) | Kind::Object(_) => return Err(refused("one with parts in it")),
        };
        common = common_type(common, Some(item))?;
    }
    DataType::list(common.unwrap_or(DataType::Text)) // default: an empty one is as ARRAY[] is
        .map_err(Error::from)
}

/// Lists as those of their common type.
fn lists(operands: Vec<Bound>) -> Result<(Vec<Bound>, DataType)> {
    let mut common = None;
    for operand in &operands {
        common = common_type(common, element(operand)?)?;
    }
    let data_type = DataType::list(common.unwrap_or(DataType::Text))?;
    let operands = operands.into_iter().map(|operand| convert(operand, data_type));
    Ok((operands.collect::<Result<_>>()?, data_type))
}

/// A list at a place, and items of it.
fn with_items(mut operands: Vec<Bound>, at: usize) -> Result<(Vec<Bound>, DataType)> {
    if at >= operands.len() {
        return Err(Error::invalid("expected a list"));
    }
    let list = operands.remove(at);
    let items = operands.into_iter().map(label_as_text).collect::<Result<Vec<_>>>()?;
    let mut common = element(&list)?;
    for item in &items {
        common = beside(common, item)?;
    }
    let common = common.unwrap_or(DataType::Text);
    let data_type = DataType::list(common)?;
    let items = items.into_iter().map(|item| convert(item, common));
    let mut operands = items.collect::<Result<Vec<_>>>()?;
    operands.insert(at, convert(list, data_type)?);
    Ok((operands, data_type))
}

/// The type of items with one more beside them: a constant is one of theirs where it can be.
fn beside(items: Option<DataType>, item: &Bound) -> Result<Option<DataType>> {
    match (items, item.as_written()) {
        (Some(items), Some(_)) if convert(item.clone(), items).is_ok() => Ok(Some(items)),
        _ => common_type(items, item.data_type),
    }
}

/// A list and what else the function takes.
fn with_others(function: Function, operands: Vec<Bound>) -> Result<(Vec<Bound>, DataType)> {
    let mut operands = operands.into_iter();
    let list = operands.next().ok_or_else(|| Error::invalid("expected a list"))?;
    let list = match function {
        // NULL is a list of numbers, too.
        Function::ListSum | Function::ListAvg => typed(list, DataType::List(ListElement::I64)),
        _ => list,
    };
    let list = known(list)?;
    let data_type = list.data_type();
    element(&list)?;
    let other = |operand: Bound| match function {
        Function::ListSort => {
            expect(&operand, "a bool", |t| t == DataType::Bool)?;
            Ok(typed(operand, DataType::Bool))
        }
        Function::ArrayToString => {
            let operand = label_as_text(operand)?;
            expect(&operand, "text", |t| t == DataType::Text)?;
            Ok(typed(operand, DataType::Text))
        }
        _ => {
            expect(&operand, "an integer", DataType::is_integer)?;
            convert(operand, DataType::I64)
        }
    };
    let others = operands.map(other).collect::<Result<Vec<_>>>()?;
    Ok((std::iter::once(list).chain(others).collect(), data_type))
}

/// `a = ANY (list)` and its like.
fn quantified(function: Function, operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    let [value, operator, list] = <[Bound; 3]>::try_from(operands)
        .map_err(|_| Error::invalid("expected a value, an operator and a list"))?;
    let comparison = match operator.as_literal() {
        Some(Value::Text(symbol)) if let Some(pattern) = ListPattern::of(symbol) => {
            return pattern.matched(function, value, list, inputs);
        }
        Some(Value::Text(symbol)) => Comparison::from_symbol(symbol)?,
        _ => return Err(Error::invalid("expected an operator as a constant, like '='")),
    };
    let value = label_as_text(value)?;
    let common = beside(element(&list)?, &value)?.unwrap_or(DataType::Text);
    let list = convert(list, DataType::list(common)?)?;
    let is_any = function == Function::ListAny;
    if let Some(Value::List(bytes)) = list.as_literal() {
        let items = esker_format::List::of(bytes)?.values()?;
        let items = items.into_iter().map(|item| typed(Bound::literal(item), common));
        match comparison {
            Comparison::Eq if is_any => return in_list(value, items.collect()),
            Comparison::Neq if !is_any => return in_list(value, items.collect()).map(not),
            _ if items.len() <= WRITTEN_OUT_MAX => {
                let each = items.map(|item| compare(comparison, value.clone(), item));
                let each = each.collect::<Result<Vec<_>>>()?;
                let node = if is_any { Node::Or(each) } else { Node::And(each) };
                return Ok(Bound::new(node, DataType::Bool));
            }
            _ => {}
        }
    }
    let operands = vec![convert(value, common)?, operator, list];
    Ok(Bound::new(Node::Call(function, operands), DataType::Bool))
}
