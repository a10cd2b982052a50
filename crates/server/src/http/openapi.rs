//! The OpenAPI document, from the table of routes.

use serde_json::{Map, Value as Json, json};

use super::problem::MEDIA;
use super::route::{Media, Need, Parameter, Route};
use super::routes::ROUTES;
use crate::Code;

/// OpenAPI 3.1.
///
/// ```
/// let document = esker_server::http::document();
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
            insert(&mut response, "content", content(bodies));
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
        let body = json!({ "required": is_required, "content": content(route.bodies) });
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
        "database" => json!({ "type": "string", "pattern": "^[a-z0-9_-]{1,63}$" }),
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

fn content(bodies: &[Media]) -> Json {
    let body = |(media, schema): &Media| {
        let schema = match (*schema, *media) {
            ("", "*/*") => json!({ "type": "string", "format": "binary" }),
            ("", _) => json!({ "type": "string" }),
            (name, _) => json!({ "$ref": format!("#/components/schemas/{name}") }),
        };
        ((*media).to_owned(), json!({ "schema": schema }))
    };
    Json::Object(bodies.iter().map(body).collect())
}

fn problem(meaning: &str) -> Json {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    json!({ "description": meaning, "content": { MEDIA: { "schema": schema } } })
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "the request does not fit",
        401 => "no token, or none that is known",
        403 => "the token does not reach that far",
        404 => "it is not there",
        406 => "no media type that is accepted can be given",
        409 => "it is there already, or somebody else was quicker",
        410 => "the snapshot of the cursor is held no longer",
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

fn schemas() -> Json {
    let text = json!({ "type": "string" });
    let some_text = json!({ "type": "string", "minLength": 1 });
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let mut schemas = json!({
        "Problem": {
            "type": "object",
            "required": ["type", "title", "status", "detail", "code", "retryable"],
            "properties": {
                "type": text, "title": text, "detail": text,
                "status": { "type": "integer" },
                "code": { "type": "string", "enum": codes },
                "retryable": { "type": "boolean" },
            },
        },
        "Object": { "type": "object", "additionalProperties": true },
        "Row": { "type": "object", "additionalProperties": true, "description": "fields by name" },
        "Rows": { "type": "array", "items": { "$ref": "#/components/schemas/Row" } },
        "Sql": { "type": "string", "minLength": 1, "description": "one statement" },
        "Answer": {
            "type": "object",
            "properties": {
                "columns": { "type": "array", "items": { "$ref": "#/components/schemas/Object" } },
                "rows": { "$ref": "#/components/schemas/Rows" },
                "changed": { "type": "integer" },
                "next": { "type": ["string", "null"] },
                "previous": { "type": ["string", "null"] },
                "total": { "type": ["integer", "null"] },
                "text": text,
            },
        },
        "Question": {
            "type": "object",
            "description": "a query as JSON, or SQL with its parameters",
            "oneOf": [
                {
                    "type": "object",
                    "required": ["table"],
                    "additionalProperties": true,
                    "properties": { "table": some_text },
                },
                {
                    "type": "object",
                    "required": ["sql"],
                    "additionalProperties": false,
                    "properties": {
                        "sql": some_text,
                        "parameters": { "type": "array", "items": {} },
                    },
                },
            ],
        },
    });
    if let (Some(schemas), Json::Object(bodies)) = (schemas.as_object_mut(), bodies()) {
        schemas.extend(bodies);
    }
    schemas
}

/// What requests have as JSON.
fn bodies() -> Json {
    let text = json!({ "type": "string" });
    let limit = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "NewTable": strict(json!({ "schema": text }), &["schema"]),
        "TableChange": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "changes": {
                    "type": "array",
                    "items": text,
                    "minItems": 1,
                    "description": "each as it stands behind ALTER TABLE and a name; one commit",
                },
                "rename": { "type": ["string", "null"], "description": "the new name" },
            },
            "oneOf": [{ "required": ["changes"] }, { "required": ["rename"] }],
        },
        "BucketChange": strict(json!({ "rename": text }), &["rename"]),
        "NewIndex": strict(json!({ "index": text }), &["index"]),
        "NewBackup": strict(
            json!({ "name": { "type": "string", "pattern": "^[a-z0-9_-]{1,63}$" } }), &["name"],
        ),
        "Restore": strict(
            json!({
                "backup": { "type": "string", "pattern": "^[a-z0-9_-]{1,63}$" },
                "of": {
                    "type": ["string", "null"],
                    "pattern": "^[a-z0-9_-]{1,63}$",
                    "description": "the database it was made of; that of the path unless given",
                },
            }),
            &["backup"],
        ),
        "NewToken": strict(
            json!({
                "name": { "type": "string", "minLength": 1, "maxLength": 200 },
                "scopes": { "type": "array", "items": text, "minItems": 1 },
                "expires": { "type": ["string", "null"], "description": "such as 12h" },
            }),
            &["name", "scopes"],
        ),
        "NewTransaction": strict(
            json!({
                "read_only": { "type": "boolean" },
                "isolation": {
                    "type": ["string", "null"],
                    "enum": ["snapshot", "serializable", null],
                },
            }),
            &[],
        ),
        "Limits": strict(
            json!({
                "rows": limit, "bytes": limit, "requests_per_second": limit,
                "concurrent_queries": limit, "result_bytes": limit, "memory_bytes": limit,
            }),
            &[],
        ),
    })
}

fn strict(properties: Json, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}
