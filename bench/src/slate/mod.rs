//! `esker-bench slate`: records of eight fields, one of them indexed, in three sizes, written and
//! asked as a published table of another database does it, each question in a twentieth of its
//! time; and half a million values of ten kilobytes. Of the fifteen questions one is asked twice
//! there, and once here.
//!
//! | module | what it defines |
//! |---|---|
//! | `records` | the records |
//! | `questions` | what is asked, how an answer is checked, and a question measured |
//! | `wire` | some of them over a socket, which `esker-bench server` has as a row |
//! | `writing` | records in batches; writers beside readers; two that write one record |
//! | `store` | values of ten kilobytes: read, walked, rolled back, removed, read beside a writer |
//!
//! The largest size is half a million, or what `--rows` says; the others are a fifth and a fiftieth
//! of it. Where the published table has no time for half a million, it is five times that for a
//! hundred thousand.

mod questions;
mod records;
mod store;
pub(crate) mod wire;
mod writing;

use crate::outcome::Goal::AtMost;
use crate::outcome::Unit::{Microseconds, Times};
use crate::rows::{Row, ask, row};
use questions::{gets, measure};

/// What half a million is divided by, and under which name the databases are kept.
const SIZES: [(u64, &str); 3] = [(50, "slate-10k"), (5, "slate-100k"), (1, "slate-500k")];

/// The published milliseconds for each size, in microseconds, by `share`.
macro_rules! sizes {
    ($share:literal, [$a:literal, $b:literal, $c:literal]) => {
        &[
            ask("10 k records", AtMost($a * 1_000.0 / $share), Microseconds, ""),
            ask("100 k records", AtMost($b * 1_000.0 / $share), Microseconds, ""),
            ask("500 k records", AtMost($c * 1_000.0 / $share), Microseconds, ""),
        ]
    };
}

/// A question: a twentieth of the published milliseconds is asked for.
macro_rules! question {
    ($name:literal, $published:tt, $question:path) => {
        row($name, sizes!(20.0, $published), |bench| measure(bench, &$question))
    };
}

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("insert", sizes!(4.0, [50.0, 555.0, 2_954.0]), writing::insert),
    question!("all", [11.0, 111.0, 653.0], questions::EVERY),
    question!("active", [8.0, 90.0, 608.0], questions::ACTIVE),
    question!("product", [10.0, 104.0, 520.0], questions::PRODUCT),
    question!("and", [8.0, 91.0, 611.0], questions::AND),
    question!("sort-page", [10.0, 137.0, 685.0], questions::SORT_PAGE),
    question!("sort", [10.0, 140.0, 931.0], questions::SORT),
    question!("take", [8.0, 91.0, 455.0], questions::TAKE),
    question!("sort-take", [10.0, 140.0, 700.0], questions::SORT_TAKE),
    question!("null", [10.0, 103.0, 515.0], questions::NULL),
    question!("null-notes", [10.0, 105.0, 525.0], questions::NULL_NOTES),
    question!("not-null", [11.0, 112.0, 560.0], questions::NOT_NULL),
    question!("active-null", [8.0, 93.0, 465.0], questions::ACTIVE_NULL),
    row(
        "get-1000",
        &[
            ask("10 k records", AtMost(500.0), Microseconds, "(3 dependent loads each)"),
            ask("100 k records", AtMost(500.0), Microseconds, "(3 dependent loads each)"),
            ask("500 k records", AtMost(500.0), Microseconds, "(3 dependent loads each)"),
        ],
        gets,
    ),
    question!("two-fields", [12.0, 123.0, 615.0], questions::TWO_FIELDS),
    row(
        "together",
        &[
            ask("2 writers, 4 readers", AtMost(2_300.0 / 20.0 * 1_000.0), Microseconds, ""),
            ask("of two commits of one record", AtMost(1.0), Times, ""),
        ],
        writing::together,
    ),
    row("store-disk", store::ON_DISK, store::on_disk),
    row("store-memory", store::IN_MEMORY, store::in_memory),
];
