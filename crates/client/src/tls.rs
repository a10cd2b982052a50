//! TLS 1.3 to a server whose certificate is vouched for by a file.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::{Error, Result};

fn failed(what: impl std::fmt::Display) -> impl Fn(&dyn std::fmt::Display) -> Error {
    move |e| Error::connection(format!("TLS: {what}: {e}"))
}

/// What certificates are checked with.
pub(crate) fn config(authorities: &Path) -> Result<Arc<ClientConfig>> {
    let wrong = failed(authorities.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).map_err(|e| wrong(&e))? {
        roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"expected certificates as PEM, found none"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| wrong(&e))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// The name that the certificate has to have: that of the address, without its port.
pub(crate) fn name(host: &str) -> Result<ServerName<'static>> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name).map_err(|e| failed(host)(&e))
}

/// One end of a connection; a second one writes while this reads.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: TcpStream,
    connection: Arc<Mutex<ClientConnection>>,
}

impl TlsStream {
    pub fn new(host: &str, authorities: &Path, socket: TcpStream) -> Result<Self> {
        let connection = ClientConnection::new(config(authorities)?, name(host)?);
        let connection = connection.map_err(|e| failed(host)(&e))?;
        let mut this = Self { socket, connection: Arc::new(Mutex::new(connection)) };
        this.send()?;
        Ok(this)
    }

    pub fn try_clone(&self) -> Result<Self> {
        let connection = Arc::clone(&self.connection);
        Ok(Self { socket: self.socket.try_clone()?, connection })
    }

    fn locked(&self) -> MutexGuard<'_, ClientConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is encrypted; without the lock, as whoever reads needs it.
    fn send(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let mut connection = self.locked();
        while connection.wants_write() {
            connection.write_tls(&mut bytes)?;
        }
        drop(connection);
        self.socket.write_all(&bytes)?;
        Ok(())
    }

    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let taken = self.locked().writer().write(bytes)?;
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
        let mut raw = vec![0; 16 << 10];
        loop {
            match self.locked().reader().read(room) {
                Ok(read) => return Ok(read),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
            let count = self.socket.read(&mut raw)?;
            if count == 0 {
                return Ok(0);
            }
            let mut came = raw.get(..count).unwrap_or_default();
            let mut connection = self.locked();
            let is_handshake = connection.is_handshaking();
            while !came.is_empty() {
                connection.read_tls(&mut came)?;
                connection.process_new_packets().map_err(|e| failed("the server")(&e))?;
            }
            drop(connection);
            // Behind the handshake, only whoever writes sends: records have an order.
            if is_handshake {
                self.send()?;
            }
        }
    }
}
