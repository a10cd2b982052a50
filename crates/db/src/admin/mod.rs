//! Looking after a database: backups, checks, figures, the clock.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod date_move;
mod erasures;
pub(crate) mod info;
pub(crate) mod save;
mod unique_entries;
