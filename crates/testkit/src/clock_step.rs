//! Steps of the clocks of a simulated machine: both ways, by seconds, hours and years.

use esker_vfs::sim::{Generator, Simulation};

const SECOND_US: i64 = 1_000_000;
const HOUR_US: i64 = 3_600 * SECOND_US;
const YEAR_US: i64 = 365 * 24 * HOUR_US;

/// By how much the wall clock is stepped.
const WALL_US: [i64; 7] =
    [1_000, 3 * SECOND_US, 300 * SECOND_US, 4_000 * SECOND_US, 30 * HOUR_US, YEAR_US, 12 * YEAR_US];
/// By how much boot time is.
const BOOTTIME_US: [i64; 6] = [-20 * SECOND_US, 0, 5 * SECOND_US, 20 * SECOND_US, HOUR_US, YEAR_US];

/// A step of the wall clock in microseconds, back when negative.
pub(crate) fn draw(generator: &mut Generator) -> i64 {
    let us = generator.pick(WALL_US);
    if generator.chance(500_000) { us } else { -us }
}

/// Steps the wall clock.
pub(crate) fn step_wall(machine: &Simulation, generator: &mut Generator) {
    machine.shift_wall_clock(draw(generator));
}

/// Steps the clocks of a machine before a database is opened on it: wall clock, boot time, and
/// perhaps which boot it is.
pub(crate) fn step_all(machine: &Simulation, generator: &mut Generator) {
    step_wall(machine, generator);
    machine.shift_boottime(generator.pick(BOOTTIME_US));
    match generator.below(5) {
        0 => machine.set_boot_id(None),
        1 => machine.reboot_clock(),
        // The boot id of a machine that was restored from a picture of its memory.
        2 => machine.set_boot_id(Some(1)),
        _ => {}
    }
}
