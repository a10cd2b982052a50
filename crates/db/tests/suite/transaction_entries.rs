//! Entries and many rows changed within a transaction: what the transaction sees of them, what
//! others do, and what is left of a change that is refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::time::Duration;

use crate::fixture::hand_clock::HandClock;
use esker::{
    BucketOptions, DataType, Database, ErrorKind, Options, PutOptions, Record, Schema, Swapped,
    Ttl, Value,
};

const START: i64 = 1_000_000_000_000;
const SECOND: i64 = 1_000_000;

fn memory() -> Database {
    Options::new().memory().unwrap()
}

#[test]
fn entries_are_changed_by_what_they_are() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    bucket.put("a", "1").unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.bucket("b").unwrap();
    let default = PutOptions::new;
    assert_eq!(within.put_if_absent("a", "2", default()).unwrap().unwrap(), b"1");
    assert_eq!(within.put_if_absent("b", "2", default()).unwrap(), None);
    assert_eq!(within.put_if_absent("b", "3", default()).unwrap().unwrap(), b"2");
    let swapped = within.compare_and_swap("a", Some(b"x"), Some(b"y")).unwrap();
    assert_eq!(swapped, Swapped::Found(Some(b"1".to_vec())));
    assert_eq!(within.compare_and_swap("a", Some(b"1"), Some(b"y")).unwrap(), Swapped::Done);
    assert_eq!(within.compare_and_swap("b", Some(b"2"), None).unwrap(), Swapped::Done);
    assert_eq!(within.compare_and_swap("b", None, None).unwrap(), Swapped::Done);
    assert_eq!(within.append("a", "zz").unwrap(), 3);
    assert_eq!(within.append("c", "new").unwrap(), 3);
    let doubled = within.update("c", |value| value.map(|v| v.repeat(2))).unwrap();
    assert_eq!(doubled.unwrap(), b"newnew");
    assert_eq!(within.update("d", |value| value.map(<[u8]>::to_vec)).unwrap(), None);
    within.put_many([("e", "1"), ("f", "1"), ("e", "2")]).unwrap();
    let values = within.get_many(["a", "b", "c", "e", "f"]).unwrap();
    let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
    let wanted: [Option<&[u8]>; 5] = [Some(b"yzz"), None, Some(b"newnew"), Some(b"2"), Some(b"1")];
    assert_eq!(values, wanted);
    assert_eq!(bucket.len().unwrap(), 1, "nobody else sees it");
    transaction.commit().unwrap();
    let values = bucket.get_many(["a", "b", "c", "e", "f"]).unwrap();
    let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
    assert_eq!(values, wanted);
}

#[test]
fn an_entry_that_others_change_meanwhile_is_a_conflict() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    let attempts: [fn(&esker::TransactionBucket<'_>) -> esker::Result<()>; 5] = [
        |b| b.append("k", "x").map(drop),
        |b| b.update("k", |_| Some(b"y".to_vec())).map(drop),
        |b| b.touch("k", Ttl::At(i64::MAX)).map(drop),
        |b| b.put_if_absent("new", "x", PutOptions::new()).map(drop),
        |b| b.compare_and_swap("new", None, Some(b"x")).map(drop),
    ];
    for attempt in attempts {
        bucket.clear().unwrap();
        bucket.put("k", "v").unwrap();
        let transaction = db.begin().unwrap();
        attempt(&transaction.bucket("b").unwrap()).unwrap();
        bucket.put("k", "w").unwrap();
        bucket.put("new", "w").unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(bucket.get("k").unwrap().unwrap(), b"w"[..]);
        assert_eq!(bucket.get("new").unwrap().unwrap(), b"w"[..]);
    }
}

#[test]
fn times_to_live_are_set_kept_and_taken_away() {
    let clock = HandClock::new(START);
    let db = Options::new().environment(clock.environment()).memory().unwrap();
    let transaction = db.begin().unwrap();
    let options = BucketOptions::new().ttl(Duration::from_secs(10));
    let within = transaction.create_bucket("b", &options).unwrap();
    within.put_many([("default", "1")]).unwrap();
    within.put_if_absent("longer", "1", Ttl::After(Duration::from_secs(20))).unwrap();
    within.put_if_absent("ever", "1", Ttl::Never).unwrap();
    within.append("longer", "2").unwrap();
    within.update("longer", |value| value.map(|v| [v, b"3"].concat())).unwrap();
    assert!(within.touch("ever", Ttl::At(START + 30 * SECOND)).unwrap());
    assert!(!within.touch("none", Ttl::Never).unwrap());
    assert!(!within.persist("none").unwrap());
    within.append("persisted", "1").unwrap();
    assert!(within.persist("persisted").unwrap());
    assert!(!within.persist("persisted").unwrap());
    transaction.commit().unwrap();
    let bucket = db.bucket("b").unwrap();
    let keys = |seconds: i64| {
        clock.set(START + seconds * SECOND);
        let entries = bucket.iter().unwrap().map(|entry| entry.unwrap().key().to_vec());
        entries.map(|key| String::from_utf8(key).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(keys(9), ["default", "ever", "longer", "persisted"]);
    assert_eq!(keys(10), ["ever", "longer", "persisted"]);
    assert_eq!(bucket.get("longer").unwrap().unwrap(), b"123"[..]);
    assert_eq!(keys(20), ["ever", "persisted"]);
    assert_eq!(keys(30), ["persisted"]);
    // An entry that has expired is none within a transaction that begins then.
    bucket.put_with("gone", "old", Ttl::At(START + 40 * SECOND)).unwrap();
    clock.set(START + 40 * SECOND);
    db.transact(|transaction| {
        let within = transaction.bucket("b")?;
        assert_eq!(within.put_if_absent("gone", "new", Ttl::Never)?, None);
        assert_eq!(within.append("gone", "er")?, 5);
        Ok(())
    })
    .unwrap();
    assert_eq!(bucket.get("gone").unwrap().unwrap(), b"newer"[..]);
}

#[test]
fn a_bucket_is_made_with_the_transaction_or_never() {
    let db = memory();
    let transaction = db.begin().unwrap();
    transaction.create_bucket("b", &BucketOptions::default()).unwrap().put("k", "v").unwrap();
    let again = transaction.create_bucket("b", &BucketOptions::default()).err().unwrap();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    drop(transaction);
    assert!(db.buckets().is_empty());
    let transaction = db.begin().unwrap();
    transaction.create_bucket("b", &BucketOptions::default()).unwrap().put("k", "v").unwrap();
    db.bucket("b").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert!(db.bucket("b").unwrap().is_empty().unwrap());
}

fn numbers(db: &Database) -> esker::Table {
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::U8);
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    table.insert_many(&[row(1, 10), row(2, 20), row(3, 30)]).unwrap();
    table
}

fn row(id: i64, n: u64) -> Vec<Value> {
    vec![id.into(), n.into()]
}

#[test]
fn many_rows_are_updated_and_deleted_by_their_keys() {
    let db = memory();
    let table = numbers(&db);
    let set = |id: i64, n: u64| (vec![Value::from(id)], vec![("n", Value::from(n))]);
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.insert(&row(4, 40)).unwrap();
    assert_eq!(within.update_many(&[set(1, 11), set(4, 41), set(9, 9), set(1, 12)]).unwrap(), 3);
    let e = within.update_many(&[set(2, 21), set(3, 300)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("update 1"), "{e}");
    assert_eq!(within.get(&[2.into()]).unwrap().unwrap().values(), row(2, 20), "all or nothing");
    let keys = [vec![3.into()], vec![4.into()], vec![3.into()], vec![9.into()]];
    assert_eq!(within.delete_many(&keys).unwrap(), 2);
    let e = within.delete_many(&[vec![1.into()], vec!["x".into()]]).unwrap_err();
    assert!(e.to_string().contains("key 1"), "{e}");
    assert_eq!(within.count().unwrap(), 2);
    assert_eq!(table.count().unwrap(), 3);
    transaction.commit().unwrap();
    let rows = table.snapshot().unwrap().rows().unwrap();
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row[0].to_string());
    assert_eq!(rows, [row(1, 12), row(2, 20)]);
}

#[test]
fn many_rows_that_others_change_meanwhile_are_a_conflict() {
    let db = memory();
    let table = numbers(&db);
    for deletes in [false, true] {
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        if deletes {
            within.delete_many(&[vec![1.into()], vec![2.into()]]).unwrap();
        } else {
            let set = |id: i64| (vec![Value::from(id)], vec![("n", Value::from(1u64))]);
            within.update_many(&[set(1), set(2)]).unwrap();
        }
        table.update(&[2.into()], &[("n", 99u64.into())]).unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(table.get(&[1.into()]).unwrap().unwrap().values(), row(1, 10));
        assert_eq!(table.get(&[2.into()]).unwrap().unwrap().values(), row(2, 99));
    }
}

#[derive(Clone, Debug, PartialEq, Record)]
struct Account {
    #[esker(key)]
    owner: String,
    cents: i64,
}

fn account(owner: &str, cents: i64) -> Account {
    Account { owner: owner.into(), cents }
}

#[test]
fn rows_are_structs_within_a_transaction() {
    let db = memory();
    let transaction = db.begin().unwrap();
    let accounts = transaction.create_table_of::<Account>("accounts").unwrap();
    accounts.insert_many(&[account("ada", 1), account("bob", 2)]).unwrap();
    accounts.upsert_many(&[account("bob", 3), account("eve", 4)]).unwrap();
    assert_eq!(accounts.get("bob").unwrap(), Some(account("bob", 3)));
    transaction.commit().unwrap();
    let outside = db.table_of::<Account>("accounts").unwrap();
    assert_eq!(outside.table().count().unwrap(), 3);

    let transaction = db.begin().unwrap();
    let accounts = transaction.table_of::<Account>("accounts").unwrap();
    assert_eq!(accounts.insert(&account("ada", 9)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    accounts.upsert(&account("ada", 9)).unwrap();
    assert!(accounts.delete("eve").unwrap());
    assert!(!accounts.exists("eve").unwrap() && accounts.exists("ada").unwrap());
    assert_eq!(accounts.get_for_update("bob").unwrap(), Some(account("bob", 3)));
    outside.upsert(&account("bob", 5)).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict, "bob was held");
    assert_eq!(outside.get("ada").unwrap(), Some(account("ada", 1)));

    #[derive(Debug, Record)]
    struct Other {
        #[allow(dead_code, reason = "it is refused before anybody reads it")]
        colour: String,
    }
    let e = db.begin().unwrap().table_of::<Other>("accounts").err().unwrap();
    assert!(e.to_string().contains("table \"accounts\": record Other"), "{e}");
}
