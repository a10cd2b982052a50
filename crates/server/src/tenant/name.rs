//! Names of tenants.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The most characters of a name.
const LENGTH_MAX: usize = 63;

/// The name of a tenant: 1 to 63 of `a`–`z`, `0`–`9`, `-` and `_`.
///
/// ```
/// use esker_server::tenant::TenantName;
///
/// let name: TenantName = "team-7".parse()?;
/// assert_eq!(name.as_str(), "team-7");
/// assert!("../team".parse::<TenantName>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

impl TenantName {
    /// The name of the database in the server's directory itself.
    pub const DEFAULT: &str = "default";

    /// The tenant that is always there.
    #[must_use]
    pub fn main() -> Self {
        Self(Self::DEFAULT.to_owned())
    }

    /// True for the tenant that is always there.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.0 == Self::DEFAULT
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self, server: &Path) -> PathBuf {
        if self.is_main() { server.to_owned() } else { server.join("tenants").join(&self.0) }
    }
}

impl FromStr for TenantName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if text.is_empty() || text.len() > LENGTH_MAX || !text.bytes().all(fits) {
            let shown: String = text.chars().take(LENGTH_MAX + 1).collect();
            return Err(format!(
                "expected the name of a tenant, 1 to {LENGTH_MAX} of a-z, 0-9, - and _, \
                 found {shown:?}"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
