//! Tests of changes of the bucket that a database of Redis's protocol is.

use super::tests::{ask, database, state};

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
