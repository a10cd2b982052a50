//! What a route is.

use std::fmt;
use std::pin::Pin;

use axum::body::Body;
use axum::http::Response;

use super::Problem;
use super::call::Call;
use crate::session::Level;

/// What a handler comes to.
pub(super) type Outcome = Result<Response<Body>, Problem>;

/// A handler's work.
pub(super) type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What a request needs to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: no token is looked at.
    Nothing,
    /// A token, whatever it may do.
    Token,
    /// A right in the server as a whole.
    Server(Level),
    /// Any right in the database of the path; the request says which more.
    Enter,
    /// A right in the database of the path.
    Database(Level),
    /// To administer the server, and a database in the path that is there.
    Limits,
    /// A right in the table or bucket of the path.
    Table(Level),
}

/// A parameter of the query or a header.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its schema, as JSON.
    pub schema: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A body: its media type, and the name of its schema in the document, or `""` for bytes.
pub type Media = (&'static str, &'static str);

/// One route.
pub struct Route {
    /// The method, in small letters.
    pub method: &'static str,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// Its name in the document.
    pub id: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it needs.
    pub need: Need,
    /// The parameters of the query.
    pub query: &'static [Parameter],
    /// The headers that it looks at.
    pub headers: &'static [Parameter],
    /// The bodies that it takes; none when it takes none.
    pub bodies: &'static [Media],
    /// Whether a body may have any length.
    pub streams: bool,
    /// What it answers when all went well: status, meaning, bodies.
    pub answers: &'static [(u16, &'static str, &'static [Media])],
    /// The errors that it answers beside those of every such route.
    pub errors: &'static [u16],
    pub(super) handler: fn(Call) -> Work,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// True for the path of a request that it answers.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        let (mut own, mut asked) = (self.path.split('/'), path.split('/'));
        loop {
            match (own.next(), asked.next()) {
                (None, None) => return true,
                (Some(own), Some(asked)) if own == asked => {}
                (Some(own), Some(asked)) if own.starts_with('{') && !asked.is_empty() => {}
                _ => return false,
            }
        }
    }

    /// Every status that it answers, server errors apart.
    #[must_use]
    pub fn statuses(&self) -> Vec<u16> {
        let mut statuses: Vec<u16> = self.answers.iter().map(|(status, ..)| *status).collect();
        statuses.extend(self.errors);
        statuses.push(400);
        if self.need != Need::Nothing {
            statuses.push(401);
        }
        if !matches!(self.need, Need::Nothing | Need::Token) {
            statuses.push(403);
        }
        if self.is_in_database() {
            statuses.push(404);
        }
        if self.is_counted() {
            statuses.push(429);
        }
        if !self.bodies.is_empty() {
            statuses.push(408);
        }
        if !self.bodies.is_empty() {
            statuses.push(415);
        }
        if !self.bodies.is_empty() && !self.streams {
            statuses.push(413);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }

    /// True for what changes nothing, whatever its method is.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        self.method == "get" || matches!(self.id, "explain" | "check")
    }

    /// True when it writes and takes no `Idempotency-Key`: one that were left unread would let a
    /// client think that its write is done once.
    #[must_use]
    pub fn refuses_key(&self) -> bool {
        self.refuses("idempotency-key")
    }

    /// The same of `Esker-Producer`.
    #[must_use]
    pub fn refuses_producer(&self) -> bool {
        self.refuses("esker-producer")
    }

    fn refuses(&self, name: &str) -> bool {
        let is_it = |header: &Parameter| header.name.eq_ignore_ascii_case(name);
        !self.only_reads() && !self.headers.iter().any(is_it)
    }

    /// True for what counts as a request of the database of the path. An administrator of limits
    /// has to reach one whose limits let no client in.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.is_in_database() && !matches!(self.need, Need::Limits)
    }

    /// True when the path names a database that has to be there.
    #[must_use]
    pub fn is_in_database(&self) -> bool {
        matches!(self.need, Need::Enter | Need::Limits | Need::Database(_) | Need::Table(_))
    }
}
