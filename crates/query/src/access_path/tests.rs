//! That runs are used where they should be; that the answers are right is for
//! `tests/against_naive.rs`.

use esker_format::{Batch, DataType, Schema, Value};
use esker_vfs::Environment;

use crate::model::{Aggregate, Expr, Operator as O, OrderBy, Query};
use crate::testing::{Layout, MemorySource, RunLayout};
use crate::{IndexUse, Options, QueryResult, Reading, execute};

const ROWS: i64 = 40_000;

fn source(indexes: &[&[usize]], cut_bytes: Option<usize>) -> MemorySource {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("age", DataType::I32)
        .nullable("city", DataType::Text)
        .field("bio", DataType::Text)
        .build()
        .unwrap();
    let mut batch = Batch::empty(&schema);
    for id in 0..ROWS {
        let mixed = id * 7_919 % ROWS;
        let city = if mixed % 10 == 0 {
            Value::Null
        } else {
            Value::from(["Bonn", "Kiel", "Köln"][usize::try_from(mixed % 3).unwrap()])
        };
        let bio = format!("someone of {}", mixed % 17);
        let row = [id.into(), (mixed % 100).into(), city, Value::from(bio.as_str())];
        batch.push_row(&schema, &row).unwrap();
    }
    let run = |fields: &&[usize]| RunLayout {
        name: format!("by_{fields:?}"),
        fields: fields.iter().map(|field| (*field, false)).collect(),
        cut_bytes,
    };
    let layout = Layout { runs: indexes.iter().map(run).collect(), ..Layout::default() };
    MemorySource::new(schema).with_part(&batch, &layout)
}

fn field(name: &str) -> Expr {
    Expr::field(name)
}

fn is(name: &str, operator: O, value: impl Into<Value>) -> Expr {
    field(name).binary(operator, Expr::Literal(value.into()))
}

fn apply(operator: O, operands: Vec<Expr>) -> Expr {
    Expr::Apply(operator, operands)
}

fn run(query: &Query, source: &MemorySource, indexes: IndexUse) -> QueryResult {
    let options = Options { indexes, ..Options::new(&Environment::os()) };
    execute(query, source, &options).unwrap()
}

/// The rows that counting what passes a filter looks at. The count is that of a scan.
fn rows_read(filter: Expr, source: &MemorySource) -> u64 {
    let mut query = Query::table("t");
    query.select(Expr::count());
    query.filter = Some(filter);
    let with = run(&query, source, IndexUse::WhenCheaper);
    let without = run(&query, source, IndexUse::Never);
    assert_eq!(with.to_rows(), without.to_rows(), "{query}");
    with.statistics.rows_scanned
}

#[test]
fn conditions_on_one_indexed_field_are_counted_without_reading_a_row() {
    let source = source(&[&[1], &[2]], None);
    let int = |v: i64| Expr::literal(v);
    for filter in [
        is("age", O::Eq, 7i64),
        is("age", O::Neq, 7i64),
        is("age", O::Lt, 50i64),
        is("age", O::Gte, 2.5),
        is("age", O::Gt, 10i64).and(is("age", O::Lte, 90i64)),
        is("age", O::Gt, 10i64).and(is("age", O::Lt, 5i64)),
        is("age", O::Gt, 1_000i64),
        apply(O::In, vec![field("age"), int(1), int(2), int(70), int(-5)]),
        apply(O::NotIn, vec![field("age"), int(1), int(2), int(70), int(-5)]),
        apply(O::Between, vec![field("age"), int(20), int(29)]),
        apply(O::NotBetween, vec![field("age"), int(20), int(29)]),
        apply(O::Or, vec![is("age", O::Eq, 1i64), is("age", O::Lt, 4i64)]),
        is("city", O::Eq, "Kiel"),
        is("city", O::Neq, "Kiel"),
        is("city", O::Gt, "C"),
        apply(O::NotIn, vec![field("city"), Expr::literal("Kiel"), Expr::literal("Bonn")]),
        apply(O::IsNull, vec![field("city")]),
        apply(O::IsNotNull, vec![field("city")]),
        is("city", O::Like, "K%"),
        is("city", O::NotLike, "K%"),
    ] {
        assert_eq!(rows_read(filter.clone(), &source), 0, "{filter}");
    }
}

#[test]
fn several_fields_narrow_the_entries_of_one_run() {
    let source = source(&[&[2, 1]], None);
    let city = apply(O::In, vec![field("city"), Expr::literal("Kiel"), Expr::literal("Bonn")]);
    assert_eq!(rows_read(city.clone().and(is("age", O::Gt, 60i64)), &source), 0);
    assert_eq!(rows_read(city.clone().and(is("age", O::Eq, 60i64)), &source), 0);
    // After a range, the entries are in no order of the next field.
    let later = is("city", O::Gt, "Kz").and(is("age", O::Eq, 60i64));
    assert!(rows_read(later, &source) > 0);
}

#[test]
fn only_candidates_are_read() {
    let source = source(&[&[0], &[1], &[2]], None);
    let age = is("age", O::Eq, 7i64);
    let few = u64::try_from(ROWS / 100).unwrap();
    assert_eq!(rows_read(age.clone().and(is("bio", O::Like, "%1%")), &source), few);
    assert!(rows_read(age.clone().and(is("city", O::Eq, "Kiel")), &source) <= few);
    let any = apply(O::Or, vec![age.clone(), is("id", O::Lt, 3i64), is("id", O::Eq, 99i64)]);
    assert!(rows_read(any.clone(), &source) <= few + 4);
    // One member that no run answers: all rows are candidates.
    let any = apply(O::Or, vec![any, is("bio", O::Like, "%1%")]);
    assert_eq!(rows_read(any, &source), u64::try_from(ROWS).unwrap());
    // Most rows pass: testing them all is cheaper.
    let most = is("age", O::Gt, 3i64).and(is("bio", O::Like, "someone%"));
    assert_eq!(rows_read(most, &source), u64::try_from(ROWS).unwrap());
}

#[test]
fn what_was_cut_is_tested() {
    let source = source(&[&[2]], Some(1));
    let read = rows_read(is("city", O::Eq, "Kiel"), &source);
    assert!(read > 0);
    assert_eq!(rows_read(is("city", O::Eq, "Bonn"), &source), 0);
}

#[test]
fn a_limit_reads_no_more_than_it_needs() {
    let source = source(&[&[1]], None);
    let mut query = Query::table("t");
    query.select(field("id"));
    query.filter = Some(is("age", O::Gt, 3i64));
    query.limit = Some(10.into());
    let with = run(&query, &source, IndexUse::WhenCheaper);
    assert_eq!(with.to_rows(), run(&query, &source, IndexUse::Never).to_rows());
    assert!(with.statistics.rows_scanned <= 8_192, "{:?}", with.statistics);
}

/// Few candidates were one morsel, and so other sums were added up than in a scan.
#[test]
fn sums_of_floats_have_the_bits_of_a_scan() {
    let schema = Schema::builder().field("key", DataType::I32).field("x", DataType::F64);
    let schema = schema.build().unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..140_000i64 {
        let x = (i * 7_919 % 10_007) as f64 / 7.0;
        batch.push_row(&schema, &[Value::Int(i % 100), x.into()]).unwrap();
    }
    let by_key = RunLayout { name: "by_key".into(), fields: vec![(0, false)], cut_bytes: None };
    let layout = Layout { runs: vec![by_key], ..Layout::default() };
    let source = MemorySource::new(schema).with_part(&batch, &layout);
    use Aggregate as A;
    for of in [A::StddevSamp, A::StddevPop, A::VarSamp, A::VarPop, A::Sum, A::Avg] {
        for key in 0..10i64 {
            let mut query = Query::table("t");
            query.select(Expr::aggregate(of, field("x")));
            query.filter = Some(is("key", O::Eq, key));
            let bits = |indexes| match run(&query, &source, indexes).to_rows()[0][0] {
                Value::Float(x) => x.to_bits(),
                ref other => panic!("{query}: {other:?}"),
            };
            assert_eq!(bits(IndexUse::Always), bits(IndexUse::Never), "{query}");
        }
    }
}

fn by(name: &str, descending: bool) -> OrderBy {
    OrderBy { expr: field(name), descending, nulls_first: None }
}

/// The rows that the first rows of an order look at. They are those of a scan.
fn rows_walked(query: &Query, source: &MemorySource) -> u64 {
    let with = run(query, source, IndexUse::WhenCheaper);
    let without = run(query, source, IndexUse::Never);
    assert_eq!(with.to_rows(), without.to_rows(), "{query}");
    with.statistics.rows_scanned
}

#[test]
fn the_first_rows_of_an_order_are_walked_to() {
    let source = source(&[&[0], &[1], &[2, 1]], None);
    for descending in [false, true] {
        let mut query = Query::table("t");
        query.order_by = vec![by("age", descending), by("bio", !descending)];
        query.limit = Some(40.into());
        rows_walked(&query, &source);
        // The run has ties in the order of another field.
        query.order_by = vec![by("city", descending)];
        rows_walked(&query, &source);
        for keys in [&["id"][..], &["age"], &["id", "bio"], &["city", "age"]] {
            let mut query = Query::table("t");
            query.order_by = keys.iter().map(|name| by(name, descending)).collect();
            query.limit = Some(7.into());
            query.offset = 3.into();
            assert!(rows_walked(&query, &source) <= 1_024, "{query}");
            query.filter = Some(is("bio", O::Like, "%1%"));
            assert!(rows_walked(&query, &source) <= 1_024, "{query}");
            // Too few pass: the walk gives up, and all are scanned.
            query.filter = Some(is("bio", O::Like, "%nobody%"));
            assert!(rows_walked(&query, &source) >= u64::try_from(ROWS).unwrap(), "{query}");
        }
        let mut query = Query::table("t");
        query.order_by = vec![by("age", descending)];
        query.limit = Some(7.into());
        query.filter = Some(is("age", O::Gt, 60i64));
        assert!(rows_walked(&query, &source) <= 1_024, "{query}");
        query.filter = Some(is("city", O::Eq, "Kiel"));
        assert!(rows_walked(&query, &source) <= 1_024, "{query}");
    }
}

#[test]
fn the_ends_of_runs_are_the_least_and_the_greatest() {
    let source = source(&[&[0], &[1], &[2, 1]], None);
    let mut query = Query::table("t");
    for name in ["id", "age", "city"] {
        for function in [Aggregate::Min, Aggregate::Max, Aggregate::Count] {
            query.select(Expr::aggregate(function, field(name)));
        }
    }
    query.select(Expr::count());
    assert_eq!(rows_walked(&query, &source), 0);
    // Without a run zone maps know the least value, but not how many there are.
    query.select(Expr::aggregate(Aggregate::Min, field("bio")));
    assert_eq!(rows_walked(&query, &source), 0);
    query.select(Expr::aggregate(Aggregate::Count, field("bio")));
    assert_eq!(rows_walked(&query, &source), u64::try_from(ROWS).unwrap());
}

#[test]
fn a_plan_names_the_indexes_and_how_many_rows_it_expects() {
    let source = source(&[&[0], &[1], &[2, 1]], None);
    let options = Options::new(&Environment::os());
    let mut query = Query::table("t");
    query.select(field("id"));
    query.filter = Some(is("age", O::Eq, 7i64).and(is("bio", O::Like, "%1%")));
    let plan = crate::plan(&query, &source, &options).unwrap();
    assert_eq!(plan.met, None);
    assert_eq!((plan.parts[0].reading, plan.parts[0].rows_estimated), (Reading::Index, 400));
    let text = plan.to_string();
    assert!(text.contains("rows named by index by_[1]: 1 part, about 400 of 40000 rows"), "{text}");
    let ran = crate::explain(&query, &source, &options).unwrap();
    assert_eq!(ran.parts, plan.parts);
    assert_eq!(ran.met.unwrap().rows_read, 400);
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""reading":"index","indexes":["by_[1]"],"rows":40000"#), "{json}");
    let reading = |query: &Query| crate::plan(query, &source, &options).unwrap().parts[0].reading;
    query.filter = Some(is("age", O::Gt, 1_000i64));
    assert_eq!(reading(&query), Reading::Nothing);
    query.filter = None;
    assert_eq!(reading(&query), Reading::Scan);
    query.order_by = vec![by("id", true)];
    query.limit = Some(3.into());
    assert_eq!(reading(&query), Reading::Ordered);
    let mut query = Query::table("t");
    query.select(Expr::count());
    query.filter = Some(is("age", O::Neq, 7i64));
    assert_eq!(reading(&query), Reading::Counted);
    let mut query = Query::table("t");
    query.select(Expr::aggregate(Aggregate::Max, field("age")));
    assert_eq!(reading(&query), Reading::Edges);
}
