//! The tenants of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::{BackupOptions, BackupReport, Database, Options};
use esker_import::FileAccess;
use esker_vfs::Environment;

use super::backups::Backups;
use super::sent_files::SentFiles;
use super::{TenantLimits, TenantName, Usage};
use crate::file::{read_file, replace_file};
use crate::resources::load_slots::Loads;
use crate::{Code, Error, Result};

const LIMITS_FILE: &str = "limits.json";
const LIMITS_TEMPORARY: &str = "limits.json.new";

/// How databases of tenants are opened.
#[derive(Clone, Debug)]
pub struct TenantOptions {
    /// Where they are; in memory without it.
    pub directory: Option<PathBuf>,
    /// How each is opened.
    pub database: Options,
    /// What each may take unless it says otherwise.
    pub limits: TenantLimits,
    /// The directory below which statements reach files: of a tenant that is not always there,
    /// below the directory of its name. None without it.
    pub files: Option<PathBuf>,
}

/// A tenant whose database is open.
#[derive(Debug)]
pub struct Tenant {
    /// Its name.
    pub name: TenantName,
    /// Its database.
    pub database: Database,
    /// What it has taken.
    pub usage: Usage,
    /// Where its backups are; nowhere in memory.
    pub(super) backups: Option<Backups>,
}

/// The tenants of a server, opened when they are first used. Calls read and write files: they
/// are not for tasks that others wait behind.
#[derive(Debug)]
pub struct Tenants {
    environment: Environment,
    options: TenantOptions,
    /// What each may take unless it says otherwise; those of the options at first.
    limits: Mutex<TenantLimits>,
    loads: Loads,
    open: Mutex<BTreeMap<TenantName, Arc<Tenant>>>,
    /// Held while a database is opened, made or removed: the names of those that are being
    /// restored, which takes long.
    changing: Mutex<BTreeSet<TenantName>>,
}

/// Where a database goes that is removed.
const REMOVING: &str = "removing";

/// A name that no other call may make a database of.
#[derive(Debug)]
struct Reserved<'t>(&'t Tenants, &'t TenantName);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.changing().remove(self.1);
    }
}

impl Tenants {
    /// The tenants of a directory, with the one that is always there open.
    ///
    /// # Errors
    /// What opening that database meets.
    pub fn open(environment: &Environment, options: TenantOptions) -> Result<Self> {
        let (environment, open, changing) =
            (environment.clone(), Mutex::default(), Mutex::default());
        let (limits, loads) = (Mutex::new(options.limits), Loads::default());
        let tenants = Self { environment, options, limits, loads, open, changing };
        tenants.insert(&TenantName::main())?;
        // Somebody was about to remove a database, and did not come to an end.
        let left = tenants.directory().map(|directory| directory.join(REMOVING));
        if let Some(left) = left
            && tenants.environment.files.exists(&left)?
        {
            tenants.environment.files.remove_dir_all(&left)?;
        }
        Ok(tenants)
    }

    /// The directory of the server; none in memory.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.options.directory.as_deref()
    }

    /// A tenant that is open already, without a look at files.
    #[must_use]
    pub fn find_open(&self, name: &TenantName) -> Option<Arc<Tenant>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(name).cloned()
    }

    /// The tenants that are open, by name.
    #[must_use]
    pub fn all_open(&self) -> Vec<Arc<Tenant>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().cloned().collect()
    }

    /// A tenant, opened if it is not.
    ///
    /// # Errors
    /// `NotFound` when there is none of that name; what opening its database meets.
    pub fn get(&self, name: &TenantName) -> Result<Arc<Tenant>> {
        if let Some(tenant) = self.find_open(name) {
            return Ok(tenant);
        }
        let changing = self.changing();
        self.find_or_open(name, &changing)
    }

    fn find_or_open(
        &self,
        name: &TenantName,
        _changing: &BTreeSet<TenantName>,
    ) -> Result<Arc<Tenant>> {
        if let Some(tenant) = self.find_open(name) {
            return Ok(tenant);
        }
        if !self.exists(name)? {
            return Err(Error::new(Code::NotFound, format!("no database {:?}", name.as_str())));
        }
        self.insert(name)
    }

    /// Makes a tenant.
    ///
    /// # Errors
    /// `AlreadyExists`; what making its database meets.
    pub fn create(&self, name: &TenantName) -> Result<Arc<Tenant>> {
        let changing = self.changing();
        self.expect_new(name, &changing)?;
        let tenant = self.insert(name)?;
        tracing::info!(tenant = %name, "a database was made");
        Ok(tenant)
    }

    /// Makes a tenant of a backup of any of them, which is verified first. It has the limits of
    /// the server. What was begun and not finished is not seen, and begun anew.
    ///
    /// # Errors
    /// `AlreadyExists`; `NotFound` when there is no such backup; `Damaged` when it is not whole;
    /// `InvalidRequest` in memory.
    pub fn restore(
        &self,
        name: &TenantName,
        of: &TenantName,
        backup: &TenantName,
    ) -> Result<BackupReport> {
        let files = &self.environment.files;
        let source = self.backups(of)?.join(backup.as_str());
        let mut changing = self.changing();
        self.expect_new(name, &changing)?;
        if !files.exists(&source)? {
            let message = format!("database {:?} has no backup {:?}", of.as_str(), backup.as_str());
            return Err(Error::new(Code::NotFound, message));
        }
        changing.insert(name.clone());
        drop(changing);
        let _reserved = Reserved(self, name);
        let target = name.directory(&self.expect_directory()?.join("restoring"));
        if files.exists(&target)? {
            files.remove_dir_all(&target)?;
        }
        let restored = self.copy(&source, &target);
        if restored.is_err() && files.exists(&target)? {
            files.remove_dir_all(&target)?;
        }
        let report = restored?;
        let _changing = self.changing();
        let own = name.directory(self.expect_directory()?);
        let parent = own.parent().unwrap_or(&own);
        files.create_dir_all(parent)?;
        files.rename(&target, &own)?;
        files.sync_dir(parent)?;
        self.insert(name)?;
        tracing::info!(tenant = %name, of = %of, backup = %backup, "a backup was restored");
        Ok(report)
    }

    /// Makes a database of a sound backup.
    fn copy(&self, source: &Path, target: &Path) -> Result<BackupReport> {
        let options = self.options.database.clone().environment(self.environment.clone());
        let backup = options.read_only(true).open(source)?;
        if let Some(problem) = backup.check()?.problems.first() {
            let message = format!("the backup is damaged: {}: {}", problem.place, problem.message);
            return Err(Error::new(Code::Damaged, message));
        }
        let parent = target.parent().unwrap_or(target);
        self.environment.files.create_dir_all(parent)?;
        Ok(backup.backup(target, &BackupOptions::default(), &mut |_, _| {})?)
    }

    fn changing(&self) -> MutexGuard<'_, BTreeSet<TenantName>> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect_new(&self, name: &TenantName, restoring: &BTreeSet<TenantName>) -> Result<()> {
        let is_there = restoring.contains(name) || self.find_open(name).is_some();
        if is_there || self.exists(name)? {
            let message = format!("database {:?} exists already", name.as_str());
            return Err(Error::new(Code::AlreadyExists, message));
        }
        Ok(())
    }

    fn expect_directory(&self) -> Result<&Path> {
        let missing = || Error::invalid("the database is in memory: it has no files");
        self.directory().ok_or_else(missing)
    }

    /// Where the backups of a tenant are, whether it is still there or not.
    ///
    /// # Errors
    /// `InvalidRequest` in memory.
    pub fn backups(&self, name: &TenantName) -> Result<PathBuf> {
        Ok(self.expect_directory()?.join("backups").join(name.as_str()))
    }

    /// Removes a tenant with all it has. Clients that still work on it see errors.
    ///
    /// # Errors
    /// `InvalidRequest` for the one that is always there; `NotFound`.
    pub fn remove(&self, name: &TenantName) -> Result<()> {
        if name.is_main() {
            let message = format!("database {:?} is the server's own and stays", name.as_str());
            return Err(Error::new(Code::InvalidRequest, message));
        }
        // No other call may have removed it and made another until it is found.
        let changing = self.changing();
        let tenant = self.find_or_open(name, &changing)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        tenant.database.clone().close()?;
        if let Some(directory) = self.directory() {
            self.remove_files(&name.directory(directory), &directory.join(REMOVING))?;
        }
        tracing::info!(tenant = %name, "a database was removed");
        Ok(())
    }

    /// Removes a directory whole: a part of one is never taken for a database.
    fn remove_files(&self, own: &Path, removing: &Path) -> Result<()> {
        let files = &self.environment.files;
        if files.exists(removing)? {
            files.remove_dir_all(removing)?;
        }
        files.rename(own, removing)?;
        for parent in [own.parent(), removing.parent()].into_iter().flatten() {
            files.sync_dir(parent)?;
        }
        Ok(files.remove_dir_all(removing)?)
    }

    /// The names of all tenants, in order.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn names(&self) -> Result<Vec<TenantName>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: BTreeSet<_> = open.keys().cloned().collect();
        drop(open);
        if let Some(directory) = self.directory() {
            let directory = directory.join("tenants");
            if self.environment.files.exists(&directory)? {
                let there = self.environment.files.list(&directory)?;
                names.extend(there.iter().filter_map(|name| name.parse().ok()));
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Gives a tenant limits of its own, kept beside its database.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn set_limits(&self, tenant: &Tenant, limits: TenantLimits) -> Result<()> {
        let _changing = self.changing();
        if let Some(directory) = self.directory() {
            let own = tenant.name.directory(directory);
            let text = serde_json::to_vec_pretty(&limits)
                .map_err(|e| Error::new(Code::Internal, format!("limits: {e}")))?;
            replace_file(&self.environment, &own, LIMITS_TEMPORARY, LIMITS_FILE, &text)?;
        }
        tenant.usage.set_limits(limits);
        Ok(())
    }

    fn default_limits(&self) -> TenantLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives all tenants other limits that have none of their own.
    ///
    /// # Errors
    /// When it cannot be read whether they have.
    pub fn set_default_limits(&self, limits: TenantLimits) -> Result<()> {
        let _changing = self.changing();
        let before = self.default_limits();
        let mut without = Vec::new();
        for tenant in self.all_open() {
            let stored = match self.directory() {
                Some(directory) => self.stored_limits(&tenant.name.directory(directory))?,
                None => None,
            };
            if stored.is_none() && tenant.usage.limits() == before {
                without.push(tenant);
            }
        }
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
        without.iter().for_each(|tenant| tenant.usage.set_limits(limits));
        Ok(())
    }

    /// Closes all databases.
    ///
    /// # Errors
    /// The first that one of them met; the others are closed all the same.
    pub fn close(&self) -> Result<()> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let closed = open.values().map(|tenant| tenant.database.clone().close());
        let closed: Vec<_> = closed.collect();
        closed.into_iter().collect::<esker::Result<Vec<()>>>()?;
        Ok(())
    }

    fn exists(&self, name: &TenantName) -> Result<bool> {
        match self.directory() {
            Some(directory) => Ok(self.environment.files.exists(&name.directory(directory))?),
            None => Ok(false),
        }
    }

    fn insert(&self, name: &TenantName) -> Result<Arc<Tenant>> {
        let options = self.options.database.clone().environment(self.environment.clone());
        let options = match &self.options.files {
            Some(files) => {
                let own = if name.is_main() { files.clone() } else { files.join(name.as_str()) };
                options.files(Arc::new(FileAccess::below(&self.environment, own)))
            }
            None => options.files(Arc::new(SentFiles::new(&self.environment))),
        };
        let (database, limits) = match self.directory() {
            Some(directory) => {
                let own = name.directory(directory);
                (options.open(&own)?, self.stored_limits(&own)?)
            }
            None => (options.memory()?, None),
        };
        tracing::info!(tenant = %name, "a database was opened");
        let limits = limits.unwrap_or_else(|| self.default_limits());
        let usage = Usage::new(&self.environment, limits).beside(&self.loads);
        let place = self.backups(name).ok();
        let backups = place.map(|place| Backups::new(&self.environment, place));
        let tenant = Arc::new(Tenant { name: name.clone(), database, usage, backups });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.clone(), Arc::clone(&tenant));
        drop(open);
        Ok(tenant)
    }

    fn stored_limits(&self, directory: &Path) -> Result<Option<TenantLimits>> {
        let path = directory.join(LIMITS_FILE);
        let Some(bytes) = read_file(&self.environment, &path)? else { return Ok(None) };
        let limits = serde_json::from_slice(&bytes).map_err(|e| {
            let message = format!("{}: not a file of limits: {e}", path.display());
            Error::new(Code::Damaged, message)
        })?;
        Ok(Some(limits))
    }
}
