//! `esker query DB '{"table": …}'`: queries as JSON.

use std::io::Read;
use std::sync::Arc;

use esker::{Limits, PageOptions};
use esker_client::Call;
use esker_query::json::JsonQuery;

use crate::arguments::QueryArguments;
use crate::failure::{Failure, Result};
use crate::sql::{Settings, open_to_read};
use crate::{Console, remote};

pub(crate) fn run(arguments: &QueryArguments, console: &mut Console<'_>) -> Result<()> {
    let mut text = arguments.query.clone();
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|e| {
            Failure::usage(format!("standard input: expected a query in UTF-8: {e}"))
        })?;
    }
    let query = JsonQuery::parse(&text).map_err(esker::Error::from)?;
    let explain = arguments.explain || query.is_explain().map_err(esker::Error::from)?;
    let limits = Limits {
        timeout: arguments.limits.timeout.or(query.timeout().map_err(esker::Error::from)?),
        memory_bytes: query.memory_limit_bytes().map_err(esker::Error::from)?,
        ..Limits::default()
    };
    let (format, timing) = (arguments.format, arguments.timing);
    let settings = Settings { format, timing, explain, limits, ..Settings::default() };
    if let Some(address) = remote::address(&arguments.db) {
        return ask_server(address, &text, &settings, console);
    }
    let (is_page, paging) = (query.is_page(), PageOptions::of_json(&query)?);
    let semantics = paging.semantics;
    let database = open_to_read(&arguments.db)?;
    let query = database.snapshot()?.bind_json(&query)?;
    match is_page && !settings.explain {
        true => {
            let options = PageOptions { limits: settings.limits.clone(), ..paging };
            let page = database.page(&query, &options)?;
            settings.show(&page.result, console)?;
            show_cursors((&page.previous, &page.next, page.total), console)?;
        }
        false => {
            let session = esker_sql::Session::new(&database).with_semantics(semantics);
            settings.ask(&session, &query, console)?;
        }
    }
    database.close()?;
    Ok(())
}

/// Asks a server.
fn ask_server(
    address: &str,
    text: &str,
    settings: &Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    let mut remote = remote::Remote::connect(address, Arc::default())?;
    if settings.explain {
        let asked = remote.ask(&Call::explain(text), settings)?;
        let plan = asked.reply.text().unwrap_or_default();
        return Ok(writeln!(console.out, "{}", plan.trim_end())?);
    }
    let asked = remote.ask(&Call::query(text), settings)?;
    settings.show(&remote::result(&asked.reply)?, console)?;
    asked.tell_time(settings, console)?;
    match asked.reply.page() {
        Some(page) => show_cursors((&page.previous, &page.next, page.total), console),
        None => Ok(()),
    }
}

/// Says how many rows there are, and where the pages before and after this one are.
fn show_cursors(
    (previous, next, total): (&Option<String>, &Option<String>, Option<u64>),
    console: &mut Console<'_>,
) -> Result<()> {
    console.out.flush()?;
    if let Some(total) = total {
        writeln!(console.err, "total: {total}")?;
    }
    for (name, cursor) in [("previous", previous), ("next", next)] {
        if let Some(cursor) = cursor {
            writeln!(console.err, "{name}: {cursor}")?;
        }
    }
    Ok(())
}
