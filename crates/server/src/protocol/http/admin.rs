//! Looking after a database.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use crate::session::{AdminTask, Answer, Request};
use crate::tenant::backup_name;
use crate::{Code, Error};

/// Does an administrator's task, with what came of it as the body.
async fn administer(call: &Call, status: StatusCode, task: AdminTask) -> Outcome {
    match call.run(|session| session.run(Request::Admin(task))).await? {
        Answer::Report(report) => entity::json(status, &report),
        _ => entity::empty(),
    }
}

pub(super) async fn compact(call: Call) -> Outcome {
    administer(&call, StatusCode::OK, AdminTask::Compact { dry_run: false }).await
}

pub(super) async fn check(call: Call) -> Outcome {
    administer(&call, StatusCode::OK, AdminTask::Check {}).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBackup {
    name: String,
}

/// A backup in the server's own directory: a request names it, and says nothing of paths.
pub(super) async fn backup(mut call: Call) -> Outcome {
    let NewBackup { name } = call.json().await?;
    let task = AdminTask::Backup { name, base: None, copy: false, dry_run: false };
    administer(&call, StatusCode::CREATED, task).await
}

/// The backups of a database.
pub(super) async fn backups(call: Call) -> Outcome {
    let (app, tenant) = (Arc::clone(&call.app), call.tenant()?);
    let names = blocking(move || {
        let parent = app.access_control.tenants.backups(&tenant.name)?;
        let files = &app.access_control.environment.files;
        if files.exists(&parent)? { Ok(files.list(&parent)?) } else { Ok(Vec::new()) }
    });
    let names = names.await?.map_err(|e: Error| e)?;
    entity::json(StatusCode::OK, &json!({ "backups": names }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    backup: String,
    #[serde(default)]
    of: Option<String>,
}

/// A new database of a backup of any.
pub(super) async fn restore(mut call: Call) -> Outcome {
    let name = call.tenant_name()?;
    let asked: Restore = call.json().await?;
    let backup = backup_name("backup", &asked.backup)?;
    let of = asked.of.map(|of| of.parse()).transpose();
    let of = of.map_err(|e: String| Error::invalid(format!("of: {e}")))?;
    let app = Arc::clone(&call.app);
    let restored = blocking(move || {
        app.access_control.tenants.restore(&name, of.as_ref().unwrap_or(&name), &backup)
    });
    let report = restored.await??;
    let body = json!({ "database": call.path("database"), "commit": report.commit });
    entity::json(StatusCode::CREATED, &body)
}

pub(super) async fn sessions(call: Call) -> Outcome {
    let tenant = call.tenant()?;
    let body = json!({
        "running_queries": tenant.usage.running_queries(),
        "transactions": call.app.transactions.list(&tenant.name),
        "sessions": call.app.access_control.active_sessions.list(&tenant.name),
    });
    entity::json(StatusCode::OK, &body)
}

/// Ends a connection, or a transaction, and what runs for it.
pub(super) async fn end_session(call: Call) -> Outcome {
    let (tenant, id) = (call.tenant()?, call.path("session"));
    let active_sessions = &call.app.access_control.active_sessions;
    if !id.parse().is_ok_and(|id| active_sessions.end(id, &tenant.name)) {
        return Err(Error::new(Code::NotFound, format!("no session {id:?}")).into());
    }
    call.app.transactions.expire();
    entity::empty()
}
