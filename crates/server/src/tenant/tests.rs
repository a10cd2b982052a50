use std::path::{Component, Path, PathBuf};

use esker::{BackupOptions, Options};
use esker_vfs::sim::{Options as SimOptions, Simulation};
use esker_vfs::{Environment, OpenMode};
use proptest::prelude::*;

use super::*;
use crate::{Code, Result};

proptest! {
    #[test]
    fn no_name_leads_out_of_the_directory(
        text in ".{0,80}|[a-z0-9_./\\\\%~:-]{0,70}|(\\.\\./)*[a-z]*",
    ) {
        let Ok(name) = text.parse::<TenantName>() else { return Ok(()) };
        let server = Path::new("/srv/esker");
        let directory = name.directory(server);
        prop_assert!(directory.starts_with(server));
        prop_assert!(directory.components().skip(1).all(|c| matches!(c, Component::Normal(_))));
        if !name.is_main() {
            prop_assert_eq!(directory.parent(), Some(Path::new("/srv/esker/tenants")));
            prop_assert_eq!(directory.file_name().and_then(|n| n.to_str()), Some(text.as_str()));
        }
    }

    #[test]
    fn two_names_are_two_directories(a in "[a-z0-9_-]{1,63}", b in "[a-z0-9_-]{1,63}") {
        let directory = |text: &str| text.parse::<TenantName>().unwrap().directory(Path::new("d"));
        prop_assert_eq!(directory(&a) == directory(&b), a == b);
    }
}

fn tenants(environment: &Environment, limits: TenantLimits) -> Result<Tenants> {
    let directory = Some(PathBuf::from("server"));
    let options = TenantOptions { directory, database: Options::new(), limits, files: None };
    Tenants::open(environment, options)
}

#[test]
fn a_tenant_has_what_is_its_own_and_nothing_else() -> Result<()> {
    let environment = Simulation::new(1, SimOptions::default()).environment();
    let all = tenants(&environment, TenantLimits::default())?;
    let (shop, mill) = ("shop".parse().unwrap(), "mill".parse().unwrap());
    assert_eq!(all.get(&shop).unwrap_err().code(), Code::NotFound);
    all.create(&shop)?.database.bucket("keys")?.put("a", "1")?;
    all.create(&mill)?;
    assert_eq!(all.create(&shop).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(all.get(&mill)?.database.tables(), Vec::<String>::new());
    all.close()?;
    drop(all);
    let all = tenants(&environment, TenantLimits::default())?;
    let names: Vec<_> = all.names()?.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["default", "mill", "shop"]);
    assert_eq!(all.all_open().len(), 1, "the others are opened when they are asked for");
    let there = all.get(&shop)?.database.bucket("keys")?.get("a")?;
    assert_eq!(there.as_deref(), Some(&b"1"[..]));
    all.remove(&shop)?;
    assert_eq!(all.get(&shop).unwrap_err().code(), Code::NotFound);
    let main = all.remove(&TenantName::main()).unwrap_err();
    assert_eq!(main.code(), Code::InvalidRequest);
    Ok(())
}

#[test]
fn a_tenant_takes_no_more_than_it_may() -> Result<()> {
    let environment = Simulation::new(2, SimOptions::default()).environment();
    let limits = TenantLimits { concurrent_queries: Some(1), ..TenantLimits::default() };
    let all = tenants(&environment, limits)?;
    let main = all.get(&TenantName::main())?;
    let permit = main.usage.begin_query()?;
    assert_eq!(main.usage.begin_query().unwrap_err().code(), Code::LimitExceeded);
    drop(permit);
    drop(main.usage.begin_query()?);
    main.database.bucket("keys")?.put("a", "1")?;
    main.usage.reserve_quota(&main.database, &mut QuotaReservation::default(), 1, 0)?;
    all.set_limits(&main, TenantLimits { rows: Some(1), ..limits })?;
    let room = &mut QuotaReservation::default();
    let error = main.usage.reserve_quota(&main.database, room, 1, 0).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
    assert_eq!(error.to_string(), "the tenant may have 1 rows and has 1");
    drop(main);
    all.close()?;
    drop(all);
    let all = tenants(&environment, limits)?;
    assert_eq!(all.get(&TenantName::main())?.usage.limits().rows, Some(1), "kept beside it");
    Ok(())
}

#[test]
fn a_burst_passes_no_limit() -> Result<()> {
    let environment = Simulation::new(5, SimOptions::default()).environment();
    let limits = TenantLimits { rows: Some(10), ..TenantLimits::default() };
    let all = tenants(&environment, limits)?;
    let main = all.get(&TenantName::main())?;
    let keys = main.database.bucket("keys")?;
    let expect =
        |room: &mut QuotaReservation, rows| main.usage.reserve_quota(&main.database, room, rows, 1);
    // The clock stands still: nothing is counted anew for its age.
    for n in 0..6u8 {
        let mut room = QuotaReservation::default();
        expect(&mut room, 1)?;
        keys.put([n], "1")?;
    }
    // Entries that are replaced add nothing once they are counted.
    for _ in 0..20 {
        let mut room = QuotaReservation::default();
        expect(&mut room, 1)?;
        keys.put([0], "2")?;
    }
    assert_eq!(
        expect(&mut QuotaReservation::default(), 5).unwrap_err().code(),
        Code::LimitExceeded
    );
    for n in 6..10u8 {
        let mut room = QuotaReservation::default();
        expect(&mut room, 1)?;
        keys.put([n], "1")?;
    }
    assert_eq!(
        expect(&mut QuotaReservation::default(), 1).unwrap_err().code(),
        Code::LimitExceeded
    );
    // What is removed makes room at once.
    keys.remove([0])?;
    expect(&mut QuotaReservation::default(), 1)
}

#[test]
fn what_is_under_way_counts_until_it_has_ended() -> Result<()> {
    let environment = Simulation::new(6, SimOptions::default()).environment();
    let limits = TenantLimits { rows: Some(10), ..TenantLimits::default() };
    let all = tenants(&environment, limits)?;
    let main = all.get(&TenantName::main())?;
    let (usage, database) = (&main.usage, &main.database);
    let (mut first, mut second) = (QuotaReservation::default(), QuotaReservation::default());
    let load = |room: &mut QuotaReservation, rows| {
        let more = room.rows_beyond(rows);
        usage.reserve_quota(database, room, more, 0)
    };
    load(&mut first, 4)?;
    load(&mut first, 6)?;
    load(&mut second, 4)?;
    // Whatever makes it count anew forgets neither of them.
    database.bucket("keys")?;
    let beyond = load(&mut second, 5).unwrap_err();
    assert_eq!(beyond.to_string(), "the tenant may have 10 rows and has 10");
    let other = usage.reserve_quota(database, &mut QuotaReservation::default(), 1, 0).unwrap_err();
    assert_eq!(other.code(), Code::LimitExceeded);
    drop(first);
    load(&mut second, 10)?;
    drop(second);
    usage.reserve_quota(database, &mut QuotaReservation::default(), 10, 0)
}

#[test]
fn a_backup_becomes_a_database_as_it_was() -> Result<()> {
    let environment = Simulation::new(7, SimOptions::default()).environment();
    let limits = TenantLimits::default();
    let all = tenants(&environment, limits)?;
    let name = |text: &str| text.parse::<TenantName>().unwrap();
    let shop = all.create(&name("shop"))?;
    shop.database.bucket("keys")?.put("a", "1")?;
    let (files, place) = (&environment.files, all.backups(&shop.name)?);
    files.create_dir_all(&place)?;
    shop.database.backup(place.join("monday"), &BackupOptions::default(), &mut |_, _| {})?;
    shop.database.bucket("keys")?.put("a", "2")?;
    drop(shop);
    all.remove(&name("shop"))?;
    let restore = |to: &str, of: &str, backup: &str| {
        all.restore(&name(to), &name(of), &name(backup)).map(drop).map_err(|e| e.code())
    };
    assert_eq!(restore("shop", "shop", "tuesday"), Err(Code::NotFound));
    assert_eq!(restore("default", "shop", "monday"), Err(Code::AlreadyExists));
    // Somebody was here, and did not come to an end.
    let unfinished = Path::new("server/restoring/tenants/shop");
    files.create_dir_all(unfinished)?;
    files.open(&unfinished.join("x"), OpenMode::CreateNew)?;
    for to in ["shop", "other"] {
        assert_eq!(restore(to, "shop", "monday"), Ok(()));
        assert_eq!(restore(to, "shop", "monday"), Err(Code::AlreadyExists));
        let keys = all.get(&name(to))?.database.bucket("keys")?;
        assert_eq!(keys.get_copy("a")?, Some(b"1".to_vec()));
        keys.put("a", "3")?;
    }
    assert!(!files.exists(unfinished)?);
    all.close()?;
    drop(all);
    let all = tenants(&environment, limits)?;
    assert_eq!(
        all.get(&name("shop"))?.database.bucket("keys")?.get_copy("a")?,
        Some(b"3".to_vec())
    );
    // A damaged one is refused, and leaves nothing.
    let names = files.list(&place.join("monday"))?;
    let path = names.iter().find(|name| name.starts_with("checkpoint")).unwrap();
    files.open(&place.join("monday").join(path), OpenMode::Write)?.write_at(b"damage", 60)?;
    let damaged = all.restore(&name("third"), &name("shop"), &name("monday")).unwrap_err();
    assert_eq!(damaged.code(), Code::Damaged, "{damaged}");
    assert_eq!(all.get(&name("third")).unwrap_err().code(), Code::NotFound);
    Ok(())
}

/// What a removal leaves that did not come to an end is taken for no database, and goes.
#[test]
fn a_removal_is_whole() -> Result<()> {
    let simulation = Simulation::new(9, SimOptions::default());
    let limits = TenantLimits::default();
    let shop: TenantName = "shop".parse().unwrap();
    let all = tenants(&simulation.environment(), limits)?;
    all.create(&shop)?.database.bucket("keys")?.put("a", "1")?;
    all.remove(&shop)?;
    let files = simulation.environment().files;
    assert!(!files.exists(Path::new("server/tenants/shop"))?);
    assert!(!files.exists(Path::new("server/removing"))?);
    // Somebody was here, and did not come to an end.
    files.create_dir_all(Path::new("server/removing"))?;
    files.open(Path::new("server/removing/x"), OpenMode::CreateNew)?;
    all.create(&shop)?.database.bucket("keys")?.put("a", "2")?;
    all.remove(&shop)?;
    files.create_dir_all(Path::new("server/removing/y"))?;
    all.close()?;
    drop(all);
    let all = tenants(&simulation.environment(), limits)?;
    assert!(!files.exists(Path::new("server/removing"))?);
    assert_eq!(all.get(&shop).unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[test]
fn requests_beyond_the_rate_are_refused() {
    let environment = Simulation::new(3, SimOptions::default()).environment();
    let limits = TenantLimits { requests_per_second: Some(5), ..TenantLimits::default() };
    let usage = Usage::new(&environment, limits);
    let passed = (0..100).filter(|_| usage.count_request().is_ok()).count();
    assert!((10..20).contains(&passed), "{passed}");
}

#[test]
fn a_closed_database_answers_errors() -> Result<()> {
    let environment = Simulation::new(4, SimOptions::default()).environment();
    let all = tenants(&environment, TenantLimits::default())?;
    let shop = all.create(&"shop".parse().unwrap())?;
    all.remove(&shop.name)?;
    let error = shop.database.bucket("late").map(drop).unwrap_err();
    assert_ne!(error.kind(), esker::ErrorKind::Corrupt);
    Ok(())
}
