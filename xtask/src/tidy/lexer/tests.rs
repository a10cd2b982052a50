//! Each kind of token, and each thing that can hide another.

use super::*;

fn texts(source: &str, kind: Kind) -> Vec<&str> {
    tokens(source).into_iter().filter(|t| t.kind == kind).map(|t| t.text).collect()
}

#[test]
fn words_numbers_and_marks() {
    let found: Vec<_> = tokens("let x1 = r#fn + 0xff_u8;").iter().map(|t| t.text).collect();
    assert_eq!(found, ["let", "x1", "=", "r#fn", "+", "0xff_u8", ";"]);
    assert_eq!(
        texts("0..10 1.5e3 2.max(1) t.0", Kind::Number),
        ["0", "10", "1.5e3", "2", "1", "0"]
    );
}

#[test]
fn comments_hide_quotes_and_braces() {
    let source = "a // it's { \"\nb /* { /* nested \" */ ' */ c";
    assert_eq!(texts(source, Kind::Word), ["a", "b", "c"]);
    assert_eq!(texts(source, Kind::Comment).len(), 2);
}

#[test]
fn strings_hide_comments_braces_and_escaped_quotes() {
    assert_eq!(texts(r#""// {" + "a\"b{" + "\\" + x"#, Kind::Word), ["x"]);
    assert_eq!(texts(r#"b"{" c"{" b'{' b'\'' '{' '\'' '"' x"#, Kind::Word), ["x"]);
}

#[test]
fn raw_strings_end_at_as_many_hashes() {
    let source = "r\"\\\" r#\"\"{\"# br##\"\"#{\"## cr\"{\" x";
    let found = texts(source, Kind::Literal);
    assert_eq!(found, ["r\"\\\"", "r#\"\"{\"#", "br##\"\"#{\"##", "cr\"{\""]);
    assert_eq!(texts(source, Kind::Word), ["x"]);
}

#[test]
fn words_that_start_like_a_prefix_are_words() {
    assert_eq!(texts("bar crb b br r c", Kind::Word), ["bar", "crb", "b", "br", "r", "c"]);
    assert_eq!(texts("br\"x\"", Kind::Literal), ["br\"x\""]);
}

#[test]
fn lifetimes_are_not_characters() {
    let source = "fn f<'a>(x: &'a str) -> &'static str { 'b'; 'é'; '\\u{7d}'; 'outer: loop {} }";
    assert_eq!(texts(source, Kind::Lifetime), ["'a", "'a", "'static", "'outer"]);
    assert_eq!(texts(source, Kind::Literal), ["'b'", "'é'", "'\\u{7d}'"]);
}

#[test]
fn lines_count_through_every_token() {
    let found = tokens("a\n\"x\ny\"\n/*\n*/ b");
    let lines: Vec<_> = found.iter().map(|t| (t.line, t.last_line())).collect();
    assert_eq!(lines, [(1, 1), (2, 3), (4, 5), (5, 5)]);
}

#[test]
fn unclosed_text_reaches_to_the_end() {
    for source in ["\"abc", "r#\"abc\"", "/* /* */", "b'", "'\\"] {
        assert_eq!(tokens(source).len(), 1, "{source}");
    }
}

#[test]
fn the_tokens_and_the_space_between_are_the_whole_text() {
    let source = include_str!("../lexer.rs");
    let kept: String = tokens(source).iter().map(|t| t.text).collect();
    let squeeze = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    assert_eq!(squeeze(&kept), squeeze(source));
}
