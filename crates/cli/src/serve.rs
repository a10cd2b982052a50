//! `esker serve DIR`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_server::auth::access_control::{AccessControl, TokenAuthenticator, watch_clocks};
use esker_server::config::{Config, Sources};
use esker_server::monitor::logging;
use esker_server::protocol::http::HttpServer;
use esker_server::tenant::LOADS_MAX;
use esker_server::{Server, ServerConfig};
use esker_vfs::Environment;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Console;
use crate::arguments::ServeArguments;
use crate::config::read_text;
use crate::failure::{Failure, Result};

/// Threads that wait for disks and queries, at most, beside those of as many loads as there may be.
const BLOCKING_THREADS_MAX: usize = 64 + LOADS_MAX;
/// How often it is looked whether the server is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the file, the environment and the flags say.
fn configuration(arguments: &ServeArguments) -> Result<Config> {
    let file = match &arguments.config {
        Some(path) => Some((path.display().to_string(), read_text(path)?)),
        None => None,
    };
    let variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let sources = Sources {
        file: file.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
        variables: &variables,
        flags: &arguments.flags.0,
    };
    let config = sources.read().map_err(Failure::usage)?;
    if !config.memory && arguments.db.is_none() {
        return Err(Failure::usage("expected the directory of the database, or --memory"));
    }
    Ok(config)
}

pub(crate) fn run(arguments: &ServeArguments, console: &mut Console<'_>) -> Result<()> {
    let config = configuration(arguments)?;
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let note = signal_hook::flag::register(signal, Arc::clone(&stopped));
        note.map_err(|e| Failure::system(format!("signals: {e}")))?;
    }
    logging::start(&config);
    let access_control = AccessControl::open(config, &Environment::os(), arguments.db.clone())?;
    let access_control = Arc::new(access_control);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if access_control.config.threads > 0 {
        builder.worker_threads(access_control.config.threads);
    }
    let runtime = builder.max_blocking_threads(BLOCKING_THREADS_MAX).enable_all().build();
    let runtime = runtime.map_err(|e| Failure::system(format!("threads: {e}")))?;
    let served = runtime.block_on(serve(&access_control, &stopped, console));
    runtime.shutdown_timeout(Duration::from_secs(1));
    access_control.tenants.close()?;
    served?;
    writeln!(console.err, "stopped")?;
    Ok(())
}

async fn serve(
    access_control: &Arc<AccessControl>,
    stopped: &AtomicBool,
    console: &mut Console<'_>,
) -> Result<()> {
    let config = &access_control.config;
    tokio::spawn(watch_clocks(Arc::clone(access_control)));
    let server = Server::start(
        ServerConfig::of(access_control)?,
        Arc::new(TokenAuthenticator::new(access_control)),
    )
    .await?;
    let http = match config.http_listen {
        Some(address) => Some(HttpServer::start(address, Arc::clone(access_control)).await?),
        None => None,
    };
    if let Some(address) = server.address() {
        writeln!(console.out, "listening on {address}")?;
    }
    if let Some(path) = &config.wire_unix {
        writeln!(console.out, "listening on {}", path.display())?;
    }
    if let Some(address) = server.resp_address() {
        writeln!(console.out, "listening on redis://{address}")?;
    }
    if let Some(http) = &http {
        let scheme = if config.tls_certificate.is_some() { "https" } else { "http" };
        writeln!(console.out, "listening on {scheme}://{}", http.address())?;
    }
    console.out.flush()?;
    if let Some(notice) = access_control.notice() {
        writeln!(console.err, "note: {notice}")?;
    }
    while !stopped.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // All protocols at once: what is under way in one does not keep the others open.
    let stop_http = async {
        if let Some(http) = http {
            http.stop().await;
        }
    };
    tokio::join!(stop_http, server.stop());
    Ok(())
}
