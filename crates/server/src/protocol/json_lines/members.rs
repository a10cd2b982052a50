//! Which members a line has.

use std::borrow::Cow;
use std::collections::BTreeMap;

use esker_format::suggest::near_or_all;
use serde_json::value::RawValue;

use crate::{Error, Result};

/// Those that every operation takes.
const COMMON: [&str; 3] = ["id", "op", "idempotency_key"];

/// The members of a line, as they stand there.
pub(super) type Members<'l> = BTreeMap<Cow<'l, str>, &'l RawValue>;

/// Every operation, in the order of the reference, and the members that it takes beside [`COMMON`].
pub(crate) const OPERATIONS: [(&str, &[&str]); 25] = [
    ("hello", &["token", "database"]),
    ("ping", &[]),
    ("tables", &[]),
    ("schema", &["table"]),
    ("get", &["table", "key", "keys"]),
    ("exists", &["table", "key", "keys"]),
    ("insert", &["table", "row", "rows", "replace"]),
    ("update", &["table", "key", "fields"]),
    ("update_many", &["table", "updates"]),
    ("delete", &["table", "key", "keys"]),
    ("load", &["table", "on_duplicate"]),
    ("sql", &["sql", "parameters"]),
    ("query", &["query"]),
    ("explain", &["query"]),
    ("admin", &["admin"]),
    ("begin", &["serializable", "read_only"]),
    ("commit", &[]),
    ("rollback", &[]),
    ("buckets", &[]),
    ("bucket_get", &["bucket", "key"]),
    ("bucket_put", &["bucket", "key", "value", "ttl_ms"]),
    ("bucket_remove", &["bucket", "key"]),
    ("bucket_increment", &["bucket", "key", "by"]),
    ("bucket_range", &["bucket", "from", "to", "prefix", "limit", "reverse"]),
    ("cancel", &["request"]),
];

/// The place of an operation among all.
pub(super) fn position(op: &str) -> Option<usize> {
    OPERATIONS.iter().position(|(known, _)| *known == op)
}

/// Refuses members that an operation does not take: left unread, they would be believed to hold.
///
/// # Errors
/// The first of them, and which is near to it; an unknown operation.
pub(super) fn expect<'m>(op: &str, names: impl IntoIterator<Item = &'m str>) -> Result<()> {
    let (_, known) = OPERATIONS.iter().find(|(name, _)| *name == op).ok_or_else(|| unknown(op))?;
    let is_foreign = |name: &&str| !known.contains(name) && !COMMON.contains(name);
    let Some(name) = names.into_iter().find(is_foreign) else { return Ok(()) };
    let near = near_or_all(name, "members", known.iter().chain(&COMMON).copied());
    Err(Error::invalid(format!("op {op:?}: unknown member {name:?}{near}")))
}

/// An operation that there is not.
pub(super) fn unknown(op: &str) -> Error {
    let [known @ .., last] = OPERATIONS.map(|(name, _)| name);
    let known = known.join(", ");
    Error::invalid(format!("unknown op {op:?}: expected {known} or {last}"))
}

/// A line that could not be read.
pub(super) struct Unread {
    pub id: Option<String>,
    /// Rows follow it, which are no requests.
    pub is_load: bool,
    pub error: Error,
}

impl Unread {
    /// What is known of a line, and of what is wrong with it.
    pub fn of(line: &[u8], e: &serde_json::Error) -> Self {
        let error = Error::invalid(format!("a request as JSON: {e}"));
        let Ok(members) = serde_json::from_slice::<Members<'_>>(line) else {
            return Self { id: None, is_load: false, error };
        };
        let id = members.get("id").map(|id| id.get().to_owned());
        let op = members.get("op").and_then(|op| serde_json::from_str::<String>(op.get()).ok());
        let names = members.keys().map(AsRef::as_ref);
        let foreign = op.as_deref().and_then(|op| expect(op, names).err());
        let is_load = op.as_deref() == Some("load");
        Self { id, is_load, error: foreign.unwrap_or(error) }
    }
}
