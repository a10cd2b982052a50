//! The OpenAPI document, from the table of routes.

use serde_json::{Map, Value as Json, json};

use super::problem::MEDIA;
use super::route::{Media, Need, Parameter, Route};
use super::routes::ROUTES;
use super::schemas::{NAME, reference, schemas};

/// The media type of bytes.
const BYTES: &str = "application/octet-stream";

/// OpenAPI 3.1.
///
/// ```
/// let document = esker_server::protocol::http::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/databases/{database}/query"]["post"].is_object());
/// ```
#[must_use]
pub fn document() -> Json {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| Json::Object(Map::new()));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Esker",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tables, buckets and queries over HTTP.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "where this document was fetched" }],
        "paths": paths,
        "components": { "schemas": schemas(), "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
        } },
    })
}

fn operation(route: &Route) -> Json {
    let mut parameters: Vec<Json> = path_names(route.path).map(path_parameter).collect();
    parameters.extend(route.query.iter().map(|p| parameter(p, "query")));
    parameters.extend(route.headers.iter().map(|p| parameter(p, "header")));
    let mut responses = Map::new();
    for (status, meaning, bodies) in route.answers {
        let mut response = json!({ "description": meaning });
        if !bodies.is_empty() {
            insert(&mut response, "content", content(bodies, &json!({ "type": "string" })));
        }
        responses.insert(status.to_string(), response);
    }
    for status in route.statuses() {
        if !responses.contains_key(&status.to_string()) {
            let reason = match reason(status) {
                plain if status == 400 && route.refuses_key() => {
                    format!("{plain}, or has an Idempotency-Key")
                }
                plain => plain.to_owned(),
            };
            responses.insert(status.to_string(), problem(&reason));
        }
    }
    responses.insert("default".to_owned(), problem("the server failed, or is busy"));
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if !route.bodies.is_empty() {
        // Without a body, a transaction begins as one that writes.
        let is_required = route.id != "begin" && route.id != "putEntry";
        let content = content(route.bodies, &bytes());
        let body = json!({ "required": is_required, "content": content });
        insert(&mut operation, "requestBody", body);
    }
    let security = if route.need == Need::Nothing { json!([]) } else { json!([{ "token": [] }]) };
    insert(&mut operation, "security", security);
    operation
}

fn insert(object: &mut Json, name: &str, value: Json) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Json {
    let schema = match name {
        "database" => json!({ "type": "string", "pattern": NAME }),
        _ => json!({ "type": "string", "minLength": 1 }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

fn parameter(parameter: &Parameter, place: &str) -> Json {
    let schema: Json = serde_json::from_str(parameter.schema).unwrap_or(Json::Bool(true));
    json!({
        "name": parameter.name,
        "in": place,
        "description": parameter.meaning,
        "schema": schema,
    })
}

/// Bodies by their media types; those without a schema are bytes, or `plain`.
fn content(bodies: &[Media], plain: &Json) -> Json {
    let body = |(media, schema): &Media| {
        let (media, schema) = match (*schema, *media) {
            // Any is taken. Generators of clients know this one.
            ("", "*/*" | BYTES) => (BYTES, bytes()),
            ("", media) => (media, plain.clone()),
            (name, media) => (media, reference(name)),
        };
        (media.to_owned(), json!({ "schema": schema }))
    };
    Json::Object(bodies.iter().map(body).collect())
}

fn bytes() -> Json {
    json!({ "type": "string", "format": "binary" })
}

fn problem(meaning: &str) -> Json {
    json!({
        "description": meaning,
        "content": { MEDIA: { "schema": reference("Problem") } },
    })
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "the request does not fit",
        401 => "no token, or none that is known",
        403 => "the token does not reach that far",
        404 => "it is not there",
        406 => "no media type that is accepted can be given",
        409 => "it is there already, or somebody else was quicker",
        410 => "the snapshot of the cursor is held no longer, or changes behind it are not kept",
        412 => "a condition does not hold",
        408 => "nothing came of the rest of the body",
        413 => "the body is too large",
        415 => "the body is of another media type",
        416 => "the range is outside of the value",
        422 => "the idempotency key was used with another body, parameter or header",
        429 => "a limit is reached",
        503 => "the server stops",
        _ => "an error",
    }
}
