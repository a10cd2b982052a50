//! Joins of many small tables, in whatever order they are written: what is asked is the planner.
//!
//! Tables of a hundred rows each, `t1` to `t27`, of a key, another number, and a text. In a chain
//! each table leads to the next, in a star all lead to the first, and in a tree each leads to two.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::Result;
use crate::draws::Draws;
use crate::workload::Kind::{Int, Text};
use crate::workload::{Engine, Planned, Question, Table, Workload};

const ROWS: u64 = 100;
const COLUMNS: &[(&str, crate::workload::Kind)] = &[("a", Int), ("b", Int), ("x", Text)];

const fn small(name: &'static str) -> Table {
    Table { name, columns: COLUMNS, key: &["a"] }
}

const TABLES: &[Table] = &[
    small("t1"),
    small("t2"),
    small("t3"),
    small("t4"),
    small("t5"),
    small("t6"),
    small("t7"),
    small("t8"),
    small("t9"),
    small("t10"),
    small("t11"),
    small("t12"),
    small("t13"),
    small("t14"),
    small("t15"),
    small("t16"),
    small("t17"),
    small("t18"),
    small("t19"),
    small("t20"),
    small("t21"),
    small("t22"),
    small("t23"),
    small("t24"),
    small("t25"),
    small("t26"),
    small("t27"),
];

/// How many tables are joined.
const COUNTS: [usize; 7] = [8, 10, 12, 14, 18, 22, 27];
/// What planning a join of [`PLANNED`] tables may take.
const PLAN_MS_MOST: f64 = 2.0;
const PLANNED: usize = 12;

/// Which tables are joined with which.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Chain,
    Star,
    Tree,
}

/// In which order they are written.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Each after one that it is joined with.
    Connected,
    /// Those with odd numbers first: no two of them are joined.
    OddFirst,
    Shuffled,
}

/// The workload, beside SQLite.
pub fn workload() -> Workload {
    let mut questions = Vec::new();
    let mut planned = Vec::new();
    for shape in [Shape::Chain, Shape::Star, Shape::Tree] {
        for order in [Order::Connected, Order::OddFirst, Order::Shuffled] {
            for count in COUNTS {
                let name = format!("{shape:?} {order:?} {count}").to_lowercase();
                let text = join(shape, order, count);
                if count == PLANNED {
                    let name = name.clone();
                    planned.push(Planned { name, text: text.clone(), ms_most: PLAN_MS_MOST });
                }
                questions.push(Question::new(name, text));
            }
        }
    }
    Workload {
        title: format!("joins of small tables of {ROWS} rows"),
        tables: TABLES,
        questions,
        planned,
        write: Box::new(|directory: &Path| TABLES.iter().try_for_each(|t| write(t, directory))),
        beside: Engine::Sqlite,
        mean_most: None,
        ratio_most: Some(5.0),
    }
}

/// The rows: `b` has each number below [`ROWS`] once, so that a join neither grows nor shrinks.
fn write(table: &Table, directory: &Path) -> Result<()> {
    let mut out = std::fs::File::create(table.file(directory))?;
    let mut text = String::from("a,b,x\n");
    let step = 2 * table.name.len() as u64 + 1;
    for row in 0..ROWS {
        // Odd steps that five does not divide reach every row of a hundred.
        let b = (row * if step.is_multiple_of(5) { 3 } else { step } + 7) % ROWS;
        writeln!(text, "{row},{b},text {}", row % 10)?;
    }
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// A query of so many tables.
fn join(shape: Shape, order: Order, count: usize) -> String {
    let mut numbers: Vec<usize> = (1..=count).collect();
    match order {
        Order::Connected => {}
        Order::OddFirst => numbers.sort_by_key(|number| number % 2 == 0),
        Order::Shuffled => {
            let mut draws = Draws::of(count as u64);
            numbers.sort_by_cached_key(|_| draws.next());
        }
    }
    let tables: Vec<String> = numbers.iter().map(|number| format!("t{number}")).collect();
    let before = |number: usize| match shape {
        Shape::Chain => number - 1,
        Shape::Star => 1,
        Shape::Tree => number / 2,
    };
    let links = (2..=count).map(|number| format!("t{}.b = t{number}.a", before(number)));
    let links = links.collect::<Vec<_>>().join(" AND ");
    format!(
        "SELECT count(*), sum(t1.a + t{count}.b) FROM {} WHERE {links} AND t{count}.x <> 'text 3'",
        tables.join(", ")
    )
}
