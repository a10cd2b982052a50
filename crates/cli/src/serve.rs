//! `esker serve DIR`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::Options;
use esker_server::admission::Open;
use esker_server::{Server, ServerConfig};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Console;
use crate::arguments::ServeArguments;
use crate::failure::{Failure, Result};

/// Threads that wait for disks and queries, at most.
const BLOCKING_THREADS_MAX: usize = 64;
/// How often it is looked whether the server is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) fn run(arguments: &ServeArguments, console: &mut Console<'_>) -> Result<()> {
    if !arguments.listen.ip().is_loopback() && !arguments.insecure_listen {
        let message = format!(
            "--listen {}: other machines could reach it, without encryption; expected an address \
             of this machine alone, such as 127.0.0.1:7437, or --insecure-listen",
            arguments.listen
        );
        return Err(Failure::usage(message));
    }
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let note = signal_hook::flag::register(signal, Arc::clone(&stopped));
        note.map_err(|e| Failure::system(format!("signals: {e}")))?;
    }
    let options = Options::new().durability(arguments.durability);
    let database = match &arguments.db {
        Some(dir) => options.open(dir)?,
        None => options.memory()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| Failure::system(format!("threads: {e}")))?;
    let config = ServerConfig {
        listen: Some(arguments.listen),
        unix: arguments.unix.clone(),
        ..ServerConfig::default()
    };
    let served = runtime.block_on(async {
        let server = Server::start(config, Arc::new(Open::new(&database))).await;
        let server = server.map_err(|e| Failure::system(e.to_string()))?;
        if let Some(address) = server.address() {
            writeln!(console.out, "listening on {address}")?;
        }
        if let Some(path) = &arguments.unix {
            writeln!(console.out, "listening on {}", path.display())?;
        }
        console.out.flush()?;
        while !stopped.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        server.stop().await;
        Ok::<_, Failure>(())
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    database.close()?;
    served?;
    writeln!(console.err, "stopped")?;
    Ok(())
}
