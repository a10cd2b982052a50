//! Our server and the stand-in, on one runtime, asked in turn by one thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use esker::{Durability, Options};
use esker_server::auth::access_control::AccessControl;
use esker_server::auth::token::NewToken;
use esker_server::config::Config;
use esker_server::protocol::http::HttpServer;
use esker_vfs::Environment;
use tokio::runtime::{Builder, Runtime};

use super::client::{Answers, ask_all, post};
use super::event::{Event, STREAM, schema};
use super::stand_in::StandIn;
use crate::Result;
use crate::bench::{Bench, boxed};

/// Different requests that are sent over and over.
const REQUESTS: u64 = 512;

/// Both servers.
pub(super) struct Sides {
    runtime: Runtime,
    client: Runtime,
    server: HttpServer,
    pub ours: SocketAddr,
    pub stand_in: StandIn,
    pub token: String,
}

impl Sides {
    pub fn start(bench: &Bench, name: &str) -> Result<Self> {
        let dir = bench.place(name)?;
        let database = Options::new().durability(Durability::Sync).open(&dir)?;
        database.create_table(STREAM, schema()?)?;
        database.close()?;
        let config = Config { durability: Durability::Sync, ..Config::default() };
        let access_control =
            AccessControl::open(config, &Environment::os(), Some(dir)).map_err(boxed)?;
        let scopes = vec!["admin".parse()?];
        let new = NewToken { name: "bench".to_owned(), scopes, lifetime: None };
        let (_, token) = access_control.tokens.create(&new).map_err(boxed)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server =
            runtime.block_on(HttpServer::start(any, Arc::new(access_control))).map_err(boxed)?;
        let ours = server.address();
        let stand_in = runtime.block_on(StandIn::start(bench.place(&format!("{name}-beside"))?))?;
        let client = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client, server, ours, stand_in, token })
    }

    /// What so many connections get in a while.
    pub fn ask(
        &self,
        address: SocketAddr,
        connections: u64,
        time: Duration,
        requests: &Arc<Vec<Vec<u8>>>,
    ) -> Result<Answers> {
        self.client.block_on(ask_all(address, connections, time, requests))
    }

    /// Runs a conversation on the thread of the client.
    pub fn talk<T>(&self, talk: impl Future<Output = Result<T>>) -> Result<T> {
        self.client.block_on(talk)
    }

    /// The path of our events.
    pub fn events(parameters: &str) -> String {
        format!("/v1/databases/default/streams/{STREAM}/events{parameters}")
    }

    /// Requests with so many events each, at a path.
    pub fn requests(&self, path: &str, events: u64) -> Arc<Vec<Vec<u8>>> {
        let body = |request: u64| {
            let own = (0..events).map(|n| Event::new(request * events + n).json(false));
            let own: Vec<String> = own.collect();
            match own.as_slice() {
                [only] => only.clone(),
                all => format!("[{}]", all.join(",")),
            }
        };
        let request = |n| post(path, &self.token, "application/json", &body(n));
        Arc::new((0..REQUESTS).map(request).collect())
    }

    /// Ends both. The stand-in has flushed what it was asked to keep.
    pub fn stop(self) -> Result<()> {
        let flushed = self.stand_in.flushed();

        self.runtime.block_on(self.server.stop());
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        eprintln!("the stand-in flushed {flushed} events");
        Ok(())
    }
}
