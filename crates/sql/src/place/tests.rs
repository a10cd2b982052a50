use super::*;

fn shown(statement: &str, message: &str) -> Option<String> {
    place(statement, message).map(|excerpt| excerpt.to_string())
}

#[test]
fn places_are_found() {
    let syntax = |text: &str| crate::parse_statement(text).unwrap_err().to_string();
    let text = "SELECT a\nFROM t WHERE )";
    let place = place(text, &syntax(text)).unwrap();
    assert_eq!((place.line(), place.column()), (2, 14));
    assert_eq!(
        shown("SELECT lowr(a)", "unknown function lowr").unwrap(),
        "SELECT lowr(a)\n       ^^^^"
    );
    assert_eq!(
        shown("SELECT 1 FROM \"no such\"", "no table \"no such\"; there are none").unwrap(),
        "SELECT 1 FROM \"no such\"\n              ^^^^^^^^^"
    );
    assert_eq!(
        shown("SELECT é, nme", "unknown field \"nme\"").unwrap(),
        "SELECT é, nme\n          ^^^"
    );
    assert_eq!(shown("SELECT 1", "something else"), None);
    assert!(shown("SELECT 1", "at Line: 9, Column: 9").unwrap().ends_with('^'));
}
