//! Tests of what clients see of their own writes, and of what keeps them from each other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use esker::{Durability, Options};
use esker_vfs::Environment;

use super::tests::{Directory, Running, exchange, next, random_command};
use crate::ServerConfig;
use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::auth::token::NewToken;
use crate::config::Config;
use crate::resources::budget::Budget;
use crate::tenant::TenantLimits;

/// Sends lines at once, and returns what is told until the end of the connection.
fn converse(server: &Running, lines: &[String]) -> String {
    let mut stream = server.connect();
    stream.write_all(lines.join("\r\n").as_bytes()).unwrap();
    stream.write_all(b"\r\nQUIT\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told.replace("\r\n", "|")
}

fn ask(stream: &mut TcpStream, line: &str) -> String {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut told = vec![0; 4096];
    let n = stream.read(&mut told).unwrap();
    String::from_utf8_lossy(&told[..n]).replace("\r\n", "|")
}

#[test]
fn a_connection_sees_what_it_has_written_before_it_is_on_the_disk() {
    let directory = Directory::new("resp-sync");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let conversation = [
        ("SET a 1", "+OK|"),
        ("GET a", "$1|1|"),
        ("INCR a", ":2|"),
        ("INCR a", ":3|"),
        ("APPEND a 4", ":2|"),
        ("APPEND a 5", ":3|"),
        ("GET a", "$3|345|"),
        ("STRLEN a", ":3|"),
        ("SETRANGE a 0 \"\"", ":3|"),
        ("SETRANGE a 1 9", ":3|"),
        ("GETEX a", "$3|395|"),
        ("MGET a b", "*2|$3|395|$-1|"),
        ("INFO keyspace", "$44|# Keyspace|db0:keys=1,expires=0,avg_ttl=0||"),
        ("EXPIRE a 100", ":1|"),
        ("TTL a", ":100|"),
        ("EXISTS a", ":1|"),
        ("DBSIZE", ":1|"),
        ("KEYS *", "*1|$1|a|"),
        ("SCAN 0", "*2|$1|0|*1|$1|a|"),
        ("MULTI", "+OK|"),
        ("INCR a", "+QUEUED|"),
        ("GET a", "+QUEUED|"),
        ("EXEC", "*2|:396|$3|396|"),
        ("GETDEL a", "$3|396|"),
        ("GET a", "$-1|"),
        ("SET b x NX", "+OK|"),
        ("RENAME b c", "+OK|"),
        ("GETSET c y", "$1|x|"),
        ("WATCH c", "+OK|"),
        ("MULTI", "+OK|"),
        ("SET c z", "+QUEUED|"),
        ("EXEC", "*1|+OK|"),
        ("DEL c", ":1|"),
        ("DBSIZE", ":0|"),
        ("SET d 1", "+OK|"),
        ("FLUSHDB", "+OK|"),
        ("GET d", "$-1|"),
    ];
    let lines: Vec<_> = conversation.iter().map(|(line, _)| (*line).to_owned()).collect();
    let expected: String = conversation.iter().map(|(_, told)| *told).collect();
    assert_eq!(converse(&server, &lines), format!("{expected}+OK|"));
}

#[test]
fn a_pipeline_tells_the_same_as_commands_one_by_one() {
    let directory = Directory::new("resp-pipeline");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let memory = Options::new().memory().unwrap();
    let mut alone = super::state::State::alone(crate::Session::new(&memory));
    let mut seed = 5;
    let mut random = || loop {
        // Times left are of the clock.
        let command = random_command(&mut seed);
        if !command.contains("ttl") {
            return command;
        }
    };
    for _ in 0..20 {
        let lines: Vec<String> = (0..50).map(|_| random()).collect();
        let one_by_one: String = lines
            .iter()
            .map(|line| alone.answer_all(format!("{line}\r\n").as_bytes()))
            .map(|told| String::from_utf8_lossy(&told).replace("\r\n", "|"))
            .collect();
        assert_eq!(converse(&server, &lines), format!("{one_by_one}+OK|"), "{lines:#?}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "clients of a test")]
fn increments_of_many_are_all_counted() {
    let directory = Directory::new("resp-many");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let lines: Vec<_> = (0..100).map(|_| "INCR n".to_owned()).collect();
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| converse(&server, &lines))));
    });
    assert_eq!(converse(&server, &["GET n".to_owned()]), "$3|400|+OK|");
    drop(server);
    database.close().unwrap();
    let again = Options::new().open(&directory.0).unwrap();
    assert_eq!(again.bucket("db0").unwrap().get_copy(b"n").unwrap(), Some(b"400".to_vec()));
}

fn access_control(limits: TenantLimits) -> Arc<AccessControl> {
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let config = Config { limits, memory: true, resp_listen: Some(local), ..Config::default() };
    Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap())
}

fn serve(access_control: &Arc<AccessControl>) -> Running {
    Running::with(ServerConfig::of(access_control).unwrap(), || {
        Arc::new(TokenAuthenticator::new(access_control))
    })
}

fn token(access_control: &AccessControl, scope: &str) -> (String, String) {
    let scopes = vec![scope.parse().unwrap()];
    let made = access_control
        .tokens
        .create(&NewToken { name: "t".into(), scopes, lifetime: None })
        .unwrap();
    (made.0.id, made.1)
}

#[test]
fn a_token_lets_in_as_far_as_it_reaches_and_as_long_as_it_is_there() {
    let access_control = access_control(TenantLimits::default());
    access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    let server = serve(&access_control);
    let (admin_id, admin) = token(&access_control, "admin");
    let (_, reader) = token(&access_control, "read");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "GET k"), "-NOAUTH Authentication required.|");
    assert!(ask(&mut client, "HELLO 3").starts_with("-NOAUTH"));
    assert!(ask(&mut client, "AUTH esk_none").starts_with("-WRONGPASS"));
    assert_eq!(ask(&mut client, &format!("AUTH {admin}")), "+OK|");
    assert_eq!(ask(&mut client, "SET k v"), "+OK|");
    let mut other = server.connect();
    assert_eq!(ask(&mut other, &format!("AUTH shop {admin}")), "+OK|");
    assert_eq!(ask(&mut other, "GET k"), "$-1|", "another database");
    assert!(ask(&mut other, &format!("AUTH none {admin}")).starts_with("-"));
    let mut reads = server.connect();
    assert!(ask(&mut reads, &format!("HELLO 3 AUTH default {reader}")).starts_with("%7|"));
    assert_eq!(ask(&mut reads, "GET k"), "$1|v|");
    for line in ["SET k w", "INCR n", "DEL k", "GETDEL k", "FLUSHDB", "EXPIRE k 1", "MSET k w"] {
        let told = ask(&mut reads, line);
        assert!(told.starts_with("-NOPERM"), "{line}: {told}");
    }
    assert_eq!(ask(&mut reads, "MULTI"), "+OK|");
    assert_eq!(ask(&mut reads, "SET k w"), "+QUEUED|");
    assert!(ask(&mut reads, "EXEC").starts_with("*1|-NOPERM"));
    let mut writes = server.connect();
    let (_, writer) = token(&access_control, "write");
    for line in [&format!("AUTH {writer}"), "SELECT 4", "MULTI", "SET k w"] {
        assert!(ask(&mut writes, line).starts_with('+'), "{line}");
    }
    let told = ask(&mut writes, "EXEC");
    assert!(told.starts_with("*1|-NOPERM"), "it may make no bucket: {told}");
    assert_eq!(ask(&mut client, "MULTI"), "+OK|");
    assert_eq!(ask(&mut client, "SET k w"), "+QUEUED|");
    access_control.tokens.remove(&admin_id).unwrap();
    assert!(ask(&mut client, "EXEC").starts_with("-NOAUTH"));
    assert!(ask(&mut client, "GET k").starts_with("-NOAUTH"));
    assert_eq!(ask(&mut reads, "GET k"), "$1|v|", "what was queued is not done");
    let text = access_control.metrics.text(&access_control.tenants);
    let wanted = "protocol=\"resp\",operation=\"set\",status=\"forbidden\"} 1\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "requests are counted in real time")]
fn a_tenant_has_its_limits() {
    let limits = TenantLimits { rows: Some(3), result_bytes: Some(5_000), ..Default::default() };
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let server = serve(&access_control);
    let (_, admin) = token(&access_control, "admin");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, &format!("AUTH shop {admin}")), "+OK|");
    let long = "x".repeat(2_000);
    // How much there is, is known to a second or so: these are too many by themselves.
    assert!(ask(&mut client, "MSET a 1 b 2 c 3 d 4").starts_with("-ERR the tenant may have 3"));
    assert!(ask(&mut client, "MSETNX a 1 b 2 c 3 d 4").starts_with("-ERR the tenant may have 3"));
    assert_eq!(ask(&mut client, &format!("MSET a {long} b {long} c {long}")), "+OK|");
    assert!(ask(&mut client, "MGET a b c").starts_with("-ERR the answer has more than 5000"));
    assert_eq!(ask(&mut client, "DEL a b c"), ":3|");
    assert_eq!(ask(&mut client, "SET d 1"), "+OK|");
    let limits = TenantLimits { requests_per_second: Some(5), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let told: Vec<_> = (0..200).map(|_| ask(&mut client, "GET d")).collect();
    let passed = told.iter().filter(|told| !told.starts_with("-ERR more than 5 requests")).count();
    assert!(passed < 40, "{passed} of 200 in a moment");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ask(&mut client, "GET d"), "$1|1|");
}

#[test]
fn a_transaction_is_whole_where_requests_are_too_many() {
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    let server = serve(&access_control);
    let (_, admin) = token(&access_control, "admin");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, &format!("AUTH shop {admin}")), "+OK|");
    let none = TenantLimits { requests_per_second: Some(0), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, none).unwrap();
    assert!(ask(&mut client, "SET a 1").starts_with("-ERR more than 0 requests"));
    assert_eq!(ask(&mut client, "MULTI"), "+OK|");
    assert!(ask(&mut client, "SET a 1").starts_with("-ERR more than 0 requests"));
    access_control.tenants.set_limits(&shop, TenantLimits::default()).unwrap();
    assert_eq!(ask(&mut client, "SET a 2"), "+QUEUED|");
    access_control.tenants.set_limits(&shop, none).unwrap();
    assert!(ask(&mut client, "EXEC").starts_with("-EXECABORT"));
    access_control.tenants.set_limits(&shop, TenantLimits::default()).unwrap();
    assert_eq!(ask(&mut client, "GET a"), "$-1|", "nothing was done");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn who_does_not_read_takes_no_more_than_the_budget() {
    const MIB: usize = 1 << 20;
    let budget = Budget::new(64 * MIB);
    let config = ServerConfig {
        budget: Arc::clone(&budget),
        request_bytes_max: 16 * MIB,
        stall_timeout: Duration::from_millis(500),
        ..ServerConfig::default()
    };
    let server = Running::start(&Options::new().memory().unwrap(), config);
    let mut client = server.connect();
    let value = "x".repeat(8 * MIB);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len());
    assert_eq!(exchange(&mut client, set.as_bytes(), 5), b"+OK\r\n");
    let gets = "GET k\r\n".repeat(1_000);
    let slow: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(gets.as_bytes()).unwrap();
            stream
        })
        .collect();
    let large: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = server.connect();
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            let _ = stream.write_all(set.as_bytes().get(..set.len() - 9).unwrap());
            stream
        })
        .collect();
    for _ in 0..20 {
        assert!(budget.used() <= budget.limit());
        assert_eq!(exchange(&mut client, b"PING\r\n", 7), b"+PONG\r\n", "others are served");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop((slow, large, client));
    drop(server);
    assert_eq!(budget.used(), 0, "all of it is given back");
}

fn connections(server: &Running) -> usize {
    server.server.as_ref().map_or(0, crate::Server::connections)
}

/// A server with memory for three of the answers to `GET k` at a time.
fn short_of_memory() -> Running {
    let config = ServerConfig {
        budget: Budget::new(2 << 20),
        stall_timeout: Duration::from_millis(500),
        idle_timeout: Duration::from_millis(500),
        ..ServerConfig::default()
    };
    let database = Options::new().memory().unwrap();
    database.bucket("db0").unwrap().put(b"k", vec![b'x'; 300_000]).unwrap();
    Running::start(&database, config)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn who_asks_without_end_and_does_not_read_is_let_go_of() {
    let server = short_of_memory();
    let transaction = format!("MULTI\r\n{}EXEC\r\n", "GET k\r\n".repeat(300));
    for asked in ["GET k\r\n".repeat(1_000), transaction.repeat(3)] {
        let deaf: Vec<_> = (0..8)
            .map(|_| {
                let mut stream = server.connect();
                stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
                let _ = stream.write_all(asked.as_bytes());
                stream
            })
            .collect();
        let since = std::time::Instant::now();
        while connections(&server) > 0 {
            assert!(since.elapsed() < Duration::from_secs(20), "{}", connections(&server));
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(deaf);
        assert_eq!(exchange(&mut server.connect(), b"PING\r\n", 7), b"+PONG\r\n");
        while connections(&server) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "clients of a test")]
fn pipelines_of_many_do_not_keep_each_other_from_memory() {
    let server = short_of_memory();
    let lines: Vec<_> = (0..40).map(|_| "GET k".to_owned()).collect();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| converse(&server, &lines))).collect();
        for client in clients {
            let told = client.join().unwrap();
            let refused: Vec<_> = told.split('|').filter(|line| line.starts_with('-')).collect();
            assert_eq!((told.matches("$300000|").count(), refused), (40, vec![]));
        }
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "shares are given back on other threads")]
fn what_was_written_is_not_told_as_an_error() {
    const MIB: usize = 1 << 20;
    let budget = Budget::new(16 * MIB);
    let config = ServerConfig {
        budget: Arc::clone(&budget),
        request_bytes_max: 4 * MIB,
        stall_timeout: Duration::from_millis(200),
        ..ServerConfig::default()
    };
    let server = Running::start(&Options::new().memory().unwrap(), config);
    let value = "x".repeat(3 * MIB);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len());
    assert_eq!(exchange(&mut server.connect(), set.as_bytes(), 5), b"+OK\r\n");
    let told = |command: &str| {
        let (mut client, mut told) = (server.connect(), String::new());
        client.write_all(command.as_bytes()).unwrap();
        client.read_to_string(&mut told).unwrap();
        told
    };
    let mut others = budget.share();
    // What was answered has been read here before its share is given back there.
    while !others.resize(13 * MIB) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let refused = told("GET k\r\nQUIT\r\n");
    assert!(refused.starts_with("-ERR 31"), "{refused}");
    // Refused before anything is done.
    for command in ["SET k new GET", "GETSET k new", "GETDEL k", "GETEX k EX 1"] {
        let refused = told(&format!("{command}\r\nQUIT\r\n"));
        assert!(refused.starts_with("-ERR 31") && refused.ends_with("+OK\r\n"), "{refused}");
    }
    assert_eq!(told("STRLEN k\r\nTTL k\r\nQUIT\r\n"), ":3145728\r\n:-1\r\n+OK\r\n");
    // Answers that are small each, but together find no room: nothing is said of what was written.
    assert_eq!(told(&format!("SET s {}\r\nQUIT\r\n", "x".repeat(50_000))), "+OK\r\n+OK\r\n");
    while !others.resize(14 * MIB) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(told("GET s\r\nSET k new\r\nGET s\r\n"), "");
    assert_eq!(told("GET k\r\nQUIT\r\n"), "$3\r\nnew\r\n+OK\r\n");
    drop(others);
}

#[test]
fn no_command_answers_more_than_the_tenant_lets_it() {
    let limits = TenantLimits { result_bytes: Some(500), ..TenantLimits::default() };
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let server = serve(&access_control);
    let (_, admin) = token(&access_control, "admin");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, &format!("AUTH shop {admin}")), "+OK|");
    let long = "x".repeat(600);
    assert_eq!(ask(&mut client, &format!("SET k {long}")), "+OK|");
    let refused = "-ERR the answer has more than 500 bytes: ask for less|";
    for command in [
        "GET k",
        "MGET a k",
        "GETRANGE k 0 -1",
        "GETDEL k",
        "GETEX k PERSIST",
        "GETSET k y",
        "SET k y GET",
    ] {
        assert_eq!(ask(&mut client, command), refused, "{command}");
    }
    // The same behind a write, in the commit that they share.
    assert_eq!(
        ask(&mut client, "SET other 1\r\nGETDEL k\r\nGET k"),
        format!("+OK|{refused}{refused}")
    );
    assert_eq!(ask(&mut client, "STRLEN k"), ":600|", "nothing was changed");
    assert_eq!(ask(&mut client, "GETRANGE k 0 1"), "$2|xx|");
}

#[test]
fn bytes_that_are_no_commands_end_one_connection() {
    let server = Running::start(&Options::new().memory().unwrap(), ServerConfig::default());
    let garbage: [&[u8]; 7] = [
        b"*1\r\n$99999999999999999999\r\n",
        b"*99999999\r\n",
        b"*2\r\n$3\r\nGET\r\n$-5\r\n",
        b"*1\r\n+PING\r\n",
        b"get \"k\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\n\r\nFLUSHDB\r\n",
        b"*1\r\n$300000000\r\n",
    ];
    for sent in garbage {
        let mut stream = server.connect();
        stream.write_all(sent).unwrap();
        let mut told = Vec::new();
        // What was sent behind it may end the connection before all is read.
        let _ = stream.read_to_end(&mut told);
        let told = String::from_utf8_lossy(&told);
        assert!(told.starts_with("-ERR") && told.lines().count() == 1, "{told}");
    }
    let mut seed = 3;
    for _ in 0..30 {
        let mut stream = server.connect();
        let bytes: Vec<u8> =
            (0..200).map(|_| u8::try_from(next(&mut seed) % 256).unwrap()).collect();
        let _ = stream.write_all(&bytes);
    }
    let mut stream = server.connect();
    assert_eq!(exchange(&mut stream, b"PING\r\n", 7), b"+PONG\r\n");
}

/// What the fuzzer does, for as long as a test may take.
#[test]
fn random_bytes_are_answered_by_something() {
    let words: [&[u8]; 16] = [
        b"*",
        b"$",
        b"\r\n",
        b"1",
        b"3",
        b"-1",
        b"GET",
        b"SET",
        b"MULTI\r\n",
        b"EXEC\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n",
        b"INCR k\r\n",
        b"\"",
        b" ",
        b"SCAN 0 MATCH *\r\n",
        b"WATCH k\r\n",
    ];
    let database = Options::new().memory().unwrap();
    let mut seed = 9;
    for _ in 0..2_000 {
        let mut input = Vec::new();
        for _ in 0..next(&mut seed) % 30 {
            match next(&mut seed) % 5 {
                0 => input.push(u8::try_from(next(&mut seed) % 256).unwrap()),
                _ => input.extend_from_slice(words[next(&mut seed) % words.len()]),
            }
        }
        let _ = super::answer_commands(crate::Session::new(&database), &input);
    }
}

#[test]
fn slow_commands_are_listed() {
    let resp_listen = Some(([127, 0, 0, 1], 0).into());
    let slow_query = Duration::ZERO;
    let config = Config { memory: true, slow_query, resp_listen, ..Config::default() };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let server = serve(&access_control);
    let (_, admin) = token(&access_control, "admin");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, &format!("AUTH default {admin}")), "+OK|");
    assert_eq!(ask(&mut client, "SET a 1\r\nINCR a"), "+OK|:2|");
    assert_eq!(ask(&mut client, "MGET a b"), "*2|$1|2|$-1|");
    let slow = access_control.metrics.slow_statements(&crate::tenant::TenantName::main());
    let listed: Vec<_> = slow.iter().rev().map(|slow| slow.statement.as_str()).collect();
    assert_eq!(listed, ["auth", "set a: 2", "incr a: 1", "mget a: 2"]);
}

#[test]
fn an_administrator_sees_who_is_connected_and_ends_it() {
    let access_control = access_control(TenantLimits::default());
    let main = crate::tenant::TenantName::main();
    let server = serve(&access_control);
    let (id, admin) = token(&access_control, "admin");
    let mut client = server.connect();
    assert_eq!(ask(&mut client, &format!("AUTH default {admin}")), "+OK|");
    assert_eq!(ask(&mut client, "SET a 1"), "+OK|");
    assert_eq!(access_control.active_sessions.list(&main)[0].transaction_ms, None);
    assert_eq!(ask(&mut client, "WATCH a"), "+OK|");
    let listed = access_control.active_sessions.list(&main);
    assert_eq!((listed.len(), listed[0].protocol, listed[0].token.as_str()), (1, "resp", &*id));
    assert!(listed[0].transaction_ms.is_some());
    assert_eq!(ask(&mut client, "UNWATCH"), "+OK|");
    assert_eq!(access_control.active_sessions.list(&main)[0].transaction_ms, None);
    assert!(access_control.active_sessions.end(listed[0].id, &main));
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0, "it is closed");
}
