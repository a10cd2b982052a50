//! What is logged, as JSON; and that it is in the reference.

use std::cell::RefCell;
use std::io::Write;
use std::sync::{Arc, Once};

use esker_vfs::Environment;
use serde_json::Value as Json;

use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::auth::token::NewToken;
use crate::config::Config;
use crate::protocol::http::HttpServer;
use crate::tenant::TenantName;
use crate::{Server, ServerConfig};

const REFERENCE: &str = include_str!("../../../../../docs/reference/metrics.md");

thread_local! {
    /// What is logged on this thread, where a test asked for it.
    static LINES: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to the lines of the thread that logs.
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged while something is done on this thread.
///
/// All tests of the process share one subscriber. Tracing decides once whether a message is wanted,
/// when the first thread logs it: with a subscriber per thread, that may be one without any.
fn logged(act: impl FnOnce()) -> Vec<Json> {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let lines = tracing_subscriber::fmt().json().flatten_event(true).with_writer(|| Lines);
        tracing::subscriber::set_global_default(lines.finish()).unwrap();
    });
    LINES.set(Some(Vec::new()));
    act();
    let text = String::from_utf8(LINES.take().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn access_control() -> Arc<AccessControl> {
    let local = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    let listens = Config { wire_listen: local, resp_listen: local, ..Config::default() };
    let config = Config { memory: true, connections_max: 0, ..listens };
    Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap())
}

#[test]
fn starting_refusing_and_stopping_are_logged() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lines = logged(|| {
        let access_control = access_control();
        runtime.block_on(async {
            let authenticator = Arc::new(TokenAuthenticator::new(&access_control));
            let server = Server::start(ServerConfig::of(&access_control).unwrap(), authenticator)
                .await
                .unwrap();
            let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let http = HttpServer::start(local, Arc::clone(&access_control)).await.unwrap();
            for address in [server.address().unwrap(), http.address()] {
                let mut refused = tokio::net::TcpStream::connect(address).await.unwrap();
                let mut nothing = Vec::new();
                let _ = tokio::io::AsyncReadExt::read_to_end(&mut refused, &mut nothing).await;
            }
            http.stop().await;
            server.stop().await;
        });
    });
    let found: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["message"].as_str().unwrap(), line["protocol"].as_str().unwrap_or("")))
        .collect();
    for wanted in [
        ("listens", "wire"),
        ("listens", "resp"),
        ("listens", "http"),
        ("a connection was refused", "wire"),
        ("a connection was refused", "http"),
        ("stops", "http"),
        ("stopped", "http"),
        ("stops", "wire"),
        ("stopped", "wire"),
    ] {
        assert!(found.contains(&wanted), "{wanted:?} of {found:?}");
    }
}

#[test]
fn databases_and_tokens_are_logged_without_their_texts() {
    let (access_control, name) = (access_control(), "shop".parse::<TenantName>().unwrap());
    let mut texts = Vec::new();
    let lines = logged(|| {
        access_control.tenants.create(&name).unwrap();
        let scopes = vec!["read:mill".parse().unwrap()];
        let new = NewToken { name: "kiosk".into(), scopes, lifetime: None };
        let (info, text) = access_control.tokens.create(&new).unwrap();
        let principal = access_control.principal(Some(&text), None).unwrap();
        assert!(access_control.enter(&principal, &name).is_err());
        let (new, again) =
            access_control.tokens.rotate(&info.id, std::time::Duration::ZERO).unwrap();
        assert!(access_control.principal(Some(&text), None).is_err());
        access_control.tokens.remove(&new.id).unwrap();
        access_control.tenants.remove(&name).unwrap();
        texts = vec![text, again];
    });
    let found: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(
        found,
        [
            "a database was opened",
            "a database was made",
            "a token was made",
            "a token does not reach a database",
            "a token was rotated",
            "a token was refused",
            "a token was removed",
            "a database was removed",
        ]
    );
    let whole = format!("{lines:?}");
    assert!(texts.iter().all(|text| !whole.contains(text.as_str())), "{whole}");
    assert_eq!((&lines[1]["tenant"], &lines[2]["name"]), (&"shop".into(), &"kiosk".into()));
    assert_eq!(lines[5]["level"], "WARN");
}

#[test]
fn the_reference_lists_every_message() {
    for message in [
        "listens",
        "stops",
        "stopped",
        "a connection was refused",
        "a database was made",
        "a database was opened",
        "a database was removed",
        "a backup was made",
        "a backup was restored",
        "a token was made",
        "a token was rotated",
        "a token was removed",
        "a token was refused",
        "a token does not reach a database",
        "slow statement",
        "a request ended in a panic",
        "the certificate was not read again",
        "the tokens were not read again",
    ] {
        assert!(REFERENCE.contains(&format!("| `{message}` |")), "{message}");
    }
}
