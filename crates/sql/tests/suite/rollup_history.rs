//! The history of materialized views: what groups came to outlives the events.

use std::time::Duration;

use esker::{Database, Options, Snapshot, Transaction, Value};
use esker_sql::{Outcome, Sql, parse};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

fn machine(seed: u64) -> Simulation {
    let options = SimOptions { pause_probability: 0, latency_ns: 0, ..SimOptions::default() };
    Simulation::new(seed, options)
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().environment(machine.environment()).background(false);
    options.group_limit(64, 64 << 20).small_group_limit(1).open("db").unwrap()
}

/// Events, and beside them a table with all that there ever were and that nobody deleted.
fn with_events(db: &Database) {
    let fields = "t timestamp NOT NULL, n i64 NOT NULL, tier text, cost decimal(12, 3), ms u32";
    let stream = "stream = 't', retention = '3 days', window = '1 day'";
    db.sql(&format!("CREATE TABLE events ({fields}) WITH ({stream})"), ()).unwrap();
    db.sql(&format!("CREATE TABLE ever ({fields}, PRIMARY KEY (n))"), ()).unwrap();
}

const SPEND: &str = "SELECT date_trunc('hour', t) AS hour, tier, count(*) AS n, sum(cost) AS cost, \
                     avg(cost) AS mean, min(ms) AS least, max(ms) AS most, count(cost) AS paid \
                     FROM events GROUP BY 1, 2";
const PAID: &str = "SELECT tier, sum(n) AS ids, avg(ms) AS ms FROM events WHERE cost > 3 \
                    GROUP BY tier";

/// Adds some events of about now.
fn add(db: &Database, from: i64, to: i64) {
    let now = db.clock().date_us;
    for n in from..to {
        let t = Value::Timestamp(now - (n % 97) * 60_000_000);
        let tier = if n % 5 == 0 { Value::Null } else { format!("tier {}", n % 3).into() };
        for table in ["events", "ever"] {
            let text = format!(
                "INSERT INTO {table} SELECT $1, $2, $3, CASE WHEN $2 % 7 = 0 THEN NULL ELSE \
                 CAST($2 % 40 / 8.0 AS decimal(12, 3)) END, $2 % 300"
            );
            db.sql(&text, (t.clone(), n, tier.clone())).unwrap();
        }
    }
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn rows(db: &Database, text: &str) -> Vec<Vec<Value>> {
    sorted(db.query(&parse(text).unwrap()).unwrap().to_rows())
}

fn rows_within(transaction: &Transaction, text: &str) -> Vec<Vec<Value>> {
    sorted(transaction.query(&parse(text).unwrap()).unwrap().to_rows())
}

fn rows_at(snapshot: &Snapshot, text: &str) -> Vec<Vec<Value>> {
    sorted(snapshot.query(&parse(text).unwrap()).unwrap().to_rows())
}

fn error(db: &Database, text: &str) -> String {
    match db.sql(text, ()) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("{text}"),
    }
}

fn done(db: &Database, text: &str) -> String {
    match db.sql(text, ()).unwrap() {
        Outcome::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

/// The views are what all events that ever were come to.
fn expect_right(db: &Database, at: &str) {
    for (view, query) in [("spend", SPEND), ("paid", PAID)] {
        let shown = rows(db, &format!("SELECT * FROM {view}"));
        assert_eq!(shown, rows(db, &query.replace("events", "ever")), "{view} {at}");
    }
}

fn with_views(db: &Database) {
    db.sql(&format!("CREATE MATERIALIZED VIEW spend WITH (retention = '90 days') AS {SPEND}"), ())
        .unwrap();
    db.sql(&format!("CREATE MATERIALIZED VIEW paid WITH (retention = forever) AS {PAID}"), ())
        .unwrap();
}

/// Days of events, some of which are deleted while they are there.
fn days(db: &Database, machine: &Simulation, days: std::ops::Range<i64>) {
    for day in days {
        for quarter in 0..4 {
            let from = day * 1_000 + quarter * 100;
            add(db, from, from + 80);
            for table in ["events", "ever"] {
                let gone = format!(
                    "DELETE FROM {table} WHERE n % 11 = {} AND n >= {}",
                    day % 5,
                    from - 500
                );
                db.sql(&gone, ()).unwrap();
            }
            expect_right(db, &format!("on day {day}, quarter {quarter}"));
            machine.advance_clock(HOUR * 6);
            db.wait_idle().unwrap();
            expect_right(db, &format!("later on day {day}, quarter {quarter}"));
        }
    }
}

#[test]
fn groups_outlive_their_events() {
    let machine = machine(11);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..8);
    let count = rows(&db, "SELECT count(*) FROM events");
    let ever = rows(&db, "SELECT count(*) FROM ever");
    assert!(count < ever, "{count:?} {ever:?}");
    for question in [
        "SELECT hour, n FROM spend WHERE tier = 'tier 1'",
        "SELECT count(*), sum(n), max(most) FROM spend WHERE tier IS NULL",
        "SELECT tier, sum(n) FROM spend GROUP BY tier",
        "SELECT * FROM spend WHERE hour >= '1970-01-03' AND hour < '1970-01-05 06:00'",
        "SELECT * FROM spend WHERE hour IN ('1970-01-03 02:00', '1970-01-04 03:00') OR n = 1",
        "SELECT * FROM spend WHERE hour IN ('1970-01-03 02:00') OR hour IS NULL",
        "SELECT s.n FROM spend AS s WHERE s.hour BETWEEN '1970-01-03' AND '1970-01-04' AND s.n > 2",
        "SELECT count(DISTINCT hour) FROM spend",
        "SELECT date_trunc('day', hour), sum(cost) FROM spend GROUP BY 1 HAVING sum(n) > 20",
        "SELECT a.hour, b.tier FROM spend a JOIN spend b ON a.hour = b.hour AND a.tier = b.tier",
        "SELECT n FROM spend WHERE hour = (SELECT min(hour) FROM spend) ORDER BY n",
        "SELECT tier FROM spend UNION SELECT tier FROM spend",
        "SELECT tier, max(hour) OVER (PARTITION BY tier) FROM spend",
    ] {
        let over = question.replace("spend", &format!("({})", SPEND.replace("events", "ever")));
        let over = over.replace(") a JOIN", ") AS a JOIN").replace(") b ON", ") AS b ON");
        assert_eq!(rows(&db, question), rows(&db, &over), "{question}");
        let limited = db.query(&parse(&format!("{question} LIMIT 2")).unwrap()).unwrap().to_rows();
        assert!(limited.iter().all(|row| rows(&db, question).contains(row)), "{question}");
    }
    db.check().unwrap();
    db.close().unwrap();
    let db = open(&machine);
    expect_right(&db, "after it was opened again");
    days(&db, &machine, 8..9);
}

#[test]
fn a_crash_at_any_time_moves_each_event_once() {
    for seed in 0..12 {
        let machine = machine(100 + seed);
        let db = open(&machine);
        with_events(&db);
        with_views(&db);
        for day in 0..6 {
            add(&db, day * 100, day * 100 + 70);
            let into = u32::try_from(seed).unwrap() + 1;
            machine.advance_clock(HOUR * 12 + HOUR * into / 2);
            if day == 4 {
                break;
            }
            db.wait_idle().unwrap();
        }
        machine.crash_after_io(Some(3 + seed * 2));
        let _ = db.wait_idle();
        let image = machine.crash_image(CrashChoice::Random(seed));
        std::mem::forget(db);
        let options = SimOptions { pause_probability: 0, latency_ns: 0, ..SimOptions::default() };
        let machine = Simulation::from_image(&image, seed, options);
        let db = open(&machine);
        expect_right(&db, &format!("after the crash of seed {seed}"));
        db.wait_idle().unwrap();
        expect_right(&db, &format!("some time after the crash of seed {seed}"));
        db.check().unwrap();
    }
}

#[test]
fn snapshots_and_transactions_see_one_side() {
    let machine = machine(12);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..3);
    let held = db.snapshot().unwrap();
    let before = rows(&db, "SELECT * FROM spend");
    let transaction = db.begin().unwrap();
    transaction.sql("DELETE FROM spend WHERE tier = 'tier 1'", ()).unwrap();
    let all = "SELECT count(*) FROM spend WHERE tier = 'tier 1'";
    let left = rows_within(&transaction, all);
    machine.advance_clock(DAY);
    db.wait_idle().unwrap();
    assert!(
        rows(&db, "SELECT count(*) FROM events") < rows_at(&held, "SELECT count(*) FROM events")
    );
    assert_eq!(rows_at(&held, "SELECT * FROM spend"), before);
    assert_eq!(rows(&db, "SELECT * FROM spend"), before);
    assert_eq!(rows_within(&transaction, all), left);
    transaction.rollback();
    assert_eq!(rows(&db, "SELECT * FROM spend"), before);
}

#[test]
fn what_is_kept_is_corrected_by_delete() {
    let machine = machine(13);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..6);
    let other = "SELECT * FROM spend WHERE tier = 'tier 2'";
    let kept = rows(&db, other);
    let live = SPEND.replace("events GROUP", "events WHERE tier = 'tier 1' GROUP");
    assert_ne!(rows(&db, "SELECT * FROM spend WHERE tier = 'tier 1'"), rows(&db, &live));
    db.sql("DELETE FROM spend WHERE spend.tier = 'tier 1'", ()).unwrap();
    assert_eq!(rows(&db, "SELECT * FROM spend WHERE tier = 'tier 1'"), rows(&db, &live));
    assert_eq!(rows(&db, other), kept);
    db.sql("DELETE FROM spend WHERE tier = 'tier 2' ERASE", ()).unwrap();
    let live = SPEND.replace("events GROUP", "events WHERE tier = 'tier 2' GROUP");
    assert_eq!(rows(&db, other), rows(&db, &live));
    db.wait_idle().unwrap();
    assert_eq!(rows(&db, other), rows(&db, &live));
    for refused in [
        "INSERT INTO \"spend$history\" (hour, tier) VALUES (now(), 'x')",
        "UPDATE \"spend$history\" SET tier = 'x'",
        "DROP TABLE \"spend$history\"",
        "TRUNCATE \"spend$history\"",
        "ALTER TABLE \"spend$history\" RENAME TO other",
        "ALTER TABLE \"spend$history\" ADD COLUMN x i64",
        "INSERT INTO spend VALUES (now())",
        "UPDATE spend SET tier = 'x'",
    ] {
        let e = error(&db, refused);
        let said = e.contains("history of a materialized view") || e.contains("is a materialized");
        assert!(said, "{refused}: {e}");
    }
    assert!(error(&db, "DELETE FROM spend WHERE count = 3").contains("count"));
}

#[test]
fn a_history_goes_with_its_view() {
    let machine = machine(14);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..5);
    let before = rows(&db, "SELECT * FROM spend");
    let replace = format!("CREATE OR REPLACE MATERIALIZED VIEW spend AS {SPEND}");
    assert!(error(&db, &replace).contains("has a history"), "{}", error(&db, &replace));
    db.sql("ALTER MATERIALIZED VIEW spend RENAME TO costs", ()).unwrap();
    assert_eq!(rows(&db, "SELECT * FROM costs"), before);
    db.sql("CREATE SCHEMA acme", ()).unwrap();
    db.sql("ALTER MATERIALIZED VIEW costs SET SCHEMA acme", ()).unwrap();
    assert_eq!(rows(&db, "SELECT * FROM acme.costs"), before);
    db.sql("ALTER TABLE events ADD COLUMN more i64", ()).unwrap();
    assert_eq!(rows(&db, "SELECT * FROM acme.costs"), before);
    machine.advance_clock(DAY);
    db.wait_idle().unwrap();
    assert_eq!(rows(&db, "SELECT * FROM acme.costs"), before);
    db.sql("TRUNCATE events", ()).unwrap();
    assert!(!rows(&db, "SELECT * FROM acme.costs").is_empty());
    db.sql("DROP SCHEMA acme CASCADE", ()).unwrap();
    assert!(!db.tables().iter().any(|name| name.contains("costs")), "{:?}", db.tables());
    db.sql("DROP TABLE events CASCADE", ()).unwrap();
    assert_eq!(db.tables(), ["ever"]);
    db.check().unwrap();
}

#[test]
fn a_history_ends_by_a_retention_of_its_own() {
    let machine = machine(15);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..5);
    let first = rows(&db, "SELECT min(hour) FROM spend");
    let shorter = "ALTER MATERIALIZED VIEW spend SET (retention = '5 days')";
    assert_eq!(done(&db, shorter), "altered materialized view spend");
    machine.advance_clock(DAY * 2);
    db.wait_idle().unwrap();
    assert!(first < rows(&db, "SELECT min(hour) FROM spend"));
    let longer = error(&db, "ALTER TABLE events SET (retention = '10 days')");
    assert!(longer.contains("\"spend\": retention: the groups"), "{longer}");
    for (refused, why) in [
        ("ALTER MATERIALIZED VIEW spend SET (retention = '1 day')", "would end before"),
        ("ALTER MATERIALIZED VIEW spend SET (retain = '1 day')", "expected retention"),
        ("ALTER MATERIALIZED VIEW paid SET (retention = '9 days')", "no key says when"),
        ("ALTER MATERIALIZED VIEW none SET (retention = '9 days')", "no materialized view"),
        (
            "CREATE MATERIALIZED VIEW a WITH (retention = '9 days') AS SELECT tier, count(*) FROM \
          events GROUP BY 1",
            "no key says when a group was: expected \"t\"",
        ),
        (
            "CREATE MATERIALIZED VIEW a WITH (retention = '9 days') AS SELECT tier, count(*) FROM \
          ever GROUP BY 1",
            "table \"ever\" is none: expected a stream",
        ),
        (
            "CREATE MATERIALIZED VIEW a WITH (retention = '2 days') AS SELECT t, count(*) FROM \
          events GROUP BY 1",
            "would end before",
        ),
        ("CREATE VIEW a WITH (retention = '9 days') AS SELECT tier FROM events", "materialized"),
    ] {
        let e = error(&db, refused);
        assert!(e.contains(why), "{refused}: {e}");
    }
    assert!(!db.views().iter().any(|view| view.name == "a"));
}

#[test]
fn a_copy_has_the_history() {
    let machine = machine(16);
    let db = open(&machine);
    with_events(&db);
    with_views(&db);
    days(&db, &machine, 0..5);
    let before = rows(&db, "SELECT * FROM spend");
    db.save("copy").unwrap();
    let options = Options::new().environment(machine.environment()).background(false);
    let copy = options.open("copy").unwrap();
    assert_eq!(rows(&copy, "SELECT * FROM spend"), before);
    expect_right(&copy, "in a copy");
    machine.advance_clock(DAY);
    copy.wait_idle().unwrap();
    expect_right(&copy, "later in a copy");
    copy.check().unwrap();
}

/// What is read of a history does not depend on how its filter is written, nor on who reads it.
#[test]
fn filters_of_a_view_are_its_own() {
    let machine = machine(17);
    let db = open(&machine);
    with_events(&db);
    let filters = [
        ("zero", "ms * 0.5 > 0.0"),
        ("modulo", "n % 3 = 0"),
        ("divided", "n / 2 > 10 AND tier = 'tier 1'"),
        ("both", "tier IS NOT NULL AND CAST(ms AS f64) >= 0.0"),
    ];
    for (name, filter) in filters {
        let text = format!(
            "CREATE MATERIALIZED VIEW {name} WITH (retention = 'forever') AS SELECT tier, \
             count(*) AS n, sum(cost) AS cost FROM events WHERE {filter} GROUP BY tier"
        );
        db.sql(&text, ()).unwrap();
    }
    let mut failing = esker_sql::Session::new(&db);
    failing.sql("SET division_by_zero = 'error'", ()).unwrap();
    let text = "CREATE MATERIALIZED VIEW failing WITH (retention = 'forever') AS SELECT tier, \
                count(*) AS n, sum(cost) AS cost FROM events WHERE 12 / (ms + 1) > 3 GROUP BY tier";
    failing.sql(text, ()).unwrap();
    for day in 0..6 {
        add(&db, day * 1_000, day * 1_000 + 90);
        machine.advance_clock(DAY);
        db.wait_idle().unwrap();
    }
    let ever = "SELECT tier, count(*), sum(cost) FROM ever WHERE 12 / (ms + 1) > 3 GROUP BY tier";
    assert_eq!(rows(&db, "SELECT * FROM failing"), rows(&db, ever));
    let by_maker = failing.sql("SELECT * FROM failing", ()).unwrap().answer().unwrap();
    assert_eq!(sorted(by_maker.to_rows()), rows(&db, ever));
    let mut other = esker_sql::Session::new(&db);
    other.sql("SET nulls_order = 'greatest'", ()).unwrap();
    other.sql("SET division_by_zero = 'error'", ()).unwrap();
    for (name, filter) in filters {
        let ever =
            format!("SELECT tier, count(*), sum(cost) FROM ever WHERE {filter} GROUP BY tier");
        let (found, expected) = (rows(&db, &format!("SELECT * FROM {name}")), rows(&db, &ever));
        assert_eq!(found, expected, "{name}");
        let by_other = other.sql(&format!("SELECT * FROM {name} WHERE tier = 'tier 1'"), ());
        let by_other = by_other.unwrap().answer().unwrap().to_rows();
        let mut wanted = expected.clone();
        wanted.retain(|row| row[0] == "tier 1".into());
        assert_eq!(by_other, wanted, "{name}");
    }
}

/// Groups with long texts, and more of them than one commit takes.
#[test]
fn long_groups_end_a_few_at_a_time() {
    let machine = machine(18);
    let db = open(&machine);
    let stream = "stream = 't', retention = '3 days', window = '1 day'";
    let text = format!("CREATE TABLE events (t timestamp NOT NULL, body text) WITH ({stream})");
    db.sql(&text, ()).unwrap();
    let view = "CREATE MATERIALIZED VIEW bodies WITH (retention = 'forever') AS \
                SELECT t, max(body) AS body, count(*) AS n FROM events GROUP BY t";
    db.sql(view, ()).unwrap();
    for n in 0..80i64 {
        let body = format!("{n}").repeat(if n % 20 == 0 { 90_000 } else { 9_000 });
        let t = Value::Timestamp(db.clock().date_us - n);
        db.sql("INSERT INTO events VALUES ($1, $2)", (t, body)).unwrap();
    }
    db.wait_idle().unwrap();
    let before = rows(&db, "SELECT * FROM bodies");
    machine.advance_clock(DAY * 5);
    db.wait_idle().unwrap();
    assert_eq!(rows(&db, "SELECT count(*) FROM events"), [[Value::Int(0)]]);
    assert!(before == rows(&db, "SELECT * FROM bodies"));
    db.checkpoint().unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    let db = open(&machine);
    assert!(before == rows(&db, "SELECT * FROM bodies"));
    db.check().unwrap();
}

#[test]
fn what_no_history_could_show_is_refused() {
    let machine = machine(19);
    let db = open(&machine);
    let stream = "stream = 't', retention = '7 days'";
    let fields = "t timestamp NOT NULL, wide decimal(20, 2)";
    db.sql(&format!("CREATE TABLE events ({fields}) WITH ({stream})"), ()).unwrap();
    for (kept, keys, shown, why) in [
        ("forever", "date_trunc('day', t)", "sum(wide)", "more than 18 digits"),
        ("30 days", "date_trunc('month', t)", "count(*)", "would end before"),
        ("7 days", "date_trunc('minute', t)", "count(*)", "would end before"),
    ] {
        let text = format!(
            "CREATE MATERIALIZED VIEW v WITH (retention = '{kept}') AS SELECT {keys} AS k, {shown} \
             FROM events GROUP BY 1"
        );
        let e = error(&db, &text);
        assert!(e.contains(why), "{text}: {e}");
    }
    // The shortest step decides when groups end.
    let text = "CREATE MATERIALIZED VIEW v WITH (retention = '90 days') AS SELECT \
                date_trunc('year', t) AS y, date_trunc('day', t) AS d, count(*) FROM events \
                GROUP BY 1, 2";
    db.sql(text, ()).unwrap();
    let history = db.table("v$history").unwrap().schema().clone();
    let time = history.stream().unwrap().time;
    assert_eq!(history.field_of(time).unwrap().name, "d");
}
