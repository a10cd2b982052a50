//! Views: which there are, what they say, and changes of them.

use axum::http::StatusCode;
use esker_sql::{Statement, parse_statement};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::call::Call;
use super::entity;
use super::route::Outcome;
use crate::session::{Level, Request, Session, SqlText};
use crate::{Code, Error, Result};

pub(super) async fn list(call: Call) -> Outcome {
    let names = call.run(|session| {
        session.expect(Level::Read, None)?;
        let views = session.scope().views()?;
        Ok(views.into_iter().map(|view| view.name).collect::<Vec<_>>())
    });
    entity::json(StatusCode::OK, &json!({ "views": names.await? }))
}

/// A view as a session sees it.
fn description(session: &Session, name: &str) -> Result<Json> {
    let mut views = session.scope().views()?.into_iter();
    let view = views.find(|view| view.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        Error::new(Code::NotFound, format!("no view {name:?}: GET …/views lists them"))
    })?;
    let column =
        |column: &esker::ViewColumnInfo| json!({ "name": column.name, "type": column.data_type });
    let columns: Vec<_> = view.columns.iter().map(column).collect();
    let (query, reads) = (view.query, view.reads);
    let materialized = view.is_rollup;
    Ok(json!({
        "view": view.name, "query": query, "columns": columns, "reads": reads,
        "materialized": materialized, "retention": view.retention,
    }))
}

pub(super) async fn describe(call: Call) -> Outcome {
    let name = call.path("table").to_owned();
    let found = call.run(move |session| description(session, &name)).await?;
    entity::json(StatusCode::OK, &found)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewView {
    query: String,
    #[serde(default)]
    materialized: bool,
    retention: Option<String>,
}

pub(super) async fn put(mut call: Call) -> Outcome {
    let asked: NewView = call.json().await?;
    let name = call.path("table").to_owned();
    let quoted = name.replace('"', "\"\"");
    // It is read on its own before: it is one query, and nothing stands behind it.
    match parse_statement(&asked.query).map_err(|e| Error::from(e).at("query"))? {
        Statement::Query(_) => {}
        _ => return Err(Error::invalid("query: expected SELECT, VALUES or WITH").into()),
    }
    let kind = if asked.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
    let with = match &asked.retention {
        None => String::new(),
        Some(_) if !asked.materialized => {
            return Err(Error::invalid("retention: expected materialized = true, too").into());
        }
        Some(retention) => format!(" WITH (retention = '{}')", retention.replace('\'', "''")),
    };
    let text = format!("CREATE OR REPLACE {kind} \"{quoted}\"{with} AS {}", asked.query);
    let made = call.run(move |session| {
        session.all_or_none(|session| {
            let was_there = session.scope().has_view(&name)?;
            session.run(Request::Sql { text: SqlText::from(text), parameters: Vec::new() })?;
            Ok((was_there, description(session, &name)?))
        })
    });
    let (was_there, described) = made.await?;
    let status = if was_there { StatusCode::OK } else { StatusCode::CREATED };
    entity::json(status, &described)
}

pub(super) async fn remove(call: Call) -> Outcome {
    let name = call.path("table").to_owned();
    call.run(move |session| {
        let mut views = session.scope().views()?.into_iter();
        let is_rollup = views.any(|view| view.is_rollup && view.name.eq_ignore_ascii_case(&name));
        let dropped = match is_rollup {
            true => session.scope().drop_rollup(&name),
            false => session.scope().drop_view(&name),
        };
        Ok(dropped?)
    })
    .await?;
    entity::empty()
}
