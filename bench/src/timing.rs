//! The median of something repeated.

use std::time::Instant;

use crate::Result;
use crate::bench::boxed;
use crate::outcome::median;

/// Microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) least: f64,
}

/// Does something several times; what it gives goes within the time.
pub(crate) fn repeat<T, E>(
    times: usize,
    mut job: impl FnMut() -> std::result::Result<T, E>,
) -> Result<Timing>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut elapsed = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        drop(job().map_err(boxed)?);
        elapsed.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let least = elapsed.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Timing { median: median(&elapsed), least })
}
