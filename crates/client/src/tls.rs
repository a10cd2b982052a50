//! TLS 1.3 to a server whose certificate is vouched for: by a file, or by what the system trusts.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::certificate::Verifier;
use crate::{Error, Result};

fn failed(what: impl std::fmt::Display) -> impl Fn(&dyn std::fmt::Display) -> Error {
    move |e| Error::connection(format!("TLS: {what}: {e}"))
}

/// Why a server is not spoken to, and what can be done where its certificate is not trusted.
fn refused(e: &rustls::Error) -> Error {
    use rustls::CertificateError::{Other, UnknownIssuer};
    let why = match e {
        rustls::Error::InvalidCertificate(UnknownIssuer) => {
            "nothing that is trusted vouches for it"
        }
        rustls::Error::InvalidCertificate(Other(_)) => "it vouches for itself alone",
        e => return failed("the server")(e),
    };
    Error::connection(format!(
        "TLS: the certificate of the server is not trusted: {why}; ?ca=FILE behind the address \
         names a file of certificates that are"
    ))
}

/// The same of an error that a socket reports.
pub(crate) fn refused_by(host: &str, e: &std::io::Error) -> Error {
    match e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(inner) => refused(inner),
        None => Error::connection(format!("{host}: {e}")),
    }
}

/// What certificates are checked with: those of a file, or of the system.
pub(crate) fn config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let wrong = failed(authorities.map_or_else(
        || "the certificates of the system".to_owned(),
        |path| path.display().to_string(),
    ));
    let mut roots = RootCertStore::empty();
    let mut known = Vec::new();
    match authorities {
        Some(path) => {
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
                let certificate = certificate.map_err(|e| wrong(&e))?;
                known.push(certificate.clone());
                roots.add(certificate).map_err(|e| wrong(&e))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"expected certificates as PEM, found none"));
            }
        }
        None => {
            // Systems have some that no program can read: the others count.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why = found.errors.first().map_or_else(String::new, |e| format!(": {e}"));
                return Err(wrong(&format!("there are none{why}; ?ca=FILE names a file of some")));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = Verifier::new(inner.build().map_err(|e| wrong(&e))?, known);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| wrong(&e))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(builder.with_no_client_auth()))
}

/// The name that the certificate has to have: that of the address, without its port.
pub(crate) fn name(host: &str) -> Result<ServerName<'static>> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name).map_err(|e| failed(host)(&e))
}

/// What one record holds, at most.
const RECORD_BYTES: usize = 16 << 10;

/// What both ends of one connection share.
#[derive(Debug)]
struct Session {
    connection: ClientConnection,
    /// What came from the socket and is still to be decrypted: rustls takes no more than one
    /// record ahead of the reader, and a socket gives what it has.
    came: VecDeque<u8>,
}

impl Session {
    /// Decrypts what came until there is something to read, or nothing left: then false.
    fn decrypt(&mut self) -> Result<bool> {
        while !self.came.is_empty() {
            self.connection.read_tls(&mut self.came)?;
            let state = self.connection.process_new_packets();
            let state = state.map_err(|e| refused(&e))?;
            if state.plaintext_bytes_to_read() > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One end of a connection; a second one writes while this reads.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: TcpStream,
    session: Arc<Mutex<Session>>,
}

impl TlsStream {
    pub fn new(host: &str, authorities: Option<&Path>, socket: TcpStream) -> Result<Self> {
        let connection = ClientConnection::new(config(authorities)?, name(host)?);
        let connection = connection.map_err(|e| failed(host)(&e))?;
        let session = Session { connection, came: VecDeque::new() };
        let mut this = Self { socket, session: Arc::new(Mutex::new(session)) };
        this.send()?;
        Ok(this)
    }

    pub fn try_clone(&self) -> Result<Self> {
        let session = Arc::clone(&self.session);
        Ok(Self { socket: self.socket.try_clone()?, session })
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn locked(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is encrypted; without the lock, as the reader needs it.
    fn send(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let mut session = self.locked();
        while session.connection.wants_write() {
            session.connection.write_tls(&mut bytes)?;
        }
        drop(session);
        self.socket.write_all(&bytes)?;
        Ok(())
    }

    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let taken = self.locked().connection.writer().write(bytes)?;
            bytes = bytes.get(taken..).unwrap_or_default();
            self.send()?;
            if taken == 0 {
                return Err(Error::connection("TLS: nothing can be written"));
            }
        }
        Ok(())
    }

    /// Waits for bytes; 0 at the end.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        let mut raw = vec![0; RECORD_BYTES];
        loop {
            let mut session = self.locked();
            match session.connection.reader().read(room) {
                Ok(read) => return Ok(read),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
            let is_handshake = session.connection.is_handshaking();
            if session.decrypt()? {
                continue;
            }
            drop(session);
            // Behind the handshake, only the writer sends: records have an order.
            if is_handshake {
                self.send()?;
            }
            let count = self.socket.read(&mut raw)?;
            if count == 0 {
                return Ok(0);
            }
            self.locked().came.extend(raw.get(..count).unwrap_or_default());
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // The other end of a socket.
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection};

    use super::*;

    /// A server that has shaken hands, sends all of these bytes at once, and goes.
    fn serve(
        listener: &TcpListener,
        certificate: CertificateDer<'static>,
        key: &[u8],
        sent: &[u8],
    ) {
        let key = PrivateKeyDer::try_from(key.to_vec()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        connection.set_buffer_limit(None);
        let (mut socket, _) = listener.accept().unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).unwrap();
        }
        connection.writer().write_all(sent).unwrap();
        connection.send_close_notify();
        let mut bytes = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut bytes).unwrap();
        }
        socket.write_all(&bytes).unwrap();
        // What the client still says is not answered by a reset.
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        std::io::copy(&mut socket, &mut std::io::sink()).unwrap();
    }

    /// A socket that holds many records gives parts of several at once.
    #[test]
    fn many_records_come_at_once() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let name = format!("esker-client-tls-{}.pem", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, made.cert.pem()).unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 4]).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let key = made.signing_key.serialize_der();
        let certificate = made.cert.der().clone();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, certificate, &key, &sent));
            let mut stream = TlsStream::new("localhost:1", Some(&file), socket).unwrap();
            let mut got = Vec::new();
            let mut room = vec![0; 1_000];
            loop {
                let read = stream.read(&mut room).unwrap();
                if got.is_empty() {
                    // The rest comes meanwhile.
                    std::thread::sleep(Duration::from_millis(50));
                }
                if read == 0 {
                    break;
                }
                got.extend_from_slice(&room[..read]);
            }
            assert!(got == sent, "{} of {}", got.len(), sent.len());
            stream.socket.shutdown(std::net::Shutdown::Both).unwrap();
        });
        std::fs::remove_file(file).unwrap();
    }
}
