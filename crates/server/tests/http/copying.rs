//! `COPY … FROM STDIN` and `COPY … TO STDOUT` over HTTP.

use super::client::Harness;

const D: &str = "/v1/databases/default";

fn copy(server: &Harness, headers: &[(&str, &str)], sql: &str, body: &[u8]) -> (u16, String) {
    let escaped: String = sql.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let path = format!("{D}/copy?sql={escaped}");
    let answer = match headers {
        [("authorization", _), ..] => server.raw("POST", &path, headers, body),
        _ => server.send("POST", &path, headers, body),
    };
    (answer.status, answer.text())
}

fn made() -> Harness {
    let server = Harness::new(&[]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    assert_eq!(server.ask("PUT", &format!("{D}/tables/t"), schema).status, 201);
    server
}

#[test]
fn what_a_client_sends_is_in_the_table_and_comes_back_as_it_was() {
    let server = made();
    let added = (200, r#"{"rows":2,"skipped":0}"#.to_owned());
    assert_eq!(copy(&server, &[], "COPY t FROM STDIN", b"1\tone\n2\t\\N\n"), added);
    let csv = b"name;id\nthree;3\n'four; or so';4\n";
    let sql = "COPY t FROM STDIN WITH CSV HEADER DELIMITER ';' QUOTE ''''";
    assert_eq!(copy(&server, &[], sql, csv), added);
    let json = b"{\"id\": 5}\n{\"id\": 6, \"name\": \"six\"}\n";
    assert_eq!(copy(&server, &[], "COPY t FROM STDIN (FORMAT ndjson)", json), added);
    let text = "1\tone\n2\t\\N\n3\tthree\n4\tfour; or so\n5\t\\N\n6\tsix\n";
    assert_eq!(copy(&server, &[], "COPY t TO STDOUT", b""), (200, text.to_owned()));
    let sql = "COPY (SELECT id, name FROM t WHERE id > 5) TO STDOUT (FORMAT csv, HEADER)";
    assert_eq!(copy(&server, &[], sql, b""), (200, "id,name\n6,six\n".to_owned()));
    assert_eq!(copy(&server, &[], "COPY (SELECT * FROM t WHERE id > 9) TO STDOUT", b"").0, 200);
    for (sql, media) in [
        ("COPY+t+TO+STDOUT", "text/plain"),
        ("COPY+t+TO+STDOUT+CSV", "text/csv"),
        ("COPY+t+TO+STDOUT+(FORMAT+ndjson)", "application/x-ndjson"),
    ] {
        let answer = server.ask("POST", &format!("{D}/copy?sql={sql}"), "");
        assert!(answer.header("content-type").starts_with(media), "{answer:?}");
    }
}

#[test]
fn what_does_not_fit_is_named_with_its_place_and_nothing_is_added() {
    let server = made();
    for (sql, body, said) in [
        ("COPY t FROM STDIN CSV", "1,a\nx,b\n", "STDIN:2: column 1"),
        ("COPY t FROM STDIN CSV", "1,a\n1,b\n", "key id = 1"),
        ("COPY t (id, nmae) FROM STDIN", "", "nmae"),
        ("COPY u FROM STDIN", "", "u"),
        ("COPY t FROM 'x.csv'", "", "STDIN"),
        ("COPY t TO '/tmp/x.csv'", "", "STDOUT"),
        ("SELECT 1", "", "STDIN"),
        ("COPY (SELECT nope FROM t) TO STDOUT", "", "nope"),
    ] {
        let (status, text) = copy(&server, &[], sql, body.as_bytes());
        assert!((400..410).contains(&status) && text.contains(said), "{sql}: {status} {text}");
    }
    assert_eq!(copy(&server, &[], "COPY t TO STDOUT", b""), (200, String::new()));
}

#[test]
fn a_copy_needs_the_rights_of_what_it_does() {
    let server = made();
    let reader = format!("Bearer {}", server.token("read:default"));
    let headers = [("authorization", reader.as_str())];
    assert_eq!(copy(&server, &headers, "COPY t TO STDOUT", b"").0, 200);
    assert_eq!(copy(&server, &headers, "COPY t FROM STDIN", b"1\ta\n").0, 403);
    let made = server.ask("POST", &format!("{D}/query"), r#"{"sql": "CREATE SEQUENCE q"}"#);
    assert_eq!(made.status, 200, "{made:?}");
    let takes = "COPY (SELECT nextval('q')) TO STDOUT";
    assert_eq!(copy(&server, &headers, takes, b"").0, 403, "it takes a value of a sequence");
    assert_eq!(copy(&server, &[], takes, b"").1, "1\n");
    let sql = "COPY (SELECT * FROM read_csv('/etc/passwd')) TO STDOUT";
    assert_ne!(copy(&server, &headers, sql, b"").0, 200);
    assert_ne!(copy(&server, &[], sql, b"").0, 200, "a server without files_dir reads none");
}

#[test]
fn a_copy_within_a_transaction_is_part_of_it() {
    let server = made();
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}").json();
    let headers = [("esker-transaction", begun["id"].as_str().unwrap())];
    assert_eq!(copy(&server, &headers, "COPY t FROM STDIN CSV", b"1,a\n2,b\n").0, 200);
    assert_eq!(copy(&server, &headers, "COPY t TO STDOUT CSV", b"").1, "1,a\n2,b\n");
    assert_eq!(copy(&server, &[], "COPY t TO STDOUT CSV", b"").1, "");
    let path = format!("{D}/transactions/{}", begun["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, "").status, 204);
    assert_eq!(copy(&server, &[], "COPY t TO STDOUT CSV", b"").1, "");
}

/// A database may have so many rows: a copy stops where they are exceeded.
#[test]
fn a_copy_counts_for_the_limits_as_a_load_does() {
    let server = made();
    let limits = r#"{"rows": 10}"#;
    assert_eq!(server.ask("PUT", &format!("{D}/limits"), limits).status, 200);
    let rows: String = (0..100).map(|id| format!("{id},x\n")).collect();
    let (status, text) = copy(&server, &[], "COPY t FROM STDIN CSV", rows.as_bytes());
    assert_eq!(status, 429, "{text}");
    assert_eq!(copy(&server, &[], "COPY t TO STDOUT", b""), (200, String::new()));
}
