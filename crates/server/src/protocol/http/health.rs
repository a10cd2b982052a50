//! Whether the server is there, and what it counts.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::json;

use super::call::{Call, blocking};
use super::dispatch::ready;
use super::entity;
use super::route::Work;
use crate::{Code, Error};

/// The form of metrics, and its version.
pub(super) const PROMETHEUS_MEDIA: &str = "text/plain; version=0.0.4";

/// What a person, or a program that knows nothing else, finds first.
pub(super) fn index(_call: Call) -> Work {
    let found = json!({
        "name": "Esker",
        "version": env!("CARGO_PKG_VERSION"),
        "document": "/openapi.json",
        "health": "/healthz",
        "readiness": "/readyz",
        "metrics": "/metrics",
        "databases": "/v1/databases",
    });
    ready(entity::json(StatusCode::OK, &found))
}

pub(super) fn alive(_call: Call) -> Work {
    ready(entity::json(StatusCode::OK, &json!({ "status": "ok" })))
}

pub(super) fn is_ready(call: Call) -> Work {
    if call.app.stopping.load(Ordering::Relaxed) {
        return ready(Err(Error::new(Code::Unavailable, "the server stops").into()));
    }
    ready(entity::json(StatusCode::OK, &json!({ "status": "ready" })))
}

pub(super) fn metrics(call: Call) -> Work {
    Box::pin(async move {
        let app = std::sync::Arc::clone(&call.app);
        let text =
            blocking(move || app.access_control.metrics.text(&app.access_control.tenants)).await?;
        Ok(entity::with_body(StatusCode::OK, PROMETHEUS_MEDIA, text))
    })
}

pub(super) fn openapi(_call: Call) -> Work {
    ready(entity::json(StatusCode::OK, &super::document()))
}
