//! Whether the server is there, and what it counts.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::json;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use crate::{Code, Error};

/// The form of metrics, and its version.
pub(super) const PROMETHEUS_MEDIA: &str = "text/plain; version=0.0.4";

/// What a person, or a program that knows nothing else, finds first.
pub(super) async fn index(_call: Call) -> Outcome {
    let found = json!({
        "name": "Esker",
        "version": env!("CARGO_PKG_VERSION"),
        "document": "/openapi.json",
        "health": "/healthz",
        "readiness": "/readyz",
        "metrics": "/metrics",
        "databases": "/v1/databases",
    });
    entity::json(StatusCode::OK, &found)
}

pub(super) async fn alive(_call: Call) -> Outcome {
    entity::json(StatusCode::OK, &json!({ "status": "ok" }))
}

pub(super) async fn is_ready(call: Call) -> Outcome {
    if call.app.stopping.load(Ordering::Relaxed) {
        return Err(Error::new(Code::Unavailable, "the server stops").into());
    }
    entity::json(StatusCode::OK, &json!({ "status": "ready" }))
}

pub(super) async fn metrics(call: Call) -> Outcome {
    let app = std::sync::Arc::clone(&call.app);
    let text =
        blocking(move || app.access_control.metrics.text(&app.access_control.tenants)).await?;
    Ok(entity::with_body(StatusCode::OK, PROMETHEUS_MEDIA, text))
}

pub(super) async fn openapi(_call: Call) -> Outcome {
    entity::json(StatusCode::OK, &super::document())
}
