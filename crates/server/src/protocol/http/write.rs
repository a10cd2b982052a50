//! Writes that depend on what is there, and writes that are done once however often they are sent.
//!
//! Both are decided in a transaction, together with the write: the tag that `If-Match` names is
//! compared to the row as the transaction sees it, and the answer that an `Idempotency-Key` is
//! to get again is put into a bucket of the same database, in the same commit. A conflict with
//! somebody else begins again, so that the caller sees none.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::Problem;
use super::call::Call;
use super::entity;
use super::route::Outcome;
use super::tags::Tags;
use crate::session::{IdempotencyKey, ONCE_BUCKET, Session, retried};
use crate::{Code, Error, Result};

/// What a write answers, in a form that can be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub status: u16,
    pub body: String,
    pub tag: Option<String>,
}

impl Written {
    /// Without a body.
    pub fn empty() -> Self {
        Self { status: 204, body: String::new(), tag: None }
    }

    /// With JSON.
    pub fn json(status: u16, body: String) -> Self {
        Self { status, body, tag: None }
    }

    pub fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = Response::new(Body::empty());
        if !self.body.is_empty() {
            response = entity::with_body(status, "application/json", self.body);
        }
        *response.status_mut() = status;
        if let Some(tag) = self.tag {
            response.headers_mut().insert(header::ETAG, entity::header_value(&tag));
        }
        response
    }
}

/// What must hold for a write to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Condition {
    /// One of these tags; `*`: any.
    matches: Option<Tags>,
    /// None of these; `*`: nothing is there.
    differs: Option<Tags>,
}

impl Condition {
    fn of(call: &Call) -> Result<Self> {
        Ok(Self { matches: call.tags("if-match")?, differs: call.tags("if-none-match")? })
    }

    fn is_any(&self) -> bool {
        self.matches.is_some() || self.differs.is_some()
    }

    fn check(&self, current: Option<&str>) -> Result<()> {
        let failed = |what: &str| {
            let there = current.unwrap_or("nothing there");
            Err(Error::new(Code::PreconditionFailed, format!("{what}, found {there}")))
        };
        let is_match = |tags: &Tags| current.is_some_and(|now| tags.has_strongly(now));
        if self.matches.as_ref().is_some_and(|tags| !is_match(tags)) {
            return failed("if-match: expected one of the tags");
        }
        let is_known = |tags: &Tags| current.is_some_and(|now| tags.has_weakly(now));
        if self.differs.as_ref().is_some_and(is_known) {
            return failed("if-none-match: expected none of the tags");
        }
        Ok(())
    }
}

/// Refuses to read what has another tag than `If-Match` asks for.
///
/// # Errors
/// `PreconditionFailed`; `InvalidRequest` for a header that lists no tags.
pub(super) fn expect_tag(call: &Call, tag: &str) -> Result<()> {
    Condition { matches: call.tags("if-match")?, differs: None }.check(Some(tag))
}

/// The key of a request, where it has one: of its token, method and path.
pub(super) fn once_of(call: &Call, body: &[u8]) -> Result<Option<IdempotencyKey>> {
    let Some(text) = call.header("idempotency-key")? else { return Ok(None) };
    let uri = &call.parts.uri;
    let (method, path) = (call.parts.method.as_str(), uri.path());
    let scope = [call.principal.id.as_bytes(), method.as_bytes(), path.as_bytes()];
    let options = options_of(call)?;
    let mut asked = vec![uri.query().unwrap_or("").as_bytes(), body];
    asked.extend(options.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    IdempotencyKey::new(text, &scope, &asked, call.app.access_control.config.idempotency_lifetime)
        .map(Some)
}

/// The headers that say, beside the body, what a write is. A body is JSON unless it says otherwise;
/// how it is compressed is known by its bytes.
fn options_of(call: &Call) -> Result<Vec<(&'static str, String)>> {
    let mut options = Vec::new();
    for name in ["esker-ttl", "if-match", "if-none-match"] {
        options.extend(call.header(name)?.map(|value| (name, value.to_owned())));
    }
    let media = call.media()?.filter(|media| media != "application/json");
    options.extend(media.map(|media| ("content-type", media)));
    Ok(options)
}

/// The tag of what a write is about, as a session sees it.
pub(super) type Tag = dyn Fn(&mut Session) -> Result<Option<String>> + Send;

/// Does a write; `body` is what the request sent, `tag` tells what is there.
pub(super) async fn write(
    call: Call,
    body: &[u8],
    tag: Option<Box<Tag>>,
    act: impl Fn(&mut Session) -> Result<Written> + Send + 'static,
) -> Outcome {
    let condition = Condition::of(&call)?;
    if condition.is_any() && tag.is_none() {
        let message = "if-match and if-none-match: not of this, which has no tag";
        return Err(Error::invalid(message).into());
    }
    let once = once_of(&call, body)?;
    let in_transaction = call.header("esker-transaction")?.is_some();
    if in_transaction && once.is_some() {
        let message = "idempotency-key: not within a transaction; its commit is done once anyway";
        return Err(Error::invalid(message).into());
    }
    let written = call.run(move |session| {
        let check = |session: &mut Session| match &tag {
            Some(tag) if condition.is_any() => condition.check(tag(session)?.as_deref()),
            _ => Ok(()),
        };
        if in_transaction {
            check(session)?;
            return session.all_or_none(act);
        }
        let guarded = |session: &mut Session| {
            check(session)?;
            act(session)
        };
        let Some(once) = &once else { return retried(session, guarded) };
        let kept = once.run(session, |session| {
            let written = guarded(session)?;
            serde_json::to_vec(&written).map_err(|e| Error::new(Code::Internal, e.to_string()))
        })?;
        serde_json::from_slice(&kept)
            .map_err(|e| Error::new(Code::Damaged, format!("bucket {ONCE_BUCKET:?}: {e}")))
    });
    match written.await {
        Ok(written) => Ok(written.into_response()),
        Err(e) => Err(of_key(e)),
    }
}

/// What is wrong with a write that may have a key.
pub(super) fn of_key(e: Error) -> Problem {
    match e.message().starts_with("idempotency-key: ") {
        true => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e),
        false => e.into(),
    }
}
