use super::*;

fn options() -> ImportOptions {
    ImportOptions::default().sniff_delimiter().sniff_quote().sniff_comment().sniff_header()
}

/// How a text is written: delimiter, quote, lines before the header, whether there is one.
fn found(text: &str) -> (char, char, u64, bool) {
    let sniffed = sniff(text.as_bytes(), true, &options());
    let quote = sniffed.csv.quote.map_or('-', char::from);
    (char::from(sniffed.csv.delimiter), quote, sniffed.skip, sniffed.header)
}

#[test]
fn delimiters_are_found() {
    for (text, delimiter) in [
        ("a;b\n1;x\n2;y\n", ';'),
        ("a\tb\n1\tx, y\n2\ty\n", '\t'),
        ("a|b|c\n1|x|2\n", '|'),
        ("a,b\n1,x\n", ','),
        ("name\nAda\n", ','),
        // Decimal commas.
        ("a;b\n1,5;2,5\n3,5;4,5\n", ';'),
        ("t;v\n2013-01-31;1,5\n2013-02-01;2,25\n", ';'),
        // Lists within a field.
        ("name,list\nx,1;2;3\ny,4;5;6\n", ','),
        ("id,n\n1,2\n2,x\n3\n4,\"5\"\n", ','),
        ("\"a,b\";\"c\"\n\"x,y\";\"z\"\n", ';'),
        // Spaces, where nothing else is between the fields and all of them are values.
        ("a b c\n1 2 3\n4 5.5 -6\n", ' '),
        ("\"x\" \"y\"\n\"1\" 1 \"a b\"\n\"2\" 3 \"c\"\n", ' '),
        ("full name\nAda Lovelace\n", ','),
        ("room number\nRoom 1\nRoom 2\n", ','),
        ("when\n2013-01-31 05:17:00\n", ','),
        ("\"when\"\n2013-01-31 05:17:00\n", ','),
        ("a  b\n1  2\n", ','),
        ("1 2\n3 4\n", ','),
        ("a b, c\n1 2, 3\n", ','),
    ] {
        assert_eq!(found(text).0, delimiter, "{text}");
    }
}

#[test]
fn quotes_are_found() {
    for (text, quote) in [
        ("a,b\n\"x\",1\n", '"'),
        ("a,b\n'x, y',1\n'z',2\n", '\''),
        ("a\tb\nrock 'n' roll\t1\n'tis\t2\n", '"'),
        // A quote that begins a field and is none.
        ("a\tb\n\"x\t1\ny\t2\nz\t3\n", '-'),
    ] {
        assert_eq!(found(text).1, quote, "{text}");
    }
    let escaped = sniff(b"a,b\n\"x\\\"y, z\",1\n\"w\",2\n", true, &options());
    assert_eq!((escaped.csv.quote, escaped.csv.escape), (Some(b'"'), Some(b'\\')));
}

#[test]
fn headers_are_found() {
    for (text, header) in [
        ("name,born\nAda,1815\n", true),
        ("Ada,1815\nBo,1900\n", true),
        ("1,1.5\n2,2.5\n", false),
        ("1.5,2.5\n", false),
        ("2013-01-31,x\n2013-02-01,y\n", false),
        ("country,1990,1991\nAruba,1,2\n", true),
        ("1990,1991\n1,2\n", true),
        ("0,1,2\n0.5,1.5,2.5\n", true),
        ("a,b\n", true),
        (",a\n0,x\n", true),
        ("NA,1\nx,2\n", false),
    ] {
        assert_eq!(found(text).3, header, "{text}");
    }
}

#[test]
fn comments_and_titles_stand_before_the_header() {
    assert_eq!(found("# by x\n# 2013, y\na,b,c\n1,2,3\n").2, 2);
    assert_eq!(found("##meta\n#CHROM\tPOS\n1\t5\n2\t6\n"), ('\t', '"', 1, true));
    assert_eq!(found("#id,name\n1,x\n").2, 0);
    assert_eq!(found("Report\n\nname,n,m\nx,1,2\ny,2,3\n"), (',', '"', 2, true));
    assert_eq!(found("a\n1,2,3\n4,5,6\n").2, 0);
    let sniffed = sniff(b"# x\nn\n1\n", true, &options());
    assert_eq!((sniffed.skip, sniffed.header), (1, true));
}

#[test]
fn columns_without_names_are_found() {
    let unnamed = |text: &str| sniff(text.as_bytes(), true, &options()).unnamed;
    assert_eq!(unnamed("x\ty\na\t1\t2\nb\t3\t4\n"), Some(Unnamed::First));
    assert_eq!(unnamed("a,b\n1,x,\n2,y,\n"), Some(Unnamed::Last));
    assert_eq!(unnamed("a,b\n1,x\n"), None);
    assert!(sniff(b"a,b,\n1,x\n2,y\n", true, &options()).header_is_longer);
}
