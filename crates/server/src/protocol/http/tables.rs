//! Tables and their schemas.

use axum::http::StatusCode;
use esker::Alteration;
use esker_import::schema_text;
use esker_sql::{Statement, parse_statement};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::call::Call;
use super::entity;
use super::route::Work;
use crate::session::{Answer, Level, Request, Session};
use crate::{Error, Result};

pub(super) fn list(call: Call) -> Work {
    Box::pin(async move {
        let names = match call.run(|session| session.run(Request::Tables)).await? {
            Answer::Names(names) => names,
            _ => Vec::new(),
        };
        entity::json(StatusCode::OK, &json!({ "tables": names }))
    })
}

/// A table in words and in parts, as a session sees it.
fn description(session: &Session, name: &str) -> Result<Json> {
    let table = session.scope().table(name)?;
    let schema = table.schema();
    let key: Vec<_> = schema.key_fields().map(|field| field.name.clone()).collect();
    let fields = schema.fields().iter().map(|field| {
        json!({ "name": field.name, "type": field.type_text(), "nullable": field.nullable })
    });
    let indexes = schema.indexes().iter().map(|index| {
        json!({
            "name": index.name,
            "fields": schema.index_fields(index),
            "kind": index.kind.name(),
            "unique": index.unique,
        })
    });
    Ok(json!({
        "table": table.name(),
        "schema": schema_text::write(&schema),
        "fields": fields.collect::<Vec<_>>(),
        "key": key,
        "indexes": indexes.collect::<Vec<_>>(),
        "rows": table.count()?,
    }))
}

pub(super) fn describe(call: Call) -> Work {
    Box::pin(async move {
        let name = call.path("table").to_owned();
        let found = call.run(move |session| description(session, &name)).await?;
        entity::json(StatusCode::OK, &found)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTable {
    schema: String,
}

pub(super) fn create(mut call: Call) -> Work {
    Box::pin(async move {
        let text = match call.media()?.as_deref() {
            Some("text/plain") => call.text().await?,
            _ => call.json::<NewTable>().await?.schema,
        };
        let name = call.path("table").to_owned();
        let made = call.run(move |session| {
            session.all_or_none(|session| {
                session.scope().create_table(&name, schema_text::parse(&text)?)?;
                description(session, &name)
            })
        });
        entity::json(StatusCode::CREATED, &made.await?)
    })
}

pub(super) fn remove(call: Call) -> Work {
    Box::pin(async move {
        let name = call.path("table").to_owned();
        call.run(move |session| Ok(session.scope().drop_table(&name)?)).await?;
        entity::empty()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableChange {
    #[serde(default)]
    changes: Vec<String>,
    #[serde(default)]
    rename: Option<String>,
}

/// Changes as they stand behind `ALTER TABLE` and a name; all of them are one commit.
fn alterations(table: &str, changes: &[String]) -> Result<Vec<Alteration>> {
    let quoted = table.replace('"', "\"\"");
    let mut all = Vec::new();
    for (position, change) in changes.iter().enumerate() {
        let place = format!("changes[{position}]");
        let statement = parse_statement(&format!("ALTER TABLE \"{quoted}\" {change}"));
        match statement.map_err(|e| Error::from(e).at(&place))? {
            Statement::AlterTable { alterations, .. } => all.extend(alterations),
            _ => {
                let expected = "expected a change of fields, indexes or rules; a name is `rename`";
                return Err(Error::invalid(expected).at(&place));
            }
        }
    }
    Ok(all)
}

/// A new name needs the right to make what has it.
pub(super) fn expect_name(call: &Call, name: &str) -> Result<()> {
    call.session()?.expect(Level::Admin, Some(name))
}

pub(super) fn alter(mut call: Call) -> Work {
    Box::pin(async move {
        let asked: TableChange = call.json().await?;
        let name = call.path("table").to_owned();
        let altered = match (asked.changes.as_slice(), asked.rename) {
            ([], Some(to)) => {
                expect_name(&call, &to)?;
                call.run(move |session| {
                    session.all_or_none(|session| {
                        session.scope().rename_table(&name, &to)?;
                        description(session, &to)
                    })
                })
                .await?
            }
            ([_, ..], None) => {
                let alterations = alterations(&name, &asked.changes)?;
                call.run(move |session| {
                    session.all_or_none(|session| {
                        session.scope().alter_table(&name, &alterations)?;
                        description(session, &name)
                    })
                })
                .await?
            }
            _ => return Err(Error::invalid("body: expected `changes`, or `rename`").into()),
        };
        entity::json(StatusCode::OK, &altered)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewIndex {
    index: String,
}

pub(super) fn create_index(mut call: Call) -> Work {
    Box::pin(async move {
        let asked: NewIndex = call.json().await?;
        let name = call.path("table").to_owned();
        let made = call.run(move |session| {
            session.all_or_none(|session| {
                let index = schema_text::parse_index(&asked.index)?;
                session.scope().alter_table(&name, &[Alteration::AddIndex(index)])?;
                description(session, &name)
            })
        });
        entity::json(StatusCode::CREATED, &made.await?)
    })
}

pub(super) fn remove_index(call: Call) -> Work {
    Box::pin(async move {
        let name = call.path("table").to_owned();
        let drop = [Alteration::DropIndex(call.path("index").to_owned())];
        call.run(move |session| Ok(session.scope().alter_table(&name, &drop)?)).await?;
        entity::empty()
    })
}
