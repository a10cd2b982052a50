//! A session store: `cargo run --release --example sessions`.
//!
//! A session stands in two buckets, by its number and by its user, and in a table of what happened.
//! All three change together or not at all.

use std::time::Duration;

use esker::{Bucket, DataType, Database, Options, Schema, Table, Ttl};

struct Sessions {
    db: Database,
    by_number: Bucket,
    by_user: Bucket,
    events: Table,
}

impl Sessions {
    fn open(db: Database) -> esker::Result<Self> {
        let (by_number, by_user) = (db.bucket("sessions")?, db.bucket("sessions by user")?);
        let schema = Schema::builder()
            .field("session", DataType::Text)
            .field("event", DataType::Text)
            .primary_key(["session", "event"]);
        let events = match db.table("events") {
            Ok(events) => events,
            Err(_) => db.create_table("events", schema.build()?)?,
        };
        Ok(Self { db, by_number, by_user, events })
    }

    fn log_in(&self, session: &str, user: &str) -> esker::Result<()> {
        let hour = Ttl::After(Duration::from_secs(3_600));
        let mut batch = self.db.batch();
        batch
            .put_with(&self.by_number, session, user, hour)?
            .put_with(&self.by_user, format!("{user}/{session}"), "", hour)?
            .upsert(&self.events, &[session.into(), "log in".into()])?;
        batch.commit()
    }

    /// Ends all sessions of a user; returns how many.
    fn log_out_everywhere(&self, user: &str) -> esker::Result<usize> {
        let mut batch = self.db.batch();
        let mut count = 0;
        for entry in self.by_user.prefix(format!("{user}/"))? {
            let entry = entry?;
            let session = entry.key().get(user.len() + 1..).unwrap_or_default();
            let text = String::from_utf8_lossy(session).into_owned();
            batch
                .remove(&self.by_number, session)?
                .remove(&self.by_user, entry.key())?
                .upsert(&self.events, &[text.into(), "log out".into()])?;
            count += 1;
        }
        batch.commit()?;
        Ok(count)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = Sessions::open(Options::new().memory()?)?;
    sessions.log_in("s1", "ada")?;
    sessions.log_in("s2", "ada")?;
    sessions.log_in("s3", "grace")?;
    println!("s1 is {:?}", sessions.by_number.get("s1")?);
    println!("ada had {} sessions", sessions.log_out_everywhere("ada")?);
    println!("{} left, {} events", sessions.by_number.len()?, sessions.events.count()?);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
