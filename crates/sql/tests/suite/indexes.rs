//! `CREATE INDEX` and `DROP INDEX`, and the places of what is wrong with them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use esker::{ChangeOptions, Database, ErrorKind, Options};
use esker_sql::{Outcome, Sql, parse_statement, run};

use crate::fixture::memory;

fn done(db: &Database, statement: &str) -> String {
    match db.sql(statement, ()) {
        Ok(Outcome::Done(text)) => text,
        other => panic!("{statement}: {other:?}"),
    }
}

fn indexes(db: &Database, table: &str) -> Vec<String> {
    let schema = db.table(table).unwrap().schema();
    let text = |index| format!("{}: {}", index_name(index), schema.index_fields(index).join(", "));
    schema.indexes().iter().map(text).collect()
}

fn index_name(index: &esker::Index) -> &str {
    &index.name
}

#[test]
fn indexes_are_created_and_dropped() {
    let db = memory(&[
        "CREATE TABLE t (a i64, b text, \"C d\" f64, INDEX first (b, a DESC), KEY (a))",
        "CREATE TABLE u (a i64)",
    ]);
    assert_eq!(indexes(&db, "t"), ["first: b, a desc", "by_a: a"]);
    let create = "CREATE INDEX IF NOT EXISTS second ON t (\"C d\" DESC, A ASC)";
    assert_eq!(done(&db, create), "created index second on t");
    assert_eq!(done(&db, create), "index second on t exists already");
    assert_eq!(done(&db, "CREATE INDEX ON u (a)"), "created index by_a on u");
    assert_eq!(indexes(&db, "t")[2], "second: C d desc, a");
    assert_eq!(done(&db, "DROP INDEX second"), "dropped index second on t");
    assert_eq!(done(&db, "DROP INDEX IF EXISTS second"), "no index second");
    assert_eq!(done(&db, "DROP INDEX by_a ON u"), "dropped index by_a on u");
    assert_eq!(done(&db, "DROP INDEX by_a"), "dropped index by_a on t");
    db.sql("ALTER TABLE t ADD INDEX third (b), DROP INDEX first", ()).unwrap();
    assert_eq!(indexes(&db, "t"), ["third: b"]);
    let options = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    for (statement, would) in [
        ("CREATE INDEX x ON t (a)", "would create index x on t"),
        ("DROP INDEX third", "would drop index third on t"),
    ] {
        let outcome = run(&db, &parse_statement(statement).unwrap(), &options).unwrap();
        assert_eq!(outcome, Outcome::Done(would.to_owned()));
    }
    assert_eq!(indexes(&db, "t"), ["third: b"]);
}

#[test]
fn what_is_wrong_is_underlined() {
    let db = memory(&[
        "CREATE TABLE t (a i64, b text, doc json, INDEX both (a), INDEX one (b))",
        "CREATE TABLE u (a i64, INDEX both (a))",
    ]);
    use ErrorKind as K;
    for (statement, kind, message, underlined) in [
        ("CREATE INDEX i ON no (a)", K::NotFound, "no table \"no\"", "no"),
        ("CREATE INDEX i ON t (bb)", K::InvalidInput, "unknown field \"bb\"; did you mean", "bb"),
        ("CREATE INDEX one ON t (a)", K::AlreadyExists, "index \"one\" exists already", "one"),
        ("CREATE INDEX i ON t (a, doc)", K::InvalidInput, "field \"doc\" of index \"i\" is", "doc"),
        ("CREATE INDEX i ON t (a, a)", K::InvalidInput, "field \"a\" is named twice", "a"),
        ("CREATE TABLE v (a i64, INDEX i (b))", K::InvalidInput, "unknown field \"b\"", "b"),
        ("DROP INDEX ones", K::NotFound, "unknown index \"ones\"; did you mean \"one\"", "ones"),
        ("DROP INDEX one ON u", K::NotFound, "unknown index \"one\"; indexes: both", "one"),
        ("DROP INDEX both", K::InvalidInput, "index \"both\" is on several tables, t, u", "both"),
    ] {
        let e = db.sql(statement, ()).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().starts_with(message), "{statement}: {e}");
        let place = esker_sql::place(statement, &e.to_string()).unwrap().to_string();
        assert_eq!(place.matches('^').count(), underlined.len(), "{place}");
    }
    for (statement, message) in [
        ("CREATE INDEX i ON t (a + b)", "index \"i\": "),
        ("CREATE INDEX i ON t (a + ?)", "parameter"),
        ("CREATE INDEX i ON t USING btree (a)", "USING BTREE: expected ordered, trigram or bitmap"),
        ("CREATE INDEX i ON t USING trigram (a)", "expected one field of text, found \"a\", which"),
        ("CREATE INDEX i ON t USING trigram (b DESC)", "found \"b\" descending"),
        ("CREATE INDEX i ON t USING trigram (b, a)", "found 2 fields"),
        ("CREATE UNIQUE INDEX i ON t USING trigram (b)", "found a unique one"),
        ("CREATE INDEX i ON t (a) WHERE b", "index \"i\": WHERE of an index"),
        ("CREATE INDEX i ON t (a) WHERE u.a = 1", "unknown"),
        ("CREATE INDEX i ON t (a NULLS FIRST)", "not all of"),
        ("CREATE INDEX CONCURRENTLY i ON t (a)", "not all of"),
        ("DROP INDEX one CASCADE", "not all of"),
        ("DROP INDEX one, both", "dropping several indexes in one statement"),
        ("CREATE INDEX i ON t ()", "Expected"),
    ] {
        let e = db.sql(statement, ()).unwrap_err();
        assert_eq!(e.kind(), K::InvalidInput);
        assert!(e.to_string().contains(message), "{statement}: {e}");
    }
    assert_eq!(indexes(&db, "t"), ["both: a", "one: b"]);
}

/// A prepared statement is as fast, and right, after an index was created.
#[test]
fn prepared_statements_go_on() {
    let db = memory(&["CREATE TABLE t (a i64 PRIMARY KEY, b text)"]);
    let insert = db.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
    let get = db.prepare("SELECT b FROM t WHERE a = ?").unwrap();
    let update = db.prepare("UPDATE t SET b = ? WHERE b = ?").unwrap();
    for i in 0..6i64 {
        db.sql(&format!("CREATE INDEX i{i} ON t (b, a)"), ()).unwrap();
        assert_eq!(insert.execute(&[i.into(), "x".into()]).unwrap(), 1);
        assert_eq!(update.execute(&[format!("v{i}").into(), "x".into()]).unwrap(), 1);
        assert_eq!(get.first(&[i.into()]).unwrap().unwrap(), [format!("v{i}").into()]);
        db.sql(&format!("DROP INDEX i{i}"), ()).unwrap();
    }
    assert_eq!(db.table("t").unwrap().count().unwrap(), 6);
}

/// Everywhere SQL has the word.
#[test]
fn unique_indexes_are_declared_and_kept() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, mail text UNIQUE, a i64, b i64, c i64, \
         UNIQUE (a, b), CONSTRAINT one_c UNIQUE (c))",
        "CREATE TABLE u (a i64, b i64)",
        "CREATE UNIQUE INDEX IF NOT EXISTS only ON u (a DESC)",
        "ALTER TABLE u ADD COLUMN c i64 UNIQUE, ADD CONSTRAINT both UNIQUE (a, b)",
        "INSERT INTO t VALUES (1, 'x', 1, 1, NULL), (2, NULL, 1, NULL, NULL)",
        "INSERT INTO t VALUES (3, NULL, 1, NULL, 7)",
        "INSERT INTO u VALUES (1, 1, NULL), (2, 1, NULL)",
    ]);
    assert_eq!(indexes(&db, "t"), ["by_mail: mail", "by_a_b: a, b", "one_c: c"]);
    assert_eq!(indexes(&db, "u"), ["only: a desc", "by_c: c", "both: a, b"]);
    for table in ["t", "u"] {
        assert!(db.table(table).unwrap().schema().indexes().iter().all(|index| index.unique));
    }
    for (statement, message) in [
        ("INSERT INTO t (id, mail) VALUES (4, 'x')", "unique index \"by_mail\": mail = x exists"),
        (
            "INSERT INTO t (id, a, b) VALUES (4, 1, 1)",
            "unique index \"by_a_b\": a = 1, b = 1 exists",
        ),
        ("UPDATE t SET c = 7 WHERE id = 1", "unique index \"one_c\": c = 7 exists already"),
        ("UPDATE t SET c = 8", "unique index \"one_c\": c = 8 comes twice in one commit"),
        ("INSERT INTO u VALUES (1, 2, 3)", "unique index \"only\": a = 1 exists already"),
        ("REPLACE INTO t (id, mail) VALUES (3, 'x')", "unique index \"by_mail\": mail = x exists"),
    ] {
        let e = db.sql(statement, ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
        assert!(e.to_string().starts_with(message), "{statement}: {e}");
    }
    for (statement, rows) in [
        ("INSERT INTO t (id, mail, a) VALUES (5, 'x', 9) ON CONFLICT (mail) DO NOTHING", 0),
        ("INSERT OR IGNORE INTO t (id, mail) VALUES (5, 'x')", 0),
        (
            "INSERT INTO t (id, mail, a) VALUES (5, 'x', 9) \
          ON CONFLICT (mail) DO UPDATE SET a = excluded.a",
            1,
        ),
        ("DELETE FROM t WHERE mail = 'x' AND a = 9 AND id = 1", 1),
        ("INSERT INTO t (id, mail) VALUES (5, 'x')", 1),
    ] {
        assert_eq!(db.sql(statement, ()).unwrap().rows_changed(), rows, "{statement}");
    }
    let e = db.sql("CREATE UNIQUE INDEX no ON u (b)", ()).unwrap_err();
    let expected = "unique index \"no\": b = 1 is in two rows, row id 1 and row id 2";
    assert_eq!((e.kind(), e.to_string().as_str()), (ErrorKind::InvalidInput, expected));
    let e = db.sql("INSERT INTO u VALUES (1, 1, 1) ON CONFLICT (b) DO NOTHING", ()).unwrap_err();
    assert!(e.to_string().contains("expected unique index \"only\", (a), or"), "{e}");
    let options = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    let statement = parse_statement("INSERT INTO u VALUES (1, 2, 3)").unwrap();
    let e = run(&db, &statement, &options).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
}

/// Answers with parts of texts are the same with a trigram index, and few rows are read.
#[test]
fn trigram_indexes_find_parts_of_texts() {
    let dir = std::env::temp_dir().join(format!("esker-trigram-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Options::new().open(&dir).unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, name text)", ()).unwrap();
    let mut load = db.table("t").unwrap().load().unwrap();
    for i in 0..100_000i64 {
        let name = match i % 1_000 {
            7 => format!("Ünder the Bridge {i}"),
            8 => "ab".to_owned(),
            _ => format!("Row number {i}, nothing to see"),
        };
        let name = if i == 50 { esker::Value::Null } else { name.into() };
        load.push_row(&[i.into(), name]).unwrap();
    }
    load.finish().unwrap();
    let conditions = [
        "name LIKE '%the Bridge%'",
        "name ILIKE '%THE bridge 5%'",
        "contains(name, 'der t')",
        "starts_with(name, 'Ünder')",
        "name LIKE '%Bridge 9_07'",
        "name NOT LIKE '%number%'",
        "name LIKE '%no such part%'",
        "name LIKE '%ab%'",
        "regexp_like(name, 'Bridge [0-9]*7007$')",
        "name ILIKE '%üNDER%' AND id > 50000",
        "name LIKE '%Bridge 1%' OR name LIKE '%Bridge 2%'",
    ];
    let count = |condition: &str| {
        let text = format!("SELECT count(*), sum(id) FROM t WHERE {condition}");
        match db.sql(&text, ()).unwrap_or_else(|e| panic!("{condition}: {e}")) {
            Outcome::Rows(rows) => rows.to_rows(),
            other => panic!("{other:?}"),
        }
    };
    let plan =
        |condition: &str| match db.sql(&format!("EXPLAIN SELECT * FROM t WHERE {condition}"), ()) {
            Ok(Outcome::Plan(plan)) => plan,
            other => panic!("{other:?}"),
        };
    let before: Vec<_> = conditions.iter().map(|condition| count(condition)).collect();
    assert!(!plan(conditions[0]).contains("by_gram"));
    db.sql("CREATE INDEX by_gram ON t USING trigram (name)", ()).unwrap();
    let after: Vec<_> = conditions.iter().map(|condition| count(condition)).collect();
    assert_eq!(after, before);
    for (i, used) in [true, true, true, true, true, false, false, false, true, true, true]
        .into_iter()
        .enumerate()
    {
        let plan = plan(conditions[i]);
        assert_eq!(plan.contains("by_gram"), used, "{}: {plan}", conditions[i]);
    }
    db.sql("UPDATE t SET name = 'a new bridge' WHERE id % 10000 = 3", ()).unwrap();
    db.sql("DELETE FROM t WHERE id % 10000 = 7", ()).unwrap();
    assert_eq!(count("name ILIKE '%bridge%'")[0][0], 100u64.into());
    db.wait_idle().unwrap();
    assert_eq!(count("name ILIKE '%bridge%'")[0][0], 100u64.into());
    assert_eq!(db.check().unwrap().problems, []);
    db.close().unwrap();
    let db = Options::new().open(&dir).unwrap();
    assert_eq!(db.info().tables[0].indexes[0].built, db.info().tables[0].indexes[0].of);
    assert_eq!(db.check().unwrap().problems, []);
    drop(db);
    let _ = std::fs::remove_dir_all(&dir);
}

/// A table with fields of few values, and one of many.
fn few_values(dir: &std::path::Path) -> Database {
    let db = Options::new().open(dir).unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, kind text, level i16, many i64)", ()).unwrap();
    let mut load = db.table("t").unwrap().load().unwrap();
    let kinds = ["", "alpha", "beta", "Gamma", "délta"];
    for (i, at) in (0..50_000i64).zip((0..7usize).cycle()) {
        let kind = kinds.get(at).map_or(esker::Value::Null, |kind| (*kind).into());
        let level = if i % 11 == 0 { esker::Value::Null } else { (i % 90).into() };
        load.push_row(&[i.into(), kind, level, i.into()]).unwrap();
    }
    load.finish().unwrap();
    db
}

/// Answers by a field of few values are the same with a bitmap index, which counts without reading.
#[test]
fn bitmap_indexes_answer_any_operator() {
    let dir = std::env::temp_dir().join(format!("esker-bitmap-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = few_values(&dir);
    let conditions = [
        "kind = 'alpha'",
        "kind <> 'alpha'",
        "kind IN ('alpha', 'beta', 'none')",
        "kind NOT IN ('alpha', 'beta')",
        "kind IS NULL",
        "kind IS NOT NULL",
        "kind LIKE '%LTA' OR kind ILIKE '%LTA'",
        "NOT contains(kind, 'a')",
        "length(kind) = 5",
        "upper(kind) = 'GAMMA'",
        "level BETWEEN 3 AND 5",
        "NOT level < 80",
        "level = 3 AND kind = 'beta'",
        "level = 3 OR kind = 'beta'",
        "(level IS NULL OR level > 70) AND kind >= 'b'",
        "many < 1000 AND kind = 'Gamma'",
        "kind = 'none'",
    ];
    let ask = |condition: &str| {
        let texts = [("count(*)", ""), ("count(*), sum(id)", ""), ("id", "ORDER BY id LIMIT 99")]
            .map(|(what, order)| format!("SELECT {what} FROM t WHERE {condition} {order}"));
        texts.map(|text| match db.sql(&text, ()).unwrap_or_else(|e| panic!("{text}: {e}")) {
            Outcome::Rows(rows) => rows.to_rows(),
            other => panic!("{other:?}"),
        })
    };
    let plan = |condition: &str| {
        let text = format!("EXPLAIN SELECT count(*) FROM t WHERE {condition}");
        match db.sql(&text, ()) {
            Ok(Outcome::Plan(plan)) => plan,
            other => panic!("{other:?}"),
        }
    };
    let before = conditions.map(ask);
    for field in ["kind", "level", "many"] {
        db.sql(&format!("CREATE INDEX of_{field} ON t USING bitmap ({field})"), ()).unwrap();
    }
    assert_eq!(conditions.map(ask), before);
    for condition in conditions.iter().take(12) {
        let plan = plan(condition);
        assert!(plan.contains("counted by index of_"), "{condition}: {plan}");
    }
    assert!(plan(conditions[12]).contains("of_level, of_kind"), "{}", plan(conditions[12]));
    assert!(!plan("many = 3").contains("of_many"));
    let indexes = &db.info().tables[0].indexes;
    let too_many = indexes.iter().map(|index| (index.built, index.too_many_values));
    assert_eq!(too_many.collect::<Vec<_>>(), [(1, 0), (1, 0), (1, 1)]);
    db.sql("UPDATE t SET kind = 'new' WHERE id % 10000 = 3", ()).unwrap();
    db.sql("DELETE FROM t WHERE id % 3 = 1", ()).unwrap();
    let changed = conditions.map(ask);
    assert_ne!(changed, before);
    db.wait_idle().unwrap();
    assert_eq!(conditions.map(ask), changed);
    assert_eq!(db.check().unwrap().problems, []);
    db.close().unwrap();
    let db = Options::new().open(&dir).unwrap();
    assert!(db.info().tables[0].indexes.iter().all(|index| index.built == index.of));
    drop(db);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn what_has_no_bitmaps_is_refused() {
    let db = memory(&["CREATE TABLE t (kind text, level i16, doc json)"]);
    let refused = [
        ("CREATE INDEX x ON t USING bitmap (kind, level)", "expected one field that is not json"),
        ("CREATE INDEX x ON t USING bitmap (kind DESC)", "\"kind\" descending"),
        ("CREATE INDEX x ON t USING bitmap (doc)", "\"doc\", which is json"),
        ("CREATE UNIQUE INDEX x ON t USING bitmap (kind)", "a unique one"),
        ("CREATE INDEX x ON t USING tree (kind)", "expected ordered, trigram or bitmap"),
    ];
    for (statement, part) in refused {
        let message = db.sql(statement, ()).unwrap_err().to_string();
        assert!(message.contains(part), "{statement}: {message}");
    }
}

/// A table of documents.
fn documents(dir: &std::path::Path) -> Database {
    let db = Options::new().open(dir).unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, doc json)", ()).unwrap();
    let mut load = db.table("t").unwrap().load().unwrap();
    let long = "a long name of a place, cut in an index ".repeat(3);
    for i in 0..66_000i64 {
        let city = match i % 100 {
            0 => "null".to_owned(),
            1 => format!("\"{long}{}\"", i % 3_000),
            2 => (i % 7).to_string(),
            3 => "{}".to_owned(),
            _ => format!("\"city {}\"", i % 3_000),
        };
        let text = match i % 50 {
            49 => "{\"customer\": 1}".to_owned(),
            _ => {
                format!("{{\"customer\": {{\"city\": {city}, \"n\": {i}}}, \"k\": \"{}\"}}", i % 5)
            }
        };
        let document = esker::json::parse(&text).unwrap();
        let document = if i == 7 { esker::Value::Null } else { esker::Value::Json(document) };
        load.push_row(&[i.into(), document]).unwrap();
    }
    load.finish().unwrap();
    db
}

/// Answers by parts of documents are the same with an index on the part, and few rows are read.
#[test]
fn indexes_follow_paths_into_documents() {
    let dir = std::env::temp_dir().join(format!("esker-path-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = documents(&dir);
    let long = "a long name of a place, cut in an index ".repeat(3);
    let conditions = [
        "doc -> 'customer' ->> 'city' = 'city 117'".to_owned(),
        "doc.customer.city IN ('city 117', 'city 2004', '3', 'none')".to_owned(),
        "doc.customer.city > 'city 2990' AND doc.customer.city < 'city 31'".to_owned(),
        "json_get_text(doc, 'customer', 'city') LIKE 'city 12%'".to_owned(),
        format!("doc.customer.city = '{long}1201'"),
        format!("doc.customer.city > '{long}12' AND doc.customer.city <= '{long}1301'"),
        "doc.customer.city = 'city 117' AND doc ->> 'k' = '2'".to_owned(),
        "doc.customer.city = 'city 117' OR doc.customer.city = '3'".to_owned(),
        "doc.customer.city IS NULL AND id < 5000".to_owned(),
        "doc IS NULL".to_owned(),
        "doc.customer.n = 17".to_owned(),
        "doc.customer = '1'".to_owned(),
        "NOT doc.customer.city < 'city 9'".to_owned(),
    ];
    let rows = |text: &str| match db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")) {
        Outcome::Rows(rows) => rows.to_rows(),
        other => panic!("{other:?}"),
    };
    let ask = |condition: &String| {
        let order = "ORDER BY doc.customer.city DESC, id LIMIT 40";
        [("count(*), sum(id)", ""), ("id", order), ("id", "ORDER BY doc.customer.city, id LIMIT 9")]
            .map(|(what, order)| rows(&format!("SELECT {what} FROM t WHERE {condition} {order}")))
    };
    let plan =
        |what: &str| match db.sql(&format!("EXPLAIN SELECT count(*) FROM t WHERE {what}"), ()) {
            Ok(Outcome::Plan(plan)) => plan,
            other => panic!("{other:?}"),
        };
    let before: Vec<_> = conditions.iter().map(ask).collect();
    db.sql("CREATE INDEX by_city ON t ((doc -> 'customer' ->> 'city'))", ()).unwrap();
    assert_eq!(indexes(&db, "t"), ["by_city: doc.customer.city"]);
    let after: Vec<_> = conditions.iter().map(ask).collect();
    for ((condition, before), after) in conditions.iter().zip(&before).zip(after) {
        assert_eq!(*before, after, "{condition}");
    }
    for condition in conditions.iter().take(6) {
        assert!(plan(condition).contains("counted by index by_city"), "{}", plan(condition));
    }
    assert!(plan(&conditions[6]).contains("index by_city"), "{}", plan(&conditions[6]));
    assert!(!plan("doc ->> 'customer' = 'x'").contains("by_city"));
    let text = "EXPLAIN SELECT id FROM t ORDER BY doc.customer.city DESC NULLS LAST LIMIT 3";
    let Ok(Outcome::Plan(ordered)) = db.sql(text, ()) else { panic!("no plan") };
    assert!(ordered.contains("in the order of index by_city"), "{ordered}");
    db.sql("CREATE INDEX ON t (doc.k DESC, id)", ()).unwrap();
    db.sql("UPDATE t SET doc = '{\"customer\": {\"city\": \"new\"}}' WHERE id % 1000 = 3", ())
        .unwrap();
    db.sql("DELETE FROM t WHERE id % 5 = 1", ()).unwrap();
    db.sql("ALTER TABLE t RENAME COLUMN doc TO d", ()).unwrap();
    db.sql("ALTER TABLE t RENAME COLUMN d TO doc", ()).unwrap();
    let changed: Vec<_> = conditions.iter().map(ask).collect();
    db.wait_idle().unwrap();
    assert_eq!(conditions.iter().map(ask).collect::<Vec<_>>(), changed);
    assert_eq!(rows("SELECT count(*) FROM t WHERE doc.customer.city = 'new'"), [[66u64.into()]]);
    assert_eq!(db.check().unwrap().problems, []);
    db.close().unwrap();
    let db = Options::new().open(&dir).unwrap();
    assert_eq!(indexes(&db, "t"), ["by_city: doc.customer.city", "by_doc_k_id: doc.k desc, id"]);
    assert!(db.info().tables[0].indexes.iter().all(|index| index.built == index.of));
    db.sql("ALTER TABLE t DROP COLUMN doc", ()).unwrap();
    assert_eq!(indexes(&db, "t"), [""; 0]);
    drop(db);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn a_unique_index_may_be_on_a_path() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, doc json)",
        "CREATE UNIQUE INDEX by_mail ON t (doc.user.mail)",
        "INSERT INTO t VALUES (1, '{\"user\": {\"mail\": \"a\"}}'), (2, '{}'), (3, NULL)",
        "INSERT INTO t VALUES (4, '{}')",
    ]);
    let twice = "INSERT INTO t VALUES (5, '{\"user\": {\"mail\": \"a\"}}')";
    let message = db.sql(twice, ()).unwrap_err().to_string();
    assert!(message.contains("\"by_mail\": doc.user.mail = a exists already"), "{message}");
    let schema = db.table("t").unwrap().schema();
    assert_eq!(schema.index_fields(schema.index("by_mail").unwrap()), ["doc.user.mail"]);
}

#[test]
fn what_is_no_path_is_refused() {
    let db = memory(&["CREATE TABLE t (id i64 PRIMARY KEY, doc json, note text)"]);
    for (statement, part) in [
        ("CREATE INDEX x ON t (doc)", "json, which has no order; a path into it has: doc.name"),
        ("CREATE INDEX x ON t (note.a)", "a path leads into json, and field \"note\" is text"),
        ("CREATE INDEX x ON t ((doc -> 'a'))", "expected a value that has an order, found json"),
        ("CREATE INDEX x ON t ((doc ->> 'a.b'))", "a name with a point in JSON"),
        ("CREATE INDEX x ON t USING bitmap (doc.a)", "not on a path into json, doc.a; an ordered"),
        (
            "CREATE INDEX x ON t USING trigram (doc.a)",
            "a trigram index is on a field, not on a path",
        ),
        ("CREATE INDEX x ON t (doc.a, doc.b, doc.a)", "\"doc\" is named twice"),
        ("CREATE INDEX x ON t (nothing.a)", "unknown field \"nothing.a\""),
    ] {
        let message = db.sql(statement, ()).unwrap_err().to_string();
        assert!(message.contains(part), "{statement}: {message}");
    }
}

fn explained(db: &Database, query: &str) -> String {
    match db.sql(&format!("EXPLAIN ANALYZE {query}"), ()) {
        Ok(Outcome::Plan(text)) => text,
        other => panic!("{query}: {other:?}"),
    }
}

/// A plan names an index with what it computes, and only where it has all rows that are asked for.
#[test]
fn computed_indexes_answer_what_they_have() {
    let dir = std::env::temp_dir().join(format!("esker-computed-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Options::new().open(&dir).unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, name text, n i64)", ()).unwrap();
    let mut load = db.table("t").unwrap().load().unwrap();
    for id in 1..=5_000i64 {
        load.push_row(&[id.into(), format!("Name {id}").into(), (id % 50).into()]).unwrap();
    }
    load.finish().unwrap();
    for statement in [
        "CREATE INDEX by_name ON t (lower(name))",
        "CREATE INDEX by_sum ON t ((id + n))",
        "CREATE INDEX few ON t (id) WHERE n > 45",
        "CREATE INDEX by_length ON t (length(name)) WHERE n = 7",
    ] {
        db.sql(statement, ()).unwrap();
    }
    db.wait_idle().unwrap();
    let by_name = "by_name (lower(name))";
    let few = "few (id) where n > 45";
    for (query, index) in [
        ("SELECT id FROM t WHERE lower(name) = 'name 77'", Some(by_name)),
        ("SELECT id FROM t WHERE lower(name) IN ('name 77', 'x')", Some(by_name)),
        ("SELECT id FROM t WHERE lower(name) LIKE 'name 77%'", Some(by_name)),
        ("SELECT id FROM t ORDER BY lower(name) DESC LIMIT 3", Some(by_name)),
        ("SELECT id FROM t WHERE upper(name) = 'X'", None),
        ("SELECT id FROM t WHERE id + n = 80", Some("by_sum (id + n)")),
        ("SELECT id FROM t ORDER BY id + n LIMIT 3", Some("by_sum (id + n)")),
        ("SELECT id FROM t WHERE id > 4000 AND n > 45", Some(few)),
        ("SELECT id FROM t WHERE id > 4000 AND n = 48", Some(few)),
        ("SELECT id FROM t WHERE id > 4000 AND n IN (47, 49)", Some(few)),
        ("SELECT count(*) FROM t WHERE n > 45", Some(few)),
        ("SELECT id FROM t WHERE n > 45 ORDER BY id DESC LIMIT 5", Some(few)),
        ("SELECT id FROM t WHERE id > 4990 AND n > 44", None),
        ("SELECT id FROM t WHERE id > 4990", None),
        ("SELECT id FROM t WHERE n > 40 ORDER BY id DESC LIMIT 5", None),
        ("SELECT id FROM t WHERE n = 7 AND length(name) = 6", Some("by_length (length(name))")),
        ("SELECT id FROM t WHERE n = 8 AND length(name) = 6", None),
    ] {
        let shown = explained(&db, query);
        let found = ["by_name", "by_sum", "few", "by_length"].iter().any(|n| shown.contains(n));
        assert_eq!(found, index.is_some(), "{query}: {shown}");
        assert!(index.is_none_or(|index| shown.contains(index)), "{query}: {shown}");
    }
    let prepared = db.prepare("SELECT count(*) FROM t WHERE id > ? AND n > ?").unwrap();
    let count = |n: i64| prepared.query(&[0i64.into(), n.into()]).unwrap().to_rows();
    let rows = |count: i64| vec![vec![esker::Value::Int(count)]];
    assert_eq!((count(46), count(45), count(44)), (rows(300), rows(400), rows(500)));
    drop(prepared);
    db.close().unwrap();
    let _ = std::fs::remove_dir_all(&dir);
}
