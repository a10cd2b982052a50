//! Feeds of tables: every change once, in whole commits, in the frame that makes it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{
    Alteration, ChangeKind, ChangeReader, ChangedRows, Changes, ChangesFrom, CommitChanges,
    DataType, Database, Durability, ErrorKind, Field, FieldId, NewReference, Options,
    ReferenceAction, Schema, Value,
};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const NO_WAIT: Duration = Duration::ZERO;
const DAY_US: u64 = 86_400_000_000;

fn schema(rows: ChangedRows) -> Schema {
    let fields = Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text);
    fields.primary_key(["id"]).changes(Changes::Kept { keep_us: DAY_US, rows }).build().unwrap()
}

fn row(id: i64, v: &str) -> Vec<Value> {
    vec![Value::Int(id), Value::Text(v.to_owned())]
}

/// All that there is to tell.
fn told(reader: &mut ChangeReader) -> Vec<CommitChanges> {
    let mut all = Vec::new();
    loop {
        let commits = reader.next_commits(3, NO_WAIT).unwrap();
        if commits.is_empty() {
            return all;
        }
        all.extend(commits);
    }
}

/// What a change is, its key, new and old, as text.
fn texts(commits: &[CommitChanges]) -> Vec<Vec<String>> {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        other => other.as_ref().to_string(),
    };
    let change = |c: &esker::Change| {
        format!("{} {} {} {}", c.kind, text(&c.key), text(&c.new), text(&c.old))
    };
    commits.iter().map(|commit| commit.changes.iter().map(change).collect()).collect()
}

/// A feed replayed from an empty table.
fn replayed(commits: &[CommitChanges]) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for change in commits.iter().flat_map(|commit| &commit.changes) {
        let key = change.key.as_ref().to_string();
        match change.kind {
            ChangeKind::Truncate => rows.clear(),
            ChangeKind::Insert => {
                assert_eq!(rows.insert(key, change.new.as_ref().to_string()), None);
            }
            ChangeKind::Update => {
                assert!(rows.insert(key, change.new.as_ref().to_string()).is_some());
            }
            ChangeKind::Delete | ChangeKind::Expire => {
                assert!(rows.remove(&key).is_some(), "{key}");
            }
        }
    }
    rows
}

/// The rows of the table as the feed has them.
fn stored(db: &Database) -> BTreeMap<String, String> {
    let rows = db.table("t").unwrap().snapshot().unwrap().rows().unwrap();
    let shown = |(_, row): (u64, Vec<Value>)| {
        let v = match &row[1] {
            Value::Null => "null".to_owned(),
            v => format!("{:?}", v.as_ref().to_string()),
        };
        (
            format!("{{\"id\":{}}}", row[0].as_ref()),
            format!("{{\"id\":{},\"v\":{v}}}", row[0].as_ref()),
        )
    };
    rows.into_iter().map(shown).collect()
}

#[test]
fn every_kind_of_change_is_told_in_its_commit() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema(ChangedRows::Old)).unwrap();
    t.insert(&row(1, "a")).unwrap();
    t.insert_many(&[row(2, "b"), row(3, "c")]).unwrap();
    t.upsert(&row(1, "A")).unwrap();
    assert!(t.update(&[Value::Int(2)], &[("v", "B".into())]).unwrap());
    assert!(t.delete(&[Value::Int(3)]).unwrap());
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.insert(&row(4, "d")).unwrap();
    within.insert(&row(5, "e")).unwrap();
    assert!(within.delete(&[Value::Int(1)]).unwrap());
    transaction.commit().unwrap();
    let rolled_back = db.begin().unwrap();
    rolled_back.table("t").unwrap().insert(&row(9, "z")).unwrap();
    rolled_back.rollback();
    assert!(t.insert(&row(4, "twice")).is_err());
    let mut reader = db.changes("t", ChangesFrom::Start).unwrap();
    let commits = told(&mut reader);
    let all = texts(&commits);
    assert_eq!(all.len(), 6, "{all:#?}");
    assert_eq!(all[0], [r#"insert {"id":1} {"id":1,"v":"a"} -"#]);
    assert_eq!(all[1].len(), 2);
    assert_eq!(all[2], [r#"update {"id":1} {"id":1,"v":"A"} {"id":1,"v":"a"}"#]);
    assert_eq!(all[3], [r#"update {"id":2} {"id":2,"v":"B"} {"id":2,"v":"b"}"#]);
    assert_eq!(all[4], [r#"delete {"id":3} - {"id":3,"v":"c"}"#]);
    assert_eq!(all[5].len(), 3, "{:?}", all[5]);
    assert_eq!(replayed(&commits), stored(&db));
    // From each place on, the rest, once.
    for (i, commit) in commits.iter().enumerate() {
        let mut rest = db.changes("t", ChangesFrom::After(commit.cursor)).unwrap();
        assert_eq!(told(&mut rest), commits[i + 1..], "{i}");
    }
    db.truncate_table("t").unwrap();
    t.insert(&row(1, "new")).unwrap();
    assert_eq!(
        texts(&told(&mut reader)),
        [
            vec!["truncate - - -".to_owned()],
            vec![r#"insert {"id":1} {"id":1,"v":"new"} -"#.to_owned()],
        ]
    );
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn cascades_and_large_commits_are_told() {
    let db = Options::new().commit_limit(4 << 10).memory().unwrap();
    let parents = Schema::builder().field("id", DataType::I64).primary_key(["id"]);
    let parents = db.create_table("p", parents.build().unwrap()).unwrap();
    let children = Schema::builder()
        .field("id", DataType::I64)
        .field("p", DataType::I64)
        .primary_key(["id"])
        .changes(Changes::Kept { keep_us: DAY_US, rows: ChangedRows::Key });
    let reference = NewReference::new(["p"], "p").on_delete(ReferenceAction::Cascade);
    let children = db.create_table("t", children.reference(reference).build().unwrap()).unwrap();
    parents.insert(&[Value::Int(1)]).unwrap();
    let rows: Vec<_> = (0..500i64).map(|id| vec![Value::Int(id), Value::Int(1)]).collect();
    children.insert_many(&rows).unwrap();
    assert!(parents.delete(&[Value::Int(1)]).unwrap());
    let commits = told(&mut db.changes("t", ChangesFrom::Start).unwrap());
    let counts: Vec<_> = commits.iter().map(|commit| commit.changes.len()).collect();
    assert_eq!(counts, [500, 500]);
    assert!(commits[1].changes.iter().all(|change| change.kind == ChangeKind::Delete));
}

#[test]
fn a_feed_comes_changes_and_goes_with_its_table() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema(ChangedRows::Key)).unwrap();
    t.insert(&row(1, "a")).unwrap();
    for e in [
        db.drop_table("t$changes").unwrap_err(),
        db.rename_table("t$changes", "u").unwrap_err(),
        db.truncate_table("t$changes").unwrap_err(),
        db.alter_table("t$changes", &[Alteration::DropField("old".into())]).unwrap_err(),
        db.table("t$changes").unwrap().load().map(drop).unwrap_err(),
    ] {
        assert!(e.to_string().contains("is the feed of a table"), "{e}");
    }
    let event = [Value::Timestamp(1), "insert".into(), Value::Uint(1), Value::Uint(0)];
    let event: Vec<_> = event.into_iter().chain([Value::Null, Value::Null, Value::Null]).collect();
    assert!(db.table("t$changes").unwrap().insert(&event).is_err());
    let e = t.load().map(drop).unwrap_err().to_string();
    assert!(e.contains("a bulk load into table \"t\", which keeps its changes"), "{e}");
    db.rename_table("t", "u").unwrap();
    let u = db.table("u").unwrap();
    u.insert(&row(2, "b")).unwrap();
    assert!(db.table("t$changes").is_err());
    let field = Field::new(FieldId(0), "w".into(), DataType::I64, true);
    db.alter_table("u", &[Alteration::AddField(field)]).unwrap();
    db.alter_table("u", &[Alteration::SetChangesBy(ChangedRows::Old)]).unwrap();
    assert!(u.delete(&[Value::Int(1)]).unwrap());
    let commits = told(&mut db.changes("u", ChangesFrom::Start).unwrap());
    let last = texts(&commits).pop().unwrap();
    assert_eq!(last, [r#"delete {"id":1} - {"id":1,"v":"a","w":null}"#]);
    assert_eq!(commits.len(), 3);
    db.alter_table("u", &[Alteration::SetChangesKept(Some(2 * DAY_US))]).unwrap();
    let kept = db.table("u$changes").unwrap().schema();
    assert_eq!(kept.stream().unwrap().retention.keep_us, Some(2 * DAY_US));
    db.alter_table("u", &[Alteration::SetChangesKept(None)]).unwrap();
    assert!(db.table("u$changes").is_err());
    assert!(db.changes("u", ChangesFrom::Start).is_err());
    u.load().unwrap();
    db.alter_table("u", &[Alteration::SetChangesKept(Some(DAY_US))]).unwrap();
    db.drop_table("u").unwrap();
    assert!(db.table("u$changes").is_err());
}

#[test]
fn expired_rows_are_told_and_old_changes_are_gone() {
    let machine = Simulation::new(1, SimOptions::default());
    let options = Options::new().environment(machine.environment()).background(false);
    let db = options.open("db").unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("until", DataType::Timestamp)
        .primary_key(["id"])
        .expires_by("until")
        .changes(Changes::Kept { keep_us: 3_600_000_000, rows: ChangedRows::Key });
    let t = db.create_table("t", schema.build().unwrap()).unwrap();
    let mut reader = db.changes("t", ChangesFrom::Start).unwrap();
    let end = |s: i64| Value::Timestamp(machine.environment().clock.wall_us() + s * 1_000_000);
    t.insert(&[Value::Int(1), end(60)]).unwrap();
    t.insert(&[Value::Int(2), Value::Null]).unwrap();
    db.sync().unwrap();
    let first = told(&mut reader);
    assert_eq!(first.len(), 2);
    machine.advance_clock(Duration::from_secs(120));
    db.wait_idle().unwrap();
    // The place is taken: the row before it has ended.
    t.insert(&[Value::Int(1), Value::Null]).unwrap();
    db.sync().unwrap();
    let kinds: Vec<_> =
        told(&mut reader).into_iter().flat_map(|c| c.changes).map(|c| c.kind).collect();
    assert_eq!(kinds, [ChangeKind::Expire, ChangeKind::Insert]);
}

#[test]
fn a_crash_leaves_rows_and_feed_alike() {
    for seed in 0..40 {
        let machine = Simulation::new(seed, SimOptions::default());
        let options = |machine: &Simulation| {
            let at_most = Duration::from_secs(3_600);
            let options = Options::new().environment(machine.environment()).background(false);
            options.durability(Durability::Async { at_most }).open("db").unwrap()
        };
        let mut seen = Vec::new();
        let image = {
            let db = options(&machine);
            let t = db.create_table("t", schema(ChangedRows::Key)).unwrap();
            db.sync().unwrap();
            let mut reader = db.changes("t", ChangesFrom::Start).unwrap();
            for i in 0..20i64 {
                match (i + i64::try_from(seed).unwrap()) % 4 {
                    0 => t.insert_many(&[row(i, "a"), row(i + 100, "b")]).unwrap(),
                    1 => drop(t.upsert(&row(i - 1, "c")).unwrap()),
                    2 => drop(t.delete(&[Value::Int(i - 2)]).unwrap()),
                    _ => drop(t.insert(&row(i, "d")).unwrap()),
                }
                if i == 9 {
                    db.sync().unwrap();
                }
                seen.extend(told(&mut reader));
            }
            machine.crash_image(CrashChoice::TornSubset { mask: seed * 0x9e37_79b9, seed })
        };
        assert!(!seen.is_empty());
        let machine = Simulation::from_image(&image, seed, SimOptions::default());
        let db = options(&machine);
        let all = told(&mut db.changes("t", ChangesFrom::Start).unwrap());
        assert_eq!(replayed(&all), stored(&db), "seed {seed}");
        assert_eq!(seen[..], all[..seen.len()], "seed {seed}: what was told is there");
        let after = seen.last().map_or(ChangesFrom::Start, |c| ChangesFrom::After(c.cursor));
        let rest = told(&mut db.changes("t", after).unwrap());
        assert_eq!(rest[..], all[seen.len()..], "seed {seed}");
        assert_eq!(db.check().unwrap().problems, []);
    }
}

#[test]
fn a_follower_whose_changes_are_gone_is_told_where_to_begin() {
    let machine = Simulation::new(1, SimOptions::default());
    let options = Options::new().environment(machine.environment()).background(false);
    let db = options.open("db").unwrap();
    let t = db.create_table("t", schema(ChangedRows::Key)).unwrap();
    t.insert(&row(1, "a")).unwrap();
    t.insert(&row(2, "b")).unwrap();
    let first = told(&mut db.changes("t", ChangesFrom::Start).unwrap());
    let mut late = db.changes("t", ChangesFrom::After(first[0].cursor)).unwrap();
    for _ in 0..3 {
        machine.advance_clock(Duration::from_secs(86_400));
        db.wait_idle().unwrap();
    }
    t.insert(&row(3, "c")).unwrap();
    db.wait_idle().unwrap();
    let newest = db.changes("t", ChangesFrom::Now).unwrap().cursor();
    let expect_gone = |e: esker::Error| {
        assert_eq!(e.kind(), ErrorKind::SnapshotGone, "{e}");
        assert!(e.to_string().ends_with(&format!("go on behind {newest}")), "{e}");
    };
    // However often it is asked, it does not pass over what is gone.
    for _ in 0..3 {
        expect_gone(late.next_commits(10, NO_WAIT).unwrap_err());
        assert_eq!(late.cursor(), first[0].cursor);
        expect_gone(db.changes("t", ChangesFrom::After(first[0].cursor)).unwrap_err());
    }
    let start = told(&mut db.changes("t", ChangesFrom::Start).unwrap());
    assert_eq!(texts(&start), [[r#"insert {"id":3} {"id":3,"v":"c"} -"#]]);
    let rest = told(&mut db.changes("t", ChangesFrom::After(first[1].cursor)).unwrap());
    assert_eq!(texts(&rest), [[r#"insert {"id":3} {"id":3,"v":"c"} -"#]]);
}
