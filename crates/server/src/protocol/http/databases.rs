//! Databases: one for each tenant.

use axum::http::StatusCode;
use serde_json::json;
use std::sync::Arc;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use crate::tenant::TenantLimits;
use crate::{Error, Result};

pub(super) async fn list(call: Call) -> Outcome {
    let (app, principal) = (Arc::clone(&call.app), call.principal.clone());
    let names = blocking(move || {
        let mut names = app.access_control.tenants.names()?;
        names.retain(|name| principal.may_enter(name));
        Ok::<_, Error>(names)
    });
    let names: Vec<_> = names.await??.iter().map(ToString::to_string).collect();
    entity::json(StatusCode::OK, &json!({ "databases": names }))
}

pub(super) async fn create(call: Call) -> Outcome {
    let (app, name) = (Arc::clone(&call.app), call.tenant_name()?);
    blocking(move || app.access_control.tenants.create(&name).map(drop)).await??;
    entity::json(StatusCode::CREATED, &json!({ "database": call.path("database") }))
}

pub(super) async fn remove(call: Call) -> Outcome {
    let (app, name) = (Arc::clone(&call.app), call.tenant_name()?);
    blocking(move || app.access_control.tenants.remove(&name)).await??;
    entity::empty()
}

pub(super) async fn describe(call: Call) -> Outcome {
    let tenant = call.tenant()?;
    let info = blocking(move || tenant.database.info()).await?;
    let body = json!({
        "database": call.path("database"),
        "tables": info.tables.len(),
        "rows": info.tables.iter().map(|table| table.live_rows).sum::<u64>(),
        "segment_bytes": info.tables.iter().map(|table| table.segment_bytes).sum::<u64>(),
        "log_bytes": info.log_bytes,
        "memory_bytes": info.memory.total,
        "commit": info.visible_commit,
    });
    entity::json(StatusCode::OK, &body)
}

fn limits_json(limits: &TenantLimits) -> Result<serde_json::Value> {
    serde_json::to_value(limits).map_err(|e| Error::new(crate::Code::Internal, e.to_string()))
}

pub(super) async fn limits(call: Call) -> Outcome {
    let limits = limits_json(&call.tenant()?.usage.limits())?;
    entity::json(StatusCode::OK, &limits)
}

pub(super) async fn set_limits(mut call: Call) -> Outcome {
    let limits: TenantLimits = call.json().await?;
    let (app, tenant) = (Arc::clone(&call.app), call.tenant()?);
    blocking(move || app.access_control.tenants.set_limits(&tenant, limits)).await??;
    entity::json(StatusCode::OK, &limits_json(&limits)?)
}
