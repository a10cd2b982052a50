use super::*;
use crate::ValueRef;

fn list(text: &str, element: ListElement) -> Value {
    parse(text, element).unwrap()
}

fn refused(text: &str, element: ListElement) -> String {
    parse(text, element).unwrap_err().to_string()
}

#[test]
fn lists_are_read_as_they_are_printed_and_as_json() {
    use ListElement as E;
    let decimal = E::Decimal { precision: 10, scale: 2 };
    for (text, element, shown) in [
        ("{}", E::I64, "{}"),
        (" { 1 , 2,NULL} ", E::I64, "{1,2,NULL}"),
        ("[1, null, 2]", E::I64, "{1,NULL,2}"),
        (r#"{a b,"c","",null,"null"}"#, E::Text, r#"{"a b",c,"",NULL,"null"}"#),
        (r#"{"q\"\\",x\,y}"#, E::Text, r#"{"q\"\\","x,y"}"#),
        (r#"["a","{b}"]"#, E::Text, r#"{a,"{b}"}"#),
        ("{1.5,2}", decimal, "{1.50,2.00}"),
        ("[1.5,\"2\"]", decimal, "{1.50,2.00}"),
        ("{-0.0,nan,1}", E::F64, "{0.0,NaN,1.0}"),
        ("{t,false}", E::Bool, "{true,false}"),
        ("[\"2013-01-28\"]", E::Date, "{2013-01-28}"),
        ("{\\null,null}", E::Text, "{\"null\",NULL}"),
        ("{00ff,\"\"}", E::Bytes, "{00ff,\"\"}"),
        ("{1 month,30 days}", E::Interval, "{\"1 mon\",\"30 days\"}"),
    ] {
        let value = list(text, element);
        assert_eq!(value.to_string(), shown, "{text}");
        assert_eq!(list(shown, element), value, "{text}");
        List::check(value.as_ref().as_bytes().unwrap(), element).unwrap();
    }
}

#[test]
fn errors_say_where() {
    use ListElement as E;
    for (text, element, message) in [
        ("1", E::I64, "expected a list like {1,2} or [1,2], found \"1\""),
        ("{1,", E::I64, "expected an item of a list at its byte 3, found the end"),
        ("{1 2", E::I64, "the list's byte 1: expected i64 "),
        ("{1,,2}", E::I64, "expected an item of a list at its byte 3, found ','"),
        ("{1}2", E::I64, "expected nothing behind the '}' of a list at its byte 3, found '2'"),
        ("{\"a", E::Text, "expected '\"' that ends an item of a list at its byte 3, found the end"),
        ("{300}", E::U8, "the list's byte 1: expected u8 (0 to 255), found \"300\""),
        ("{{1}}", E::I64, "a list in a list at its byte 1: such a field is json"),
        ("[[1]]", E::I64, "item 1: a list in a list: such a field is json"),
        ("[1,\"x\"]", E::I64, "item 2: expected i64"),
        ("[1]", E::Text, "item 1: expected text in UTF-8, found \"1\""),
        ("[1", E::I64, ""),
    ] {
        let found = refused(text, element);
        assert!(found.starts_with(message), "{text}: {found}");
    }
}

#[test]
fn a_prefix_is_less_and_null_greatest() {
    let sorted = ["{}", "{-1,5}", "{1}", "{1,1}", "{1,2}", "{1,NULL}", "{2}", "{NULL}", "{NULL,1}"];
    let values: Vec<_> = sorted.iter().map(|text| list(text, ListElement::I64)).collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    let texts = ["{}", "{\"\"}", "{a}", "{a,b}", "{aa}", "{b}"];
    let values: Vec<_> = texts.iter().map(|text| list(text, ListElement::Text)).collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
}

#[test]
#[allow(clippy::big_endian_bytes, reason = "bytes are in the order of values")]
fn damage_is_an_error() {
    let good = list("{a,NULL}", ListElement::Text);
    let good = good.as_ref().as_bytes().unwrap();
    let check = |bytes: &[u8]| List::check(bytes, ListElement::Text).map(|_| ());
    check(good).unwrap();
    for len in 0..good.len() {
        check(&good[..len]).unwrap_err();
    }
    for (at, byte) in [(0, 3), (1, 0xff), (3, 1), (4, 7), (5, 9), (6, 5), (6, 24), (6, 99)] {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        check(&bytes).unwrap_err();
    }
    // A NaN, and a zero, that are written in another way.
    for bits in [u64::MAX - 1, f64::NAN.to_bits() | 1 | 1 << 63, !(-0.0f64).to_bits()] {
        let bytes = [&[VALUE][..], &bits.to_be_bytes(), &[END, DataType::F64.code()]].concat();
        List::check(&bytes, ListElement::F64).unwrap_err();
    }
    let other = list("{1}", ListElement::I64);
    let other = check(other.as_ref().as_bytes().unwrap()).unwrap_err();
    assert_eq!(other.to_string(), "expected text[], found i64[]");
}

#[test]
fn items_are_copied_as_they_are() {
    let value = list("{a,\"\",NULL}", ListElement::Text);
    let list = List::of(value.as_ref().as_bytes().unwrap()).unwrap();
    let mut copy = ListBuilder::new(list.element());
    list.items().for_each(|item| copy.push_item(item.unwrap()).unwrap());
    assert_eq!((list.len().unwrap(), list.is_empty()), (3, false));
    assert_eq!(copy.finish(), value);
    assert_eq!(
        list.values().unwrap(),
        [Value::Text("a".into()), Value::Text(String::new()), Value::Null]
    );
    assert!(ListBuilder::new(ListElement::Text).push(ValueRef::Int(1)).is_err());
}
