//! `esker index DB TABLE FIELDS…` and `esker index drop DB TABLE NAME`.

use esker::{IndexKind, NewIndex, definition};
use esker_import::schema_text::parse_index;

use crate::arguments::{CreateIndexArguments, DropIndexArguments, IndexAction, IndexArguments};
use crate::compact::open_to_write;
use crate::failure::{Failure, Result};
use crate::output::printable;
use crate::{Console, remote, units};

pub(crate) fn run(arguments: &IndexArguments, console: &mut Console<'_>) -> Result<()> {
    match (&arguments.action, &arguments.create) {
        (Some(IndexAction::Drop(drop)), _) => remove(drop, console),
        (None, Some(create)) => add(create, console),
        (None, None) => Err(Failure::usage("expected a database, a table and fields")),
    }
}

fn add(arguments: &CreateIndexArguments, console: &mut Console<'_>) -> Result<()> {
    let text = arguments.fields.join(", ");
    // What is computed is written as in a statement.
    let mut index = match parse_index(&text) {
        Err(e) => esker_sql::parse_index(&text).map_err(|_| e)?,
        plain => plain?,
    };
    if let Some(name) = &arguments.name {
        index.name.clone_from(name);
    }
    index.unique |= arguments.unique;
    if let Some(kind) = arguments.kind {
        index.kind = kind;
    }
    if arguments.trigram {
        index.kind = IndexKind::Trigram;
    }
    let what = match (index.unique, index.kind) {
        (true, _) => "unique index".to_owned(),
        (false, IndexKind::Ordered) => "index".to_owned(),
        (false, kind) => format!("{} index", kind.name()),
    };
    let clock = esker_vfs::Environment::os().clock;
    let name = printable(&index.name);
    let elapsed = if let Some(address) = remote::address(&arguments.db) {
        let mut client = remote::connect(address)?;
        let started_ns = clock.monotonic_ns();
        client.sql(&statement(&arguments.table, &index), &[])?;
        clock.monotonic_ns() - started_ns
    } else {
        let database = open_to_write(&arguments.db)?;
        let started_ns = clock.monotonic_ns();
        database.create_index(&arguments.table, index)?;
        let elapsed = clock.monotonic_ns() - started_ns;
        database.close()?;
        elapsed
    };
    let elapsed = std::time::Duration::from_nanos(elapsed);
    let (table, time) = (printable(&arguments.table), units::duration(elapsed));
    writeln!(console.err, "created {what} {name} on {table} in {time}")?;
    Ok(())
}

/// The statement that makes an index.
fn statement(table: &str, index: &NewIndex) -> String {
    let field = |(place, (name, descending)): (usize, &(String, bool))| {
        let is_computed = index.expressions.iter().any(|placed| placed.place == place);
        let part = if is_computed { format!("({name})") } else { remote::quoted(name) };
        format!("{part}{}", if *descending { " DESC" } else { "" })
    };
    let fields: Vec<String> = index.fields.iter().enumerate().map(field).collect();
    let filter = definition::new_filter_text(index);
    let filter = filter.map_or(String::new(), |filter| format!(" WHERE {filter}"));
    format!(
        "CREATE {}INDEX {} ON {} USING {} ({}){filter}",
        if index.unique { "UNIQUE " } else { "" },
        remote::quoted(&index.name),
        remote::quoted(table),
        index.kind.name(),
        fields.join(", ")
    )
}

fn remove(arguments: &DropIndexArguments, console: &mut Console<'_>) -> Result<()> {
    if let Some(address) = remote::address(&arguments.db) {
        let (name, table) = (remote::quoted(&arguments.name), remote::quoted(&arguments.table));
        remote::connect(address)?.sql(&format!("DROP INDEX {name} ON {table}"), &[])?;
    } else {
        let database = open_to_write(&arguments.db)?;
        database.drop_index(&arguments.table, &arguments.name)?;
        database.close()?;
    }
    let (name, table) = (printable(&arguments.name), printable(&arguments.table));
    writeln!(console.err, "dropped index {name} on {table}")?;
    Ok(())
}
