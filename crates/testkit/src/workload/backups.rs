//! Backups in the middle of a workload, and what must be in them ever after.

use std::path::PathBuf;

use esker::{BackupOptions, ErrorKind};
use esker_vfs::sim::{CrashImage, Options as SimOptions, Simulation};

use super::{Config, Driver, Life, check_fault};
use crate::history::History;
use crate::oracle::{self, Depth};

/// A backup that was begun.
#[derive(Clone, Debug)]
pub struct BackupMade {
    /// Its directory.
    pub dir: String,
    /// I/Os that had been done before.
    pub from: u64,
    /// I/Os that had been done when it was said to be whole.
    pub until: Option<u64>,
    /// The commit that it was said to hold.
    pub commit: u64,
    /// It was opened, and held what it has to.
    verified: bool,
}

/// How many backups a life takes over: what is older has been looked at often.
const LEFT_MAX: usize = 2;

impl BackupMade {
    /// The backups that the next life finds.
    pub(super) fn left_by(life: &Life) -> Vec<Self> {
        let first = life.backups.len().saturating_sub(LEFT_MAX);
        let left = life.backups.iter().skip(first);
        // A crash may have come before the end of any but those of earlier lives.
        let mut left: Vec<Self> = left.cloned().collect();
        left.iter_mut().for_each(|backup| backup.from = 0);
        left.iter_mut().for_each(|backup| backup.until = backup.until.map(|_| 0));
        left
    }

    /// Whether its directory is worth a look after so many I/Os.
    #[must_use]
    pub fn is_near(&self, ios: u64) -> bool {
        self.from < ios && self.until.is_none_or(|until| ios <= until + 3)
    }

    /// Opens it in an image: no database, if it was not finished after so many I/Os, or exactly
    /// the commit that it has, which is none that the database itself may have lost.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        config: &Config,
        image: &CrashImage,
        ios: u64,
        history: &History,
        recovered: u64,
    ) -> Result<(), String> {
        let machine = Simulation::from_image(image, 11, SimOptions::default());
        let finished = self.until.is_some_and(|until| until <= ios);
        self.check_on(config, &machine, finished, history, recovered)
            .map_err(|why| format!("{}: {why}", self.dir))
    }

    fn check_on(
        &self,
        config: &Config,
        machine: &Simulation,
        finished: bool,
        history: &History,
        newest: u64,
    ) -> Result<(), String> {
        let options = config.options(machine.environment()).read_only(true);
        let db = match options.open(PathBuf::from(&self.dir)) {
            Ok(db) => super::Opened(db),
            Err(e) if !finished && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
                return Ok(());
            }
            Err(e) => return Err(format!("open: {}", oracle::said(&e))),
        };
        // The first frame of its log has a number, too.
        let commit = oracle::recovered_commit(&db, false)?;
        if finished && commit != self.commit {
            return Err(format!("opened at commit {commit}, said to hold {}", self.commit));
        }
        // Commit 1 is the creation of an empty database, which may be done over.
        if commit > newest.max(1) {
            return Err(format!("it holds commit {commit}, the database {newest}"));
        }
        oracle::compare(&db, history, commit, Depth::FULL).map(drop)
    }
}

impl Driver<'_> {
    /// Makes a backup beside everybody else.
    pub(super) fn back_up(&mut self) -> Result<(), String> {
        let db = self.db()?;
        let dir = format!("backup-{}", self.world.serial());
        let whole = |backup: &&BackupMade| backup.until.is_some();
        let base = self.backups.iter().rev().find(whole).map(|backup| PathBuf::from(&backup.dir));
        let options = BackupOptions {
            base: base.filter(|_| self.generator.chance(300_000)),
            copy: self.generator.chance(400_000),
            dry_run: self.generator.chance(50_000),
        };
        let from = self.world.machine.io_count();
        self.world.note(|| format!("{dir} …"));
        let result = db.backup(&dir, &options, &mut |_, _| {});
        self.world.note(|| format!("{dir} {options:?}: {result:?}"));
        let mut made = BackupMade { dir, from, until: None, commit: 0, verified: false };
        match result {
            Ok(_) if options.dry_run => return Ok(()),
            Ok(report) => {
                made.until = Some(self.world.machine.io_count());
                made.commit = report.commit;
            }
            Err(e) if self.is_faulty() => {
                let end = matches!(e.kind(), ErrorKind::Poisoned | ErrorKind::OutcomeUnknown);
                self.world.lock().over |= end;
                check_fault(&e)?;
            }
            Err(e) => return Err(format!("backup: {}", oracle::said(&e))),
        }
        self.backups.push(made);
        Ok(())
    }

    /// Opens the newest backup, once what it must hold is known.
    pub(super) fn verify_backup(&mut self) -> Result<(), String> {
        let Some(made) = self.backups.last_mut().filter(|made| !made.verified) else {
            return Ok(());
        };
        made.verified = true;
        let (made, config) = (made.clone(), self.config.clone());
        self.undisturbed(|world| {
            let history = world.lock().history.clone();
            made.check_on(&config, &world.machine, made.until.is_some(), &history, u64::MAX)
                .map_err(|why| format!("{}: {why}", made.dir))
        })
    }
}
