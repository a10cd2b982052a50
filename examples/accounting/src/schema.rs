//! The tables.
//!
//! Prices are rows that an operator inserts into `prices`: nanodollars a token, from a moment on.
//! What an event costs is computed once, when it is stored, and stays when prices change.

use esker::{Database, Result};
use esker_sql::Sql;

use crate::totals;

/// Nanodollars a token, by model and from when on.
const PRICES: &str = "
    CREATE TABLE IF NOT EXISTS prices (
        model text,
        since timestamp,
        input i64 NOT NULL,
        output i64 NOT NULL,
        cache_read i64 NOT NULL DEFAULT 0,
        cache_creation i64 NOT NULL DEFAULT 0,
        reasoning i64,
        PRIMARY KEY (model, since)
    )";

/// What was answered to requests with an `Idempotency-Key`: the ids are those of their events.
const ANSWERS: &str = "
    CREATE TABLE IF NOT EXISTS answers (
        once text PRIMARY KEY,
        body bytes NOT NULL,
        results json NOT NULL,
        until timestamp
    ) WITH (expires = 'until')";

/// A rate of a model, of its name without a date behind it where it has none by its whole name.
fn rate(field: &str) -> String {
    let dated = "regexp_replace(model, '-[0-9]{4}-?[0-9]{2}-?[0-9]{2}$', '')";
    format!("coalesce(lookup(prices, model, t).{field}, lookup(prices, {dated}, t).{field})")
}

fn events() -> String {
    let [input, output, read, creation, reasoning] =
        ["input", "output", "cache_read", "cache_creation", "reasoning"].map(rate);
    // Of some providers what was read from a cache is not among the input.
    let fresh = "CASE WHEN provider IN ('anthropic', 'bedrock') THEN input_tokens \
                 ELSE greatest(input_tokens - cache_read_input_tokens, 0) END";
    format!(
        "CREATE TABLE IF NOT EXISTS events (
            t timestamp NOT NULL,
            ts_ns i64 NOT NULL,
            model text NOT NULL,
            provider text NOT NULL,
            base_url text,
            input_tokens i64 NOT NULL,
            output_tokens i64 NOT NULL,
            cache_read_input_tokens i64 NOT NULL,
            cache_creation_input_tokens i64 NOT NULL,
            reasoning_tokens i64 NOT NULL,
            other_usage json,
            cost_given i64,
            cost i64 NOT NULL AS (coalesce(
                cost_given,
                ({fresh}) * {input} + output_tokens * {output}
                    + cache_read_input_tokens * {read}
                    + cache_creation_input_tokens * {creation}
                    + reasoning_tokens * coalesce({reasoning}, {output}),
                0)) STORED,
            latency_total_ms i64 NOT NULL,
            latency_ttft_ms i64,
            time_to_close_ms i64,
            method text NOT NULL,
            endpoint text NOT NULL,
            http_status i64,
            source text,
            user_id text,
            api_key_id text,
            tier text NOT NULL,
            org_id text,
            project_id text,
            route_id text NOT NULL,
            flags json NOT NULL,
            error json,
            trace_id text,
            request_id text,
            client_ip text,
            user_agent text,
            metadata json,
            user_tag text,
            session_tag text,
            once text
        ) WITH (
            stream = 't', window = '1 day', ahead = '1 day',
            retention_by = 'tier: free 7 days, pro 90 days'
        )"
    )
}

/// Makes what is not there yet.
///
/// # Errors
/// Those of the database.
pub fn make(db: &Database) -> Result<()> {
    db.sql(PRICES, ())?;
    db.sql(ANSWERS, ())?;
    db.sql(&events(), ())?;
    db.sql("CREATE INDEX IF NOT EXISTS by_once ON events (once)", ())?;
    db.sql("CREATE INDEX IF NOT EXISTS by_user ON events (user_id)", ())?;
    db.sql(&totals::view(), ())?;
    Ok(())
}
