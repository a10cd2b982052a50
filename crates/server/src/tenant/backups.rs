//! Backups of a tenant, in the server's own directory: a request names them, and says nothing of
//! paths.

use std::path::PathBuf;

use esker::BackupReport;
use esker_vfs::Environment;

use super::{Tenant, TenantName};
use crate::session::NewBackup;
use crate::{Code, Error, Result};

/// Where the backups of a tenant are.
#[derive(Debug)]
pub(super) struct Backups {
    environment: Environment,
    place: PathBuf,
}

/// The name of a backup, which a member of a request has.
pub(crate) fn backup_name(member: &str, text: &str) -> Result<TenantName> {
    let wrong = |e: String| format!("{member}: {}", e.replace("a tenant", "a backup"));
    text.parse().map_err(|e| Error::invalid(wrong(e)))
}

impl Backups {
    pub fn new(environment: &Environment, place: PathBuf) -> Self {
        Self { environment: environment.clone(), place }
    }
}

impl Tenant {
    /// Makes a backup; returns its place within the server's directory.
    ///
    /// # Errors
    /// `InvalidRequest` for a name that none may have, and in memory; `NotFound` when there is no
    /// such base; `AlreadyExists`; what the backup meets.
    pub fn back_up(&self, asked: &NewBackup) -> Result<(String, BackupReport)> {
        let name = backup_name("name", &asked.name)?;
        let base = asked.base.as_deref().map(|base| backup_name("base", base)).transpose()?;
        let in_memory = || Error::invalid("the database is in memory: it has no files");
        let backups = self.backups.as_ref().ok_or_else(in_memory)?;
        let files = &backups.environment.files;
        let base = match base {
            Some(base) => {
                let place = backups.place.join(base.as_str());
                if !files.exists(&place)? {
                    let (tenant, base) = (self.name.as_str(), base.as_str());
                    let message = format!("database {tenant:?} has no backup {base:?}");
                    return Err(Error::new(Code::NotFound, message));
                }
                Some(place)
            }
            None => None,
        };
        let target = backups.place.join(name.as_str());
        if files.exists(&target)? {
            let message = format!("backup {:?} exists already", name.as_str());
            return Err(Error::new(Code::AlreadyExists, message));
        }
        if !asked.dry_run {
            files.create_dir_all(&backups.place)?;
        }
        let report = self.database.backup(&target, &asked.options(base), &mut |_, _| {})?;
        if !asked.dry_run {
            let (tenant, bytes) = (&self.name, report.copied_bytes);
            tracing::info!(%tenant, backup = %name, bytes, "a backup was made");
        }
        Ok((format!("backups/{}/{name}", self.name), report))
    }
}
