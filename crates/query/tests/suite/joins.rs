//! Joins of random rows, compared with loops over all pairs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use std::ops::ControlFlow;

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::decimal::Decimal;
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Expr, Join, JoinKind, Operator, OrderBy, Query, Relation};
use esker_query::{Error, ErrorKind, Options, Resolved, Result, Source, Tables, TemporaryFiles};
use esker_vfs::Environment;

const KINDS: [JoinKind; 6] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Semi,
    JoinKind::Anti,
    JoinKind::Right,
    JoinKind::Full,
];

/// Those that run by themselves.
const BY_FILES: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti];

struct Two(MemorySource, MemorySource);

impl Tables for Two {
    fn table(&self, name: &str) -> Result<&dyn Source> {
        match name {
            "a" => Ok(&self.0),
            "b" => Ok(&self.1),
            _ => Err(Error::invalid(format!("no table {name:?}"))),
        }
    }
}

/// A stream of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn value(dice: &mut Dice, data_type: DataType, distinct: u64) -> Value {
    let number = dice.below(distinct);
    let int = i64::try_from(number).unwrap();
    match data_type {
        _ if dice.below(10) == 0 => Value::Null,
        DataType::U64 => Value::Uint(number),
        DataType::F64 => Value::Float(int as f64 / 2.0),
        DataType::F32 => Value::Float32(int as f32),
        DataType::Text => Value::Text(format!("t{number}")),
        DataType::Bool => Value::Bool(number.is_multiple_of(2)),
        DataType::Date => Value::Date(i32::try_from(int).unwrap()),
        DataType::Decimal { scale, .. } => {
            Value::Decimal(Decimal::new(i128::from(int) * 5, scale).unwrap())
        }
        // Far apart: hashed; else near.
        DataType::I64 if distinct > 50 => Value::Int(int * 1_000_000_007),
        _ => Value::Int(int),
    }
}

type Row = Vec<Value>;

/// Rows of a number and a key, in parts.
fn table(dice: &mut Dice, rows: usize, key: DataType, distinct: u64) -> (MemorySource, Vec<Row>) {
    let schema = Schema::builder().field("n", DataType::I64).nullable("k", key).build().unwrap();
    let mut all = Vec::new();
    let mut source = MemorySource::new(schema.clone());
    let mut start = 0;
    while start < rows {
        let end = (start + 1 + usize::try_from(dice.below(9_000)).unwrap()).min(rows);
        let mut batch = Batch::empty(&schema);
        let mut visible = Vec::new();
        for n in start..end {
            let row = vec![Value::Int(n as i64), value(dice, key, distinct)];
            batch.push_row(&schema, &row).unwrap();
            visible.push(dice.below(12) > 0);
            if visible.last() == Some(&true) {
                all.push(row);
            }
        }
        let encoding = if dice.below(2) == 0 { Encoding::Plain } else { Encoding::Compact };
        let layout = Layout { encoding, visible: Some(visible), ..Layout::default() };
        source = source.with_part(&batch, &layout);
        start = end;
    }
    (source, all)
}

fn field(name: &str) -> Expr {
    Expr::field(name)
}

/// What a join answers, by looking at all pairs.
fn looped(
    kind: JoinKind,
    left: &[Row],
    right: &[Row],
    matches: impl Fn(&Row, &Row) -> bool,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let alone = |b: &&Row| !left.iter().any(|a| matches(a, b));
    let with_nulls = |b: &Row| vec![Value::Null, b[0].clone()];
    if kind == JoinKind::Right {
        // In the order of the right.
        for b in right {
            let found = left.iter().filter(|a| matches(a, b));
            rows.extend(found.map(|a| vec![a[0].clone(), b[0].clone()]));
            rows.extend(Some(b).filter(alone).map(with_nulls));
        }
        return rows;
    }
    for a in left {
        let found: Vec<&Row> = right.iter().filter(|b| matches(a, b)).collect();
        match kind {
            JoinKind::Semi if !found.is_empty() => rows.push(vec![a[0].clone()]),
            JoinKind::Anti if found.is_empty() => rows.push(vec![a[0].clone()]),
            JoinKind::Semi | JoinKind::Anti => {}
            JoinKind::Left | JoinKind::Full if found.is_empty() => {
                rows.push(vec![a[0].clone(), Value::Null]);
            }
            _ => {
                rows.extend(found.iter().map(|b| vec![a[0].clone(), b[0].clone()]));
            }
        }
    }
    if kind == JoinKind::Full {
        rows.extend(right.iter().filter(alone).map(with_nulls));
    }
    rows
}

fn query(kind: JoinKind, on: Expr) -> Query {
    let mut query = Query::table("a");
    query.joins.push(Join::on(kind, Relation::table("b"), on));
    query.select(field("a.n"));
    if kind.shows_right() {
        query.select(field("b.n"));
    }
    query
}

fn options() -> Options {
    Options::new(&Environment::os())
}

fn rows_of(query: &Query, tables: &dyn Tables, options: &Options) -> Vec<Row> {
    Resolved::run(query, tables, options).unwrap().execute().unwrap().to_rows()
}

#[test]
fn joins_are_what_loops_find_in_the_same_order() {
    use DataType::{Bool, Date, F32, F64, I16, I64, Text, U64};
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    let types = [
        (I64, I64),
        (I16, I64),
        (U64, I64),
        (F64, I64),
        (F32, F64),
        (Text, Text),
        (Bool, Bool),
        (Date, Date),
        (decimal(6, 1), decimal(9, 1)),
        (decimal(6, 1), decimal(25, 3)),
        (decimal(8, 1), F64),
        (decimal(8, 0), I16),
    ];
    let mut dice = Dice(7);
    for (i, (a, b)) in types.into_iter().enumerate() {
        // Either side is the one that is built, and either has no row now and then.
        for (left, right) in [(40, 400), (400, 40), (60, 60), (0, 30), (30, 0)] {
            let distinct = if i % 2 == 0 { 30 } else { 300 };
            let (first, left) = table(&mut dice, left, a, distinct);
            let (second, right) = table(&mut dice, right, b, distinct);
            let tables = Two(first, second);
            for kind in KINDS {
                let equal = field("a.k").binary(Operator::Eq, field("b.k"));
                let found = rows_of(&query(kind, equal.clone()), &tables, &options());
                let same = |a: &Row, b: &Row| {
                    !a[1].is_null()
                        && !b[1].is_null()
                        && a[1].as_ref().compare(b[1].as_ref()).is_eq()
                };
                let wanted = looped(kind, &left, &right, same);
                assert_eq!(found, wanted, "{kind:?} {a} {b}");
                let more = equal.and(field("a.n").binary(Operator::Lt, field("b.n")));
                let found = rows_of(&query(kind, more), &tables, &options());
                let wanted = looped(kind, &left, &right, |a, b| same(a, b) && a[0] < b[0]);
                assert_eq!(found, wanted, "{kind:?} {a} {b} and more");
                let less = field("a.n").binary(Operator::Gt, field("b.n"));
                let found = rows_of(&query(kind, less), &tables, &options());
                let wanted = looped(kind, &left, &right, |a, b| a[0] > b[0]);
                assert_eq!(found, wanted, "{kind:?} without a key");
            }
        }
    }
}

#[test]
fn many_parts_and_many_pairs() {
    let mut dice = Dice(11);
    let (first, left) = table(&mut dice, 30_000, DataType::I64, 3_000);
    let (second, right) = table(&mut dice, 9_000, DataType::I64, 3_000);
    let tables = Two(first, second);
    let equal = field("a.k").binary(Operator::Eq, field("b.k"));
    let mut by_key: std::collections::BTreeMap<&Value, Vec<&Row>> = Default::default();
    right
        .iter()
        .filter(|row| !row[1].is_null())
        .for_each(|row| by_key.entry(&row[1]).or_default().push(row));
    let mut wanted = Vec::new();
    for a in &left {
        for b in by_key.get(&a[1]).into_iter().flatten() {
            wanted.push(vec![a[0].clone(), b[0].clone()]);
        }
    }
    let found = rows_of(&query(JoinKind::Inner, equal.clone()), &tables, &options());
    assert!(found == wanted, "other rows");
    // Few rows of the left are asked for: the right is searched for their keys alone.
    let mut few = query(JoinKind::Inner, equal);
    few.filter = Some(field("a.n").binary(Operator::Lt, Expr::literal(5i64)));
    wanted.retain(|row| row[0] < Value::Int(5));
    assert_eq!(rows_of(&few, &tables, &options()), wanted);
}

#[test]
fn an_answer_keeps_to_its_memory_and_a_join_can_be_cancelled() {
    let mut dice = Dice(3);
    let (first, _) = table(&mut dice, 3_000, DataType::I64, 30);
    let (second, _) = table(&mut dice, 3_000, DataType::I64, 30);
    let tables = Two(first, second);
    let equal = field("a.k").binary(Operator::Eq, field("b.k"));
    let little = options().with_memory(1 << 20);
    let error = Resolved::run(&query(JoinKind::Inner, equal), &tables, &little).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("its budget is 1048576"), "{error}");
    let all = query(JoinKind::Inner, Expr::literal(true));
    let error = Resolved::run(&all, &tables, &little).unwrap().execute().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    let cancelled = options();
    cancelled.inputs.limits.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = Resolved::run(&all, &tables, &cancelled).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Int(number) = value { Some(*number) } else { None }
}

/// All pairs were made before any of them was tested.
#[test]
fn joins_on_expressions_are_what_loops_find_in_the_same_order() {
    let mut dice = Dice(23);
    let add = |a: &str, b: &str| field(a).binary(Operator::Add, field(b));
    for (left, right) in [(7, 300), (300, 150), (40, 9_000), (0, 300), (200, 0), (150, 3)] {
        let (first, left) = table(&mut dice, left, DataType::I16, 40);
        let (second, right) = table(&mut dice, right, DataType::I64, 40);
        let tables = Two(first, second);
        for kind in KINDS {
            let sum = |a: &Row, b: &Row, i: usize| Some(number(&a[i])? + number(&b[i])?);
            let found = |on: Expr| rows_of(&query(kind, on), &tables, &options());
            // May fail, for all that is known.
            let on = add("a.n", "b.n").binary(Operator::Eq, Expr::literal(120i64));
            let wanted = looped(kind, &left, &right, |a, b| sum(a, b, 0) == Some(120));
            assert!(found(on) == wanted, "{kind:?}: a sum");
            let on = add("a.k", "b.k").binary(Operator::Gt, Expr::literal(70i64));
            let big = |a: &Row, b: &Row| sum(a, b, 1).is_some_and(|sum| sum > 70);
            let wanted = looped(kind, &left, &right, big);
            assert!(found(on.clone()) == wanted, "{kind:?}: a sum of what may be NULL");
            // Tests of one side alone, too.
            let on = on.and(field("a.n").binary(Operator::Lt, Expr::literal(100i64)));
            let on = on.and(field("b.n").binary(Operator::Neq, Expr::literal(5i64)));
            let both = |a: &Row, b: &Row| big(a, b) && a[0] < Value::Int(100);
            let wanted = looped(kind, &left, &right, |a, b| both(a, b) && b[0] != Value::Int(5));
            assert!(found(on) == wanted, "{kind:?}: tests of one side");
            let on = Expr::Apply(Operator::Between, vec![field("a.n"), field("b.k"), field("b.n")]);
            let within = |a: &Row, b: &Row| !b[1].is_null() && b[1] <= a[0] && a[0] <= b[0];
            assert!(found(on) == looped(kind, &left, &right, within), "{kind:?}: BETWEEN");
        }
    }
}

/// A join whose answer has these columns alone.
fn selecting(kind: JoinKind, on: Expr, what: Vec<Expr>) -> Query {
    let mut asked = query(kind, on);
    asked.select.clear();
    for expr in what {
        asked.select(expr);
    }
    asked
}

/// The pairs of 3,000 rows with 3,000 in a megabyte, read in every way.
#[test]
fn all_pairs_of_two_tables_take_little_memory() {
    let mut dice = Dice(29);
    let (first, left) = table(&mut dice, 3_000, DataType::I64, 30);
    let (second, right) = table(&mut dice, 3_000, DataType::I64, 30);
    let tables = Two(first, second);
    let less = field("a.n").binary(Operator::Lt, field("b.n"));
    let near = field("a.n").binary(Operator::Subtract, field("b.n"));
    let near = near.binary(Operator::Eq, Expr::literal(1i64));
    let one = |asked: &Query| rows_of(asked, &tables, &within(1 << 20));
    let pairs = |matches: &dyn Fn(&Row, &Row) -> bool| {
        let of = |a| right.iter().filter(|b| matches(a, b)).count();
        left.iter().map(of).sum::<usize>() as i64
    };
    let all = (left.len() * right.len()) as i64;
    let counts = |n: i64| vec![vec![Value::Int(n)]];
    let count = || vec![Expr::count()];
    for kind in [JoinKind::Inner, JoinKind::Left] {
        assert_eq!(one(&selecting(kind, Expr::literal(true), count())), counts(all), "{kind:?}");
        let wanted = pairs(&|a, b| a[0] < b[0]);
        let alone = left.iter().filter(|a| right.iter().all(|b| a[0] >= b[0])).count() as i64;
        let wanted = if kind == JoinKind::Left { wanted + alone } else { wanted };
        assert_eq!(one(&selecting(kind, less.clone(), count())), counts(wanted), "{kind:?}");
        let mut groups = selecting(kind, less.clone(), vec![field("b.k"), Expr::count()]);
        groups.group_by = vec![field("b.k")];
        let total: i64 = one(&groups).iter().filter_map(|row| number(&row[1])).sum();
        assert_eq!(total, wanted, "{kind:?}");
    }
    let wanted = pairs(&|a, b| number(&a[0]) == number(&b[0]).map(|b| b + 1));
    assert_eq!(one(&selecting(JoinKind::Inner, near, count())), counts(wanted));
    // A limit ends it, and so does the first row of an order.
    let mut first = query(JoinKind::Inner, less.clone());
    first.limit = Some(5.into());
    let found = Resolved::run(&first, &tables, &within(1 << 20)).unwrap().execute().unwrap();
    assert!(found.statistics.rows_scanned < 100_000, "{:?}", found.statistics);
    assert_eq!(
        found.to_rows(),
        looped(JoinKind::Inner, &left[..9], &right, |a, b| a[0] < b[0])[..5]
    );
    let by = |expr| OrderBy { expr, descending: true, nulls_first: None };
    first.order_by = vec![by(field("b.n")), by(field("a.n"))];
    let last = &right[right.len() - 1][0];
    let before = left.iter().rev().filter(|a| a[0] < *last).take(5);
    let wanted: Vec<Row> = before.map(|a| vec![a[0].clone(), last.clone()]).collect();
    assert_eq!(one(&first), wanted);
    // All of them in order, by files.
    let mut sorted = selecting(JoinKind::Inner, less, vec![field("b.n")]);
    sorted.filter = Some(field("a.n").binary(Operator::Lt, Expr::literal(150i64)));
    sorted.order_by = vec![by(field("b.n"))];
    let little = within(1 << 20);
    let found = Resolved::run(&sorted, &tables, &little).unwrap();
    let (mut rows, mut greatest) = (0i64, None);
    let stream = found.stream(&mut |batch: Batch| {
        let value = |i| number(&batch.columns[0].value(i).to_owned());
        for next in (0..batch.len()).map(value) {
            assert!(greatest.is_none_or(|before| next <= before), "{next:?} after {greatest:?}");
            (greatest, rows) = (Some(next), rows + 1);
        }
        Ok(ControlFlow::Continue(()))
    });
    stream.unwrap();
    assert_eq!(rows, pairs(&|a, b| a[0] < b[0] && a[0] < Value::Int(150)));
}

#[test]
fn pairs_are_joined_with_what_comes_next() {
    let mut dice = Dice(31);
    let (first, left) = table(&mut dice, 60, DataType::I64, 30);
    let (second, right) = table(&mut dice, 200, DataType::I64, 30);
    let tables = Two(first, second);
    let sum = field("a.n").binary(Operator::Add, field("b.n"));
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let mut asked = query(kind, sum.clone().binary(Operator::Eq, Expr::literal(90i64)));
        let same = field("c.n").binary(Operator::Eq, field("b.n"));
        asked.joins.push(Join::on(kind, Relation::table("b").aliased("c"), same));
        let far = field("d.n").binary(Operator::Gt, field("c.n"));
        asked.joins.push(Join::on(kind, Relation::table("b").aliased("d"), far));
        asked.select(field("d.n"));
        let found = Resolved::run(&asked, &tables, &options()).unwrap().execute().unwrap();
        let mut wanted = Vec::new();
        let is_ninety =
            |a: &Row, b: &Row| number(&a[0]).zip(number(&b[0])).is_some_and(|(a, b)| a + b == 90);
        for row in looped(kind, &left, &right, is_ninety) {
            let later: Vec<_> =
                right.iter().filter(|d| !row[1].is_null() && d[0] > row[1]).collect();
            let with = |d: Value| row.iter().cloned().chain([d]).collect::<Row>();
            match (later.as_slice(), kind) {
                ([], JoinKind::Left) => wanted.push(with(Value::Null)),
                (later, _) => wanted.extend(later.iter().map(|d| with(d[0].clone()))),
            }
        }
        assert_eq!(found.to_rows(), wanted, "{kind:?}");
    }
}

#[test]
fn a_nested_loop_is_cancelled_while_it_runs() {
    let mut dice = Dice(37);
    let (first, _) = table(&mut dice, 3_000, DataType::I64, 30);
    let (second, _) = table(&mut dice, 3_000, DataType::I64, 30);
    let tables = Two(first, second);
    let options = options();
    let all = query(JoinKind::Inner, Expr::literal(true));
    let (found, mut rows) = (Resolved::run(&all, &tables, &options).unwrap(), 0);
    let stream = found.stream(&mut |batch: Batch| {
        rows += batch.len();
        options.inputs.limits.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(ControlFlow::Continue(()))
    });
    assert_eq!(stream.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(rows < 2_000_000, "{rows} rows");
}

/// All pairs that matched were kept: millions, of which one a row says it all.
#[test]
fn semi_and_anti_joins_keep_one_mark_a_row() {
    let mut dice = Dice(9);
    let less = field("a.n").binary(Operator::Lt, field("b.n"));
    for (left, right) in [(3_000, 2_000), (900, 9_000)] {
        let (first, left) = table(&mut dice, left, DataType::I64, 30);
        let (second, right) = table(&mut dice, right, DataType::I64, 30);
        let tables = Two(first, second);
        let little = options().with_memory(1 << 19);
        for kind in [JoinKind::Semi, JoinKind::Anti] {
            let equal = field("a.k").binary(Operator::Eq, field("b.k")).and(less.clone());
            let found = rows_of(&query(kind, less.clone()), &tables, &little);
            let wanted = looped(kind, &left, &right, |a, b| a[0] < b[0]);
            assert_eq!(found, wanted, "{kind:?}");
            let found = rows_of(&query(kind, equal), &tables, &little);
            let same = |a: &Row, b: &Row| !a[1].is_null() && a[1] == b[1] && a[0] < b[0];
            let wanted = looped(kind, &left, &right, same);
            assert_eq!(found, wanted, "{kind:?} with a key");
        }
    }
}

fn within(bytes: usize) -> Options {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let temporary = Some(TemporaryFiles::new(&Environment::os(), dir));
    Options { temporary, ..options() }.with_memory(bytes)
}

/// What the two sides of a join take was all in memory, or the join was refused.
#[test]
fn joins_by_files_are_those_of_memory_in_the_same_order() {
    use DataType::{F64, I64, Text};
    let (mut dice, mut by_files) = (Dice(13), [0; 4]);
    for (a, b, distinct) in
        [(I64, I64, 1 << 16), (Text, Text, 9_000), (F64, I64, 9_000), (Text, Text, 1 << 20)]
    {
        for (left, right) in [(9_000, 8_000), (6_000, 11_500)] {
            let (first, _) = table(&mut dice, left, a, distinct);
            let (second, _) = table(&mut dice, right, b, distinct);
            let tables = Two(first, second);
            let equal = field("a.k").binary(Operator::Eq, field("b.k"));
            let near = field("a.n").binary(Operator::Subtract, field("b.n"));
            let bounds = [Expr::literal(-400i64), Expr::literal(400i64)];
            let near = [near].into_iter().chain(bounds).collect();
            let near = Expr::Apply(Operator::Between, near);
            for kind in BY_FILES {
                for on in [equal.clone(), equal.clone().and(near.clone())] {
                    let asked = query(kind, on);
                    for bytes in [150 << 10, 350 << 10, 550 << 10] {
                        let none = Options { temporary: None, ..within(bytes) };
                        let refused = Resolved::run(&asked, &tables, &none).err();
                        if !refused.is_some_and(|e| e.kind() == ErrorKind::OverBudget) {
                            continue;
                        }
                        let little = within(bytes);
                        let Ok(found) = Resolved::run(&asked, &tables, &little) else {
                            // What comes out has to fit.
                            continue;
                        };
                        let place = BY_FILES.iter().position(|other| *other == kind).unwrap();
                        by_files[place] += 1;
                        let wanted = rows_of(&asked, &tables, &options());
                        let mut rows = Vec::new();
                        let stream = found.stream(&mut |batch: Batch| {
                            let row = |i| batch.columns.iter().map(move |c| c.value(i).to_owned());
                            rows.extend((0..batch.len()).map(|i| row(i).collect::<Vec<_>>()));
                            Ok(ControlFlow::Continue(()))
                        });
                        stream.unwrap();
                        assert!(rows == wanted, "{kind:?} {a} {b} {left} {right}");
                    }
                }
            }
        }
    }
    assert!(by_files.iter().all(|count| *count > 0), "{by_files:?} joins by files");
}

#[test]
fn a_join_by_files_needs_little_memory_and_ends_with_one_key() {
    let mut dice = Dice(17);
    let (first, _) = table(&mut dice, 60_000, DataType::Text, 1 << 30);
    let (second, _) = table(&mut dice, 60_000, DataType::Text, 1 << 30);
    let tables = Two(first, second);
    let equal = field("a.k").binary(Operator::Eq, field("b.k"));
    // What comes out of a left join lies in memory, and does not fit here.
    for kind in BY_FILES.into_iter().filter(|kind| *kind != JoinKind::Left) {
        let mut asked = query(kind, equal.clone());
        asked.select.clear();
        asked.select(Expr::count());
        let none = Options { temporary: None, ..within(1 << 20) };
        let error = Resolved::run(&asked, &tables, &none).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
        let wanted = rows_of(&asked, &tables, &options());
        assert_eq!(rows_of(&asked, &tables, &within(1 << 20)), wanted, "{kind:?}");
    }
    let (first, _) = table(&mut dice, 30_000, DataType::I64, 1);
    let (second, _) = table(&mut dice, 30_000, DataType::I64, 1);
    let tables = Two(first, second);
    let asked = query(JoinKind::Semi, equal.and(field("a.n").binary(Operator::Lt, field("b.n"))));
    let error = Resolved::run(&asked, &tables, &within(64 << 10)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("rows of one key of a join"), "{error}");
    assert!(error.to_string().contains("the query may have 65536"), "{error}");
}

#[test]
fn a_key_that_fails_is_tested_last() {
    let mut dice = Dice(5);
    let (first, _) = table(&mut dice, 50, DataType::I64, 60);
    let (second, _) = table(&mut dice, 50, DataType::I64, 60);
    let tables = Two(first, second);
    // Keys above 9 * 10^9 overflow; the other condition leaves none of them.
    let scaled = field("a.k").binary(Operator::Multiply, Expr::literal(1_000_000_000i64));
    let key = scaled.binary(Operator::Eq, field("b.k"));
    let small = field("a.k").binary(Operator::Lt, Expr::literal(5i64));
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let narrow = query(kind, key.clone().and(small.clone()));
        Resolved::run(&narrow, &tables, &options()).unwrap().execute().unwrap();
        let (wide, options) = (query(kind, key.clone()), options());
        let wide = Resolved::run(&wide, &tables, &options);
        let error = wide.and_then(|found| found.execute()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{kind:?} {error}");
    }
}

#[test]
fn plans_show_the_joins() {
    let mut dice = Dice(1);
    let (first, _) = table(&mut dice, 20, DataType::I64, 5);
    let (second, _) = table(&mut dice, 900, DataType::I64, 5);
    let tables = Two(first, second);
    let equal = field("a.k").binary(Operator::Eq, field("b.k"));
    let mut asked = query(JoinKind::Left, equal);
    asked.filter = Some(field("a.n").binary(Operator::Lt, Expr::literal(10i64)));
    let plan = Resolved::look(&asked, &tables, &options()).unwrap().plan().unwrap();
    let input = plan.input.clone().unwrap();
    assert_eq!((input.kind.as_str(), input.built.as_deref()), ("left join", Some("left")));
    assert_eq!(input.what, "a.k = b.k");
    assert_eq!(input.inputs[0].filter.as_deref(), Some("a.n < 10"));
    assert!(plan.to_string().contains("\n    table a where a.n < 10  (about "), "{plan}");
    let ran = Resolved::run(&asked, &tables, &options()).unwrap().explain().unwrap();
    let input = ran.input.clone().unwrap();
    assert!(input.rows.unwrap() >= 1 && input.inputs[1].rows.unwrap() > 0, "{ran}");
    assert!(serde_json::to_string(&ran).unwrap().contains("\"left join\""));
}
