//! Looking after a database: figures, checks, compaction, backups.

use std::time::Duration;

use esker::{BackupOptions, BackupReport, BucketOptions, ClockInfo, Database};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Answer, DatabaseFigures, Level, Session, TableFigures, lasting};
use crate::{Code, Error, Result};

/// What somebody who looks after a database may ask for. As JSON it is an object whose `task` is
/// the name of one, with its members.
///
/// ```
/// use esker_server::session::{AdminTask, Answer};
/// use esker_server::{Request, Session};
///
/// let database = esker::Options::new().memory()?;
/// let task: AdminTask = serde_json::from_str(r#"{"task": "check"}"#)?;
/// let Answer::Report(report) = Session::new(&database).run(Request::Admin(task))? else {
///     panic!("expected a report");
/// };
/// assert_eq!(report["sound"], true);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum AdminTask {
    /// Figures: [`TableFigures`] of a table, [`DatabaseFigures`] where none is named.
    Info {
        /// The table.
        #[serde(default)]
        table: Option<String>,
    },
    /// Reads every byte and verifies it: an [`esker::CheckReport`], and whether it is `sound`.
    Check {},
    /// Rewrites what has dead rows: an [`esker::CompactReport`].
    Compact {
        /// Whether it is only said what would be done.
        #[serde(default)]
        dry_run: bool,
    },
    /// Counts the rows of every table anew: how many `tables`, and the `wrong` ones with what was
    /// counted before, and now.
    Recount {
        /// Whether what is wrong stays so.
        #[serde(default)]
        dry_run: bool,
    },
    /// Makes a backup among those of the server: an [`esker::BackupReport`], and its `place`.
    Backup {
        /// Its name.
        name: String,
        /// An older backup: files that it has are linked from there.
        #[serde(default)]
        base: Option<String>,
        /// Whether what the base does not have is copied, in place of sharing files.
        #[serde(default)]
        copy: bool,
        /// Whether it is only said what would be done.
        #[serde(default)]
        dry_run: bool,
    },
    /// Makes an empty bucket.
    CreateBucket {
        /// The bucket.
        bucket: String,
        /// How long entries last, in milliseconds, that are put without a time of their own.
        #[serde(default)]
        ttl_ms: Option<u64>,
    },
    /// Shows or moves the date that the database goes by: its `clock`, an [`esker::ClockInfo`], and
    /// how many rows were `ended`.
    Clock {
        /// What is done.
        #[serde(default)]
        action: ClockAction,
        /// Whether it is only said how many rows would be ended.
        #[serde(default)]
        dry_run: bool,
    },
}

/// What is done to the clock of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockAction {
    /// Nothing: it is shown.
    #[default]
    Show,
    /// The machine's clock is right: the date follows it now.
    Confirm,
    /// A date that is ahead of the machine's clock is taken back, and what had expired is ended.
    Reset,
    /// The last move of the date forward is taken back, with the rows that expired by it.
    Restore,
}

/// A clock, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    /// How it is now.
    pub clock: ClockInfo,
    /// Rows that were ended, or would be.
    pub ended: u64,
}

impl ClockReport {
    /// Does it.
    ///
    /// # Errors
    /// As for [`Database::confirm_clock`], [`Database::reset_clock`] and
    /// [`Database::restore_clock`].
    pub fn of(database: &Database, action: ClockAction, dry_run: bool) -> Result<Self> {
        let ended = match action {
            ClockAction::Show => 0,
            ClockAction::Restore if dry_run => 0,
            _ if dry_run => database.rows_ended_by_clock()?,
            ClockAction::Confirm => database.confirm_clock()?,
            ClockAction::Reset => database.reset_clock()?,
            ClockAction::Restore => database.restore_clock()?,
        };
        Ok(Self { clock: database.clock(), ended })
    }
}

impl AdminTask {
    /// Reads a task from JSON.
    ///
    /// # Errors
    /// `InvalidRequest` with what was expected.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::invalid(format!("task: {e}")))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Info { .. } => "info",
            Self::Check {} => "check",
            Self::Compact { .. } => "compact",
            Self::Recount { .. } => "recount",
            Self::Backup { .. } => "backup",
            Self::CreateBucket { .. } => "create_bucket",
            Self::Clock { .. } => "clock",
        }
    }

    /// True for what changes nothing.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let shows = ClockAction::Show;
        matches!(self, Self::Info { .. } | Self::Check {})
            || matches!(self, Self::Clock { action, dry_run } if *dry_run || *action == shows)
    }

    /// What it needs, and of which table or bucket where it is of one alone.
    fn needs(&self) -> (Level, Option<&str>) {
        match self {
            Self::Info { table } => (Level::Read, table.as_deref()),
            Self::Clock { action: ClockAction::Show, .. } => (Level::Read, None),
            Self::CreateBucket { bucket, .. } => (Level::Admin, Some(bucket)),
            _ => (Level::Admin, None),
        }
    }
}

/// A backup to be made among those of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBackup {
    /// Its name.
    pub name: String,
    /// An older one, whose files are linked.
    pub base: Option<String>,
    /// Whether what the base does not have is copied.
    pub copy: bool,
    /// Whether it is only said what would be done.
    pub dry_run: bool,
}

impl Session {
    pub(super) fn administer(&self, task: AdminTask) -> Result<Answer> {
        let (level, table) = task.needs();
        self.access.expect(level, table)?;
        let database = self.database();
        let report = match task {
            AdminTask::Info { table: None } => json_of(&DatabaseFigures::of(database)?)?,
            AdminTask::Info { table: Some(name) } => json_of(&TableFigures::of(database, &name)?)?,
            AdminTask::Check {} => {
                let report = crate::check(database)?;
                json!({
                    "sound": report.is_sound(),
                    "problems": report.problems,
                    "notes": report.notes,
                    "tables": report.tables,
                    "rows": report.rows,
                    "segments": report.segments,
                    "bytes": report.bytes,
                    "index_entries": report.index_entries,
                })
            }
            AdminTask::Compact { dry_run } => json_of(&database.compact(dry_run, &mut |_, _| {})?)?,
            AdminTask::Recount { dry_run } => {
                json!({ "tables": database.tables().len(), "wrong": database.recount(dry_run)? })
            }
            AdminTask::Backup { name, base, copy, dry_run } => {
                let (place, report) =
                    self.access.back_up(&NewBackup { name, base, copy, dry_run })?;
                backup_report(&place, &report)
            }
            AdminTask::CreateBucket { bucket, ttl_ms } => {
                let options = BucketOptions::new();
                let options = match ttl_ms {
                    Some(ms) => options.ttl(lasting(Duration::from_millis(ms))?),
                    None => options,
                };
                database.create_bucket(&bucket, &options)?;
                json!({ "bucket": bucket })
            }
            AdminTask::Clock { action, dry_run } => {
                json_of(&ClockReport::of(database, action, dry_run)?)?
            }
        };
        Ok(Answer::Report(report))
    }
}

fn json_of(report: &impl Serialize) -> Result<Json> {
    serde_json::to_value(report).map_err(|e| Error::new(Code::Internal, e.to_string()))
}

fn backup_report(place: &str, report: &BackupReport) -> Json {
    json!({
        "place": place,
        "commit": report.commit,
        "linked": report.linked,
        "linked_bytes": report.linked_bytes,
        "copied": report.copied,
        "copied_bytes": report.copied_bytes,
    })
}

impl NewBackup {
    /// How the database is shown, with backups in a directory.
    pub(crate) fn options(&self, base: Option<std::path::PathBuf>) -> BackupOptions {
        BackupOptions { base, copy: self.copy, dry_run: self.dry_run }
    }
}
