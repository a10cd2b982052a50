//! Whether a body has the form that the document says.

use serde_json::Value as Json;

/// What of a value is not as a schema of the document says, with its place.
pub fn misfit(document: &Json, schema: &Json, value: &Json, place: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#'));
        return misfit(document, schema.unwrap_or_else(|| panic!("{name}")), value, place);
    }
    let types = match &schema["type"] {
        Json::Array(types) => types.clone(),
        Json::Null => Vec::new(),
        one => vec![one.clone()],
    };
    if !types.is_empty() && !types.iter().any(|name| is_of(name.as_str().unwrap(), value)) {
        return Some(format!("{place}: expected {}, found {value}", schema["type"]));
    }
    let members = value.as_object().into_iter().flatten();
    let mut misfits = members.map(|(name, member)| match schema["properties"].get(name) {
        Some(schema) => misfit(document, schema, member, &format!("{place}.{name}")),
        None if schema["properties"].is_null() => None,
        None => Some(format!("{place}: the document has no member {name}")),
    });
    let required = schema["required"].as_array().into_iter().flatten();
    let mut missing = required.filter(|name| value.get(name.as_str().unwrap()).is_none());
    let items = value.as_array().into_iter().flatten();
    let mut wrong = items.map(|item| misfit(document, &schema["items"], item, place));
    let missing = missing.next().map(|name| format!("{place}: no member {name}"));
    missing.or_else(|| misfits.find_map(|m| m)).or_else(|| wrong.find_map(|m| m))
}

fn is_of(name: &str, value: &Json) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}
