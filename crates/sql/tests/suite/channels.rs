//! `LISTEN`, `NOTIFY`: sessions that wake each other.

use esker::Options;
use esker_sql::{Outcome, Session};

fn done(session: &mut Session, text: &str) -> String {
    match session.sql(text, ()) {
        Ok(Outcome::Done(done)) => done,
        Ok(other) => panic!("{text}: {other:?}"),
        Err(e) => format!("error: {e}"),
    }
}

fn told(session: &mut Session) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = session.notifications();
    told.iter().map(|told| (text(&told.channel), text(&told.payload))).collect()
}

fn pair(channel: &str, payload: &str) -> (String, String) {
    (channel.to_owned(), payload.to_owned())
}

#[test]
fn what_is_said_is_told_once_it_is_committed() {
    let db = Options::new().memory().unwrap();
    let (mut one, mut other) = (Session::new(&db), Session::new(&db));
    assert_eq!(done(&mut one, "LISTEN stock"), "listening to stock");
    assert_eq!(done(&mut one, "LISTEN \"Two words\""), "listening to Two words");
    assert_eq!(done(&mut other, "NOTIFY stock, 'bolt'"), "told 1 listener");
    assert_eq!(done(&mut other, "NOTIFY none"), "told 0 listeners");
    assert_eq!(told(&mut one), [pair("stock", "bolt")]);
    for text in [
        "BEGIN",
        "NOTIFY stock, 'a'",
        "SAVEPOINT s",
        "NOTIFY stock, 'b'",
        "ROLLBACK TO s",
        "NOTIFY \"Two words\"",
        "NOTIFY stock, 'a'",
    ] {
        done(&mut other, text);
    }
    assert!(told(&mut one).is_empty());
    done(&mut other, "COMMIT");
    assert_eq!(told(&mut one), [pair("stock", "a"), pair("Two words", "")]);
    done(&mut other, "BEGIN");
    done(&mut other, "NOTIFY stock");
    done(&mut other, "ROLLBACK");
    assert!(told(&mut one).is_empty());
    assert_eq!(done(&mut one, "UNLISTEN stock"), "not listening to stock");
    done(&mut other, "NOTIFY stock");
    assert!(told(&mut one).is_empty());
    done(&mut one, "UNLISTEN *");
    assert_eq!(done(&mut other, "NOTIFY \"Two words\""), "told 0 listeners");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let db = Options::new().memory().unwrap();
    let mut session = Session::new(&db);
    let long = format!("NOTIFY a, '{}'", "x".repeat(8_000));
    for (text, why) in [("LISTEN", "identifier"), (long.as_str(), "at most 8000 bytes")] {
        let found = done(&mut session, text);
        assert!(found.contains(why), "{text}: {found}");
    }
    let refused = esker_sql::Sql::sql(&db, "LISTEN a", ()).unwrap_err();
    assert!(refused.to_string().contains("about a session"), "{refused}");
    let transaction = db.begin().unwrap();
    assert!(esker_sql::Sql::sql(&transaction, "NOTIFY a", ()).is_err());
}

#[test]
fn what_is_not_taken_is_lost_and_said_to_be() {
    let db = Options::new().memory().unwrap();
    let mut session = Session::new(&db);
    session.sql("LISTEN a", ()).unwrap();
    let payload = "x".repeat(7_000);
    for _ in 0..1_000 {
        db.notify(b"a", payload.as_bytes());
    }
    assert!(session.has_lost_notifications() && !session.has_lost_notifications());
    let told = session.notifications().len();
    assert!((500..1_000).contains(&told), "{told}");
    db.notify(b"a", b"again");
    assert_eq!(session.notifications().len(), 1);
}
