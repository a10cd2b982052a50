//! Invoices of 64 fields as lines of JSON over one connection, until they are on the disk.

use esker::Durability;
use esker_client::Format;

use super::loads::send_file;
use super::service::Service;
use crate::Result;
use crate::bench::Bench;
use crate::invoice::indexed;
use crate::loading::{Form, INVOICES, check};
use crate::outcome::Outcome;

const ROWS: u64 = 1_000_000;

/// Without an index, then with all of them.
pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS);
    let path = INVOICES.file(bench, Form::Ndjson, rows)?;
    let name = INVOICES.name;
    let mut outcome = Outcome::default();
    for schema in [INVOICES.schema()?, indexed()?] {
        let service = Service::serve(bench, "server-invoices", Durability::Sync, name, schema)?;
        let mut client = service.connect()?;
        let seconds = send_file(&mut client, name, Format::Ndjson, &path)?;
        drop(client);
        check(&INVOICES, service.database(), rows)?;
        service.stop()?;
        outcome = outcome.and(rows as f64 / seconds, None);
    }
    Ok(outcome)
}
