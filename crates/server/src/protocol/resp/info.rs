//! INFO: what monitors ask of a server.

use std::fmt::Write;

use esker::{Query, QueryOptions, Value};
use esker_query::model::{Aggregate, Expr, Operator};

use super::call::{Call, Outcome, View};
use super::manage::REDIS_VERSION;

/// The field of a bucket that says when an entry ends.
const EXPIRES_AT: &str = "expires_at";

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let wanted: Vec<_> = (1..call.arguments.len()).map(|position| call.word(position)).collect();
    let all = ["ALL", "DEFAULT", "EVERYTHING"];
    let is_wanted = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|word| word == name || all.contains(&word.as_str()))
    };
    let mut text = String::new();
    if is_wanted("SERVER") {
        let version = env!("CARGO_PKG_VERSION");
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
             esker_version:{version}\r\n\r\n"
        );
    }
    if is_wanted("CLIENTS") {
        let count = call.state.connections();
        let _ = write!(text, "# Clients\r\nconnected_clients:{count}\r\n\r\n");
    }
    if is_wanted("REPLICATION") {
        text.push_str("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
    }
    if is_wanted("KEYSPACE") {
        text.push_str("# Keyspace\r\n");
        for (number, name) in call.state.buckets.iter().enumerate() {
            let Some(Keyspace { keys, expires, ttl_ms }) = keyspace(call, name)? else { continue };
            let _ =
                write!(text, "db{number}:keys={keys},expires={expires},avg_ttl={ttl_ms:.0}\r\n");
        }
    }
    call.reply.verbatim(&text);
    Ok(())
}

/// The keys of a database.
struct Keyspace {
    keys: i64,
    /// Those that end.
    expires: i64,
    /// In how many milliseconds these end, on average.
    ttl_ms: f64,
}

/// What there is in a bucket, all as of one commit; `None` where there is nothing, where it is a
/// table, and where the token does not reach it.
fn keyspace(call: &Call<'_>, name: &str) -> Outcome<Option<Keyspace>> {
    let Ok(View(Some(_))) = call.view_of(name) else { return Ok(None) };
    // Entries end by elapsed time.
    let now = Expr::literal(Value::Timestamp(call.moment()?.elapsed_us));
    let left = Expr::field(EXPIRES_AT).binary(Operator::Subtract, now);
    let mut query = Query::table(name);
    query
        .select(Expr::count())
        .select(Expr::aggregate(Aggregate::Count, Expr::field(EXPIRES_AT)))
        .select(Expr::aggregate(Aggregate::Avg, left));
    let session = call.session()?;
    let options = QueryOptions { limits: session.limits(), ..QueryOptions::default() };
    let found = match call.within {
        Some(transaction) => transaction.query_with(&query, &options)?,
        None => session.database().query_with(&query, &options)?,
    };
    let rows = found.to_rows();
    let Some([Value::Int(keys), Value::Int(expires), left]) = rows.first().map(Vec::as_slice)
    else {
        return Ok(None);
    };
    // Without one that ends there is no mean.
    let left_us = if let Value::Interval(left) = left { left.length_us() } else { 0 };
    let ttl_ms = left_us.max(0) as f64 / 1_000.0;
    Ok((*keys > 0).then_some(Keyspace { keys: *keys, expires: *expires, ttl_ms }))
}
