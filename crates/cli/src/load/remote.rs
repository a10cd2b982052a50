//! `esker load ADDRESS TABLE FILE…`: files are read here, with the messages of a load into a
//! directory, and their rows are sent; the server takes all of them or none.

use std::time::Duration;

use esker::Batch;
use esker_client::{Client, Duplicates, Format, Load};
use esker_import::{ImportReader, schema_text};
use esker_vfs::Environment;

use super::{Policy, Sink, expect_append, fill, input, until_it_holds};
use crate::arguments::{LoadArguments, OnDuplicate};
use crate::failure::{Failure, Result, Status};
use crate::{Console, remote};

pub(super) fn run(
    address: &str,
    arguments: &LoadArguments,
    console: &mut Console<'_>,
) -> Result<()> {
    let environment = Environment::os();
    let started_ns = environment.clock.monotonic_ns();
    let name = arguments.table.as_str();
    let mut client = remote::connect(address)?;
    let existing = match remote::schema(&mut client, name) {
        Ok(schema) => Some(schema),
        Err(failure) if failure.status() == Status::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let rows = existing.as_ref().map(|_| count(&mut client, name)).transpose()?;
    expect_append(name, rows, arguments.append)?;
    let policy = Policy::of(&environment, arguments)?;
    let reader = input::open(&environment, arguments, existing.as_ref())?;
    let is_new = existing.is_none();
    let loaded = until_it_holds(&environment, arguments, console, (reader, policy), |parts| {
        let (schema, reader, policy) = parts;
        if is_new {
            let parts = schema_text::parts(&schema).join(", ");
            client.sql(&format!("CREATE TABLE {} ({parts})", remote::quoted(name)), &[])?;
        }
        let loaded = load(&mut client, name, reader, policy);
        if loaded.is_err() && is_new {
            // Why the load failed is what the user needs to know; at worst the table stays, empty.
            let _ = client.sql(&format!("DROP TABLE {}", remote::quoted(name)), &[]);
        }
        loaded
    });
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", loaded?.summary(name, elapsed))?;
    Ok(())
}

fn count(client: &mut Client, table: &str) -> Result<u64> {
    let reply = client.sql(&format!("SELECT count(*) FROM {}", remote::quoted(table)), &[])?;
    let count = reply.rows.first().and_then(|row| row.first());
    Ok(count.and_then(|count| count.to_string().parse().ok()).unwrap_or(0))
}

fn load(
    client: &mut Client,
    name: &str,
    reader: ImportReader,
    policy: Policy,
) -> Result<super::Loaded> {
    let duplicates = match policy.on_duplicate {
        OnDuplicate::Error => Duplicates::Error,
        OnDuplicate::Skip => Duplicates::Skip,
        OnDuplicate::Replace => Duplicates::Replace,
    };
    let load = client.load(name, Format::MessagePack, duplicates)?;
    fill(Sent(load), reader, policy)
}

/// Rows on their way to a server.
struct Sent<'c>(Load<'c>);

impl Sink for Sent<'_> {
    fn push(&mut self, batch: Batch) -> Result<()> {
        for i in 0..batch.len() {
            self.0.push_refs(batch.columns.iter().map(|column| column.value(i)))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<u64> {
        self.0.finish().map_err(Failure::from)
    }
}
