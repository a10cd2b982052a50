//! The rows of the table, with the figures asked for.

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Unit::{
    Bytes, Count, Microseconds, Nanoseconds, RowsPerSecond, Seconds, Times,
};
use crate::outcome::{Asked, Goal, Outcome, Unit};
use crate::workloads as w;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What its runs measure, in order.
    pub(crate) asked: &'static [Asked],
    /// For sizes, which do not vary: one run is enough.
    pub(crate) once: bool,
    pub(crate) run: fn(&mut Bench) -> Result<Outcome>,
}

pub(crate) const fn row(
    name: &'static str,
    asked: &'static [Asked],
    run: fn(&mut Bench) -> Result<Outcome>,
) -> Row {
    Row { name, asked, once: false, run }
}

pub(crate) const fn once(row: Row) -> Row {
    Row { once: true, ..row }
}

pub(crate) const fn ask(
    figure: &'static str,
    goal: Goal,
    unit: Unit,
    limit: &'static str,
) -> Asked {
    Asked { figure, goal, unit, limit }
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

const DISK: &str = "(disk, bare)";
const READ: &str = "(memory bandwidth)";

/// Every row, in the order of the table. The first builds the large table that later ones read;
/// those that change it come last among them.
pub(crate) const ROWS: &[Row] = &[
    row("load-csv", &[ask("", AtLeast(3.5e6), RowsPerSecond, DISK)], w::load_csv::run),
    row("load-flights", &[ask("", AtLeast(1.2e6), RowsPerSecond, DISK)], w::load_flights::run),
    row(
        "appender",
        &[ask("", AtLeast(30e6), RowsPerSecond, "(fresh 4 KiB pages, bare)")],
        w::appender::run,
    ),
    row(
        "insert-async",
        &[ask("", AtLeast(1e6), RowsPerSecond, "(one cache miss each)")],
        w::insert_async::run,
    ),
    row(
        "insert-durable",
        &[ask("above a bare fsync", AtMost(10.0), Microseconds, "(a bare fsync)")],
        w::insert_durable::run,
    ),
    row(
        "group-commit",
        &[
            ask("64 threads, × the fsync rate", AtLeast(10.0), Times, ""),
            ask("p99, in fsyncs", AtMost(6.0), Times, ""),
        ],
        w::group_commit::run,
    ),
    row("get", &[ask("", AtMost(450.0), Nanoseconds, "(3 dependent loads)")], w::get::run),
    row("scan-count", &[ask("", AtLeast(1.5e9), RowsPerSecond, READ)], w::scan::count),
    row(
        "scan-aggregate",
        &[
            ask("sum", AtLeast(1e9), RowsPerSecond, READ),
            ask("avg", AtLeast(1e9), RowsPerSecond, READ),
            ask("min", AtLeast(1e9), RowsPerSecond, READ),
            ask("max", AtLeast(1e9), RowsPerSecond, READ),
        ],
        w::scan::aggregate,
    ),
    row("group-by", &[ask("", AtLeast(500e6), RowsPerSecond, READ)], w::scan::group_by),
    once(row("index-ram", &[ask("a row", AtMost(20.0), Bytes, "(a location)")], w::sizes::ram)),
    once(row(
        "disk",
        &[
            ask("10 M rows, without index checkpoint", AtMost(1.35e9), Bytes, "(keys and texts)"),
            ask("index checkpoint, a key", AtMost(10.0), Bytes, ""),
        ],
        w::sizes::disk,
    )),
    row("open-clean", &[ask("", AtMost(0.2), Seconds, "")], w::open::clean),
    row(
        "open-kill",
        &[
            ask("amid inserts", AtMost(1.0), Seconds, ""),
            ask("right after a load", AtMost(1.0), Seconds, ""),
        ],
        w::open::killed,
    ),
    once(row(
        "small-table",
        &[
            ask("disk", AtMost(64.0 * KIB), Bytes, ""),
            ask("RAM", AtMost(512.0 * KIB), Bytes, ""),
            ask("files", AtMost(4.0), Count, ""),
        ],
        w::small_tables::one,
    )),
    row(
        "many-small-tables",
        &[
            ask("open", AtMost(0.5), Seconds, ""),
            ask("RAM", AtMost(64.0 * MIB), Bytes, ""),
            ask("files", AtMost(40.0), Count, ""),
        ],
        w::small_tables::many,
    ),
    once(row(
        "updates",
        &[ask("disk above the log", AtMost(64.0 * MIB), Bytes, "")],
        w::updates::run,
    )),
    row(
        "get-while-merging",
        &[ask("p99, × without", AtMost(2.0), Times, "")],
        w::get_while_merging::run,
    ),
];
