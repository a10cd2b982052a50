//! Where a server is.

use std::path::PathBuf;

use crate::{Error, Result};

/// Where a server is: `esker://HOST:PORT`, `HOST:PORT`, `eskers://HOST:PORT` (TLS 1.3, perhaps
/// with `?ca=FILE`) or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name or number, and a port.
    Tcp(String),
    /// The same with TLS, and a file with the certificates, as PEM, that vouch for the server;
    /// those that the system trusts where none is named.
    Tls(String, Option<PathBuf>),
    /// The path of a socket.
    Unix(PathBuf),
}

/// The port that servers listen on unless configured otherwise.
const PORT: u16 = 7437;

impl Address {
    /// Reads an address; without a port, the one that servers have.
    ///
    /// ```
    /// use esker_client::Address;
    ///
    /// assert_eq!(Address::parse("esker://localhost")?, Address::Tcp("localhost:7437".into()));
    /// let address = Address::parse("eskers://db.example")?;
    /// assert_eq!(address, Address::Tls("db.example:7437".into(), None));
    /// # Ok::<(), esker_client::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it is none, saying what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        if let Some(rest) = text.strip_prefix("eskers://") {
            let (host, file) = match rest.split_once('?') {
                None => (rest, None),
                Some((host, query)) => {
                    let file = query.strip_prefix("ca=").filter(|file| !file.is_empty());
                    let Some(file) = file else {
                        let message = "expected eskers://HOST:PORT or eskers://HOST:PORT?ca=FILE, \
                             where FILE has certificates";
                        return Err(Error::connection(format!("{message}, found {text:?}")));
                    };
                    (host, Some(PathBuf::from(file)))
                }
            };
            return match Self::parse(host)? {
                Self::Tcp(host) => Ok(Self::Tls(host, file)),
                other => Ok(other),
            };
        }
        let host = text.strip_prefix("esker://").unwrap_or(text).trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            let message = "expected esker://HOST:PORT, HOST:PORT, eskers://HOST:PORT or unix:PATH";
            return Err(Error::connection(format!("{message}, found {text:?}")));
        }
        let (before, port) = host.rsplit_once(':').unwrap_or((host, ""));
        let has_port = !before.is_empty() && port.parse::<u16>().is_ok() && !before.ends_with(':');
        Ok(Self::Tcp(if has_port { host.to_owned() } else { format!("{host}:{PORT}") }))
    }
}
