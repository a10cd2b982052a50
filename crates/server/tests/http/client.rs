//! A server of its own for one test, and requests to it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use esker_server::auth::access_control::AccessControl;
use esker_server::auth::token::NewToken;
use esker_server::config::{Config, Sources};
use esker_server::protocol::http::HttpServer;
use esker_vfs::Environment;
use serde_json::Value as Json;

use super::form::misfit;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A server that runs, with a directory of its own that is removed at the end.
pub struct Harness {
    pub access_control: Arc<AccessControl>,
    pub address: SocketAddr,
    pub token: String,
    pub directory: PathBuf,
    runtime: tokio::runtime::Runtime,
    server: Option<HttpServer>,
    /// Which operations answered with which status.
    pub seen: Mutex<BTreeSet<(String, u16)>>,
    document: Json,
}

impl Harness {
    pub fn new(flags: &[(&str, &str)]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("esker-http-{}-{number}", std::process::id());
        Self::at(std::env::temp_dir().join(name), flags)
    }

    pub fn at(directory: PathBuf, flags: &[(&str, &str)]) -> Self {
        let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let config: Config = Sources { flags: &flags, ..Sources::default() }.read().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let access_control =
            AccessControl::open(config, &Environment::os(), Some(directory.clone())).unwrap();
        let new = NewToken {
            name: "tests".to_owned(),
            scopes: vec!["admin".parse().unwrap()],
            lifetime: None,
        };
        let (_, token) = access_control.tokens.create(&new).unwrap();
        let access_control = Arc::new(access_control);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server =
            runtime.block_on(HttpServer::start(address, Arc::clone(&access_control))).unwrap();
        let (address, server) = (server.address(), Some(server));
        let (seen, document) = (Mutex::default(), esker_server::protocol::http::document());
        Self { access_control, address, token, directory, runtime, server, seen, document }
    }

    /// Tells the server to stop; what is returned waits until it has.
    pub fn begin_stop(&mut self) -> impl FnOnce() + use<> {
        let stopped = self.runtime.spawn(self.server.take().unwrap().stop());
        let runtime = self.runtime.handle().clone();
        move || runtime.block_on(stopped).unwrap()
    }

    /// A token with a scope.
    pub fn token(&self, scope: &str) -> String {
        let scopes = vec![scope.parse().unwrap()];
        let new = NewToken { name: scope.to_owned(), scopes, lifetime: None };
        self.access_control.tokens.create(&new).unwrap().1
    }

    /// A request with the token that may do everything.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Response {
        self.send(method, path, &[], body.as_bytes())
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let has_media = headers.iter().any(|(name, _)| *name == "content-type");
        if !body.is_empty() && !has_media {
            all.push(("content-type", "application/json"));
        }
        self.raw(method, path, &all, body)
    }

    /// A request with these headers alone.
    pub fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let tells_length = ["content-length", "transfer-encoding"];
        if !headers.iter().any(|(name, _)| tells_length.contains(name)) {
            request += &format!("content-length: {}\r\n", body.len());
        }
        request += "\r\n";
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // Who is refused early may not be read to the end.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let response = parse(&answer);
        self.note(method, path, &response);
        response
    }

    /// Notes which operation answered; what it answered has the form that the document says.
    fn note(&self, method: &str, path: &str, response: &Response) {
        let path = path.split('?').next().unwrap();
        let route = esker_server::protocol::http::ROUTES
            .iter()
            .find(|route| route.method.eq_ignore_ascii_case(method) && route.is_at(path));
        let Some(route) = route else { return };
        self.seen.lock().unwrap().insert((route.id.to_owned(), response.status));
        let answers = &self.document["paths"][route.path][route.method]["responses"];
        let media = response.header("content-type");
        let schema = &answers[response.status.to_string()]["content"][media]["schema"];
        if media.ends_with("json") && response.header("content-encoding").is_empty() {
            let body = serde_json::from_slice(&response.body);
            let misfit = body.ok().and_then(|body| misfit(&self.document, schema, &body, "body"));
            assert_eq!(misfit, None, "{method} {path}: {}", response.status);
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
        let _ = self.access_control.tenants.close();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn parse(answer: &[u8]) -> Response {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer with a header");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_lowercase(), value.trim().to_owned())
    };
    let headers: BTreeMap<_, _> = lines.map(header).collect();
    let mut body = answer[end + 4..].to_vec();
    if headers.get("transfer-encoding").is_some_and(|text| text == "chunked") {
        body = dechunked(&body);
    }
    Response { status, headers, body }
}

/// The bytes of chunks; what has no end ends where it breaks off.
fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap(), 16).unwrap();
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    body
}
