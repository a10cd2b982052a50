//! What a session chooses by SET holds for its requests, and for those of its siblings.

use esker::{Options, Semantics, Value};

use super::super::{Answer, Request, Session, SqlText};
use super::sql;

fn session() -> Session {
    let mut session = Session::new(&Options::new().memory().unwrap());
    session.run(sql("CREATE TABLE t (id i64 PRIMARY KEY, a i64)")).unwrap();
    session.run(sql("INSERT INTO t VALUES (1, 5), (2, NULL), (3, 4)")).unwrap();
    session
}

fn ids(session: &mut Session, request: Request) -> Vec<Value> {
    match session.run(request).unwrap() {
        Answer::Result { result, .. } => result.to_rows().into_iter().flatten().collect(),
        Answer::Page(page) => page.result.to_rows().into_iter().flatten().collect(),
        other => panic!("{other:?}"),
    }
}

fn json(more: &str) -> Request {
    Request::Query {
        json: format!(r#"{{"table": "t", "select": ["id"], "order": ["a"], "limit": 9{more}}}"#),
    }
}

const BY_A: &str = "SELECT id FROM t ORDER BY a";

#[test]
fn a_setting_holds_for_the_requests_behind_it() {
    let mut session = session();
    let (least, greatest) = ([2, 3, 1].map(Value::Int), [3, 1, 2].map(Value::Int));
    assert_eq!(ids(&mut session, sql(BY_A)), least);
    session.run(sql("SET nulls_order = 'greatest'")).unwrap();
    assert!(sql("SET nulls_order = 'greatest'").is_about_transactions());
    let mut sibling = session.sibling();
    for session in [&mut session, &mut sibling] {
        assert_eq!(ids(session, sql(BY_A)), greatest);
        assert_eq!(ids(session, json("")), greatest);
        assert_eq!(ids(session, json(r#", "total": true"#)), greatest);
        assert_eq!(ids(session, json(r#", "nulls_order": "first""#)), least);
        assert_eq!(ids(session, json(r#", "total": true, "nulls_order": "first""#)), least);
        assert_eq!(ids(session, sql("SHOW nulls_order")), [Value::from("greatest")]);
    }
    session.run(sql("RESET ALL")).unwrap();
    assert_eq!(ids(&mut session, sql(BY_A)), least);
    assert_eq!(ids(&mut sibling, sql(BY_A)), greatest);
}

#[test]
fn a_statement_chooses_beside_its_text() {
    let mut session = session();
    let text = |text: &str| SqlText::from(text).with_semantics(Semantics::postgres());
    let request = Request::Sql { text: text(BY_A), parameters: Vec::new() };
    assert_eq!(ids(&mut session, request), [3, 1, 2].map(Value::Int));
    let request = Request::Sql { text: text("SELECT 1 / 0"), parameters: Vec::new() };
    let error = session.run(request).unwrap_err().to_string();
    assert!(error.contains("division by zero"), "{error}");
    assert_eq!(ids(&mut session, sql("SELECT 1 / 0")), [Value::Null]);
}
