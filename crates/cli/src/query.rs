//! `esker query DB '{"table": …}'`: queries as JSON.

use std::io::Read;

use esker::{Limits, Page, PageOptions};
use esker_query::json::JsonQuery;

use crate::Console;
use crate::arguments::QueryArguments;
use crate::failure::{Failure, Result};
use crate::sql::{Settings, open_to_read};

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
    let settings = Settings { format, timing, explain, dry_run: false, limits };
    let (is_page, paging) = (query.is_page(), PageOptions::of_json(&query)?);
    let database = open_to_read(&arguments.db)?;
    let query = database.snapshot()?.bind_json(&query)?;
    match is_page && !settings.explain {
        true => {
            let options = PageOptions { limits: settings.limits.clone(), ..paging };
            let page = database.page(&query, &options)?;
            settings.show(&page.result, console)?;
            show_cursors(&page, console)?;
        }
        false => settings.ask(&esker_sql::Session::new(&database), &query, console)?,
    }
    database.close()?;
    Ok(())
}

/// Says how many rows there are, and where the pages before and after this one are.
fn show_cursors(page: &Page, console: &mut Console<'_>) -> Result<()> {
    console.out.flush()?;
    if let Some(total) = page.total {
        writeln!(console.err, "total: {total}")?;
    }
    for (name, cursor) in [("previous", &page.previous), ("next", &page.next)] {
        if let Some(cursor) = cursor {
            writeln!(console.err, "{name}: {cursor}")?;
        }
    }
    Ok(())
}
