use super::*;

/// All fields as they stand in the file, row by row, with the fault that ends them.
fn rows(text: &str, columns: usize, has_quotes: bool) -> (Vec<Vec<String>>, Option<Fault>) {
    let bytes = text.as_bytes();
    let mut tokenizer = Tokenizer::new(bytes, Csv::commas(), columns, has_quotes);
    let (mut rows, mut spans) = (Vec::new(), Vec::new());
    loop {
        let fault = tokenizer.next_block(&mut spans).err();
        for row in spans.chunks(columns) {
            let text = |s: &Span| String::from_utf8(s.of(bytes).to_vec()).unwrap();
            rows.push(row.iter().map(text).collect());
        }
        if fault.is_some() || spans.is_empty() {
            return (rows, fault);
        }
    }
}

#[test]
fn both_ways_agree_without_quotes() {
    let texts = [
        "",
        "\n",
        "a,b\n",
        "a,b",
        "a,b\r\nc,d\r\n",
        "a,b\n\n\r\nc,d\n\n",
        ",\n,\n",
        "a,\r\n,b\r",
        "a,b\nc\nd,e\n",
        "a,b\nc,d,e\n",
        "a,b\nc,",
        "x\ry,z\n",
        "0123456789abcdef,0123456789abcdef\n0,1",
    ];
    for text in texts {
        for columns in 1..4 {
            let (plain, quoted) = (rows(text, columns, false), rows(text, columns, true));
            assert_eq!(plain, quoted, "{text:?} as {columns} columns");
        }
    }
}

#[test]
fn blocks_end_anywhere() {
    for rows_wanted in [BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS] {
        let text: String = (0..rows_wanted).map(|i| format!("{i},x\n")).collect();
        for has_quotes in [false, true] {
            let (rows, fault) = rows(&text, 2, has_quotes);
            assert_eq!((rows.len(), fault), (rows_wanted, None));
            assert!(rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
        }
    }
}

#[test]
fn an_empty_line_is_a_row_of_one_column() {
    assert_eq!(rows("a\n\nb\n", 1, false).0, [["a"], [""], ["b"]]);
    assert_eq!(rows("a\n\r\nb\n", 1, true).0, [["a"], [""], ["b"]]);
}

#[test]
fn quoted_fields_keep_delimiters_and_line_ends() {
    let (found, fault) = rows("\"a,\n\"\"b\",c\r\nd,\"\"\n", 2, true);
    assert_eq!(found, [["\"a,\n\"\"b\"", "c"], ["d", "\"\""]]);
    assert_eq!(fault, None);
    assert_eq!(rows("5\" pipe,x\n", 2, true).0, [["5\" pipe", "x"]]);
}

#[test]
fn faults_have_a_place() {
    let fault = |text, position, kind| {
        assert_eq!(rows(text, 2, true).1, Some(Fault { position, kind }), "{text:?}");
    };
    fault("a,b\nc\n", 4, FaultKind::FieldCount(1));
    fault("a,b\nc,d,\"e\"\n", 4, FaultKind::FieldCount(3));
    fault("a,b\nc,\"d\n", 6, FaultKind::Unclosed);
    fault("a,b\n\"c\"x,d\n", 7, FaultKind::AfterQuote);
    fault("\"a\",b\r\n\"c\"\rd,d\n", 10, FaultKind::AfterQuote);
}
