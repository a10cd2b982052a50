//! The form of an update as JSON: `{"increment": {"doc.visits": 1}, "unset": ["doc.draft"]}`.
//!
//! Operators are applied in the order in which they are written.

use std::fmt;

use esker_format::Value;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{OPERATORS, Operand, Operator, Step, Update};

impl Serialize for Update {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Neighbours of one operator share a member.
        let groups = self.steps.chunk_by(|a, b| a.operator == b.operator);
        let mut map = serializer.serialize_map(Some(groups.clone().count()))?;
        for group in groups {
            let Some(first) = group.first() else { continue };
            let name = first.operator.entry().name;
            if first.operator.entry().operand == Operand::None {
                let paths: Vec<&str> = group.iter().map(|step| step.path.as_str()).collect();
                map.serialize_entry(name, &paths)?;
            } else {
                map.serialize_entry(name, &Steps(group))?;
            }
        }
        map.end()
    }
}

/// Paths with their operands.
struct Steps<'a>(&'a [Step]);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for step in self.0 {
            let text = esker_format::json::from_value(step.operand.as_ref());
            let text = text.map(|document| Value::Json(document).to_string());
            let json = text.map_err(S::Error::custom).and_then(|text| {
                serde_json::from_str::<serde_json::Value>(&text).map_err(S::Error::custom)
            });
            map.serialize_entry(&step.path, &json?)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Update {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Operators)
    }
}

struct Operators;

impl<'de> Visitor<'de> for Operators {
    type Value = Update;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of operators")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Update, A::Error> {
        let mut update = Update::new();
        while let Some(name) = map.next_key::<String>()? {
            let Some(operator) = Operator::from_name(&name) else {
                let names = OPERATORS.iter().map(|entry| entry.name);
                let near = esker_format::suggest::near_or_all(&name, "operators", names);
                return Err(A::Error::custom(format!("unknown operator {name:?}{near}")));
            };
            map.next_value_seed(Paths { operator, steps: &mut update.steps })?;
        }
        Ok(update)
    }
}

/// What is written of one operator.
struct Paths<'a> {
    operator: Operator,
    steps: &'a mut Vec<Step>,
}

impl<'de> DeserializeSeed<'de> for Paths<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Paths<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operator.entry().operand {
            Operand::None => write!(f, "a list of paths for {}", self.operator),
            _ => write!(f, "an object of paths and operands for {}", self.operator),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.operator.entry().operand != Operand::None {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        while let Some(path) = list.next_element::<String>()? {
            self.steps.push(Step { operator: self.operator, path, operand: Value::Null });
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.operator.entry().operand == Operand::None {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        while let Some((path, json)) = map.next_entry::<String, serde_json::Value>()? {
            let operand = operand(&json).map_err(A::Error::custom)?;
            self.steps.push(Step { operator: self.operator, path, operand });
        }
        Ok(())
    }
}

/// A value of JSON as one that a field may take.
fn operand(json: &serde_json::Value) -> crate::Result<Value> {
    Ok(match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(v) => Value::Bool(*v),
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(v), _) => Value::Int(v),
            (None, Some(v)) => Value::Uint(v),
            // default: a number that is none of these is null
            _ => number.as_f64().map_or(Value::Null, Value::Float),
        },
        _ => Value::json(&json.to_string())?,
    })
}
