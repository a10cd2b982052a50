//! Pages of other origins (CORS): which may ask, and what their browsers let them see.
//!
//! ```text
//!  Origin ──► is it configured? ──no──► answered without a word of CORS: the browser keeps the
//!               │yes                    answer from the page; a preflight is refused with a reason
//!               ├─ preflight ──► the methods and headers that the routes at the path have
//!               └─ request   ──► the answer of the route, with the headers that a page may read
//! ```
//!
//! A token is a header that a page sets itself, and needs no credentials. These are cookies and
//! certificates, which only something in front of the server asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;

use super::route::Route;
use super::{Problem, ROUTES};
use crate::config::{Config, Origins};
use crate::{Code, Error};

/// The headers of answers that a page may read, beside those that all may.
const EXPOSED: &str = "etag, esker-ttl, accept-ranges, content-range, retry-after, \
                       www-authenticate";

/// How long a browser keeps what a preflight answered, in seconds.
const PREFLIGHT_AGE_S: &str = "600";

/// Which pages may ask, and how.
#[derive(Debug)]
pub(super) struct Cors {
    origins: Origins,
    has_credentials: bool,
}

impl Cors {
    /// As configured; none unless some may ask.
    pub fn of(config: &Config) -> Option<Arc<Self>> {
        let origins = config.cors_origins.clone()?;
        Some(Arc::new(Self { origins, has_credentials: config.cors_credentials }))
    }

    /// Lets the browser show the answer to the page of the request.
    fn allow(&self, origin: &HeaderValue, headers: &mut HeaderMap) {
        let shown = match self.origins {
            Origins::Any => HeaderValue::from_static("*"),
            Origins::Listed(_) => origin.clone(),
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, shown);
        if self.has_credentials {
            let yes = HeaderValue::from_static("true");
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
    }

    /// Tells caches that the answer to another origin is another one.
    fn vary(&self, headers: &mut HeaderMap) {
        if matches!(self.origins, Origins::Listed(_)) {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
    }

    fn preflight(&self, origin: Option<&HeaderValue>, request: &Request) -> Response<Body> {
        let path = request.uri().path();
        let routes: Vec<&Route> = ROUTES.iter().filter(|route| route.is_at(path)).collect();
        let Some(origin) = origin else {
            let found = request.headers().get(header::ORIGIN);
            let message = format!(
                "header origin: expected one of http.cors_origins ({}), found {found:?}",
                self.origins
            );
            return Problem::from(Error::new(Code::Forbidden, message)).into_response();
        };
        if routes.is_empty() {
            return super::dispatch::no_route(path).into_response();
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        self.allow(origin, headers);
        let lists = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, methods(&routes)),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, header_names(&routes)),
            (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE_S.to_owned()),
        ];
        for (name, list) in lists {
            headers.insert(name, super::entity::header_value(&list));
        }
        response
    }
}

fn methods(routes: &[&Route]) -> String {
    let mut methods: Vec<_> = routes.iter().map(|route| route.method.to_uppercase()).collect();
    if methods.iter().any(|method| method == "GET") {
        methods.push("HEAD".to_owned());
    }
    methods.join(", ")
}

/// The headers that the routes look at.
fn header_names(routes: &[&Route]) -> String {
    let mut names = BTreeSet::from(["authorization".to_owned(), "accept".to_owned()]);
    for route in routes {
        names.extend(route.headers.iter().map(|header| header.name.to_lowercase()));
        if !route.bodies.is_empty() {
            names.insert("content-type".to_owned());
        }
        if route.streams {
            names.insert("content-encoding".to_owned());
        }
        if names.contains("range") {
            names.insert("if-range".to_owned());
        }
    }
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Answers preflights, and lets pages of configured origins see the answers to their requests.
pub(super) async fn share(
    State(cors): State<Arc<Cors>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let headers = request.headers();
    let sent = headers.get(header::ORIGIN).cloned();
    let is_one = headers.get_all(header::ORIGIN).iter().count() == 1;
    let asks_first = request.method() == Method::OPTIONS
        && sent.is_some()
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let is_allowed = |origin: &HeaderValue| origin.to_str().is_ok_and(|o| cors.origins.allows(o));
    let origin = sent.filter(|origin| is_one && is_allowed(origin));
    let mut response = match asks_first {
        true => cors.preflight(origin.as_ref(), &request),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    if let Some(origin) = origin.filter(|_| !asks_first) {
        cors.allow(&origin, headers);
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    cors.vary(headers);
    response
}
