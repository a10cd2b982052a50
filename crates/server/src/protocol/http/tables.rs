//! Tables and their schemas.

use axum::http::StatusCode;
use esker::{Alteration, definition};
use esker_import::schema_text;
use esker_sql::{Statement, parse_index, parse_statement};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::call::Call;
use super::entity;
use super::route::Outcome;
use crate::session::{Answer, Level, Request, Session};
use crate::{Code, Error, Result};

pub(super) async fn list(call: Call) -> Outcome {
    let names = match call.run(|session| session.run(Request::Tables)).await? {
        Answer::Names(names) => names,
        _ => Vec::new(),
    };
    entity::json(StatusCode::OK, &json!({ "tables": names }))
}

/// A table in words and in parts, as a session sees it.
fn description(session: &Session, name: &str) -> Result<Json> {
    let table = session.scope().table(name)?;
    let schema = table.schema();
    let key: Vec<_> = schema.key_fields().map(|field| field.name.clone()).collect();
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let (name, data_type) = (&field.name, field.type_text());
        let known = json!({ "name": name, "type": data_type, "nullable": field.nullable });
        let Json::Object(mut known) = known else { continue };
        if let Some(generated) = definition::generated_text(field)? {
            known.insert("generated".to_owned(), generated.into());
        }
        if let Some(comment) = &field.comment {
            known.insert("comment".to_owned(), (**comment).into());
        }
        fields.push(known);
    }
    let indexes = schema.row_indexes().map(|index| {
        json!({
            "name": index.name,
            "fields": definition::parts_text(&schema, index),
            "where": definition::filter_text(&schema, index),
            "kind": index.kind.name(),
            "unique": index.unique,
        })
    });
    let mut described = json!({
        "table": table.name(),
        "schema": schema_text::write(&schema),
        "fields": fields,
        "key": key,
        "indexes": indexes.collect::<Vec<_>>(),
        "rows": table.count()?,
    });
    // Of one that the transaction has made there are no figures yet.
    let stream = schema.stream().and_then(|_| session.database().stream(name).ok());
    if let Some(stream) = stream {
        let info = serde_json::to_value(stream.info()?);
        let info = info.map_err(|e| Error::new(Code::Internal, e.to_string()))?;
        described.as_object_mut().map(|members| members.insert("stream".to_owned(), info));
    }
    Ok(described)
}

pub(super) async fn describe(call: Call) -> Outcome {
    let name = call.path("table").to_owned();
    let found = call.run(move |session| description(session, &name)).await?;
    entity::json(StatusCode::OK, &found)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTable {
    schema: String,
}

pub(super) async fn create(mut call: Call) -> Outcome {
    let text = match call.media()?.as_deref() {
        Some("text/plain") => call.text().await?,
        _ => call.json::<NewTable>().await?.schema,
    };
    let name = call.path("table").to_owned();
    changed(&call, StatusCode::CREATED, move |session| {
        session.scope().create_table(&name, schema_text::parse(&text)?)?;
        description(session, &name)
    })
    .await
}

pub(super) async fn remove(call: Call) -> Outcome {
    let name = call.path("table").to_owned();
    call.run(move |session| Ok(session.scope().drop_table(&name)?)).await?;
    entity::empty()
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

/// Does all of a change or none of it, and answers what is there then.
pub(super) async fn changed(
    call: &Call,
    status: StatusCode,
    change: impl FnOnce(&mut Session) -> Result<Json> + Send + 'static,
) -> Outcome {
    let described = call.run(move |session| session.all_or_none(change));
    entity::json(status, &described.await?)
}

/// A new name needs the right to make what has it.
pub(super) fn expect_name(call: &Call, name: &str) -> Result<()> {
    call.session()?.expect(Level::Admin, Some(name))
}

pub(super) async fn alter(mut call: Call) -> Outcome {
    let asked: TableChange = call.json().await?;
    let name = call.path("table").to_owned();
    match (asked.changes.as_slice(), asked.rename) {
        ([], Some(to)) => {
            expect_name(&call, &to)?;
            changed(&call, StatusCode::OK, move |session| {
                session.scope().rename_table(&name, &to)?;
                description(session, &to)
            })
            .await
        }
        ([_, ..], None) => {
            let alterations = alterations(&name, &asked.changes)?;
            changed(&call, StatusCode::OK, move |session| {
                session.scope().alter_table(&name, &alterations)?;
                description(session, &name)
            })
            .await
        }
        _ => Err(Error::invalid("body: expected `changes`, or `rename`").into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewIndex {
    index: String,
}

pub(super) async fn create_index(mut call: Call) -> Outcome {
    let asked: NewIndex = call.json().await?;
    let name = call.path("table").to_owned();
    changed(&call, StatusCode::CREATED, move |session| {
        // What is computed is written as in a statement.
        let index = match schema_text::parse_index(&asked.index) {
            Err(e) => parse_index(&asked.index).map_err(|_| e)?,
            plain => plain?,
        };
        session.scope().alter_table(&name, &[Alteration::AddIndex(index)])?;
        description(session, &name)
    })
    .await
}

pub(super) async fn remove_index(call: Call) -> Outcome {
    let name = call.path("table").to_owned();
    let drop = [Alteration::DropIndex(call.path("index").to_owned())];
    call.run(move |session| Ok(session.scope().alter_table(&name, &drop)?)).await?;
    entity::empty()
}
