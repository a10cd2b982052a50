//! A server that is reached by TLS, blocking and async, with large pipelines.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use esker_client::{AsyncClient, Call, Client, Duplicates, Format};
use esker_server::auth::access_control::{AccessControl, TokenAuthenticator};
use esker_server::config::Config;
use esker_server::{Server, ServerConfig};
use esker_vfs::Environment;

fn certificate(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("c.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
}

/// Serves with a certificate and a key, and connects to a name with certificates.
fn connect(files: &Path, host: &str, ca: &str) -> Result<(), String> {
    let config = Config {
        wire_listen: Some("127.0.0.1:0".parse().unwrap()),
        tls_certificate: Some(files.join("c.pem")),
        tls_key: Some(files.join("k.pem")),
        trust_local: true,
        memory: true,
        ..Config::default()
    };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let authenticator = Arc::new(TokenAuthenticator::new(&access_control));
        Server::start(ServerConfig::of(&access_control).unwrap(), authenticator).await.unwrap()
    });
    let port = server.address().unwrap().port();
    let url = format!("eskers://{host}:{port}?ca={}", files.join(ca).display());
    let connected = Client::connect(&url).and_then(|mut client| client.ping());
    runtime.block_on(server.stop());
    connected.map_err(|e| e.to_string())
}

/// `openssl req -x509` makes certificates that say of themselves that they are authorities.
#[test]
fn a_certificate_of_openssl_is_good_where_the_file_has_it() {
    let files = std::env::temp_dir().join(format!("esker-openssl-{}", std::process::id()));
    std::fs::create_dir_all(&files).unwrap();
    let make = |certificate: &str, more: &str| {
        let line = format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout k.pem -out {certificate} {more}"
        );
        let mut openssl = std::process::Command::new("openssl");
        let output = openssl.args(line.split(' ')).current_dir(&files).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !make("other.pem", "-subj /CN=localhost") {
        println!("left out: there is no openssl here to make a certificate with");
        return;
    }
    assert!(make("c.pem", "-subj /CN=localhost"));
    connect(&files, "localhost", "c.pem").unwrap();
    // Another of the same name does not vouch for it, and it is that of one name alone.
    let e = connect(&files, "localhost", "other.pem").unwrap_err();
    assert!(e.contains("TLS"), "{e}");
    let e = connect(&files, "127.0.0.1", "c.pem").unwrap_err();
    assert!(e.contains("TLS"), "{e}");
    assert!(make("c.pem", "-subj /CN=x -addext subjectAltName=DNS:localhost,IP:127.0.0.1"));
    connect(&files, "localhost", "c.pem").unwrap();
    connect(&files, "127.0.0.1", "c.pem").unwrap();
    assert!(make("c.pem", "-subj /CN=localhost -addext subjectAltName=DNS:example.org"));
    let e = connect(&files, "localhost", "c.pem").unwrap_err();
    assert!(e.contains("TLS"), "{e}");
    std::fs::remove_dir_all(files).unwrap();
}

#[test]
fn what_is_asked_and_answered_is_encrypted() {
    let files = std::env::temp_dir().join(format!("esker-wire-tls-{}", std::process::id()));
    certificate(&files);
    let config = Config {
        wire_listen: Some("127.0.0.1:0".parse().unwrap()),
        tls_certificate: Some(files.join("c.pem")),
        tls_key: Some(files.join("k.pem")),
        trust_local: true,
        memory: true,
        ..Config::default()
    };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let authenticator = Arc::new(TokenAuthenticator::new(&access_control));
        Server::start(ServerConfig::of(&access_control).unwrap(), authenticator).await.unwrap()
    });
    let port = server.address().unwrap().port();
    let url = format!("eskers://localhost:{port}?ca={}", files.join("c.pem").display());
    let mut client = Client::connect(&url).unwrap();
    client.sql("CREATE TABLE t (n i64 PRIMARY KEY, text text)", &[]).unwrap();
    let mut load = client.load("t", Format::MessagePack, Duplicates::Error).unwrap();
    for n in 0..20_000i64 {
        load.push(&[n.into(), "x".repeat(100).into()]).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 20_000);
    let mut pipeline = client.pipeline();
    for n in 0..20_000i64 {
        pipeline.push(&Call::get("t", &[vec![n.into()]]));
    }
    let replies = pipeline.run().unwrap();
    assert!(replies.into_iter().all(|reply| reply.unwrap().found().unwrap()[0].is_some()));
    runtime.block_on(async {
        let client = AsyncClient::connect(&url).await.unwrap();
        let rows = client.call(Call::sql("SELECT text FROM t", &[])).await.unwrap().rows;
        assert_eq!(rows.len(), 20_000);
    });
    // A local port is plain, too, and whoever is not vouched for is not spoken to.
    assert!(Client::connect(&format!("127.0.0.1:{port}")).unwrap().ping().is_ok());
    let other = files.join("other");
    certificate(&other);
    let wrong = format!("eskers://localhost:{port}?ca={}", other.join("c.pem").display());
    let e = Client::connect(&wrong).unwrap_err();
    assert!(e.to_string().contains("TLS"), "{e}");
    // Without a file, the certificates of the system count, and this is none of them.
    let e = Client::connect(&format!("eskers://localhost:{port}")).unwrap_err();
    assert!(e.to_string().contains("is not trusted") && e.to_string().contains("?ca="), "{e}");
    drop(client);
    runtime.block_on(server.stop());
    std::fs::remove_dir_all(files).unwrap();
}
