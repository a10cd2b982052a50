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
    /// What it takes, and whether `off` in its place.
    pub takes: (&'static str, bool),
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
        self.takes == SWITCH.takes()
    }
}

/// The keys that a running server goes by once it has read its configuration again; what they say
/// of sessions and tenants holds for those that come.
const LIVE: [&str; 4] = ["trust_local", "statement_timeout", "slow_query", "log.level"];

/// Whether a running server goes by another value of a key, or must be started anew for it.
#[must_use]
pub fn is_live(name: &str) -> bool {
    LIVE.contains(&name) || name.starts_with("limits.")
}

/// A kind of values: what users read that a key takes, and how a value is read and written.
struct Kind<T> {
    takes: &'static str,
    read: fn(&str) -> Result<T, String>,
    write: fn(&T) -> String,
}

/// A kind of values in place of any of which `off` may be said.
struct OrOff<T>(Kind<T>);

impl<T> Kind<T> {
    const fn or_off(self) -> OrOff<T> {
        OrOff(self)
    }

    const fn takes(&self) -> (&'static str, bool) {
        (self.takes, false)
    }

    fn read(&self, text: &str) -> Result<T, String> {
        (self.read)(text)
    }

    fn write(&self, value: &T) -> String {
        (self.write)(value)
    }
}

impl<T> OrOff<T> {
    const fn takes(&self) -> (&'static str, bool) {
        (self.0.takes, true)
    }

    fn read(&self, text: &str) -> Result<Option<T>, String> {
        if text == "off" { Ok(None) } else { self.0.read(text).map(Some) }
    }

    fn write(&self, value: &Option<T>) -> String {
        value.as_ref().map_or_else(|| "off".to_owned(), |value| self.0.write(value))
    }
}

const fn number<T: FromStr + Display>() -> Kind<T> {
    Kind {
        takes: "number",
        read: |text| text.parse().map_err(|_| format!("expected a number, found {text:?}")),
        write: T::to_string,
    }
}

const fn size<T: TryFrom<u64> + TryInto<u64> + Copy>() -> Kind<T> {
    Kind {
        takes: "size",
        read: |text| {
            let bytes = parse_bytes(text)?.try_into();
            bytes.map_err(|_| format!("expected fewer bytes than {text}"))
        },
        write: |bytes| bytes_text((*bytes).try_into().unwrap_or(u64::MAX)),
    }
}

const NUMBER: Kind<usize> = number();
const COUNT: Kind<u64> = number();
const SIZE: Kind<usize> = size();
const LONG_SIZE: Kind<u64> = size();
const SWITCH: Kind<bool> = Kind {
    takes: "`true` or `false`",
    read: |text| text.parse().map_err(|_| format!("expected true or false, found {text:?}")),
    write: bool::to_string,
};
const ADDRESS: Kind<SocketAddr> = Kind {
    takes: "address:port",
    read: |text| {
        let address = text.parse();
        address.map_err(|_| format!("expected an address such as 127.0.0.1:7437, found {text:?}"))
    },
    write: SocketAddr::to_string,
};
const PATH: Kind<PathBuf> = Kind {
    takes: "path",
    read: |text| Ok(PathBuf::from(text)),
    write: |path| path.display().to_string(),
};
const TIME: Kind<Duration> =
    Kind { takes: "time", read: parse_duration, write: |time| duration_text(*time) };
const ORIGINS: Kind<Origins> = Kind {
    takes: "origins with commas between, `*`",
    read: Origins::from_str,
    write: Origins::to_string,
};
const NAMES: Kind<Vec<String>> = Kind {
    takes: "names, with commas between",
    read: |text| {
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match names.iter().any(String::is_empty) {
            true => Err(format!("expected names with commas between, found {text:?}")),
            false => Ok(names),
        }
    },
    write: |names| names.join(","),
};
const DURABILITY: Kind<Durability> = Kind {
    takes: "`sync`, or a time",
    read: |text| match text {
        "sync" => Ok(Durability::Sync),
        _ => match parse_duration(text) {
            Ok(at_most) => Ok(Durability::Async { at_most }),
            Err(e) => Err(format!("expected sync, or a time; {e}")),
        },
    },
    write: |durability| match durability {
        Durability::Sync => "sync".to_owned(),
        Durability::Async { at_most } => duration_text(*at_most),
    },
};
const LOG_FORMAT: Kind<LogFormat> = Kind {
    takes: "`text` or `json`",
    read: |text| match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("expected text or json, found {text:?}")),
    },
    write: |format| format!("{format:?}").to_lowercase(),
};
const LOG_LEVEL: Kind<String> = Kind {
    takes: "`off`, `error`, `warn`, `info`, `debug` or `trace`",
    read: |text| match text {
        "error" | "warn" | "info" | "debug" | "trace" | "off" => Ok(text.to_owned()),
        _ => Err(format!("expected off, error, warn, info, debug or trace, found {text:?}")),
    },
    write: String::clone,
};

macro_rules! keys {
    ($($name:literal = $($field:ident).+: $kind:expr, $meaning:literal;)*) => {
        /// Every key, in the order of the reference.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name,
            takes: $kind.takes(),
            meaning: $meaning,
            set: |config, text| $kind.read(text).map(|value| config.$($field).+ = value),
            get: |config| $kind.write(&config.$($field).+),
        }),*];
    };
}

// A key, its place in a configuration, what it takes, and what it means.
keys! {
    "wire.listen" = wire_listen: ADDRESS.or_off(),
        "where the wire protocol and JSON lines are served";
    "wire.unix" = wire_unix: PATH.or_off(), "a Unix socket for the same";
    "resp.listen" = resp_listen: ADDRESS.or_off(), "where Redis's protocol is served, onto buckets";
    "resp.buckets" = resp_buckets: NAMES, "the buckets of its databases, from 0 on";
    "http.listen" = http_listen: ADDRESS.or_off(), "where HTTP is served";
    "http.cors_origins" = cors_origins: ORIGINS.or_off(),
        "whose pages may ask from another origin, such as `https://app.example.com`; `*`: all";
    "http.cors_credentials" = cors_credentials: SWITCH,
        "let these pages send cookies and certificates along; a token needs none";
    "insecure_listen" = insecure_listen: SWITCH,
        "serve addresses that other machines reach without encryption; refused otherwise";
    "trust_local" = trust_local: SWITCH,
        "let connections from this machine do everything without a token";
    "tls.certificate" = tls_certificate: PATH.or_off(),
        "the chain of certificates as PEM; read again when the file changes";
    "tls.key" = tls_key: PATH.or_off(), "the private key as PEM; read again with the certificate";
    "files_dir" = files_dir: PATH.or_off(),
        "the directory below which statements read and write files, with a token for `admin`; that \
         of another tenant than `default` is below it, by the tenant's name";
    "durability" = durability: DURABILITY,
        "when a write is answered: on the disk, or at most that much before it is";
    "memory" = memory: SWITCH, "keep everything in memory only";
    "memory_limit" = memory_limit_bytes: LONG_SIZE,
        "the most memory that one database takes for rows, indexes and loads";
    "temporary_memory_limit" = temporary_memory_limit_bytes: LONG_SIZE.or_off(),
        "the most of it that the temporary tables of one session take; `off`: a quarter";
    "threads" = threads: NUMBER, "threads that serve connections; 0: one a processor";
    "connections_max" = connections_max: NUMBER, "connections at once; more are closed at once";
    "request_bytes_max" = request_bytes_max: SIZE,
        "bytes of a request that is read as a whole; loads are streamed and have no limit";
    "buffer_bytes_max" = buffer_bytes_max: SIZE,
        "bytes of requests that are not done and answers that are not read, of all connections \
         together; who finds no room waits, for `stall_timeout` at most";
    "header_bytes_max" = header_bytes_max: SIZE, "bytes of the header of an HTTP request";
    "header_timeout" = header_timeout: TIME, "how long the header of a request may take to arrive";
    "stall_timeout" = stall_timeout: TIME,
        "how long a request may send nothing, or its answer not be taken";
    "idle_timeout" = idle_timeout: TIME, "how long a connection may be silent between requests";
    "statement_timeout" = statement_timeout: TIME.or_off(), "how long a statement may take";
    "transaction_timeout" = transaction_timeout: TIME,
        "how long a transaction may be silent before it is rolled back";
    "idempotency_lifetime" = idempotency_lifetime: TIME,
        "how long the answer to a request with an Idempotency-Key is kept";
    "drain_timeout" = drain_timeout: TIME,
        "how long requests under way have to end when the server stops";
    "limits.rows" = limits.rows: COUNT.or_off(), "rows of a tenant";
    "limits.bytes" = limits.bytes: LONG_SIZE.or_off(), "bytes of a tenant";
    "limits.requests_per_second" = limits.requests_per_second: COUNT.or_off(),
        "requests of a tenant in a second";
    "limits.events_per_second" = limits.events_per_second: COUNT.or_off(),
        "events of a tenant in a second";
    "limits.concurrent_queries" = limits.concurrent_queries: COUNT.or_off(),
        "queries of a tenant at once";
    "limits.result_bytes" = limits.result_bytes: LONG_SIZE.or_off(), "bytes of one answer";
    "limits.memory_bytes" = limits.memory_bytes: LONG_SIZE.or_off(),
        "bytes of memory of one query";
    "log.format" = log_format: LOG_FORMAT, "how log lines are written, to standard error";
    "log.level" = log_level: LOG_LEVEL, "what is logged";
    "slow_query" = slow_query: TIME,
        "from when on a statement is slow: logged and listed with its plan";
}
