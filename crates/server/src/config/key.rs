//! Every key, once.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use esker::Durability;

use super::quantity::{bytes_text, duration_text};
use super::{Config, LogFormat, Origins, parse_bytes, parse_duration};

/// One thing that can be configured.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file, with the table in front: `http.listen`.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Puts a value, as text, into a configuration.
    pub set: fn(&mut Config, &str) -> Result<(), String>,
    /// The value in a configuration, as text.
    pub get: fn(&Config) -> String,
}

impl Key {
    /// The variable of the environment: `ESKER_HTTP_LISTEN`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("ESKER_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The flag of `esker serve`, without its dashes: `http-listen`.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// True for a key that is on or off.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.takes == SWITCH
    }
}

const ADDRESS: &str = "address:port, or `off`";
const SWITCH: &str = "`true` or `false`";
const PATH: &str = "path, or `off`";
const TIME: &str = "time";
const SIZE: &str = "size";
const NUMBER: &str = "number";
const LIMIT: &str = "number, or `off`";
const SIZE_LIMIT: &str = "size, or `off`";
const TIME_LIMIT: &str = "time, or `off`";

fn optional<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "off" { Ok(None) } else { read(text).map(Some) }
}

fn or_off<T>(value: Option<&T>, write: impl Fn(&T) -> String) -> String {
    value.map_or_else(|| "off".to_owned(), write)
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}"))
}

fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("expected true or false, found {text:?}"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("expected an address such as 127.0.0.1:7437, found {text:?}"))
}

#[allow(clippy::unnecessary_wraps, reason = "a reader like the others")]
fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

fn shown<T: Display>(value: &T) -> String {
    value.to_string()
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.iter().any(String::is_empty) {
        true => Err(format!("expected names with commas between, found {text:?}")),
        false => Ok(names),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    usize::try_from(bytes).map_err(|_| format!("expected fewer bytes than {text}"))
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "sync" => Ok(Durability::Sync),
        _ => match parse_duration(text) {
            Ok(at_most) => Ok(Durability::Async { at_most }),
            Err(e) => Err(format!("expected sync, or a time; {e}")),
        },
    }
}

fn durability_text(durability: Durability) -> String {
    match durability {
        Durability::Sync => "sync".to_owned(),
        Durability::Async { at_most } => duration_text(at_most),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("expected text or json, found {text:?}")),
    }
}

fn log_level(text: &str) -> Result<String, String> {
    match text {
        "error" | "warn" | "info" | "debug" | "trace" | "off" => Ok(text.to_owned()),
        _ => Err(format!("expected off, error, warn, info, debug or trace, found {text:?}")),
    }
}

fn log_format_text(format: LogFormat) -> String {
    match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
    .to_owned()
}

macro_rules! key {
    ($name:literal, $takes:expr, $($field:ident).+, $read:expr, $write:expr, $meaning:literal) => {
        Key {
            name: $name,
            takes: $takes,
            meaning: $meaning,
            set: |config, text| {
                config.$($field).+ = $read(text)?;
                Ok(())
            },
            get: |config| $write(&config.$($field).+),
        }
    };
}

macro_rules! optional_key {
    ($name:literal, $takes:expr, $($field:ident).+, $read:expr, $write:expr, $meaning:literal) => {
        key!(
            $name,
            $takes,
            $($field).+,
            |text| optional(text, $read),
            |value: &Option<_>| or_off(value.as_ref(), $write),
            $meaning
        )
    };
}

#[allow(clippy::ptr_arg, reason = "a writer like the others")]
fn path_text(path: &PathBuf) -> String {
    path.display().to_string()
}

fn time_text(time: &Duration) -> String {
    duration_text(*time)
}

fn size_text(bytes: &usize) -> String {
    bytes_text(u64::try_from(*bytes).unwrap_or(u64::MAX))
}

fn long_size_text(bytes: &u64) -> String {
    bytes_text(*bytes)
}

/// Every key, in the order of the reference.
pub const KEYS: &[Key] = &[
    optional_key!(
        "wire.listen",
        ADDRESS,
        wire_listen,
        address,
        shown,
        "where the wire protocol and JSON lines are served"
    ),
    optional_key!("wire.unix", PATH, wire_unix, path, path_text, "a Unix socket for the same"),
    optional_key!(
        "resp.listen",
        ADDRESS,
        resp_listen,
        address,
        shown,
        "where Redis's protocol is served, onto buckets"
    ),
    key!(
        "resp.buckets",
        "names, with commas between",
        resp_buckets,
        names,
        |names: &Vec<String>| names.join(","),
        "the buckets of its databases, from 0 on"
    ),
    optional_key!("http.listen", ADDRESS, http_listen, address, shown, "where HTTP is served"),
    optional_key!(
        "http.cors_origins",
        "origins with commas between, `*`, or `off`",
        cors_origins,
        Origins::from_str,
        shown,
        "whose pages may ask from another origin, such as `https://app.example.com`; `*`: all"
    ),
    key!(
        "http.cors_credentials",
        SWITCH,
        cors_credentials,
        switch,
        shown,
        "let these pages send cookies and certificates along; a token needs none"
    ),
    key!(
        "insecure_listen",
        SWITCH,
        insecure_listen,
        switch,
        shown,
        "serve addresses that other machines reach without encryption; refused otherwise"
    ),
    key!(
        "trust_local",
        SWITCH,
        trust_local,
        switch,
        shown,
        "let connections from this machine do everything without a token"
    ),
    optional_key!(
        "tls.certificate",
        PATH,
        tls_certificate,
        path,
        path_text,
        "the chain of certificates as PEM; read again when the file changes"
    ),
    optional_key!(
        "tls.key",
        PATH,
        tls_key,
        path,
        path_text,
        "the private key as PEM; read again with the certificate"
    ),
    key!(
        "durability",
        "`sync`, or a time",
        durability,
        durability,
        |d: &Durability| durability_text(*d),
        "when a write is answered: on the disk, or at most that much before it is"
    ),
    key!("memory", SWITCH, memory, switch, shown, "keep everything in memory only"),
    key!(
        "memory_limit",
        SIZE,
        memory_limit_bytes,
        parse_bytes,
        long_size_text,
        "the most memory that one database takes for rows, indexes and loads"
    ),
    key!(
        "threads",
        NUMBER,
        threads,
        number,
        shown,
        "threads that serve connections; 0: one a processor"
    ),
    key!(
        "connections_max",
        NUMBER,
        connections_max,
        number,
        shown,
        "connections at once; more are closed at once"
    ),
    key!(
        "request_bytes_max",
        SIZE,
        request_bytes_max,
        size,
        size_text,
        "bytes of a request that is read as a whole; loads are streamed and have no limit"
    ),
    key!(
        "buffer_bytes_max",
        SIZE,
        buffer_bytes_max,
        size,
        size_text,
        "bytes of requests that are not done and answers that are not read, of all connections \
         together; who finds no room waits, for `stall_timeout` at most"
    ),
    key!(
        "header_bytes_max",
        SIZE,
        header_bytes_max,
        size,
        size_text,
        "bytes of the header of an HTTP request"
    ),
    key!(
        "header_timeout",
        TIME,
        header_timeout,
        parse_duration,
        time_text,
        "how long the header of a request may take to arrive"
    ),
    key!(
        "stall_timeout",
        TIME,
        stall_timeout,
        parse_duration,
        time_text,
        "how long a request may send nothing, or its answer not be taken"
    ),
    key!(
        "idle_timeout",
        TIME,
        idle_timeout,
        parse_duration,
        time_text,
        "how long a connection may be silent between requests"
    ),
    optional_key!(
        "statement_timeout",
        TIME_LIMIT,
        statement_timeout,
        parse_duration,
        time_text,
        "how long a statement may take"
    ),
    key!(
        "transaction_timeout",
        TIME,
        transaction_timeout,
        parse_duration,
        time_text,
        "how long a transaction may be silent before it is rolled back"
    ),
    key!(
        "idempotency_lifetime",
        TIME,
        idempotency_lifetime,
        parse_duration,
        time_text,
        "how long the answer to a request with an Idempotency-Key is kept"
    ),
    key!(
        "drain_timeout",
        TIME,
        drain_timeout,
        parse_duration,
        time_text,
        "how long requests under way have to end when the server stops"
    ),
    optional_key!("limits.rows", LIMIT, limits.rows, number, shown, "rows of a tenant"),
    optional_key!(
        "limits.bytes",
        SIZE_LIMIT,
        limits.bytes,
        parse_bytes,
        long_size_text,
        "bytes of a tenant"
    ),
    optional_key!(
        "limits.requests_per_second",
        LIMIT,
        limits.requests_per_second,
        number,
        shown,
        "requests of a tenant in a second"
    ),
    optional_key!(
        "limits.concurrent_queries",
        LIMIT,
        limits.concurrent_queries,
        number,
        shown,
        "queries of a tenant at once"
    ),
    optional_key!(
        "limits.result_bytes",
        SIZE_LIMIT,
        limits.result_bytes,
        parse_bytes,
        long_size_text,
        "bytes of one answer"
    ),
    optional_key!(
        "limits.memory_bytes",
        SIZE_LIMIT,
        limits.memory_bytes,
        parse_bytes,
        long_size_text,
        "bytes of memory of one query"
    ),
    key!(
        "log.format",
        "`text` or `json`",
        log_format,
        log_format,
        |f: &LogFormat| log_format_text(*f),
        "how log lines are written, to standard error"
    ),
    key!(
        "log.level",
        "`off`, `error`, `warn`, `info`, `debug` or `trace`",
        log_level,
        log_level,
        String::clone,
        "what is logged"
    ),
    key!(
        "slow_query",
        TIME,
        slow_query,
        parse_duration,
        time_text,
        "from when on a statement is slow: logged and listed with its plan"
    ),
];
