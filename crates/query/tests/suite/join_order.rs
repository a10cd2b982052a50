//! Joins of many tables: whatever order they run in, the rows come as they are written.

use std::collections::BTreeMap;

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Expr, Join, JoinKind, Operator, Query, Relation};
use esker_query::{
    Error, ErrorKind, ExplainedInput, JoinOrder, Options, Resolved, Result, Source, Tables,
};
use esker_vfs::Environment;
use esker_vfs::sim::Generator;

#[derive(Default)]
pub(crate) struct Many(pub(crate) BTreeMap<String, MemorySource>);

impl Tables for Many {
    fn table(&self, name: &str) -> Result<&dyn Source> {
        let found = self.0.get(name).map(|table| table as &dyn Source);
        found.ok_or_else(|| Error::invalid(format!("no table {name:?}")))
    }
}

impl Many {
    /// A table of `id`, which rises from 0, and `x`, `y`, `s`, of few values, NULL among them.
    pub(crate) fn with(mut self, name: &str, rows: usize, generator: &mut Generator) -> Self {
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .nullable("x", DataType::I64)
            .nullable("y", DataType::I32)
            .nullable("s", DataType::Text)
            .build()
            .unwrap();
        let mut source = MemorySource::new(schema.clone());
        let (mut start, most) = (0, rows.max(1));
        while start < rows {
            let end = rows.min(start + 1 + generator.index(most));
            let mut batch = Batch::empty(&schema);
            for id in start..end {
                let mut few = |n: usize, of: &dyn Fn(i64) -> Value| match generator.index(8) {
                    0 => Value::Null,
                    _ => of(generator.index(n) as i64),
                };
                let row = [
                    Value::Int(id as i64),
                    few(6, &Value::Int),
                    few(most, &Value::Int),
                    few(5, &|n| Value::Text(format!("t{n}"))),
                ];
                batch.push_row(&schema, &row).unwrap();
            }
            let visible = (start..end).map(|_| generator.index(10) > 0).collect();
            let encoding = generator.pick([Encoding::Plain, Encoding::Compact]);
            let layout = Layout { encoding, visible: Some(visible), ..Layout::default() };
            source = source.with_part(&batch, &layout);
            start = end;
        }
        self.0.insert(name.to_owned(), source);
        self
    }
}

pub(crate) fn field(name: &str) -> Expr {
    Expr::field(name)
}

pub(crate) fn equal(a: &str, b: &str) -> Expr {
    field(a).binary(Operator::Eq, field(b))
}

pub(crate) fn is(a: &str, n: i64) -> Expr {
    field(a).binary(Operator::Eq, Expr::literal(n))
}

/// `FROM` a comma list, with a condition.
pub(crate) fn from(tables: &[(&str, &str)], filter: Expr) -> Query {
    let mut tables = tables.iter();
    let (table, name) = tables.next().unwrap();
    let mut query = Query::table(*table).aliased(*name);
    for (table, name) in tables {
        query.joins.push(Join::cross(Relation::table(*table).aliased(*name)));
    }
    query.filter = Some(filter);
    query
}

pub(crate) fn all(conditions: Vec<Expr>) -> Expr {
    Expr::Apply(Operator::And, conditions)
}

pub(crate) fn options(join_order: JoinOrder) -> Options {
    Options { join_order, ..Options::new(&Environment::os()) }
}

pub(crate) fn rows(query: &Query, tables: &Many, order: JoinOrder) -> Vec<Vec<Value>> {
    let options = options(order);
    let found = Resolved::run(query, tables, &options).and_then(|found| found.execute());
    found.unwrap_or_else(|e| panic!("{query}: {e}")).to_rows()
}

pub(crate) fn plan(query: &Query, tables: &Many, order: JoinOrder) -> ExplainedInput {
    let plan = Resolved::look(query, tables, &options(order)).unwrap().plan().unwrap();
    plan.input.unwrap()
}

/// The tables of a plan, from left to right.
pub(crate) fn order(input: &ExplainedInput) -> String {
    match input.inputs.as_slice() {
        [] => input.what.clone(),
        inputs => inputs.iter().map(order).collect::<Vec<_>>().join(" "),
    }
}

/// The conditions on tables, the joins' left out.
pub(crate) fn filters(input: &ExplainedInput) -> Vec<String> {
    let own = match (input.inputs.as_slice(), &input.filter) {
        ([], Some(filter)) => vec![format!("{}: {filter}", input.what)],
        _ => Vec::new(),
    };
    own.into_iter().chain(input.inputs.iter().flat_map(filters)).collect()
}

/// How many joins of a plan have no key.
pub(crate) fn products(input: &ExplainedInput) -> usize {
    let own = usize::from(input.kind.ends_with("join") && input.what.is_empty());
    own + input.inputs.iter().map(products).sum::<usize>()
}

/// A condition on one or two of some tables.
fn draw_condition(names: &[String], generator: &mut Generator) -> Expr {
    let any = |generator: &mut Generator| names[generator.index(names.len())].clone();
    let (a, b) = (any(generator), any(generator));
    let of = |table: &str, field: &str| Expr::field(format!("{table}.{field}"));
    match generator.index(8) {
        0 => of(&a, "x").binary(Operator::Lt, of(&b, "y")),
        1 => Expr::Apply(Operator::IsNull, vec![of(&a, "s")]),
        2 => of(&a, "x").binary(Operator::Eq, Expr::literal(generator.index(6) as i64)),
        3 => {
            let sum = of(&a, "x").binary(Operator::Add, of(&b, "y"));
            sum.binary(Operator::Gt, Expr::literal(4i64))
        }
        4 => of(&a, "s").binary(Operator::Eq, Expr::literal("t1")),
        5 => of(&a, "y").binary(Operator::Gte, Expr::literal(3i64)),
        6 => of(&a, "x").binary(Operator::Eq, of(&b, "x")),
        _ => of(&a, "id").binary(Operator::Neq, of(&b, "id")),
    }
}

/// A query of several tables, most of them connected by equalities.
fn draw(generator: &mut Generator) -> Query {
    let count = 3 + generator.index(6);
    let names: Vec<String> = (0..count).map(|n| format!("r{n}")).collect();
    let table = |generator: &mut Generator| generator.pick(["a", "b", "c"]);
    let mut query = Query::table(table(generator)).aliased(names[0].as_str());
    let mut conditions = Vec::new();
    let link = |a: &str, b: &str, generator: &mut Generator| {
        let of = |table: &str, field: &str| Expr::field(format!("{table}.{field}"));
        match generator.index(10) {
            0 => of(a, "s").binary(Operator::Eq, of(b, "s")),
            1..=4 => of(a, "x").binary(Operator::Eq, of(b, "x")),
            5 => {
                let next = of(a, "id").binary(Operator::Add, Expr::literal(1i64));
                next.binary(Operator::Eq, of(b, "id"))
            }
            6 | 7 => of(a, "id").binary(Operator::Eq, of(b, "y")),
            _ => of(a, "id").binary(Operator::Eq, of(b, "id")),
        }
    };
    let has_left = generator.index(3) == 0;
    for (i, name) in names.iter().enumerate().skip(1) {
        let relation = Relation::table(table(generator)).aliased(name.as_str());
        let other = &names[generator.index(i)];
        let on = link(other, name, generator);
        if has_left && generator.index(3) == 0 {
            let on = match generator.index(3) {
                0 => on.and(draw_condition(&names[..=i], generator)),
                _ => on,
            };
            query.joins.push(Join::on(JoinKind::Left, relation, on));
        } else if generator.index(12) > 0 {
            query.joins.push(Join::cross(relation));
            conditions.push(on);
        } else {
            query.joins.push(Join::on(JoinKind::Inner, relation, on));
        }
    }
    // In another order than the tables.
    for at in (1..conditions.len()).rev() {
        conditions.swap(at, generator.index(at + 1));
    }
    for _ in 0..generator.index(2) {
        conditions.push(draw_condition(&names, generator));
    }
    if generator.index(3) == 0 {
        let common = draw_condition(&names, generator);
        let branch = |generator: &mut Generator| {
            let own = (0..1 + generator.index(3)).map(|_| draw_condition(&names, generator));
            all(std::iter::once(common.clone()).chain(own.collect::<Vec<_>>()).collect())
        };
        conditions.push(branch(generator).or(branch(generator)));
    }
    query.filter = (!conditions.is_empty()).then(|| all(conditions));
    for name in &names {
        query.select(Expr::field(format!("{name}.id")));
    }
    query
}

#[test]
fn rows_come_in_the_order_written_whatever_order_joins_run_in() {
    let generator = &mut Generator::new(3, 1);
    let mut found = 0;
    let mut refused = 0u32;
    for case in 0..300u64 {
        let sizes = [generator.index(25), 1 + generator.index(8), generator.index(15)];
        let mut tables = Many::default();
        for (name, rows) in ["a", "b", "c"].into_iter().zip(sizes) {
            tables = tables.with(name, rows, generator);
        }
        let query = draw(generator);
        let answer = |order| {
            let options = options(order).with_memory(64 << 20);
            let found = Resolved::run(&query, &tables, &options).and_then(|found| found.execute());
            found.map(|found| found.to_rows()).map_err(|e| e.kind())
        };
        let wanted = answer(JoinOrder::AsWritten);
        found += wanted.as_ref().map_or(0, Vec::len);
        refused += u32::from(wanted.is_err());
        let random = (0..4).map(|seed| JoinOrder::Random(case * 4 + seed));
        for order in random.chain([JoinOrder::Cheapest]) {
            let got = answer(order);
            let is_refused = |answer: &std::result::Result<_, ErrorKind>| {
                matches!(answer, Err(ErrorKind::OverBudget))
            };
            if is_refused(&wanted) || is_refused(&got) {
                continue;
            }
            assert!(got == wanted, "case {case} {order:?}: {query}\n{got:?}\n{wanted:?}");
        }
    }
    assert!(found > 1_000 && refused * 10 < 300, "{found} rows, {refused} refused");
}

#[test]
fn tables_without_a_condition_on_both_are_not_joined_first() {
    let generator = &mut Generator::new(5, 1);
    let tables = Many::default().with("r", 900, generator).with("l", 5_000, generator);
    let filter = all(vec![equal("l.x", "a.id"), equal("l.y", "b.id"), is("a.x", 3)]);
    let mut query = from(&[("r", "a"), ("r", "b"), ("l", "l")], filter);
    query.select(Expr::count());
    let input = plan(&query, &tables, JoinOrder::Cheapest);
    assert_eq!(products(&input), 0, "{input:?}");
    let written = plan(&query, &tables, JoinOrder::AsWritten);
    assert_eq!((order(&written).as_str(), products(&written)), ("a b l", 1), "{written:?}");
    let answers = [JoinOrder::Cheapest, JoinOrder::AsWritten].map(|o| rows(&query, &tables, o));
    assert_eq!(answers[0], answers[1]);
    // A product that cannot be avoided is made last.
    let filter = all(vec![equal("a.id", "l.y"), is("b.id", 7)]);
    let mut query = from(&[("r", "a"), ("r", "b"), ("l", "l")], filter);
    query.select(Expr::count());
    let input = plan(&query, &tables, JoinOrder::Cheapest);
    assert_eq!(products(&input), 1, "{input:?}");
    assert!(!input.inputs.iter().any(|side| products(side) > 0), "{input:?}");
}

/// A chain of tables, those with even numbers behind the odd ones.
fn chain(count: usize, by: &str) -> Query {
    let names: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
    let odd = names.iter().skip(1).step_by(2).chain(names.iter().step_by(2));
    let tables: Vec<_> = odd.map(|name| ("t", name.as_str())).collect();
    let links = names
        .windows(2)
        .map(|pair| equal(&format!("{}.{by}", pair[0]), &format!("{}.id", pair[1])));
    let mut query = from(&tables, all(links.collect()));
    query.select(Expr::count());
    query
}

#[test]
fn chains_of_many_tables_have_no_cross_product() {
    let generator = &mut Generator::new(7, 1);
    let tables = Many::default().with("t", 10, generator);
    let of_one_key = [3, 10, 27, 70].map(|count| chain(count, "id"));
    let of_several = [3, 8, 10, 11, 12, 27].map(|count| chain(count, "y"));
    for query in of_one_key.into_iter().chain(of_several) {
        let input = plan(&query, &tables, JoinOrder::Cheapest);
        assert_eq!(products(&input), 0, "{query}: {}", order(&input));
        let count = rows(&query, &tables, JoinOrder::Cheapest);
        if query.joins.len() < 8 {
            assert_eq!(count, rows(&query, &tables, JoinOrder::AsWritten), "{query}");
        }
    }
}

#[test]
fn what_all_branches_of_an_or_say_is_a_key() {
    let generator = &mut Generator::new(9, 1);
    let tables = Many::default().with("l", 600, generator).with("r", 300, generator);
    let branch = |n: i64| {
        all(vec![
            is("l.x", n),
            equal("r.id", "l.y"),
            field("r.x").binary(Operator::Gt, Expr::literal(n)),
        ])
    };
    let either = branch(1).or(all(vec![equal("l.y", "r.id"), is("l.x", 2), is("r.x", 1)]));
    let mut query = from(&[("l", "l"), ("r", "r")], either);
    query.select(field("l.id")).select(field("r.id"));
    let input = plan(&query, &tables, JoinOrder::Cheapest);
    assert_eq!(input.what, "r.id = l.y", "{input:?}");
    let wanted = ["l: l.x = 1 OR l.x = 2", "r: r.x > 1 OR r.x = 1"];
    assert_eq!(filters(&input), wanted);
    let found = rows(&query, &tables, JoinOrder::Cheapest);
    let pairs = {
        let mut plain = from(&[("l", "l"), ("r", "r")], equal("l.y", "r.id"));
        for name in ["l.id", "r.id", "l.x", "r.x"] {
            plain.select(field(name));
        }
        rows(&plain, &tables, JoinOrder::Cheapest)
    };
    let passes = |row: &&Vec<Value>| match (&row[2], &row[3]) {
        (Value::Int(1), Value::Int(r)) => *r > 1,
        (Value::Int(2), Value::Int(r)) => *r == 1,
        _ => false,
    };
    let wanted: Vec<_> = pairs.iter().filter(passes).map(|row| row[..2].to_vec()).collect();
    assert!(!wanted.is_empty() && found == wanted, "{} of {}", found.len(), wanted.len());
    // One branch that asks for nothing more leaves what is common.
    let short = equal("l.y", "r.id").or(equal("l.y", "r.id").and(is("l.x", 2)));
    let input = plan(&from(&[("l", "l"), ("r", "r")], short), &tables, JoinOrder::Cheapest);
    assert_eq!((input.what.as_str(), input.filter), ("l.y = r.id", None));
}

/// A filter below the join gave rows of the left NULLs, which its other branch lets pass.
#[test]
fn an_implied_filter_stays_above_a_left_join() {
    let generator = &mut Generator::new(11, 1);
    let tables = Many::default().with("l", 40, generator).with("r", 40, generator);
    let is_null = Expr::Apply(Operator::IsNull, vec![field("r.x")]);
    let either = all(vec![is("l.x", 1), is_null]).or(all(vec![is("l.x", 2), is("r.x", 2)]));
    let mut query = Query::table("l");
    query.joins.push(Join::on(JoinKind::Left, Relation::table("r"), equal("l.id", "r.id")));
    query.select(field("l.x")).select(field("r.x"));
    let all = rows(&query, &tables, JoinOrder::Cheapest);
    query.filter = Some(either);
    let passes = |row: &&Vec<Value>| match (&row[0], &row[1]) {
        (Value::Int(1), r) => r.is_null(),
        (Value::Int(2), r) => *r == Value::Int(2),
        _ => false,
    };
    let wanted: Vec<_> = all.iter().filter(passes).cloned().collect();
    assert_eq!(rows(&query, &tables, JoinOrder::Cheapest), wanted);
    assert_eq!(filters(&plan(&query, &tables, JoinOrder::Cheapest)), ["l: l.x = 1 OR l.x = 2"]);
}

#[test]
fn what_is_said_of_one_of_several_equal_fields_is_said_of_all() {
    let generator = &mut Generator::new(13, 1);
    let tables = Many::default().with("t", 50, generator);
    let filter = all(vec![equal("a.x", "b.x"), equal("b.x", "c.x"), is("c.x", 5)]);
    let query = from(&[("t", "a"), ("t", "b"), ("t", "c")], filter);
    let input = plan(&query, &tables, JoinOrder::Cheapest);
    let mut found = filters(&input);
    found.sort();
    assert_eq!(found, ["a: a.x = 5", "b: b.x = 5", "c: c.x = 5"]);
    // Any two of three can be joined first, and each pair is tested once.
    let filter = all(vec![equal("a.id", "c.id"), equal("b.id", "c.id")]);
    let query = from(&[("t", "a"), ("t", "b"), ("t", "c")], filter);
    let plans: Vec<_> =
        (0..20).map(|seed| plan(&query, &tables, JoinOrder::Random(seed))).collect();
    assert!(plans.iter().all(|input| products(input) == 0), "{plans:?}");
    let first = |input: &ExplainedInput| input.inputs.iter().any(|i| i.what == "a.id = b.id");
    assert!(plans.iter().any(first), "{plans:?}");
    // Not across types that compare by the nearest float, nor into the right of a left join.
    let mut query = Query::table("t").aliased("a");
    let right = Relation::table("t").aliased("b");
    query.joins.push(Join::on(JoinKind::Left, right, equal("a.x", "b.x")));
    query.filter = Some(is("a.x", 5));
    assert_eq!(filters(&plan(&query, &tables, JoinOrder::Cheapest)), ["a: a.x = 5"]);
}

/// Two fields of one table that are equal to a third were not compared with each other.
#[test]
fn all_equalities_of_two_fields_of_a_table_are_tested() {
    let generator = &mut Generator::new(17, 1);
    let tables = Many::default().with("t", 30, generator);
    let filter = all(vec![equal("a.x", "b.id"), equal("a.y", "b.id"), equal("b.id", "c.id")]);
    let mut query = from(&[("t", "a"), ("t", "b"), ("t", "c")], filter);
    for name in ["a.x", "a.y", "b.id", "c.id"] {
        query.select(field(name));
    }
    for order in [JoinOrder::AsWritten, JoinOrder::Cheapest, JoinOrder::Random(1)] {
        let found = rows(&query, &tables, order);
        assert!(!found.is_empty(), "{order:?}");
        assert!(found.iter().all(|row| row[1..].iter().all(|value| *value == row[0])), "{order:?}");
    }
}

/// What does not fit when the order is put back is joined as it is written.
#[test]
fn a_plan_that_takes_too_much_memory_gives_way_to_the_written_one() {
    let generator = &mut Generator::new(19, 1);
    let tables = Many::default().with("t", 2_000, generator);
    let filter = all(vec![equal("a.id", "c.id")]);
    let mut query = from(&[("t", "a"), ("t", "c"), ("t", "b")], filter);
    query.select(Expr::count());
    let wanted = rows(&query, &tables, JoinOrder::AsWritten);
    for seed in 0..8 {
        let options = options(JoinOrder::Random(seed)).with_memory(2 << 20);
        let found = Resolved::run(&query, &tables, &options).unwrap().execute().unwrap();
        assert_eq!(found.to_rows(), wanted, "{seed}");
    }
}
