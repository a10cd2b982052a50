//! Every route, asked with every token that does not reach so far: the refusal that is documented,
//! nothing changed, nothing told. The cases come from the table of routes; a route that asks for
//! its rights itself needs an entry in [`own_cases`].

use std::collections::BTreeSet;

use esker_server::protocol::http::{Need, ROUTES, Route};
use esker_server::session::Level;

use super::client::{Harness, Response};
use super::two_tenants::{Tenants, expect_nothing};

/// What a route is asked.
struct Asked<'a> {
    route: &'a Route,
    path: String,
    body: String,
}

fn asked<'a>(route: &'a Route, token_id: &str, transaction: &str) -> Asked<'a> {
    let path = route.path.replace("{database}", "mill");
    let path = path.replace("{table}", "t").replace("{bucket}", "b").replace("{key}", "1");
    let path = path.replace("{index}", "i").replace("{session}", "0");
    let path = path.replace("{token}", token_id).replace("{transaction}", transaction);
    let question = if route.id == "copy" { "?sql=COPY+t+TO+STDOUT" } else { "" };
    let path = format!("{path}{question}");
    let body = match route.id {
        _ if route.bodies.is_empty() => "",
        "createToken" => r#"{"name": "n", "scopes": ["admin"]}"#,
        "setLimits" => r#"{"rows": 5}"#,
        "createTable" => r#"{"schema": "id i64 not null, primary key (id)"}"#,
        "alterTable" => r#"{"changes": ["ADD COLUMN z i64"]}"#,
        "renameBucket" => r#"{"rename": "b"}"#,
        "createIndex" => r#"{"index": "id"}"#,
        "loadRows" => r#"[{"id": 9, "name": "loaded"}]"#,
        "query" | "explain" => r#"{"sql": "SELECT * FROM t"}"#,
        "restore" => r#"{"backup": "monday"}"#,
        "putView" => r#"{"query": "SELECT id FROM t"}"#,
        "putEntry" => "entry",
        "putRow" | "changeRow" => r#"{"name": "changed"}"#,
        _ => "{}",
    };
    Asked { route, path, body: body.to_owned() }
}

impl Asked<'_> {
    fn send(&self, server: &Harness, token: Option<&str>, more: &[(&str, &str)]) -> Response {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        headers.extend(more);
        let method = self.route.method.to_uppercase();
        server.raw(&method, &self.path, &headers, self.body.as_bytes())
    }
}

/// The scopes that are too small for a route, as its need says.
fn small_scopes(need: Need) -> Vec<&'static str> {
    let lower = |level, scopes: [&'static str; 2]| match level {
        Level::Read => Vec::new(),
        Level::Write => vec![scopes[0]],
        Level::Admin => scopes.to_vec(),
    };
    let (mut scopes, others) = match need {
        Need::Nothing | Need::Token | Need::Enter => (Vec::new(), &[][..]),
        Need::Server(level) => {
            (lower(level, ["read", "write"]), &["admin:mill", "admin:shop", "admin:mill/t"][..])
        }
        Need::Limits => (vec!["read", "write"], &["admin:mill", "admin:shop", "admin:mill/t"][..]),
        Need::Database(level) => (
            lower(level, ["read:mill", "write:mill"]),
            &["admin:shop", "admin:mill/t", "admin:mill/b", "admin:mill/u"][..],
        ),
        Need::Table(level) => {
            let mut all = lower(level, ["read:mill", "write:mill"]);
            all.extend(lower(level, ["read:mill/t", "write:mill/t"]));
            all.extend(lower(level, ["read:mill/b", "write:mill/b"]));
            (all, &["admin:shop", "admin:shop/t", "admin:mill/u", "admin:mill/c"][..])
        }
    };
    scopes.extend(others);
    scopes
}

/// Scope, body and status of a route that asks for rights itself.
type Case = (&'static str, &'static str, u16);

/// The cases of routes whose need does not say what is asked for.
fn own_cases(route: &Route) -> Vec<Case> {
    let own: &[Case] = match route.id {
        "listDatabases" => &[("admin:shop", "", 200), ("read:shop/t", "", 200)],
        "listTables" | "listBuckets" | "listViews" => {
            &[("admin:shop", "", 403), ("admin:mill/u", "", 403)]
        }
        "query" => &[
            ("admin:shop", "", 403),
            ("admin:mill/u", r#"{"sql": "SELECT * FROM t"}"#, 403),
            ("admin:mill/u", r#"{"table": "t"}"#, 403),
            ("admin:mill/u", r#"{"sql": "SELECT * FROM b"}"#, 403),
            ("admin:mill/u", r#"{"sql": "SELECT u.id FROM u JOIN t ON t.id = u.id"}"#, 403),
            ("admin:mill/u", r#"{"sql": "INSERT INTO u SELECT id + 1, name FROM t"}"#, 403),
            ("admin:mill/u", r#"{"sql": "SELECT * FROM tt"}"#, 403),
            ("admin:mill/u", r#"{"sql": "DELETE FROM t"}"#, 403),
            ("admin:mill/u", r#"{"sql": "DROP TABLE t"}"#, 403),
            ("admin:mill/u", r#"{"sql": "CREATE TABLE w (id i64 PRIMARY KEY)"}"#, 403),
            ("read:mill", r#"{"sql": "DELETE FROM t"}"#, 403),
            ("read:mill", r#"{"sql": "UPDATE t SET name = 'x'"}"#, 403),
            ("read:mill", r#"{"sql": "INSERT INTO t VALUES (2, 'x')"}"#, 403),
            ("write:mill", r#"{"sql": "DROP TABLE t"}"#, 403),
            ("write:mill", r#"{"sql": "DROP INDEX i"}"#, 403),
            ("write:mill", r#"{"sql": "ALTER TABLE t ADD COLUMN z i64"}"#, 403),
        ],
        "explain" => &[
            ("admin:shop", "", 403),
            ("admin:mill/u", r#"{"sql": "SELECT * FROM t"}"#, 403),
            ("admin:mill/u", r#"{"table": "t"}"#, 403),
        ],
        "begin" | "copy" => &[("admin:shop", "", 403)],
        // Those of others are not there.
        "commit" | "rollback" => &[("admin:shop", "", 403), ("admin:mill", "", 404)],
        _ => &[],
    };
    own.to_vec()
}

/// A token for every scope that some case has.
fn tokens_of_all_cases(tenants: &Tenants) -> Vec<(&'static str, String)> {
    let of_route = |route: &Route| {
        let own = own_cases(route).into_iter().map(|(scope, ..)| scope);
        small_scopes(route.need).into_iter().chain(own).collect::<Vec<_>>()
    };
    let scopes: BTreeSet<&str> = ROUTES.iter().flat_map(of_route).chain(["admin:mill"]).collect();
    scopes.into_iter().map(|scope| (scope, tenants.token(scope, None).1)).collect()
}

#[test]
fn no_route_does_or_tells_anything_for_a_token_that_does_not_reach_it() {
    let server = Harness::new(&[]);
    let tenants = Tenants::new(&server.access_control);
    let (token_id, _) = tenants.token("read", None);
    let begun = server.ask("POST", "/v1/databases/mill/transactions", "{}").json();
    let transaction = begun["id"].as_str().unwrap().to_owned();
    let dead = tenants.dead_tokens();
    let small = tokens_of_all_cases(&tenants);
    let token_of = |scope: &str| &small.iter().find(|(known, _)| *known == scope).unwrap().1;
    let before = tenants.state();
    let mut count = 0;
    for route in ROUTES {
        let mut asked = asked(route, &token_id, &transaction);
        let mut expect = |asked: &Asked<'_>, token: Option<&str>, status: u16, who: &str| {
            let response = asked.send(&server, token, &[]);
            let what = format!("{route:?} with {who}, {:?}", asked.body);
            assert_eq!(response.status, status, "{what}: {}", response.text());
            expect_nothing(&tenants, &before, &response.body, &what);
            count += 1;
        };
        if route.need == Need::Nothing {
            expect(&asked, None, 200, "nothing");
            continue;
        }
        expect(&asked, None, 401, "nothing");
        for (why, token) in &dead {
            expect(&asked, Some(token), 401, &format!("an {why} token"));
        }
        for scope in small_scopes(route.need) {
            expect(&asked, Some(token_of(scope)), 403, scope);
        }
        let own = own_cases(route);
        let needs_own = matches!(route.need, Need::Token | Need::Enter);
        assert_eq!(!own.is_empty(), needs_own, "{route:?}: its own cases");
        for (scope, body, status) in own {
            if !body.is_empty() {
                asked.body = body.to_owned();
            }
            expect(&asked, Some(token_of(scope)), status, scope);
        }
        // The transaction of another token.
        if route.headers.iter().any(|header| header.name == "Esker-Transaction") {
            let within = [("esker-transaction", transaction.as_str())];
            let response = asked.send(&server, Some(token_of("admin:mill")), &within);
            assert_eq!(response.status, 404, "{route:?}: {}", response.text());
            let what = format!("{route:?} in the transaction of another");
            expect_nothing(&tenants, &before, &response.body, &what);
            count += 1;
        }
    }
    eprintln!("{count} cases of routes");
    assert!(count > 400);
    // What was refused is done for who may do it: it was not refused for another reason.
    let removes = |route: &Route| route.method == "delete";
    for is_last in [false, true] {
        for route in ROUTES.iter().filter(|route| removes(route) == is_last) {
            let asked = asked(route, &token_id, &transaction);
            let response = asked.send(&server, Some(&server.token), &[]);
            assert!(![401, 403].contains(&response.status), "{route:?}: {}", response.text());
        }
    }
}

#[test]
fn a_name_is_given_by_who_may_make_what_has_it() {
    let server = Harness::new(&[]);
    let tenants = Tenants::new(&server.access_control);
    for (scope, from, to, status) in [
        ("admin:mill/t", "tables/t", "z", 403),
        ("admin:mill/b", "buckets/b", "z", 403),
        ("admin:mill", "tables/t", "z", 200),
        ("admin:mill", "buckets/b", "y", 200),
    ] {
        let bearer = format!("Bearer {}", tenants.token(scope, None).1);
        let before = tenants.state();
        let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
        let (path, body) =
            (format!("/v1/databases/mill/{from}"), format!(r#"{{"rename": "{to}"}}"#));
        let response = server.raw("PATCH", &path, &headers, body.as_bytes());
        assert_eq!(response.status, status, "{scope} {from}: {}", response.text());
        assert_eq!(tenants.state() == before, status == 403, "{scope} {from}");
    }
}

#[test]
fn the_list_of_databases_has_what_a_token_reaches() {
    let server = Harness::new(&[]);
    let tenants = Tenants::new(&server.access_control);
    for (scope, names) in [
        ("admin:shop", serde_json::json!(["shop"])),
        ("read:mill/u", serde_json::json!(["mill"])),
        ("read", serde_json::json!(["default", "mill", "shop"])),
    ] {
        let bearer = format!("Bearer {}", tenants.token(scope, None).1);
        let told = server.raw("GET", "/v1/databases", &[("authorization", &bearer)], b"");
        assert_eq!(told.json()["databases"], names, "{scope}");
    }
}
