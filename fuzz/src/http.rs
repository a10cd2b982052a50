//! Requests of HTTP: their heads, and their bodies of JSON, NDJSON, CSV and SQL.

use esker_server::protocol::http::{Replayed, answer_requests};

/// What the statements and rows of an input may mean.
const BEFORE: &[u8] = b"POST /v1/databases/default/query\ncontent-type: application/sql\n\n\
    CREATE TABLE t (id i64 PRIMARY KEY, name text, doc json)\x1e\
    POST /v1/databases/default/tables/t/rows\ncontent-type: text/csv\n\n\
    id,name,doc\n1,a,\"{\"\"k\"\": [1]}\"\n2,b,\n\x1e\
    PUT /v1/databases/default/buckets/b\n\n\x1e";

const AFTER: &[u8] = b"\x1eGET /healthz\n\n";

/// Told by every route, and not an error of the server: too slow, too large.
const BEYOND: [u16; 3] = [503, 504, 507];

/// Any requests are answered as the document says, and the server goes on.
pub fn run(data: &[u8]) {
    let input = [BEFORE, data, AFTER].concat();
    let replayed = answer_requests(&input).expect("a server");
    let statuses: Vec<u16> = replayed.iter().map(|replayed| replayed.status).collect();
    assert!(statuses.starts_with(&[200, 200, 201]), "{replayed:?}");
    assert_eq!(statuses.last(), Some(&200), "the server goes on");
    replayed.iter().for_each(expect_documented);
}

fn expect_documented(replayed: &Replayed) {
    let Replayed { route, status, body } = replayed;
    let shown = || body.as_deref().map(String::from_utf8_lossy);
    let is_known = match route {
        Some(route) => route.statuses().contains(status) || BEYOND.contains(status),
        None => (400..500).contains(status) || *status == 200,
    };
    assert!(is_known, "{route:?}: {status}: {:?}", shown());
    if let (Some(_), Some(body), true) = (route, body, *status >= 400) {
        let text = String::from_utf8(body.clone()).expect("a problem is text");
        assert!(text.contains("\"code\":"), "{text}");
    }
}
