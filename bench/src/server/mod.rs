//! `esker-bench server`: rows by key, pipelines, many keys and loads over a socket, beside a server
//! that only sends back what it gets. Server and clients share the machine, and a process.
//!
//! | module | what it defines |
//! |---|---|
//! | `service` | a server with a table, and the one that echoes |
//! | `points` | one request after another, 32 at a time, several connections |
//! | `many` | ten thousand keys a request |
//! | `loads` | bulk loads over one connection |
//! | `parallel_loads` | bulk loads over five connections |
//! | `durable` | writes that wait for the disk, of 64 connections |
//! | `http` | one row a request over HTTP, beside a handler of axum |
//! | `invoices` | invoices of 64 fields over one connection |
//! | `resp` | Redis's protocol, beside Redis |

mod durable;
mod http;
mod invoices;
mod loads;
mod many;
mod parallel_loads;
mod points;
mod resp;
pub(crate) mod service;

use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Unit::{RowsPerSecond, Times};
use crate::rows::{Row, ask, row};
use crate::slate;

/// Commands of `redis-benchmark` beside the same of Redis, as `resp` takes them.
macro_rules! beside_redis {
    ($times:literal) => {
        &[
            ask("SET, × Redis", AtLeast($times), Times, ""),
            ask("GET, × Redis", AtLeast($times), Times, ""),
            ask("SET, pipeline 16, × Redis", AtLeast($times), Times, ""),
            ask("GET, pipeline 16, × Redis", AtLeast($times), Times, ""),
        ]
    };
}

const ECHO: &str = "p50, in echoes";

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("get", &[ask(ECHO, AtMost(1.25), Times, "")], |bench| {
        points::alternate(bench, points::Operation::Get)
    }),
    row("exists", &[ask(ECHO, AtMost(1.25), Times, "")], |bench| {
        points::alternate(bench, points::Operation::Exists)
    }),
    row("update", &[ask(ECHO, AtMost(1.25), Times, "")], |bench| {
        points::alternate(bench, points::Operation::Update)
    }),
    row("delete", &[ask(ECHO, AtMost(1.25), Times, "")], |bench| {
        points::alternate(bench, points::Operation::Delete)
    }),
    row(
        "pipeline",
        &[
            ask("get, 32 deep", AtLeast(500e3), RowsPerSecond, ""),
            ask("exists, 32 deep", AtLeast(500e3), RowsPerSecond, ""),
            ask("update, 32 deep", AtLeast(500e3), RowsPerSecond, ""),
            ask("delete, 32 deep", AtLeast(500e3), RowsPerSecond, ""),
        ],
        points::pipelined,
    ),
    row(
        "parallel",
        &[
            ask("get, 5 connections", AtLeast(120e3), RowsPerSecond, ""),
            ask("update, 5 connections", AtLeast(120e3), RowsPerSecond, ""),
        ],
        points::parallel,
    ),
    row(
        "many-keys",
        &[
            ask("get", AtLeast(2e6), RowsPerSecond, ""),
            ask("exists", AtLeast(3e6), RowsPerSecond, ""),
            ask("upsert", AtLeast(1e6), RowsPerSecond, ""),
            ask("update", AtLeast(1e6), RowsPerSecond, ""),
            ask("delete", AtLeast(1.5e6), RowsPerSecond, ""),
        ],
        many::run,
    ),
    row("bulk-messagepack", &[ask("", AtLeast(2.5e6), RowsPerSecond, "")], loads::packed),
    row("bulk-csv", &[ask("", AtLeast(2.5e6), RowsPerSecond, "")], loads::csv),
    row("bulk-ndjson", &[ask("", AtLeast(1.5e6), RowsPerSecond, "")], loads::ndjson),
    row(
        "bulk-parallel",
        &[
            ask("MessagePack, 5 connections", AtLeast(2.5e6), RowsPerSecond, ""),
            ask("CSV, 5 connections", AtLeast(2.5e6), RowsPerSecond, ""),
            ask("NDJSON, 5 connections", AtLeast(1.5e6), RowsPerSecond, ""),
        ],
        parallel_loads::run,
    ),
    row(
        "durable",
        &[ask("64 connections, × the fsync rate", AtLeast(8.0), Times, "")],
        durable::run,
    ),
    row(
        "invoices",
        &[
            ask("NDJSON, no index", AtLeast(0.35e6), RowsPerSecond, ""),
            ask("NDJSON, 14 indexes", AtLeast(0.2e6), RowsPerSecond, ""),
        ],
        invoices::run,
    ),
    row("slate", slate::wire::ASKED, slate::wire::run),
    row("http-get", &[ask("× a constant of axum", AtLeast(0.8), Times, "")], http::run),
    row("resp-async", beside_redis!(1.0), resp::later),
    row("resp-sync", beside_redis!(2.0), resp::durable),
];
