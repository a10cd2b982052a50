//! What the arena really takes from the system. One test, so that nothing else runs beside it.
#![allow(clippy::unwrap_used, reason = "a test's helper")]

use esker_arena::{AppendVec, Arena, ArenaOptions, Category};

/// Memory of this process that is resident, from the kernel's own count.
#[allow(clippy::disallowed_methods, reason = "reads the kernel's count, not a database file")]
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn small_stays_small_and_freed_space_returns() {
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    let before = resident_bytes();
    let small: Vec<_> = (0..100u64)
        .map(|index| {
            let mut vector = AppendVec::<u64>::new(&arena, Category::Group).unwrap();
            vector.0.append(&[index; 100]).unwrap();
            vector
        })
        .collect();
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 512 << 10, "100 columns of 100 rows took {taken} bytes");
    drop(small);

    let large: Vec<_> = (0..4u8)
        .map(|byte| {
            let mut vector = AppendVec::<[u8; 64]>::new(&arena, Category::Load).unwrap();
            vector.0.append(&vec![[byte; 64]; 1_000_000]).unwrap();
            vector
        })
        .collect();
    let full = resident_bytes();
    drop(large);
    let freed = full.saturating_sub(resident_bytes());
    assert!(freed > 150 << 20, "only {freed} of {full} resident bytes came back");
    assert_eq!(arena.used_bytes(), 0);
}
