//! JSON against its texts.

use proptest::prelude::*;

use super::*;

fn round_trip(text: &str) -> String {
    let document = parse(text).unwrap();
    check(&document).unwrap();
    let shown = Json::document(&document).to_string();
    assert_eq!(parse(&shown).unwrap(), document, "{text}");
    shown
}

#[test]
fn texts_become_their_one_form() {
    for (text, shown) in [
        (" null ", "null"),
        ("[ ]", "[]"),
        ("{ }", "{}"),
        ("-0.50e+10", "-0.50e+10"),
        (r#"{"b":1,"a":{"":[true,false]}}"#, r#"{"a":{"":[true,false]},"b":1}"#),
        (r#""\u0041\ud83d\ude00\/\n\u0000""#, "\"A😀/\\n\\u0000\""),
        ("\"ä\u{7f}\"", "\"ä\u{7f}\""),
    ] {
        assert_eq!(round_trip(text), shown);
    }
    let long = format!("[{}]", vec!["\"0123456789\""; 10_000].join(","));
    assert_eq!(round_trip(&long), long);
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    assert_eq!(round_trip(&deep), deep);
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    for (text, wanted) in [
        ("", "character 1: expected a value, found the end"),
        ("{\"a\":1,\n \"b\":2,\"a\":3}", "line 2, character 8: expected a name that the object"),
        ("[1,]", "character 4: expected a value, found \"]\""),
        ("[1 2]", "character 4: expected `,` or `]`"),
        ("{a:1}", "character 2: expected a name in quotes"),
        ("01", "expected a number"),
        ("1.", "expected a number"),
        ("1e9999999", "an exponent of at most 1000000"),
        ("nan", "expected a value"),
        ("\"a\nb\"", "control characters escaped"),
        (r#""\x""#, "an escape of JSON"),
        (r#""\ud800""#, "a pair of surrogates"),
        ("nulls", "expected the end, found \"s\""),
        ("\"a", "the rest of the string"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.starts_with("expected json: ") && message.contains(wanted), "{message}");
    }
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 2), "]".repeat(DEPTH_MAX + 2));
    assert!(parse(&deep).unwrap_err().to_string().contains("at most 128 levels"));
}

#[test]
fn documents_sort_by_kind_and_value() {
    let sorted = [
        "null", "false", "true", "-1e10", "-100", "-99.5", "-1", "-1.0", "-0.001", "0", "0e5",
        "1e-9", "0.5", "1", "1.0", "1.5", "2", "10", "99", "100", "1e2", "1e1000", "\"\"", "\"a\"",
        "\"ab\"", "\"b\"", "[]", "{}",
    ];
    let documents = sorted.map(|text| parse(text).unwrap());
    for pair in documents.windows(2) {
        let [a, b] = pair else { unreachable!() };
        assert!(a < b, "{} {}", Json::document(a), Json::document(b));
    }
}

#[test]
fn parts_are_found() {
    let document = parse(r#"{"a":[10,{"b":"x"},null],"n":-1.50}"#).unwrap();
    let json = Json::document(&document);
    let a = json.get("a").unwrap();
    assert_eq!(a.index(1).unwrap().get("b").unwrap().to_text().unwrap(), "x");
    assert_eq!(a.index(2).unwrap().to_text(), None);
    assert!(a.index(3).is_none() && a.index(-4).is_none() && json.get("b").is_none());
    let number = json.get("n").unwrap().to_document();
    check(&number).unwrap();
    assert_eq!(number, parse("-1.50").unwrap());
    assert_eq!(a.index(0).unwrap().to_string(), "10");
}

/// Met by the fuzz target: a part that says it is a number and is none.
#[test]
fn what_is_no_number_is_taken_out_without_a_panic() {
    let forged = [ARRAY, 1, 1, 3, NUMBER, b' ', b'~'];
    let part = Json::document(&forged).index(0).unwrap();
    assert!(check(&forged).is_err() && check(&part.to_document()).is_err());
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|v| v.to_string()),
        any::<i64>().prop_map(|v| v.to_string()),
        any::<f64>().prop_filter("a number", |v| v.is_finite()).prop_map(|v| format!("{v:e}")),
        ".{0,6}".prop_map(|s| format!("{:?}", s.replace(|c: char| !c.is_ascii_alphabetic(), "é"))),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::btree_map("[a-cä]{0,3}", inner, 0..6).prop_map(|v| {
                let members: Vec<_> = v.iter().rev().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn every_text_has_one_form(text in any_json()) {
        round_trip(&text);
    }

    #[test]
    fn no_bytes_break_it(mut bytes in prop::collection::vec(any::<u8>(), 0..60), tag in 1u8..8) {
        if let Some(first) = bytes.first_mut() {
            *first = tag;
        }
        let shown = Json::document(&bytes).to_string();
        if check(&bytes).is_ok() {
            prop_assert_eq!(parse(&shown).unwrap(), bytes);
        }
    }
}

#[test]
fn digits_beyond_38_are_rounded_once_and_every_other_is_exact() {
    let most = "12345678901234567890123456789012345678";
    assert_eq!(add_numbers(most, "0.449").unwrap(), most);
    assert_eq!(add_numbers("-0.449", &format!("-{most}")).unwrap(), format!("-{most}"));
    let product = multiply_numbers("9999999999", "0.1234567890123456789012345678901234567");
    assert_eq!(product.unwrap(), "1234567889.9999999999999999999999999991");
    assert!(multiply_numbers(most, "-10").is_err());
}

#[test]
fn a_path_of_more_levels_than_a_document_has_is_refused() {
    let path = vec![Step::Name("a".to_owned()); 200_000];
    assert!(edit(None, &path, &mut |_| Ok(Replacement::Remove)).is_err());
}
