//! Clients that speak HTTP.

use super::http::{Answer, Http};
use super::line::{Kind, Line, events, load_text, transfer, value};
use super::{Ended, Outcome};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const CSV: (&str, &str) = ("content-type", "text/csv");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Entries of a bucket, as raw bytes.
pub(super) fn put_entries(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut http = Http::connect(address)?;
    loop {
        let n = line.begin();
        let path = format!("/buckets/entries/entries/{}.{n}", line.client);
        let bytes = value(seed, line.client, n);
        http.ask("PUT", &path, &[("content-type", "application/octet-stream")], &bytes)?
            .expect(201)?;
        line.answer();
    }
}

/// Bodies of many rows.
pub(super) fn load_bodies(line: &mut Line, address: &str) -> Outcome {
    let mut http = Http::connect(address)?;
    loop {
        let n = line.begin();
        let is_csv = n % 2 == 0;
        let body = load_text(is_csv, line.client, n);
        let media = if is_csv { CSV } else { NDJSON };
        http.ask("POST", "/tables/loads/rows", &[media], body.as_bytes())?.expect(200)?;
        line.answer();
    }
}

/// Money from one account to another, and a row about each end of it, in one transaction.
pub(super) fn transfer_money(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut http = Http::connect(address)?;
    loop {
        let n = line.begin();
        while !transfer_once(&mut http, line, n, seed)? {
            line.counts.conflicts += 1;
        }
        line.answer();
    }
}

/// False when somebody else was quicker.
fn transfer_once(http: &mut Http, line: &Line, n: i64, seed: u64) -> Result<bool, Ended> {
    let begun = http.ask("POST", "/transactions", &[JSON], b"{}")?.expect(201)?;
    let id = begun.body.split('"').nth(3).unwrap_or_default().to_owned();
    let moved = transfer(seed, line.client, n);
    let client = line.client;
    let statements = [
        format!(
            "UPDATE accounts SET balance = balance - {} WHERE id = {}",
            moved.amount, moved.from
        ),
        format!("UPDATE accounts SET balance = balance + {} WHERE id = {}", moved.amount, moved.to),
        format!("INSERT INTO debits VALUES ({client}, {n}, {}, {})", moved.from, moved.amount),
        format!("INSERT INTO credits VALUES ({client}, {n}, {}, {})", moved.to, moved.amount),
    ];
    let within = ("esker-transaction", id.as_str());
    let sql = ("content-type", "application/sql");
    let path = format!("/transactions/{id}");
    for statement in statements {
        let answer = http.ask("POST", "/query", &[sql, within], statement.as_bytes())?;
        if is_conflict(&answer) {
            http.ask("DELETE", &path, &[], b"")?;
            return Ok(false);
        }
        answer.expect(200)?;
    }
    let answer = http.ask("POST", &format!("{path}/commit"), &[], b"")?;
    if is_conflict(&answer) {
        return Ok(false);
    }
    answer.expect(204)?;
    Ok(true)
}

fn is_conflict(answer: &Answer) -> bool {
    answer.status == 409 && answer.body.contains("\"conflict\"")
}

/// Writes with an idempotency key. What the last server left unanswered is sent again first.
pub(super) fn write_once(line: &mut Line, address: &str) -> Outcome {
    let mut http = Http::connect(address)?;
    if line.sent > line.answered {
        send(&mut http, line, line.answered, false)?.expect(200)?;
        line.answer();
        line.counts.retried += 1;
    }
    if line.answered > 0 {
        expect_once(&mut http, line)?;
        send(&mut http, line, line.answered - 1, true)?.expect(422)?;
        line.counts.refused += 1;
    }
    loop {
        let n = line.begin();
        send(&mut http, line, n, false)?.expect(200)?;
        line.answer();
    }
}

/// Sends operation `n`, or another one with its key.
fn send(http: &mut Http, line: &Line, n: i64, is_other: bool) -> Result<Answer, Ended> {
    let client = line.client;
    let key = format!("{client}-{n}");
    let key = ("idempotency-key", key.as_str());
    if line.kind == Kind::OnceLoads {
        let body = events(client, if is_other { n + 1 } else { n });
        return http.ask("POST", "/tables/events/rows", &[NDJSON, key], body.as_bytes());
    }
    let by = if is_other { 2 } else { 1 };
    let body = format!("{{\"sql\":\"UPDATE counters SET n = n + {by} WHERE id = {client}\"}}");
    http.ask("POST", "/query", &[JSON, key], body.as_bytes())
}

/// All that was answered was done once, and nothing else.
fn expect_once(http: &mut Http, line: &Line) -> Result<(), Ended> {
    let client = line.client;
    let (question, each) = match line.kind {
        Kind::OnceLoads => (format!("SELECT count(*) FROM events WHERE client = {client}"), 10),
        _ => (format!("SELECT n FROM counters WHERE id = {client}"), 1),
    };
    let answer = http
        .ask("POST", "/query", &[("content-type", "application/sql")], question.as_bytes())?
        .expect(200)?;
    let expected = format!(":{}}}", line.answered * each);
    match answer.body.contains(&expected) {
        true => Ok(()),
        false => {
            let found = answer.body;
            Err(Ended::Wrong(format!("{question}: expected {expected}, found {found}")))
        }
    }
}
