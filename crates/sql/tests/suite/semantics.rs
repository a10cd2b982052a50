//! What a session, a statement or a database chooses: where NULLs go, what a division by zero is.

use esker::{
    ChangeOptions, Database, DivisionByZero, IndexUse, NullsOrder, Options, PageOptions, Query,
    QueryOptions, Semantics, Value,
};
use esker_query::model::{Expr, Operator, OrderBy, RowCount};
use esker_sql::{Session, Sql, parse, parse_statement};
use esker_vfs::sim::{Options as SimOptions, Simulation};

/// Small segments and an index on a field with NULLs, each value several times.
fn numbers(options: Options, machine: &Simulation) -> Database {
    let options = options.group_limit(64, 1 << 20).small_group_limit(0).segment_limit(64);
    let options = options.background(false).environment(machine.environment());
    let db = options.open("db").unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, a i64, b text, INDEX by_a (a))", ()).unwrap();
    db.sql("CREATE INDEX by_b ON t (b DESC, a)", ()).unwrap();
    let insert = db.prepare("INSERT INTO t VALUES (?, ?, ?)").unwrap();
    for id in 0..512i64 {
        let a = (id % 5 != 0).then_some((id * 37) % 91);
        let b = (id % 7 != 0).then(|| format!("b{}", (id * 11) % 13));
        insert.execute((id, a, b)).unwrap();
    }
    db.wait_idle().unwrap();
    db
}

fn machine() -> Simulation {
    Simulation::new(7, SimOptions::default())
}

const EVERY_ORDER: [NullsOrder; 4] =
    [NullsOrder::Smallest, NullsOrder::Greatest, NullsOrder::First, NullsOrder::Last];

fn chosen(nulls_order: NullsOrder) -> Semantics {
    Semantics { nulls_order: Some(nulls_order), ..Semantics::default() }
}

fn asked(db: &Database, text: &str, nulls_order: NullsOrder) -> Vec<Vec<Value>> {
    let options = QueryOptions { semantics: chosen(nulls_order), ..QueryOptions::default() };
    db.query_with(&parse(text).unwrap(), &options).unwrap().to_rows()
}

#[test]
fn an_index_gives_each_order_of_nulls() {
    let (one, other) = (machine(), machine());
    let by_index = numbers(Options::new().index_use(IndexUse::Always), &one);
    let by_rows = numbers(Options::new().index_use(IndexUse::Never), &other);
    let directions = [false, true].into_iter().flat_map(|d| ["a", "b"].map(|key| (d, key)));
    let directions: Vec<_> = directions.collect();
    for nulls_order in EVERY_ORDER {
        for (descending, key) in directions.iter().copied() {
            let direction = if descending { " DESC" } else { "" };
            let first = match nulls_order {
                NullsOrder::Smallest => !descending,
                NullsOrder::Greatest => descending,
                NullsOrder::First => true,
                NullsOrder::Last => false,
            };
            let nulls = if first { "FIRST" } else { "LAST" };
            for (filter, limit) in [("", 7), ("", 120), ("WHERE a > 30 OR a IS NULL", 90)] {
                let order = format!("{key}{direction}");
                let rest = |nulls: &str| {
                    format!(
                        "SELECT a, b, id FROM t {filter} ORDER BY {order}{nulls}, id LIMIT {limit}"
                    )
                };
                let (plain, written) = (rest(""), rest(&format!(" NULLS {nulls}")));
                let wanted = asked(&by_rows, &written, NullsOrder::Smallest);
                assert_eq!(asked(&by_rows, &plain, nulls_order), wanted, "{plain}");
                assert_eq!(asked(&by_index, &plain, nulls_order), wanted, "{plain}");
            }
        }
    }
}

#[test]
fn an_order_of_an_index_is_read_for_each_setting() {
    let machine = machine();
    let db = numbers(Options::new().index_use(IndexUse::Always), &machine);
    for (nulls_order, shown) in [
        ("smallest", "by a"),
        ("greatest", "by a NULLS LAST"),
        ("first", "by a"),
        ("last", "by a NULLS LAST"),
    ] {
        let mut session = Session::new(&db);
        session.sql(&format!("SET nulls_order = '{nulls_order}'"), ()).unwrap();
        let query = parse("SELECT a FROM t ORDER BY a LIMIT 3").unwrap();
        let plan = session.plan_with(&query, &QueryOptions::default()).unwrap().to_string();
        assert!(
            plan.contains("in the order of index by_a") && plan.contains(shown),
            "{nulls_order}: {plan}"
        );
        assert_eq!(plan.contains("NULLS LAST"), shown.contains("NULLS"), "{plan}");
    }
}

fn ids(session: &mut Session, text: &str) -> Vec<i64> {
    session.sql_as::<i64>(text, ()).unwrap()
}

#[test]
fn a_prepared_statement_keeps_what_its_session_chose() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, a i64)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 5), (2, NULL), (3, 4)", ()).unwrap();
    let mut session = Session::new(&db);
    let text = "SELECT id FROM t ORDER BY a";
    let before = session.prepare(text).unwrap();
    session.sql("SET nulls_order = 'postgres'", ()).unwrap();
    let after = session.prepare(text).unwrap();
    assert_eq!(ids(&mut session, text), [3, 1, 2]);
    session.sql("RESET nulls_order", ()).unwrap();
    assert_eq!(ids(&mut session, text), [2, 3, 1]);
    let run = |session: &mut Session, prepared: &esker_sql::Prepared| {
        session.run_prepared(prepared, ()).unwrap().records::<i64>().unwrap()
    };
    assert_eq!(run(&mut session, &before), [2, 3, 1]);
    assert_eq!(run(&mut session, &after), [3, 1, 2]);
    session.sql("BEGIN", ()).unwrap();
    assert_eq!(run(&mut session, &after), [3, 1, 2]);
    let rows = session.prepared_rows(&after, ()).unwrap().records::<i64>().unwrap();
    assert_eq!(rows.collect::<Result<Vec<_>, _>>().unwrap(), [3, 1, 2]);
    // A prepared SET chooses, too, and SHOW answers rows.
    let set = session.prepare("SET nulls_order = last").unwrap();
    session.run_prepared(&set, ()).unwrap();
    let shown: Vec<String> = session.sql_as("SHOW nulls_order", ()).unwrap();
    assert_eq!(shown, ["last"]);
    let rows = session.sql_rows("SHOW ALL", ()).unwrap().records::<(String, String)>().unwrap();
    assert_eq!(rows.count(), 3);
    assert_eq!(session.semantics(), chosen(NullsOrder::Last));
}

#[test]
fn a_page_goes_on_under_the_setting_it_began_with() {
    let machine = machine();
    let db = numbers(Options::new(), &machine);
    let query = Query {
        limit: Some(RowCount::Number(40)),
        ..parse("SELECT id, a FROM t ORDER BY a DESC").unwrap()
    };
    for nulls_order in EVERY_ORDER {
        let wanted = asked(&db, "SELECT id, a FROM t ORDER BY a DESC, id", nulls_order);
        let semantics = chosen(nulls_order);
        let mut found = Vec::new();
        let mut options = PageOptions { semantics, ..PageOptions::default() };
        loop {
            let page = db.page(&query, &options).unwrap();
            found.extend(page.result.to_rows());
            let Some(next) = page.next else { break };
            options.cursor = Some(next);
        }
        assert_eq!(found, wanted, "{nulls_order:?}");
    }
    let first = db.page(&query, &PageOptions::default()).unwrap();
    let semantics = chosen(NullsOrder::Greatest);
    let other = PageOptions { cursor: first.next, semantics, ..PageOptions::default() };
    let error = db.page(&query, &other).unwrap_err().to_string();
    assert!(error.contains("another query"), "{error}");
}

#[test]
fn a_database_has_settings_of_its_own() {
    let db = Options::new().semantics(Semantics::postgres()).memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, a i64, CHECK (10 / a > 0))", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 5), (2, NULL), (3, 4)", ()).unwrap();
    let ids: Vec<i64> = db.sql_as("SELECT id FROM t ORDER BY a", ()).unwrap();
    assert_eq!(ids, [3, 1, 2]);
    let error = db.sql("INSERT INTO t VALUES (4, 0)", ()).unwrap_err().to_string();
    assert!(
        error.contains("check \"check_1\": division by zero: 10 / 0")
            || error.contains("division by zero: 10 / 0"),
        "{error}"
    );
    // A statement goes before its session, and the session before the database.
    let mut session = Session::new(&db);
    session.sql("SET nulls_order = smallest", ()).unwrap();
    assert_eq!(self::ids(&mut session, "SELECT id FROM t ORDER BY a"), [2, 3, 1]);
    let options = ChangeOptions { semantics: chosen(NullsOrder::Last), ..ChangeOptions::default() };
    let statement = parse_statement("SELECT id FROM t ORDER BY a DESC").unwrap();
    let found = session.run(&statement, &options).unwrap().records::<i64>().unwrap();
    assert_eq!(found, [1, 3, 2]);
    session.sql("RESET ALL", ()).unwrap();
    let shown: Vec<(String, String)> = session.sql_as("SHOW ALL", ()).unwrap();
    assert_eq!(shown[0].1, "greatest");
    assert!(session.sql("SELECT 1 / 0", ()).is_err());
    let shown: Vec<(String, String)> = db.sql_as("SHOW ALL", ()).unwrap();
    assert_eq!(shown[0].1, "greatest");
    for text in ["SET nulls_order = last", "RESET ALL"] {
        let error = db.sql(text, ()).unwrap_err().to_string();
        assert!(error.contains("about a session"), "{error}");
        let transaction = db.begin().unwrap();
        assert!(transaction.sql(text, ()).is_err());
    }
}

#[test]
fn a_query_as_json_chooses() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, a i64)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 5), (2, NULL), (3, 4)", ()).unwrap();
    let ids = |more: &str| {
        let text = format!(r#"{{"table": "t", "select": ["id"], "order": ["a"]{more}}}"#);
        let rows = db.query_json(&text).map_err(|e| e.to_string())?.to_rows();
        Ok::<_, String>(rows.into_iter().flatten().collect::<Vec<_>>())
    };
    assert_eq!(ids("").unwrap(), [2, 3, 1].map(Value::Int));
    assert_eq!(ids(r#", "nulls_order": "greatest""#).unwrap(), [3, 1, 2].map(Value::Int));
    let error = ids(r#", "nulls_order": "lost""#).unwrap_err();
    assert!(error.contains("nulls_order: unknown value \"lost\""), "{error}");
    let error = ids(r#", "division_by_zero": 0"#).unwrap_err();
    assert!(error.contains("division_by_zero"), "{error}");
}

#[test]
fn division_by_zero_is_an_error_of_rows_that_pass_alone() {
    let division_by_zero = Some(DivisionByZero::Error);
    let semantics = Semantics { division_by_zero, ..Semantics::default() };
    for index_use in [IndexUse::Always, IndexUse::Never] {
        let machine = machine();
        let db = numbers(Options::new().index_use(index_use), &machine);
        let mut session = Session::new(&db).with_semantics(semantics);
        // Rows that another condition leaves out are not divided, wherever it is written.
        for text in [
            "SELECT count(*) FROM t WHERE 10 / (a - 37) >= 0 AND a <> 37",
            "SELECT count(*) FROM t WHERE a <> 37 AND 10 / (a - 37) >= 0",
            "SELECT count(*) FROM t WHERE 10.0 / (a - 37) >= 0 AND a <> 37",
            "SELECT count(*) FROM t JOIN (SELECT 37 AS z) AS x ON 10 / (a - z) >= 0 AND a <> z",
            "SELECT count(*) FROM (SELECT a FROM t WHERE a <> 37) AS x WHERE 10 / (a - 37) >= 0",
        ] {
            assert!(ids(&mut session, text)[0] > 0, "{text}");
        }
        for text in [
            "SELECT count(*) FROM t WHERE 10 / (a - 37) >= 0",
            "SELECT count(*) FROM t WHERE CAST(10 AS f64) / (a - 37) >= 0",
            "SELECT max(10 % (a - 37)) FROM t",
            "SELECT id FROM t ORDER BY 10 / (a - 37)",
        ] {
            let error = session.sql(text, ()).unwrap_err().to_string();
            assert!(error.contains("division by zero: 10 "), "{text}: {error}");
        }
        // A limit that is met before ends the query.
        let first = ids(&mut session, "SELECT id FROM t WHERE 10 / (id - 511) <= 0 LIMIT 2");
        assert_eq!(first, [0, 1]);
    }
}

#[test]
fn a_model_may_say_what_it_means() {
    let db = Options::new().memory().unwrap();
    let by_zero = |operator| {
        let mut query = Query::one_row();
        query.select(Expr::literal(1i64).binary(operator, Expr::literal(0i64)));
        db.query(&query)
    };
    assert_eq!(by_zero(Operator::Divide).unwrap().to_rows(), [[Value::Null]]);
    let error = by_zero(Operator::DivideOrFail).unwrap_err().to_string();
    assert_eq!(error, "SELECT: 1 / 0: division by zero: 1 / 0");
    assert!(by_zero(Operator::RemainderOrFail).is_err());
    let key = OrderBy { expr: Expr::field("a"), descending: false, nulls_first: None };
    assert_eq!(key.to_string(), "a");
}
