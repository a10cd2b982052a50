//! Every kind of fault shows.

use std::path::Path;
use std::time::Duration;

use super::super::{
    CallKind, CrashChoice, Failure, FaultKind, FaultPlan, Options, Repeat, Script, Simulation,
};
use super::{contents, create, durable, faulty, files, fired, machine};
use crate::{ErrorKind, LockMode, OpenMode};

#[test]
fn reads_fail_fall_short_flip_and_go_stale() {
    let with = |fault| {
        let machine = faulty(3, CallKind::Read, 0, fault);
        let file = durable(&machine, "/a", &[1; 100]);
        file.write_all_at(&[2; 100], 0).unwrap();
        (machine, file)
    };
    let mut buf = [0; 100];
    for (fault, kind) in
        [(FaultKind::ReadError, ErrorKind::Io), (FaultKind::Interrupted, ErrorKind::Interrupted)]
    {
        let (machine, file) = with(fault);
        let error = file.read_at(&mut buf, 0).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains("read /a"), "{error}");
        assert_eq!(fired(&machine, fault), 1);
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 100);
    }
    let (machine, file) = with(FaultKind::ShortRead);
    let count = file.read_at(&mut buf, 0).unwrap();
    assert!((1..100).contains(&count));
    assert_eq!(fired(&machine, FaultKind::ShortRead), 1);

    let (machine, file) = with(FaultKind::ReadFlip);
    file.read_exact_at(&mut buf, 0).unwrap();
    let flipped: u32 = buf.iter().map(|b| (b ^ 2).count_ones()).sum();
    assert_eq!(flipped, 1);
    assert_eq!(contents(&*file).unwrap(), [2; 100], "only that read was wrong");
    assert_eq!(fired(&machine, FaultKind::ReadFlip), 1);

    let (machine, file) = with(FaultKind::StaleRead);
    file.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(buf, [1; 100]);
    assert_eq!(contents(&*file).unwrap(), [2; 100]);
    assert_eq!(fired(&machine, FaultKind::StaleRead), 1);
}

#[test]
fn writes_fail_and_fall_short() {
    for (fault, kind) in [
        (FaultKind::WriteError, ErrorKind::Io),
        (FaultKind::NoSpaceOnWrite, ErrorKind::NoSpace),
        (FaultKind::Interrupted, ErrorKind::Interrupted),
    ] {
        let (mut partly, mut not_at_all) = (false, false);
        for seed in 0..20 {
            let machine = faulty(seed, CallKind::Write, 0, fault);
            let file = create(&machine, "/a");
            assert_eq!(file.write_at(&[1; 100], 0).unwrap_err().kind(), kind);
            assert_eq!(fired(&machine, fault), 1);
            partly |= !file.is_empty().unwrap();
            not_at_all |= file.is_empty().unwrap();
        }
        assert!(not_at_all);
        assert_eq!(partly, fault != FaultKind::Interrupted, "{fault:?}");
    }
    let machine = faulty(1, CallKind::Write, 0, FaultKind::ShortWrite);
    let file = create(&machine, "/a");
    let count = file.write_at(&[1; 100], 0).unwrap();
    assert!((1..100).contains(&count));
    assert_eq!(file.len().unwrap(), count as u64);
    assert_eq!(fired(&machine, FaultKind::ShortWrite), 1);
}

#[test]
fn lengths_and_names_meet_full_and_failing_disks() {
    let machine = faulty(1, CallKind::SetLen, 0, FaultKind::NoSpaceOnSetLen);
    let error = create(&machine, "/a").set_len(10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(fired(&machine, FaultKind::NoSpaceOnSetLen), 1);

    let machine = faulty(1, CallKind::Create, 0, FaultKind::NoSpaceOnCreate);
    let open = |mode| files(&machine).open(Path::new("/a"), mode);
    assert_eq!(open(OpenMode::CreateNew).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(open(OpenMode::Read).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fired(&machine, FaultKind::NoSpaceOnCreate), 1);

    for call in [
        CallKind::Create,
        CallKind::Rename,
        CallKind::Remove,
        CallKind::MakeDirectory,
        CallKind::Open,
        CallKind::Look,
        CallKind::Lock,
        CallKind::Length,
        CallKind::Map,
    ] {
        let machine = faulty(1, call, 0, FaultKind::NameError);
        let files = files(&machine);
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let result = match call {
            CallKind::Create => files.open(a, OpenMode::CreateNew).map(drop),
            CallKind::MakeDirectory => files.create_dir_all(a),
            _ => {
                let file = create(&machine, "/a");
                match call {
                    CallKind::Rename => files.rename(a, b),
                    CallKind::Remove => files.remove(a),
                    CallKind::Open => files.open(a, OpenMode::Read).map(drop),
                    CallKind::Look => files.list(Path::new("/")).map(drop),
                    CallKind::Lock => files.lock(b, LockMode::Exclusive, "").map(drop),
                    CallKind::Length => file.len().map(drop),
                    _ => file.map(0).map(drop),
                }
            }
        };
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Io, "{call:?}");
        assert_eq!(fired(&machine, FaultKind::NameError), 1);
        assert!(!files.exists(b).unwrap());
    }
}

#[test]
fn a_misdirected_write_shows_once_the_cache_is_dropped() {
    let mut elsewhere = 0;
    for seed in 0..50 {
        let machine = faulty(seed, CallKind::Write, 2, FaultKind::MisdirectedWrite);
        let a = durable(&machine, "/a", &[1; 4_096]);
        let b = durable(&machine, "/b", &[1; 4_096]);
        a.write_all_at(&[2; 512], 1_024).unwrap();
        let mut seen = [0; 512];
        a.read_exact_at(&mut seen, 1_024).unwrap();
        assert_eq!(seen, [2; 512], "the page cache is right");
        a.sync_data().unwrap();
        b.sync_data().unwrap();
        if fired(&machine, FaultKind::MisdirectedWrite) == 0 {
            continue; // it happened to be sent to the right place
        }
        machine.drop_page_cache();
        a.read_exact_at(&mut seen, 1_024).unwrap();
        assert_eq!(seen, [1; 512], "the disk is not");
        let both = [contents(&*a).unwrap(), contents(&*b).unwrap()].concat();
        assert_eq!(both.iter().filter(|byte| **byte == 2).count(), 512);
        elsewhere += 1;
    }
    assert!(elsewhere > 30);
}

#[test]
fn a_phantom_write_never_reaches_the_disk() {
    let machine = faulty(1, CallKind::Write, 1, FaultKind::PhantomWrite);
    let file = durable(&machine, "/a", &[1; 100]);
    file.write_all_at(&[2; 150], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(contents(&*file).unwrap(), [2; 150]);
    machine.drop_page_cache();
    assert_eq!(contents(&*file).unwrap(), [vec![1; 100], vec![0; 50]].concat());
    assert_eq!(fired(&machine, FaultKind::PhantomWrite), 1);
}

#[test]
fn a_bit_rots() {
    let machine = machine(1);
    let file = durable(&machine, "/a", &[0; 10]);
    assert!(machine.flip_bit("/a", 3, 7));
    assert!(!machine.flip_bit("/a", 10, 0) && !machine.flip_bit("/b", 0, 0));
    assert_eq!(contents(&*file).unwrap()[3], 128);
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).read("/a").unwrap()[3], 128);
    assert_eq!(fired(&machine, FaultKind::BitFlip), 1);
}

#[test]
fn latency_moves_the_clock_and_the_wall_clock_steps_back() {
    let faults = FaultPlan::none().with(FaultKind::Latency, 1_000_000);
    let slow = Simulation::new(1, Options { faults, ..Options::default() });
    let clock = slow.environment().clock;
    let before = clock.monotonic_ns();
    files(&slow).exists(Path::new("/a")).unwrap();
    assert!(clock.monotonic_ns() - before >= 1_000_000);
    assert_eq!(fired(&slow, FaultKind::Latency), 1);

    let machine = machine(1);
    let clock = machine.environment().clock;
    let (wall, monotonic) = (clock.wall_us(), clock.monotonic_ns());
    machine.set_faults(FaultPlan::none().with(FaultKind::ClockStepBack, 1_000_000));
    assert!(clock.wall_us() < wall);
    assert!(clock.monotonic_ns() > monotonic);
    assert_eq!(fired(&machine, FaultKind::ClockStepBack), 1);
    machine.set_faults(FaultPlan::none());
    machine.shift_wall_clock(3 * 3_600 * 1_000_000);
    assert!(clock.wall_us() > wall);
    let boottime = clock.boottime_us();
    machine.shift_wall_clock(-7 * 3_600 * 1_000_000);
    assert!(clock.boottime_us() - boottime < 1_000, "no step of the wall clock touches boot time");
    machine.advance_clock(Duration::from_secs(5));
    assert!(clock.monotonic_ns() > monotonic + 5_000_000_000);
    assert!(clock.boottime_us() >= boottime + 5_000_000);
    machine.shift_boottime(-6_000_000);
    assert!(clock.boottime_us() < boottime);
    let boot_id = clock.boot_id();
    machine.advance_clock(Duration::from_secs(60));
    machine.reboot_clock();
    assert!(clock.boottime_us() < 31_000_000 && clock.boot_id() != boot_id);
    machine.set_boot_id(None);
    assert_eq!(clock.boot_id(), None);
}

#[test]
fn a_crash_fails_every_later_call() {
    let machine = Simulation::new(1, Options { crash_after_io: Some(3), ..Options::default() });
    let file = create(&machine, "/a"); // 1
    file.write_all_at(b"x", 0).unwrap(); // 2
    assert_eq!(contents(&*file).unwrap(), b"x");
    file.sync_data().unwrap(); // 3
    assert!(!machine.has_crashed());
    assert_eq!(file.len().unwrap_err().kind(), ErrorKind::Io);
    assert!(machine.has_crashed());
    assert!(file.write_at(b"y", 0).unwrap_err().to_string().contains("crashed"));
    assert!(files(&machine).list(Path::new("/")).is_err());
    assert_eq!(fired(&machine, FaultKind::Crash), 3);
    assert_eq!(machine.io_count(), 3);
    assert_eq!(machine.crash_image(CrashChoice::KeepAll).read("/a").unwrap(), b"x");
}

/// Every call of a small scenario fails in every way that applies to it, once and for ever.
#[test]
fn an_error_sweep_reaches_every_call() {
    let scenario = |machine: &Simulation| -> crate::Result<Vec<u8>> {
        let files = files(machine);
        files.create_dir_all(Path::new("/db"))?;
        let file = files.open(Path::new("/db/a"), OpenMode::CreateNew)?;
        file.write_all_at(&[5; 100], 0)?;
        file.set_len(200)?;
        file.sync_data()?;
        files.rename(Path::new("/db/a"), Path::new("/db/b"))?;
        files.sync_dir(Path::new("/db"))?;
        file.sync_data()?;
        contents(&*files.open(Path::new("/db/b"), OpenMode::Read)?)
    };
    let sound = machine(1);
    let expected = scenario(&sound).unwrap();
    let calls = sound.call_count();
    for failure in Failure::ALL {
        for repeat in [Repeat::Once, Repeat::ForEver] {
            let mut strikes = 0;
            for k in 0..calls {
                let faults = FaultPlan::none().script(Script::any_call(k, failure, repeat));
                let machine = Simulation::new(k, Options { faults, ..Options::default() });
                let result = scenario(&machine);
                let fired: u64 = machine.faults_fired().values().sum();
                strikes += u64::from(fired > 0);
                match failure {
                    Failure::Interrupted | Failure::Short => assert_eq!(result.unwrap(), expected),
                    Failure::Io => assert!(fired > 0 && result.is_err(), "call {k}: {result:?}"),
                    Failure::NoSpace if fired > 0 => {
                        assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
                    }
                    Failure::NoSpace => assert_eq!(result.unwrap(), expected),
                }
            }
            assert!(strikes >= 2, "{failure:?} {repeat:?} struck {strikes} of {calls}");
        }
    }
}

#[test]
fn scripts_count_matching_calls_only() {
    let script = Script::fault(CallKind::Sync, 1, FaultKind::SyncErrorXfs, Repeat::ForEver)
        .on_paths_with("log");
    let machine = machine(1);
    machine.add_script(script);
    let (log, other) = (create(&machine, "/log"), create(&machine, "/other"));
    for _ in 0..3 {
        other.sync_data().unwrap();
    }
    log.sync_data().unwrap();
    assert!(log.sync_data().is_err() && log.sync_data().is_err());
    other.sync_data().unwrap();
}

#[test]
fn odds_are_kept_and_swarms_differ() {
    let faults = FaultPlan::none().with(FaultKind::ReadError, 100_000);
    let machine = Simulation::new(1, Options { faults, ..Options::default() });
    let file = create(&machine, "/a");
    let failed = (0..10_000).filter(|_| file.read_at(&mut [0], 0).is_err()).count();
    assert!((900..1_100).contains(&failed), "{failed} of 10,000");
    let plans: Vec<_> =
        (0..4).map(|seed| format!("{:?}", FaultPlan::swarm(seed, FaultKind::ALL, 1_000))).collect();
    assert!(plans.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(plans[0], format!("{:?}", FaultPlan::swarm(0, FaultKind::ALL, 1_000)));
}
