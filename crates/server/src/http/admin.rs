//! Looking after a database.

use axum::http::StatusCode;
use esker::BackupOptions;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

use super::call::{Call, blocking};
use super::entity;
use super::route::Work;
use crate::tenant::TenantName;
use crate::{Code, Error, Result};

pub(super) fn compact(call: Call) -> Work {
    Box::pin(async move {
        let tenant = call.tenant()?;
        let done = blocking(move || tenant.database.compact(false, &mut |_, _| {})).await?;
        let report = done.map_err(Error::from)?;
        let body = json!({
            "rewritten": report.rewritten,
            "bytes_before": report.bytes_before,
            "bytes_after": report.bytes_after,
        });
        entity::json(StatusCode::OK, &body)
    })
}

pub(super) fn check(call: Call) -> Work {
    Box::pin(async move {
        let tenant = call.tenant()?;
        let report = blocking(move || tenant.database.check()).await?.map_err(Error::from)?;
        let problem = |p: &esker::Problem| json!({ "place": p.place, "message": p.message });
        let body = json!({
            "sound": report.is_sound(),
            "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
            "notes": report.notes.iter().map(problem).collect::<Vec<_>>(),
            "tables": report.tables,
            "rows": report.rows,
            "segments": report.segments,
            "bytes": report.bytes,
        });
        entity::json(StatusCode::OK, &body)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBackup {
    name: String,
}

fn backup_name(member: &str, text: &str) -> Result<TenantName> {
    let wrong = |e: String| format!("{member}: {}", e.replace("a tenant", "a backup"));
    text.parse().map_err(|e| Error::invalid(wrong(e)))
}

/// A backup in the server's own directory: a request names it, and says nothing of paths.
pub(super) fn backup(mut call: Call) -> Work {
    Box::pin(async move {
        let asked: NewBackup = call.json().await?;
        let name = backup_name("name", &asked.name)?;
        let (app, tenant) = (Arc::clone(&call.app), call.tenant()?);
        let made = blocking(move || {
            let parent = app.gate.tenants.backups(&tenant.name)?;
            app.gate.environment.files.create_dir_all(&parent)?;
            let target = parent.join(name.as_str());
            if app.gate.environment.files.exists(&target)? {
                let message = format!("backup {:?} exists already", name.as_str());
                return Err(Error::new(Code::AlreadyExists, message));
            }
            let options = BackupOptions::default();
            let report = tenant.database.backup(&target, &options, &mut |_, _| {})?;
            let place = format!("backups/{}/{name}", tenant.name);
            let (tenant, bytes) = (&tenant.name, report.copied_bytes);
            tracing::info!(%tenant, backup = %name, bytes, "a backup was made");
            Ok(json!({ "place": place, "copied_bytes": report.copied_bytes }))
        });
        entity::json(StatusCode::CREATED, &made.await??)
    })
}

/// The backups of a database.
pub(super) fn backups(call: Call) -> Work {
    Box::pin(async move {
        let (app, tenant) = (Arc::clone(&call.app), call.tenant()?);
        let names = blocking(move || {
            let parent = app.gate.tenants.backups(&tenant.name)?;
            let files = &app.gate.environment.files;
            if files.exists(&parent)? { Ok(files.list(&parent)?) } else { Ok(Vec::new()) }
        });
        let names = names.await?.map_err(|e: Error| e)?;
        entity::json(StatusCode::OK, &json!({ "backups": names }))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    backup: String,
    #[serde(default)]
    of: Option<String>,
}

/// A new database of a backup of any.
pub(super) fn restore(mut call: Call) -> Work {
    Box::pin(async move {
        let name = call.tenant_name()?;
        let asked: Restore = call.json().await?;
        let backup = backup_name("backup", &asked.backup)?;
        let of = asked.of.map(|of| of.parse()).transpose();
        let of = of.map_err(|e: String| Error::invalid(format!("of: {e}")))?;
        let app = Arc::clone(&call.app);
        let restored = blocking(move || {
            app.gate.tenants.restore(&name, of.as_ref().unwrap_or(&name), &backup)
        });
        let report = restored.await??;
        let body = json!({ "database": call.path("database"), "commit": report.commit });
        entity::json(StatusCode::CREATED, &body)
    })
}

pub(super) fn sessions(call: Call) -> Work {
    Box::pin(async move {
        let tenant = call.tenant()?;
        let body = json!({
            "running_queries": tenant.usage.running_queries(),
            "transactions": call.app.transactions.list(&tenant.name),
            "sessions": call.app.gate.seats.list(&tenant.name),
        });
        entity::json(StatusCode::OK, &body)
    })
}

/// Ends a connection, or a transaction, and what runs for it.
pub(super) fn end_session(call: Call) -> Work {
    Box::pin(async move {
        let (tenant, id) = (call.tenant()?, call.path("session"));
        let seats = &call.app.gate.seats;
        if !id.parse().is_ok_and(|id| seats.end(id, &tenant.name)) {
            return Err(Error::new(Code::NotFound, format!("no session {id:?}")).into());
        }
        call.app.transactions.expire();
        entity::empty()
    })
}
