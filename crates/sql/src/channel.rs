//! `LISTEN`, `UNLISTEN` and `NOTIFY`: wake-ups of sessions, of which nothing is stored.

use esker::{Database, Error, ErrorKind, Notification, Result};
use sqlparser::ast;

use crate::run::Outcome;
use crate::session::Session;
use crate::statement::Statement;

/// The most bytes of a payload, and of a channel's name.
const BYTES_MAX: usize = 8_000;
/// The most notifications that a transaction holds until it is committed.
const HELD_MAX: usize = 65_536;

/// A statement about channels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelStatement {
    /// Be told what is said on a channel: `LISTEN channel`.
    Listen(String),
    /// No longer; of all channels without a name: `UNLISTEN channel`, `UNLISTEN *`.
    Unlisten(Option<String>),
    /// Tell the listeners: `NOTIFY channel`, `NOTIFY channel, 'payload'`.
    Notify {
        /// The channel.
        channel: String,
        /// What is said.
        payload: String,
    },
}

/// Reads a statement about a channel; `None` for anything else.
pub(crate) fn convert(statement: &ast::Statement) -> crate::Result<Option<Statement>> {
    let found = match statement {
        ast::Statement::LISTEN { channel } => ChannelStatement::Listen(channel.value.clone()),
        ast::Statement::UNLISTEN { channel } if channel.value == "*" => {
            ChannelStatement::Unlisten(None)
        }
        ast::Statement::UNLISTEN { channel } => {
            ChannelStatement::Unlisten(Some(channel.value.clone()))
        }
        ast::Statement::NOTIFY { channel, payload } => ChannelStatement::Notify {
            channel: channel.value.clone(),
            payload: payload.clone().unwrap_or_default(),
        },
        _ => return Ok(None),
    };
    if let ChannelStatement::Notify { channel, payload } = &found
        && channel.len() + payload.len() > BYTES_MAX
    {
        let message =
            format!("NOTIFY: expected at most {BYTES_MAX} bytes, found {}", payload.len());
        return Err(crate::Error::invalid(message));
    }
    Ok(Some(Statement::Channel(found)))
}

/// What a statement does where no session is.
pub(crate) fn run(database: &Database, statement: &ChannelStatement) -> Result<Outcome> {
    match statement {
        ChannelStatement::Notify { channel, payload } => {
            Ok(told(database.notify(channel.as_bytes(), payload.as_bytes())))
        }
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            "LISTEN and UNLISTEN are about a session, which is told what others say",
        )),
    }
}

/// What `NOTIFY` in a transaction without a session is refused with.
pub(crate) const OUTSIDE_ONLY: &str = "NOTIFY, LISTEN and UNLISTEN in a transaction need a \
                                       session, which tells others at its COMMIT";

fn told(listeners: usize) -> Outcome {
    let s = if listeners == 1 { "" } else { "s" };
    Outcome::Done(format!("told {listeners} listener{s}"))
}

impl Session {
    pub(crate) fn run_channel(&mut self, statement: &ChannelStatement) -> Result<Outcome> {
        let done = |what: String| Ok(Outcome::Done(what));
        match statement {
            ChannelStatement::Listen(channel) => {
                let database = self.database().clone();
                let listener = self.listener.get_or_insert_with(|| database.listener(None));
                listener.listen(channel.as_bytes());
                done(format!("listening to {channel}"))
            }
            ChannelStatement::Unlisten(None) => {
                self.listener = None;
                done("listening to nothing".to_owned())
            }
            ChannelStatement::Unlisten(Some(channel)) => {
                if let Some(listener) = &mut self.listener {
                    listener.unlisten(channel.as_bytes());
                }
                done(format!("not listening to {channel}"))
            }
            ChannelStatement::Notify { channel, payload } => {
                let Some(open) = &mut self.open else { return run(self.database(), statement) };
                let said = (channel.clone(), payload.clone());
                if open.said.len() >= HELD_MAX {
                    let message = format!("NOTIFY: at most {HELD_MAX} in a transaction");
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                // What is said twice is told once.
                if !open.said.contains(&said) {
                    open.said.push(said);
                }
                done(format!("{channel} is told at COMMIT"))
            }
        }
    }

    /// What was said on the channels that it listens to, since it was asked last. What is said
    /// while more than 4 MiB wait is lost: see [`Session::has_lost_notifications`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let db = esker::Options::new().memory()?;
    /// let mut session = esker_sql::Session::new(&db);
    /// session.sql("LISTEN stock", ())?;
    /// let mut other = esker_sql::Session::new(&db);
    /// other.sql("BEGIN", ())?;
    /// other.sql("NOTIFY stock, 'bolt'", ())?;
    /// assert!(session.notifications().is_empty());
    /// other.sql("COMMIT", ())?;
    /// assert_eq!(&*session.notifications()[0].payload, b"bolt");
    /// # Ok(())
    /// # }
    /// ```
    pub fn notifications(&mut self) -> Vec<Notification> {
        let listener = self.listener.iter_mut();
        listener.flat_map(|listener| std::iter::from_fn(|| listener.try_next())).collect()
    }

    /// Whether some was lost since it was asked last.
    pub fn has_lost_notifications(&mut self) -> bool {
        self.listener.as_mut().is_some_and(esker::Listener::take_overrun)
    }
}
