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

#[test]
fn the_end_of_an_entry_is_told_within_a_transaction() {
    let server = with_keys(&["k"]);
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}").json();
    let within = ("esker-transaction", begun["id"].as_str().unwrap());
    let entry = format!("{D}/buckets/b/entries/k");
    let ttl = || {
        let answer = server.send("GET", &entry, &[within], b"");
        answer.headers.get("esker-ttl").map(|text| text.parse::<u64>().unwrap())
    };
    assert_eq!(ttl(), None);
    server.send("PUT", &entry, &[within, ("esker-ttl", "600")], b"w");
    let left = ttl().unwrap();
    assert!((500..=600).contains(&left), "{left}");
    assert_eq!(server.ask("GET", &entry, "").text(), "v");
}

/// 0 gave pages without entries and without end; what was too many was cut without a word.
#[test]
fn a_page_has_1_to_10000_entries_or_rows() {
    let server = with_keys(&["k"]);
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    for place in ["buckets/b/entries", "tables/t/rows"] {
        for (limit, status) in [("0", 400), ("1", 200), ("10000", 200), ("10001", 400), ("x", 400)]
        {
            let told = server.ask("GET", &format!("{D}/{place}?limit={limit}"), "");
            assert_eq!(told.status, status, "{place} {limit}: {}", told.text());
            let says = told.text().contains("limit: expected a number from 1 to 10000, found");
            assert_eq!(says, status == 400, "{}", told.text());
        }
    }
}
