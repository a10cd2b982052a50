//! Queries in place of tables, and joins, that read less than they say: with the same answers.

use crate::join_order::{Many, all, equal, field, filters, from, is, options, plan, rows};
use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{
    Aggregate, Expr, Join, JoinKind, Operator, OrderBy, Query, Relation, SetBranch, SetOperation,
    SetOperator, With,
};
use esker_query::{ExplainedInput, JoinOrder, Resolved};
use esker_vfs::sim::Generator;

fn tables() -> Many {
    let generator = &mut Generator::new(23, 1);
    Many::default().with("t", 400, generator).with("u", 60, generator)
}

fn literal(n: i64) -> Expr {
    Expr::literal(n)
}

fn shown(table: &str, fields: &[&str]) -> Query {
    let mut query = Query::table(table);
    fields.iter().for_each(|name| {
        query.select(field(name));
    });
    query
}

fn filtered(query: Query, filter: Expr) -> Query {
    Query { filter: Some(filter), ..query }
}

/// The inputs of a query that has run.
fn ran(query: &Query, tables: &Many) -> ExplainedInput {
    let options = options(JoinOrder::Cheapest);
    let resolved =
        Resolved::analyze(query, tables, &options).unwrap_or_else(|e| panic!("{query}: {e}"));
    resolved.explain().unwrap().input.unwrap()
}

/// The answer, which is that of the query as it is written.
fn answer(query: &Query, tables: &Many) -> Vec<Vec<Value>> {
    let [found, written] =
        [JoinOrder::Cheapest, JoinOrder::AsWritten].map(|order| rows(query, tables, order));
    assert_eq!(found, written, "{query}");
    found
}

fn input<'i>(input: &'i ExplainedInput, what: &str) -> &'i ExplainedInput {
    let mut left = vec![input];
    while let Some(next) = left.pop() {
        if next.what == what {
            return next;
        }
        left.extend(&next.inputs);
    }
    panic!("no {what:?} in {input:?}")
}

#[test]
fn a_query_that_filters_and_names_reads_the_table() {
    let tables = tables();
    let mut inner = filtered(shown("t", &["y"]), is("x", 3));
    inner.select_as(field("id"), "n");
    // Names are swapped, and a field is tested that is not shown.
    inner.select_as(field("s"), "x");
    let mut query = Query::from(Relation::query(inner.clone(), "q"));
    query.joins.push(Join::on(JoinKind::Inner, Relation::table("u"), equal("q.n", "u.id")));
    let input = plan(&query, &tables, JoinOrder::Cheapest);
    assert_eq!(filters(&input), ["t AS q: \"x (not shown)\" = 3"]);
    let found = answer(&query, &tables);
    assert!(!found.is_empty() && found.iter().all(|row| row.len() == 3 + 4), "{found:?}");
    // Alone, with names of its own, a condition, and all of its columns.
    let columns = vec!["a".to_owned(), "b".to_owned()];
    let named = Relation { columns, ..Relation::query(inner.clone(), "q") };
    let mut query = filtered(Query::from(named), field("b").binary(Operator::Lt, literal(200)));
    assert!(plan(&query, &tables, JoinOrder::Cheapest).what.contains("t AS q"));
    let found = answer(&query, &tables);
    assert!(!found.is_empty() && found.iter().all(|row| row.len() == 3), "{found:?}");
    query.select(field("q.a")).select(field("x"));
    assert_eq!(answer(&query, &tables).len(), found.len());
    // What it does not show has no name outside.
    for name in ["id", "q.id", "x (not shown)"] {
        let mut query = Query::from(Relation::query(inner.clone(), "q"));
        query.joins.push(Join::on(JoinKind::Inner, Relation::table("u"), equal("q.n", "u.y")));
        query.select(field(if name == "id" { "q.s" } else { name }));
        let options = options(JoinOrder::Cheapest);
        let look = Resolved::look(&query, &tables, &options);
        assert!(look.and_then(|look| look.columns()).is_err(), "{query}");
    }
    // By a name of WITH, read once; on the left of a semi join, and within one.
    let mut query = Query::from(Relation::table("w").aliased("v"));
    query.with.push(With { columns: vec!["k".to_owned()], ..With::new("w", inner.clone()) });
    let kind = JoinKind::Semi;
    query.joins.push(Join::on(kind, Relation::query(inner, "r"), equal("v.n", "r.n")));
    let found = answer(&query, &tables);
    assert!(!found.is_empty() && found.iter().all(|row| row.len() == 3), "{found:?}");
}

#[test]
fn queries_test_conditions_on_their_columns() {
    let tables = tables();
    let grouped = |keys: &[&str]| {
        let mut query = shown("t", keys);
        query.select_as(Expr::count(), "n");
        query.group_by = keys.iter().copied().map(field).collect();
        query
    };
    let rows_of = |query: &Query| input(&ran(query, &tables), "q").rows;
    let over = |inner: Query, filter: Expr| {
        let filter = Some(filter);
        Query { filter, ..Query::from(Relation::query(inner, "q")) }
    };
    let query = over(grouped(&["x"]), is("q.x", 3));
    assert_eq!((rows_of(&query), answer(&query, &tables).len()), (Some(1), 1));
    // By another name, on one of two keys, in a join, with NULLs.
    let is_null = Expr::Apply(Operator::IsNull, vec![field("k")]);
    let either = is_null.or(is("k", 2));
    let columns = vec!["k".to_owned()];
    let renamed = Relation { columns, ..Relation::query(grouped(&["x", "y"]), "q") };
    let query = filtered(Query::from(renamed), either);
    let found = answer(&query, &tables);
    assert_eq!(rows_of(&query), Some(found.len() as u64));
    assert!(found.iter().any(|row| row[0].is_null()) && found.len() > 20, "{found:?}");
    let mut query = over(grouped(&["x"]), is("q.x", 3));
    query.joins.push(Join::on(JoinKind::Inner, Relation::table("u"), equal("u.x", "q.x")));
    assert_eq!(rows_of(&query), Some(1));
    assert!(!answer(&query, &tables).is_empty());
    // What counts of groups is tested above; so is what reads something else.
    for filter in [is("q.n", 2), equal("q.x", "q.n")] {
        let query = over(grouped(&["x", "y"]), filter);
        assert_eq!(rows_of(&query), rows_of(&over(grouped(&["x", "y"]), Expr::literal(true))));
        answer(&query, &tables);
    }
    // A query that shows some of its rows would show others.
    let mut some = shown("t", &["id", "x"]);
    some.limit = Some(5u64.into());
    some.order_by = vec![OrderBy { expr: field("id"), descending: true, nulls_first: None }];
    let query = over(some, field("q.id").binary(Operator::Lt, literal(100)));
    assert_eq!((rows_of(&query), answer(&query, &tables).len()), (Some(5), 0));
}

/// Below the join, it gave rows of the left NULLs, which passed it above.
#[test]
fn conditions_stay_above_a_left_join() {
    let tables = tables();
    let inner = Query { distinct: true, ..shown("u", &["id", "x"]) };
    let mut query = Query::table("t");
    let right = Relation::query(inner, "q");
    query.joins.push(Join::on(JoinKind::Left, right, equal("q.id", "t.y")));
    query.filter = Some(Expr::Apply(Operator::IsNull, vec![field("q.x")]).and(is("t.x", 1)));
    let found = answer(&query, &tables);
    assert!(!found.is_empty());
    let unmatched = found.iter().filter(|row| row[4].is_null()).count();
    query.filter = Some(is("t.x", 1));
    let all = answer(&query, &tables).into_iter().filter(|row| row[4].is_null()).count();
    assert_eq!(unmatched, all);
}

#[test]
fn branches_of_a_set_operation_test_conditions_on_its_columns() {
    let tables = tables();
    let union = |first: Query, operator, all, second: Query| {
        let rest = vec![SetBranch { operator, all, query: second }];
        Query { set: Some(Box::new(SetOperation { first, rest })), ..Query::default() }
    };
    let rows_of = |query: &Query| input(&ran(query, &tables), "q").rows;
    for operator in [SetOperator::Union, SetOperator::Intersect, SetOperator::Except] {
        for is_all in [false, true] {
            let mut second = Query::table("u");
            second.select_as(field("id"), "other").select(field("x"));
            let set = union(shown("t", &["id", "x"]), operator, is_all, second);
            let mut query = Query::from(Relation::query(set, "q"));
            query.filter =
                Some(Expr::Apply(Operator::Between, vec![field("id"), literal(20), literal(40)]));
            let found = answer(&query, &tables);
            assert_eq!(rows_of(&query), Some(found.len() as u64), "{query}");
        }
    }
    // Of different types: what the column has is the type of both.
    let set = union(shown("t", &["x"]), SetOperator::Union, true, shown("u", &["y"]));
    let query = filtered(Query::from(Relation::query(set, "q")), is("x", 3));
    assert!(rows_of(&query) > Some(answer(&query, &tables).len() as u64));
}

/// A table of rising numbers, with zone maps, and one of few rows by whose keys it is read.
fn rising(few: &[i64]) -> Many {
    let mut tables = Many::default();
    for (name, keys) in [("big", (0..60_000).collect()), ("few", few.to_vec())] {
        let schema =
            Schema::builder().field("k", DataType::I64).field("n", DataType::I64).build().unwrap();
        let mut batch = Batch::empty(&schema);
        for (n, key) in keys.into_iter().enumerate() {
            let row = [Value::Int(key), Value::Int(i64::try_from(n).unwrap())];
            batch.push_row(&schema, &row).unwrap();
        }
        let source = MemorySource::new(schema).with_part(&batch, &Layout::default());
        tables.0.insert(name.to_owned(), source);
    }
    tables
}

/// The rows of the side that is read last are those that its zone maps, or few keys, leave.
#[test]
fn the_keys_that_are_built_filter_the_other_side() {
    let scattered: Vec<i64> = (0..300).map(|n| 30_000 + n * 7).collect();
    for (few, most) in [(scattered.as_slice(), 2 * 8_192), (&[5, 59_999, 70_000], 2)] {
        let tables = rising(few);
        let mut query = from(&[("big", "big"), ("few", "few")], equal("big.k", "few.k"));
        query.select(field("big.n")).select(field("few.n"));
        let found = answer(&query, &tables);
        assert_eq!(found.len(), few.iter().filter(|key| **key < 60_000).count());
        let read = input(&ran(&query, &tables), "big").rows.unwrap();
        assert!(read <= most, "{read} rows of big for {} keys", few.len());
        // The rows without a match are read, too, where they are wanted.
        let mut query = Query::table("big");
        let right = Relation::table("few");
        query.joins.push(Join::on(JoinKind::Left, right, equal("big.k", "few.k")));
        query.select(Expr::aggregate(Aggregate::Count, field("few.k"))).select(Expr::count());
        let matched = i64::try_from(found.len()).unwrap();
        assert_eq!(answer(&query, &tables), [[Value::Int(matched), Value::Int(60_000)]]);
    }
}

/// How many pairs there are is a product; neither side is read.
#[test]
fn the_count_of_all_pairs_is_a_product() {
    let tables = rising(&[1, 2, 3, 4, 5]);
    let list = [("big", "a"), ("few", "b"), ("big", "c"), ("few", "d")];
    for count in 2..=list.len() {
        let mut query = Query { filter: None, ..from(&list[..count], Expr::literal(true)) };
        query.select(Expr::count());
        let options = options(JoinOrder::Cheapest).with_memory(1 << 16);
        let found = Resolved::run(&query, &tables, &options).unwrap().execute().unwrap();
        let sizes = [60_000i64, 5, 60_000, 5];
        assert_eq!(found.to_rows(), [[Value::Int(sizes[..count].iter().product())]], "{query}");
        assert_eq!(found.statistics.rows_scanned, 0, "{query}");
    }
}

/// Pairs that a condition leaves are not gathered, whichever side has more rows.
#[test]
fn pairs_of_an_inequality_stream() {
    let few: Vec<i64> = (0..40).map(|n| n * 1_500).collect();
    let tables = rising(&few);
    for list in [[("big", "a"), ("few", "b")], [("few", "b"), ("big", "a")]] {
        let less = field("a.k").binary(Operator::Lt, field("b.k"));
        let mut query = from(&list, less);
        query.select(Expr::count()).select(Expr::aggregate(Aggregate::Sum, field("b.n")));
        let options = options(JoinOrder::Cheapest).with_memory(3 << 20);
        let found = Resolved::run(&query, &tables, &options).unwrap().execute().unwrap();
        let count: i64 = few.iter().sum();
        let sum: i64 = (0..).zip(&few).map(|(n, key)| n * key).sum();
        assert_eq!(found.to_rows(), [[Value::Int(count), Value::Int(sum)]], "{query}");
    }
}

/// What does not depend on the order of rows is the same in any; what does is put in order.
#[test]
fn answers_are_the_same_in_whatever_order_tables_are_joined() {
    let tables = tables();
    let links = all(vec![equal("a.x", "b.x"), equal("b.id", "c.y"), equal("a.id", "c.id")]);
    let base = || from(&[("t", "a"), ("u", "b"), ("t", "c")], links.clone());
    let by = |name: &str| OrderBy { expr: field(name), descending: true, nulls_first: None };
    let mut counted = base();
    counted.select(Expr::count()).select(Expr::aggregate(Aggregate::Min, field("a.s")));
    let mut grouped = base();
    grouped.select(field("a.x")).select_as(Expr::count(), "n");
    grouped.group_by = vec![field("a.x")];
    grouped.order_by = vec![by("a.x")];
    grouped.limit = Some(3u64.into());
    let mut ties = base();
    ties.select(field("a.id")).select(field("c.s"));
    ties.order_by = vec![by("c.s")];
    ties.limit = Some(7u64.into());
    let mut first = base();
    first.select(Expr::aggregate(Aggregate::First, field("c.id")));
    for query in [counted, grouped, ties, first] {
        let wanted = rows(&query, &tables, JoinOrder::AsWritten);
        assert!(!wanted.is_empty());
        for seed in 0..12 {
            assert_eq!(rows(&query, &tables, JoinOrder::Random(seed)), wanted, "{seed}: {query}");
        }
    }
}

/// Intervals of one side, and numbers of the other, NULLs among them: of whole numbers and floats.
fn intervals(generator: &mut Generator) -> Many {
    let mut tables = Many::default();
    for (name, rows) in [("spans", 300), ("points", 500)] {
        let schema = Schema::builder()
            .nullable("i", DataType::I64)
            .nullable("j", DataType::I32)
            .nullable("x", DataType::F64)
            .nullable("y", DataType::F64)
            .build()
            .unwrap();
        let mut batch = Batch::empty(&schema);
        for _ in 0..rows {
            let least = generator.index(2_000) as i64 - 1_000;
            let greatest = least + generator.index(30) as i64 - 3;
            let mut or_null = |value| if generator.index(12) == 0 { Value::Null } else { value };
            let row = [
                or_null(Value::Int(least)),
                or_null(Value::Int(greatest)),
                or_null(Value::Float(least as f64 / 8.0)),
                or_null(Value::Float(greatest as f64 / 8.0)),
            ];
            batch.push_row(&schema, &row).unwrap();
        }
        let visible = (0..rows).map(|_| generator.index(10) > 0).collect();
        let layout = Layout { visible: Some(visible), ..Layout::default() };
        let source = MemorySource::new(schema).with_part(&batch, &layout);
        tables.0.insert(name.to_owned(), source);
    }
    tables
}

/// The pairs that are looked at are about those that match.
#[test]
fn a_number_between_two_of_another_table_is_searched_for() {
    let generator = &mut Generator::new(29, 1);
    let tables = intervals(generator);
    let between = |number: &str, least: &str, greatest: &str| {
        Expr::Apply(Operator::Between, vec![field(number), field(least), field(greatest)])
    };
    let conditions = [
        between("p.i", "s.i", "s.j"),
        between("s.x", "p.x", "p.y"),
        field("s.i")
            .binary(Operator::Lt, field("p.j"))
            .and(field("s.j").binary(Operator::Gt, field("p.j"))),
        between("p.i", "s.i", "s.j").and(field("p.y").binary(Operator::Lt, field("s.y"))),
    ];
    for condition in conditions {
        for list in [[("spans", "s"), ("points", "p")], [("points", "p"), ("spans", "s")]] {
            let mut query = from(&list, condition.clone());
            for name in ["p.j", "s.j"] {
                query.select(Expr::aggregate(Aggregate::Sum, field(name)));
            }
            query.select(Expr::count());
            let found = answer(&query, &tables);
            let Value::Int(count) = found[0][2] else { panic!("{found:?}") };
            assert!(count > 100, "{query}: {count}");
            let options = options(JoinOrder::Cheapest);
            let run = Resolved::run(&query, &tables, &options).unwrap().execute().unwrap();
            let looked_at = i64::try_from(run.statistics.rows_scanned).unwrap();
            assert!(looked_at < 20_000, "{query}: {looked_at} pairs");
            let input = ran(&query, &tables);
            assert!(input.what.starts_with("a band of "), "{input:?}");
        }
    }
    // Rows that come in the order of both tables are all pairs that pass.
    let mut query = from(&[("spans", "s"), ("points", "p")], between("p.i", "s.i", "s.j"));
    query.select(field("s.i")).select(field("p.i"));
    assert!(answer(&query, &tables).len() > 300);
}
