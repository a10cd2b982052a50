//! Log lines, to standard error. `docs/reference/metrics.md` lists them.

use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::config::{Config, LogFormat};

/// Begins to write log lines as a configuration says; once in a process, the first time counts.
pub fn start(config: &Config) {
    let (level, handle) = reload::Layer::new(level(config));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let subscriber = tracing_subscriber::registry().with(level);
    let started = match config.log_format {
        LogFormat::Json => subscriber.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Text => subscriber.with(lines.with_ansi(false)).try_init(),
    };
    if started.is_ok() {
        let _ = LEVEL.set(handle);
    }
}

/// The level of the lines that are written, which may change.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

fn level(config: &Config) -> LevelFilter {
    config.log_level.parse().unwrap_or(LevelFilter::INFO)
}

/// Writes the lines of another level from now on.
pub(crate) fn set_level(config: &Config) {
    if let Some(handle) = LEVEL.get() {
        // There is no subscriber only while the process ends.
        let _ = handle.modify(|filter| *filter = level(config));
    }
}

#[cfg(test)]
mod tests;
