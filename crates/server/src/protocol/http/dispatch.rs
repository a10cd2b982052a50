//! From a request to its handler: everything that all routes share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header, request::Parts};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter};
use esker_format::suggest::near_or_all;

use super::call::{Call, PathParameters, blocking, too_large};
use super::cors::{self, Cors};
use super::host::expect_host;
use super::route::{Need, Route};
use super::{App, Problem, ROUTES, compression};
use crate::auth::token::Principal;
use crate::session::Level;
use crate::tenant::TenantName;
use crate::{Code, Error, Result};

/// Who is at the other end, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub IpAddr);

/// A router of all routes.
pub(super) fn router(app: &Arc<App>) -> Router {
    let mut methods: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for route in ROUTES {
        let app = Arc::clone(app);
        let serve = move |request: Request<Body>| serve(Arc::clone(&app), route, request);
        let filter = MethodFilter::try_from(method(route.method)).unwrap_or(MethodFilter::GET);
        let one = methods.remove(route.path).unwrap_or_default();
        methods.insert(route.path, one.on(filter, serve));
    }
    let router = methods.into_iter().fold(Router::new(), |r, (path, m)| r.route(path, m));
    let router = router.fallback(not_found).method_not_allowed_fallback(method_not_allowed);
    let router = match Cors::of(&app.access_control.config) {
        Some(cors) => router.layer(from_fn_with_state(cors, cors::share)),
        None => router,
    };
    router.layer(from_fn(expect_host))
}

/// Answers the busiest route, that of events, without the router.
pub(super) struct Direct {
    app: Arc<App>,
    route: &'static Route,
}

impl Direct {
    /// `None` where answers are shared with pages of other origins: the router does that.
    pub fn of(app: &Arc<App>) -> Option<Self> {
        let route = ROUTES.iter().find(|route| route.id == "appendEvents")?;
        let is_plain = Cors::of(&app.access_control.config).is_none();
        is_plain.then(|| Self { app: Arc::clone(app), route })
    }

    /// Whether it answers a request.
    pub fn takes<B>(&self, request: &Request<B>) -> bool {
        *request.method() == Method::POST && self.route.is_at(request.uri().path())
    }

    /// Answers a request as the router would.
    pub fn answer(&self, request: Request<Body>) -> impl Future<Output = Response<Body>> + use<> {
        let (app, route) = (Arc::clone(&self.app), self.route);
        async move {
            match super::host::check(&request) {
                Ok(()) => serve(app, route, request).await,
                Err(e) => Problem::from(e).into_response(),
            }
        }
    }
}

fn method(name: &str) -> Method {
    Method::from_bytes(name.to_uppercase().as_bytes()).unwrap_or(Method::GET)
}

async fn not_found(request: Request<Body>) -> Response<Body> {
    no_route(request.uri().path()).into_response()
}

/// What a path is answered that no route is at.
pub(super) fn no_route(path: &str) -> Problem {
    let message = format!("no route {path}: /openapi.json has all of them");
    Error::new(Code::NotFound, message).into()
}

async fn method_not_allowed(request: Request<Body>) -> Response<Body> {
    let message = format!("{} is not for {}", request.method(), request.uri().path());
    let error = Error::invalid(message);
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, error).into_response()
}

async fn serve(app: Arc<App>, route: &'static Route, request: Request<Body>) -> Response<Body> {
    let started_ns = app.access_control.environment.clock.monotonic_ns();
    let accepted = compression::accepted(request.headers());
    let environment = app.access_control.environment.clone();
    let access_control = Arc::clone(&app.access_control);
    let response = match enter(app, route, request).await {
        Ok(call) => (route.handler)(call).await.unwrap_or_else(Problem::into_response),
        Err(problem) => problem.into_response(),
    };
    let nanoseconds = environment.clock.monotonic_ns().saturating_sub(started_ns);
    access_control.metrics.count_request("http", route.id, response.status().as_u16(), nanoseconds);
    compression::compress(response, accepted)
}

async fn enter(
    app: Arc<App>,
    route: &'static Route,
    request: Request<Body>,
) -> std::result::Result<Call, Problem> {
    let (parts, body) = request.into_parts();
    let principal = principal(&app, route, &parts)?;
    if app.stopping.load(Ordering::Relaxed) && route.need != Need::Nothing {
        return Err(Error::new(Code::Unavailable, "the server stops").into());
    }
    let path = path_parameters(route, &parts)?;
    let tenant_name = match path.get("database") {
        Some(name) => Some(name.parse::<TenantName>().map_err(Error::invalid)?),
        None => None,
    };
    check_need(route, &principal, tenant_name.as_ref(), &path)?;
    check_key(route, &parts)?;
    let query = query_parameters(route, &parts)?;
    let tenant = match tenant_name.filter(|_| route.is_in_database()) {
        Some(name) => {
            let tenant = find_tenant(&app, &principal, name).await?;
            if route.is_counted() {
                let wait = |e| Problem::from(e).after(tenant.usage.request_wait());
                tenant.usage.count_request().map_err(wait)?;
            }
            Some(tenant)
        }
        None => None,
    };
    let (body, share) = (Mutex::new(Some(body)), app.access_control.budget.share());
    let call = Call { app, principal, tenant, path, query, parts, body, share };
    check_body(route, &call)?;
    Ok(call)
}

fn principal(app: &App, route: &Route, parts: &Parts) -> Result<Principal> {
    if route.need == Need::Nothing {
        return Ok(Principal::nobody());
    }
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
    let given = parts.headers.get(header::AUTHORIZATION);
    let token = given.map(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
    });
    match token {
        Some(None) => {
            let message = "header authorization: expected Bearer and a token";
            Err(Error::new(Code::Unauthenticated, message))
        }
        Some(Some((_, token))) => app.access_control.principal(Some(token.trim()), peer),
        None => {
            expect_no_other_page(app, parts)?;
            app.access_control.principal(None, peer)
        }
    }
}

/// Refuses a change without a token that a page of another origin asks for: a browser sends some of
/// them without a check first, and the person who opened the page did not mean it.
fn expect_no_other_page(app: &App, parts: &Parts) -> Result<()> {
    if parts.method.is_safe() {
        return Ok(());
    }
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_own = |origin: &str| {
        let host_of = |scheme| origin.strip_prefix(scheme);
        let of = host_of("http://").or_else(|| host_of("https://"));
        of.is_some() && of == host
    };
    let origins = app.access_control.config.cors_origins.as_ref();
    let is_allowed = |origin: &str| origins.is_some_and(|known| known.allows(origin));
    for origin in parts.headers.get_all(header::ORIGIN) {
        if !origin.to_str().is_ok_and(|origin| is_own(origin) || is_allowed(origin)) {
            let message = format!(
                "header origin: a change without a token is not for the page {origin:?}: \
                 http.cors_origins lists those that may ask"
            );
            return Err(Error::new(Code::Forbidden, message));
        }
    }
    Ok(())
}

/// The parameters of the path; a key stays as it was sent, as it may be no text.
fn path_parameters(route: &'static Route, parts: &Parts) -> Result<PathParameters> {
    let names = route.path.split('/').zip(parts.uri.path().split('/'));
    let parameter = |(name, sent): (&'static str, &str)| {
        let name = name.strip_prefix('{')?.strip_suffix('}')?;
        let value = if name == "key" { Ok(sent.to_owned()) } else { super::entity::decoded(sent) };
        Some(value.map(|value| (name, value)))
    };
    Ok(PathParameters(names.filter_map(parameter).collect::<Result<_>>()?))
}

fn check_need(
    route: &Route,
    principal: &Principal,
    tenant: Option<&TenantName>,
    path: &PathParameters,
) -> Result<()> {
    match route.need {
        // Whether one may enter is checked where the tenant is looked up.
        Need::Nothing | Need::Token | Need::Enter => Ok(()),
        Need::Server(level) => principal.expect(level, None, None),
        Need::Limits => principal.expect(Level::Admin, None, None),
        Need::Database(level) => principal.expect(level, tenant, None),
        Need::Table(level) => {
            let table = path.get("table").or_else(|| path.get("bucket"));
            principal.expect(level, tenant, table)
        }
    }
}

/// Refuses a key by which a write is to be done once where that cannot be kept.
fn check_key(route: &Route, parts: &Parts) -> Result<()> {
    if route.refuses_key() && parts.headers.contains_key("idempotency-key") {
        let message = "idempotency-key: this route takes none; docs/reference/http.md and \
                       /openapi.json tell which do";
        return Err(Error::invalid(message));
    }
    if route.refuses_producer() && parts.headers.contains_key("esker-producer") {
        let message = "esker-producer: this route takes none, POST …/streams/STREAM/events does";
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn query_parameters(route: &Route, parts: &Parts) -> Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    let known = route.query.iter().map(|parameter| parameter.name);
    for (name, value) in super::entity::pairs(parts.uri.query().unwrap_or(""))? {
        if !known.clone().any(|known| known == name) {
            let near = near_or_all(&name, "parameters", known.clone());
            return Err(Error::invalid(format!("unknown parameter {name:?}{near}")));
        }
        if parameters.insert(name.clone(), value).is_some() {
            return Err(Error::invalid(format!("parameter {name:?} is there twice")));
        }
    }
    Ok(parameters)
}

async fn find_tenant(
    app: &Arc<App>,
    principal: &Principal,
    name: TenantName,
) -> Result<Arc<crate::tenant::Tenant>> {
    if app.access_control.tenants.find_open(&name).is_some() {
        return app.access_control.enter(principal, &name);
    }
    let (app, principal) = (Arc::clone(app), principal.clone());
    blocking(move || app.access_control.enter(&principal, &name)).await?
}

/// Refuses a body that the route does not take, as far as its header tells.
fn check_body(route: &Route, call: &Call) -> std::result::Result<(), Problem> {
    if route.bodies.is_empty() {
        return Ok(());
    }
    let length = call.header(header::CONTENT_LENGTH.as_str())?;
    let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
    let most = call.app.access_control.config.request_bytes_max;
    if !route.streams && length > most {
        return Err(too_large(most));
    }
    if let Some(media) = call.media()?
        && !route.bodies.iter().any(|(known, _)| *known == media || *known == "*/*")
    {
        let known: Vec<_> = route.bodies.iter().map(|(known, _)| *known).collect();
        let message = format!("content-type: expected {}, found {media:?}", known.join(" or "));
        return Err(unsupported(message));
    }
    check_coding(route, call)
}

/// Refuses a body that is not what its media type says: compressed, or in another charset.
fn check_coding(route: &Route, call: &Call) -> std::result::Result<(), Problem> {
    let encoding = call.header(header::CONTENT_ENCODING.as_str())?;
    // A load undoes some of them, and refuses others itself.
    if let Some(encoding) = encoding.filter(|text| !route.streams && *text != "identity") {
        let message = format!("content-encoding: expected none here, found {encoding:?}");
        return Err(unsupported(message));
    }
    let is_text = route.bodies.iter().all(|(media, _)| *media != "*/*");
    let is_utf_8 = |name: &&str| {
        ["utf-8", "utf8", "us-ascii"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    if let Some(charset) = call.charset()?.filter(|name| is_text && !is_utf_8(name)) {
        let message = format!("content-type: expected charset utf-8, found {charset:?}");
        return Err(unsupported(message));
    }
    Ok(())
}

fn unsupported(message: String) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::invalid(message))
}
