//! Entries of buckets, page by page and with their ends.

use super::client::Harness;

const D: &str = "/v1/databases/default";

/// A bucket `b` with these keys.
fn with_keys(keys: &[&str]) -> Harness {
    let server = Harness::new(&[]);
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    for key in keys {
        server.ask("PUT", &format!("{D}/buckets/b/entries/{key}"), "v");
    }
    server
}

/// Backwards, `next` was the first key left, which is not part of what ends before it.
#[test]
fn pages_can_be_joined_in_both_directions() {
    let server = with_keys(&["a", "b", "c", "d", "e"]);
    for (reverse, from, expected) in [("false", "from", "abcde"), ("true", "to", "edcba")] {
        let (mut found, mut more) = (String::new(), String::new());
        for _ in 0..3 {
            let path = format!("{D}/buckets/b/entries?limit=2&reverse={reverse}{more}");
            let page = server.ask("GET", &path, "").json();
            for entry in page["entries"].as_array().unwrap() {
                found += entry["key"].as_str().unwrap();
            }
            more = page["next"].as_str().map_or(String::new(), |key| format!("&{from}={key}"));
        }
        assert_eq!((found.as_str(), more.as_str()), (expected, ""));
    }
}
