//! Redis's protocol by TLS.
#![allow(clippy::disallowed_methods, reason = "tests have files and clocks of their own")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use esker_vfs::Environment;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::config::Config;
use crate::{Server, ServerConfig};

/// Writes a certificate of its own and returns what a client has to trust.
fn certificate(directory: &Path) -> RootCertStore {
    std::fs::create_dir_all(directory).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("c.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    roots
}

fn connect(address: SocketAddr, roots: RootCertStore) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(connection, socket)
}

fn ask(stream: &mut (impl Read + Write), commands: &str, expected: &str) {
    stream.write_all(commands.as_bytes()).unwrap();
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}

/// Asks as `redis-cli` does, where there is one that speaks TLS.
fn ask_as_redis(address: SocketAddr, files: &Path) {
    let port = address.port().to_string();
    let mut command = Command::new("redis-cli");
    command.args(["-h", "localhost", "-p", &port, "--tls", "--cacert"]);
    command.arg(files.join("c.pem")).args(["GET", "k"]);
    match command.output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("Unrecognized option") => {
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "v", "{output:?}");
        }
        _ => eprintln!("skipped: there is no redis-cli here that speaks TLS"),
    }
}

#[test]
fn the_port_is_encrypted_where_a_client_asks_for_it() {
    let files = std::env::temp_dir().join(format!("esker-resp-tls-{}", std::process::id()));
    let roots = certificate(&files);
    let config = Config {
        wire_listen: None,
        resp_listen: Some("127.0.0.1:0".parse().unwrap()),
        tls_certificate: Some(files.join("c.pem")),
        tls_key: Some(files.join("k.pem")),
        trust_local: true,
        memory: true,
        ..Config::default()
    };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let start = |is_plain_resp_allowed| {
        let authenticator = Arc::new(TokenAuthenticator::new(&access_control));
        let config =
            ServerConfig { is_plain_resp_allowed, ..ServerConfig::of(&access_control).unwrap() };
        runtime.block_on(Server::start(config, authenticator)).unwrap()
    };
    let server = start(true);
    let address = server.resp_address().unwrap();
    let mut stream = connect(address, roots.clone());
    ask(&mut stream, "SET k v\r\nGET k\r\n", "+OK\r\n$1\r\nv\r\n");
    let long = "x".repeat(100_000);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nl\r\n$100000\r\n{long}\r\n");
    ask(&mut stream, &set.repeat(50), &"+OK\r\n".repeat(50));
    ask(&mut stream, &"GET l\r\n".repeat(50), &format!("$100000\r\n{long}\r\n").repeat(50));
    ask_as_redis(address, &files);
    // A local port is plain, too; a client that has not asked anything holds back nobody.
    ask(&mut TcpStream::connect(address).unwrap(), "GET k\r\n", "$1\r\nv\r\n");
    let mut silent = TcpStream::connect(address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    runtime.block_on(server.stop());
    // It ends in order, or is reset where the server had not come to accept it yet.
    let end = silent.read(&mut [0; 8]).map_err(|error| error.kind());
    assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "not let go of: {end:?}");
    drop((silent, stream));
    // A port that other machines reach is not.
    let server = start(false);
    let address = server.resp_address().unwrap();
    let mut plain = TcpStream::connect(address).unwrap();
    ask(&mut plain, "GET k\r\n", "-ERR expected TLS: this port is reached from other machines\r\n");
    assert_eq!(plain.read(&mut [0; 8]).unwrap_or(0), 0);
    ask(&mut connect(address, roots), "GET k\r\n", "$1\r\nv\r\n");
    runtime.block_on(server.stop());
    std::fs::remove_dir_all(files).unwrap();
}
