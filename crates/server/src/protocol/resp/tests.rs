use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use esker::{Database, Options};

use super::state::State;
use crate::auth::authenticator::{Authenticator, Open};
use crate::session::{Everything, SessionLimits};
use crate::{Server, ServerConfig, Session};

pub(super) fn state(database: &Database) -> State {
    State::alone(Session::new(database))
}

pub(super) fn database() -> Database {
    Options::new().memory().unwrap()
}

pub(super) fn ask(state: &mut State, line: &str) -> String {
    let out = state.answer_all(format!("{line}\r\n").as_bytes());
    String::from_utf8_lossy(&out).replace("\r\n", "|")
}

/// Commands, one a line, in the form that takes words of any length.
pub(super) fn framed(lines: &str) -> String {
    let framed = |line: &str| {
        let words = line.split(' ').map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let words: Vec<String> = words.collect();
        format!("*{}\r\n{}", words.len(), words.concat())
    };
    lines.split("\r\n").map(framed).collect()
}

fn check(pairs: &[(&str, &str)]) {
    let mut state = state(&database());
    for (line, expected) in pairs {
        let found = ask(&mut state, line);
        assert_eq!(found, *expected, "{line}");
    }
}

#[test]
fn strings_are_answered_as_redis_does() {
    check(&[
        ("get k", "$-1|"),
        ("SET k v", "+OK|"),
        ("get k", "$1|v|"),
        ("get", "-ERR wrong number of arguments for 'get' command|"),
        ("set k w nx", "$-1|"),
        ("set k w xx get", "$1|v|"),
        ("set k w nx xx", "-ERR syntax error|"),
        ("set k w ex 0", "-ERR invalid expire time in 'set' command|"),
        ("set k w ex x", "-ERR value is not an integer or out of range|"),
        ("setnx k x", ":0|"),
        ("getset k hello", "$1|w|"),
        ("append k \" world\"", ":11|"),
        ("strlen k", ":11|"),
        ("getrange k 0 4", "$5|hello|"),
        ("getrange k -5 -1", "$5|world|"),
        ("getrange k 5 1", "$0||"),
        ("setrange k 6 there", ":11|"),
        ("setrange z 2 a", ":3|"),
        ("setrange z -1 a", "-ERR offset is out of range|"),
        (
            "setrange z 99999999999 a",
            "-ERR string exceeds maximum allowed size \
            (proto-max-bulk-len)|",
        ),
        ("mget k none z", "*3|$11|hello there|$-1|$3|\0\0a|"),
        ("mset a 1 b 2", "+OK|"),
        ("mset a", "-ERR wrong number of arguments for 'mset' command|"),
        ("mset a 1 b", "-ERR wrong number of arguments for 'mset' command|"),
        ("msetnx c 1 a 2", ":0|"),
        ("msetnx c 1 d 2", ":1|"),
        ("getdel d", "$1|2|"),
        ("getdel d", "$-1|"),
        ("exists a a b d", ":3|"),
        ("touch a d", ":1|"),
        ("del a b d", ":2|"),
        ("unlink c", ":1|"),
        ("type k", "+string|"),
        ("type d", "+none|"),
        ("rename k l", "+OK|"),
        ("rename k l", "-ERR no such key|"),
        ("renamenx l z", ":0|"),
        ("nothing a b", "-ERR unknown command 'nothing', with args beginning with: 'a' 'b' |"),
    ]);
}

#[test]
fn numbers_and_ends_are_answered_as_redis_does() {
    check(&[
        ("incr n", ":1|"),
        ("incrby n 41", ":42|"),
        ("decr n", ":41|"),
        ("decrby n 1", ":40|"),
        ("get n", "$2|40|"),
        ("incrby n x", "-ERR value is not an integer or out of range|"),
        ("set n 9223372036854775807", "+OK|"),
        ("incr n", "-ERR increment or decrement would overflow|"),
        ("set n 1a", "+OK|"),
        ("incr n", "-ERR value is not an integer or out of range|"),
        ("incrbyfloat f 10.5", "$4|10.5|"),
        ("incrbyfloat f 0.1", "$4|10.6|"),
        ("incrbyfloat f 5.0e3", "$6|5010.6|"),
        ("incrbyfloat n 1", "-ERR value is not a valid float|"),
        ("ttl f", ":-1|"),
        ("ttl none", ":-2|"),
        ("expire f 100", ":1|"),
        ("ttl f", ":100|"),
        ("expire f 50 gt", ":0|"),
        ("expire f 50 lt", ":1|"),
        ("incrbyfloat f 1", "$6|5011.6|"),
        ("ttl f", ":50|"),
        (
            "expire f 10 nx xx",
            "-ERR NX and XX, GT or LT options at the same time are not \
            compatible|",
        ),
        ("expireat f 9000000000", ":1|"),
        ("expiretime f", ":9000000000|"),
        ("pexpiretime f", ":9000000000000|"),
        ("set f x keepttl", "+OK|"),
        ("expiretime f", ":9000000000|"),
        ("pexpireat f 9000000000600", ":1|"),
        ("expiretime f", ":9000000001|"),
        ("persist f", ":1|"),
        ("persist f", ":0|"),
        ("setex f 100 y", "+OK|"),
        ("getex f persist", "$1|y|"),
        ("ttl f", ":-1|"),
        ("psetex f 100000 y", "+OK|"),
        ("set f z", "+OK|"),
        ("ttl f", ":-1|"),
        ("expire f -1", ":1|"),
        ("exists f", ":0|"),
        ("set f x exat 1", "+OK|"),
        ("exists f", ":0|"),
        ("setex f 0 x", "-ERR invalid expire time in 'setex' command|"),
    ]);
}

#[test]
fn keys_are_scanned_and_databases_are_buckets() {
    let database = database();
    let mut state = state(&database);
    for i in 0..25 {
        ask(&mut state, &format!("set user:{i:02} v"));
    }
    assert_eq!(ask(&mut state, "keys user:0[1-2]"), "*2|$7|user:01|$7|user:02|");
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let answer = ask(&mut state, &format!("scan {cursor} match user:* count 7"));
        let parts: Vec<_> = answer.split('|').collect();
        seen.extend(parts[4..].iter().skip(1).step_by(2).map(ToString::to_string));
        cursor = parts[2].to_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.retain(|key| !key.is_empty());
    assert_eq!(seen, (0..25).map(|i| format!("user:{i:02}")).collect::<Vec<_>>());
    assert!(ask(&mut state, "scan 999").starts_with("-ERR the cursor is not known"));
    assert_eq!(ask(&mut state, "scan x"), "-ERR invalid cursor|");
    assert_eq!(ask(&mut state, "dbsize"), ":25|");
    assert!(ask(&mut state, "randomkey").starts_with("$7|user:"));
    assert_eq!(ask(&mut state, "select 1"), "+OK|");
    assert_eq!(ask(&mut state, "dbsize"), ":0|");
    assert_eq!(ask(&mut state, "randomkey"), "$-1|");
    assert_eq!(ask(&mut state, "select 2"), "-ERR DB index is out of range|");
    assert_eq!(ask(&mut state, "select x"), "-ERR value is not an integer or out of range|");
    assert_eq!(database.buckets(), ["db0"], "reading makes no bucket");
    ask(&mut state, "select 0");
    assert_eq!(ask(&mut state, "flushdb"), "+OK|");
    assert_eq!(ask(&mut state, "dbsize"), ":0|");
    database.create_bucket("db1", &esker::BucketOptions::new()).unwrap();
    database.drop_bucket("db1").unwrap();
    let sql = "CREATE TABLE db1 (id i64 PRIMARY KEY)".to_owned();
    let request = crate::Request::Sql { text: sql.into(), parameters: Vec::new() };
    state.session.as_mut().unwrap().run(request).unwrap();
    ask(&mut state, "select 1");
    assert!(ask(&mut state, "get k").starts_with("-WRONGTYPE"), "{}", ask(&mut state, "get k"));
}

#[test]
fn what_is_queued_is_done_at_once_or_not_at_all() {
    let database = database();
    let (mut one, mut two) = (state(&database), state(&database));
    let queued = [
        ("multi", "+OK|"),
        ("multi", "-ERR MULTI calls can not be nested|"),
        ("set a 1", "+QUEUED|"),
        ("incr a", "+QUEUED|"),
        ("incr a x", "-ERR wrong number of arguments for 'incr' command|"),
        ("exec", "-EXECABORT Transaction discarded because of previous errors.|"),
        ("exec", "-ERR EXEC without MULTI|"),
        ("multi", "+OK|"),
        (
            "exec x",
            "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' \
             command|",
        ),
        ("discard", "-ERR DISCARD without MULTI|"),
        ("multi", "+OK|"),
        // Neither spoils what is queued.
        ("multi", "-ERR MULTI calls can not be nested|"),
        ("watch a", "-ERR WATCH inside MULTI is not allowed|"),
        ("set a x", "+QUEUED|"),
        ("incr a", "+QUEUED|"),
        ("append a y", "+QUEUED|"),
        ("expire a 100", "+QUEUED|"),
        ("ttl a", "+QUEUED|"),
        ("mget a b", "+QUEUED|"),
    ];
    for (line, expected) in queued {
        assert_eq!(ask(&mut one, line), expected, "{line}");
    }
    assert_eq!(ask(&mut two, "get a"), "$-1|");
    let expected = "*6|+OK|-ERR value is not an integer or out of range|:2|:1|:100|*2|$2|xy|$-1|";
    assert_eq!(ask(&mut one, "exec"), expected);
    assert_eq!(ask(&mut two, "get a"), "$2|xy|");
    for (line, of_other) in [("set a mine", "set a other"), ("set b mine", "del a")] {
        assert_eq!(ask(&mut one, "watch a"), "+OK|");
        assert!(!ask(&mut two, of_other).starts_with('-'));
        ask(&mut one, "multi");
        assert_eq!(ask(&mut one, line), "+QUEUED|");
        assert_eq!(ask(&mut one, "exec"), "*-1|");
    }
    assert_eq!(ask(&mut two, "exists a b"), ":0|");
    ask(&mut one, "watch a");
    ask(&mut two, "set other v");
    ask(&mut one, "multi");
    ask(&mut one, "set a mine");
    assert_eq!(ask(&mut one, "exec"), "*1|+OK|");
    ask(&mut one, "watch a");
    ask(&mut one, "multi");
    ask(&mut one, "set a again");
    assert_eq!(ask(&mut one, "discard"), "+OK|");
    assert_eq!(ask(&mut one, "get a"), "$4|mine|");
}

#[test]
fn the_third_form_has_its_own_nulls_and_maps() {
    check(&[
        ("hello 4", "-NOPROTO unsupported protocol version|"),
        (
            "hello 3 setname me",
            "%7|$6|server|$5|esker|$7|version|$5|7.0.0|$4|mode|$10|standalone|$4|role|\
             $6|master|$5|proto|:3|$2|id|:1|$7|modules|*0|",
        ),
        ("get k", "_|"),
        ("config get save", "%1|$4|save|$0||"),
        ("client getname", "$2|me|"),
        ("client id", ":1|"),
        ("client setinfo lib-name x", "+OK|"),
        ("command count", ":63|"),
        (
            "command info get",
            "*1|*10|$3|get|:2|~2|+readonly|+fast|:1|:1|:1|~3|+@read|+@string|+@fast|~0|~0|*0|",
        ),
        ("reset", "+RESET|"),
        ("get k", "$-1|"),
        ("ping", "+PONG|"),
        ("ping hi", "$2|hi|"),
        ("echo hi", "$2|hi|"),
        ("quit", "+OK|"),
        ("ping", ""),
    ]);
}

/// A number that looks random.
pub(super) fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

pub(super) fn random_command(seed: &mut u64) -> String {
    let key = |seed: &mut u64| ["a", "b", "c", "d"][next(seed) % 4];
    let value = ["1", "x", "-7", "2.5", "\"\"", "9223372036854775807", "hello"][next(seed) % 7];
    let number = ["0", "1", "-1", "5", "x", "-100", "3"][next(seed) % 7];
    let other = ["2", "-2", "10", "7"][next(seed) % 4];
    let (k, l) = (key(seed), key(seed));
    match next(seed) % 40 {
        0..=2 => format!("set {k} {value}"),
        3 => format!("set {k} {value} nx get"),
        4 => format!("set {k} {value} xx keepttl"),
        5 => format!("set {k} {value} ex 1000 get"),
        6 => format!("setnx {k} {value}"),
        7 => format!("setex {k} {number} {value}"),
        8 => format!("getset {k} {value}"),
        9 => format!("getdel {k}"),
        10 => format!("getex {k} persist"),
        11 => format!("getex {k} px 1000000"),
        12 => format!("append {k} {value}"),
        13 => format!("strlen {k}"),
        14 => format!("getrange {k} {number} {other}"),
        15 => format!("setrange {k} {number} {value}"),
        16 => format!("mget {k} {l} e"),
        17 => format!("mset {k} {value} {l} {other}"),
        18 => format!("msetnx {k} {value} e{l} {other}"),
        19 => format!("incr {k}"),
        20 => format!("decr {k}"),
        21 => format!("incrby {k} {number}"),
        22 => format!("decrby {k} {number}"),
        23 => format!("incrbyfloat {k} {other}"),
        24 => format!("expire {k} 1000 {}", ["nx", "xx", ""][next(seed) % 3]),
        25 => format!("pexpire {k} 2000000 {}", ["nx", "xx", ""][next(seed) % 3]),
        // Later and earlier: not by clocks that differ.
        26 => {
            let at = ["9000000000", "9000000001", "9000000002"][next(seed) % 3];
            format!("expireat {k} {at} {}", ["nx", "xx", "gt", "lt", ""][next(seed) % 5])
        }
        27 => format!("ttl {k}"),
        28 => format!("expiretime {l} {k}"),
        29 => format!("persist {k}"),
        30 => format!("del {k} {l}"),
        31 => format!("exists {k} {l} {k}"),
        32 => format!("type {k}"),
        33 => format!("rename {k} {l}"),
        34 => format!("renamenx {k} {l}"),
        35 => format!("unlink {k}"),
        36 => "dbsize".to_owned(),
        37 => format!("expire {k} {number}"),
        38 => format!("touch {k} {l}"),
        _ => format!("get {k}"),
    }
}

/// The simplest there is: what values are after commands, without ends.
#[test]
fn random_commands_do_the_same_alone_queued_and_in_a_map() {
    let (first, second) = (database(), database());
    let (mut alone, mut queued) = (state(&first), state(&second));
    let mut seed = 7;
    for _ in 0..300 {
        let commands: Vec<_> =
            (0..next(&mut seed) % 8).map(|_| random_command(&mut seed)).collect();
        let mut expected = String::new();
        ask(&mut queued, "multi");
        let mut count = 0;
        for command in &commands {
            let told = ask(&mut alone, command);
            if told.starts_with("-ERR wrong number") {
                continue;
            }
            count += 1;
            expected.push_str(&told);
            assert_eq!(ask(&mut queued, command), "+QUEUED|", "{command}");
        }
        assert_eq!(ask(&mut queued, "exec"), format!("*{count}|{expected}"), "{commands:?}");
    }
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    ask(&mut alone, "flushdb");
    for _ in 0..2_000 {
        let (key, value) = (format!("k{}", next(&mut seed) % 20), next(&mut seed).to_string());
        let bulk = |text: Option<&String>| {
            text.map_or("$-1|".to_owned(), |text| format!("${}|{text}|", text.len()))
        };
        let (line, expected) = match next(&mut seed) % 6 {
            0 => (format!("getset {key} {value}"), bulk(map.insert(key, value).as_ref())),
            1 => (format!("getdel {key}"), bulk(map.remove(&key).as_ref())),
            2 => {
                let entry = map.entry(key.clone()).or_default();
                entry.push('7');
                (format!("append {key} 7"), format!(":{}|", entry.len()))
            }
            3 => (format!("del {key}"), format!(":{}|", usize::from(map.remove(&key).is_some()))),
            4 => ("dbsize".to_owned(), format!(":{}|", map.len())),
            _ => (format!("get {key}"), bulk(map.get(&key))),
        };
        assert_eq!(ask(&mut alone, &line), expected, "{line}");
    }
}

/// A directory that is removed.
pub(in crate::protocol) struct Directory(pub PathBuf);

#[allow(clippy::disallowed_methods, reason = "a directory of a test")]
impl Directory {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esker-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

#[allow(clippy::disallowed_methods, reason = "a directory of a test")]
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server on a runtime of its own.
pub(super) struct Running {
    pub address: SocketAddr,
    pub server: Option<Server>,
    runtime: tokio::runtime::Runtime,
}

impl Running {
    pub fn start(database: &Database, config: ServerConfig) -> Self {
        Self::with(config, || Arc::new(Open::new(database)))
    }

    pub fn with(
        config: ServerConfig,
        authenticator: impl FnOnce() -> Arc<dyn Authenticator>,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig { listen: None, resp_listen: Some(local), ..config };
        let server =
            runtime.block_on(async { Server::start(config, authenticator()).await.unwrap() });
        Self { address: server.resp_address().unwrap(), server: Some(server), runtime }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}

pub(super) fn exchange(stream: &mut TcpStream, sent: &[u8], bytes: usize) -> Vec<u8> {
    stream.write_all(sent).unwrap();
    let mut told = vec![0; bytes];
    let mut have = 0;
    while have < bytes {
        match stream.read(&mut told[have..]) {
            Ok(n) if n > 0 => have += n,
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&told[..have])),
        }
    }
    told
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn a_pipeline_is_answered_in_order_and_is_on_the_disk() {
    let directory = Directory::new("resp");
    let database = Options::new().open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let mut stream = server.connect();
            std::thread::spawn(move || {
                let count = 200;
                let mut sent = Vec::new();
                for i in 0..count {
                    let key = format!("k{client}.{i:03}");
                    write!(sent, "*3\r\n$3\r\nSET\r\n$6\r\n{key}\r\n$1\r\nv\r\n").unwrap();
                    write!(sent, "GET {key}\r\n").unwrap();
                }
                let expected = "+OK\r\n$1\r\nv\r\n".repeat(count);
                let told = exchange(&mut stream, &sent, expected.len());
                assert_eq!(String::from_utf8(told).unwrap(), expected);
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(database.bucket("db0").unwrap().len().unwrap(), 800);
    let mut stream = server.connect();
    let mut told = String::new();
    stream.write_all(b"PING\r\n*1\r\n:").unwrap();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("+PONG\r\n-ERR Protocol error"), "{told}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn who_sends_no_more_or_too_much_is_ended() {
    let config = ServerConfig {
        stall_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(200),
        request_bytes_max: 1 << 16,
        ..ServerConfig::default()
    };
    let server = Running::start(&database(), config);
    for sent in [&b""[..], b"*2\r\n$3\r\nGET\r\n", b"*1\r\n$99999999\r\n"] {
        let mut stream = server.connect();
        let start = Instant::now();
        stream.write_all(sent).unwrap();
        let mut told = Vec::new();
        stream.read_to_end(&mut told).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    let mut stream = server.connect();
    assert_eq!(exchange(&mut stream, b"PING\r\n", 7), b"+PONG\r\n");
}

#[test]
fn who_leaves_a_transaction_open_is_told_that_it_is_forgotten() {
    let transaction_timeout = Duration::from_millis(100);
    let server = Running::start(
        &database(),
        ServerConfig { transaction_timeout, ..ServerConfig::default() },
    );
    for sent in [&b"WATCH k\r\n"[..], b"MULTI\r\nSET k v\r\n"] {
        let mut stream = server.connect();
        stream.write_all(sent).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let last = told.lines().last().unwrap();
        assert!(last.starts_with("-ERR") && last.contains("within WATCH or MULTI"), "{told}");
    }
}

pub(super) fn is_found(program: &str) -> bool {
    let run = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    let is_found = run.is_ok_and(|status| status.success());
    if !is_found {
        eprintln!("not tested: there is no {program} here");
    }
    is_found
}

#[test]
fn programs_of_redis_run_unchanged() {
    let server = Running::start(&database(), ServerConfig::default());
    let port = server.address.port().to_string();
    if is_found("redis-cli") {
        for (form, expected) in [("-2", "OK\n5\n"), ("-3", "OK\n6\n")] {
            let mut run = Command::new("redis-cli");
            let run = run.args(["-p", &port, form]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = run.spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"SET x 1\nINCRBY n 5\n").unwrap();
            let told = child.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            let expected = if form == "-3" { expected.replace('6', "10") } else { expected.into() };
            assert_eq!(told, expected);
        }
        let told = Command::new("redis-cli").args(["-p", &port, "--scan"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&told.stdout), "n\nx\n");
    }
    if is_found("redis-benchmark") {
        let mut run = Command::new("redis-benchmark");
        run.args(["-p", &port, "-n", "2000", "-P", "16", "-c", "8", "-q"]);
        let told = run.args(["-t", "ping,set,get,incr,mset"]).output().unwrap();
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.status.success() && text.contains("GET: "), "{text}");
        assert!(!String::from_utf8_lossy(&told.stderr).contains("ERR"), "{told:?}");
    }
}

#[test]
fn keys_end_with_the_time_of_a_statement() {
    let database = database();
    let entries = database.bucket("db0").unwrap();
    (0..3_000u32).for_each(|i| entries.put(i.to_le_bytes(), b"v").unwrap());
    let limits = SessionLimits { timeout: Some(Duration::ZERO), ..SessionLimits::default() };
    let session = Session::with(&database, Arc::new(Everything), limits);
    let canceller = session.canceller();
    let mut state = State::alone(session);
    let answer = ask(&mut state, "keys *");
    assert!(answer.starts_with("-ERR the request took longer than 0 ms"), "{answer}");
    canceller.cancel();
    let answer = ask(&mut state, "keys *");
    assert!(answer.starts_with("-ERR the request was cancelled"), "{answer}");
}

#[test]
fn commands_of_many_keys_end_with_the_time_of_a_statement_and_change_nothing() {
    let database = database();
    let entries = database.bucket("db0").unwrap();
    let keys: Vec<String> = (0..3_000).map(|key| format!("k{key}")).collect();
    keys.iter().for_each(|key| entries.put(key, b"v").unwrap());
    let limits = SessionLimits { timeout: Some(Duration::ZERO), ..SessionLimits::default() };
    let mut state = State::alone(Session::with(&database, Arc::new(Everything), limits));
    let request = "-ERR the request took longer than 0 ms|";
    let statement = "-ERR the statement took longer than its timeout of 0 ms: \
                     try again with more time|";
    let (all, pairs) = (keys.join(" "), keys.join(" 1 ") + " 1");
    let fresh = pairs.replace('k', "n");
    for command in [
        format!("mget {all}"),
        format!("exists {all}"),
        format!("del {all}"),
        format!("mset {pairs}"),
        format!("msetnx {fresh}"),
    ] {
        let name = command.split(' ').next().unwrap().to_owned();
        let late = if name == "mset" { statement } else { request };
        assert_eq!(ask(&mut state, &command), late, "{name}");
        // Those before it in the same transaction are not done either.
        let told = ask(&mut state, &format!("multi\r\nset k1 x\r\n{command}\r\nexec"));
        assert_eq!(told, format!("+OK|+QUEUED|+QUEUED|{late}"), "{name}");
        assert_eq!(entries.len().unwrap(), 3_000, "{name}");
        assert!(keys.iter().all(|key| entries.get_copy(key).unwrap().unwrap() == b"v"), "{name}");
    }
    assert_eq!(ask(&mut state, "mget k1 none"), "*2|$1|v|$-1|", "few are not looked at");
}

static COMMITS: AtomicU64 = AtomicU64::new(0);

#[test]
fn writes_that_come_together_are_one_commit() {
    let count = |_| {
        COMMITS.fetch_add(1, Ordering::Relaxed);
    };
    let database = Options::new().on_commits(count).memory().unwrap();
    let mut state = state(&database);
    let (mut sent, mut expected) = (String::new(), String::new());
    for i in 0..1_000 {
        sent += &format!("set k{i} {i}\r\n");
        expected += "+OK\r\n";
    }
    let told = state.answer_all(sent.as_bytes());
    assert_eq!(String::from_utf8(told).unwrap(), expected);
    assert_eq!(database.bucket("db0").unwrap().len().unwrap(), 1_000);
    assert_eq!(COMMITS.swap(0, Ordering::Relaxed), 1);
    let sent = "set n 1\r\nincr n\r\nget n\r\nset t x\r\nincr t\r\nset n 1 nx xx\r\n\
        mset a 1 b 2\r\ndel a none\r\nmget a b\r\nincr n\r\necho e\r\nget n";
    let expected = "+OK|:2|$1|2|+OK|-ERR value is not an integer or out of range|\
        -ERR syntax error|+OK|:1|*2|$-1|$1|2|:3|$1|e|$1|3|";
    assert_eq!(ask(&mut state, sent), expected);
    assert_eq!(COMMITS.swap(0, Ordering::Relaxed), 1);
    // Plain SETs are a batch of their own, whatever comes behind them.
    let sent = "set n 8\r\nset n 9\r\nset m 1\r\nincr n\r\nset m 2\r\nget m";
    assert_eq!(ask(&mut state, sent), "+OK|+OK|+OK|:10|+OK|$1|2|");
    assert_eq!(COMMITS.swap(0, Ordering::Relaxed), 2);
    let sent = "multi\r\nset n 5\r\nincr n\r\nexec\r\nset n 7\r\nget n";
    assert_eq!(ask(&mut state, sent), "+OK|+QUEUED|+QUEUED|*2|+OK|:6|+OK|$1|7|");
    assert_eq!(COMMITS.swap(0, Ordering::Relaxed), 2);
}

#[test]
fn what_the_database_refuses_spoils_nothing_that_came_with_it() {
    let database = database();
    let mut state = state(&database);
    let long = "k".repeat(100_000);
    let put = format!("*5\r\n$4\r\nmset\r\n$1\r\nb\r\n$1\r\n1\r\n$100000\r\n{long}\r\n$1\r\n1");
    let sent = format!("set a 1\r\n{put}\r\nincr a\r\nexists a b");
    let told = ask(&mut state, &sent);
    let parts: Vec<_> = told.split('|').collect();
    assert!(parts[1].starts_with("-ERR"), "{told}");
    assert_eq!((parts[0], parts[2], parts[3]), ("+OK", ":2", ":1"));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn pipelines_that_change_the_same_key_lose_nothing() {
    let directory = Directory::new("resp-same");
    let database = Options::new().open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = server.connect();
            std::thread::spawn(move || {
                for _ in 0..20 {
                    let told =
                        exchange(&mut stream, "SET k v\r\nINCR n\r\n".repeat(16).as_bytes(), 1);
                    assert_eq!(told, b"+");
                    let mut last = String::new();
                    while last.matches(':').count() < 16 || !last.ends_with("\r\n") {
                        last += &String::from_utf8(exchange(&mut stream, b"", 1)).unwrap();
                    }
                    assert!(!last.contains("-ERR"), "{last}");
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let found = database.bucket("db0").unwrap().get_copy(b"n").unwrap();
    assert_eq!(found.unwrap(), b"1280");
}
