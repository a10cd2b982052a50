//! Tables about tables: in any query, within transactions, and as the statements that ask them.

use esker::{Alteration, DataType, Database, DefaultValue, Options, Query, Schema, Scope, Value};
use esker_query::json::JsonQuery;
use esker_sql::{Outcome, Session, Sql, statements};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    for text in [
        "CREATE SEQUENCE numbers START 10 INCREMENT 5",
        "CREATE TABLE people (id i64 PRIMARY KEY DEFAULT nextval('numbers'), name text(40) NOT \
        NULL \
         UNIQUE, born date, height decimal(5, 2) CHECK (height > 0), INDEX by_born (born DESC, \
         name))",
        "CREATE TABLE notes (person i64, day date, note text, PRIMARY KEY (person, day))",
        "CREATE INDEX words ON notes USING trigram (note)",
        "INSERT INTO people (name, born, height) VALUES ('Ada', '1815-12-10', 1.65), ('Alan', \
        NULL, \
         NULL)",
    ] {
        db.sql(text, ()).unwrap();
    }
    db
}

fn rows(db: &impl Sql, text: &str) -> Vec<String> {
    let result = db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")).answer();
    let result = result.unwrap_or_else(|e| panic!("{text}: {e}"));
    let line = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    result.to_rows().iter().map(line).collect()
}

fn error(db: &impl Sql, text: &str) -> String {
    match db.sql(text, ()) {
        Err(error) => error.to_string(),
        Ok(outcome) => panic!("{text}: {outcome:?}"),
    }
}

#[test]
fn names_have_schemas() {
    let db = database();
    assert_eq!(rows(&db, "SELECT count(*) FROM main.people"), ["2"]);
    assert_eq!(rows(&db, "SELECT main.people.name FROM MAIN.people WHERE people.id = 10"), ["Ada"]);
    assert_eq!(
        rows(&db, "SELECT p.name FROM main.people p JOIN main.people q ON p.id = q.id ORDER BY 1"),
        ["Ada", "Alan"]
    );
    for text in [
        "CREATE TABLE main.x (id i64 PRIMARY KEY, v i64)",
        "CREATE INDEX by_v ON main.x (v)",
        "ALTER TABLE main.x ADD COLUMN w i64",
        "INSERT INTO main.x VALUES (1, 2, 3)",
        "UPDATE main.x SET v = 3 WHERE main.x.id = 1",
        "DELETE FROM main.x WHERE id = 1",
        "TRUNCATE TABLE main.x",
        "ALTER TABLE main.x RENAME TO main.y",
        "DROP TABLE main.y",
    ] {
        db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
    let refused = [
        ("SELECT * FROM other.t", "no schema \"other\"; schemas: main, temp, information_schema"),
        ("SELECT * FROM pg_catalog.pg_class", "pg_catalog is reserved"),
        ("SELECT * FROM information_schema.colums", "no table information_schema.colums"),
        ("CREATE TABLE information_schema.x (id i64)", "information_schema is only read"),
        ("DELETE FROM information_schema.tables", "is only read"),
        ("UPDATE esker_settings SET setting = 'x'", "is only read"),
        ("INSERT INTO other.t VALUES (1)", "no schema"),
        ("SELECT * FROM a.b.c", "a name of several parts"),
    ];
    for (text, message) in refused {
        assert!(error(&db, text).contains(message), "{text}: {}", error(&db, text));
    }
    for text in [
        "CREATE TABLE esker_tables (mine i64 PRIMARY KEY)",
        "CREATE VIEW \"Information_Schema.x\" AS SELECT 1 AS a",
        "CREATE TABLE \"pg_catalog.pg_class\" (a i64)",
    ] {
        assert!(error(&db, text).contains("is reserved"), "{text}: {}", error(&db, text));
    }
}

#[test]
fn every_system_table_answers_and_lists_its_columns() {
    let db = database();
    for table in esker::system_tables() {
        let result = db.sql(&format!("SELECT * FROM {table}"), ()).unwrap().answer().unwrap();
        let (schema, name) = table.split_once('.').unwrap_or(("main", table));
        let listed = rows(
            &db,
            &format!(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = \
                '{schema}' \
                 AND table_name = '{name}' ORDER BY ordinal_position"
            ),
        );
        let shown: Vec<&str> = result.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(listed, shown, "{table}");
        assert_eq!(rows(&db, &format!("DESCRIBE {table}")).len(), shown.len(), "{table}");
    }
}

#[test]
fn the_standards_tables_say_what_there_is() {
    let db = database();
    assert_eq!(
        rows(
            &db,
            "SELECT column_name, ordinal_position, is_nullable, data_type, udt_name, \
             character_maximum_length, numeric_precision, numeric_scale, column_default FROM \
             INFORMATION_SCHEMA.COLUMNS WHERE table_name = 'people' ORDER BY 2"
        ),
        [
            "id|1|NO|i64|i64|null|64|0|nextval('numbers')",
            "name|2|NO|text|text(40)|40|null|null|null",
            "born|3|YES|date|date|null|null|null|null",
            "height|4|YES|decimal|decimal(5,2)|null|5|2|null",
        ]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT constraint_name, constraint_type FROM information_schema.table_constraints \
             WHERE table_name = 'people' ORDER BY 2, 1"
        ),
        ["check_height|CHECK", "people_pkey|PRIMARY KEY", "by_name|UNIQUE"]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT c.constraint_name, k.column_name, k.ordinal_position FROM \
             information_schema.table_constraints c JOIN information_schema.key_column_usage k \
             USING (table_name, constraint_name) WHERE c.table_name = 'notes' ORDER BY 3"
        ),
        ["notes_pkey|person|1", "notes_pkey|day|2"]
    );
    assert_eq!(
        rows(&db, "SELECT check_clause FROM information_schema.check_constraints"),
        ["height > 0"]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT start_value, s.increment, next FROM information_schema.sequences s JOIN \
             esker_sequences USING (sequence_name)"
        ),
        ["10|5|20"]
    );
    assert_eq!(
        rows(&db, "SELECT sequence_name, start, increment, next FROM esker_sequences"),
        ["numbers|10|5|20"]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_type <> \
             'SYSTEM VIEW' ORDER BY 1"
        ),
        ["notes|BASE TABLE", "people|BASE TABLE"]
    );
    let kinds = "SELECT routine_type FROM information_schema.routines WHERE routine_name IN \
                 ('lower', 'sum', 'rank', 'generate_series') ORDER BY 1";
    assert_eq!(rows(&db, kinds), ["AGGREGATE", "FUNCTION", "TABLE", "WINDOW"]);
}

#[test]
fn they_are_read_by_any_query() {
    let db = database();
    let text = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM information_schema.columns";
    assert!(matches!(db.sql(text, ()).unwrap(), Outcome::Plan(plan) if plan.contains("rows_read")));
    let text = "WITH t AS (SELECT table_name FROM esker_tables WHERE rows > ?) SELECT (SELECT \
                count(*) FROM esker_columns c WHERE c.table_name = t.table_name) FROM t";
    let prepared = db.prepare(text).unwrap();
    assert_eq!(prepared.query((1,)).unwrap().to_rows(), [[Value::Uint(4)]]);
    let json = r#"{"table": "information_schema.tables", "select": ["table_name"],
        "where": {"field": "table_type", "op": "eq", "value": "BASE TABLE"},
        "order": ["table_name"]}"#;
    let json = JsonQuery::parse(json).unwrap();
    let query = Scope::bind_json(&db, &json).unwrap();
    let found = db.query(&query).unwrap().to_rows();
    assert_eq!(found, [[Value::from("notes")], [Value::from("people")]]);
    assert!(db.query(&Query::table("esker_memory")).unwrap().row_count() > 3);
    // They may be stored.
    db.sql("CREATE TABLE copy (name text PRIMARY KEY)", ()).unwrap();
    db.sql("INSERT INTO copy SELECT table_name FROM esker_tables", ()).unwrap();
    assert_eq!(rows(&db, "SELECT name FROM copy ORDER BY 1"), ["copy", "notes", "people"]);
    let deleted =
        "DELETE FROM copy WHERE name IN (SELECT table_name FROM esker_tables WHERE rows = 0)";
    assert_eq!(db.sql(deleted, ()).unwrap().rows_changed(), 1);
    let none = error(&db, "SELECT nothing FROM information_schema.tables");
    assert!(none.contains("nothing"), "{none}");
}

#[test]
fn a_transaction_sees_its_own_definitions() {
    let db = database();
    let mut session = Session::new(&db);
    let tables = "SELECT table_name FROM esker_tables ORDER BY 1";
    let columns = "SELECT count(*) FROM esker_columns WHERE table_name = 'people'";
    let before = db.snapshot().unwrap();
    session.sql("BEGIN", ()).unwrap();
    session.sql("CREATE TABLE new (id i64 PRIMARY KEY)", ()).unwrap();
    session.sql("ALTER TABLE people ADD COLUMN shoe u8", ()).unwrap();
    session.sql("DROP TABLE notes", ()).unwrap();
    let seen: Vec<String> = session.sql_as(tables, ()).unwrap();
    assert_eq!(seen, ["new", "people"]);
    assert_eq!(session.sql_as::<u64>(columns, ()).unwrap(), [5]);
    let shown = session.sql("SHOW TABLES", ()).unwrap().answer().unwrap();
    assert_eq!(shown.row_count(), 2);
    assert_eq!(rows(&db, tables), ["notes", "people"]);
    session.sql("ROLLBACK", ()).unwrap();
    assert_eq!(session.sql_as::<u64>(columns, ()).unwrap(), [4]);
    // So does a snapshot: those of its commit.
    db.sql("DROP TABLE notes", ()).unwrap();
    let query = esker_sql::parse(tables).unwrap();
    assert_eq!(before.query(&query).unwrap().row_count(), 2);
    assert_eq!(rows(&db, tables), ["people"]);
}

#[test]
fn statements_ask_them() {
    let db = database();
    assert_eq!(rows(&db, "SHOW TABLES"), ["notes", "people"]);
    assert_eq!(rows(&db, "SHOW TABLES LIKE 'p%';"), ["people"]);
    assert_eq!(
        rows(&db, "DESCRIBE people"),
        [
            "id|i64|NO|PRI|nextval('numbers')|null|null",
            "name|text(40)|NO|null|null|null|null",
            "born|date|YES|null|null|null|null",
            "height|decimal(5,2)|YES|null|null|null|null",
        ]
    );
    assert_eq!(rows(&db, "SHOW COLUMNS FROM main.people"), rows(&db, "DESC TABLE people"));
    assert_eq!(
        rows(&db, "SHOW INDEXES FROM people"),
        [
            "by_born|people|born desc, name|ordered|false|null",
            "by_name|people|name|ordered|true|null"
        ]
    );
    assert_eq!(rows(&db, "SHOW INDEX").len(), 3);
    assert_eq!(rows(&db, "SHOW SCHEMAS"), ["information_schema", "main"]);
    assert_eq!(rows(&db, "SHOW SEQUENCES"), ["numbers"]);
    assert_eq!(rows(&db, "SHOW FUNCTIONS LIKE 'casef%'"), ["casefold"]);
    assert_eq!(
        rows(&db, "SHOW ALL"),
        ["nulls_order|smallest", "division_by_zero|null", "use_rollups|on"]
    );
    assert_eq!(rows(&db, "SHOW nulls_order"), ["smallest"]);
    for text in [
        "SHOW COLUMNS FROM nothing",
        "SHOW CREATE TABLE nothing",
        "DESCRIBE nothing",
        "SHOW INDEXES FROM nothing",
        "SUMMARIZE nothing",
        "PRAGMA table_info(nothing)",
    ] {
        assert!(error(&db, text).contains("nothing"), "{text}: {}", error(&db, text));
    }
    assert!(error(&db, "SHOW COLUMNS").contains("expected FROM"));
    assert!(error(&db, "DESCRIBE people x").contains("the end of the statement"));
    assert!(error(&db, "SHOW size").contains("unknown setting"));
    // Prepared, and row by row.
    let prepared = db.prepare("SHOW TABLES").unwrap();
    assert_eq!(prepared.query(()).unwrap().row_count(), 2);
    assert_eq!(db.sql_rows("SHOW TABLES", ()).unwrap().count(), 2);
}

#[test]
fn pragmas_are_statements_and_functions() {
    let db = database();
    let wanted = [
        "0|id|i64|1|nextval('numbers')|1",
        "1|name|text(40)|1|null|0",
        "2|born|date|0|null|0",
        "3|height|decimal(5,2)|0|null|0",
    ];
    for text in [
        "PRAGMA table_info(people)",
        "PRAGMA main.table_info('people')",
        "PRAGMA table_info = people",
        "SELECT * FROM pragma_table_info('people')",
    ] {
        assert_eq!(rows(&db, text), wanted, "{text}");
    }
    assert_eq!(
        rows(&db, "PRAGMA table_list"),
        ["main|notes|table|3|0|1", "main|people|table|4|0|1"]
    );
    assert_eq!(rows(&db, "PRAGMA index_list(people)"), ["0|by_born|0|c|0", "1|by_name|1|c|0"]);
    assert_eq!(rows(&db, "PRAGMA index_info(by_born)"), ["0|2|born", "1|1|name"]);
    assert!(rows(&db, "PRAGMA foreign_key_list(people)").is_empty());
    assert_eq!(rows(&db, "PRAGMA database_list"), ["0|main|"]);
    let joined = "SELECT l.name, i.name FROM pragma_table_list() l JOIN \
                  pragma_table_info('notes') AS i ON i.pk > 0 WHERE l.name = 'notes' ORDER BY i.pk";
    assert_eq!(rows(&db, joined), ["notes|person", "notes|day"]);
    let refused = [
        ("PRAGMA journal_mode", "PRAGMA journal_mode is unknown; pragmas: table_info"),
        ("PRAGMA table_info", "expected the name of the table"),
        ("PRAGMA table_list(people)", "is about all tables"),
        ("SELECT * FROM pragma_table_info(people)", "expected one name, as a text"),
    ];
    for (text, message) in refused {
        assert!(error(&db, text).contains(message), "{text}: {}", error(&db, text));
    }
}

#[test]
fn summaries_have_a_row_for_each_column() {
    let db = database();
    assert_eq!(
        rows(&db, "SUMMARIZE people"),
        [
            "id|i64|10|15|2|12.5|2|0.0",
            "name|text|Ada|Alan|2|null|2|0.0",
            "born|date|1815-12-10|1815-12-10|1|null|2|0.5",
            "height|decimal(5,2)|1.65|1.65|1|1.65|2|0.5",
        ]
    );
    let query =
        "SUMMARIZE SELECT id AS a, id AS a, CAST('x' AS bytes) AS b FROM people WHERE id < ?";
    let found = db.prepare(query).unwrap().query((15,)).unwrap();
    let found: Vec<_> = found.to_rows().into_iter().map(|row| row[2].clone()).collect();
    assert_eq!(found, [Value::from("10"), Value::from("10"), Value::Null]);
    assert_eq!(
        rows(&db, "SUMMARIZE SELECT name FROM people WHERE id < 0"),
        ["name|text|null|null|0|null|0|null"]
    );
    assert_eq!(rows(&db, "SUMMARIZE information_schema.tables").len(), 7);
    let refused = error(&db, "SUMMARIZE DELETE FROM people");
    assert!(refused.contains("the end of the statement"), "{refused}");
}

/// A table that is as another: its fields, checks, key, indexes and expiry.
fn alike(a: &Schema, b: &Schema) {
    let fields = |schema: &Schema| -> Vec<_> {
        let field = |f: &esker::Field| {
            (f.name.clone(), f.type_text(), f.nullable, f.default.clone(), f.labels.clone())
        };
        schema.fields().iter().map(field).collect()
    };
    assert_eq!(fields(a), fields(b));
    assert_eq!((a.checks(), a.primary_key()), (b.checks(), b.primary_key()));
    let indexes = |schema: &Schema| -> Vec<_> {
        let all = schema.indexes().iter();
        all.map(|i| (i.name.clone(), i.kind, i.unique, schema.index_fields(i))).collect()
    };
    assert_eq!(indexes(a), indexes(b));
    assert_eq!(a.expiry_field().map(|f| &f.name), b.expiry_field().map(|f| &f.name));
}

#[test]
fn show_create_table_makes_the_same_table() {
    let db = database();
    for text in [
        "CREATE TABLE every (a bool DEFAULT true, b i8 DEFAULT -8, c i16, d i32, e i64 DEFAULT \
         -9223372036854775808, f u8, g u16, h u32, i u64 DEFAULT 18446744073709551615, j f32 \
         DEFAULT 1.5, k f64 DEFAULT -1e300, l text DEFAULT 'it''s', m bytes DEFAULT X'00ff', n \
         date \
         DEFAULT '2024-02-29', o timestamp DEFAULT now(), p time DEFAULT '12:30:00', q uuid \
         DEFAULT \
         uuid(), r ipv4 DEFAULT '10.0.0.1', s ipv6 DEFAULT '::1', t decimal(20, 3) DEFAULT 1.250, \
         u \
         enum('red', 'dark green', 'it''s') DEFAULT 'dark green', v json DEFAULT '{\"a\": [1]}', w \
         interval DEFAULT '1 month 2 days')",
        "CREATE TABLE \"odd name\" (\"order\" i64, \"a b\" text(7) NOT NULL, \"key\" i64, \
        \"q\"\"x\" \
         date, doc json, PRIMARY KEY (\"order\", \"a b\"), CHECK (\"order\" > 0 AND \"key\" IS NOT \
         NULL), CONSTRAINT \"my check\" CHECK (\"a b\" LIKE 'x%' OR length(\"a b\") IN (1, 2)), \
         UNIQUE (\"key\", \"q\"\"x\" DESC), INDEX bits USING bitmap (\"key\"), INDEX \"t r\" USING \
         trigram (\"a b\"), INDEX paths (doc.a.b, \"key\" DESC))",
        "CREATE TABLE ends (id i64 PRIMARY KEY, gone timestamp DEFAULT now() + INTERVAL '90 \
         minutes') WITH (expires = 'gone')",
        "CREATE TABLE bare (x i64)",
    ] {
        db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
    let after = db.table("ends").unwrap().schema();
    assert_eq!(after.fields()[1].default, Some(DefaultValue::After(90 * 60 * 1_000_000)));
    for table in ["people", "notes", "every", "odd name", "ends", "bare"] {
        let shown = db.sql(&format!("SHOW CREATE TABLE \"{table}\""), ()).unwrap().answer();
        let shown = shown.unwrap().to_rows();
        let [row] = shown.as_slice() else { panic!("{table}: {shown:?}") };
        let [Value::Text(name), Value::Text(sql)] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!(name, table);
        let made = Options::new().memory().unwrap();
        made.sql("CREATE SEQUENCE numbers START 10 INCREMENT 5", ()).unwrap();
        let [statement] = statements(sql)[..] else { panic!("{sql}") };
        made.sql(statement, ()).unwrap_or_else(|e| panic!("{sql}\n{e}"));
        alike(&db.table(table).unwrap().schema(), &made.table(table).unwrap().schema());
        // And again.
        let again = rows(&made, &format!("SHOW CREATE TABLE \"{table}\""));
        assert_eq!(again, [format!("{table}|{sql}")]);
    }
    // Each index as a statement of its own.
    let text = "SELECT index_name, sql FROM esker_indexes WHERE table_name = 'odd name'";
    for (index, sql) in db.sql_as::<(String, String)>(text, ()).unwrap() {
        let schema = db.table("odd name").unwrap().schema();
        let fields = schema.index_fields(schema.index(&index).unwrap());
        db.alter_table("odd name", &[Alteration::DropIndex(index.clone())]).unwrap();
        db.sql(&sql, ()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let schema = db.table("odd name").unwrap().schema();
        assert_eq!(schema.index_fields(schema.index(&index).unwrap()), fields, "{sql}");
    }
}

/// What no statement makes has none.
#[test]
fn buckets_have_no_statement() {
    let db = database();
    db.bucket("cache").unwrap();
    assert_eq!(rows(&db, "SHOW CREATE TABLE cache"), ["cache|null"]);
    assert_eq!(rows(&db, "SHOW TABLES"), ["notes", "people"]);
    let kinds = "SELECT table_name, kind FROM esker_tables ORDER BY 1";
    assert_eq!(rows(&db, kinds), ["cache|bucket", "notes|table", "people|table"]);
}

/// The columns of many tables are found in time that rises with their number.
#[test]
fn many_tables_are_listed() {
    let db = Options::new().memory().unwrap();
    for number in 0..300 {
        let schema = Schema::builder().field("n", DataType::I64).nullable("v", DataType::Text);
        db.create_table(&format!("t{number}"), schema.build().unwrap()).unwrap();
    }
    let count = "SELECT count(*) FROM information_schema.columns WHERE table_name LIKE 't%' AND \
                 table_schema = 'main' AND column_name IN ('n', 'v')";
    assert_eq!(rows(&db, count), ["600"]);
}
