//! `esker-bench load`: the figures asked of loading, exporting and single rows.
//!
//! | module | what it defines |
//! |---|---|
//! | `users`, `invoices` | the rows: their fields and texts |
//! | `table` | what both are measured by |
//! | `bound` | rows that refer to others, and fields that are generated |
//! | `memory` | memory while loading |

mod bound;
mod invoices;
mod memory;
mod table;
mod users;

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Outcome;
use crate::outcome::Unit::{Bytes, Microseconds, RowsPerSecond, Times};
use crate::rows::{Row, ask, once, row};
use crate::workloads as w;
pub(crate) use invoices::INVOICES;
pub(crate) use memory::child as memory_child;
pub(crate) use table::{Form, check, load_as};
pub(crate) use users::USERS;

const DISK: &str = "(disk, bare)";
const MIB: f64 = 1024.0 * 1024.0;

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("ndjson-users", &[ask("", AtLeast(0.9e6), RowsPerSecond, DISK)], ndjson_users),
    row("ndjson-invoices", &[ask("", AtLeast(0.35e6), RowsPerSecond, DISK)], ndjson_invoices),
    row("csv-invoices", &[ask("", AtLeast(0.7e6), RowsPerSecond, DISK)], csv_invoices),
    row("export-users", &[ask("", AtLeast(1e6), RowsPerSecond, DISK)], export_users),
    row("get-invoice", &[ask("warm", AtMost(10.0), Microseconds, "")], table::get_invoice),
    row(
        "prepared-insert",
        &[ask("", AtMost(3.0), Microseconds, "(one cache miss)")],
        w::prepared::insert,
    ),
    row(
        "prepared-get",
        &[ask("", AtMost(2.0), Microseconds, "(3 dependent loads)")],
        w::prepared::get,
    ),
    row(
        "load-with-reference",
        &[ask("× without", AtLeast(0.7), Times, "")],
        bound::load_with_reference,
    ),
    row("insert-generated", &[ask("× given", AtLeast(0.9), Times, "")], bound::insert_generated),
    once(row("memory", &[ask("peak", AtMost(640.0 * MIB), Bytes, "")], memory::run)),
];

fn ndjson_users(bench: &mut Bench) -> Result<Outcome> {
    table::load(bench, &USERS, Form::Ndjson)
}

fn ndjson_invoices(bench: &mut Bench) -> Result<Outcome> {
    table::load(bench, &INVOICES, Form::Ndjson)
}

fn csv_invoices(bench: &mut Bench) -> Result<Outcome> {
    table::load(bench, &INVOICES, Form::Csv)
}

fn export_users(bench: &mut Bench) -> Result<Outcome> {
    table::export(bench, &USERS)
}
