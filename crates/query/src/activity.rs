//! The sessions of a server and its slow statements, which system tables show as rows. The program
//! that runs statements provides them.

use std::fmt::Debug;

/// What goes on.
pub trait Activity: Debug + Send + Sync {
    /// The sessions there are, in the order of their coming.
    fn sessions(&self) -> Vec<SessionActivity>;

    /// The statements that took long, the last first: as many as are kept.
    fn slow_statements(&self) -> Vec<SlowStatementActivity>;
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionActivity {
    /// By which it is ended.
    pub id: u64,
    /// How it came: `wire`, `http` and so on.
    pub protocol: &'static str,
    /// The id of its token; empty where it needs none.
    pub token: String,
    /// When it came, in microseconds since 1970.
    pub started_us: i64,
    /// What runs for it.
    pub statement: Option<String>,
    /// When that began, in microseconds since 1970.
    pub statement_since_us: Option<i64>,
    /// When its transaction began, in microseconds since 1970.
    pub transaction_since_us: Option<i64>,
}

/// A statement that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowStatementActivity {
    /// When it ended, in microseconds since 1970.
    pub ended_us: i64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The request.
    pub statement: String,
    /// How it is answered, where that is known.
    pub plan: Option<String>,
    /// Whether it came to its end.
    pub completed: bool,
}
