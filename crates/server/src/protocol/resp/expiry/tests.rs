use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use esker::{Database, Options};
use esker_vfs::{Clock, Environment};

use super::super::state::State;
use super::super::tests::ask;
use crate::Session;

const DAY_US: i64 = 86_400_000_000;
const START_US: i64 = 1_700_000_000_000_000;

/// Time passes when it is told to; the wall clock is wrong by so much.
#[derive(Debug, Default)]
struct HandClock {
    passed_us: AtomicI64,
    wrong_us: AtomicI64,
}

impl HandClock {
    fn pass(&self, seconds: i64) {
        self.passed_us.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    fn step(&self, us: i64) {
        self.wrong_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn wall_us(&self) -> i64 {
        START_US + self.boottime_us() + self.wrong_us.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        Environment::os().clock.monotonic_ns()
    }

    fn boottime_us(&self) -> i64 {
        self.passed_us.load(Ordering::SeqCst)
    }

    fn boot_id(&self) -> Option<u128> {
        Some(1)
    }
}

fn timed() -> (State, Database, Arc<HandClock>) {
    let clock = Arc::new(HandClock::default());
    let environment = Environment { clock: Arc::clone(&clock) as _, ..Environment::os() };
    let database = Options::new().environment(environment).memory().unwrap();
    (State::alone(Session::new(&database)), database, clock)
}

fn check(client: &mut State, pairs: &[(&str, &str)]) {
    for (line, expected) in pairs {
        assert_eq!(ask(client, line), *expected, "{line}");
    }
}

/// What puts an end of a minute, by each form of it.
const MINUTE: [&str; 9] = [
    "SET k v EX 60",
    "SET k v PX 60000",
    "SET k v NX EX 60",
    "SET k v PXAT 1700000060000",
    "SET k v EXAT 1700000060",
    "SETEX k 60 v",
    "SET k v\r\nEXPIRE k 60",
    "SET k v\r\nPEXPIREAT k 1700000060000",
    "SET k v\r\nGETEX k EX 60",
];

#[test]
fn a_minute_is_a_minute_whatever_the_wall_clock_shows() {
    for put in MINUTE {
        for wrong_us in [-4_380 * DAY_US, -300_000_000, 300_000_000, 4_380 * DAY_US] {
            let (mut client, _database, clock) = timed();
            ask(&mut client, "SET first v EX 60");
            clock.step(wrong_us);
            ask(&mut client, put);
            clock.pass(59);
            let there = [("GET k", "$1|v|"), ("TTL k", ":1|"), ("EXISTS first", ":1|")];
            check(&mut client, &there);
            clock.step(-wrong_us);
            check(&mut client, &there);
            clock.pass(1);
            let gone = [("GET k", "$-1|"), ("TTL k", ":-2|"), ("EXISTS first", ":0|")];
            check(&mut client, &gone);
        }
    }
}

#[test]
fn a_lock_has_one_owner_while_the_wall_clock_is_wrong() {
    let (mut client, _database, clock) = timed();
    check(&mut client, &[("SET lock a NX EX 30", "+OK|")]);
    clock.step(4_380 * DAY_US);
    check(&mut client, &[("SET other b", "+OK|"), ("SET lock b NX EX 30", "$-1|")]);
    clock.step(-4_380 * DAY_US);
    check(&mut client, &[("SET lock b NX EX 30", "$-1|"), ("GET lock", "$1|a|")]);
    clock.pass(30);
    check(&mut client, &[("SET lock b NX EX 30", "+OK|")]);
}

/// Elapsed time and date differ: dates are shown and taken as dates.
#[test]
fn ends_are_dates_after_the_date_has_moved() {
    let (mut client, database, clock) = timed();
    ask(&mut client, "SET before v EX 100");
    clock.step(10 * DAY_US);
    database.confirm_clock().unwrap();
    let at = 1_700_000_000 + 10 * 86_400;
    check(
        &mut client,
        &[
            ("EXPIRETIME before", &format!(":{}|", at + 100)),
            ("SET k v EX 60", "+OK|"),
            ("EXPIRETIME k", &format!(":{}|", at + 60)),
            (&format!("EXPIREAT k {}", at + 50), ":1|"),
            ("PTTL k", ":50000|"),
            (&format!("EXPIREAT k {} GT", at + 50), ":0|"),
            (&format!("EXPIREAT k {} GT", at + 51), ":1|"),
            ("APPEND k w", ":2|"),
            (&format!("EXPIREAT k {}", at - 1), ":1|"),
            ("EXISTS k", ":0|"),
        ],
    );
}

#[test]
fn an_exec_has_one_moment() {
    let (mut client, database, clock) = timed();
    ask(&mut client, "SET k v EX 100");
    check(&mut client, &[("MULTI", "+OK|"), ("EXPIRE k 60", "+QUEUED|"), ("PTTL k", "+QUEUED|")]);
    clock.step(-10 * DAY_US);
    database.confirm_clock().unwrap();
    check(&mut client, &[("EXEC", "*2|:1|:60000|")]);
    clock.pass(60);
    check(&mut client, &[("EXISTS k", ":0|")]);
}
