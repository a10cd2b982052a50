//! Decimals, enums and JSON in SQL, from text to rows, whatever the encoding.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::text::parse_value;
use esker_format::{Batch, Decimal, Labels, Schema, Value};
use esker_query::{Options, execute};
use esker_vfs::Environment;

/// A table from the text of its schema and of its rows, `null` where it is NULL.
struct Table {
    schema: Schema,
    batch: Batch,
}

impl Table {
    fn new(fields: &[(&str, &str)], rows: &[&[&str]]) -> Self {
        let mut builder = Schema::builder();
        for (name, data_type) in fields {
            let (data_type, labels) = match data_type.strip_prefix("enum:") {
                Some(labels) => ("enum", Some(Labels::new(labels.split(',')).unwrap())),
                None => (*data_type, None),
            };
            builder = builder.nullable(*name, data_type.parse().unwrap());
            builder = labels.map_or(builder.clone(), |labels| builder.labels(labels));
        }
        let schema = builder.build().unwrap();
        let mut batch = Batch::empty(&schema);
        for row in rows {
            let cells = row.iter().zip(schema.fields());
            let row: Vec<Value> = cells
                .map(|(text, field)| match *text {
                    "null" => Value::Null,
                    text => parse_value(text, field.data_type).unwrap(),
                })
                .collect();
            batch.push_row(&schema, &row).unwrap();
        }
        Self { schema, batch }
    }

    fn try_answer(&self, text: &str, encoding: Encoding) -> Result<String, String> {
        let layout = Layout { encoding, chunk_rows: 2, ..Layout::default() };
        let source = MemorySource::new(self.schema.clone()).with_part(&self.batch, &layout);
        let query = esker_sql::parse(text).map_err(|e| e.to_string())?;
        let options = Options::new(&Environment::os());
        let result = execute(&query, &source, &options).map_err(|e| e.to_string())?;
        let row = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        Ok(result.to_rows().into_iter().map(row).collect::<Vec<_>>().join("\n"))
    }

    fn check(&self, pairs: &[(&str, &str)]) {
        for (text, expected) in pairs {
            for encoding in [
                Encoding::Plain,
                Encoding::Compact,
                Encoding::FixedWidth,
                Encoding::Interleaved,
                Encoding::Lined,
            ] {
                let answer = self.try_answer(text, encoding).unwrap_or_else(|e| e);
                assert_eq!(answer, *expected, "{text} {encoding:?}");
            }
        }
    }
}

fn prices() -> Table {
    Table::new(
        &[("n", "i64"), ("price", "decimal(9,2)"), ("big", "decimal(38,4)"), ("f", "f64")],
        &[
            &["1", "1.10", "90071992547409.9300", "0.1"],
            &["2", "2.20", "-0.0001", "2.2"],
            &["3", "3.30", "9999999999999999999999999999999999.9999", "1.5"],
            &["2", "null", "null", "null"],
            &["4", "-0.50", "0.0001", "-0.5"],
        ],
    )
}

#[test]
fn decimals_are_computed_exactly() {
    prices().check(&[
        ("SELECT sum(price), min(price), max(price), avg(price) FROM t", "6.10 -0.50 3.30 1.525"),
        ("SELECT price + price, price * 3, price - 1 FROM t LIMIT 1", "2.20 3.30 0.10"),
        ("SELECT price * price, 0.1 + 0.2, 1.5 * 2.25 FROM t LIMIT 1", "1.2100 0.3 3.375"),
        ("SELECT price % 1, -price, abs(-price), price / 2 FROM t LIMIT 1", "0.10 -1.10 1.10 0.55"),
        ("SELECT price % 0, price / 0 FROM t LIMIT 1", "null null"),
        ("SELECT big * 2 FROM t WHERE n = 1", "180143985094819.8600"),
        ("SELECT sum(big) FROM t WHERE n < 3", "90071992547409.9299"),
        ("SELECT sum(big - big) FROM t", "0.0000"),
        ("SELECT n * 0.1 FROM t ORDER BY 1 LIMIT 3", "0.1\n0.2\n0.2"),
        ("SELECT f * 2.0 FROM t LIMIT 1", "0.2"),
        (
            "SELECT round(price, 1), round(price), round(price, 9), round(155.5, -1) FROM t \
          WHERE n = 4",
            "-0.5 -1 -0.50 160",
        ),
        ("SELECT coalesce(price, 0), coalesce(price, n) FROM t WHERE price IS NULL", "0.00 2.00"),
        ("SELECT CASE WHEN n = 1 THEN price ELSE 0.125 END FROM t LIMIT 2", "1.100\n0.125"),
        (
            "SELECT big + 0.0001 FROM t WHERE n = 3",
            "9999999999999999999999999999999999.9999 + 0.0001 does not fit decimal(38,4)",
        ),
        ("SELECT sum(big) FROM t WHERE n >= 3", "a sum of decimals has more than 38 digits"),
        (
            "SELECT big * CAST(price AS decimal(38,35)) FROM t",
            "SELECT: big * CAST(price AS decimal(38,35)): a product of 4 and 35 digits behind the \
          point would have 39, at most 38: cast one to fewer",
        ),
    ]);
}

/// Whether a batch is computed in words or in wide numbers depends on all of its values.
#[test]
fn sums_and_products_of_decimals_are_exact_for_words_and_wide_numbers() {
    let most = 10i64.pow(18) - 1;
    let mantissas = [0, 1, -1, 99, -100, 1 << 31, -(1 << 31), 10i64.pow(17), most, -most];
    let pairs = || mantissas.iter().flat_map(|a| mantissas.iter().map(move |b| (*a, *b)));
    let shown = |mantissa: i128, scale| Decimal::new(mantissa, scale).unwrap().to_string();
    let rows: Vec<[String; 2]> =
        pairs().map(|(a, b)| [shown(a.into(), 2), shown(b.into(), 4)]).collect();
    let rows: Vec<Vec<&str>> =
        rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
    let table = Table::new(&[("a", "decimal(18,2)"), ("b", "decimal(18,4)")], &rows);
    let line = |(a, b): (i64, i64)| {
        let (a, b) = (i128::from(a), i128::from(b));
        let sums = [a * 100 + b, a * 100 - b].map(|v| shown(v, 4)).join(" ");
        format!("{sums} {} {}", shown(a * b, 6), shown(a * (10_000 - b), 6))
    };
    let expected = pairs().map(line).collect::<Vec<_>>().join("\n");
    table.check(&[("SELECT a + b, a - b, a * b, a * (1 - b) FROM t", &expected)]);
}

#[test]
fn decimals_compare_exactly() {
    prices().check(&[
        ("SELECT n FROM t WHERE price = 1.1", "1"),
        ("SELECT n FROM t WHERE price = 1.10000 OR 2.2 = price", "1\n2"),
        ("SELECT n FROM t WHERE price > 1.099999 AND price < 2.2000001", "1\n2"),
        ("SELECT n FROM t WHERE price IN (1.1, 3.3, 7, 1.105)", "1\n3"),
        ("SELECT n FROM t WHERE price NOT IN (1.1, 3.3)", "2\n4"),
        ("SELECT n FROM t WHERE price BETWEEN -1 AND 2", "1\n4"),
        ("SELECT n FROM t WHERE price > n", "1\n2\n3"),
        ("SELECT n FROM t WHERE price < big", "1\n3\n4"),
        ("SELECT n FROM t WHERE big > 90071992547409.93", "3"),
        ("SELECT n FROM t WHERE big >= 90071992547409.93", "1\n3"),
        ("SELECT n FROM t WHERE big = 0.0001 OR big = -1e-4", "4"),
        ("SELECT n FROM t WHERE f = 0.1 OR f = 2.2", "1\n2"),
        ("SELECT n FROM t WHERE price = 0.5e0 - 1", "4"),
        ("SELECT n FROM t WHERE price = f", "4"),
        ("SELECT n FROM t WHERE price IS NULL", "2"),
        ("SELECT n FROM t WHERE n > 1.5 AND n < 3.5", "2\n3\n2"),
    ]);
}

#[test]
fn decimals_group_and_order() {
    prices().check(&[
        ("SELECT n FROM t ORDER BY price DESC NULLS LAST", "3\n2\n1\n4\n2"),
        ("SELECT n FROM t WHERE big IS NOT NULL ORDER BY big", "2\n4\n1\n3"),
        ("SELECT price * 0, count(*) FROM t GROUP BY price * 0", "0.00 4\nnull 1"),
        (
            "SELECT big, count(price) FROM t GROUP BY big HAVING big > 1 ORDER BY big",
            "90071992547409.9300 1\n9999999999999999999999999999999999.9999 1",
        ),
        ("SELECT count(DISTINCT price), count(DISTINCT big - big) FROM t", "4 1"),
        ("SELECT max(big), min(big) FROM t WHERE n <> 3", "90071992547409.9300 -0.0001"),
    ]);
}

#[test]
fn decimals_are_cast_both_ways() {
    prices().check(&[
        (
            "SELECT CAST(price AS i64), CAST(price AS f64), CAST(price AS text) FROM t WHERE n = 4",
            "0 -0.5 -0.50",
        ),
        (
            "SELECT CAST(1.005 AS decimal(9,2)), CAST(-1.005 AS decimal(9,2)) FROM t LIMIT 1",
            "1.01 -1.01",
        ),
        ("SELECT CAST(f AS decimal(9,1)), CAST(n AS numeric(5)) FROM t LIMIT 2", "0.1 1\n2.2 2"),
        ("SELECT CAST('12.50' AS decimal(9,2)), '3.10'::decimal(5,2) FROM t LIMIT 1", "12.50 3.10"),
        (
            "SELECT CAST('1.234' AS decimal(9,2)) FROM t",
            "SELECT: CAST('1.234' AS decimal(9,2)): cannot cast text '1.234' to decimal(9,2)",
        ),
        ("SELECT CAST(price AS decimal(2,2)) FROM t", "cannot cast decimal '1.10' to decimal(2,2)"),
        (
            "SELECT CAST(1 AS decimal) FROM t",
            "expected how many digits a decimal has, and how many of them behind the point, like \
          decimal(12,2), found decimal",
        ),
    ]);
}

fn sizes() -> Table {
    let rows: Vec<[&str; 3]> = (0..40)
        .map(|i| [["small", "large", "medium", "null"][i % 4], "b", ["large", "x"][i % 2]])
        .collect();
    let rows: Vec<&[&str]> = rows.iter().map(<[&str; 3]>::as_slice).collect();
    Table::new(
        &[("size", "enum:small,medium,large"), ("other", "enum:b,small"), ("word", "text")],
        &rows,
    )
}

#[test]
fn labels_have_their_declared_order() {
    sizes().check(&[
        (
            "SELECT size, count(*) FROM t GROUP BY size ORDER BY size",
            "null 10\nsmall 10\nmedium 10\nlarge 10",
        ),
        ("SELECT min(size), max(size) FROM t", "small large"),
        ("SELECT count(*) FROM t WHERE size > 'small'", "20"),
        ("SELECT count(*) FROM t WHERE 'medium' >= size", "20"),
        ("SELECT count(*) FROM t WHERE size BETWEEN 'medium' AND 'large'", "20"),
        ("SELECT count(*) FROM t WHERE size IN ('small', 'large') AND size <> 'large'", "10"),
        ("SELECT size FROM t GROUP BY size HAVING size < 'large'", "small\nmedium"),
        ("SELECT max(size) FROM t HAVING max(size) = 'large'", "large"),
        (
            "SELECT count(*) FROM t WHERE size > 'huge'",
            "WHERE: size > 'huge': expected one of small, medium, large, found \"huge\"",
        ),
        ("SELECT count(*) FROM t WHERE size = 3", "WHERE: size = 3: cannot compare enum with i64"),
    ]);
}

#[test]
fn labels_are_text_where_text_is_wanted() {
    sizes().check(&[
        ("SELECT count(*) FROM t WHERE size LIKE '%m%'", "20"),
        ("SELECT count(*) FROM t WHERE size = word", "0"),
        ("SELECT count(*) FROM t WHERE size <> word", "30"),
        ("SELECT count(*) FROM t WHERE size > other", "30"),
        ("SELECT upper(size), length(size), size || '!' FROM t LIMIT 1", "SMALL 5 small!"),
        (
            "SELECT CAST(size AS text), coalesce(size, 'none') FROM t LIMIT 4",
            "small small\nlarge large\nmedium medium\nnull none",
        ),
        ("SELECT CASE WHEN size > 'medium' THEN size ELSE other END FROM t LIMIT 2", "b\nlarge"),
        ("SELECT typeof(size), size IS NULL FROM t LIMIT 1", "enum false"),
    ]);
}

fn documents() -> Table {
    Table::new(
        &[("id", "i64"), ("doc", "json")],
        &[
            &["1", r#"{"name": "Ada", "age": 36, "tags": ["x", "y"], "at": {"lat": 1.50}}"#],
            &["2", r#"{"name": "Bob", "age": 7, "tags": []}"#],
            &["3", r#"[1, 10, 2.0]"#],
            &["4", " null"],
            &["5", r#"{"name": null, "age": 100}"#],
        ],
    )
}

#[test]
fn parts_of_json_are_values() {
    documents().check(&[
        (
            "SELECT doc FROM t WHERE id = 1",
            r#"{"age":36,"at":{"lat":1.50},"name":"Ada","tags":["x","y"]}"#,
        ),
        ("SELECT doc -> 'name', doc ->> 'name' FROM t WHERE id < 3", "\"Ada\" Ada\n\"Bob\" Bob"),
        ("SELECT doc -> 'at' -> 'lat', doc -> 'tags' ->> 1 FROM t WHERE id = 1", "1.50 y"),
        ("SELECT doc -> 1, doc ->> -1, doc -> 9 FROM t WHERE id = 3", "10 2.0 null"),
        (
            "SELECT json_get(doc, 'tags', 0), json_extract(doc, 'at', 'lat') FROM t WHERE id = 1",
            "\"x\" 1.50",
        ),
        ("SELECT doc ->> 'name', (doc -> 'name') IS NULL FROM t WHERE id = 5", "null false"),
        ("SELECT id FROM t WHERE doc ->> 'name' = 'Bob'", "2"),
        ("SELECT id FROM t WHERE CAST(doc ->> 'age' AS i64) > 10", "1\n5"),
        ("SELECT id FROM t WHERE doc -> 'age' = '7'", "2"),
        ("SELECT id FROM t WHERE doc = 'null' OR doc = '[1,10, 2.0]'", "3\n4"),
        ("SELECT id FROM t ORDER BY doc -> 'age' DESC NULLS LAST, id", "5\n1\n2\n3\n4"),
        (
            "SELECT doc ->> 'name' AS n, count(*) FROM t GROUP BY n ORDER BY n",
            "null 3\nAda 1\nBob 1",
        ),
        ("SELECT max(doc -> 'age'), count(DISTINCT doc -> 'age') FROM t", "100 3"),
        ("SELECT CAST('{\"b\":1, \"a\":2}' AS json) FROM t LIMIT 1", "{\"a\":2,\"b\":1}"),
        ("SELECT CAST(doc AS text) FROM t WHERE id = 4", "null"),
        ("SELECT id -> 'a' FROM t", "SELECT: json_get(id, 'a'): expected json, found i64"),
        (
            "SELECT doc -> 1.5 FROM t",
            "SELECT: json_get(doc, 1.5): expected a name or a place, found decimal(2,1) '1.5'",
        ),
        (
            "SELECT id FROM t WHERE doc = '{a}'",
            "WHERE: doc = '{a}': expected json: line 1, character 2: expected a name in quotes, \
          found \"a}\"",
        ),
    ]);
}
