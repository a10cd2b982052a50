//! `esker-bench streams`: events over HTTP, in turn with a server of keplor's shape and with a
//! constant of axum; many at once; what is stored of them.
//!
//! | module | what it defines |
//! |---|---|
//! | `event` | the events |
//! | `client` | many connections on one thread |
//! | `stand_in` | a server that flushes a file every 50 ms, and one that answers a constant |
//! | `sides` | both servers beside each other |
//! | `requests` | one event, or a hundred, a request |
//! | `bulk` | lines of JSON, and calls in process |
//! | `wire` | rows, columns and tails of the wire protocol |
//! | `stored` | bytes, pages, sums, the end of a window |

mod bulk;
mod client;
mod event;
mod requests;
mod sides;
mod stand_in;
mod stored;
mod wire;

use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Unit::{Bytes, Count, Microseconds, RowsPerSecond, Times};
use crate::rows::{Row, ask, once, row};

const STAND_IN: &str = "× the stand-in";

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row(
        "async-256",
        &[
            ask(STAND_IN, AtLeast(2.0), Times, ""),
            ask("× a constant of axum", AtLeast(0.55), Times, ""),
            ask("p99", AtMost(7_000.0), Microseconds, ""),
        ],
        requests::later,
    ),
    row(
        "durable-1",
        &[
            ask("p50, in syncs and an echo", AtMost(1.3), Times, ""),
            ask(STAND_IN, AtLeast(25.0), Times, ""),
        ],
        requests::alone,
    ),
    row(
        "durable-16",
        &[ask(STAND_IN, AtLeast(25.0), Times, ""), ask("p99", AtMost(12_000.0), Microseconds, "")],
        |bench| requests::durable(bench, 16),
    ),
    row(
        "durable-64",
        &[ask(STAND_IN, AtLeast(20.0), Times, ""), ask("p99", AtMost(12_000.0), Microseconds, "")],
        |bench| requests::durable(bench, 64),
    ),
    row(
        "durable-512",
        &[ask(STAND_IN, AtLeast(2.0), Times, ""), ask("p99", AtMost(12_000.0), Microseconds, "")],
        |bench| requests::durable(bench, 512),
    ),
    row(
        "batches-4",
        &[ask(STAND_IN, AtLeast(2.0), Times, ""), ask("", AtLeast(260e3), RowsPerSecond, "")],
        |bench| requests::batches(bench, 4),
    ),
    row(
        "batches-16",
        &[ask(STAND_IN, AtLeast(2.0), Times, ""), ask("", AtLeast(260e3), RowsPerSecond, "")],
        |bench| requests::batches(bench, 16),
    ),
    row(
        "batches-64",
        &[ask(STAND_IN, AtLeast(2.0), Times, ""), ask("", AtLeast(260e3), RowsPerSecond, "")],
        |bench| requests::batches(bench, 64),
    ),
    row("visible", &[ask("not seen by the next query", AtMost(0.0), Count, "")], requests::visible),
    row("lines", &[ask("", AtLeast(0.8e6), RowsPerSecond, "")], bulk::lines),
    row("wire-rows", &[ask("", AtLeast(0.8e6), RowsPerSecond, "")], wire::rows),
    row("wire-columns", &[ask("", AtLeast(1.2e6), RowsPerSecond, "")], wire::columns),
    row(
        "tail",
        &[ask("p99 beyond a sync, at 50 k/s", AtMost(2_000.0), Microseconds, "")],
        wire::tail,
    ),
    row("embedded", &[ask("calls of 4,096", AtLeast(1.144e6), RowsPerSecond, "")], bulk::embedded),
    once(row(
        "bytes",
        &[
            ask("an event", AtMost(50.0), Bytes, ""),
            ask("× its lines by zstd 3", AtMost(1.0), Times, ""),
        ],
        stored::bytes,
    )),
    once(row(
        "scans",
        &[
            ask("sums, × those of a table", AtLeast(0.8), Times, ""),
            ask("filter", AtLeast(0.8), Times, ""),
            ask("groups", AtLeast(0.8), Times, ""),
            ask("by time", AtLeast(0.8), Times, ""),
        ],
        stored::scans,
    )),
    row(
        "reads",
        &[
            ask("newest 100", AtMost(200.0), Microseconds, ""),
            ask("newest 1,000", AtMost(600.0), Microseconds, ""),
            ask("newest 100 of a user", AtMost(300.0), Microseconds, ""),
            ask("sum by user and time", AtMost(500.0), Microseconds, ""),
        ],
        stored::reads,
    ),
    row("ending", &[ask("half of all", AtMost(5_000.0), Microseconds, "")], stored::ending),
];
