//! What a token may do, and where.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::session::Level;
use crate::tenant::TenantName;
use crate::{Code, Error, Result};

const LEVELS: [(Level, &str); 3] =
    [(Level::Read, "read"), (Level::Write, "write"), (Level::Admin, "admin")];

fn level_name(level: Level) -> &'static str {
    LEVELS.into_iter().find(|(known, _)| *known == level).map_or("", |(_, name)| name)
}

/// Where something may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere: the server itself, each tenant, each table.
    Global,
    /// In one tenant.
    Tenant(TenantName),
    /// In one table or bucket of a tenant, or in all of a schema.
    Table(TenantName, String),
}

/// One thing that a token may do: `read`, `write:TENANT`, `admin:TENANT/TABLE`,
/// `read:TENANT/SCHEMA.*`.
///
/// ```
/// use esker_server::session::Level;
/// use esker_server::auth::token::{Place, Scope};
///
/// let scope: Scope = "write:shop/orders".parse()?;
/// assert_eq!(scope.level, Level::Write);
/// assert!(matches!(&scope.place, Place::Table(_, table) if table == "orders"));
/// assert_eq!(scope.to_string(), "write:shop/orders");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What.
    pub level: Level,
    /// Where.
    pub place: Place,
}

impl Scope {
    /// Everything everywhere.
    pub const EVERYTHING: Self = Self { level: Level::Admin, place: Place::Global };

    fn covers(&self, level: Level, tenant: Option<&TenantName>, table: Option<&str>) -> bool {
        let inside = match &self.place {
            Place::Global => true,
            Place::Tenant(own) => tenant == Some(own),
            Place::Table(own, name) => {
                tenant == Some(own) && table.is_some_and(|table| covers_table(name, table))
            }
        };
        inside && self.level >= level
    }
}

/// Whether what is said of tables is about one: its name, or `schema.*` for all of a schema.
fn covers_table(said: &str, table: &str) -> bool {
    let rest = said.strip_suffix(".*").and_then(|schema| table.strip_prefix(schema));
    said == table || rest.is_some_and(|rest| rest.starts_with('.'))
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (level, place) = match text.split_once(':') {
            Some((level, place)) => (level, Some(place)),
            None => (text, None),
        };
        let known = LEVELS.into_iter().find(|(_, name)| *name == level);
        let (level, _) = known.ok_or_else(|| {
            format!(
                "expected a scope such as read, write:TENANT or admin:TENANT/TABLE, found {text:?}"
            )
        })?;
        let place = match place.map(|place| place.split_once('/').unwrap_or((place, ""))) {
            None => Place::Global,
            Some((tenant, "")) if !text.ends_with('/') => Place::Tenant(tenant.parse()?),
            Some((_, "")) => return Err(format!("expected a table behind the / of {text:?}")),
            Some((tenant, table)) => Place::Table(tenant.parse()?, table.to_owned()),
        };
        Ok(Self { level, place })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = level_name(self.level);
        match &self.place {
            Place::Global => f.write_str(level),
            Place::Tenant(tenant) => write!(f, "{level}:{tenant}"),
            Place::Table(tenant, table) => write!(f, "{level}:{tenant}/{table}"),
        }
    }
}

/// The id of a principal that is trusted without a token; ids of tokens are digits.
const TRUSTED: &str = "local";

/// The client that a connection or a request is of. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The id of the token; `local` for a principal that is trusted without one.
    pub id: Arc<str>,
    /// What it was called when it was made.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Arc<[Scope]>,
}

impl Principal {
    /// A principal that is trusted without a token, and may do everything.
    #[must_use]
    pub fn trusted() -> Self {
        let name: Arc<str> = TRUSTED.into();
        Self { id: Arc::clone(&name), name, scopes: [Scope::EVERYTHING].into() }
    }

    /// True for one that is trusted without a token.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        &*self.id == TRUSTED
    }

    /// A client of what needs no token.
    #[must_use]
    pub fn nobody() -> Self {
        Self { id: "".into(), name: "".into(), scopes: [].into() }
    }

    /// True when it may do this in a place: a table of a tenant, a tenant as a whole (without a
    /// table), or the server (without either).
    #[must_use]
    pub fn may(&self, level: Level, tenant: Option<&TenantName>, table: Option<&str>) -> bool {
        self.scopes.iter().any(|scope| scope.covers(level, tenant, table))
    }

    /// Refuses what it may not do.
    ///
    /// # Errors
    /// `Forbidden` with the scope that is missing.
    pub fn expect(
        &self,
        level: Level,
        tenant: Option<&TenantName>,
        table: Option<&str>,
    ) -> Result<()> {
        if self.may(level, tenant, table) {
            return Ok(());
        }
        let place = match (tenant, table) {
            (Some(tenant), Some(table)) => format!(":{tenant}/{table}"),
            (Some(tenant), None) => format!(":{tenant}"),
            (None, _) => String::new(),
        };
        let (name, level) = (&self.name, level_name(level));
        let message = format!("token {name:?} has no scope {level}{place}");
        Err(Error::new(Code::Forbidden, message))
    }

    /// True when it may do anything at all in a tenant.
    #[must_use]
    pub fn may_enter(&self, tenant: &TenantName) -> bool {
        self.scopes.iter().any(|scope| match &scope.place {
            Place::Global => true,
            Place::Tenant(own) | Place::Table(own, _) => own == tenant,
        })
    }
}
