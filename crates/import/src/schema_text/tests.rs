use super::*;

#[test]
fn reads_back_what_it_writes() {
    let texts = [
        "a i64",
        "a i64 not null, b text, primary key (a)",
        "\"odd name\" f64, \"\"\"\" bytes, \"1st\" bool, ünï text",
        "origin text not null, hour timestamp not null, d date, primary key (hour, origin)",
        "a text(40) not null, b bytes(1), primary key (a)",
        "a i64, b text, index by_a (a), index \"odd name\" (b desc, a)",
        "index i64, key text(4), index \"text\" (index desc)",
        "primary i64, key text, \"not\" text, \"null\" u8 not null",
    ];
    for text in texts {
        let schema = parse(text).unwrap();
        let written = write(&schema);
        assert_eq!(parse(&written).unwrap(), schema, "{written}");
    }
    assert_eq!(write(&parse(texts[1]).unwrap()), texts[1]);
    assert_eq!(write(&parse(texts[3]).unwrap()), texts[3]);
    assert_eq!(write(&parse(texts[4]).unwrap()), texts[4]);
    assert_eq!(write(&parse("a varchar:40, b long").unwrap()), "a text(40), b i64");
}

#[test]
fn a_stream_is_read_and_written() {
    for text in [
        "t timestamp not null, stream (t)",
        "\"at\" timestamp not null, a text, j json, stream (\"at\", late '1 day', rest 'j', \
         retention '90 days', retention_by 'a: \"it''s\" 7 days', window '1 day', \
         dedupe 'a within 1 hour'), index by_a (a)",
        "stream text, stream_ i64",
    ] {
        let written = write(&parse(text).unwrap());
        assert_eq!(written, text.replace("\"at\"", "at"));
        assert_eq!(parse(&written).unwrap(), parse(text).unwrap());
    }
}

#[test]
fn is_generous_with_space_and_case() {
    let schema = parse("\n a  I64 NOT\n NULL ,b Text null,\n PRIMARY KEY(b , a )\n").unwrap();
    assert_eq!(write(&schema), "a i64 not null, b text not null, primary key (b, a)");
}

#[test]
fn errors_point_at_the_place() {
    let cases = [
        ("", "schema, character 1: expected a field name or `primary key`, found the end"),
        ("a", "schema, character 2: expected a type, found the end"),
        ("a i64,", "schema, character 7: expected a field name or `primary key`, found the end"),
        ("a i64 nul", "schema, character 7: expected `,` or the end, found \"nul\""),
        ("a i64 not", "schema, character 10: expected `null`, found the end"),
        ("a i64\nb text", "schema, line 2, character 1: expected `,` or the end, found \"b\""),
        ("a i64, primary key a", "schema, character 20: expected `(`, found \"a\""),
        ("a i64, primary key (a", "schema, character 22: expected `,` or `)`, found the end"),
        ("a i64, primary key (b)", "schema: unknown key field \"b\""),
        ("a i64(4)", "schema, character 6: text and bytes have a length, i64 has none"),
        ("a text(0)", "schema, character 8: expected a length of 1 to 4294967295, found \"0\""),
        ("a text:x", "schema, character 8: expected a length of 1 to 4294967295, found \"x\""),
        ("a text(4", "schema, character 9: expected `)`, found the end"),
        ("a i64, a text", "schema: field \"a\" is declared twice"),
        ("\"a i64", "schema, character 1: a quoted name starts here and is never closed"),
        ("a i64, index", "schema, character 13: expected a type, found the end"),
        ("a i64, index x (b)", "schema: unknown field \"b\"; fields: a"),
        ("a i64, index (a b)", "schema, character 17: expected `,` or `)`, found \"b\""),
        (
            "t timestamp not null, stream (t",
            "schema, character 32: expected `,` or `)`, found the end",
        ),
        ("t timestamp, stream (t)", "schema: time \"t\" of a stream: expected NOT NULL"),
        (
            "t timestamp not null, stream (t), stream (t)",
            "schema, character 35: expected one stream, found a second",
        ),
        (
            "t timestamp not null, stream (t, late 'x')",
            "schema, character 34: option late of a stream: expected a length of time such as \
             '1 day' or '90 minutes', found \"x\"",
        ),
        ("a (", "schema, character 3: expected a type, found `(`"),
    ];
    for (text, wanted) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), wanted, "{text:?}");
    }
    let unknown = parse("a i64, b money").unwrap_err().to_string();
    assert!(unknown.starts_with("schema, character 10: unknown type \"money\"; known: bool, i8"));
}
