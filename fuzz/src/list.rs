//! Lists: any bytes as one, and any text as one.

use esker_format::codec::Reader;
use esker_format::list::{ListElement, parse};
use esker_format::{DataType, List, ListBuilder, Value, ValueRef};

/// The target: the type of the items, then a list. Bytes that pass the check are the one form of
/// their values and of their text; a text that is a list is shown as one that has the same form.
pub fn run(data: &[u8]) {
    let mut input = Reader::new(data);
    let Ok(data_type) = DataType::decode(&mut input) else { return };
    let Ok(element) = ListElement::of(data_type) else { return };
    let Ok(bytes) = input.raw(input.remaining()) else { return };
    let shown = ValueRef::List(bytes).to_string();
    if let Ok(list) = List::check(bytes, element) {
        let values = list.values().expect("it was checked");
        let mut made = ListBuilder::new(element);
        for (value, item) in values.iter().zip(list.items()) {
            assert_eq!(value.is_null(), item.expect("it was checked").is_null());
            made.push(value.as_ref()).expect("it is of the type");
        }
        assert_eq!(list.len(), Ok(values.len()));
        assert_eq!(made.into_bytes(), bytes, "{shown}");
        assert_eq!(parse(&shown, element), Ok(Value::List(bytes.to_vec())), "{shown}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(list) = parse(text, element) {
        let bytes = list.as_ref().as_bytes().expect("a list has bytes").to_vec();
        assert!(List::check(&bytes, element).is_ok(), "{text}");
        assert_eq!(parse(&list.to_string(), element), Ok(list), "{text}");
    }
}
