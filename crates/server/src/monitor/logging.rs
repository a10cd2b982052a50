//! Log lines, to standard error. `docs/reference/metrics.md` lists them.

use tracing::level_filters::LevelFilter;

use crate::config::{Config, LogFormat};

/// Begins to write log lines as a configuration says; once in a process, the first time counts.
pub fn start(config: &Config) {
    let level: LevelFilter = config.log_level.parse().unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    let _ = match config.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.with_ansi(false).try_init(),
    };
}

#[cfg(test)]
mod tests;
