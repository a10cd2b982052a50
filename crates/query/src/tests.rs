//! Queries from end to end over a small table.

use esker_format::{Batch, DataType, Schema, Value};
use esker_vfs::Environment;

use crate::model::{Aggregate, Expr, Operator, OrderBy};
use crate::testing::{Encoding, Layout, MemorySource, NullForm};
use crate::{ErrorKind, Options, Query, execute, explain};

fn options() -> Options {
    Options::new(&Environment::os())
}

fn flights(layout: &Layout) -> MemorySource {
    let schema = Schema::builder()
        .field("carrier", DataType::Text)
        .field("month", DataType::I32)
        .nullable("delay", DataType::I64)
        .nullable("distance", DataType::F64)
        .field("day", DataType::Date)
        .build()
        .unwrap();
    let mut batch = Batch::empty(&schema);
    let rows: [(&str, i64, Option<i64>, Option<f64>); 6] = [
        ("AA", 1, Some(10), Some(100.0)),
        ("UA", 1, None, Some(250.5)),
        ("AA", 2, Some(-5), None),
        ("DL", 2, Some(0), Some(90.0)),
        ("UA", 3, Some(25), Some(10.0)),
        ("AA", 3, None, Some(1.0)),
    ];
    for (i, (carrier, month, delay, distance)) in rows.into_iter().enumerate() {
        let row = [
            Value::from(carrier),
            month.into(),
            delay.into(),
            distance.into(),
            Value::Date(15_000 + i32::try_from(i).unwrap()),
        ];
        batch.push_row(&schema, &row).unwrap();
    }
    MemorySource::new(schema).with_part(&batch, layout)
}

fn layouts() -> Vec<Layout> {
    let mut all = Vec::new();
    for encoding in [
        Encoding::Plain,
        Encoding::Compact,
        Encoding::FixedWidth,
        Encoding::Interleaved,
        Encoding::Lined,
        Encoding::Scattered,
    ] {
        for nulls in [NullForm::Bytes, NullForm::Bits(3)] {
            for chunk_rows in [2, 8_192] {
                all.push(Layout { encoding, nulls, chunk_rows, ..Layout::default() });
            }
        }
    }
    all
}

/// Runs a query over every layout; all must agree.
fn run(query: &Query) -> Vec<Vec<Value>> {
    let answers: Vec<_> = layouts()
        .iter()
        .map(|layout| execute(query, &flights(layout), &options()).unwrap().to_rows())
        .collect();
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    answers[0].clone()
}

fn text(rows: &[Vec<Value>]) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn field(name: &str) -> Expr {
    Expr::field(name)
}

#[test]
fn filters_keep_what_is_true() {
    let mut query = Query::table("flights");
    query.select(field("carrier")).select(field("delay"));
    query.filter = Some(field("delay").binary(Operator::Gt, Expr::literal(-1i64)));
    assert_eq!(text(&run(&query)), "AA 10\nDL 0\nUA 25");
    // NOT of NULL is NULL.
    let not = Expr::Apply(Operator::Not, vec![query.filter.clone().unwrap()]);
    query.filter = Some(not);
    assert_eq!(text(&run(&query)), "AA -5");
    query.filter = Some(Expr::Apply(Operator::IsNull, vec![field("delay")]));
    assert_eq!(text(&run(&query)), "UA null\nAA null");
    let like = Expr::Apply(Operator::Like, vec![field("carrier"), Expr::literal("_A")]);
    query.filter = Some(like.and(field("month").binary(Operator::Neq, Expr::literal(1i64))));
    assert_eq!(text(&run(&query)), "AA -5\nUA 25\nAA null");
}

#[test]
fn groups_come_in_the_order_they_are_met() {
    let mut query = Query::table("flights");
    query
        .select(field("carrier"))
        .select(Expr::count())
        .select(Expr::aggregate(Aggregate::Count, field("delay")))
        .select(Expr::aggregate(Aggregate::Sum, field("delay")))
        .select(Expr::aggregate(Aggregate::Avg, field("distance")))
        .select(Expr::aggregate(Aggregate::Min, field("day")))
        .select(Expr::aggregate(Aggregate::Max, field("month")));
    query.group_by = vec![field("carrier")];
    let expected = "AA 3 2 5 50.5 2011-01-26 3\nUA 2 1 25 130.25 2011-01-27 3\n\
                    DL 1 1 0 90.0 2011-01-29 2";
    assert_eq!(text(&run(&query)), expected);
    query.having = Some(Expr::count().binary(Operator::Gt, Expr::literal(1i64)));
    query.order_by = vec![OrderBy {
        expr: Expr::aggregate(Aggregate::Sum, field("delay")),
        descending: true,
        nulls_first: None,
    }];
    query.limit = Some(1.into());
    assert_eq!(text(&run(&query)), "UA 2 1 25 130.25 2011-01-27 3");
}

#[test]
fn spread_and_quantiles() {
    let delay = |function| Expr::aggregate(function, field("delay"));
    let mut query = Query::table("flights");
    query.select(delay(Aggregate::MEDIAN)).select(delay(Aggregate::quantile(0.9).unwrap()));
    assert_eq!(text(&run(&query)), "5.0 20.5");
    assert_eq!(query.select[1].expr.to_string(), "quantile(delay, 0.9)");
    let mut query = Query::table("flights");
    query.select(field("carrier"));
    for function in Aggregate::ALL.into_iter().skip(5).take(5) {
        query.select(delay(function));
    }
    query.group_by = vec![field("carrier")];
    let expected = "AA 10.606601717798213 7.5 112.5 56.25 2.5\nUA null 0.0 null 0.0 25.0\n\
                    DL null 0.0 null 0.0 0.0";
    assert_eq!(text(&run(&query)), expected);
}

#[test]
fn aggregates_without_groups() {
    let mut query = Query::table("flights");
    query.select(Expr::count()).select(Expr::aggregate(Aggregate::Sum, field("month")));
    query.select(Expr::Aggregate {
        function: Aggregate::Count,
        operand: Some(Box::new(field("carrier"))),
        distinct: true,
        order: Vec::new(),
    });
    for name in ["delay", "distance", "carrier", "day"] {
        query.select(Expr::aggregate(Aggregate::Min, field(name)));
        query.select(Expr::aggregate(Aggregate::Max, field(name)));
    }
    let expected = "6 12 3 -5 25 1.0 250.5 AA UA 2011-01-26 2011-01-31";
    assert_eq!(text(&run(&query)), expected);
    query.filter = Some(Expr::literal(false));
    assert_eq!(text(&run(&query)), "0 null 0 null null null null null null null null");
}

#[test]
fn orders_limits_and_distinct() {
    let mut query = Query::table("flights");
    query.select(field("delay"));
    let key = |descending, nulls_first| OrderBy { expr: field("delay"), descending, nulls_first };
    query.order_by = vec![key(false, None)];
    assert_eq!(text(&run(&query)), "null\nnull\n-5\n0\n10\n25");
    query.order_by = vec![key(true, Some(true))];
    query.limit = Some(3.into());
    query.offset = 1.into();
    assert_eq!(text(&run(&query)), "null\n25\n10");
    let mut query = Query::table("flights");
    query.select(field("carrier"));
    query.distinct = true;
    assert_eq!(text(&run(&query)), "AA\nUA\nDL");
    query.offset = 1.into();
    query.limit = Some(1.into());
    assert_eq!(text(&run(&query)), "UA");
    let mut query = Query::table("flights");
    query.select(Expr::count());
    query.group_by = vec![field("carrier")];
    query.distinct = true;
    query.order_by = vec![OrderBy { expr: Expr::count(), descending: false, nulls_first: None }];
    assert_eq!(text(&run(&query)), "1\n2\n3");
}

#[test]
fn arithmetic_is_checked_and_division_by_zero_is_null() {
    let mut query = Query::table("flights");
    let delay = || field("delay");
    query
        .select(delay().binary(Operator::Divide, Expr::literal(4i64)))
        .select(Expr::literal(7i64).binary(Operator::Remainder, delay()))
        .select(field("day").binary(Operator::Add, Expr::literal(1i64)));
    query.filter = Some(Expr::Apply(Operator::IsNotNull, vec![delay()]));
    let expected = "2 7 2011-01-27\n-1 2 2011-01-29\n0 null 2011-01-30\n6 7 2011-01-31";
    assert_eq!(text(&run(&query)), expected);
    let mut query = Query::table("flights");
    query.select(delay().binary(Operator::Multiply, Expr::literal(i64::MAX)));
    let error = execute(&query, &flights(&Layout::default()), &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_eq!(error.to_string(), "10 * 9223372036854775807 does not fit i64");
}

#[test]
fn budgets_refuse_with_the_number() {
    let mut query = Query::table("flights");
    query.order_by = vec![OrderBy { expr: field("day"), descending: false, nulls_first: None }];
    let options = options().with_memory(64);
    let error = execute(&query, &flights(&Layout::default()), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget);
    assert!(error.to_string().contains("its budget is 64"), "{error}");
}

#[test]
fn explain_names_every_step() {
    let mut query = Query::table("flights");
    query.select(field("carrier")).select(Expr::count());
    query.filter = Some(field("month").binary(Operator::Gt, Expr::literal(100i64)));
    query.group_by = vec![field("carrier")];
    let text = explain(&query, &flights(&Layout::default()), &options()).unwrap().to_string();
    assert!(text.contains("group by carrier"), "{text}");
    assert!(text.contains("where month > 100"), "{text}");
    assert!(text.contains("pruned 1"), "{text}");
}

#[test]
fn queries_survive_serialisation() {
    let mut query = Query::table("flights");
    query.select_as(Expr::Cast(Box::new(field("delay")), DataType::F64), "d");
    query.filter = Some(field("day").binary(Operator::Eq, Expr::Literal(Value::Date(3))));
    let json = serde_json::to_string(&query).unwrap();
    assert_eq!(serde_json::from_str::<Query>(&json).unwrap(), query);
}
