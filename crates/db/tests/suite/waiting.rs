//! Changes that somebody else waits for.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::time::Duration;

use crate::fixture::Directory;
use esker::{Durability, Options};

/// It was left to the caller, who was told that nothing of this database is waited for.
#[test]
fn a_write_that_asks_for_a_sync_waits_itself_where_others_do_not() {
    let dir = Directory::new("waiting");
    let at_most = Duration::from_secs(3_600);
    let db = Options::new().durability(Durability::Async { at_most }).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let put = |sync: bool| {
        let mut batch = db.batch();
        batch.sync(sync).put(&bucket, b"k", b"v").unwrap();
        db.without_waiting(|| batch.commit())
    };
    let (done, commit) = put(true);
    done.unwrap();
    assert_eq!(commit, None);
    let (done, commit) = put(false);
    done.unwrap();
    assert_eq!(commit, None);
    db.close().unwrap();

    let db = Options::new().open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let (done, commit) = db.without_waiting(|| bucket.put(b"k", b"w"));
    done.unwrap();
    assert!(!db.is_durable(commit.unwrap()));
    db.sync().unwrap();
    assert!(db.is_durable(commit.unwrap()));
}
