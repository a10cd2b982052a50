//! `esker serve DIR`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_server::auth::access_control::{
    AccessControl, Reloaded, TokenAuthenticator, watch_clocks,
};
use esker_server::auth::tls::Tls;
use esker_server::config::{Config, Sources};
use esker_server::monitor::logging;
use esker_server::protocol::http::HttpServer;
use esker_server::tenant::{LOADS_MAX, TenantName};
use esker_server::{Server, ServerConfig};
use esker_vfs::Environment;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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
    let reload = Arc::new(AtomicBool::new(false));
    for (signal, flag) in [(SIGINT, &stopped), (SIGTERM, &stopped), (SIGHUP, &reload)] {
        let note = signal_hook::flag::register(signal, Arc::clone(flag));
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
    let signals = Signals { stopped: &stopped, reload: &reload };
    let served = runtime.block_on(serve(&access_control, arguments, &signals, console));
    runtime.shutdown_timeout(Duration::from_secs(1));
    access_control.tenants.close()?;
    served?;
    writeln!(console.err, "stopped")?;
    Ok(())
}

/// The signals that have come.
struct Signals<'s> {
    stopped: &'s AtomicBool,
    reload: &'s AtomicBool,
}

/// Reads configuration, tokens and certificates again. What is wrong changes nothing.
fn reload(access_control: &AccessControl, arguments: &ServeArguments, certificates: &[Arc<Tls>]) {
    let read = configuration(arguments).map_err(|failure| failure.to_string());
    let reloaded = read
        .and_then(|config| access_control.reload(&config, certificates).map_err(|e| e.to_string()));
    Reloaded::log(&reloaded);
}

/// Says in the lock file of the server's own database where programs of this machine reach it:
/// by its Unix socket, or by TCP without TLS.
fn announce(access_control: &AccessControl, address: Option<SocketAddr>) -> Result<()> {
    let reached = match address.map(|address| (address.ip(), address.port())) {
        Some((ip, port)) if ip.is_unspecified() => Some(format!("esker://127.0.0.1:{port}")),
        Some((ip, port)) if ip.is_loopback() => {
            Some(format!("esker://{}", SocketAddr::new(ip, port)))
        }
        _ => None,
    };
    let config = &access_control.config;
    let is_plain = config.tls_certificate.is_none() || config.insecure_listen;
    let unix = config.wire_unix.as_ref().and_then(|path| {
        let path = if path.is_absolute() {
            path.clone()
        } else {
            std::env::current_dir().ok()?.join(path)
        };
        Some(format!("unix:{}", path.display()))
    });
    let is_local = address.is_some_and(|address| address.ip().is_loopback());
    if let Some(address) = unix.or(reached.filter(|_| is_plain || is_local)) {
        access_control.tenants.get(&TenantName::main())?.database.announce(&address)?;
    }
    Ok(())
}

async fn serve(
    access_control: &Arc<AccessControl>,
    arguments: &ServeArguments,
    signals: &Signals<'_>,
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
    // Before anything is printed: a program that waits for a line of it finds the address.
    announce(access_control, server.address())?;
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
    let certificates = [server.tls(), http.as_ref().and_then(HttpServer::tls)];
    let certificates: Vec<Arc<Tls>> = certificates.into_iter().flatten().cloned().collect();
    while !signals.stopped.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK_EVERY).await;
        if signals.reload.swap(false, Ordering::Relaxed) {
            // What goes wrong is logged.
            tokio::task::block_in_place(|| reload(access_control, arguments, &certificates));
        }
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
