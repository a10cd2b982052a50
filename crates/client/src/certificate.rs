//! Which certificates of servers are good.
//!
//! A certificate is good when others vouch for it up to a trusted one: the rules of browsers, by
//! webpki. One more is: a certificate that signs itself as authorities do, as
//! `openssl req -x509` makes them, when that very certificate is in the file of `?ca=`. webpki
//! refuses it as that of an authority; who put it into the file has said whose it is. Its dates and
//! its name are checked, and that the server has its key.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use std::sync::Arc;

/// The name of an attribute: `2.5.4.3`, the common name, as DER has it.
const COMMON_NAME: [u8; 5] = [6, 3, 0x55, 4, 3];

/// Checks certificates.
#[derive(Debug)]
pub(crate) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    /// Those of the file of `?ca=`.
    known: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub fn new(inner: Arc<WebPkiServerVerifier>, known: Vec<CertificateDer<'static>>) -> Self {
        Self { inner, known }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self.inner.verify_server_cert(certificate, others, name, ocsp, now);
        match checked {
            // The dates are checked before that.
            Err(e) if is_of_authority(&e) && self.known.contains(certificate) => {
                expect_name(certificate, name)?;
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether a certificate is refused because it is that of an authority, and for nothing before.
fn is_of_authority(e: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = e else { return false };
    let e = other.0.downcast_ref::<webpki::Error>();
    matches!(e, Some(webpki::Error::CaUsedAsEndEntity))
}

/// The names of a certificate; where it has none, which only old tools make, its common name.
fn expect_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    match rustls::client::verify_server_name(&parsed, name) {
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) if presented.is_empty() && has_common_name(certificate, &name.to_str()) => Ok(()),
        checked => checked,
    }
}

/// Whether a certificate has a common name. It is one that the user has in a file, so that nothing
/// in it is made to deceive.
fn has_common_name(certificate: &[u8], name: &str) -> bool {
    let mut windows = certificate.windows(COMMON_NAME.len()).enumerate();
    windows.any(|(at, bytes)| {
        // A type of texts, a length, the text.
        let behind = certificate.get(at + COMMON_NAME.len()..).unwrap_or_default();
        let Some((&[_, length], text)) = behind.split_first_chunk() else { return false };
        let text = text.get(..usize::from(length));
        bytes == COMMON_NAME && text.is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
    })
}
