//! Views over HTTP: made, told, replaced and removed.

use super::client::Harness;

const D: &str = "/v1/databases/default";

#[test]
fn a_view_is_made_told_replaced_and_removed() {
    let server = Harness::new(&[]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    assert_eq!(server.ask("PUT", &format!("{D}/tables/t"), schema).status, 201);
    let (all, one) = (format!("{D}/views"), format!("{D}/views/few"));
    assert_eq!(server.ask("GET", &one, "").status, 404);
    let few = r#"{"query": "SELECT id, name FROM t WHERE id < 10"}"#;
    let made = server.ask("PUT", &one, few);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["columns"][1]["type"], "text");
    assert_eq!(made.json()["reads"][0], "t");
    assert!(made.json()["query"].as_str().unwrap().contains("id < 10"), "{}", made.text());
    assert_eq!(server.ask("GET", &one, "").json(), made.json());
    assert_eq!(server.ask("GET", &all, "").json()["views"][0], "few");
    let fewer = r#"{"query": "SELECT id, name FROM t WHERE id < 5"}"#;
    assert_eq!(server.ask("PUT", &one, fewer).status, 200);
    assert!(server.ask("GET", &one, "").text().contains("id < 5"));
    for (query, said) in [
        ("DELETE FROM t", "expected SELECT"),
        ("SELECT 1; DROP TABLE t", "query"),
        ("SELECT nope FROM t", "nope"),
    ] {
        let body = serde_json::json!({ "query": query }).to_string();
        let refused = server.ask("PUT", &one, &body);
        assert!(refused.status == 400 && refused.text().contains(said), "{}", refused.text());
    }
    assert_eq!(server.ask("PUT", &format!("{D}/views/t"), few).status, 409);
    let reader = format!("Bearer {}", server.token("write:default"));
    let headers = [("authorization", reader.as_str())];
    assert_eq!(server.raw("PUT", &one, &headers, few.as_bytes()).status, 403);
    assert_eq!(server.raw("GET", &one, &headers, b"").status, 200);
    assert_eq!(server.raw("DELETE", &one, &headers, b"").status, 403);
    assert_eq!(server.ask("DELETE", &one, "").status, 204);
    assert_eq!(server.ask("DELETE", &one, "").status, 404);
}

#[test]
fn a_materialized_view_is_made_told_and_removed() {
    let server = Harness::new(&[]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    assert_eq!(server.ask("PUT", &format!("{D}/tables/t"), schema).status, 201);
    let one = format!("{D}/views/names");
    let query = "SELECT name, count(*) AS n FROM t GROUP BY name";
    let body = serde_json::json!({ "query": query, "materialized": true }).to_string();
    let made = server.ask("PUT", &one, &body);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["materialized"], true);
    let plain = serde_json::json!({ "query": query }).to_string();
    let refused = server.ask("PUT", &one, &plain);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("is a materialized view"), "{}", refused.text());
    let table = server.ask("GET", &format!("{D}/tables/t"), "").json();
    assert_eq!(table["indexes"].as_array().unwrap().len(), 0);
    assert_eq!(server.ask("DELETE", &one, "").status, 204);
    assert_eq!(server.ask("GET", &one, "").status, 404);
}

#[test]
fn a_view_of_a_transaction_is_of_that_alone() {
    let server = Harness::new(&[]);
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}").json();
    let headers = [("esker-transaction", begun["id"].as_str().unwrap())];
    let one = format!("{D}/views/one");
    let body = br#"{"query": "SELECT 1 AS n"}"#;
    assert_eq!(server.send("PUT", &one, &headers, body).status, 201);
    assert_eq!(server.send("GET", &one, &headers, b"").status, 200);
    assert_eq!(server.ask("GET", &one, "").status, 404);
    let path = format!("{D}/transactions/{}", begun["id"].as_str().unwrap());
    assert_eq!(server.ask("POST", &format!("{path}/commit"), "").status, 204);
    assert_eq!(server.ask("GET", &one, "").status, 200);
}
