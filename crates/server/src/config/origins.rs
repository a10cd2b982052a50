//! Origins of pages, as browsers send them.

use std::fmt;
use std::str::FromStr;

/// The pages that may ask over HTTP from another origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Those of any.
    Any,
    /// Those of these.
    Listed(Vec<String>),
}

impl Origins {
    /// Whether pages of an origin may ask.
    #[must_use]
    pub fn allows(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(origins) => origins.iter().any(|known| known == origin),
        }
    }
}

impl FromStr for Origins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        let origin = |text: &str| match check(text) {
            Ok(()) => Ok(text.to_owned()),
            Err(expected) => Err(format!("expected {expected}, found {text:?}")),
        };
        text.split(',').map(|text| origin(text.trim())).collect::<Result<_, _>>().map(Self::Listed)
    }
}

impl fmt::Display for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Listed(origins) => f.write_str(&origins.join(",")),
        }
    }
}

/// Refuses what no browser sends as an origin; it would never be met.
fn check(text: &str) -> Result<(), &'static str> {
    const ORIGIN: &str = "an origin such as https://app.example.com, or * alone";
    let (scheme, authority) = text.split_once("://").ok_or(ORIGIN)?;
    let is_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    let starts_well = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well || !scheme.bytes().all(is_scheme) {
        return Err(ORIGIN);
    }
    if authority.contains(['/', '?', '#']) {
        return Err("an origin without a path, such as https://app.example.com");
    }
    if text.contains('*') {
        return Err("whole names of hosts, or * alone");
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err("small letters, as browsers send them");
    }
    // A colon within brackets is one of an address of IPv6.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let fits = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_host),
    };
    if !fits {
        return Err(ORIGIN);
    }
    match (scheme, port) {
        (_, None) => Ok(()),
        ("https", Some("443")) | ("http", Some("80")) => {
            Err("an origin without the port of its scheme, which browsers leave out")
        }
        (_, Some(port)) => match port.parse::<u16>() {
            Ok(number) if number > 0 && number.to_string() == port => Ok(()),
            _ => Err("a port from 1 to 65535"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_send_them() {
        let text = "https://app.example.com, http://localhost:5173,http://[::1]:8080,tauri://local";
        let origins: Origins = text.parse().unwrap();
        assert_eq!(origins.to_string(), text.replace(' ', ""));
        assert!(origins.allows("http://localhost:5173") && origins.allows("http://[::1]:8080"));
        for other in ["http://localhost", "https://localhost:5173", "null", "", "*"] {
            assert!(!origins.allows(other), "{other}");
        }
        assert!("*".parse::<Origins>().unwrap().allows("null"));
        let wrong = [
            ("", "an origin such as"),
            ("null", "an origin such as"),
            ("app.example.com", "an origin such as"),
            ("https://", "an origin such as"),
            ("https://a b", "an origin such as"),
            ("https://u@host", "an origin such as"),
            ("https://[::x]", "an origin such as"),
            ("https://a.example.com,", "an origin such as"),
            ("https://a.example.com/", "without a path"),
            ("https://*.example.com", "whole names of hosts"),
            ("*,https://a.example.com", "an origin such as"),
            ("https://App.example.com", "small letters"),
            ("https://a.example.com:443", "without the port"),
            ("http://a.example.com:80", "without the port"),
            ("http://a.example.com:0", "a port from 1"),
            ("http://a.example.com:x", "a port from 1"),
        ];
        for (text, expected) in wrong {
            let error = text.parse::<Origins>().unwrap_err();
            assert!(error.starts_with("expected ") && error.contains(expected), "{text}: {error}");
            assert!(error.contains("found \""), "{error}");
        }
    }
}
