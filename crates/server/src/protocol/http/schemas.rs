//! What the OpenAPI document says of bodies: those of requests, and those of answers.

use serde_json::{Map, Value as Json, json};

use crate::Code;

/// The pattern of names of databases and backups.
pub(super) const NAME: &str = "^[a-z0-9_-]{1,63}$";
/// The pattern of times with a unit.
pub(super) const TIME: &str = "^[0-9]{1,12}(ms|s|m|h)$";

/// Every schema, by its name.
pub(super) fn schemas() -> Json {
    let all = [common(), questions(), definitions(), administration(), told(), told_of_server()];
    let schemas = all.into_iter().filter_map(|some| match some {
        Json::Object(some) => Some(some),
        _ => None,
    });
    Json::Object(schemas.flatten().collect())
}

/// The schema of a name.
pub(super) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn some_text() -> Json {
    json!({ "type": "string", "minLength": 1 })
}

/// A body of a request: members that it does not know are refused.
fn strict(properties: Json, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

/// A body of an answer: each member is there, and later versions may have more.
fn answer(properties: Json) -> Json {
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let required: Vec<String> = names.cloned().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn list_of(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

fn common() -> Json {
    let text = json!({ "type": "string" });
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "Problem": {
            "type": "object",
            "description": "what is wrong; of events, what was stored nevertheless; of \
                            changes that are gone, the place to begin behind",
            "properties": {
                "type": text, "title": text, "detail": text,
                "status": { "type": "integer" },
                "code": { "type": "string", "enum": codes },
                "retryable": { "type": "boolean" },
                "id": text,
                "after": text,
                "accepted": { "type": "integer" }, "rejected": { "type": "integer" },
                "results": list_of(reference("Object")),
                "first_errors": list_of(reference("Object")),
                "first_id": { "type": ["string", "null"] },
                "last_id": { "type": ["string", "null"] },
            },
            "required": ["type", "title", "detail", "status", "code", "retryable"],
        },
        "Object": { "type": "object", "additionalProperties": true },
        "Row": { "type": "object", "additionalProperties": true, "description": "fields by name" },
        "Rows": list_of(reference("Row")),
        "Events": { "oneOf": [reference("Row"), reference("Rows")] },
    })
}

fn questions() -> Json {
    let text = json!({ "type": "string" });
    let cursor = json!({ "type": ["string", "null"] });
    json!({
        "Answer": {
            "type": "object",
            "properties": {
                "columns": list_of(answer(json!({ "name": text, "type": text }))),
                "rows": reference("Rows"),
                "changed": { "type": "integer" },
                "next": cursor,
                "previous": cursor,
                "total": { "type": ["integer", "null"] },
                "text": text,
            },
        },
        "Question": {
            "description": "a query as JSON, or SQL with its parameters",
            "oneOf": [reference("JsonQuery"), reference("SqlQuery")],
        },
        "JsonQuery": {
            "type": "object",
            "description": "docs/reference/query-json.md has the other members",
            "required": ["table"],
            "additionalProperties": true,
            "properties": { "table": some_text() },
        },
        "SqlQuery": strict(
            json!({
                "sql": { "type": "string", "minLength": 1, "description": "one statement" },
                "parameters": list_of(json!({
                    "type": ["string", "number", "boolean", "null"],
                })),
                "nulls_order": {
                    "type": "string",
                    "enum": ["smallest", "greatest", "first", "last"],
                    "description": "where NULLs go in an order that does not say it",
                },
                "division_by_zero": { "type": "string", "enum": ["null", "error"] },
            }),
            &["sql"],
        ),
        "Plan": answer(json!({ "plan": text })),
    })
}

/// What tables and buckets are made of, and changed by.
fn definitions() -> Json {
    let renamed = json!({ "type": "string", "minLength": 1, "description": "the new name" });
    let changes = json!({
        "type": "array",
        "items": some_text(),
        "minItems": 1,
        "description": "each as it stands behind ALTER TABLE and a name; one commit",
    });
    json!({
        "NewTable": strict(
            json!({ "schema": {
                "type": "string", "minLength": 1,
                "description": "such as `id i64 not null, name text, primary key (id)`",
            } }),
            &["schema"],
        ),
        "TableChange": { "oneOf": [reference("TableAlteration"), reference("NewName")] },
        "TableAlteration": strict(json!({ "changes": changes }), &["changes"]),
        "NewName": strict(json!({ "rename": renamed }), &["rename"]),
        "NewIndex": strict(
            json!({ "index": {
                "type": "string", "minLength": 1, "description": "such as `unique name`",
            } }),
            &["index"],
        ),
        "NewView": strict(
            json!({
                "query": {
                    "type": "string", "minLength": 1, "description": "such as `SELECT id FROM t`",
                },
                "materialized": {
                    "type": "boolean",
                    "description": "whether groups of its table are kept; false unless given",
                },
                "retention": {
                    "type": "string", "minLength": 1,
                    "description": "how long what groups came to is kept when events of a stream \
                                    end: such as `90 days`, or `forever`",
                },
            }),
            &["query"],
        ),
    })
}

fn administration() -> Json {
    let name = json!({ "type": "string", "pattern": NAME });
    let limit = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "NewBackup": strict(json!({ "name": name }), &["name"]),
        "Restore": strict(
            json!({
                "backup": name,
                "of": {
                    "type": ["string", "null"],
                    "pattern": NAME,
                    "description": "the database it was made of; that of the path unless given",
                },
            }),
            &["backup"],
        ),
        "NewToken": strict(
            json!({
                "name": { "type": "string", "minLength": 1, "maxLength": 200 },
                "scopes": {
                    "type": "array", "minItems": 1, "items": {
                        "type": "string",
                        "pattern": "^(read|write|admin)(:[a-z0-9_-]{1,63}(/.+)?)?$",
                    },
                },
                "expires": {
                    "type": ["string", "null"], "pattern": TIME, "description": "such as 12h",
                },
            }),
            &["name", "scopes"],
        ),
        "NewTransaction": strict(
            json!({
                "read_only": { "type": "boolean" },
                "isolation": { "type": "string", "enum": ["snapshot", "serializable"] },
            }),
            &[],
        ),
        "Limits": strict(
            json!({
                "rows": limit, "bytes": limit, "requests_per_second": limit,
                "events_per_second": limit,
                "concurrent_queries": limit, "result_bytes": limit, "memory_bytes": limit,
            }),
            &[],
        ),
    })
}

/// A description of a table, which has figures of a stream where it is one.
fn with_stream(mut table: Json) -> Json {
    let (number, time) =
        (json!({ "type": "integer" }), json!({ "type": ["integer", "null"], "description": "µs" }));
    let stream = answer(json!({
        "time": { "type": "string" }, "options": reference("Object"), "window_us": number,
        "events": number, "oldest_us": time, "newest_us": time, "windows": number,
        "window_segments_max": number, "mixed_segments": number, "waiting_bytes": number,
        "given_row_id": number, "ended_row_id": number, "next_end_us": time,
    }));
    if let Some(properties) = table.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert("stream".to_owned(), stream);
    }
    table
}

/// A description of a view.
fn view() -> Json {
    let text = json!({ "type": "string" });
    answer(json!({
        "view": text, "query": text, "reads": list_of(text.clone()),
        "materialized": { "type": "boolean" },
        "retention": { "type": ["string", "null"], "description": "null: as long as its rows" },
        "columns": list_of(answer(json!({ "name": text, "type": text }))),
    }))
}

/// What is answered of a database.
fn told() -> Json {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let (flag, texts) = (json!({ "type": "boolean" }), list_of(text.clone()));
    let seconds = json!({ "type": ["integer", "null"], "description": "null: they do not end" });
    let problems = list_of(answer(json!({ "place": text, "message": text })));
    json!({
        "TableNames": answer(json!({ "tables": texts })),
        "ViewNames": answer(json!({ "views": texts })),
        "View": view(),
        "Table": with_stream(answer(json!({
            "table": text, "schema": text, "key": texts, "rows": number,
            "fields": list_of(answer(json!({ "name": text, "type": text, "nullable": flag }))),
            "indexes": list_of(answer(json!({
                "name": text, "fields": texts, "kind": text, "unique": flag,
                "where": {
                    "type": ["string", "null"],
                    "description": "what is true of its rows; null: it has all",
                },
            }))),
        }))),
        "Appended": json!({
            "type": "object",
            "properties": {
                "id": text, "accepted": number, "rejected": number,
                "results": list_of(reference("Object")),
                "first_errors": list_of(reference("Object")),
                "first_id": { "type": ["string", "null"] },
                "last_id": { "type": ["string", "null"] },
                "duplicate": { "type": "boolean" },
                "duplicates": { "type": "integer" },
                "durable_within_ms": number,
            },
        }),
        "EventPage": answer(json!({
            "events": list_of(reference("Object")), "next": { "type": ["string", "null"] },
        })),
        "Removed": json!({
            "type": "object",
            "required": ["removed"],
            "properties": {
                "removed": number,
                "erasure": { "type": "integer", "description": "its number in esker_erasures" },
                "bytes_left": { "type": "integer", "description": "to be written anew" },
            },
        }),
        "Loaded": answer(json!({ "rows": number, "skipped": number })),
        "Transaction": answer(json!({ "id": text })),
        "BucketNames": answer(json!({ "buckets": texts })),
        "Bucket": answer(json!({ "bucket": text, "entries": number, "ttl_s": seconds })),
        "EntryPage": answer(json!({
            "entries": list_of(answer(json!({ "key": text, "value": text }))),
            "next": {
                "type": ["string", "null"],
                "description": "for `from`: the first key that is left; with `reverse`, for `to`: \
                                the last key that is here; null: none is left",
            },
        })),
        "Number": answer(json!({ "value": number })),
        "Compacted": answer(json!({
            "rewritten": number, "bytes_before": number, "bytes_after": number,
        })),
        "Checked": answer(json!({
            "sound": flag, "problems": problems, "notes": problems, "tables": number,
            "rows": number, "segments": number, "bytes": number, "index_entries": number,
        })),
    })
}

/// What is answered of a server and its databases.
fn told_of_server() -> Json {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let (perhaps, texts) = (json!({ "type": ["integer", "null"] }), list_of(text.clone()));
    let token = json!({
        "id": text, "name": text, "scopes": texts, "created_us": number, "expires_us": perhaps,
    });
    let made = json!({
        "id": text, "name": text, "scopes": texts, "expires_us": perhaps, "token": text,
    });
    let running = answer(json!({ "statement": text, "elapsed_ms": number }));
    json!({
        "Index": answer(json!({
            "name": text, "version": text, "document": text, "health": text,
            "readiness": text, "metrics": text, "databases": text,
        })),
        "Status": answer(json!({ "status": text })),
        "TokenList": answer(json!({ "tokens": list_of(answer(token)) })),
        "MadeToken": answer(made),
        "DatabaseNames": answer(json!({ "databases": texts })),
        "MadeDatabase": answer(json!({ "database": text })),
        "Database": answer(json!({
            "database": text, "tables": number, "rows": number, "segment_bytes": number,
            "log_bytes": number, "memory_bytes": number, "commit": number,
        })),
        "Backup": answer(json!({
            "place": text, "commit": number, "linked": number, "linked_bytes": number,
            "copied": number, "copied_bytes": number,
        })),
        "BackupNames": answer(json!({ "backups": texts })),
        "Restored": answer(json!({ "database": text, "commit": number })),
        "SessionList": answer(json!({
            "running_queries": number,
            "transactions": list_of(answer(json!({
                "token": text, "begun_us": number, "silent_ms": number,
            }))),
            "sessions": list_of(answer(json!({
                "id": number, "protocol": text, "token": text, "began_us": number,
                "age_ms": number, "transaction_ms": perhaps, "running": list_of(running),
            }))),
        })),
        "SlowStatements": answer(json!({
            "statements": list_of(answer(json!({
                "ended_us": number, "elapsed_ms": number, "statement": text,
                "plan": { "type": ["string", "null"] }, "completed": { "type": "boolean" },
            }))),
        })),
    })
}
