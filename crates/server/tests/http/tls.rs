//! TLS 1.3, and nothing before it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use esker_server::auth::tls::Tls;
use esker_server::config::Sources;
use esker_vfs::Environment;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::Harness;

/// Writes a certificate of its own and returns what a client has to trust.
pub fn certificate(directory: &Path) -> RootCertStore {
    std::fs::create_dir_all(directory).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("c.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    roots
}

pub fn directory(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("esker-tls-{name}-{}", std::process::id()))
}

fn ask(server: &Harness, roots: RootCertStore) -> std::io::Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = std::net::TcpStream::connect(server.address).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        Err(e) if answer.is_empty() => Err(e),
        _ => Ok(answer),
    }
}

#[test]
fn a_certificate_is_served_and_read_again() {
    let files = directory("reload");
    let old = certificate(&files);
    let (c, k) = (files.join("c.pem"), files.join("k.pem"));
    let flags = [("tls.certificate", c.to_str().unwrap()), ("tls.key", k.to_str().unwrap())];
    let server = Harness::new(&flags);
    assert!(ask(&server, old.clone()).unwrap().starts_with("HTTP/1.1 200"));
    let texts: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    let config = Sources { flags: &texts, ..Sources::default() }.read().unwrap();
    let tls = Tls::open(&config, &Environment::os(), &[]).unwrap().unwrap();
    assert!(!tls.reload().unwrap(), "nothing has changed");
    certificate(&files);
    assert!(tls.reload().unwrap());
    std::fs::write(&k, "no key").unwrap();
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.starts_with("tls.key: "), "{error}");
    let plain = std::net::TcpStream::connect(server.address).unwrap();
    let mut plain = plain;
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "no answer in the clear");
    let _ = std::fs::remove_dir_all(&files);
}

#[test]
fn no_version_before_1_3_is_spoken() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: there is no openssl here to try older versions with");
        return;
    }
    let files = directory("versions");
    certificate(&files);
    let (c, k) = (files.join("c.pem"), files.join("k.pem"));
    let flags = [("tls.certificate", c.to_str().unwrap()), ("tls.key", k.to_str().unwrap())];
    let server = Harness::new(&flags);
    let connects = |version: &str| {
        let mut command = Command::new("openssl");
        let address = server.address.to_string();
        command.args(["s_client", "-connect", &address, version]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("Cipher is TLS_") && !text.contains("Cipher is (NONE)")
    };
    assert!(connects("-tls1_3"));
    for version in ["-tls1_2", "-tls1_1", "-tls1"] {
        assert!(!connects(version), "{version}");
    }
    let _ = std::fs::remove_dir_all(&files);
}
