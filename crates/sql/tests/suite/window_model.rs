//! Window functions against what they mean: random rows and random windows, each row's frame found
//! by a look at every other row.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::cmp::Ordering;
use std::fmt::Write;

use esker::{Database, Value};
use esker_sql::Sql;

use crate::fixture::memory;

/// Numbers without end, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    id: i64,
    part: Option<i64>,
    key: Option<i64>,
    value: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Units {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    First,
    Before(i64),
    Current,
    After(i64),
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Exclude {
    Nothing,
    Row,
    Group,
    Ties,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    is_divided: bool,
    /// Descending, NULLs first.
    order: Option<(bool, bool)>,
    frame: Option<(Units, Bound, Bound, Exclude)>,
}

const FUNCTIONS: [&str; 29] = [
    "count(*)",
    "count(value)",
    "sum(value)",
    "sum(CAST(value AS f64))",
    "sum(CAST(value AS decimal(30,2)))",
    "min(value)",
    "max(value)",
    "max(CAST(value AS text))",
    "min(CAST(value AS f64))",
    "bool_or(value > 5)",
    "bit_xor(value)",
    "string_agg(CAST(value AS text), ',')",
    "count(*) FILTER (WHERE value > 5)",
    "row_number()",
    "rank()",
    "dense_rank()",
    "ntile(4)",
    "lag(value)",
    "lead(value, 2, -1)",
    "lag(value, value)",
    "lag(value, 2) IGNORE NULLS",
    "lead(value) IGNORE NULLS",
    "first_value(value)",
    "last_value(value)",
    "nth_value(value, 3)",
    "first_value(value) IGNORE NULLS",
    "last_value(value) IGNORE NULLS",
    "nth_value(value, 2) IGNORE NULLS",
    "last_value(id)",
];

impl Window {
    fn any(chance: &mut Chance) -> Self {
        let is_divided = chance.below(3) > 0;
        let order = (chance.below(8) > 0).then(|| (chance.below(2) == 0, chance.below(2) == 0));
        let bound = |chance: &mut Chance| {
            let offset = i64::try_from(chance.below(5)).unwrap();
            let before = Bound::Before(offset);
            chance.pick(&[
                Bound::First,
                before,
                before,
                Bound::Current,
                Bound::After(offset),
                Bound::After(offset),
                Bound::Last,
            ])
        };
        let place = |bound: Bound| match bound {
            Bound::First => 0,
            Bound::Before(_) => 1,
            Bound::Current => 2,
            Bound::After(_) => 3,
            Bound::Last => 4,
        };
        let frame = (chance.below(6) > 0).then(|| {
            loop {
                let units = chance.pick(&[Units::Rows, Units::Range, Units::Groups]);
                let (start, end) = (bound(chance), bound(chance));
                let exclude = chance.pick(&[
                    Exclude::Nothing,
                    Exclude::Nothing,
                    Exclude::Row,
                    Exclude::Group,
                    Exclude::Ties,
                ]);
                let has_offset = [start, end].iter().any(|b| !matches!(place(*b), 0 | 2 | 4));
                let needs_order = units == Units::Groups || units == Units::Range && has_offset;
                let is_rising =
                    place(start) <= place(end) && start != Bound::Last && end != Bound::First;
                if is_rising && (order.is_some() || !needs_order) {
                    return (units, start, end, exclude);
                }
            }
        });
        Self { is_divided, order, frame }
    }

    fn to_sql(self) -> String {
        let mut text = String::new();
        if self.is_divided {
            text += "PARTITION BY part ";
        }
        if let Some((descending, nulls_first)) = self.order {
            let direction = if descending { "DESC" } else { "ASC" };
            let nulls = if nulls_first { "FIRST" } else { "LAST" };
            write!(text, "ORDER BY k {direction} NULLS {nulls} ").unwrap();
        }
        let bound = |bound: Bound| match bound {
            Bound::First => "UNBOUNDED PRECEDING".to_owned(),
            Bound::Before(n) => format!("{n} PRECEDING"),
            Bound::Current => "CURRENT ROW".to_owned(),
            Bound::After(n) => format!("{n} FOLLOWING"),
            Bound::Last => "UNBOUNDED FOLLOWING".to_owned(),
        };
        if let Some((units, start, end, exclude)) = self.frame {
            let units = match units {
                Units::Rows => "ROWS",
                Units::Range => "RANGE",
                Units::Groups => "GROUPS",
            };
            let exclude = match exclude {
                Exclude::Nothing => "",
                Exclude::Row => " EXCLUDE CURRENT ROW",
                Exclude::Group => " EXCLUDE GROUP",
                Exclude::Ties => " EXCLUDE TIES",
            };
            let (start, end) = (bound(start), bound(end));
            write!(text, "{units} BETWEEN {start} AND {end}{exclude}").unwrap();
        }
        text
    }

    /// How keys follow each other; equal where there is no order.
    fn compare(self, a: Option<i64>, b: Option<i64>) -> Ordering {
        let Some((descending, nulls_first)) = self.order else { return Ordering::Equal };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) if nulls_first => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => self.compare(b, a).reverse(),
            (Some(a), Some(b)) if descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
        }
    }

    /// The number of the group of peers of each row of a partition in order.
    fn groups(self, rows: &[Row]) -> Vec<i64> {
        let mut group = 0;
        let mut next = |row: usize| {
            let is_peer = row == 0 || self.compare(rows[row - 1].key, rows[row].key).is_eq();
            group += i64::from(!is_peer);
            group
        };
        (0..rows.len()).map(&mut next).collect()
    }

    /// The rows that row `at` of a partition in order looks at.
    fn frame(self, rows: &[Row], groups: &[i64], at: usize) -> Vec<usize> {
        let usual = (Units::Range, Bound::First, Bound::Current, Exclude::Nothing);
        let (units, start, end, exclude) = self.frame.unwrap_or(usual);
        let (group, place) = (groups[at], i64::try_from(at).unwrap());
        let key = rows[at].key;
        // How a row lies to a bound that is so far behind the row at hand.
        let against = |other: usize, by: Option<i64>| match units {
            Units::Rows => i64::try_from(other).unwrap().cmp(&(place + by.unwrap_or(0))),
            Units::Groups => groups[other].cmp(&(group + by.unwrap_or(0))),
            Units::Range => {
                let sign =
                    if self.order.is_some_and(|(descending, _)| descending) { -1 } else { 1 };
                let target = key.map(|key| key + sign * by.unwrap_or(0));
                self.compare(rows[other].key, target)
            }
        };
        let is_in = |other: usize| {
            let after_start = match start {
                Bound::First => true,
                Bound::Before(n) => against(other, Some(-n)).is_ge(),
                Bound::Current => against(other, None).is_ge(),
                Bound::After(n) => against(other, Some(n)).is_ge(),
                Bound::Last => false,
            };
            let before_end = match end {
                Bound::First => false,
                Bound::Before(n) => against(other, Some(-n)).is_le(),
                Bound::Current => against(other, None).is_le(),
                Bound::After(n) => against(other, Some(n)).is_le(),
                Bound::Last => true,
            };
            let is_peer = groups[other] == group;
            let is_left_out = match exclude {
                Exclude::Nothing => false,
                Exclude::Row => other == at,
                Exclude::Group => is_peer,
                Exclude::Ties => is_peer && other != at,
            };
            after_start && before_end && !is_left_out
        };
        (0..rows.len()).filter(|other| is_in(*other)).collect()
    }
}

fn shown(value: Option<i64>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

fn float(value: Option<i64>) -> String {
    value.map_or("null".to_owned(), |value| format!("{value}.0"))
}

/// What a function is for row `at` of a partition in order.
fn expected(
    function: &str,
    (rows, groups): (&[Row], &[i64]),
    frame: &[usize],
    at: usize,
) -> String {
    let all: Vec<Option<i64>> = frame.iter().map(|row| rows[*row].value).collect();
    let known: Vec<i64> = all.iter().copied().flatten().collect();
    let sum = (!known.is_empty()).then(|| known.iter().sum::<i64>());
    let count = |n: usize| n.to_string();
    match function {
        "count(*)" => count(frame.len()),
        "count(value)" => count(known.len()),
        "sum(value)" => shown(sum),
        "sum(CAST(value AS f64))" => float(sum),
        "sum(CAST(value AS decimal(30,2)))" => {
            sum.map_or("null".to_owned(), |sum| format!("{sum}.00"))
        }
        "min(value)" => shown(known.iter().min().copied()),
        "max(value)" => shown(known.iter().max().copied()),
        "max(CAST(value AS text))" => {
            known.iter().map(i64::to_string).max().unwrap_or("null".to_owned())
        }
        "min(CAST(value AS f64))" => float(known.iter().min().copied()),
        "bool_or(value > 5)" => match known.is_empty() {
            true => "null".to_owned(),
            false => known.iter().any(|value| *value > 5).to_string(),
        },
        "bit_xor(value)" => {
            shown((!known.is_empty()).then(|| known.iter().fold(0, |all, value| all ^ value)))
        }
        "string_agg(CAST(value AS text), ',')" => match known.is_empty() {
            true => "null".to_owned(),
            false => known.iter().map(i64::to_string).collect::<Vec<_>>().join(","),
        },
        "count(*) FILTER (WHERE value > 5)" => count(known.iter().filter(|v| **v > 5).count()),
        _ => expected_of_rows(function, (rows, groups), at)
            .unwrap_or_else(|| shown(expected_value(function, rows, frame, at))),
    }
}

/// The same for what counts rows.
fn expected_of_rows(function: &str, (rows, groups): (&[Row], &[i64]), at: usize) -> Option<String> {
    let first_peer = groups.iter().position(|group| *group == groups[at]).unwrap();
    Some(match function {
        "row_number()" => (at + 1).to_string(),
        "rank()" => (first_peer + 1).to_string(),
        "dense_rank()" => (groups[at] + 1).to_string(),
        "ntile(4)" => {
            let (size, longer) = (rows.len() / 4, rows.len() % 4);
            let parts = (0..4)
                .flat_map(|part| std::iter::repeat_n(part + 1, size + usize::from(part < longer)));
            parts.collect::<Vec<usize>>()[at].to_string()
        }
        _ => return None,
    })
}

/// The same for what is the value of a row.
fn expected_value(function: &str, rows: &[Row], frame: &[usize], at: usize) -> Option<i64> {
    let moved = |by: i64| {
        let to = usize::try_from(i64::try_from(at).unwrap() + by).ok()?;
        rows.get(to)
    };
    let mut known_before = rows[..at].iter().rev().filter_map(|row| row.value);
    let mut known_after = rows[at + 1..].iter().filter_map(|row| row.value);
    let value = |row: Option<&usize>| row.and_then(|row| rows[*row].value);
    let known: Vec<usize> =
        frame.iter().copied().filter(|row| rows[*row].value.is_some()).collect();
    match function {
        "lag(value)" => moved(-1).and_then(|row| row.value),
        "lead(value, 2, -1)" => moved(2).map_or(Some(-1), |row| row.value),
        "lag(value, value)" => rows[at].value.and_then(|by| moved(-by)).and_then(|row| row.value),
        "lag(value, 2) IGNORE NULLS" => known_before.nth(1),
        "lead(value) IGNORE NULLS" => known_after.next(),
        "first_value(value)" => value(frame.first()),
        "last_value(value)" => value(frame.last()),
        "nth_value(value, 3)" => value(frame.get(2)),
        "first_value(value) IGNORE NULLS" => value(known.first()),
        "last_value(value) IGNORE NULLS" => value(known.last()),
        "nth_value(value, 2) IGNORE NULLS" => value(known.get(1)),
        "last_value(id)" => frame.last().map(|row| rows[*row].id),
        other => panic!("{other}"),
    }
}

fn rows(chance: &mut Chance, count: i64) -> Vec<Row> {
    let mut maybe = |nulls: u64, end: u64| {
        let value = i64::try_from(chance.below(end)).unwrap();
        (chance.below(nulls) > 0).then_some(value)
    };
    let row = |id| Row { id, part: maybe(9, 4), key: maybe(7, 40), value: maybe(5, 12) };
    (0..count).map(row).collect()
}

fn filled(rows: &[Row]) -> Database {
    let db = memory(&["CREATE TABLE t (id i64 PRIMARY KEY, part i64, k i64, value i64)"]);
    let row = |row: &Row| {
        let all = [Some(row.id), row.part, row.key, row.value].map(shown);
        format!("({})", all.join(", "))
    };
    let all: Vec<String> = rows.iter().map(row).collect();
    if !all.is_empty() {
        db.sql(&format!("INSERT INTO t VALUES {}", all.join(", ")), ()).unwrap();
    }
    db
}

/// All functions over a window; one statement, so that some of them share a sort.
fn compare(db: &Database, rows: &[Row], window: Window) {
    let over = window.to_sql();
    let calls: Vec<String> = FUNCTIONS.iter().map(|f| format!("{f} OVER ({over})")).collect();
    let text = format!("SELECT id, {} FROM t ORDER BY id", calls.join(", "));
    let found = db.sql(&text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let found = found.into_rows().unwrap().to_rows();
    let mut parts: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let is_here = |other: &Vec<Row>| !window.is_divided || other[0].part == row.part;
        match parts.iter_mut().find(|other| is_here(other)) {
            Some(part) => part.push(*row),
            None => parts.push(vec![*row]),
        }
    }
    assert_eq!(found.len(), rows.len());
    for mut part in parts {
        part.sort_by(|a, b| window.compare(a.key, b.key));
        let groups = window.groups(&part);
        for (at, row) in part.iter().enumerate() {
            let frame = window.frame(&part, &groups, at);
            let answers = &found[usize::try_from(row.id).unwrap()];
            assert_eq!(answers[0], Value::Int(row.id));
            for (function, answer) in FUNCTIONS.iter().zip(&answers[1..]) {
                let wanted = expected(function, (&part, &groups), &frame, at);
                assert_eq!(answer.to_string(), wanted, "{function} OVER ({over}) of {row:?}");
            }
        }
    }
}

#[test]
fn random_windows_mean_what_they_say() {
    let mut chance = Chance(7);
    for count in [0, 1, 2, 9, 30, 60] {
        let rows = rows(&mut chance, count);
        let db = filled(&rows);
        for _ in 0..25 {
            compare(&db, &rows, Window::any(&mut chance));
        }
    }
}

/// Enough rows for a tree of several levels.
#[test]
fn random_windows_over_more_rows_mean_what_they_say() {
    let mut chance = Chance(11);
    let rows = rows(&mut chance, 700);
    let db = filled(&rows);
    let frames = [
        (Units::Rows, Bound::Before(300), Bound::After(40), Exclude::Nothing),
        (Units::Rows, Bound::Current, Bound::Last, Exclude::Nothing),
        (Units::Range, Bound::First, Bound::Last, Exclude::Ties),
        (Units::Range, Bound::Before(20), Bound::After(3), Exclude::Row),
        (Units::Groups, Bound::Before(9), Bound::After(9), Exclude::Group),
    ];
    for (i, frame) in frames.into_iter().enumerate() {
        let order = Some((i % 2 == 0, i % 3 == 0));
        compare(&db, &rows, Window { is_divided: i % 2 == 1, order, frame: Some(frame) });
    }
}
