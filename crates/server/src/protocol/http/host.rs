//! Which host a request is for: HTTP/1.1 needs exactly one `Host` (RFC 9112, section 3.2).

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{Response, Version, header};
use axum::middleware::Next;

use super::Problem;
use crate::{Error, Result};

/// Answers requests whose host is missing, given twice, or none.
pub(super) async fn expect_host(request: Request, next: Next) -> Response<Body> {
    match check(&request) {
        Ok(()) => next.run(request).await,
        Err(e) => Problem::from(e).into_response(),
    }
}

/// # Errors
/// `InvalidRequest` when it is not there once, or is no host.
pub(super) fn check<B>(request: &axum::http::Request<B>) -> Result<()> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("header host: expected once, found several"));
        }
        (None, _) if request.version() == Version::HTTP_11 => {
            let message = "header host: expected in a request of HTTP/1.1, found none";
            return Err(Error::invalid(message));
        }
        (None, _) => return Ok(()),
        (Some(host), None) => host,
    };
    let is_host = |text: &str| {
        let authority = text.parse::<Authority>();
        text.is_empty() || !text.contains('@') && authority.is_ok_and(|host| has_port(&host))
    };
    match host.to_str() {
        Ok(text) if is_host(text) => Ok(()),
        _ => Err(Error::invalid(format!("header host: expected a host, found {host:?}"))),
    }
}

/// Whether what follows the host, if anything does, is a port.
fn has_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host());
    match port.and_then(|port| port.strip_prefix(':')) {
        Some(digits) => {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
        None => port == Some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(version: Version, hosts: &[&str]) -> Result<()> {
        let mut request = axum::http::Request::builder().version(version).uri("/healthz");
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        check(&request.body(()).unwrap())
    }

    #[test]
    fn http_1_1_needs_exactly_one_host() {
        for host in ["localhost", "127.0.0.1:80", "[::1]:7", "a:", "a:65535", ""] {
            assert!(outcome(Version::HTTP_11, &[host]).is_ok(), "{host:?}");
        }
        for hosts in [
            &[][..],
            &["a", "b"],
            &["a", "a"],
            &["a b"],
            &["u@a"],
            &["a/b"],
            &["a:65536"],
            &["a:b"],
            &["a:+1"],
        ] {
            let error = outcome(Version::HTTP_11, hosts).unwrap_err().to_string();
            assert!(error.contains("header host: expected"), "{hosts:?}: {error}");
        }
        assert!(outcome(Version::HTTP_10, &[]).is_ok());
        assert!(outcome(Version::HTTP_2, &[]).is_ok());
        assert!(outcome(Version::HTTP_10, &["a", "b"]).is_err());
    }
}
