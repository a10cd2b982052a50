//! `esker clock show|confirm|reset DB`.

use std::path::Path;

use esker::{ClockInfo, Value};
use esker_server::session::{AdminTask, ClockAction, ClockReport};

use crate::arguments::ClockCommand;
use crate::compact::open_to_write;
use crate::failure::Result;
use crate::{Console, remote, sql, units};

pub(crate) fn run(command: &ClockCommand, console: &mut Console<'_>) -> Result<()> {
    let (db, action, dry_run) = match command {
        ClockCommand::Show { db } => (db, ClockAction::Show, false),
        ClockCommand::Confirm { db, dry_run } => (db, ClockAction::Confirm, *dry_run),
        ClockCommand::Reset { db, restore: true, .. } => (db, ClockAction::Restore, false),
        ClockCommand::Reset { db, dry_run, .. } => (db, ClockAction::Reset, *dry_run),
    };
    let report = report(db, action, dry_run)?;
    if action != ClockAction::Show {
        let rows = units::counted(report.ended, "row");
        let would = if dry_run { "would end" } else { "ended" };
        writeln!(console.err, "{would} {rows} that had expired")?;
    }
    show(&report.clock, console)
}

fn report(db: &Path, action: ClockAction, dry_run: bool) -> Result<ClockReport> {
    if let Some(address) = remote::address(db) {
        let task = AdminTask::Clock { action, dry_run };
        return remote::admin(&mut remote::connect(address)?, &task);
    }
    if action == ClockAction::Show || dry_run {
        return Ok(ClockReport::of(&sql::open_to_read(db)?, action, dry_run)?);
    }
    let database = open_to_write(db)?;
    let report = ClockReport::of(&database, action, false)?;
    database.close()?;
    Ok(report)
}

fn show(clock: &ClockInfo, console: &mut Console<'_>) -> Result<()> {
    let date = |us| Value::Timestamp(us).to_string();
    let parts = [
        ("elapsed time", date(clock.elapsed_us)),
        ("date", date(clock.date_us)),
        ("machine's clock", date(clock.wall_us)),
    ];
    for (name, value) in parts {
        writeln!(console.out, "{name:22}{value}")?;
    }
    if clock.held.as_secs() > 0 {
        let (by, held) = (units::duration(clock.held_by), units::duration(clock.held));
        let what = "the date moved forward by";
        writeln!(console.out, "{what} {by}: nothing is destroyed by that for {held}")?;
    }
    write_warning(clock, console)
}

/// What is wrong with the clock, if something is.
pub(crate) fn write_warning(clock: &ClockInfo, console: &mut Console<'_>) -> Result<()> {
    if let Some(warning) = clock.warning() {
        writeln!(console.out, "{warning}")?;
    }
    Ok(())
}
