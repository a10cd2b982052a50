//! One request, once it was let in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::tags::Tags;
use super::{App, Problem};
use crate::auth::token::Principal;
use crate::resources::budget::Share;
use crate::session::{Canceller, ResultBudget, caught};
use crate::tenant::{Tenant, TenantName};
use crate::{Code, Error, Result, Session};

/// A body that is read has room for so many times what has come of it: few steps, so that it seldom
/// waits in the middle, and little for a client that does not send the rest.
const ROOM_FACTOR: usize = 4;

const PAGE_LIMIT_MAX: usize = 10_000;
const PAGE_LIMIT: &str = "a number from 1 to 10000";

/// What is done in a session for a request.
type Work = dyn FnOnce(&mut Session) -> Result<()> + Send;

/// One request, once it was let in.
pub(crate) struct Call {
    pub app: Arc<App>,
    pub principal: Principal,
    /// The database of the path, where the route is in one.
    pub tenant: Option<Arc<Tenant>>,
    /// The parameters of the path.
    pub path: PathParameters,
    /// The parameters of the query.
    pub query: BTreeMap<String, String>,
    pub parts: Parts,
    /// Taken by its reader; behind a lock, as a body alone is not shared between threads.
    pub body: Mutex<Option<Body>>,
    /// The share of the budget of a body that was read as a whole.
    pub share: Share,
}

/// The parameters of a path, by their names: a few.
#[derive(Debug, Default)]
pub(crate) struct PathParameters(pub Vec<(&'static str, String)>);

impl PathParameters {
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Cancels what runs for somebody who went away.
pub(super) struct CancelOnDrop(pub Option<Canceller>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(canceller) = self.0.take() {
            canceller.cancel();
        }
    }
}

impl Call {
    /// A parameter of the path.
    pub fn path(&self, name: &str) -> &str {
        self.path.get(name).unwrap_or("")
    }

    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A parameter of the query that is a number or something else that is read from text.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>> {
        let read = |text: &str| {
            let wrong = || Error::invalid(format!("{name}: expected {expected}, found {text:?}"));
            text.parse().map_err(|_| wrong())
        };
        self.parameter(name).map(read).transpose()
    }

    /// The most entries or rows of a page: 100 unless given.
    pub fn page_limit(&self) -> Result<usize> {
        let limit = self.parsed("limit", PAGE_LIMIT)?.unwrap_or(100);
        let wrong = || Error::invalid(format!("limit: expected {PAGE_LIMIT}, found {limit}"));
        (1..=PAGE_LIMIT_MAX).contains(&limit).then_some(limit).ok_or_else(wrong)
    }

    /// A header that is there at most once, as text.
    pub fn header(&self, name: &str) -> Result<Option<&str>> {
        let mut values = self.parts.headers.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Error::invalid(format!("header {name}: expected once, found several")));
        }
        let text = value.to_str();
        text.map(Some).map_err(|_| Error::invalid(format!("header {name}: expected plain text")))
    }

    /// The tags that a header lists, which may come in several lines.
    ///
    /// # Errors
    /// As for [`Tags::parse`].
    pub fn tags(&self, name: &str) -> Result<Option<Tags>> {
        let mut list: Option<String> = None;
        for value in self.parts.headers.get_all(name) {
            let text = value
                .to_str()
                .map_err(|_| Error::invalid(format!("header {name}: expected plain text")))?;
            list = Some(list.map_or_else(|| text.to_owned(), |list| format!("{list},{text}")));
        }
        list.map(|list| Tags::parse(name, &list)).transpose()
    }

    /// The name of the database in the path, whether it is there or not.
    pub fn tenant_name(&self) -> Result<TenantName> {
        self.path("database").parse().map_err(Error::invalid)
    }

    /// The database of the path.
    pub fn tenant(&self) -> Result<Arc<Tenant>> {
        self.tenant.clone().ok_or_else(|| Error::new(Code::Internal, "a route without a database"))
    }

    /// A session of its own.
    pub fn session(&self) -> Result<Session> {
        let session = self.app.access_control.session(&self.principal, &self.tenant()?);
        Ok(session.for_one_request())
    }

    /// The media type of the body, without its parameters.
    pub fn media(&self) -> Result<Option<String>> {
        let media = self.header(header::CONTENT_TYPE.as_str())?;
        let essence = |text: &str| text.split(';').next().unwrap_or("").trim().to_lowercase();
        Ok(media.map(essence))
    }

    /// The charset that the media type of the body names, if it does.
    pub fn charset(&self) -> Result<Option<&str>> {
        let Some(media) = self.header(header::CONTENT_TYPE.as_str())? else { return Ok(None) };
        let parameters = media.split(';').skip(1).filter_map(|text| text.split_once('='));
        let mut charsets = parameters
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches('"'));
        Ok(charsets.next())
    }

    /// The body, the first time.
    pub fn take_body(&self) -> Body {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
        body.unwrap_or_default()
    }

    /// The body as a whole. Its share of the budget grows with what has come, whatever is said to
    /// come; a client that sends nothing for some time is refused.
    pub async fn bytes(&mut self) -> std::result::Result<Bytes, Problem> {
        let config = &self.app.access_control.config;
        let (most, patience) = (config.request_bytes_max, config.stall_timeout);
        let mut body = Limited::new(self.take_body(), most);
        let declared = body.size_hint().exact().and_then(|len| usize::try_from(len).ok());
        let room_max =
            declared.unwrap_or(most).min(most).min(self.app.access_control.budget.share_max());
        let mut bytes = Vec::new();
        while let Ok(frame) = tokio::time::timeout(patience, body.frame()).await {
            let Some(frame) = frame else { return Ok(bytes.into()) };
            let frame = frame.map_err(|e| {
                if e.is::<http_body_util::LengthLimitError>() {
                    return too_large(most);
                }
                Problem::from(Error::invalid(format!("the body ended early: {e}")))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let needed = bytes.len() + data.len();
            if needed > bytes.capacity() {
                let room = needed.saturating_mul(ROOM_FACTOR).min(room_max).max(needed);
                self.share.wait(room, patience).await?;
                bytes.reserve_exact(room - bytes.len());
            }
            bytes.extend_from_slice(&data);
        }
        Err(stalled(patience))
    }

    /// The body as text.
    pub async fn text(&mut self) -> std::result::Result<String, Problem> {
        let bytes = self.bytes().await?;
        let wrong = |_| Problem::from(Error::invalid("body: expected text in UTF-8"));
        String::from_utf8(bytes.into()).map_err(wrong)
    }

    /// The body, read from JSON; an empty one as an empty object.
    pub async fn json<T: DeserializeOwned>(&mut self) -> std::result::Result<T, Problem> {
        let bytes = self.bytes().await?;
        let text = if bytes.is_empty() { b"{}".as_slice() } else { &bytes[..] };
        serde_json::from_slice(text).map_err(|e| Error::invalid(format!("body: {e}")).into())
    }

    /// Runs what may wait for the disk, or take long, beside the runtime: in a session of its own,
    /// or in that of the transaction that the request names. It is cancelled when no client waits
    /// for it any more.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (sender, done) = oneshot::channel();
        let work = move |session: &mut Session| {
            drop(sender.send(work(session)?));
            Ok(())
        };
        self.run_boxed(Box::new(work)).await?;
        done.await.map_err(|_| stopping())
    }

    /// The same, compiled once for all requests.
    async fn run_boxed(&self, work: Box<Work>) -> Result<()> {
        let patience = self.app.access_control.config.stall_timeout;
        let room = ResultBudget::shared(self.app.access_control.budget.share(), patience).twice();
        if let Some(id) = self.header("esker-transaction")? {
            let held = self.app.transactions.find(id, &self.principal, &*self.tenant()?)?;
            let turn = held.turn().await;
            let canceller = Canceller::default();
            let mut guard = CancelOnDrop(Some(canceller.clone()));
            let outcome = blocking(move || {
                let _turn = turn;
                held.run(canceller, |session| in_room(session, room, work))
            });
            let outcome = outcome.await?;
            guard.0 = None;
            return outcome;
        }
        let mut session = self.session()?;
        session.register("http");
        let mut guard = CancelOnDrop(Some(session.canceller()));
        let outcome = blocking(move || in_room(&mut session, room, work)).await?;
        guard.0 = None;
        outcome
    }

    /// The same for what takes no more than microseconds, unless a transaction is named, or what is
    /// answered is large.
    pub async fn run_at_once<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Session) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        if self.header("esker-transaction")?.is_some() {
            return self.run(work).await;
        }
        let done = {
            let mut session = self.session()?;
            session.answer_in(ResultBudget::at_once());
            let done = caught(|| work(&mut session)).flatten();
            (done.is_ok() || !session.is_budget_exhausted()).then_some(done)
        };
        match done {
            Some(done) => done,
            None => self.run(work).await,
        }
    }

    /// Bytes that have a share of the budget until they are sent: that of the answer that they were
    /// read for, where it has one.
    pub async fn held(&self, bytes: Vec<u8>, share: Option<Share>) -> Result<Bytes> {
        let access_control = &self.app.access_control;
        let mut share = share.unwrap_or_else(|| access_control.budget.share());
        share.wait(bytes.len(), access_control.config.stall_timeout).await?;
        Ok(share.hold(bytes))
    }
}

/// Does something whose answer is put together in a room.
fn in_room(
    session: &mut Session,
    room: ResultBudget,
    work: impl FnOnce(&mut Session) -> Result<()>,
) -> Result<()> {
    session.answer_in(room);
    let done = work(session);
    drop(session.end_answer());
    done
}

/// Runs what may wait beside the runtime. What is said of a panic is not for clients. The runtime
/// sees one type of work: it would be compiled anew for each closure.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    let (sender, done) = oneshot::channel();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(sender.send(caught(work))));
    drop(tokio::task::spawn_blocking(work));
    done.await.unwrap_or_else(|_| Err(stopping()))
}

fn stopping() -> Error {
    Error::new(Code::Unavailable, "the server stops")
}

/// A body of which nothing came for too long.
pub(super) fn stalled(patience: Duration) -> Problem {
    let milliseconds = patience.as_millis();
    let message = format!("the body ended early: nothing was sent for {milliseconds} ms");
    Problem::new(StatusCode::REQUEST_TIMEOUT, Error::new(Code::Timeout, message))
}

/// A body that is larger than it may be.
pub(super) fn too_large(most: usize) -> Problem {
    let message = format!(
        "the body has more than {most} bytes, which is what is read as a whole: load rows as a \
         stream instead, without an idempotency-key and outside of a transaction"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Error::new(Code::LimitExceeded, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was sent to the client, with what it tells of the data.
    #[test]
    fn what_a_panic_says_is_not_sent() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let failed = runtime.block_on(blocking(|| -> () { panic!("secret {}", 7) })).unwrap_err();
        assert_eq!(failed.code(), Code::Internal);
        assert!(!failed.message().contains("secret"), "{failed}");
    }
}
