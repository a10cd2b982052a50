//! Prints what the containers cost here: `cargo run --release -p esker-arena --example speed [n]`,
//! with `n` index entries, 10 million unless given. Times are of one core.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads how long it ran")]

use esker_arena::{
    AppendVec, Arena, ArenaError, ArenaOptions, ByteHeap, Category, PartitionedHash,
};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A well-mixed hash of a number.
fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Seconds that this thread was on a core, so that other load on the machine does not count.
fn core_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Runs `work` and prints its time for each of `count` things.
fn timed<T>(name: &str, count: u64, work: impl FnOnce() -> T) -> T {
    let start = core_seconds();
    let result = work();
    let seconds = core_seconds() - start;
    let (nanoseconds, millions) = (seconds * 1e9 / count as f64, count as f64 / seconds / 1e6);
    println!("{name:40} {nanoseconds:8.1} ns {millions:8.1} M/s {seconds:8.3} s");
    result
}

fn found(index: &PartitionedHash, hash: u64, value: u64) -> bool {
    let equal = |found| {
        if found == value { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    index.candidates(hash, equal).is_break()
}

fn import(index: &PartitionedHash, entries: &[(u32, u64)]) -> Result<(), ArenaError> {
    let import = index.start_import(entries.len() as u64)?;
    let mut rest = entries;
    for part in 0..import.parts() {
        let end = rest.partition_point(|entry| import.part_of(entry.0) == part);
        let (own, others) = rest.split_at(end);
        import.build(part, own)?;
        rest = others;
    }
    import.finish()
}

fn look_ups(index: &PartitionedHash, count: u64) {
    let order = |number: u64| mix(number ^ 0x5555) % count + 1;
    let looked = 4_000_000;
    let hits = timed("look-up, hit, independent keys", looked, || {
        (0..looked).filter(|n| found(index, mix(order(*n)), order(*n))).count()
    });
    assert_eq!(hits as u64, looked, "every key is there");
    timed("look-up, hit, each key from the last", looked, || {
        let mut key = 1;
        for number in 0..looked {
            let step = index.candidates(mix(key), |value| {
                if value == key { ControlFlow::Break(value) } else { ControlFlow::Continue(()) }
            });
            key = match step {
                ControlFlow::Break(value) => mix(value ^ number << 32) % count + 1,
                ControlFlow::Continue(()) => 1,
            };
        }
        black_box(key)
    });
    timed("look-up, miss", looked, || {
        let missed = (count + 1..=count + looked).filter(|n| found(index, mix(*n), *n)).count();
        assert_eq!(missed, 0, "no key is there");
    });
    let hashes: Vec<u64> = (0..looked).map(|n| mix(order(n))).collect();
    timed("look-up, hit, batches", looked, || {
        let mut sum = 0;
        index.candidates_many(&hashes, |_, value| {
            sum += value;
            ControlFlow::Continue(())
        });
        black_box(sum)
    });
}

fn index(arena: &Arc<Arena>, count: u64) -> Result<(), ArenaError> {
    let per_entry = |index: &PartitionedHash| {
        println!("{:40} {:8.2} bytes", "  an entry", index.memory_bytes() as f64 / count as f64);
    };
    let index = PartitionedHash::new(arena, Category::Index)?;
    timed("insert, random order", count, || {
        (1..=count).try_for_each(|value| index.insert(mix(value), value))
    })?;
    per_entry(&index);
    look_ups(&index, count);
    let exported = timed("export", count, || index.export(0..=u32::MAX).collect::<Vec<_>>());
    drop(index);

    let imported = PartitionedHash::new(arena, Category::Index)?;
    timed("import", count, || import(&imported, &exported))?;
    per_entry(&imported);
    look_ups(&imported, count);
    drop(imported);

    let mut sorted: Vec<(u64, u64)> = (1..=count).map(|value| (mix(value), value)).collect();
    sorted.sort_unstable();
    let bulk = PartitionedHash::new(arena, Category::Index)?;
    timed("insert_many, sorted, into nothing", count, || bulk.insert_many(&sorted))?;
    per_entry(&bulk);
    let more = count / 8;
    let mut sorted: Vec<(u64, u64)> =
        (count + 1..=count + more).map(|value| (mix(value), value)).collect();
    sorted.sort_unstable();
    timed("insert_many, an eighth more", more, || bulk.insert_many(&sorted))?;
    let fresh = PartitionedHash::new(arena, Category::Index)?;
    let million: Vec<_> = sorted.iter().copied().take(1_000_000).collect();
    timed("insert_many, at most 1 M, into nothing", million.len() as u64, || {
        fresh.insert_many(&million)
    })?;
    timed("replace", more, || {
        for (hash, value) in &sorted {
            assert!(bulk.replace(*hash, *value, value + 1), "the entry is there");
        }
    });
    Ok(())
}

fn columns(arena: &Arc<Arena>) -> Result<(), ArenaError> {
    let rows: Vec<u64> = (0..4 << 20).collect();
    let bytes = rows.len() as f64 * 8.0;
    // Small enough for freed memory to stay with the arena.
    let mut plain = vec![1u64; rows.len()];
    let start = core_seconds();
    for (to, from) in plain.chunks_mut(1 << 16).zip(rows.chunks(1 << 16)) {
        to.copy_from_slice(from);
    }
    let rate = bytes / (core_seconds() - start) / 1e9;
    println!("plain copy, 512 KiB at a time                {rate:8.2} GB/s");
    black_box(&plain);
    drop(plain);
    for round in ["fresh memory", "reused memory"] {
        let (mut writer, reader) = AppendVec::new(arena, Category::Group)?;
        let start = core_seconds();
        for piece in rows.chunks(1 << 16) {
            writer.append(piece)?;
        }
        let rate = bytes / (core_seconds() - start) / 1e9;
        println!("append, 512 KiB at a time, {round:13} {rate:8.2} GB/s");
        assert_eq!(reader.len(), rows.len(), "all rows are there");
    }
    let (mut writer, reader) = AppendVec::new(arena, Category::Group)?;
    let count = 8 << 20;
    timed("push", count, || (0..count).try_for_each(|row| writer.push(row)))?;
    timed("get, in order", count, || {
        black_box((0..reader.len()).filter_map(|row| reader.get(row)).sum::<u64>())
    });
    let (mut heap, strings) = ByteHeap::new(arena, Category::Group)?;
    let mut references = Vec::new();
    timed("byte heap, push 100 bytes", 4 << 20, || {
        (0..4 << 20).try_for_each(|_| heap.push(&[7; 100]).map(|found| references.push(found)))
    })?;
    timed("byte heap, read 100 bytes, in order", 4 << 20, || {
        black_box(references.iter().map(|found| strings.bytes(*found).len()).sum::<usize>())
    });
    Ok(())
}

fn main() -> Result<(), ArenaError> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    let arena = Arena::new(ArenaOptions::default())?;
    columns(&arena)?;
    index(&arena, count)
}
