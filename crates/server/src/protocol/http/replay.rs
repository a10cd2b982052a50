//! Requests without a socket, for fuzzing: one after another, each answered by its route.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, header};
use esker_vfs::Environment;
use futures_util::stream;
use http_body_util::BodyExt;
use tower_service::Service;

use super::{App, ROUTES, Route, dispatch};
use crate::auth::access_control::AccessControl;
use crate::config::Config;
use crate::{Code, Error, Result};

/// Between requests: not a character of any of them.
const SEPARATOR: u8 = 0x1e;
/// Bodies come in pieces of so many bytes, so that what is read lies across their ends.
const PIECE_BYTES: usize = 61;
const MEMORY_BYTES: u64 = 256 << 20;
const STATEMENT: Duration = Duration::from_secs(2);

/// What a request was answered with.
#[derive(Debug)]
pub struct Replayed {
    /// The route that it went to, where there is one.
    pub route: Option<&'static Route>,
    /// The status.
    pub status: u16,
    /// The body, unless it is compressed.
    pub body: Option<Vec<u8>>,
}

/// Answers the requests that some bytes have, as a server over a database in memory would, for
/// somebody who may do anything. A request is a line of method and target, lines of headers, an
/// empty line, and a body; what is none is left out. It has a `Host`, as every client sends one,
/// unless its lines give others. Between two of them stands a byte, 1e.
///
/// # Errors
/// When there is no such server.
pub fn answer_requests(input: &[u8]) -> Result<Vec<Replayed>> {
    let config = Config {
        memory: true,
        trust_local: true,
        memory_limit_bytes: MEMORY_BYTES,
        statement_timeout: Some(STATEMENT),
        ..Config::default()
    };
    let access_control = AccessControl::open(config, &Environment::os(), None)?;
    let mut router = dispatch::router(&Arc::new(App::new(Arc::new(access_control))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, format!("runtime: {e}")))?;
    runtime.block_on(async {
        let mut replayed = Vec::new();
        for request in input.split(|byte| *byte == SEPARATOR).filter_map(request) {
            replayed.push(answer(&mut router, request).await?);
        }
        Ok(replayed)
    })
}

async fn answer(router: &mut Router, request: Request<Body>) -> Result<Replayed> {
    let route = route_of(&request);
    let response = match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (parts, body) = response.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|e| Error::new(Code::Internal, format!("an answer broke off: {e}")))?;
    let is_plain = !parts.headers.contains_key(header::CONTENT_ENCODING);
    let body = is_plain.then(|| body.to_bytes().into());
    Ok(Replayed { route, status: parts.status.as_u16(), body })
}

fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (head, body) = (bytes.get(..end)?, bytes.get(end + 2..)?);
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let (method, target) = (first.next()?, first.next()?);
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(line.get(..colon)?).ok()?;
        let value = HeaderValue::from_bytes(line.get(colon + 1..)?.trim_ascii()).ok()?;
        request = request.header(name, value);
    }
    if !request.headers_ref()?.contains_key(header::HOST) {
        request = request.header(header::HOST, "localhost");
    }
    let pieces: Vec<_> = body.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect();
    let pieces = pieces.into_iter().map(Ok::<_, std::convert::Infallible>);
    request.body(Body::from_stream(stream::iter(pieces))).ok()
}

fn route_of(request: &Request<Body>) -> Option<&'static Route> {
    // Methods are what they are in capital letters alone.
    let is_method = |name: &str| request.method().as_str() == name.to_ascii_uppercase();
    ROUTES.iter().find(|route| is_method(route.method) && route.is_at(request.uri().path()))
}
