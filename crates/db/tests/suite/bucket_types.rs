//! Buckets whose keys and values have types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Debug;
use std::time::Duration;

use esker::{
    Database, ErrorKind, KeyCodec, KeyPrefix, Options, PutOptions, Swapped, Ttl, TypedBucket,
    ValueCodec,
};
use proptest::prelude::*;

/// A bucket, and the database that it is open in.
fn bucket<K: KeyCodec, V: ValueCodec>() -> (Database, TypedBucket<K, V>) {
    let db = Options::new().memory().unwrap();
    let bucket = db.bucket("b").unwrap().typed();
    (db, bucket)
}

fn key(text: &str, n: i32) -> (String, i32) {
    (text.to_owned(), n)
}

#[test]
fn whatever_bytes_can_types_can() {
    let (_db, bucket) = bucket::<(String, i32), String>();
    assert!(bucket.is_empty().unwrap());
    let entries = [("a", -1), ("a", 3), ("ab", 0), ("b", i32::MIN)];
    for (text, n) in entries {
        bucket.put(&key(text, n), &format!("{text}{n}")).unwrap();
    }
    assert_eq!(bucket.len().unwrap(), 4);
    let asked = [key("ab", 0), key("ab", 1), key("a", -1)];
    let found = bucket.get_many(&asked).unwrap();
    assert_eq!(found, [Some("ab0".to_owned()), None, Some("a-1".to_owned())]);
    assert_eq!(bucket.next_after(&key("a", -1)).unwrap().unwrap().0, key("a", 3));
    assert_eq!(bucket.last_before(&key("a", 3)).unwrap().unwrap().0, key("a", -1));
    assert_eq!(bucket.last_before(&key("a", -1)).unwrap(), None);
    assert_eq!(bucket.count_range(key("a", 0)..=key("ab", 0)).unwrap(), 2);
    let a = "a".to_owned();
    let keys: Vec<_> = bucket.prefix(&a).unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [key("a", -1), key("a", 3)], "and not those of ab");

    let before = bucket.snapshot().unwrap();
    assert_eq!(bucket.remove_prefix(&a).unwrap(), 2);
    assert_eq!(bucket.remove_range(..key("b", 0)).unwrap(), 2);
    assert!(bucket.is_empty().unwrap());
    assert_eq!(before.len().unwrap(), 4);
    assert!(before.contains(&key("a", 3)).unwrap());
    assert_eq!(before.prefix(&a).count(), 2);
    assert_eq!(before.range(key("ab", 0)..).count(), 2);
    assert_eq!(before.next_after(&key("b", 0)).unwrap(), None);
    assert_eq!(before.last_before(&key("b", 0)).unwrap().unwrap().1, format!("b{}", i32::MIN));

    bucket.put(&key("x", 1), &String::new()).unwrap();
    bucket.clear().unwrap();
    assert!(bucket.is_empty().unwrap());
}

#[test]
fn a_swap_tells_what_is_there() {
    let (_db, bucket) = bucket::<u128, i64>();
    assert_eq!(bucket.compare_and_swap(&7, None, Some(&1)).unwrap(), Swapped::Done);
    assert_eq!(bucket.compare_and_swap(&7, None, Some(&2)).unwrap(), Swapped::Found(Some(1)));
    assert_eq!(bucket.compare_and_swap(&8, Some(&1), None).unwrap(), Swapped::Found(None));
    assert_eq!(bucket.increment(&7, 41).unwrap(), 42);
    assert_eq!(bucket.get(&7).unwrap(), Some(42));
    let error = bucket.increment(&7, i64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn ends_of_typed_entries() {
    let (_db, bucket) = bucket::<i128, String>();
    let short = bucket.with(Ttl::After(Duration::from_secs(100)));
    assert_eq!(short.put_if_absent(&-5, &"x".to_owned()).unwrap(), None);
    assert!(bucket.remaining(&-5).unwrap().unwrap().is_some());
    assert!(bucket.persist(&-5).unwrap());
    assert_eq!(bucket.remaining(&-5).unwrap(), Some(None));
    assert!(bucket.touch(&-5, Ttl::After(Duration::ZERO)).unwrap());
    assert_eq!(bucket.get(&-5).unwrap(), None);
    let never = short.with(PutOptions::new().ttl(Ttl::Never));
    never.put(&1, &String::new()).unwrap();
    assert_eq!(bucket.remaining(&1).unwrap(), Some(None));
}

#[test]
fn a_batch_of_types_is_one_commit() {
    let db = Options::new().memory().unwrap();
    let (names, ages) = (db.bucket("names").unwrap(), db.bucket("ages").unwrap());
    let (names, ages) = (names.typed::<u32, String>(), ages.typed::<u32, u8>());
    ages.put(&2, &9).unwrap();
    let before = db.info().published_commit;
    let mut batch = db.batch();
    batch.put_typed(&names, &1, &"ada".to_owned()).unwrap();
    batch.put_typed(&ages, &1, &36).unwrap().remove_typed(&ages, &2).unwrap();
    batch.commit().unwrap();
    assert_eq!(db.info().published_commit, before + 1);
    assert_eq!((names.get(&1).unwrap(), ages.get(&1).unwrap()), (Some("ada".to_owned()), Some(36)));
    assert_eq!(ages.get(&2).unwrap(), None);
}

#[test]
fn texts_and_bytes_have_prefixes_too() {
    let (_db, texts) = bucket::<String, u8>();
    for (n, text) in ["", "a", "ab", "b"].into_iter().enumerate() {
        texts.put(&text.to_owned(), &u8::try_from(n).unwrap()).unwrap();
    }
    assert_eq!(texts.prefix("a").unwrap().count(), 2);
    assert_eq!(texts.prefix("").unwrap().count(), 4);
    let (_db, bytes) = bucket::<Vec<u8>, u8>();
    bytes.put(&vec![255, 255, 1], &0).unwrap();
    assert_eq!(bytes.prefix(&[255, 255][..]).unwrap().count(), 1);
}

fn encoded<K: KeyCodec>(key: &K, is_last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out, is_last);
    out
}

/// Keys come back, sort as their bytes do, and begin with what they begin with.
fn expect_order<K: KeyCodec + Ord + Debug>(a: &K, b: &K) {
    for is_last in [true, false] {
        let (first, second) = (encoded(a, is_last), encoded(b, is_last));
        assert_eq!(first.cmp(&second), a.cmp(b), "{a:?} and {b:?}");
        let mut input = first.as_slice();
        assert_eq!(&K::decode_key(&mut input, is_last).unwrap(), a);
        assert!(input.is_empty());
    }
}

fn expect_prefix<K: KeyCodec, P: KeyPrefix<K> + PartialEq>(key: &K, prefix: &P, own: &P) {
    let mut bytes = Vec::new();
    prefix.encode_prefix(&mut bytes);
    assert_eq!(encoded(key, true).starts_with(&bytes), prefix == own);
}

type Six = (u8, String, i128, Vec<u8>, u128, String);

fn six() -> impl Strategy<Value = Six> {
    let few = prop_oneof![Just(i128::MIN), Just(-1), Just(0), Just(i128::MAX), any::<i128>()];
    let bytes = proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..3);
    (0..2u8, "[\0ab]{0,2}", few, bytes, any::<u128>(), "[\0a]{0,2}")
}

proptest! {
    #[test]
    fn keys_sort_as_their_bytes(a in six(), b in six()) {
        expect_order(&a, &b);
        expect_order(&a.2, &b.2);
        expect_order(&a.4, &b.4);
        let five = |key: &Six| (key.5.clone(), key.0, key.3.clone(), key.2, key.1.clone());
        expect_order(&five(&a), &five(&b));
        let (key, one) = (a.clone(), |key: &Six| key.0);
        expect_prefix(&key, &one(&b), &one(&a));
        let two = |key: &Six| (key.0, key.1.clone());
        expect_prefix(&key, &two(&b), &two(&a));
        let four = |key: &Six| (key.0, key.1.clone(), key.2, key.3.clone());
        expect_prefix(&key, &four(&b), &four(&a));
        expect_prefix(&key, &four(&a), &four(&a));
    }
}
