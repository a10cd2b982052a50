//! Tests of what keeps clients from each other.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use esker::{Database, Options};
use esker_vfs::Environment;
use esker_wire::{Kind, Reader, pack};

use super::tests::{Client, Running, bulk, get, insert};
use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::auth::authenticator::{Admitted, Authenticator};
use crate::auth::token::NewToken;
use crate::config::Config;
use crate::resources::budget::Budget;
use crate::session::group_sync::Durability;
use crate::session::{Access, Level, Session, SessionLimits};
use crate::tenant::TenantLimits;
use crate::{Result, ServerConfig};

const MIB: usize = 1 << 20;

pub(crate) fn code_of(payload: &[u8]) -> String {
    let mut reader = Reader::new(payload);
    reader.array_of(2).unwrap();
    reader.text().unwrap().to_owned()
}

/// Sends, and returns the code of the error, or nothing.
fn ask(client: &mut Client, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    client.send(7, kind, write);
    loop {
        let (_, kind, payload) = client.receive();
        match kind {
            Kind::Failed => return Some(code_of(&payload)),
            Kind::Done => return None,
            _ => {}
        }
    }
}

pub(super) fn sql(client: &mut Client, text: &str) -> Option<String> {
    ask(client, Kind::Sql, |out| {
        pack::array(out, 2);
        pack::text(out, text);
        pack::array(out, 0);
    })
}

pub(crate) fn hello(
    client: &mut Client,
    token: Option<&str>,
    database: Option<&str>,
) -> Option<String> {
    ask(client, Kind::Hello, |out| {
        pack::array(out, 2);
        for text in [token, database] {
            match text {
                Some(text) => pack::text(out, text),
                None => pack::nil(out),
            }
        }
    })
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn large_requests_of_many_share_one_budget() {
    let budget = Budget::new(256 * MIB);
    let change = ServerConfig { budget: Arc::clone(&budget), ..ServerConfig::default() };
    let database = Options::new().memory().unwrap();
    let server =
        Running::with(change, || Arc::new(crate::auth::authenticator::Open::new(&database)));
    let mut other = server.binary();
    assert_eq!(sql(&mut other, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    let announced = u32::try_from(64 * MIB).unwrap();
    let mut large: Vec<Client> = (0..20).map(|_| server.binary()).collect();
    for client in &mut large {
        client.stream.write_all(&announced.to_le_bytes()).unwrap();
        client.stream.write_all(&[0; 2000]).unwrap();
    }
    let patience = std::time::Instant::now();
    while budget.used() < 190 * MIB {
        assert!(patience.elapsed() < Duration::from_secs(10), "{} used", budget.used());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(&mut other, Kind::Insert, |out| insert(out, &[(1, "Ada")])), None);
    let mut refused = 0;
    for client in &mut large {
        assert!(budget.used() <= budget.limit(), "{} used", budget.used());
        let mut told = Vec::new();
        let _ = client.stream.read_to_end(&mut told);
        refused += usize::from(told.windows(14).any(|part| part == b"limit_exceeded"));
        // The others sent nothing for too long, and had nothing to be told.
    }
    assert!((10..=17).contains(&refused), "{refused} of 20 were told");
    assert_eq!(ask(&mut server.binary(), Kind::Get, |out| get(out, &[1])), None);
    drop(server);
    assert_eq!(budget.used(), 0, "all of it is given back");
}

/// Panics at one table.
#[derive(Debug)]
struct Panics(Database, Arc<Durability>);

impl Authenticator for Panics {
    fn admit(&self, _token: Option<&str>, _database: Option<&str>) -> Result<Admitted> {
        let limits = SessionLimits::default();
        let session = Session::with(&self.0, Arc::new(PanicsAt("boom")), limits);
        Ok(Admitted { session, durability: Arc::clone(&self.1) })
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.1.stop();
    }
}

#[derive(Debug)]
struct PanicsAt(&'static str);

impl Access for PanicsAt {
    fn expect(&self, _level: Level, table: Option<&str>) -> Result<()> {
        assert_ne!(table, Some(self.0), "a planted panic");
        Ok(())
    }
}

#[test]
fn a_panic_ends_one_request() {
    let database = Options::new().memory().unwrap();
    let server = Running::with(ServerConfig::default(), || {
        Arc::new(Panics(database.clone(), Durability::start(&database)))
    });
    let mut client = server.binary();
    let keys = |out: &mut Vec<u8>, table: &str, count: i64| {
        pack::array(out, 2);
        pack::text(out, table);
        pack::array(out, usize::try_from(count).unwrap());
        (0..count).for_each(|key| pack::int(out, key));
    };
    let internal = Some("internal".to_owned());
    for kind in [Kind::Get, Kind::Delete] {
        for count in [1, 1000] {
            assert_eq!(ask(&mut client, kind, |out| keys(out, "boom", count)), internal);
        }
    }
    assert_eq!(sql(&mut client, "SELECT * FROM boom"), internal);
    assert_eq!(sql(&mut client, "BEGIN"), None);
    assert_eq!(sql(&mut client, "SELECT * FROM boom"), internal);
    let ended = sql(&mut client, "COMMIT");
    assert_eq!(ended.as_deref(), Some("invalid_request"), "it was rolled back");
    client.send(9, Kind::BulkBegin, |out| {
        pack::array(out, 3);
        ["boom", "csv", "error"].iter().for_each(|text| pack::text(out, text));
    });
    assert_eq!(code_of(&client.receive().2), "internal");
    assert_eq!(ask(&mut client, Kind::Ping, |_| ()), None);
    let mut lines = server.connect();
    let line = "{\"op\":\"get\",\"table\":\"boom\",\"key\":1}\n{\"op\":\"ping\"}\n";
    lines.write_all(line.as_bytes()).unwrap();
    lines.shutdown(std::net::Shutdown::Write).unwrap();
    let mut told = String::new();
    lines.read_to_string(&mut told).unwrap();
    assert!(told.contains("internal") && told.ends_with("{\"ok\":true}\n"), "{told}");
}

pub(crate) fn access_control(limits: TenantLimits) -> Arc<AccessControl> {
    let wire_listen = Some(([127, 0, 0, 1], 0).into());
    let config = Config { limits, memory: true, wire_listen, ..Config::default() };
    Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap())
}

pub(crate) fn serve(access_control: &Arc<AccessControl>) -> Running {
    Running::with(ServerConfig::of(access_control).unwrap(), || {
        Arc::new(TokenAuthenticator::new(access_control))
    })
}

pub(crate) fn token(
    access_control: &AccessControl,
    scope: &str,
    lifetime: Option<Duration>,
) -> (String, String) {
    let scopes = vec![scope.parse().unwrap()];
    let made =
        access_control.tokens.create(&NewToken { name: "t".into(), scopes, lifetime }).unwrap();
    (made.0.id, made.1)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tokens end in real time")]
fn a_token_that_ends_ends_open_connections() {
    let access_control = access_control(TenantLimits::default());
    let server = serve(&access_control);
    let (id, text) = token(&access_control, "admin", None);
    let mut client = server.binary();
    let out = Some("unauthenticated".to_owned());
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1])), out);
    assert_eq!(hello(&mut client, Some("esk_no_such"), None), out);
    assert_eq!(hello(&mut client, Some(&text), None), None);
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    let mut lines = server.connect();
    let greet = format!("{{\"op\":\"hello\",\"token\":\"{text}\"}}\n{{\"op\":\"tables\"}}\n");
    lines.write_all(greet.as_bytes()).unwrap();
    let mut read = BufReader::new(lines.try_clone().unwrap()).lines();
    assert!(read.by_ref().take(2).all(|line| line.unwrap().contains("\"ok\"")));
    bulk(&mut client, 50, "csv");
    client.send(50, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n1,a\n"));
    access_control.tokens.remove(&id).unwrap();
    client.send(50, Kind::BulkEnd, |_| ());
    assert_eq!(code_of(&client.receive().2), "unauthenticated");
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1])), out);
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &[(1, "Ada")])), out);
    assert_eq!(hello(&mut client, Some(&text), None), out);
    lines.write_all(b"{\"op\":\"tables\"}\n").unwrap();
    lines.shutdown(std::net::Shutdown::Write).unwrap();
    let told: Vec<String> = read.map(|line| line.unwrap()).collect();
    assert!(told.len() == 1 && told[0].contains("unauthenticated"), "{told:?}");
    let (_, short) = token(&access_control, "admin", Some(Duration::from_millis(300)));
    assert_eq!(hello(&mut client, Some(&short), None), None);
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1])), None);
    std::thread::sleep(Duration::from_millis(350));
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1])), out);
}

#[test]
fn a_tenant_has_its_limits_on_every_connection() {
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    let limits = TenantLimits { rows: Some(100), result_bytes: Some(5000), ..Default::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let server = serve(&access_control);
    let (_, text) = token(&access_control, "admin", None);
    let mut client = server.binary();
    assert_eq!(hello(&mut client, Some(&text), Some("shop")), None);
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    let exceeded = Some("limit_exceeded".to_owned());
    let rows: Vec<(i64, &str)> = (0..101).map(|id| (id, "x")).collect();
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &rows)), exceeded);
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &rows[..100])), None);
    bulk(&mut client, 9, "csv");
    let text: String = (200..400).map(|id| format!("{id},x\n")).collect();
    client.send(9, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n"));
    client.send(9, Kind::BulkChunk, |out| out.extend_from_slice(text.as_bytes()));
    client.send(9, Kind::BulkEnd, |_| ());
    assert_eq!(code_of(&client.receive().2), "limit_exceeded");
    let long = format!("SELECT '{}' AS x FROM people", "x".repeat(500));
    assert_eq!(sql(&mut client, &long), exceeded);
    // What was done is not told as refused, though its answer cannot be told.
    for rows in [80, 1_000] {
        let name = "x".repeat(rows);
        let text = format!("UPDATE people SET name = '{name}' WHERE id < 99 RETURNING *");
        assert_eq!(sql(&mut client, &text).as_deref(), Some("outcome_unknown"));
        let text = format!("SELECT * FROM people WHERE name = '{name}'");
        assert_eq!(sql(&mut client, &text), exceeded, "there are as many");
    }
    assert_eq!(sql(&mut client, "SELECT count(*) AS n FROM people"), None);
    let limits = TenantLimits { requests_per_second: Some(5), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let passed = (0..200).filter(|_| ask(&mut client, Kind::Get, |out| get(out, &[1])).is_none());
    let passed = passed.count();
    assert!((1..40).contains(&passed), "{passed} of 200 in a moment");
    let limits = TenantLimits { concurrent_queries: Some(0), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    assert_eq!(sql(&mut client, "SELECT count(*) AS n FROM people"), exceeded);
    let text = access_control.metrics.text(&access_control.tenants);
    let wanted = "esker_requests_total{protocol=\"wire\",operation=\"insert\",status=\"ok\"} 1\n";
    assert!(text.contains(wanted), "{text}");
    let wanted = "operation=\"insert\",status=\"limit_exceeded\"} 1\n";
    assert!(text.contains(wanted), "{text}");
    let wanted = "esker_request_duration_seconds_count{protocol=\"wire\",operation=\"get\"} 200\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn a_database_is_opened_for_who_says_hello() {
    let directory = std::env::temp_dir().join(format!("esker-hello-{}", std::process::id()));
    let config = Config {
        trust_local: true,
        wire_listen: Some(([127, 0, 0, 1], 0).into()),
        ..Config::default()
    };
    let environment = Environment::os();
    let access_control =
        || AccessControl::open(config.clone(), &environment, Some(directory.clone())).unwrap();
    let first = access_control();
    first.tenants.create(&"shop".parse().unwrap()).unwrap();
    first.tenants.close().unwrap();
    drop(first);
    let access_control = Arc::new(access_control());
    assert!(access_control.tenants.find_open(&"shop".parse().unwrap()).is_none());
    let server = serve(&access_control);
    let mut client = server.binary();
    assert_eq!(hello(&mut client, None, Some("shp")).as_deref(), Some("not_found"));
    assert_eq!(hello(&mut client, None, Some("shop")), None);
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &[(1, "Ada")])), None);
    drop(server);
    access_control.tenants.close().unwrap();
    environment.files.remove_dir_all(&directory).unwrap();
}

#[test]
fn many_keys_are_cancelled() {
    let session = Session::new(&Options::new().memory().unwrap());
    let database = session.database();
    let schema = esker_import::schema_text::parse("id i64, name text, primary key (id)");
    database.create_table("people", schema.unwrap()).unwrap();
    let keys: Vec<i64> = (0..5000).collect();
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    get(&mut payload, &keys);
    session.canceller().cancel();
    let failed = super::point::answer(&session, Kind::Get, 1, &payload, &mut out);
    assert_eq!(failed, Some(crate::Code::Cancelled));
}

/// A bucket with so many values of so many bytes, their keys in order.
fn values(database: &Database, count: usize, bytes: usize) {
    let bucket = database.bucket("b").unwrap();
    for key in 0..count {
        bucket.put(format!("{key:02}"), vec![b'v'; bytes]).unwrap();
    }
}

fn bucket_get(out: &mut Vec<u8>, count: usize) {
    pack::array(out, 2);
    pack::text(out, "b");
    pack::array(out, count);
    (0..count).for_each(|key| pack::bytes(out, format!("{key:02}").as_bytes()));
}

fn bucket_range(out: &mut Vec<u8>, limit: Option<usize>) {
    pack::array(out, 6);
    pack::text(out, "b");
    (0..3).for_each(|_| pack::nil(out));
    match limit {
        Some(limit) => pack::uint(out, limit as u64),
        None => pack::nil(out),
    }
    pack::bool(out, false);
}

fn begin(client: &mut Client) -> Option<String> {
    ask(client, Kind::Begin, |out| {
        pack::array(out, 2);
        pack::bool(out, false);
        pack::bool(out, false);
    })
}

/// Asks for a line, and returns what is told.
fn line(stream: &mut std::net::TcpStream, line: &str) -> String {
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut told = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut told).unwrap();
    told
}

#[test]
fn no_request_answers_more_than_the_tenant_lets_it() {
    let access_control =
        access_control(TenantLimits { result_bytes: Some(5_000), ..TenantLimits::default() });
    let main = access_control.tenants.get(&crate::tenant::TenantName::main()).unwrap();
    values(&main.database, 20, 1_000);
    let server = serve(&access_control);
    let (_, token) = token(&access_control, "admin", None);
    let mut client = server.binary();
    assert_eq!(hello(&mut client, Some(&token), None), None);
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    let name = "n".repeat(1_000);
    let rows: Vec<(i64, &str)> = (0..20).map(|id| (id, name.as_str())).collect();
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &rows)), None);
    let ids: Vec<i64> = (0..20).collect();
    let exceeded = Some("limit_exceeded".to_owned());
    for within in [false, true] {
        for (count, told) in [(4, &None), (20, &exceeded)] {
            let found = ask(&mut client, Kind::Get, |out| get(out, &ids[..count]));
            assert_eq!(found, *told, "{count} rows, {within}");
            let found = ask(&mut client, Kind::BucketGet, |out| bucket_get(out, count));
            assert_eq!(found, *told, "{count} values, {within}");
            let found = ask(&mut client, Kind::BucketRange, |out| bucket_range(out, Some(count)));
            assert_eq!(found, *told, "{count} entries, {within}");
        }
        assert_eq!(ask(&mut client, Kind::BucketRange, |out| bucket_range(out, None)), exceeded);
        assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &vec![1; 200])), exceeded);
        if !within {
            assert_eq!(begin(&mut client), None);
        }
    }
    let mut lines = server.connect();
    let hello = format!("{{\"op\":\"hello\",\"token\":\"{token}\"}}");
    assert!(line(&mut lines, &hello).contains("\"ok\":true"));
    for (asked, refused) in [
        ("\"op\":\"get\",\"table\":\"people\",\"keys\":[1,2,3,4]", false),
        ("\"op\":\"get\",\"table\":\"people\",\"keys\":[1,2,3,4,5,6]", true),
        ("\"op\":\"sql\",\"sql\":\"SELECT * FROM people WHERE id < 4\"", false),
        ("\"op\":\"sql\",\"sql\":\"SELECT * FROM people\"", true),
        ("\"op\":\"query\",\"query\":{\"table\":\"people\"}", true),
        ("\"op\":\"query\",\"query\":{\"table\":\"people\",\"limit\":9,\"total\":true}", true),
    ] {
        let told = line(&mut lines, &format!("{{\"id\":5,{asked}}}"));
        let wanted = if refused { "\"code\":\"limit_exceeded\"" } else { "\"ok\":true" };
        assert!(told.starts_with("{\"id\":5,") && told.contains(wanted), "{asked}: {told}");
    }
    let change = "\"op\":\"sql\",\"sql\":\"UPDATE people SET name = name RETURNING *\"";
    let told = line(&mut lines, &format!("{{\"id\":5,{change}}}"));
    assert!(told.contains("outcome_unknown"), "{told}");
}

#[test]
fn large_answers_have_a_share_before_they_are_read() {
    let budget = Budget::new(16 * MIB);
    let change = ServerConfig { budget: Arc::clone(&budget), ..ServerConfig::default() };
    let database = Options::new().memory().unwrap();
    values(&database, 8, MIB);
    let server =
        Running::with(change, || Arc::new(crate::auth::authenticator::Open::new(&database)));
    let mut client = server.binary();
    let mut refused = |kind: Kind, write: &dyn Fn(&mut Vec<u8>)| {
        client.send(7, kind, write);
        let (_, kind, payload) = client.receive();
        if kind == Kind::Done {
            return None;
        }
        let mut reader = Reader::new(&payload);
        reader.array_of(2).unwrap();
        assert_eq!(reader.text().unwrap(), "limit_exceeded");
        let message = reader.text().unwrap();
        Some(message.split(' ').next().unwrap().parse::<usize>().unwrap())
    };
    let mut others = budget.share();
    assert!(others.resize(13 * MIB));
    // At the first value, not once all of them are there.
    for within in [false, true] {
        let bytes = refused(Kind::BucketGet, &|out| bucket_get(out, 8)).unwrap();
        assert!(bytes < 3 * MIB, "{bytes}");
        let bytes = refused(Kind::BucketRange, &|out| bucket_range(out, None)).unwrap();
        assert!(bytes < 3 * MIB, "{bytes}");
        let begin = |out: &mut Vec<u8>| {
            pack::array(out, 2);
            pack::bool(out, false);
            pack::bool(out, true);
        };
        if !within {
            assert_eq!(refused(Kind::Begin, &begin), None);
        }
    }
    drop(others);
    assert_eq!(refused(Kind::BucketGet, &|out| bucket_get(out, 6)), None);
    assert_eq!(refused(Kind::BucketRange, &|out| bucket_range(out, Some(6))), None);
    drop(server);
    assert_eq!(budget.used(), 0, "all of it is given back");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "shares are given back on other threads")]
fn a_line_that_was_done_is_not_told_as_refused() {
    let budget = Budget::new(MIB);
    let change = ServerConfig { budget: Arc::clone(&budget), ..ServerConfig::default() };
    let database = Options::new().memory().unwrap();
    let server =
        Running::with(change, || Arc::new(crate::auth::authenticator::Open::new(&database)));
    let mut lines = server.connect();
    let create = "{\"op\":\"sql\",\"sql\":\"CREATE TABLE t (n i64 PRIMARY KEY)\"}";
    assert!(line(&mut lines, create).contains("\"ok\":true"));
    let mut large = budget.share();
    // What was answered has been read here before its share is given back there.
    while !large.resize(budget.share_max()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut small = budget.share();
    while budget.used() < budget.limit() {
        let mut next = budget.share();
        assert!(next.resize((budget.limit() - budget.used()).min(60_000)));
        small.absorb(next);
    }
    let insert = "{\"id\":7,\"op\":\"sql\",\"sql\":\"INSERT INTO t VALUES (1)\"}";
    let told = line(&mut lines, insert);
    assert!(told.starts_with("{\"id\":7,") && told.contains("outcome_unknown"), "{told}");
    let told = line(&mut lines, "{\"id\":8,\"op\":\"get\",\"table\":\"t\",\"key\":1}");
    assert!(told.starts_with("{\"id\":8,") && told.contains("limit_exceeded"), "{told}");
    drop((large, small));
    let told = line(&mut lines, "{\"id\":9,\"op\":\"get\",\"table\":\"t\",\"key\":1}");
    assert_eq!(told, "{\"id\":9,\"ok\":true,\"rows\":[{\"n\":1}]}\n");
}

#[test]
fn slow_requests_of_the_wire_protocol_and_of_lines_are_listed() {
    let wire_listen = Some(([127, 0, 0, 1], 0).into());
    let (slow_query, trust_local) = (Duration::ZERO, true);
    let config = Config { memory: true, slow_query, trust_local, wire_listen, ..Config::default() };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let server = serve(&access_control);
    let mut client = server.binary();
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &[(1, "a"), (2, "b")])), None);
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1, 2, 3])), None);
    assert_eq!(ask(&mut client, Kind::Get, |out| get(out, &[1; 300])), None);
    assert_eq!(sql(&mut client, "SELECT name FROM people WHERE id = 2"), None);
    let mut lines = server.connect();
    let query = r#"{"op":"query","query":{"table":"people","limit":1}}"#;
    assert!(line(&mut lines, query).contains("\"ok\":true"));
    let told = line(&mut lines, r#"{"op":"get","table":"people","keys":[1,2]}"#);
    assert!(told.contains("\"ok\":true"), "{told}");
    assert!(line(&mut lines, r#"{"op":"sql","sql":"SELECT nothing"}"#).contains("error"));
    let mut slow = access_control.metrics.slow_statements(&crate::tenant::TenantName::main());
    slow.reverse();
    let listed: Vec<_> =
        slow.iter().map(|s| (s.statement.as_str(), s.plan.is_some(), s.completed)).collect();
    let expected = [
        ("CREATE TABLE people (id i64 PRIMARY KEY, name text)", false, true),
        ("insert people: 2", false, true),
        ("get people: 3", false, true),
        ("get people: 300", false, true),
        ("SELECT name FROM people WHERE id = 2", true, true),
        (r#"{"table":"people","limit":1}"#, true, true),
        ("get people: 2", false, true),
        ("SELECT nothing", false, false),
    ];
    assert_eq!(listed, expected);
    assert!(slow[5].plan.as_ref().unwrap().contains("people"), "{:?}", slow[5].plan);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "what runs on other threads is waited for")]
fn an_administrator_sees_who_is_connected_and_ends_it() {
    let access_control = access_control(TenantLimits::default());
    let main = crate::tenant::TenantName::main();
    let server = serve(&access_control);
    let (id, token) = token(&access_control, "admin", None);
    let mut client = server.binary();
    assert_eq!(hello(&mut client, Some(&token), None), None);
    assert_eq!(sql(&mut client, "CREATE TABLE people (id i64 PRIMARY KEY, name text)"), None);
    let name = "n".repeat(1_000);
    for part in [0..10_000, 10_000..20_000] {
        let rows: Vec<(i64, &str)> = part.map(|id| (id, name.as_str())).collect();
        assert_eq!(ask(&mut client, Kind::Insert, |out| insert(out, &rows)), None);
    }
    let mut lines = server.connect();
    let hello = format!("{{\"op\":\"hello\",\"token\":\"{token}\"}}");
    assert!(line(&mut lines, &hello).contains("\"ok\":true"));
    assert!(line(&mut lines, "{\"op\":\"begin\"}").contains("\"ok\":true"));
    // Nobody reads what it answers.
    client.sql(5, "SELECT * FROM people");
    let until = |is_so: &dyn Fn(&[crate::monitor::active_sessions::SeatInfo]) -> bool| {
        let patience = std::time::Instant::now();
        loop {
            let listed = access_control.active_sessions.list(&main);
            if is_so(&listed) {
                return listed;
            }
            assert!(patience.elapsed() < Duration::from_secs(10), "{listed:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let listed =
        until(&|listed| listed.iter().any(|active_session| !active_session.running.is_empty()));
    let [wire, json] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((wire.protocol, json.protocol), ("wire", "json-lines"));
    assert_eq!((wire.token.as_str(), wire.transaction_ms), (id.as_str(), None));
    assert_eq!(wire.running[0].statement, "SELECT * FROM people");
    assert!(json.transaction_ms.is_some() && json.running.is_empty());
    let other = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    assert!(!access_control.active_sessions.end(wire.id, &other.name), "of another database");
    for active_session in [wire, json] {
        assert!(
            access_control.active_sessions.end(active_session.id, &main)
                && !access_control.active_sessions.end(active_session.id, &main)
        );
    }
    for stream in [&mut client.stream, &mut lines] {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        let is_closed =
            read.map_or_else(|e| e.kind() == std::io::ErrorKind::ConnectionReset, |_| true);
        assert!(is_closed && rest.len() < 18 * MIB, "{} bytes", rest.len());
    }
    // What ran is given up, and the transaction is gone.
    let database = access_control.tenants.get(&main).unwrap().database.clone();
    until(&|listed| listed.is_empty() && database.info().snapshots.is_empty());
}
