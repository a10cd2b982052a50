//! Who comes in, to which database, under which limits: the same for all protocols.

mod authenticator;
mod authorizer;
mod reload;

use std::net::IpAddr;
use std::sync::Arc;

use esker_vfs::Environment;
use esker_vfs::sync::ArcSwap;

use crate::auth::token::{Principal, TokenStore};
use crate::config::Config;
use crate::monitor::active_sessions::ActiveSessions;
use crate::monitor::metrics::Metrics;
use crate::resources::budget::Budget;
use crate::session::{RequestLog, SessionLimits};
use crate::tenant::{Tenant, TenantName, TenantOptions, Tenants};
use crate::{Code, Error, Result, Session};

pub use crate::monitor::clock_watch::watch_clocks;
pub use authenticator::TokenAuthenticator;
use authorizer::Authorizer;
pub use reload::Reloaded;

/// What all protocols of a server share.
#[derive(Debug)]
pub struct AccessControl {
    /// What the server was started with.
    pub config: Config,
    /// The same with what has been read again since.
    live: ArcSwap<Config>,
    /// The machine.
    pub environment: Environment,
    /// The databases.
    pub tenants: Tenants,
    /// Who may do what.
    pub tokens: Arc<TokenStore>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who is connected.
    pub active_sessions: Arc<ActiveSessions>,
    /// The memory of what arrives and leaves.
    pub budget: Arc<Budget>,
}

impl AccessControl {
    /// Opens the database of a directory, or one in memory, with the tokens there.
    ///
    /// # Errors
    /// What opening meets.
    pub fn open(
        config: Config,
        environment: &Environment,
        directory: Option<std::path::PathBuf>,
    ) -> Result<Self> {
        Self::open_with(config, environment, directory, esker::Options::new())
    }

    /// The same, where databases are opened with these options; durability and memory are as the
    /// configuration says.
    ///
    /// # Errors
    /// What opening meets.
    pub fn open_with(
        config: Config,
        environment: &Environment,
        directory: Option<std::path::PathBuf>,
        options: esker::Options,
    ) -> Result<Self> {
        let database =
            options.durability(config.durability).memory_limit(config.memory_limit_bytes);
        let database = match config.temporary_memory_limit_bytes {
            Some(bytes) => database.temporary_memory_limit(bytes),
            None => database,
        };
        let database = database.program("esker serve");
        let directory = directory.filter(|_| !config.memory);
        let options = TenantOptions {
            directory: directory.clone(),
            database,
            limits: config.limits,
            files: config.files_dir.clone(),
        };
        let tenants = Tenants::open(environment, options)?;
        let tokens = Arc::new(TokenStore::open(environment, directory)?);
        tokens.go_by(&tenants.get(&TenantName::main())?.database);
        let slow_ns = u64::try_from(config.slow_query.as_nanos()).unwrap_or(u64::MAX);
        let metrics = Arc::new(Metrics::new(environment, slow_ns));
        let budget = Budget::new(config.buffer_bytes_max);
        let (environment, active_sessions) =
            (environment.clone(), ActiveSessions::new(environment));
        let live = ArcSwap::from_pointee(config.clone());
        Ok(Self { config, live, environment, tenants, tokens, metrics, active_sessions, budget })
    }

    /// The principal of a token, or of none.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub fn principal(&self, token: Option<&str>, peer: Option<IpAddr>) -> Result<Principal> {
        match token {
            Some(token) => self.tokens.authenticate(token).inspect_err(|e| {
                let peer = peer.map(tracing::field::display);
                tracing::warn!(peer, error = %e, "a token was refused");
            }),
            None if self.live.load().trust_local && peer.is_none_or(|ip| ip.is_loopback()) => {
                Ok(Principal::trusted())
            }
            None => Err(Error::new(Code::Unauthenticated, "expected a token, found none")),
        }
    }

    /// A tenant, for a principal that may do anything there; others do not learn whether it exists.
    /// May open a database, so that this may wait for the disk. The caller counts the request.
    ///
    /// # Errors
    /// `Forbidden`, `NotFound`.
    pub fn enter(&self, principal: &Principal, name: &TenantName) -> Result<Arc<Tenant>> {
        if !principal.may_enter(name) {
            let token = &*principal.id;
            tracing::warn!(token, tenant = %name, "a token does not reach a database");
            let message = format!("token {:?} has no scope in {name}", principal.name);
            return Err(Error::new(Code::Forbidden, message));
        }
        self.tenants.get(name)
    }

    /// A session of a principal in a tenant.
    #[must_use]
    pub fn session(&self, principal: &Principal, tenant: &Arc<Tenant>) -> Session {
        let authorizer = Authorizer::new(principal, tenant, &self.tokens);
        let memory_bytes = tenant.usage.limits().memory_bytes;
        let limits = SessionLimits {
            timeout: self.live.load().statement_timeout,
            memory_bytes: memory_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        };
        let watch = RequestLog {
            metrics: Arc::clone(&self.metrics),
            active_sessions: Arc::clone(&self.active_sessions),
            token: Arc::clone(&principal.id),
            tenant: tenant.name.clone(),
        };
        Session::with(&tenant.database, Arc::new(authorizer), limits).watched(watch)
    }

    /// What the person who starts the server should know about its tokens.
    #[must_use]
    pub fn notice(&self) -> Option<&'static str> {
        match (self.live.load().trust_local, self.tokens.is_empty()) {
            (true, _) => Some("connections from this machine do everything without a token"),
            (false, true) => Some(
                "there is no token, and every request is refused: make one with \
                 `esker token create DIR --name NAME --scope admin`, or start with --trust-local",
            ),
            (false, false) => None,
        }
    }
}
