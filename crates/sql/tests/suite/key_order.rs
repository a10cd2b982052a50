//! `ORDER BY` the key with `LIMIT` reads by the key, and answers as a scan does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use esker::{DataType, Database, IndexUse, Options, Schema, Value};
use esker_sql::{Outcome, Session, Sql};
use esker_vfs::sim::{Options as SimOptions, Simulation};

const ROWS: i64 = 1_600;
/// Rows of a segment, which is a zone here.
const SEGMENT_ROWS: usize = 100;

fn shown(outcome: Outcome) -> String {
    text_of(&outcome.into_rows().unwrap().to_rows())
}

fn text_of(rows: &[Vec<Value>]) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

/// Small groups and segments, so that few rows lie in many parts.
fn database(index_use: IndexUse, machine: &Simulation) -> Database {
    let options = Options::new().background(false).small_group_limit(0).index_use(index_use);
    let options = options.environment(machine.environment()).segment_limit(SEGMENT_ROWS);
    options.group_limit(SEGMENT_ROWS, 1 << 20).open("db").unwrap()
}

/// Rising keys, keys that come in any order, keys in the order of the table, and keys of two
/// fields; most rows of the queue are done, some changed, and some open.
fn fill(db: &Database) {
    db.sql("CREATE TABLE q (id i64 PRIMARY KEY, st text, n i64)", ()).unwrap();
    db.sql("CREATE TABLE r (id i64 PRIMARY KEY, st text, n i64)", ()).unwrap();
    let by_key = Schema::builder().field("id", DataType::Text).primary_key(["id"]).ordered_by_key();
    let by_key = by_key.nullable("st", DataType::Text).nullable("n", DataType::I64);
    db.create_table("k", by_key.build().unwrap()).unwrap();
    db.sql("CREATE TABLE two (a i64, b text, n i64, PRIMARY KEY (a, b))", ()).unwrap();
    for first in (0..ROWS).step_by(SEGMENT_ROWS) {
        let mut rows = [const { Vec::new() }; 4];
        for i in first..first + SEGMENT_ROWS as i64 {
            let anywhere = i * 701 % ROWS;
            rows[0].push(format!("({i}, 'new', {anywhere})"));
            rows[1].push(format!("({anywhere}, 'new', {i})"));
            rows[2].push(format!("('key {anywhere:04}', 'new', {i})"));
            rows[3].push(format!("({}, '{anywhere:04}', {i})", i / 500));
        }
        for (table, rows) in ["q", "r", "k", "two"].iter().zip(rows) {
            db.sql(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")), ()).unwrap();
        }
        db.wait_idle().unwrap();
    }
    for text in [
        "DELETE FROM q WHERE id < 700 AND id % 100 <> 37",
        "UPDATE q SET st = 'done' WHERE id BETWEEN 700 AND 900 OR id % 5 = 0",
        "DELETE FROM r WHERE id % 3 = 0",
        "UPDATE r SET n = -n WHERE id % 50 < 5",
        "DELETE FROM k WHERE n % 7 = 0",
        "UPDATE two SET n = -n WHERE n % 90 < 9",
        "INSERT INTO q VALUES (-5, 'new', 0), (99999, 'new', 0)",
    ] {
        db.sql(text, ()).unwrap();
    }
}

const QUESTIONS: [&str; 22] = [
    "SELECT id FROM q ORDER BY id LIMIT 1",
    "SELECT id FROM q ORDER BY id DESC LIMIT 5",
    "SELECT id FROM q WHERE id > 777 ORDER BY id LIMIT 100",
    "SELECT id FROM q WHERE id < 777 ORDER BY id DESC LIMIT 10 OFFSET 300",
    "SELECT id, n FROM q WHERE st = 'new' ORDER BY id LIMIT 1",
    "SELECT id, n FROM q WHERE st = 'done' ORDER BY id DESC LIMIT 3 OFFSET 2",
    "SELECT min(id), max(id), count(*) FROM q",
    "SELECT min(id), max(id) FROM q WHERE st = 'done'",
    "SELECT id FROM r ORDER BY id LIMIT 1",
    "SELECT id, n FROM r ORDER BY id DESC LIMIT 20 OFFSET 20",
    "SELECT id FROM r WHERE id >= 800 ORDER BY id LIMIT 50",
    "SELECT min(id), max(id), min(n), max(n) FROM r",
    "SELECT id FROM k ORDER BY id LIMIT 3",
    "SELECT id FROM k ORDER BY id DESC LIMIT 3",
    "SELECT id FROM k WHERE id > 'key 0900' ORDER BY id LIMIT 30",
    "SELECT min(id), max(id) FROM k",
    "SELECT a, b FROM two ORDER BY a, b LIMIT 40",
    "SELECT a, b FROM two ORDER BY a DESC, b LIMIT 40 OFFSET 7",
    "SELECT a, b FROM two WHERE a = 2 AND b > '0100' ORDER BY a, b LIMIT 9",
    "SELECT a, n FROM two ORDER BY a, n DESC LIMIT 11",
    "SELECT q.id, r.n FROM q JOIN r ON r.id = q.id ORDER BY q.id LIMIT 4",
    "SELECT DISTINCT st FROM q ORDER BY st LIMIT 1",
];

#[test]
fn the_first_rows_by_key_are_what_a_scan_finds() {
    let machines = [5, 6].map(|seed| Simulation::new(seed, SimOptions::default()));
    let [by_key, by_scan] =
        [database(IndexUse::WhenCheaper, &machines[0]), database(IndexUse::Never, &machines[1])];
    [&by_key, &by_scan].into_iter().for_each(fill);
    let ask = |db: &Database, text: &str| shown(db.sql(text, ()).unwrap());
    let old = [&by_key, &by_scan].map(|db| db.snapshot().unwrap());
    let answers = QUESTIONS.map(|text| {
        let [found, wanted] = [ask(&by_key, text), ask(&by_scan, text)];
        assert_eq!(found, wanted, "{text}");
        found
    });
    // In a transaction, with its own rows and without those that it has removed.
    let [mut own, mut of_scan] = [&by_key, &by_scan].map(Session::new);
    for text in [
        "BEGIN",
        "DELETE FROM q WHERE id < 1000",
        "INSERT INTO q VALUES (50, 'new', 7), (1200000, 'new', 8)",
        "UPDATE r SET n = 0 WHERE id = 1",
        "DELETE FROM k WHERE id < 'key 0100'",
        "INSERT INTO two VALUES (-1, 'x', 1), (2, '0100x', 1)",
    ] {
        for session in [&mut own, &mut of_scan] {
            session.sql(text, ()).unwrap();
        }
    }
    for text in QUESTIONS {
        let [found, wanted] =
            [&mut own, &mut of_scan].map(|session| shown(session.sql(text, ()).unwrap()));
        assert_eq!(found, wanted, "in a transaction: {text}");
    }
    for session in [&mut own, &mut of_scan] {
        session.sql("COMMIT", ()).unwrap();
    }
    // The rows of before, of now, and of now in merged segments.
    for db in [&by_key, &by_scan] {
        db.compact(false, &mut |_, _| {}).unwrap();
    }
    for (text, before) in QUESTIONS.iter().zip(answers) {
        let query = esker_sql::parse(text).unwrap();
        let found = old.each_ref().map(|old| text_of(&old.query(&query).unwrap().to_rows()));
        assert_eq!(found, [before.as_str(); 2], "as of before: {text}");
        assert_eq!(ask(&by_key, text), ask(&by_scan, text), "merged: {text}");
    }
}

#[test]
fn few_rows_are_read() {
    let machine = Simulation::new(7, SimOptions::default());
    let db = database(IndexUse::WhenCheaper, &machine);
    fill(&db);
    let read = |text: &str| {
        let explained = db.explain(&esker_sql::parse(text).unwrap()).unwrap();
        let told = explained.to_string();
        assert!(told.contains("zones by their bounds, until enough rows are found"), "{told}");
        explained.met.unwrap().rows_read
    };
    // What is not sealed is read, too, and waves of zones double.
    let open = 450;
    let zone = SEGMENT_ROWS as u64;
    for (text, zones) in [
        ("SELECT id FROM q ORDER BY id LIMIT 1", 1),
        ("SELECT id FROM q ORDER BY id DESC LIMIT 5", 1),
        ("SELECT id FROM q WHERE id > 1000 ORDER BY id LIMIT 20", 1),
        ("SELECT id FROM q WHERE st = 'new' ORDER BY id LIMIT 1", 1),
        ("SELECT b FROM two ORDER BY a, b LIMIT 1", 7),
    ] {
        let read = read(text);
        assert!(read <= open + zones * zone, "{text}: {read} rows read");
    }
}
