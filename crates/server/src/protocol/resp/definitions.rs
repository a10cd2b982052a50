//! Tests of changes of the bucket that a database of Redis's protocol is.

use super::tests::{ask, database, framed, state};

/// What would end a bucket is refused at once: every command answered WRONGTYPE afterwards.
#[test]
fn a_change_of_a_bucket_is_refused_and_its_keys_stay() {
    let database = database();
    let mut state = state(&database);
    assert_eq!(ask(&mut state, "set k v"), "+OK|");
    for change in ["ADD COLUMN x i64", "DROP COLUMN expires_at", "RESET (expires)"] {
        let text = format!("ALTER TABLE db0 {change}");
        let request = crate::Request::Sql { text: text.into(), parameters: Vec::new() };
        let error = state.session.as_mut().unwrap().run(request).unwrap_err();
        assert!(error.message().contains("\"db0\" is a bucket: "), "{change}: {error:?}");
        assert_eq!(ask(&mut state, "get k"), "$1|v|", "{change}");
        assert_eq!(ask(&mut state, "set k v"), "+OK|", "{change}");
    }
}

/// The bucket was made before, whatever became of the `EXEC`.
#[test]
fn a_put_within_exec_makes_the_bucket_with_its_commit() {
    let database = database();
    let (mut a, mut b) = (state(&database), state(&database));
    assert_eq!(ask(&mut a, "watch k"), "+OK|");
    assert_eq!(ask(&mut b, "set k 1"), "+OK|");
    let put = "multi\r\nselect 1\r\nset k v\r\nincr n\r\nget k\r\nexec";
    assert!(ask(&mut a, put).ends_with("*-1|"));
    assert_eq!(database.buckets(), ["db0"]);
    assert!(ask(&mut a, put).ends_with("*4|+OK|+OK|:1|$1|v|"));
    assert_eq!(database.buckets(), ["db0", "db1"]);
    assert_eq!(ask(&mut a, "get k"), "$1|v|");
    // One that reads makes none, one that changes all at once makes it in its own commit.
    database.drop_bucket("db1").unwrap();
    assert_eq!(ask(&mut a, "multi\r\nget k\r\ndel k\r\nttl k\r\nexec").matches("|:").count(), 2);
    assert_eq!(database.buckets(), ["db0"]);
    assert_eq!(ask(&mut a, "setnx k w"), ":1|");
    assert_eq!(database.buckets(), ["db0", "db1"]);
}

/// A command that puts nothing made the bucket, which takes a right that it does not need.
#[test]
fn what_puts_nothing_makes_no_bucket() {
    let database = database();
    let mut state = state(&database);
    let long = "k".repeat(70_000);
    for (command, told) in [
        ("set k v xx", "$-1|"),
        ("set k v xx get", "$-1|"),
        ("set k v pxat 1", "+OK|"),
        ("incrbyfloat k inf", "-ERR increment would produce NaN or Infinity|"),
        (&format!("set {long} v"), "-ERR"),
        (&format!("mset k v {long} v"), "-ERR"),
        ("set k v xx\r\nset k v xx", "$-1|$-1|"),
    ] {
        let found = ask(&mut state, &framed(command));
        assert!(found.starts_with(told), "{command:.40}: {found}");
        assert!(database.buckets().is_empty(), "{command:.40}");
        ask(&mut state, &framed(&format!("multi\r\n{command}")));
        let found = ask(&mut state, "exec");
        assert!(found.contains(told.split('|').next().unwrap()), "{command:.40}: {found}");
        assert!(database.buckets().is_empty(), "{command:.40}");
    }
    assert_eq!(ask(&mut state, "set k v nx"), "+OK|");
    assert_eq!(database.buckets(), ["db0"]);
}
