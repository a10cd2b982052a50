//! The promises of the clock, under an oracle that knows true time.

use esker_format::{ClockRecord, Moment};
use proptest::prelude::*;

use super::{
    AGREED_US, BOOT_GAP_MAX_US, DAY_US, DatabaseClock, HOLD_US, KEPT_US, Reading, SECOND_US,
    STEADY_US,
};

const HOUR_US: i64 = 3_600 * SECOND_US;
/// 2026-01-01.
const START_US: i64 = 1_767_225_600 * SECOND_US;
/// A record is at most this much older than a commit.
const RECORD_AGE_US: i64 = 900_000;

/// A machine whose true time is known, and a database on it.
struct Machine {
    true_us: i64,
    /// The wall clock less true time.
    wrong_us: i64,
    booted_us: i64,
    boot: u128,
    clock: DatabaseClock,
    record: ClockRecord,
    recorded_us: i64,
}

impl Machine {
    fn new() -> Self {
        let (true_us, booted_us) = (START_US, START_US - DAY_US);
        let reading =
            Reading { wall_us: true_us, boottime_us: true_us - booted_us, boot_id: Some(1) };
        let clock = DatabaseClock::start(reading);
        let record = clock.record();
        Self { true_us, wrong_us: 0, booted_us, boot: 1, clock, record, recorded_us: true_us }
    }

    fn reading(&self) -> Reading {
        Reading {
            wall_us: self.true_us + self.wrong_us,
            boottime_us: self.true_us - self.booted_us,
            boot_id: Some(self.boot),
        }
    }

    /// The database is asked for the time, which moves as the engine moves it. Both never fall
    /// otherwise.
    fn tell(&mut self) -> Moment {
        let before = self.clock.moment();
        let reading = self.reading();
        self.clock.advance(reading.boottime_us);
        if self.clock.is_look_due() {
            self.clock.look(reading.wall_us);
        }
        let now = self.clock.moment();
        assert!(now.elapsed_us >= before.elapsed_us && now.date_us >= before.date_us);
        if let Some(date_us) = self.clock.due_us() {
            self.clock.move_to(date_us);
        }
        self.clock.moment()
    }

    /// A commit: the record is no older than a second.
    fn commit(&mut self) -> Moment {
        self.tell();
        if self.true_us - self.recorded_us >= RECORD_AGE_US {
            self.log();
        }
        self.clock.moment()
    }

    fn log(&mut self) {
        self.clock.look(self.true_us + self.wrong_us);
        self.clock.draw();
        self.record = self.clock.record();
        self.recorded_us = self.true_us;
    }

    /// Time passes while the database is open and asked for the time every ten seconds.
    fn work(&mut self, for_us: i64) {
        let mut left_us = for_us;
        while left_us > 0 {
            let step_us = left_us.min(10 * SECOND_US);
            self.true_us += step_us;
            left_us -= step_us;
            self.commit();
        }
    }

    fn close(&mut self) {
        self.tell();
        self.log();
    }

    fn open(&mut self) {
        self.clock = DatabaseClock::open(&self.record, self.reading());
        self.tell();
        self.log();
    }

    fn boot(&mut self, after_us: i64) {
        self.true_us += after_us;
        self.booted_us = self.true_us - 5 * SECOND_US;
        self.boot += 1;
    }

    fn date_error_us(&self) -> i64 {
        self.clock.moment().date_us - self.true_us
    }
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The database is asked for the time, again and again.
    Work(i64),
    /// It is closed for a while.
    Rest(i64),
    /// The process dies, and another one opens the database after a while.
    Crash(i64),
    /// The machine is off for a while.
    Boot(i64),
    /// The wall clock is stepped.
    Step(i64),
    /// The wall clock is put right.
    PutRight,
}

fn duration() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..SECOND_US,
        SECOND_US..60 * SECOND_US,
        60 * SECOND_US..3 * HOUR_US,
        HOUR_US..3 * DAY_US,
    ]
}

fn step() -> impl Strategy<Value = i64> {
    let size = prop_oneof![
        1..5 * SECOND_US,
        SECOND_US..4 * HOUR_US,
        HOUR_US..40 * DAY_US,
        DAY_US..20 * 365 * DAY_US,
    ];
    (size, any::<bool>()).prop_map(|(size, is_back)| if is_back { -size } else { size })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..3 * HOUR_US).prop_map(Event::Work),
        2 => duration().prop_map(Event::Rest),
        2 => duration().prop_map(Event::Crash),
        2 => duration().prop_map(Event::Boot),
        3 => step().prop_map(Event::Step),
        1 => Just(Event::PutRight),
    ];
    proptest::collection::vec(event, 1..24)
}

fn happen(machine: &mut Machine, event: Event) {
    match event {
        Event::Work(us) => machine.work(us),
        Event::Rest(us) => {
            machine.close();
            machine.true_us += us;
            machine.open();
        }
        Event::Crash(us) => {
            machine.true_us += us;
            machine.open();
        }
        Event::Boot(us) => {
            machine.boot(us);
            machine.open();
        }
        Event::Step(us) => machine.wrong_us += us,
        Event::PutRight => machine.wrong_us = 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Promise 2: within one boot elapsed time is true time, whatever the wall clock does.
    #[test]
    fn elapsed_time_is_exact_within_one_boot(events in events()) {
        let mut machine = Machine::new();
        for event in events {
            let event = if let Event::Boot(us) = event { Event::Crash(us) } else { event };
            happen(&mut machine, event);
            let now = machine.tell();
            prop_assert_eq!(now.elapsed_us, machine.true_us);
        }
    }

    /// Promise 1: whatever a commit was told, an open after a crash goes on from there or later.
    #[test]
    fn no_crash_takes_time_back(events in events(), age in 0..RECORD_AGE_US, wall in step()) {
        for is_boot in [false, true] {
            let mut machine = Machine::new();
            for event in &events {
                happen(&mut machine, *event);
            }
            machine.close();
            machine.true_us += age;
            let told = machine.commit();
            machine.wrong_us += wall;
            if is_boot {
                machine.boot(0);
            }
            machine.open();
            let now = machine.clock.moment();
            prop_assert!(now.elapsed_us >= told.elapsed_us, "{now:?} after {told:?}");
            // But for a move that an open may make due, before which rows are ended.
            let due = machine.clock.date_us;
            prop_assert!(due >= told.date_us, "{now:?} after {told:?}");
        }
    }

    /// Promise 2: across boots no time to live ends more than seven days early, whatever the wall
    /// clock shows, and none early by more than a second when it is right.
    #[test]
    fn a_boot_ends_little_too_early(events in events(), off in duration(), wall in step()) {
        for wrong_us in [0, wall] {
            let mut machine = Machine::new();
            for event in &events {
                let keeps = |event: &Event| !matches!(event, Event::Step(_));
                if keeps(event) {
                    happen(&mut machine, *event);
                }
            }
            machine.close();
            let (before, true_us) = (machine.clock.moment(), machine.true_us);
            let was_suspect = machine.clock.suspicion().is_some();
            machine.wrong_us += wrong_us;
            machine.boot(off);
            machine.open();
            let passed_us = machine.clock.moment().elapsed_us - before.elapsed_us;
            let early_us = passed_us - (machine.true_us - true_us);
            let most_us = if wrong_us == 0 { SECOND_US } else { BOOT_GAP_MAX_US };
            prop_assert!(early_us <= most_us, "{early_us} us early");
            if wrong_us == 0 && off <= BOOT_GAP_MAX_US && !was_suspect {
                prop_assert!(early_us >= 0, "{early_us} us late");
            }
        }
    }

    /// Promise 3: a wall clock that is wrong for less than ten minutes moves no date, through
    /// restarts of the process.
    #[test]
    fn a_short_error_moves_no_date(
        errors in proptest::collection::vec(
            (step(), 0..KEPT_US / 4, any::<bool>(), 120 * SECOND_US..2 * HOUR_US), 1..8),
    ) {
        let mut machine = Machine::new();
        for (wrong_us, lasts_us, is_restarted, right_us) in errors {
            machine.wrong_us = wrong_us;
            machine.work(lasts_us / 2);
            if is_restarted {
                machine.close();
                machine.open();
            }
            machine.work(lasts_us / 2);
            machine.wrong_us = 0;
            machine.work(right_us);
            prop_assert!(machine.date_error_us().abs() <= AGREED_US, "{}", machine.date_error_us());
            prop_assert_eq!(machine.clock.hold(), None);
        }
    }

    /// Promise 3: what a wrong date ends is destroyed an hour later at the earliest, on any boot.
    #[test]
    fn nothing_is_destroyed_for_an_hour(events in events()) {
        let mut machine = Machine::new();
        let mut dates: Vec<(i64, i64)> = Vec::new();
        for event in events {
            happen(&mut machine, event);
            let now = machine.tell();
            // For each date: the least elapsed time at which the database went by it.
            dates.retain(|(_, date_us)| *date_us < now.date_us);
            dates.push((now.elapsed_us, now.date_us));
            let destroying_us = machine.clock.destroying_date_us();
            prop_assert!(destroying_us <= now.date_us);
            if let Some(hold) = machine.clock.hold() {
                prop_assert!(hold.until_us - now.elapsed_us <= HOLD_US && hold.back_us > 0);
                prop_assert_eq!(destroying_us, now.date_us - hold.back_us);
            }
        }
    }
}

#[test]
fn the_date_follows_a_wall_clock_that_is_kept_for_ten_minutes() {
    for wrong_us in [-HOUR_US * 30, -2 * SECOND_US, 2 * SECOND_US, HOUR_US / 2, 400 * DAY_US] {
        let mut machine = Machine::new();
        machine.wrong_us = wrong_us;
        machine.work(KEPT_US - 20 * SECOND_US);
        assert!(machine.date_error_us().abs() <= AGREED_US, "{wrong_us}");
        assert!(machine.clock.suspicion().is_some());
        let before_us = machine.clock.destroying_date_us();
        machine.work(40 * SECOND_US);
        assert_eq!(machine.date_error_us(), wrong_us);
        assert_eq!(machine.clock.suspicion(), None);
        assert!(machine.clock.destroying_date_us() <= before_us + 40 * SECOND_US);
        machine.work(HOLD_US + 20 * SECOND_US);
        assert_eq!(machine.clock.hold(), None);
        assert_eq!(machine.clock.destroying_date_us(), machine.clock.moment().date_us);
    }
}

#[test]
fn a_date_that_nearly_agrees_is_drawn_slowly() {
    for wrong_us in [-900_000, 900_000] {
        let mut machine = Machine::new();
        machine.wrong_us = wrong_us;
        machine.work(100 * SECOND_US);
        assert_eq!(machine.clock.suspicion(), None);
        assert_eq!(machine.date_error_us(), 50_000 * wrong_us.signum());
        machine.work(2_000 * SECOND_US);
        assert_eq!(machine.date_error_us(), wrong_us - STEADY_US * wrong_us.signum());
        assert_eq!(machine.clock.moment().elapsed_us, machine.true_us);
    }
}

#[test]
fn ten_minutes_add_up_over_short_processes() {
    let mut machine = Machine::new();
    machine.wrong_us = 12 * 365 * DAY_US;
    let mut opened = 0;
    while machine.date_error_us() < DAY_US {
        machine.work(SECOND_US / 2);
        machine.close();
        machine.true_us += 50 * SECOND_US;
        machine.open();
        opened += 1;
    }
    assert!((11..14).contains(&opened), "{opened}");
}

#[test]
fn nothing_is_known_of_a_wall_clock_that_was_not_looked_at() {
    let mut machine = Machine::new();
    for _ in 0..20 {
        machine.wrong_us = DAY_US;
        machine.work(SECOND_US);
        machine.close();
        machine.wrong_us = 0;
        machine.true_us += HOUR_US;
        machine.wrong_us = DAY_US;
        machine.open();
    }
    assert!(machine.date_error_us().abs() <= AGREED_US);
    assert!(machine.clock.suspicion().is_some());
}

#[test]
fn a_night_without_power_moves_both_times() {
    let mut machine = Machine::new();
    machine.close();
    machine.boot(9 * HOUR_US);
    machine.open();
    assert_eq!(machine.clock.moment().elapsed_us, machine.true_us);
    assert_eq!(machine.date_error_us(), 0);
    assert_eq!(machine.clock.suspicion(), None);
    assert_eq!(machine.clock.destroying_date_us(), machine.true_us - 9 * HOUR_US);
}

#[test]
fn a_wall_clock_that_is_put_right_by_a_boot_does_not_count_as_time() {
    for wrong_us in [-365 * DAY_US, 30 * DAY_US, 12 * 365 * DAY_US] {
        let mut machine = Machine::new();
        machine.wrong_us = wrong_us;
        machine.work(60 * SECOND_US);
        machine.close();
        machine.wrong_us = 0;
        machine.boot(HOUR_US);
        machine.open();
        assert_eq!(machine.date_error_us(), 0, "{wrong_us}");
        assert_eq!(machine.clock.moment().elapsed_us, machine.true_us, "{wrong_us}");
        assert_eq!(machine.clock.suspicion(), None);
    }
}

#[test]
fn a_wall_clock_that_stays_wrong_over_a_boot_stays_suspect() {
    for wrong_us in [-365 * DAY_US, 30 * DAY_US, 12 * 365 * DAY_US] {
        let mut machine = Machine::new();
        machine.wrong_us = wrong_us;
        machine.work(60 * SECOND_US);
        machine.close();
        machine.boot(HOUR_US);
        machine.open();
        assert_eq!(machine.date_error_us(), 0, "{wrong_us}");
        assert_eq!(machine.clock.suspicion().map(|s| s.offset_us), Some(wrong_us));
        assert_eq!(machine.clock.moment().elapsed_us, machine.true_us);
    }
}

#[test]
fn a_wall_clock_that_starts_at_1970_does_not_bring_back_what_has_expired() {
    let mut machine = Machine::new();
    machine.close();
    let before = machine.clock.moment();
    machine.wrong_us = -START_US;
    machine.boot(HOUR_US);
    machine.open();
    let now = machine.clock.moment();
    assert_eq!(now.elapsed_us, before.elapsed_us + SECOND_US);
    assert_eq!(now.date_us, before.date_us + SECOND_US);
    assert!(machine.clock.suspicion().is_some());
}

#[test]
fn a_date_that_is_taken_back_ends_its_hold() {
    let mut machine = Machine::new();
    machine.wrong_us = 30 * DAY_US;
    machine.work(KEPT_US + 20 * SECOND_US);
    assert!(machine.clock.hold().is_some());
    machine.wrong_us = 0;
    machine.tell();
    machine.clock.move_to(machine.true_us);
    assert_eq!((machine.date_error_us(), machine.clock.hold()), (0, None));
}

#[test]
fn a_record_of_the_version_before_is_one_of_another_boot() {
    let record = ClockRecord::of_time(START_US);
    let wall_us = START_US + HOUR_US;
    let reading = Reading { wall_us, boottime_us: 5, boot_id: Some(1) };
    let clock = DatabaseClock::open(&record, reading);
    assert_eq!(clock.moment(), Moment { elapsed_us: wall_us, date_us: wall_us });
    let reading = Reading { wall_us: START_US - HOUR_US, ..reading };
    let clock = DatabaseClock::open(&record, reading);
    let second_later = START_US + SECOND_US;
    assert_eq!(clock.moment(), Moment { elapsed_us: second_later, date_us: second_later });
    assert!(clock.suspicion().is_some());
}
