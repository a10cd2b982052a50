//! Tokens, for administrators of the server.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use crate::Error;
use crate::auth::token::{NewToken, TokenInfo};
use crate::config::parse_duration;

pub(super) async fn list(call: Call) -> Outcome {
    entity::json(StatusCode::OK, &json!({ "tokens": call.app.access_control.tokens.list() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    scopes: Vec<String>,
    #[serde(default)]
    expires: Option<String>,
}

fn shown(info: &TokenInfo, text: &str) -> serde_json::Value {
    json!({
        "id": info.id,
        "name": info.name,
        "scopes": info.scopes,
        "expires_us": info.expires_us,
        "token": text,
    })
}

pub(super) async fn create(mut call: Call) -> Outcome {
    let asked: Asked = call.json().await?;
    let scopes = asked.scopes.iter().map(|scope| scope.parse().map_err(Error::invalid));
    let lifetime = asked.expires.as_deref().map(parse_duration).transpose();
    let lifetime = lifetime.map_err(|e| Error::invalid(format!("expires: {e}")))?;
    let scopes = scopes.collect::<crate::Result<_>>()?;
    let new = NewToken { name: asked.name, scopes, lifetime };
    let app = Arc::clone(&call.app);
    let (info, text) = blocking(move || app.access_control.tokens.create(&new)).await??;
    entity::json(StatusCode::CREATED, &shown(&info, &text))
}

pub(super) async fn rotate(call: Call) -> Outcome {
    let grace = call.parameter("grace").map(parse_duration).transpose();
    let grace = grace.map_err(|e| Error::invalid(format!("grace: {e}")))?.unwrap_or_default();
    let (app, id) = (Arc::clone(&call.app), call.path("token").to_owned());
    let (info, text) = blocking(move || app.access_control.tokens.rotate(&id, grace)).await??;
    entity::json(StatusCode::CREATED, &shown(&info, &text))
}

pub(super) async fn remove(call: Call) -> Outcome {
    let (app, id) = (Arc::clone(&call.app), call.path("token").to_owned());
    blocking(move || app.access_control.tokens.remove(&id)).await??;
    entity::empty()
}
