//! What refused values take of memory: in a program of its own, since others would count, too.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test stops where it fails")]

use esker::{ErrorKind, Options, PutOptions};

/// A value that is too long is refused before it is copied: pages of zeros that were never touched
/// take no memory.
#[test]
fn a_value_of_more_than_a_gibibyte_is_refused() {
    let db = Options::new().memory().unwrap();
    let bucket = db.bucket("b").unwrap();
    let value = vec![0u8; (1 << 30) + 1];
    for refused in [
        bucket.put("k", &value),
        bucket.put_many([("k", &value)]),
        bucket.put_if_absent("k", &value, PutOptions::new()).map(drop),
        bucket.compare_and_swap("k", None, Some(&value)).map(drop),
        db.batch().put(&bucket, "k", &value).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains("1073741825 bytes, at most 1073741824"), "{refused}");
    }
    assert!(bucket.is_empty().unwrap());
    let resident = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = resident.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(pages < 100_000, "{pages} pages of memory");
}
