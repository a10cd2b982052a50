//! TLS 1.3, and no other version.
//!
//! The certificate is read again when its file changes, without a restart: connections that are
//! there go on with what they began with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use esker_vfs::Environment;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::Config;
use crate::file::read_file;
use crate::{Code, Error, Result};

/// How old what is known of the files may be, in nanoseconds.
const REFRESH_NS: u64 = 5_000_000_000;

/// What connections are accepted with.
pub struct Tls {
    environment: Environment,
    certificate: PathBuf,
    key: PathBuf,
    protocols: Vec<Vec<u8>>,
    acceptor: RwLock<TlsAcceptor>,
    /// The files as they were read.
    read: Mutex<(Vec<u8>, Vec<u8>)>,
    read_ns: AtomicU64,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Tls {
    /// What a configuration says; none when it says nothing of TLS. `protocols` are those of ALPN.
    ///
    /// # Errors
    /// `InvalidRequest` when the files are not there, or hold no certificate and key that fit.
    pub fn open(
        config: &Config,
        environment: &Environment,
        protocols: &[&str],
    ) -> Result<Option<Arc<Self>>> {
        let (Some(certificate), Some(key)) = (&config.tls_certificate, &config.tls_key) else {
            return Ok(None);
        };
        let protocols: Vec<_> = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        let read = (file(environment, certificate)?, file(environment, key)?);
        let acceptor = acceptor(&read, &protocols)?;
        Ok(Some(Arc::new(Self {
            environment: environment.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
            protocols,
            acceptor: RwLock::new(acceptor),
            read: Mutex::new(read),
            read_ns: AtomicU64::new(environment.clock.monotonic_ns()),
        })))
    }

    /// What the next connection is accepted with.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the files if that was not done lately. Waits for the disk. What does not fit
    /// leaves the certificate as it is, and is reported.
    ///
    /// # Errors
    /// As for [`Tls::open`].
    pub fn refresh(&self) -> Result<bool> {
        let now_ns = self.environment.clock.monotonic_ns();
        if now_ns.saturating_sub(self.read_ns.load(Ordering::Relaxed)) < REFRESH_NS {
            return Ok(false);
        }
        self.reload()
    }

    /// Looks at the files.
    ///
    /// # Errors
    /// As for [`Tls::open`].
    pub fn reload(&self) -> Result<bool> {
        let now_ns = self.environment.clock.monotonic_ns();
        self.read_ns.store(now_ns, Ordering::Relaxed);
        let new =
            (file(&self.environment, &self.certificate)?, file(&self.environment, &self.key)?);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if *read == new {
            return Ok(false);
        }
        let acceptor = acceptor(&new, &self.protocols)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        *read = new;
        Ok(true)
    }
}

fn file(environment: &Environment, path: &std::path::Path) -> Result<Vec<u8>> {
    let missing = || Error::invalid(format!("tls: no file {}", path.display()));
    read_file(environment, path)?.ok_or_else(missing)
}

fn acceptor((certificate, key): &(Vec<u8>, Vec<u8>), protocols: &[Vec<u8>]) -> Result<TlsAcceptor> {
    let wrong = |what: &str, e: &dyn std::fmt::Display| Error::invalid(format!("tls.{what}: {e}"));
    let chain: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|e| wrong("certificate", &e))?;
    if chain.is_empty() {
        return Err(wrong("certificate", &"expected a certificate as PEM, found none"));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("key", &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| Error::new(Code::Internal, e.to_string()))?;
    let config = builder.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|e| wrong("certificate", &e))?;
    config.alpn_protocols = protocols.to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
