//! Answers for other programs, one object a row.
//!
//! Integers are written in full; dates, timestamps and bytes are strings; so are the values of
//! floating-point columns that are no numbers. The second column of a name is called `name_2`.

use std::io::{Result, Write};

use esker::ValueRef;
use serde_json::{Map, Number, Value};

use super::Answer;

pub(super) fn write<'v, R>(out: &mut dyn Write, answer: Answer<'_, R>) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let names = distinct_names(answer.columns.iter().map(|(name, _)| *name));
    let mut separator = "[\n";
    for row in answer.rows {
        let fields = names.iter().cloned().zip(row.iter().map(|v| json_value(*v)));
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &Map::from_iter(fields))?;
        separator = ",\n";
    }
    out.write_all(if separator == "[\n" { b"[]\n" } else { b"\n]\n" })
}

fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let candidates = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.to_owned()).chain(candidates);
        distinct.extend(candidates.find(|candidate| !distinct.contains(candidate)));
    }
    distinct
}

fn json_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Bool(v) => v.into(),
        ValueRef::Int(v) => v.into(),
        ValueRef::Uint(v) => v.into(),
        ValueRef::Float(v) => float(v, value),
        // By its own shortest text, not by that of the double it widens to.
        ValueRef::Float32(v) => float(v.to_string().parse().unwrap_or(f64::from(v)), value),
        ValueRef::Text(v) => v.into(),
        other => other.to_string().into(),
    }
}

fn float(number: f64, value: ValueRef<'_>) -> Value {
    Number::from_f64(number).map_or_else(|| value.to_string().into(), Value::Number)
}
