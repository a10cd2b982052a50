//! JSON: any bytes as a document, and any text as JSON.

use esker_format::json::{Json, Kind, check, parse};

/// The target: no bytes break a reader; bytes that pass the check are the one form of their text;
/// a text that is JSON is shown as a text that has the same form.
pub fn run(data: &[u8]) {
    let json = Json::document(data);
    let shown = json.to_string();
    walk(json, 0);
    if check(data).is_ok() {
        assert_eq!(parse(&shown).as_deref(), Ok(data), "{shown}");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(document) = parse(text) {
        assert_eq!(check(&document), Ok(()), "{text}");
        let shown = Json::document(&document).to_string();
        assert_eq!(parse(&shown).as_ref(), Ok(&document), "{text} is shown as {shown}");
        walk(Json::document(&document), 0);
    }
}

/// Every part that is found by its name or place is the one found in order.
fn walk(json: Json<'_>, depth: usize) {
    if depth > 8 {
        return;
    }
    let _ = json.to_text();
    let document = json.to_document();
    match json.kind() {
        Kind::Array(items) => {
            for (i, item) in items.iter().take(32).enumerate() {
                let found = json.index(i64::try_from(i).expect("a few")).expect("an element");
                assert_eq!(found.to_string(), item.to_string());
                walk(item, depth + 1);
            }
        }
        Kind::Object(members) => {
            for (name, value) in members.iter().take(32) {
                let found = json.get(name).map(|found| found.to_string());
                if check(&document).is_ok() {
                    assert_eq!(found, Some(value.to_string()));
                }
                walk(value, depth + 1);
            }
        }
        _ => {}
    }
}
