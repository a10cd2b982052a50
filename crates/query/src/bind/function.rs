//! Typing the operands of functions.

use std::sync::Arc;

use esker_format::calendar::DAY_US;
use esker_format::json::{Step, name_step, parse_path, path_of};
use esker_format::{DataType, ListElement, Value};

use super::expression::{
    arithmetic, as_text, cast, compare, expect, label_as_text, to_common_type,
};
use super::typing::{convert, typed};
use super::{decimal, list};
use crate::bound::{Bound, Comparison, Node};
use crate::model::date_unit::Unit;
use crate::model::{Family, Function, FunctionEntry, OperandKind, Operator, Outcome, is_path};
use crate::pattern::{Captured, Pattern, Place};
use crate::{Error, Inputs, Limits, Result};

fn text(text: &str) -> Bound {
    Bound::literal(Value::Text(text.to_owned()))
}

/// A call with operands of the right types.
pub(super) fn call(function: Function, operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    let entry = function.entry();
    let (least, most, found) = (entry.operands_min, entry.operands_max, operands.len());
    if !(least..=most).contains(&found) {
        return Err(Error::invalid(format!(
            "{}({}) takes {}, found {found}",
            entry.name,
            entry.operands,
            operand_count(least, most)
        )));
    }
    let now_us = inputs.now_us;
    match function {
        Function::JsonObject if !found.is_multiple_of(2) => Err(Error::invalid(format!(
            "{}({}) takes pairs of a name and a value, found {found} operands",
            entry.name, entry.operands
        ))),
        Function::Now => Ok(Bound::literal(Value::Timestamp(now_us))),
        Function::CurrentDate => {
            let days = i32::try_from(now_us.div_euclid(DAY_US)).unwrap_or(i32::MAX);
            Ok(Bound::literal(Value::Date(days)))
        }
        Function::Typeof => {
            let name = operands.first().and_then(|o| o.data_type);
            Ok(Bound::literal(Value::Text(name.map_or("null".into(), |t| t.to_string()))))
        }
        Function::Version => Ok(text(concat!("Esker ", env!("CARGO_PKG_VERSION")))),
        Function::CurrentDatabase => Ok(text("esker")),
        Function::CurrentSchema => Ok(text("main")),
        Function::CurrentSchemas => current_schemas(&operands, inputs),
        Function::Pi => Ok(Bound::literal(Value::Float(std::f64::consts::PI))),
        Function::TryCast => try_cast(operands),
        Function::Nextval => next_value(operands, inputs),
        Function::Nullif => nullif(operands),
        Function::Mod => match <[Bound; 2]>::try_from(operands) {
            Ok([left, right]) => {
                arithmetic(inputs.semantics.operator(Operator::Remainder), (left, right))
            }
            Err(_) => Err(Error::invalid("mod takes 2 operands")),
        },
        Function::Coalesce | Function::Greatest | Function::Least
            if operands.iter().all(|o| o.data_type.is_none()) =>
        {
            Ok(Bound::literal(Value::Null))
        }
        Function::Coalesce if operands.len() == 1 => {
            let only = operands.into_iter().next();
            only.ok_or_else(|| Error::invalid("coalesce: expected an operand"))
        }
        Function::Coalesce | Function::Greatest | Function::Least => {
            let (operands, data_type) = to_common_type(operands)?;
            Ok(Bound::new(Node::Call(function, operands), data_type))
        }
        Function::Length if operands.first().is_some_and(list::is_list) => {
            list::call(Function::Cardinality, operands, inputs)
        }
        _ if entry.family == Family::List => list::call(function, operands, inputs),
        _ => match by_table(entry, with_now(function, operands, now_us), &inputs.limits)? {
            Bound { node: Node::Call(_, operands), data_type, labels, is_typed } => {
                let node = match_of(function, operands)?;
                Ok(Bound { node, data_type, labels, is_typed })
            }
            other => Ok(other),
        },
    }
}

/// The operands with the time where it stands for itself, in functions of SQLite, and in `age`.
fn with_now(function: Function, mut operands: Vec<Bound>, now_us: i64) -> Vec<Bound> {
    use Function as F;
    let is_format_first = match operands.first().map(|first| first.data_type) {
        Some(found) => found.is_none_or(|found| found == DataType::Text),
        None => false,
    };
    if function == F::Age && operands.len() == 1 {
        let day = now_us - now_us.rem_euclid(DAY_US);
        operands.insert(0, Bound::literal(Value::Timestamp(day)));
        return operands;
    }
    let place = match function {
        F::SqliteDate | F::SqliteTime | F::SqliteDatetime | F::Julianday | F::Unixepoch => 0,
        F::Strftime if is_format_first => 1,
        _ => return operands,
    };
    let now = || Bound::literal(Value::Timestamp(now_us));
    match operands.get_mut(place) {
        None => operands.push(now()),
        Some(operand) => {
            if let Some(Value::Text(text)) = operand.as_literal()
                && text.trim().eq_ignore_ascii_case("now")
            {
                *operand = now();
            }
        }
    }
    operands
}

/// The first operand as the type that the second names, or NULL where it cannot be.
fn try_cast(operands: Vec<Bound>) -> Result<Bound> {
    let [operand, name] = <[Bound; 2]>::try_from(operands)
        .map_err(|_| Error::invalid("try_cast takes a value and a type"))?;
    let Some(Value::Text(name)) = name.as_literal() else {
        return Err(Error::invalid("expected the name of a type"));
    };
    let to: DataType = name.parse()?;
    if operand.data_type.is_none() {
        return convert(operand, to);
    }
    Ok(match cast(operand, to)? {
        Bound { node: Node::Cast(operand), .. } => {
            Bound::new(Node::Call(Function::TryCast, vec![*operand]), to)
        }
        same => same,
    })
}

/// A function of a regular expression, compiled.
fn regular(function: Function, mut operands: Vec<Bound>) -> Result<Node> {
    // Where the expression and its flags stand, and which flags there are.
    let (flags_at, known) = match function {
        Function::RegexpReplace => (3, "gismx"),
        Function::RegexpExtract | Function::RegexpCount => (3, "ismx"),
        _ => (usize::MAX, "ismx"),
    };
    let constant = |operand: Option<&Bound>| match operand.map(Bound::as_literal) {
        None => Some(String::new()),
        Some(Some(Value::Text(text))) => Some(text.clone()),
        Some(_) => None,
    };
    let (Some(expression), Some(flags)) =
        (constant(operands.get(1)), constant(operands.get(flags_at)))
    else {
        return Ok(Node::Literal(Value::Null));
    };
    let compiled = Arc::new(Captured::new(&expression, &flags, known)?);
    if let (Function::RegexpReplace, Some(Some(Value::Text(by)))) =
        (function, operands.get(2).map(Bound::as_literal))
    {
        compiled.expect_parts(by)?;
    }
    if flags_at < operands.len() {
        operands.remove(flags_at);
    }
    operands.remove(1);
    Ok(Node::Regular(function, compiled, operands))
}

/// A test of a text by a constant, compiled; other calls as they are.
fn match_of(function: Function, operands: Vec<Bound>) -> Result<Node> {
    let constant = |at: usize| match operands.get(at).and_then(Bound::as_literal) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let part = |place, any_case| constant(1).map(|part| Pattern::part(place, part, any_case));
    if operands.iter().any(Bound::is_unanswered) {
        return Ok(Node::Call(function, operands));
    }
    if let Some(unit) = Unit::of_function(function) {
        let unit = Bound::literal(Value::Text(unit.to_owned()));
        let operands = std::iter::once(unit).chain(operands).collect();
        return Ok(Node::Call(Function::DatePart, operands));
    }
    let pattern = match function {
        Function::RegexpReplace
        | Function::RegexpExtract
        | Function::RegexpSubstr
        | Function::RegexpCount
        | Function::RegexpInstr => return regular(function, operands),
        Function::StartsWith => part(Place::Start, false),
        Function::EndsWith => part(Place::End, false),
        Function::Contains => part(Place::Anywhere, false),
        Function::IstartsWith => part(Place::Start, true),
        Function::IendsWith => part(Place::End, true),
        Function::Icontains => part(Place::Anywhere, true),
        Function::RegexpLike => match (constant(1), constant(2)) {
            (Some(expression), flags) if operands.len() == 2 || flags.is_some() => {
                let any_case = match flags.unwrap_or_default() {
                    "" => false,
                    "i" => true,
                    other => {
                        let message = format!("unknown flags '{other}'; flags: i");
                        return Err(Error::invalid(message));
                    }
                };
                Some(Pattern::regular(expression, any_case)?)
            }
            _ => return Ok(Node::Literal(Value::Null)),
        },
        _ => None,
    };
    let Some(pattern) = pattern else { return Ok(Node::Call(function, operands)) };
    let text = operands.into_iter().next().unwrap_or_else(|| Bound::literal(Value::Null));
    Ok(Node::Match(Box::new(text), Arc::new(pattern)))
}

fn operand_count(least: usize, most: usize) -> String {
    match most {
        1 if least == 1 => "1 operand".into(),
        _ if least == most => format!("{least} operands"),
        _ if most > 100 => format!("at least {least} operands"),
        _ => format!("{least} to {most} operands"),
    }
}

/// The schemas in which names are looked for where no session has chosen others.
fn current_schemas(operands: &[Bound], inputs: &Inputs) -> Result<Bound> {
    let schemas = match operands.first().and_then(Bound::as_literal) {
        Some(Value::Bool(true)) => vec![text("temp"), text("main")],
        Some(Value::Bool(false)) => vec![text("main")],
        Some(Value::Null) => {
            let null = Bound::literal(Value::Null);
            return Ok(typed(null, DataType::List(ListElement::Text)));
        }
        _ => return Err(Error::invalid("current_schemas takes true or false")),
    };
    list::call(Function::ListValue, schemas, inputs)
}

/// The value is taken here, once: only where that is what is meant are there sequences.
fn next_value(operands: Vec<Bound>, inputs: &Inputs) -> Result<Bound> {
    match operands.first().and_then(Bound::as_literal) {
        Some(Value::Null) => Ok(typed(Bound::literal(Value::Null), DataType::I64)),
        Some(Value::Text(name)) => {
            let sequences = inputs.sequences.as_ref().ok_or_else(|| {
                Error::invalid(
                    "not here: nextval stands in VALUES, in SELECT without FROM, or as a default",
                )
            })?;
            // default: it names no schema, or one that users have made
            let name = name.strip_prefix("main.").unwrap_or(name);
            Ok(Bound::literal(Value::Int(sequences.next_value(name)?)))
        }
        _ => Err(Error::invalid("expected the name of a sequence as a constant, like 'orders'")),
    }
}

/// NULL where both are equal, else the first.
fn nullif(operands: Vec<Bound>) -> Result<Bound> {
    let [first, second] =
        <[Bound; 2]>::try_from(operands).map_err(|_| Error::invalid("nullif takes 2 operands"))?;
    let Some(data_type) = first.data_type else { return Ok(first) };
    let same = compare(Comparison::Eq, first.clone(), second)?;
    let null = convert(Bound::literal(Value::Null), data_type)?;
    Ok(Bound::new(Node::Case(vec![(same, null)], Box::new(typed(first, data_type))), data_type))
}

fn by_table(entry: &FunctionEntry, operands: Vec<Bound>, limits: &Limits) -> Result<Bound> {
    let operands = with_steps(entry, operands)?;
    let count = operands.len();
    let mut typed = Vec::with_capacity(count);
    for (i, operand) in operands.into_iter().enumerate() {
        typed.push(fit(entry.kind(i, count), operand, limits)?);
    }
    let is_unit = entry.parameters.first() == Some(&OperandKind::Unit);
    let first = typed.get(usize::from(is_unit)).map_or(DataType::Text, Bound::data_type);
    if first == DataType::Interval
        && matches!(entry.function, Function::ToChar | Function::DateTrunc)
        && (entry.function == Function::ToChar || typed.len() > 2)
    {
        let name = entry.name;
        return Err(Error::invalid(format!("{name}: not of an interval; cast it to text")));
    }
    if is_unit && let Some(Value::Text(unit)) = typed.first().and_then(Bound::as_literal) {
        Unit::expect(unit, entry.function, first)?;
    }
    let data_type = match entry.outcome {
        Outcome::First | Outcome::Common => decimal::outcome(entry.function, first, typed.get(1)),
        Outcome::Bool => DataType::Bool,
        Outcome::Integer => DataType::I64,
        Outcome::Float => DataType::F64,
        Outcome::Text => DataType::Text,
        Outcome::Bytes => DataType::Bytes,
        Outcome::Date => DataType::Date,
        Outcome::Time => DataType::Time,
        Outcome::Uuid => DataType::Uuid,
        Outcome::Timestamp => DataType::Timestamp,
        Outcome::Interval => DataType::Interval,
        // Lists are bound elsewhere.
        Outcome::Json | Outcome::List | Outcome::Item => DataType::Json,
    };
    let with_template = typed.len() > 1;
    if entry.function == Function::ToTimestamp && with_template != (first == DataType::Text) {
        // NULL is a number of seconds, too.
        match typed.first().and_then(Bound::as_literal) {
            Some(Value::Null) => return convert(Bound::literal(Value::Null), data_type),
            _ => return Err(Error::invalid("expected a number, or text and its template")),
        }
    }
    let data_type = match entry.function {
        Function::DateTrunc if typed.len() > 2 => DataType::Timestamp,
        _ => data_type,
    };
    for i in timestamps(entry.function, typed.len()) {
        let moment = typed.remove(i);
        typed.insert(i, convert(moment, DataType::Timestamp)?);
    }
    Ok(Bound::new(Node::Call(entry.function, typed), data_type))
}

/// The operands for which a date is its midnight.
fn timestamps(function: Function, count: usize) -> std::ops::Range<usize> {
    match function {
        Function::DateAdd | Function::ToUtc => 0..1,
        Function::Timezone => 1..2,
        Function::DateTrunc if count > 2 => 1..2,
        Function::DateBin => 1..count,
        Function::Age => 0..count,
        _ => 0..0,
    }
}

/// The operands with the steps of a constant path in its place: `$.a[0]` is `'a', 0`.
fn with_steps(entry: &FunctionEntry, operands: Vec<Bound>) -> Result<Vec<Bound>> {
    let count = operands.len();
    let is_step = |i: usize| entry.kind(i, count) == OperandKind::Step;
    let steps = (0..count).filter(|i| is_step(*i)).count();
    if steps == 0 {
        return Ok(operands);
    }
    let edits =
        matches!(entry.function, Function::JsonSet | Function::JsonPush | Function::JsonRemove);
    let mut all = Vec::with_capacity(count);
    for (i, operand) in operands.into_iter().enumerate() {
        let path = match operand.as_literal() {
            Some(Value::Text(text)) if is_step(i) && is_path(text) => text.clone(),
            _ => {
                all.push(operand);
                continue;
            }
        };
        if steps > 1 {
            return Err(Error::invalid(format!(
                "path '{path}': expected no step beside a path, found {steps} in all; a name that \
                 begins with $ is written within one, like '$.\"$name\"'"
            )));
        }
        all.extend(parse_path(&path)?.into_iter().map(|step| match step {
            // A digit alone would be a place, too.
            Step::Name(name) if edits && name.parse::<i64>().is_ok() => {
                Bound::literal(Value::Text(path_of([name.as_str()])))
            }
            Step::Name(name) | Step::Part(name) => {
                Bound::literal(Value::Text(name_step(&name).into_owned()))
            }
            Step::Place(place) => Bound::literal(Value::Int(place)),
        }));
    }
    Ok(all)
}

/// An operand that may be a number or text, or a time.
fn fit_either(kind: OperandKind, operand: Bound) -> Result<Bound> {
    use DataType::{Date, F64, Text, Time, Timestamp};
    if operand.data_type.is_some_and(DataType::is_numeric) {
        return convert(operand, F64);
    }
    if kind == OperandKind::TimeValue {
        let is_time = |t| matches!(t, Date | Timestamp | Time | Text);
        expect(&operand, "a date, timestamp, time, text or number", is_time)?;
    } else {
        expect(&operand, "a number, or text and its template", |t| t == Text)?;
    }
    Ok(typed(operand, Text))
}

/// A date, timestamp, time or interval as a function takes it.
fn fit_time(kind: OperandKind, operand: Bound) -> Result<Bound> {
    use DataType::{Date, Interval, Text, Time, Timestamp};
    let is_moment = |t| matches!(t, Date | Timestamp);
    match kind {
        OperandKind::Interval => {
            let constant = operand.as_written().is_some() && operand.data_type == Some(Text);
            let operand = if constant { convert(operand, Interval)? } else { operand };
            expect(&operand, "an interval", |t| t == Interval)?;
            return Ok(typed(operand, Interval));
        }
        OperandKind::MomentOrTime => {
            let is_any = |t| is_moment(t) || matches!(t, Time | Interval);
            expect(&operand, "a date, timestamp, time or interval", is_any)?;
        }
        OperandKind::MomentOrInterval => {
            let is_any = |t| is_moment(t) || t == Interval;
            expect(&operand, "a date, timestamp or interval", is_any)?;
        }
        _ => expect(&operand, "a date or timestamp", is_moment)?,
    }
    Ok(typed(operand, Timestamp))
}

/// An operand as a function takes it.
fn fit(kind: OperandKind, operand: Bound, limits: &Limits) -> Result<Bound> {
    use DataType::{Bytes, F64, I64, Text};
    let is_text = |t| matches!(t, Text | Bytes);
    match kind {
        OperandKind::Any | OperandKind::Common => as_text(operand, Text, limits),
        OperandKind::Value | OperandKind::List | OperandKind::Item => {
            Ok(typed(label_as_text(operand)?, Text))
        }
        OperandKind::Number => {
            expect(&operand, "a number", DataType::is_numeric)?;
            let is_float = operand.data_type.is_some_and(DataType::is_float);
            let as_it_is = operand.data_type.is_some_and(|t| t == DataType::U64 || t.is_decimal());
            let wanted = if is_float { F64 } else { I64 };
            if as_it_is { Ok(operand) } else { convert(operand, wanted) }
        }
        OperandKind::Float => {
            expect(&operand, "a number", DataType::is_numeric)?;
            convert(operand, F64)
        }
        OperandKind::Integer => {
            expect(&operand, "an integer", DataType::is_integer)?;
            convert(operand, I64)
        }
        OperandKind::Text => {
            let operand = label_as_text(operand)?;
            expect(&operand, "text", |t| t == Text)?;
            Ok(typed(operand, Text))
        }
        OperandKind::TextOrBytes => {
            let operand = label_as_text(operand)?;
            expect(&operand, "text or bytes", is_text)?;
            Ok(typed(operand, Text))
        }
        OperandKind::Moment
        | OperandKind::MomentOrTime
        | OperandKind::MomentOrInterval
        | OperandKind::Interval => fit_time(kind, operand),
        OperandKind::TimeValue | OperandKind::TextOrNumber => fit_either(kind, operand),
        OperandKind::Json => {
            let constant = operand.as_literal().is_some() && operand.data_type == Some(Text);
            let operand = if constant { convert(operand, DataType::Json)? } else { operand };
            expect(&operand, "json", |t| t == DataType::Json)?;
            Ok(typed(operand, DataType::Json))
        }
        OperandKind::Step if operand.data_type.is_some_and(DataType::is_integer) => {
            convert(operand, I64)
        }
        OperandKind::Step => {
            let operand = label_as_text(operand)?;
            expect(&operand, "a name or a place", |t| t == Text)?;
            Ok(typed(operand, Text))
        }
        OperandKind::Expression | OperandKind::Unit if operand.is_unanswered() => {
            expect(&operand, "text", |t| t == Text)?;
            Ok(operand)
        }
        OperandKind::Expression => match operand.as_literal() {
            Some(Value::Text(_) | Value::Null) => Ok(typed(operand, Text)),
            _ => Err(Error::invalid("expected a regular expression as a constant, like '^a'")),
        },
        OperandKind::Unit => match operand.as_literal() {
            Some(Value::Text(_)) => Ok(operand),
            _ => Err(Error::invalid("expected the name of a unit as a constant, like 'month'")),
        },
    }
}
