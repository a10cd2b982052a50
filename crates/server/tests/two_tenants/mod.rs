//! Two tenants with secrets, and tokens that must not reach them: what the tests of all protocols
//! hold against each of their requests.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use esker_server::auth::access_control::AccessControl;
use esker_server::auth::token::NewToken;
use esker_server::session::{Answer, Request, Session};
use esker_server::tenant::Tenant;

/// What is in the table and the bucket that a token does not reach, and nowhere else. A number, so
/// that it can be counted on.
pub const SECRET: &str = "31415926535";

/// A gate whose tenants are `mill`, with a table `t` and a bucket `b` that have the secret and an
/// open table `u` and bucket `c`, and `shop`, with nothing.
pub struct Tenants {
    access_control: Arc<AccessControl>,
    mill: Arc<Tenant>,
}

impl Tenants {
    pub fn new(access_control: &Arc<AccessControl>) -> Self {
        access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
        let mill = access_control.tenants.create(&"mill".parse().unwrap()).unwrap();
        let mut session = Session::new(&mill.database);
        for sql in [
            "CREATE TABLE t (id i64 PRIMARY KEY, name text)".to_owned(),
            "CREATE INDEX i ON t (name)".to_owned(),
            format!("INSERT INTO t VALUES (1, '{SECRET}')"),
            "CREATE TABLE u (id i64 PRIMARY KEY, name text)".to_owned(),
            "INSERT INTO u VALUES (1, 'open')".to_owned(),
        ] {
            session.run(Request::Sql { text: sql.into(), parameters: Vec::new() }).unwrap();
        }
        for (bucket, value) in [("b", SECRET), ("c", "0")] {
            let bucket = mill.database.bucket(bucket).unwrap();
            bucket.put(b"1", value.as_bytes()).unwrap();
        }
        Self { access_control: Arc::clone(access_control), mill }
    }

    /// A token: its id and its text.
    pub fn token(&self, scope: &str, lifetime: Option<Duration>) -> (String, String) {
        let scopes = vec![scope.parse().unwrap()];
        let new = NewToken { name: scope.to_owned(), scopes, lifetime };
        let (info, text) = self.access_control.tokens.create(&new).unwrap();
        (info.id, text)
    }

    /// Tokens for everything that open nothing any more, or never did, by what is wrong.
    #[allow(clippy::disallowed_methods, reason = "tokens end in real time")]
    pub fn dead_tokens(&self) -> Vec<(&'static str, String)> {
        let (_, expired) = self.token("admin", Some(Duration::from_millis(1)));
        let (id, revoked) = self.token("admin", None);
        self.access_control.tokens.remove(&id).unwrap();
        let (_, mut forged) = self.token("admin", None);
        forged.pop();
        std::thread::sleep(Duration::from_millis(5));
        vec![("expired", expired), ("revoked", revoked), ("forged", forged)]
    }

    /// All that may not change: what is in the databases, which there are, and the tokens.
    pub fn state(&self) -> String {
        let mut state = format!("{:?}\n", self.access_control.tenants.names().unwrap());
        let mut session = Session::new(&self.mill.database);
        for request in [Request::Tables, Request::Buckets] {
            let Answer::Names(names) = session.run(request).unwrap() else { panic!("no names") };
            for name in names {
                let schema = session.run(Request::Schema { table: name.clone() });
                writeln!(state, "{name}: {schema:?}").unwrap();
                let text = format!("SELECT * FROM {name}");
                let rows = session
                    .run(Request::Sql { text: text.into(), parameters: Vec::new() })
                    .unwrap();
                let Answer::Result { result, .. } = rows else { panic!("no rows") };
                for batch in &result.batches {
                    for row in 0..batch.len() {
                        let values = batch.columns.iter().map(|c| c.value(row).to_string());
                        writeln!(state, "  {}", values.collect::<Vec<_>>().join(", ")).unwrap();
                    }
                }
            }
        }
        writeln!(state, "{:?}", self.mill.usage.limits()).unwrap();
        writeln!(state, "{:?}", self.access_control.tokens.list()).unwrap();
        state
    }
}

/// Fails where something has changed, or an answer has the secret.
pub fn expect_nothing(tenants: &Tenants, before: &str, told: &[u8], what: &str) {
    let told = String::from_utf8_lossy(told);
    assert!(!told.contains(SECRET), "{what}: it is told the secret: {told}");
    assert_eq!(tenants.state(), before, "{what}: something has changed");
}
