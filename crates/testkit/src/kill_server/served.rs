//! The server: a process of its own, which speaks all protocols until it is killed.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use esker::Options;
use esker_server::auth::access_control::{AccessControl, TokenAuthenticator};
use esker_server::config::Config;
use esker_server::protocol::http::HttpServer;
use esker_server::{Server, ServerConfig};
use esker_vfs::Environment;

use super::Error;

/// Where a server listens.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub wire: String,
    pub redis: String,
    pub http: String,
}

/// A server that runs; one that is dropped is killed.
#[derive(Debug)]
pub(super) struct Served {
    child: Child,
    out: Option<ChildStdout>,
}

impl Served {
    /// Starts a process over a directory.
    #[allow(clippy::disallowed_methods, reason = "a real process is what this is about")]
    pub fn start(directory: &Path) -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child".as_ref(), directory.as_os_str()])
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take();
        Ok(Self { child, out })
    }

    /// Waits until it has opened the database, and listens.
    pub fn place(&mut self) -> Result<Place, Error> {
        let mut line = String::new();
        BufReader::new(self.out.take().ok_or("no pipe")?).read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().ok_or("the server did not start");
        Ok(Place { wire: next()?, redis: next()?, http: next()? })
    }

    /// Kills it, unless it has ended by itself.
    pub fn kill(mut self) -> Result<(), Error> {
        if let Some(status) = self.child.try_wait()? {
            return Err(format!("the server ended by itself: {status}").into());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: serves until it is killed. Its groups and its log are small, so that seals, merges
/// and checkpoints are under way all the time.
pub(super) fn serve(directory: &Path) -> Result<(), Error> {
    let local = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = Config {
        trust_local: true,
        wire_listen: local,
        resp_listen: local,
        http_listen: local,
        resp_buckets: vec!["db0".to_owned(), "db1".to_owned()],
        ..Config::default()
    };
    let options =
        Options::new().group_limit(512, 1 << 20).small_group_limit(4_000).log_limit(200_000);
    let directory = Some(directory.to_owned());
    let access_control =
        Arc::new(AccessControl::open_with(config, &Environment::os(), directory, options)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = ServerConfig::of(&access_control)?;
        let server =
            Server::start(config, Arc::new(TokenAuthenticator::new(&access_control))).await?;
        let http = access_control.config.http_listen.ok_or("no address")?;
        let http = HttpServer::start(http, Arc::clone(&access_control)).await?;
        let mut out = std::io::stdout();
        let (wire, redis) = (server.address(), server.resp_address());
        let (wire, redis) = (wire.ok_or("no address")?, redis.ok_or("no address")?);
        writeln!(out, "{wire} {redis} {}", http.address())?;
        out.flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}

/// Kills a server while it opens its database.
#[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
pub(super) fn kill_early(directory: &Path, delay: Duration) -> Result<(), Error> {
    let served = Served::start(directory)?;
    std::thread::sleep(delay);
    served.kill()
}
