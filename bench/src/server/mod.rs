//! `esker-bench server`: rows by key, pipelines, many keys and loads over a socket, beside a server
//! that only sends back what it gets. Server and clients share the machine, and a process.
//!
//! | module | what it defines |
//! |---|---|
//! | `service` | a server with a table, and the one that echoes |
//! | `points` | one request after another, 32 at a time, several connections |
//! | `many` | ten thousand keys a request |
//! | `loads` | bulk loads over one connection |
//! | `durable` | writes that wait for the disk, of 64 connections |

mod durable;
mod loads;
mod many;
mod points;
pub(crate) mod service;

use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Unit::{RowsPerSecond, Times};
use crate::rows::{Row, ask, row};

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
            ask("update, 32 deep", AtLeast(500e3), RowsPerSecond, ""),
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
            ask("delete", AtLeast(1.5e6), RowsPerSecond, ""),
        ],
        many::run,
    ),
    row("bulk-messagepack", &[ask("", AtLeast(2.5e6), RowsPerSecond, "")], loads::packed),
    row("bulk-csv", &[ask("", AtLeast(2.5e6), RowsPerSecond, "")], loads::csv),
    row("bulk-ndjson", &[ask("", AtLeast(1.5e6), RowsPerSecond, "")], loads::ndjson),
    row(
        "durable",
        &[ask("64 connections, × the fsync rate", AtLeast(8.0), Times, "")],
        durable::run,
    ),
];
