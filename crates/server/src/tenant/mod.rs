//! Tenants: each a database in a directory of its own.
//!
//! ```text
//! DIR/                 the database `default`, where the engine keeps its files
//! DIR/tokens.json      who may do what
//! DIR/tenants/NAME/    the database NAME, with files of the same kinds
//! DIR/tenants/NAME/limits.json   what it may take, where that differs from the server's
//! DIR/backups/NAME/    its backups; they stay when it is removed
//! DIR/restoring/       what is made of a backup, until it is whole
//! DIR/removing/        what is removed, until nothing of it is left
//! ```
//!
//! A name has letters, digits, `-` and `_` only, so that none leads out of the directory; a
//! database is opened when it is first used.

mod backups;
mod limits;
mod name;
mod rate;
mod registry;
mod sent_files;
#[cfg(test)]
mod tests;

pub use crate::resources::load_slots::{LOADS_MAX, LoadPermit, Loads, TENANT_LOADS_MAX};
pub(crate) use backups::backup_name;
pub use limits::{QueryPermit, QuotaReservation, TenantLimits, Usage};
pub use name::TenantName;
pub use rate::Wait;
pub use registry::{Tenant, TenantOptions, Tenants};
