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

#[test]
fn a_time_to_live_of_nothing_is_refused() {
    let server = with_keys(&[]);
    let refused = server.ask("PUT", &format!("{D}/buckets/c?ttl_s=0"), "");
    assert_eq!(refused.status, 400, "{}", refused.text());
    let ends = [("esker-ttl", "0")];
    let refused = server.send("PUT", &format!("{D}/buckets/b/entries/k"), &ends, b"v");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(server.ask("GET", &format!("{D}/buckets"), "").json()["buckets"][0], "b");
    assert_eq!(server.ask("GET", &format!("{D}/buckets/b"), "").json()["entries"], 0);
}
