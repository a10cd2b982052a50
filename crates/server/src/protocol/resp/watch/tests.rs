use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use esker::{Database, Durability, Options};
use esker_vfs::{Clock, Environment};

use super::super::state::State;
use super::super::tests::{Directory, Running, ask, framed};
use crate::{ServerConfig, Session};

/// A clock that is set by hand.
#[derive(Debug)]
struct HandClock(AtomicI64);

impl HandClock {
    fn forward(&self, ms: i64) {
        self.0.fetch_add(ms * 1_000, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn wall_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        Environment::os().clock.monotonic_ns()
    }

    fn boottime_us(&self) -> i64 {
        self.wall_us()
    }

    fn boot_id(&self) -> Option<u128> {
        Some(1)
    }
}

/// A database, and connections to it, that go by one clock.
struct Timed {
    database: Database,
    clock: Arc<HandClock>,
}

impl Timed {
    fn new() -> Self {
        let clock = Arc::new(HandClock(1_700_000_000_000_000.into()));
        let environment = Environment { clock: Arc::clone(&clock) as _, ..Environment::os() };
        let database = Options::new().environment(environment).memory().unwrap();
        Self { database, clock }
    }

    fn connect(&self) -> State {
        State::alone(Session::new(&self.database))
    }
}

/// Commands that meet a key which has expired, what each answers, and what `GET` and `TTL` find
/// afterwards.
const OF_EXPIRED: [(&str, &str, &str, &str); 24] = [
    ("INCR k", ":1|", "$1|1|", ":-1|"),
    ("DECRBY k 2", ":-2|", "$2|-2|", ":-1|"),
    ("INCRBYFLOAT k 1.5", "$3|1.5|", "$3|1.5|", ":-1|"),
    ("APPEND k b", ":1|", "$1|b|", ":-1|"),
    ("SETRANGE k 1 x", ":2|", "$2|\0x|", ":-1|"),
    ("SETRANGE k 0 \"\"", ":0|", "$-1|", ":-2|"),
    ("RENAME k l", "-ERR no such key|", "$-1|", ":-2|"),
    ("RENAMENX l k", ":1|", "$1|L|", ":-1|"),
    ("GETSET k 2", "$-1|", "$1|2|", ":-1|"),
    ("SET k 2 GET", "$-1|", "$1|2|", ":-1|"),
    ("SET k 2 KEEPTTL", "+OK|", "$1|2|", ":-1|"),
    ("SET k 2 XX", "$-1|", "$-1|", ":-2|"),
    ("SET k 2 NX", "+OK|", "$1|2|", ":-1|"),
    ("SETNX k 2", ":1|", "$1|2|", ":-1|"),
    ("MSETNX k 2 m 3", ":1|", "$1|2|", ":-1|"),
    ("EXPIRE k 100", ":0|", "$-1|", ":-2|"),
    ("PEXPIREAT k 9000000000000", ":0|", "$-1|", ":-2|"),
    ("PERSIST k", ":0|", "$-1|", ":-2|"),
    ("DEL k", ":0|", "$-1|", ":-2|"),
    ("GETEX k EX 100", "$-1|", "$-1|", ":-2|"),
    ("GETDEL k", "$-1|", "$-1|", ":-2|"),
    ("MGET k l", "*2|$-1|$1|L|", "$-1|", ":-2|"),
    ("STRLEN k", ":0|", "$-1|", ":-2|"),
    ("EXISTS k", ":0|", "$-1|", ":-2|"),
];

/// What was done by the time of WATCH was acknowledged, and gone at once.
#[test]
fn exec_is_of_its_own_time() {
    for (command, answer, value, ttl) in OF_EXPIRED {
        for watched in ["other", "k"] {
            let timed = Timed::new();
            let mut client = timed.connect();
            ask(&mut client, "SET k 1 PX 50\r\nSET l L");
            assert_eq!(ask(&mut client, &format!("WATCH {watched}")), "+OK|");
            timed.clock.forward(300);
            ask(&mut client, "MULTI");
            assert_eq!(ask(&mut client, command), "+QUEUED|");
            let expected = match watched {
                "k" => "*-1|".to_owned(),
                _ => format!("*1|{answer}"),
            };
            assert_eq!(ask(&mut client, "EXEC"), expected, "{command}, {watched} watched");
            let found = [ask(&mut client, "GET k"), ask(&mut client, "TTL k")];
            let expected = if watched == "k" { ["$-1|", ":-2|"] } else { [value, ttl] };
            assert_eq!(found, expected, "{command}, {watched} watched");
        }
    }
}

/// RENAME removed the key and failed to put the new one; DEL removed those before a long one.
#[test]
fn a_command_that_fails_within_exec_changes_nothing() {
    let mut client = Timed::new().connect();
    let long = "k".repeat(70_000);
    for command in
        [format!("rename a {long}"), format!("del a {long}"), format!("msetnx c 1 {long} 2")]
    {
        assert_eq!(ask(&mut client, "set a 1"), "+OK|");
        for line in ["multi", &command, "set b 2", "append b 3"] {
            ask(&mut client, &framed(line));
        }
        let told = ask(&mut client, "exec");
        assert!(told.starts_with("*3|-ERR") && told.ends_with("|+OK|:2|"), "{told}");
        assert_eq!(ask(&mut client, "mget a b c"), "*3|$1|1|$2|23|$-1|", "{command:.10}");
    }
}

/// What happens between WATCH and MULTI, and whether EXEC does nothing then. Lines with `a:` are of
/// the connection that watches, the others of another.
const BETWEEN: [(&str, &str, bool); 33] = [
    ("there", "PING", false),
    ("there", "SET there x", true),
    ("there", "SET other x", false),
    ("there", "DEL there", true),
    ("there", "DEL there;SET there 1", true),
    ("there", "GET there;TOUCH there;GETEX there;STRLEN there", false),
    ("there", "SET there x NX;SETNX there x;MSETNX there x more y;EXPIRE there 1 XX", false),
    ("there", "RENAME there there;PERSIST there;SETRANGE there 0 \"\";INCR there", false),
    ("there", "APPEND there \"\"", true),
    ("there", "EXPIRE there 100", true),
    ("there", "GETEX there EX 100", true),
    ("there", "EXPIRE there -1", true),
    ("there", "RENAME there more", true),
    ("there", "RENAME other there", true),
    ("there", "FLUSHDB", true),
    ("there", "FLUSHDB;SET there abc", true),
    ("there", "a:SET there x", true),
    ("there", "a:GETDEL there", true),
    ("there", "a:SELECT 1;a:SET there x", false),
    ("there", "a:SELECT 1;SET there x", true),
    ("there", "a:UNWATCH;SET there x", false),
    ("there", "a:MULTI;a:DISCARD;SET there x", false),
    ("there", "a:RESET;SET there x", false),
    ("there", "a:WATCH missing;SET there x", true),
    ("there", "a:WATCH other;SET other x", true),
    ("there", "SET other x;a:WATCH other", false),
    ("there", "SET there x;a:WATCH there", true),
    ("missing", "FLUSHDB", false),
    ("missing", "DEL missing;EXPIRE missing 10;GETDEL missing", false),
    ("missing", "SET missing 1", true),
    ("missing", "a:SET missing 1", true),
    ("missing", "SET missing 1;DEL missing", true),
    ("missing", "FLUSHDB;SET missing 1", true),
];

#[test]
fn a_key_that_is_watched_has_to_stay_as_it_was() {
    for (watched, between, is_null) in BETWEEN {
        let timed = Timed::new();
        let (mut a, mut b) = (timed.connect(), timed.connect());
        ask(&mut b, "MSET there abc other x");
        assert_eq!(ask(&mut a, &format!("WATCH {watched}")), "+OK|");
        for line in between.split(';') {
            match line.strip_prefix("a:") {
                Some(line) => ask(&mut a, line),
                None => ask(&mut b, line),
            };
        }
        let told = ask(&mut a, "MULTI\r\nPING\r\nEXEC");
        let expected = if is_null { "+OK|+QUEUED|*-1|" } else { "+OK|+QUEUED|*1|+PONG|" };
        assert_eq!(told, expected, "WATCH {watched}: {between}");
        // Nothing is watched any more.
        ask(&mut b, &format!("SET {watched} again"));
        assert_eq!(ask(&mut a, "MULTI\r\nPING\r\nEXEC"), "+OK|+QUEUED|*1|+PONG|", "{between}");
    }
}

#[test]
fn a_key_that_had_expired_when_it_was_watched_is_missing() {
    for (between, is_null) in [("PING", false), ("FLUSHDB", false), ("SET k 2", true)] {
        let timed = Timed::new();
        let (mut a, mut b) = (timed.connect(), timed.connect());
        ask(&mut b, "SET k 1 PX 50");
        timed.clock.forward(100);
        ask(&mut a, "WATCH k");
        ask(&mut b, between);
        let told = ask(&mut a, "MULTI\r\nINCR n\r\nEXEC");
        assert_eq!(told.ends_with("*-1|"), is_null, "{between}: {told}");
    }
}

#[test]
fn watching_makes_no_bucket() {
    let timed = Timed::new();
    let (mut a, mut b) = (timed.connect(), timed.connect());
    assert_eq!(ask(&mut a, "WATCH k"), "+OK|");
    assert!(timed.database.buckets().is_empty());
    assert_eq!(ask(&mut a, "MULTI\r\nGET k\r\nEXEC"), "+OK|+QUEUED|*1|$-1|");
    ask(&mut a, "WATCH k");
    assert_eq!(ask(&mut b, "SET k 1"), "+OK|");
    assert_eq!(ask(&mut a, "MULTI\r\nGET k\r\nEXEC"), "+OK|+QUEUED|*-1|");
    ask(&mut a, "WATCH k");
    timed.database.drop_bucket("db0").unwrap();
    assert_eq!(ask(&mut a, "MULTI\r\nGET k\r\nEXEC"), "+OK|+QUEUED|*-1|");
}

#[test]
fn answers_of_exec_have_the_form_that_is_chosen() {
    let timed = Timed::new();
    let (mut a, mut b) = (timed.connect(), timed.connect());
    ask(&mut a, "HELLO 3");
    let told = ask(&mut a, "MULTI\r\nGET k\r\nCONFIG GET save\r\nCOMMAND INFO get none\r\nEXEC");
    let told = told.strip_prefix("+OK|+QUEUED|+QUEUED|+QUEUED|*3|_|%1|$4|save|$0||*2|*10|");
    assert!(
        told.is_some_and(|rest| rest.contains("|~2|+readonly|+fast|") && rest.ends_with("*0|_|"))
    );
    // It is chosen where HELLO is among the commands.
    let told = ask(&mut a, "MULTI\r\nGET k\r\nHELLO 2\r\nGET k\r\nEXEC\r\nGET k");
    assert!(told.starts_with("+OK|+QUEUED|+QUEUED|+QUEUED|*3|_|*14|$6|server|"), "{told}");
    assert!(told.ends_with("*0|$-1|$-1|"), "{told}");
    // And stays as it was where nothing was done.
    ask(&mut a, "WATCH k");
    ask(&mut b, "SET k 1");
    let told = ask(&mut a, "MULTI\r\nHELLO 3 SETNAME new\r\nSELECT 1\r\nEXEC\r\nGET none\r\nGET k");
    assert_eq!(told, "+OK|+QUEUED|+QUEUED|*-1|$-1|$1|1|");
    assert_eq!(ask(&mut a, "CLIENT GETNAME"), "$-1|");
    let told = ask(&mut a, "MULTI\r\nHELLO 9\r\nHELLO x\r\nAUTH a b c d\r\nEXEC");
    let refused = "*3|-NOPROTO unsupported protocol version|\
        -ERR Protocol version is not an integer or out of range|-ERR syntax error|";
    assert_eq!(told, format!("+OK|+QUEUED|+QUEUED|+QUEUED|{refused}"));
    assert_eq!(ask(&mut a, "HELLO 3\r\nWATCH k").split('|').next_back(), Some(""));
    ask(&mut b, "SET k 2");
    assert_eq!(ask(&mut a, "MULTI\r\nEXEC"), "+OK|_|");
    assert_eq!(ask(&mut a, "MULTI\r\nSET k 3\r\nRESET\r\nEXEC"), {
        "+OK|+QUEUED|+RESET|-ERR EXEC without MULTI|"
    });
    assert_eq!(ask(&mut a, "GET none"), "$-1|", "the second form again");
    assert_eq!(ask(&mut a, "MULTI\r\nSET k 3\r\nQUIT\r\nPING"), "+OK|+QUEUED|+OK|");
    assert_eq!(ask(&mut b, "GET k"), "$1|2|");
}

#[test]
fn info_counts_keys_that_end_and_how_long_they_are_there() {
    let timed = Timed::new();
    let mut client = timed.connect();
    let info = |client: &mut State, expected: &str| {
        let told = ask(client, "INFO keyspace");
        assert_eq!(told.split('|').nth(2).unwrap(), expected);
    };
    ask(&mut client, "MSET a 1 b 2\r\nSET c 3 PX 1000\r\nSET d 4 PX 3000");
    info(&mut client, "db0:keys=4,expires=2,avg_ttl=2000");
    timed.clock.forward(600);
    info(&mut client, "db0:keys=4,expires=2,avg_ttl=1400");
    timed.clock.forward(600);
    info(&mut client, "db0:keys=3,expires=1,avg_ttl=1800");
    ask(&mut client, "PERSIST d\r\nSELECT 1\r\nSET e 5 PXAT 9223372036854775807");
    let told = ask(&mut client, "INFO keyspace");
    let of_both = "|db0:keys=3,expires=0,avg_ttl=0|db1:keys=1,expires=1,avg_ttl=922167";
    assert!(told.contains(of_both), "{told}");
    let told = ask(&mut client, "MULTI\r\nSELECT 0\r\nEXPIRE a 10\r\nINFO keyspace\r\nEXEC");
    assert!(told.contains("|db0:keys=3,expires=1,avg_ttl=10000|"), "{told}");
}

/// A `SELECT` that is refused changes nothing of which bucket the others put into.
#[test]
fn a_refused_select_within_exec_lets_others_make_their_bucket() {
    let timed = Timed::new();
    let mut client = timed.connect();
    let told = ask(&mut client, "MULTI\r\nSELECT 99\r\nSET k v\r\nSELECT x\r\nGET k\r\nEXEC");
    let refused = ["-ERR DB index is out of range", "-ERR value is not an integer or out of range"];
    assert!(told.ends_with(&format!("*4|{}|+OK|{}|$1|v|", refused[0], refused[1])), "{told}");
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// A value that is not on the disk yet when another watches it must not be missed, and of two that
/// have read the same value one wins.
#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn no_increment_by_watch_is_lost() {
    const CLIENTS: usize = 4;
    const EACH: usize = 50;
    let directory = Directory::new("resp-watch");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut stream = server.connect();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut done = 0;
                while done < EACH {
                    stream.write_all(b"WATCH n\r\n").unwrap();
                    assert_eq!(line(&mut reader), "+OK");
                    stream.write_all(b"GET n\r\n").unwrap();
                    let n = match line(&mut reader).as_str() {
                        "$-1" => 0,
                        _ => line(&mut reader).parse::<usize>().unwrap(),
                    };
                    let set = format!("MULTI\r\nSET n {}\r\nEXEC\r\n", n + 1);
                    stream.write_all(set.as_bytes()).unwrap();
                    assert_eq!([line(&mut reader), line(&mut reader)], ["+OK", "+QUEUED"]);
                    match line(&mut reader).as_str() {
                        "*-1" => {}
                        "*1" => {
                            assert_eq!(line(&mut reader), "+OK");
                            done += 1;
                        }
                        other => panic!("{other}"),
                    }
                }
            });
        }
    });
    let found = database.bucket("db0").unwrap().get_copy(b"n").unwrap().unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), (CLIENTS * EACH).to_string());
}
