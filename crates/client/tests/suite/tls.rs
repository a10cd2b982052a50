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
    drop(client);
    runtime.block_on(server.stop());
    std::fs::remove_dir_all(files).unwrap();
}
