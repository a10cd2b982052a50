//! Clocks that are stepped, both ways, by seconds, hours and years, and what a database may make of
//! that: an oracle beside the rules of protocol.md.
//!
//! * Elapsed time goes on as boot time does, whatever the wall clock shows. Over another boot it
//!   goes on by what the wall clock says, by a second at least and by seven days at most.
//! * The date goes on as elapsed time does, but for what it may be drawn, until the wall clock has
//!   kept a difference for ten minutes or is confirmed. Then it is what the wall clock shows. Over
//!   another boot it goes on by what the wall clock says, up to 400 days.
//! * Where the date falls, the rows that had expired are gone for good.

use std::sync::Arc;
use std::time::Duration;

use esker::{ClockInfo, Database, ErrorKind, Moment as Now};
use esker_vfs::sim::{Generator, Simulation};

use super::driver::{Driver, Synced};
use super::observe::{self, MARGIN_US};
use crate::clock_step;
use crate::oracle::said;

const SECOND_US: i64 = 1_000_000;
const HOUR_US: i64 = 3_600 * SECOND_US;
const DAY_US: i64 = 24 * HOUR_US;
const YEAR_US: i64 = 365 * DAY_US;

/// The wall clock keeps a difference for so long until the date follows.
const KEPT_US: i64 = 600 * SECOND_US;
/// So much of that is left to a time when no operation is under way.
const LET_FOLLOW_US: i64 = 300 * SECOND_US;
/// The date is drawn by one part in so many.
const SLEW_PARTS: i64 = 2_000;
/// Between the rules for a clock that agrees and for one that does not.
const NEARLY_SUSPECT_US: i64 = 900_000;

/// What is known of the clocks since the database was opened.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The least and the most that elapsed time can be ahead of boot time.
    ahead_us: Option<(i64, i64)>,
    /// By how much the date is ahead of elapsed time.
    date_ahead_us: Option<i64>,
    /// The elapsed time when the database was opened: the date is drawn by parts of what passed.
    opened_us: i64,
    /// The elapsed time when the wall clock was stepped last.
    stepped_us: Option<i64>,
    /// The date is about to move.
    moves: bool,
}

/// What was known when the database was closed.
struct Closed {
    /// The latest that was read.
    now: Now,
    /// It may have been so much later.
    slack_us: i64,
    wall_us: i64,
    boottime_us: i64,
    is_suspect: bool,
}

/// The clocks of a machine that begins anew after a crash: right, those of the first day, or wrong.
pub fn wake(machine: &Simulation, high: Now, generator: &mut Generator) {
    match generator.below(10) {
        0..4 if high != Now::LAST && high != Now::FIRST => {
            observe::move_clock_to(machine, high.date_us)
        }
        0..7 => {}
        _ => clock_step::step_all(machine, generator),
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn later(now: Now, by_us: i64) -> Now {
    Now { elapsed_us: now.elapsed_us + by_us, date_us: now.date_us + by_us }
}

impl Driver<'_> {
    fn boottime_us(&self) -> i64 {
        self.machine.environment().clock.boottime_us()
    }

    fn wall_us(&self) -> i64 {
        self.machine.environment().clock.wall_us()
    }

    /// Asks what time it is: elapsed time goes on as boot time does, and so does the date.
    pub(super) fn read_time(&mut self) -> Result<(), String> {
        let db = self.db()?;
        let before = self.boottime_us();
        let now = observe::time_of(&db)?.ok_or("the clock is gone")?;
        let after = self.boottime_us();
        let us = now.elapsed_us;
        if self.clocks.ahead_us.is_none() {
            self.clocks.opened_us = us;
        }
        let (least, most) = *self.clocks.ahead_us.get_or_insert((us - after, us - before));
        let before_us = self.now.elapsed_us;
        let (least, most) = (before_us.max(before + least), before_us.max(after + most));
        if us < least || us > most {
            return Err(format!("elapsed time {us}, expected {least} to {most}"));
        }
        let moved_us = self.date_moved_by(now);
        let moves = self.clocks.moves;
        if !moves && (moved_us != 0 || now.date_us < self.now.date_us) {
            let before = self.now;
            return Err(format!("the date moved by {moved_us} us, from {before:?} to {now:?}"));
        }
        if moves || self.clocks.date_ahead_us.is_none() {
            self.clocks.date_ahead_us = Some(now.date_us - now.elapsed_us);
        }
        self.now = now;
        self.rise_high(now);
        Ok(())
    }

    /// How far the date has moved, other than by going on and being drawn.
    fn date_moved_by(&self, now: Now) -> i64 {
        let ahead_us = now.date_us - now.elapsed_us;
        let moved_us = ahead_us - self.clocks.date_ahead_us.unwrap_or(ahead_us);
        let drawn_us = (now.elapsed_us - self.clocks.opened_us) / SLEW_PARTS + 1;
        if moved_us.abs() > drawn_us { moved_us } else { 0 }
    }

    /// Lets the date follow the wall clock where it soon would: not during an operation.
    pub(super) fn let_date_follow(&mut self) -> Result<(), String> {
        let clock = self.db()?.clock();
        let seen_us = self.clocks.stepped_us.map(|stepped_us| clock.elapsed_us - stepped_us);
        if seen_us.is_some_and(|seen_us| clock.is_suspect && micros(clock.kept) > seen_us) {
            return Err(format!("{clock:?}: the wall clock was stepped {seen_us:?} us ago"));
        }
        match clock.is_suspect && micros(clock.kept) >= LET_FOLLOW_US {
            true => self.keep_clock(),
            false => Ok(()),
        }
    }

    /// Steps the wall clock, lets the date follow it, confirms it, or takes it back.
    pub(super) fn change_clock(&mut self) -> Result<(), String> {
        match self.generator.below(20) {
            0..11 => self.step_clock(),
            11..14 => self.keep_clock(),
            14..16 => self.confirm_clock(),
            16..18 => self.reset_clock(),
            _ => self.restore_clock(),
        }
    }

    fn step_clock(&mut self) -> Result<(), String> {
        let us = clock_step::draw(&mut self.generator);
        self.machine.shift_wall_clock(us);
        self.note(format!("the wall clock is stepped by {us} us"));
        // A look, so that it is not taken for one that was there all the time.
        let clock = self.db()?.clock();
        if us.abs() >= SECOND_US {
            self.clocks.stepped_us = Some(clock.elapsed_us);
        }
        match self.generator.below(10) {
            0..2 => self.keep_clock(),
            2 => self.confirm_clock(),
            _ => Ok(()),
        }
    }

    /// Time passes, and the wall clock is looked at, until the date has followed it.
    fn keep_clock(&mut self) -> Result<(), String> {
        for _ in 0..70 {
            let (db, from) = (self.db()?, self.db()?.info().published_commit);
            let mut step_us = 10 * SECOND_US;
            while observe::near_end(&self.state, later(self.now, step_us)).is_some() {
                step_us += MARGIN_US + 1;
            }
            let before = later(self.now, step_us);
            self.machine.advance_clock(Duration::from_micros(step_us.unsigned_abs()));
            let clock = db.clock();
            db.wait_idle().map_err(|e| said(&e))?;
            let now = db.moment();
            let moved_us = self.date_moved_by(now);
            if moved_us != 0 {
                self.note(format!("the date moves by {moved_us} us"));
                return self.follow(from, before, now);
            }
            self.read_time()?;
            if !clock.is_suspect {
                return Ok(());
            }
        }
        Err(format!("the date has not followed: {:?}", self.db()?.clock()))
    }

    /// The date has followed the wall clock.
    fn follow(&mut self, from: u64, before: Now, now: Now) -> Result<(), String> {
        let kept_us = self.clocks.stepped_us.map(|stepped_us| now.elapsed_us - stepped_us);
        if kept_us.is_some_and(|kept_us| kept_us < KEPT_US) {
            return Err(format!("the date has moved to {now:?} after {kept_us:?} us"));
        }
        let mut state = (*self.state).clone();
        if now.date_us < before.date_us {
            state.leases.end(before.date_us);
        }
        self.state = Arc::new(state);
        self.push_history((from, self.db()?.info().published_commit));
        self.expect_date_of_wall()
    }

    /// The date is what the wall clock shows.
    fn expect_date_of_wall(&mut self) -> Result<(), String> {
        self.clocks.moves = true;
        let read = self.read_time();
        self.clocks.moves = false;
        read?;
        let (date_us, wall_us) = (self.now.date_us, self.wall_us());
        match (date_us - wall_us).abs() <= SECOND_US {
            true => Ok(()),
            false => Err(format!("the date is {date_us}, the wall clock shows {wall_us}")),
        }
    }

    /// Moves the date to the wall clock, where rows had ended by `ended_us` that were to come back.
    fn move_date(
        &mut self,
        what: &str,
        ended_us: i64,
        run: impl FnOnce(&Database) -> esker::Result<u64>,
    ) -> Result<(), String> {
        let mut state = (*self.state).clone();
        if self.wall_us() < self.now.date_us + 1_000 {
            state.leases.end(ended_us);
        }
        self.change(what.to_owned(), (state, Synced::Default), false, |driver, db, _| {
            driver.clocks.moves = true;
            run(db).map(|_| true).map_err(|e| said(&e))
        })?;
        self.expect_date_of_wall()
    }

    fn confirm_clock(&mut self) -> Result<(), String> {
        self.count_ended()?;
        self.move_date("confirm the clock", self.now.date_us, Database::confirm_clock)
    }

    /// To count is to change nothing.
    fn count_ended(&mut self) -> Result<(), String> {
        self.db()?.rows_ended_by_clock().map_err(|e| said(&e))?;
        self.read_time()
    }

    fn reset_clock(&mut self) -> Result<(), String> {
        self.count_ended()?;
        let behind_us = self.now.date_us - self.wall_us();
        if behind_us.abs() < 1_000 {
            return Ok(());
        }
        if behind_us > 0 {
            return self.move_date("reset the clock", self.now.date_us, Database::reset_clock);
        }
        match self.db()?.reset_clock() {
            Err(e) if e.kind() == ErrorKind::InvalidInput => self.read_time(),
            other => Err(format!("reset a date that is {behind_us} us ahead: {other:?}")),
        }
    }

    fn restore_clock(&mut self) -> Result<(), String> {
        let ClockInfo { date_us, held, held_by, .. } = self.db()?.clock();
        if self.wall_us() >= date_us || held < Duration::from_secs(1) {
            return self.step_clock();
        }
        let ended_us = date_us - micros(held_by);
        if observe::near_end(&self.state, Now { date_us: ended_us, ..self.now }).is_some() {
            return Ok(());
        }
        self.move_date("restore the clock", ended_us, Database::restore_clock)
    }

    /// Closes and opens, perhaps with other clocks.
    pub(super) fn reopen(&mut self) -> Result<(), String> {
        let is_suspect = {
            let clock = self.db()?.clock();
            clock.is_suspect || clock.offset_us().abs() > NEARLY_SUSPECT_US
        };
        let commit = self.close()?;
        let (boottime_us, wall_us) = (self.boottime_us(), self.wall_us());
        let most_us = boottime_us + self.clocks.ahead_us.map_or(0, |(_, most_us)| most_us);
        let slack_us = most_us - self.now.elapsed_us;
        let closed = Closed { now: self.now, slack_us, wall_us, boottime_us, is_suspect };
        let (is_same_boot, stepped_us) = self.pass_closed();
        let history = self.history();
        self.rise_high(later(self.now, MARGIN_US));
        let stepped_before = self.clocks.stepped_us;
        let (wall_us, boottime_us) = (self.wall_us(), self.boottime_us());
        self.open(commit, &history)?;
        self.clocks.stepped_us = stepped_before;
        // Over another boot nothing tells a step from time that passed.
        if is_same_boot && stepped_us.abs() >= SECOND_US {
            self.clocks.stepped_us = Some(self.clocks.opened_us - SECOND_US);
        }
        match is_same_boot {
            true => self.judge_boot(&closed, boottime_us),
            false => self.judge_reboot(&closed, wall_us, boottime_us),
        }
    }

    /// What happens to the clocks while the database is closed: whether boot time goes on, and by
    /// how much the wall clock is stepped.
    fn pass_closed(&mut self) -> (bool, i64) {
        let knows_boot = self.machine.environment().clock.boot_id().is_some();
        if self.generator.chance(400_000) {
            return (knows_boot, 0);
        }
        let passed = [0, 5, 60, 3_600, 3 * 86_400, 30 * 86_400, 500 * 86_400];
        let passed = Duration::from_secs(self.generator.pick(passed));
        self.machine.advance_clock(passed);
        let is_same_boot = self.generator.chance(400_000);
        if !is_same_boot {
            self.machine.reboot_clock();
            // It may have been up for longer than at the close.
            let up_us = [0, 5 * SECOND_US, HOUR_US, YEAR_US];
            self.machine.shift_boottime(self.generator.pick(up_us));
        }
        let is_stepped = self.generator.chance(400_000);
        let stepped_us = if is_stepped { clock_step::draw(&mut self.generator) } else { 0 };
        self.machine.shift_wall_clock(stepped_us);
        let what = if is_same_boot { "the same boot" } else { "another boot" };
        self.note(format!("{passed:?} pass, {what}, the wall clock is stepped by {stepped_us} us"));
        (is_same_boot && knows_boot, stepped_us)
    }

    fn judge_boot(&self, closed: &Closed, boottime_us: i64) -> Result<(), String> {
        let passed_us = boottime_us - closed.boottime_us;
        let drawn_us = closed.slack_us / SLEW_PARTS + 1;
        let slack_us = closed.slack_us + self.boottime_us() - boottime_us;
        let elapsed_us = (passed_us, passed_us + slack_us);
        let date_us = (passed_us - drawn_us, passed_us + slack_us + slack_us / SLEW_PARTS + 1);
        self.expect_passed(closed, elapsed_us, date_us)
    }

    fn judge_reboot(&self, closed: &Closed, wall_us: i64, boottime_us: i64) -> Result<(), String> {
        let slack_us = 2 * closed.slack_us + self.boottime_us() - boottime_us + SECOND_US;
        let of_elapsed = |gap_us: i64| gap_us.clamp(SECOND_US, 7 * DAY_US);
        let of_date = |gap_us: i64| match (0..=400 * DAY_US).contains(&gap_us) {
            true => gap_us.max(SECOND_US),
            false => of_elapsed(gap_us),
        };
        let gap_us = wall_us - closed.wall_us;
        let (mut elapsed_us, mut date_us) =
            ((of_elapsed(gap_us), of_elapsed(gap_us)), (of_date(gap_us), of_date(gap_us)));
        if closed.is_suspect {
            // It is wrong still, or it has been put right.
            let since_date_us = wall_us - closed.now.date_us;
            elapsed_us = (SECOND_US, elapsed_us.1.max(of_elapsed(since_date_us)));
            date_us = (SECOND_US, date_us.1.max(of_date(since_date_us)));
        }
        let wide = |(least, most): (i64, i64)| (least - SECOND_US, most + slack_us);
        self.expect_passed(closed, wide(elapsed_us), wide(date_us))
    }

    fn expect_passed(
        &self,
        closed: &Closed,
        elapsed_us: (i64, i64),
        date_us: (i64, i64),
    ) -> Result<(), String> {
        let passed = [
            ("elapsed time", self.now.elapsed_us - closed.now.elapsed_us, elapsed_us),
            ("the date", self.now.date_us - closed.now.date_us, date_us),
        ];
        for (what, passed_us, (least_us, most_us)) in passed {
            if passed_us < least_us || passed_us > most_us {
                let expected = format!("expected {least_us} to {most_us}");
                return Err(format!("opened again: {what} went on by {passed_us}, {expected}"));
            }
        }
        Ok(())
    }
}
