//! `esker backup DB DIR` and `esker restore BACKUP DIR`.

use std::path::Path;

use esker::{BackupOptions, BackupReport, Database};
use esker_server::session::AdminTask;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::arguments::{BackupArguments, RestoreArguments};
use crate::failure::Result;
use crate::{Console, Status, check, remote, sql, units};

pub(crate) fn run(arguments: &BackupArguments, console: &mut Console<'_>) -> Result<()> {
    let (place, report) = if let Some(address) = remote::address(&arguments.db) {
        let Placed { place, report } = there(address, arguments)?;
        (place, report)
    } else {
        let database = sql::open_to_read(&arguments.db)?;
        let (base, copy) = (arguments.base.clone(), arguments.copy);
        let options = BackupOptions { base, copy, dry_run: arguments.dry_run };
        (arguments.dir.display().to_string(), backup(&database, &arguments.dir, &options)?)
    };
    let done = if arguments.dry_run { "would back up" } else { "backed up" };
    writeln!(console.err, "{done} commit {} to {place}", report.commit)?;
    writeln!(console.err, "{}", summary(&report))?;
    Ok(())
}

/// A backup that a server has made, in its own directory.
#[derive(Deserialize)]
struct Placed {
    place: String,
    #[serde(flatten)]
    report: BackupReport,
}

/// Has a server make a backup, whose name stands where the directory would be.
fn there(address: &str, arguments: &BackupArguments) -> Result<Placed> {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let task = AdminTask::Backup {
        name: name(&arguments.dir),
        base: arguments.base.as_deref().map(name),
        copy: arguments.copy,
        dry_run: arguments.dry_run,
    };
    remote::admin(&mut remote::connect(address)?, &task)
}

pub(crate) fn restore(arguments: &RestoreArguments, console: &mut Console<'_>) -> Result<Status> {
    let database = sql::open_to_read(&arguments.backup)?;
    let report = database.check()?;
    if !report.is_sound() {
        check::write_problems(&report, console)?;
        writeln!(console.err, "the backup is damaged; nothing was restored")?;
        return Ok(Status::Problem);
    }
    let (base, copy) = (None, arguments.copy);
    let options = BackupOptions { base, copy, dry_run: arguments.dry_run };
    let report = backup(&database, &arguments.dir, &options)?;
    let done = if arguments.dry_run { "would restore" } else { "restored" };
    writeln!(console.err, "{done} commit {} to {}", report.commit, arguments.dir.display())?;
    writeln!(console.err, "{}", summary(&report))?;
    Ok(Status::Ok)
}

fn backup(database: &Database, dir: &Path, options: &BackupOptions) -> Result<BackupReport> {
    let bar = byte_bar();
    let report = database.backup(dir, options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(report?)
}

/// A bar that shows itself on a terminal only.
fn byte_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// What became of the files. Rows that are in no segment yet are in the checkpoint of the backup.
fn summary(report: &BackupReport) -> String {
    let part = |files: u64, bytes: u64, what: &str| {
        let (files, bytes) = (units::counted(files, "file"), units::bytes(bytes));
        format!("{files} {what} ({bytes})")
    };
    let linked = part(report.linked, report.linked_bytes, "linked");
    let copied = part(report.copied, report.copied_bytes, "copied");
    match (report.linked, report.copied) {
        (0, 0) => "all rows are in its checkpoint: there are no segments yet".to_owned(),
        (_, 0) => format!("{linked}: they take no space of their own while the database has them"),
        (0, _) => copied,
        _ => format!("{linked}, {copied}"),
    }
}
