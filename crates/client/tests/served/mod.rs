// A server for tests and examples. Examples include it, so that it has no comment of its own.
use std::sync::Arc;

use esker_server::auth::authenticator::Open;
use esker_server::{Server, ServerConfig};

/// A server in this process, with a database in memory, that stops when it is dropped.
#[derive(Debug)]
pub struct Served {
    runtime: tokio::runtime::Runtime,
    server: Option<Server>,
}

#[allow(clippy::new_without_default, clippy::unwrap_used, reason = "it is for tests")]
impl Served {
    /// Starts one, on any port.
    #[must_use]
    pub fn start() -> Self {
        Self::with(ServerConfig::default())
    }

    /// One that closes connections which ask nothing for some time.
    #[allow(dead_code, reason = "not all that include it need it")]
    #[must_use]
    pub fn impatient(idle_timeout: std::time::Duration) -> Self {
        Self::with(ServerConfig { idle_timeout, ..ServerConfig::default() })
    }

    fn with(config: ServerConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(async {
            let database = esker::Options::new().memory().unwrap();
            let authenticator = Arc::new(Open::new(&database));
            Server::start(config, authenticator).await.unwrap()
        });
        Self { runtime, server: Some(server) }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.server.as_ref().and_then(Server::address);
        format!("esker://{}", address.unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}
