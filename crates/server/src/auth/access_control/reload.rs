//! A configuration, tokens and certificates that are read again while the server runs.

use std::sync::Arc;

use super::AccessControl;
use crate::auth::tls::Tls;
use crate::config::{Config, KEYS};
use crate::monitor::logging;
use crate::{Result, config};

/// What a new configuration came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The keys that have changed, and hold from now on.
    pub changed: Vec<&'static str>,
    /// The keys that have changed, and hold once the server starts anew.
    pub later: Vec<&'static str>,
}

impl Reloaded {
    /// Writes a log line with what was changed, or why nothing was.
    pub fn log(outcome: &std::result::Result<Self, String>) {
        match outcome {
            Ok(Self { changed, later }) => {
                let (changed, later) = (changed.join(","), later.join(","));
                tracing::info!(changed, later, "the configuration was read again");
            }
            Err(error) => tracing::error!(error, "the configuration was not read again"),
        }
    }
}

impl AccessControl {
    /// Goes by another configuration, as far as that is possible while the server runs, and reads
    /// tokens and certificates again. Connections stay; sessions that are there go on with the
    /// limits that they began with. An error leaves the configuration as it is; tokens and
    /// certificates that were read before it hold, as they do when their files change.
    ///
    /// # Errors
    /// What is wrong with the file of tokens, or with a certificate.
    pub fn reload(&self, new: &Config, certificates: &[Arc<Tls>]) -> Result<Reloaded> {
        self.tokens.read_again()?;
        for tls in certificates {
            tls.reload()?;
        }
        let mut reloaded = Reloaded::default();
        let old = self.live.load();
        let mut live = Config::clone(&old);
        for key in KEYS {
            let value = (key.get)(new);
            if value == (key.get)(&old) {
                continue;
            }
            match config::is_live(key.name) && (key.set)(&mut live, &value).is_ok() {
                true => reloaded.changed.push(key.name),
                false => reloaded.later.push(key.name),
            }
        }
        self.tenants.set_default_limits(live.limits)?;
        self.metrics.set_slow(live.slow_query);
        logging::set_level(&live);
        self.live.store(Arc::new(live));
        Ok(reloaded)
    }
}
