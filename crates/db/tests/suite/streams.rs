//! Streams: what they are, how far times may be from now, and row ids that rise with the commits.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use esker::{
    Alteration, DataType, Database, Durability, ErrorKind, Options, ReadyRows, Schema, Table, Value,
};
use esker_format::schema::{NewReference, SchemaBuilder, StreamOption};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;

const DAY_US: i64 = 86_400_000_000;

pub(crate) fn fields() -> SchemaBuilder {
    Schema::builder()
        .field("t", DataType::Timestamp)
        .default_value(esker::DefaultValue::Now)
        .field("what", DataType::Text)
        .nullable("n", DataType::I64)
}

pub(crate) fn events() -> Schema {
    fields().stream("t", []).build().unwrap()
}

pub(crate) fn event(t: i64, what: &str) -> Vec<Value> {
    vec![Value::Timestamp(t), what.into(), Value::Null]
}

/// Rows that are whole, for a schema.
pub(crate) fn ready(schema: &Arc<Schema>, rows: &[Vec<Value>]) -> ReadyRows {
    let mut ready = ReadyRows::none(schema);
    rows.iter().for_each(|row| ready.push(row).unwrap());
    ready
}

fn option(name: &str, value: &str) -> StreamOption {
    StreamOption::read(name, Some(value)).unwrap()
}

/// The events by their row ids.
fn arrived(db: &Database) -> Vec<(u64, String)> {
    let rows = db.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    let mut rows: Vec<(u64, String)> = rows
        .into_iter()
        .map(|(id, row)| match &row[1] {
            Value::Text(what) => (id, what[..what.len().min(9)].to_owned()),
            other => (id, other.to_string()),
        })
        .collect();
    rows.sort();
    rows
}

/// What they say, in the order of their row ids, each of which differs.
pub(crate) fn order(db: &Database) -> Vec<String> {
    let rows = arrived(db);
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "{rows:?}");
    rows.into_iter().map(|(_, what)| what).collect()
}

pub(crate) fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

#[test]
fn a_stream_has_a_time_and_neither_key_nor_unique_values() {
    let time = || Schema::builder().field("t", DataType::Timestamp);
    let rest = |name: &str| [StreamOption::Rest(Some(name.into()))];
    let refused = [
        (Schema::builder().field("t", DataType::I64).stream("t", []), "expected timestamp"),
        (Schema::builder().nullable("t", DataType::Timestamp).stream("t", []), "expected NOT NULL"),
        (time().stream("u", []), "unknown field \"u\""),
        (time().field("k", DataType::I64).primary_key(["k"]).stream("t", []), "no primary key"),
        (
            time().nullable("e", DataType::Timestamp).expires_by("e").stream("t", []),
            "do not expire",
        ),
        (
            time().add_index(esker::NewIndex::new("i", ["t"]).unique()).stream("t", []),
            "no unique indexes",
        ),
        (time().nullable("x", DataType::Text).stream("t", rest("x")), "expected json"),
        (time().field("x", DataType::Json).stream("t", rest("x")), "may be NULL"),
    ];
    for (builder, expected) in refused {
        let e = builder.build().unwrap_err().to_string();
        assert!(e.contains(expected), "{e}");
    }
    let db = Options::new().memory().unwrap();
    let table = db.create_table("events", events()).unwrap();
    let changes = [
        (Alteration::DropField("t".into()), "has the times of the stream"),
        (Alteration::DropNotNull("t".into()), "expected NOT NULL"),
        (Alteration::SetExpiry(Some("t".into())), "do not expire"),
        (Alteration::AddIndex(esker::NewIndex::new("u", ["what"]).unique()), "no unique indexes"),
    ];
    for (change, expected) in changes {
        let e = db.alter_table("events", &[change]).unwrap_err().to_string();
        assert!(e.contains(expected), "{e}");
    }
    let refers = Schema::builder().field("what", DataType::Text);
    let refers = refers.reference(NewReference::new(["what"], "events")).build().unwrap();
    let e = db.create_table("notes", refers).unwrap_err().to_string();
    assert!(e.contains("is a stream"), "{e}");
    let late = Alteration::SetStream(option("late", "1 day"));
    db.alter_table("events", std::slice::from_ref(&late)).unwrap();
    assert_eq!(table.schema().stream().unwrap().late_us, Some(DAY_US as u64));
    db.create_table("t", Schema::builder().field("n", DataType::I64).build().unwrap()).unwrap();
    let e = db.alter_table("t", &[late]).unwrap_err().to_string();
    assert!(e.contains("no stream"), "{e}");
}

#[test]
fn times_that_are_too_far_from_now_are_refused_in_every_way() {
    let db = Options::new().memory().unwrap();
    let bounds = [option("late", "1 day"), option("ahead", "10 minutes")];
    let table = db.create_table("events", fields().stream("t", bounds).build().unwrap()).unwrap();
    let now = jiff::Timestamp::now().as_microsecond();
    let early = event(now + DAY_US, "early");
    for (row, code) in [(event(now - 2 * DAY_US, "late"), "too_late"), (early, "too_early")] {
        let expect = |done: esker::Result<()>| {
            let e = done.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::ConstraintViolated, "{e}");
            assert!(e.to_string().contains(code), "{e}");
        };
        expect(table.insert(&row).map(drop));
        expect(table.insert_many(&[event(now, "x"), row.clone()]));
        let mut load = table.load().unwrap();
        load.push_row(&row).unwrap();
        expect(load.finish().map(drop));
        let mut appender = table.appender();
        appender.append(&row).unwrap();
        expect(appender.finish());
        expect(db.transact(|t| t.table("events")?.insert(&row)).map(drop));
        expect(db.transact(|t| t.table("events")?.insert_many(std::slice::from_ref(&row))));
    }
    assert_eq!(table.count().unwrap(), 0, "nothing of a refused commit is there");
    table.insert(&event(now - DAY_US / 2, "in bounds")).unwrap();
    // What is there may change whatever the bounds are now, but for its time.
    let late = Alteration::SetStream(option("late", "1 minute"));
    db.alter_table("events", &[late]).unwrap();
    let (id, _) = arrived(&db)[0];
    assert!(table.update(&[Value::Uint(id)], &[("n", 7i64.into())]).unwrap());
    let e = table.update(&[Value::Uint(id)], &[("t", Value::Timestamp(now))]).unwrap_err();
    assert!(e.to_string().contains("is the time of an event, which stays"), "{e}");
    let e = db
        .transact(|t| t.table("events")?.update(&[Value::Uint(id)], &[("t", Value::Timestamp(1))]))
        .unwrap_err();
    assert!(e.to_string().contains("which stays"), "{e}");
}

/// Transactions, loads, values that need files and commits that are too large get their row ids
/// when they commit, whenever they were begun.
#[test]
fn row_ids_rise_with_the_commits() {
    for commit_bytes in [1 << 20, 400] {
        let dir = Directory::new("stream-order");
        let options = || Options::new().background(false).commit_limit(commit_bytes);
        let db = options().open(&dir.0).unwrap();
        let table = db.create_table("events", events()).unwrap();
        table.insert(&event(1, "first")).unwrap();
        let slow = db.begin().unwrap();
        let many: Vec<_> = (0..20).map(|i| event(i, &format!("slow {i:02}"))).collect();
        slow.table("events").unwrap().insert_many(&many).unwrap();
        let mut load = table.load().unwrap();
        for i in 0..100_000 {
            load.push_row(&event(i, &format!("load {i}"))).unwrap();
        }
        load.wait().unwrap();
        let quick = db.begin().unwrap();
        quick.table("events").unwrap().insert(&event(5, "quick")).unwrap();
        quick.commit().unwrap();
        table.insert(&event(6, "between")).unwrap();
        slow.commit().unwrap();
        let told = table.insert(&event(7, &"long ".repeat(50_000))).unwrap();
        assert_eq!(arrived(&db).last().unwrap().0, told, "the row id that is told is that");
        load.finish().unwrap();
        table.insert(&event(8, "last")).unwrap();
        let found = order(&db);
        assert_eq!(found.len(), 100_025);
        assert_eq!(found[..3], ["first", "quick", "between"]);
        assert_eq!((found[3].as_str(), found[22].as_str()), ("slow 00", "slow 19"));
        assert_eq!((found[23].as_str(), found[24].as_str()), ("long long", "load 0"));
        assert_eq!((found[100_023].as_str(), found[100_024].as_str()), ("load 9999", "last"));
        let before = arrived(&db);
        let (id, _) = before[50_000];
        assert!(table.update(&[Value::Uint(id)], &[("n", 1i64.into())]).unwrap());
        assert!(table.delete(&[Value::Uint(before[60_000].0)]).unwrap());
        let before: Vec<_> =
            before.into_iter().enumerate().filter(|(i, _)| *i != 60_000).map(|(_, r)| r).collect();
        is_sound(&db);
        drop((table, db));
        // By the log, then by a checkpoint, then once files are rewritten.
        let db = options().open(&dir.0).unwrap();
        assert_eq!(arrived(&db), before);
        db.checkpoint().unwrap();
        db.close().unwrap();
        let db = options().open(&dir.0).unwrap();
        assert_eq!(arrived(&db), before);
        let row = db.table("events").unwrap().get(&[Value::Uint(id)]).unwrap().unwrap();
        assert_eq!(row.values()[2], Value::Int(1));
        db.compact(true, &mut |_, _| ()).unwrap();
        assert_eq!(arrived(&db), before);
        is_sound(&db);
    }
}

/// Rows that it replaces keep their row ids; those that are new get theirs by the commit.
#[test]
fn a_transaction_that_spills_numbers_its_new_events_when_it_commits() {
    let dir = Directory::new("stream-spill");
    let db = Options::new().background(false).transaction_limit(20_000).open(&dir.0).unwrap();
    let table = db.create_table("events", events()).unwrap();
    let ids: Vec<u64> = (0..300).map(|i| table.insert(&event(i, "old")).unwrap()).collect();
    let slow = db.begin().unwrap();
    let of_slow = slow.table("events").unwrap();
    for (i, id) in (0..300).zip(&ids) {
        assert!(of_slow.update(&[Value::Uint(*id)], &[("n", i.into())]).unwrap());
        of_slow.insert(&event(i, "new")).unwrap();
    }
    let between = table.insert(&event(9, "between")).unwrap();
    slow.commit().unwrap();
    let after = table.insert(&event(9, "after")).unwrap();
    let found = arrived(&db);
    assert_eq!(found.len(), 602);
    assert!(found[..300].iter().zip(&ids).all(|(row, id)| row == &(*id, "old".to_owned())));
    assert_eq!(found[300], (between, "between".to_owned()));
    assert!(found[301..601].iter().all(|(id, what)| *id > between && what == "new"));
    assert_eq!(found[601], (after, "after".to_owned()));
    is_sound(&db);
    drop((table, db));
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!(arrived(&db), found);
    is_sound(&db);
}

/// An event that nobody waited for may be known by its row id, though a crash took it.
#[test]
fn row_ids_that_a_crash_took_are_not_given_again() {
    let lazy = Durability::Async { at_most: Duration::from_secs(3_600) };
    let open = |machine: &Simulation| {
        Options::new().environment(machine.environment()).durability(lazy).open("db").unwrap()
    };
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine);
    let table: Table = db.create_table("events", events()).unwrap();
    let kept = table.insert(&event(1, "kept")).unwrap();
    db.sync().unwrap();
    let lost = table.insert(&event(2, "lost")).unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    let next = Simulation::from_image(&image, 4, SimOptions::default());
    let db = open(&next);
    assert_eq!(arrived(&db), [(kept, "kept".to_owned())]);
    let again = db.table("events").unwrap().insert(&event(3, "lost again")).unwrap();
    assert!(again > lost, "{again} after {lost}");
    // Nothing of the opening is left but that.
    let image = next.crash_image(CrashChoice::KeepNone);
    let next = Simulation::from_image(&image, 5, SimOptions::default());
    let db = open(&next);
    assert_eq!(arrived(&db), [(kept, "kept".to_owned())]);
    let new = db.table("events").unwrap().insert(&event(3, "new")).unwrap();
    assert!(new > again, "{new} after {again}");
    db.close().unwrap();
    // After a clean end nothing is left out.
    let db = open(&next);
    assert_eq!(db.table("events").unwrap().insert(&event(4, "next")).unwrap(), new + 1);
}

#[test]
fn events_of_many_threads_share_commits_each_with_its_outcome() {
    let dir = Directory::new("stream-threads");
    let db = Options::new().open(&dir.0).unwrap();
    let users = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build().unwrap();
    db.create_table("users", users).unwrap().insert(&[1i64.into()]).unwrap();
    let bound = fields().reference(NewReference::new(["n"], "users"));
    db.create_table("events", bound.stream("t", []).build().unwrap()).unwrap();
    let stream = db.stream("events").unwrap();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let append = |thread: usize| {
            let stream = stream.clone();
            move || {
                let mut ids = Vec::new();
                for i in 0..50 {
                    let row = |what: String, user: i64| {
                        vec![Value::Timestamp(i), what.into(), user.into()]
                    };
                    let rows = [
                        row(format!("{thread} {i} a"), 1),
                        row(format!("{thread} {i} refers to none"), 2),
                        vec![Value::Null, "no time".into(), Value::Null],
                        row(format!("{thread} {i} b"), 1),
                    ];
                    let outcomes = stream.append_many(&rows);
                    let kinds: Vec<_> =
                        outcomes.iter().map(|o| o.as_ref().err().map(esker::Error::kind)).collect();
                    assert_eq!(kinds[0], None, "{outcomes:?}");
                    assert_eq!(kinds[1], Some(ErrorKind::ConstraintViolated), "{outcomes:?}");
                    assert!(kinds[2].is_some() && kinds[3].is_none(), "{outcomes:?}");
                    ids.extend(outcomes.into_iter().flatten());
                }
                ids
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(append(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), order(&db).len()), (400, 400));
    for id in &ids {
        assert!(stream.get(*id).unwrap().is_some());
    }
    assert!(stream.delete(ids[7]).unwrap() && !stream.delete(ids[7]).unwrap());
    assert!(stream.get(ids[7]).unwrap().is_none());
    let late = Alteration::SetStream(option("late", "1 day"));
    db.alter_table("events", &[late]).unwrap();
    let e = stream.append(&event(1, "late")).unwrap_err();
    assert!(e.to_string().contains("too_late"), "{e}");
    is_sound(&db);
    drop((stream, db));
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!(order(&db).len(), 399);
    let e = db.stream("users").err().unwrap();
    assert!(e.to_string().contains("is no stream"), "{e}");
}

#[test]
fn a_stream_that_is_truncated_goes_on_with_its_row_ids() {
    let dir = Directory::new("stream-truncated");
    let mut db = Options::new().open(&dir.0).unwrap();
    db.create_table("events", events()).unwrap();
    let mut last = 0;
    for round in 0..6 {
        let ids: Vec<_> =
            (0..3).map(|n| db.table("events").unwrap().insert(&event(n, "x")).unwrap()).collect();
        assert!(ids[0] > last, "{ids:?} after {last}, round {round}");
        last = ids[2];
        match round % 3 {
            0 => db.truncate_table("events").unwrap(),
            1 => {
                let transaction = db.begin().unwrap();
                transaction.truncate_table("events").unwrap();
                transaction.table("events").unwrap().insert(&event(5, "behind")).unwrap();
                transaction.commit().unwrap();
                let found = arrived(&db);
                assert!(found.len() == 1 && found[0].0 > last, "{found:?} after {last}");
                last = found[0].0;
            }
            _ => {
                db.truncate_table("events").unwrap();
                drop(db);
                db = Options::new().open(&dir.0).unwrap();
            }
        }
        is_sound(&db);
    }
}

/// Where the one who leads goes away, those that wait are told all the same.
#[test]
fn events_are_stored_whatever_becomes_of_who_leads() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let told = Arc::new(AtomicU64::new(0));
    let submit = |rows: Vec<Vec<Value>>| {
        let told = Arc::clone(&told);
        stream.submit((ready(&stream.schema(), &rows), false), None, move |appended| {
            told.fetch_add(appended.outcomes.len() as u64, Ordering::SeqCst);
        })
    };
    let lead = submit(vec![event(1, "a")]);
    assert!(lead.is_some());
    assert!(submit(vec![event(2, "b"), event(3, "c")]).is_none(), "the first one leads");
    assert_eq!(told.load(Ordering::SeqCst), 0);
    drop(lead);
    assert_eq!(told.load(Ordering::SeqCst), 3);
    stream.append(&event(4, "d")).unwrap();
    assert_eq!(order(&db), ["a", "b", "c", "d"]);
}

/// Rows that were made ready before a change of the fields keep their values, each in its field.
#[test]
fn events_that_wait_while_fields_change_keep_their_values() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let schema = stream.schema();
    let waiting = vec![vec![Value::Timestamp(1), "kept".into(), 7i64.into()]; 2];
    let lead = stream.submit((ready(&schema, &waiting), false), None, drop).unwrap();
    let mut field = esker::Field::new(esker::FieldId(0), "n".to_owned(), DataType::I64, true);
    field.default = Some(esker::DefaultValue::Literal(5i64.into()));
    let changes = [
        Alteration::DropField("n".into()),
        Alteration::AddField(field),
        Alteration::RenameField { from: "what".into(), to: "said".into() },
    ];
    db.alter_table("events", &changes).unwrap();
    lead.run();
    let rows = db.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row[1..].to_vec()).collect();
    assert_eq!(rows, vec![vec!["kept".into(), Value::Int(5)]; 2], "a new field has its default");
}

/// Events that are too many for a commit are stored in several.
#[test]
fn events_that_are_too_large_together_are_stored_apart() {
    let dir = Directory::new("stream-large");
    let db = Options::new().open(&dir.0).unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let many: Vec<_> = (0..600).map(|n| event(n, &"x".repeat(40_000))).collect();
    let outcomes = stream.append_many(&many);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 600);
    assert_eq!(db.table("events").unwrap().count().unwrap(), 600);
    is_sound(&db);
}

#[test]
fn no_reference_changes_the_time_of_an_event() {
    use esker_format::schema::ReferenceAction::{Cascade, NoAction, SetDefault, SetNull};
    let refused = [(NoAction, Cascade), (SetDefault, NoAction), (SetNull, NoAction)];
    for (on_delete, on_update) in refused {
        let mut reference = NewReference::new(["t"], "days");
        (reference.on_delete, reference.on_update) = (on_delete, on_update);
        let e = fields().reference(reference).stream("t", []).build().unwrap_err().to_string();
        assert!(e.contains("would change the time of an event"), "{e}");
    }
    let mut reference = NewReference::new(["t"], "days");
    reference.on_delete = Cascade;
    fields().reference(reference).stream("t", []).build().unwrap();
}

/// Else the disk could not be emptied.
#[test]
fn a_stream_is_opened_on_a_full_disk_after_a_crash() {
    let machine = Simulation::new(3, SimOptions::default());
    let open = |machine: &Simulation| {
        Options::new().background(false).environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    let table = db.create_table("events", events()).unwrap();
    let ids: Vec<u64> = (0..50).map(|n| table.insert(&event(n, "x")).unwrap()).collect();
    let mut machine = machine;
    for _ in 0..3 {
        let image = machine.crash_image(CrashChoice::KeepNone);
        machine = Simulation::from_image(&image, 4, SimOptions::default());
        machine.set_capacity_bytes(machine.used_bytes());
        let db = open(&machine);
        assert_eq!(arrived(&db).len(), ids.len());
    }
    let db = open(&Simulation::from_image(
        &machine.crash_image(CrashChoice::KeepNone),
        5,
        SimOptions::default(),
    ));
    let new = db.table("events").unwrap().insert(&event(9, "new")).unwrap();
    assert!(new > ids[49]);
}
