//! HTTP/2: by prior knowledge in the clear, and chosen by ALPN within TLS.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode, Version};
use futures_util::future::join_all;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::client::Harness;
use super::tls;

const BUCKET: &str = "/v1/databases/default/buckets/b";

/// The status and the body of an answer.
type Answer = (StatusCode, Bytes);

struct Client {
    sender: SendRequest<Bytes>,
    token: String,
    scheme: &'static str,
}

async fn answer(response: ResponseFuture) -> Result<Answer, h2::Error> {
    let response = response.await?;
    assert_eq!(response.version(), Version::HTTP_2);
    let (status, mut body) = (response.status(), response.into_body());
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend_from_slice(&part);
    }
    Ok((status, bytes.into()))
}

impl Client {
    async fn new<S>(stream: S, server: &Harness, scheme: &'static str) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self { sender, token: server.token.clone(), scheme }
    }

    /// Begins a request; its body follows.
    async fn begin(&self, method: &str, path: &str) -> (ResponseFuture, SendStream<Bytes>) {
        let uri = format!("{}://localhost{path}", self.scheme);
        let request = Request::builder().method(method).uri(uri).version(Version::HTTP_2);
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let request = request.header("content-type", "application/octet-stream");
        let mut sender = self.sender.clone().ready().await.unwrap();
        sender.send_request(request.body(()).unwrap(), false).unwrap()
    }

    async fn ask(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let (response, mut sent) = self.begin(method, path).await;
        sent.send_data(body.into(), true).unwrap();
        answer(response).await.unwrap()
    }
}

/// Many requests at a time on one connection, large bodies both ways.
async fn many_at_once(client: &Client) {
    assert_eq!(client.ask("PUT", BUCKET, "").await.0, 201);
    let value =
        |key: usize| Bytes::from(vec![b'a' + u8::try_from(key % 26).unwrap(); key * 10_000]);
    let path = |key: usize| format!("{BUCKET}/entries/k{key}");
    let put = async |key| client.ask("PUT", &path(key), value(key)).await.0;
    assert!(join_all((0..40).map(put)).await.iter().all(|status| *status == 201));
    let get = async |key| client.ask("GET", &path(key), "").await;
    for (key, answer) in join_all((0..40).map(get)).await.into_iter().enumerate() {
        assert_eq!(answer, (StatusCode::OK, value(key)), "{key}");
    }
    let (status, problem) = client.ask("GET", &path(99), "").await;
    assert_eq!(status, 404);
    assert!(String::from_utf8_lossy(&problem).contains("not_found"));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn it_is_spoken_in_the_clear_by_who_knows_of_it() {
    let server = Harness::new(&[("stall_timeout", "2s")]);
    runtime().block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let client = Client::new(stream, &server, "http").await;
        many_at_once(&client).await;
        // A body that does not go on ends, and others on the connection go on meanwhile.
        let (stalled, _silent) = client.begin("PUT", &format!("{BUCKET}/entries/s")).await;
        let others = async {
            for _ in 0..20 {
                assert_eq!(client.ask("GET", &format!("{BUCKET}/entries/k1"), "").await.0, 200);
            }
        };
        let (stalled, ()) = tokio::join!(answer(stalled), others);
        assert_eq!(stalled.unwrap().0, 408);
        assert_eq!(client.ask("GET", "/healthz", "").await.0, 200);
        // Headers have a limit here, too.
        let long = format!("/healthz?{}", "x".repeat(60_000));
        let (refused, _sent) = client.begin("GET", &long).await;
        assert!(answer(refused).await.map_or(true, |(status, _)| status == 431));
    });
}

#[test]
fn it_is_chosen_within_tls() {
    let files = tls::directory("http2");
    let roots = tls::certificate(&files);
    let (c, k) = (files.join("c.pem"), files.join("k.pem"));
    let flags = [("tls.certificate", c.to_str().unwrap()), ("tls.key", k.to_str().unwrap())];
    let server = Harness::new(&flags);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    runtime().block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream = tokio::time::timeout(Duration::from_secs(10), connected).await;
        let stream = stream.unwrap().unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        many_at_once(&Client::new(stream, &server, "https").await).await;
    });
    let _ = std::fs::remove_dir_all(&files);
}
