//! Who is let in, and to which database.

use std::fmt;
use std::sync::Arc;

use esker::Database;

use crate::session::group_sync::Durability;
use crate::{Code, Error, Result, Session};

/// A session, and what makes its commits durable.
#[derive(Debug)]
pub struct Admitted {
    /// The session.
    pub session: Session,
    /// Of its database.
    pub durability: Arc<Durability>,
}

/// Decides who is let in.
pub trait Authenticator: fmt::Debug + Send + Sync {
    /// Whether letting somebody in to a database waits for nothing.
    fn is_ready(&self, _database: Option<&str>) -> bool {
        true
    }

    /// A session for a token, or none, on a database, or the only one.
    ///
    /// # Errors
    /// `Unauthenticated`, `Forbidden`, `NotFound`.
    fn admit(&self, token: Option<&str>, database: Option<&str>) -> Result<Admitted>;
}

/// Lets everybody in, to one database.
#[derive(Debug)]
pub struct Open {
    database: Database,
    durability: Arc<Durability>,
}

impl Open {
    /// To this database. Within a runtime.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self { database: database.clone(), durability: Durability::start(database) }
    }
}

impl Authenticator for Open {
    fn admit(&self, _token: Option<&str>, database: Option<&str>) -> Result<Admitted> {
        if let Some(name) = database {
            let message = format!("there is one database here, without a name; found {name:?}");
            return Err(Error::new(Code::NotFound, message));
        }
        let durability = Arc::clone(&self.durability);
        Ok(Admitted { session: Session::new(&self.database), durability })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.durability.stop();
    }
}
