//! Doing what a client sends, command by command.

use std::borrow::Cow;
use std::time::Duration;

use esker::Transaction;
use tokio::time::Instant;

use super::call::{Call, Failure};
use super::protocol::Arguments;
use super::state::{NO_AUTHENTICATION, State, StepOutcome};
use super::table::{self, Command};
use crate::Code;
use crate::resources::budget::SMALL_BYTES;
use crate::session::RequestSummary;

/// Arguments of a command that is done at once.
const ARGUMENTS_AT_ONCE: usize = 128;

impl State {
    /// Answers commands one after another.
    pub fn answer_all(&mut self, input: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(input);
        let mut out = Vec::new();
        loop {
            let turn = self.turn(true);
            out.append(&mut self.reply.out);
            self.tell_said();
            if turn != StepOutcome::Full {
                return out;
            }
        }
    }

    /// Does the commands that have come, as far as it goes.
    pub fn turn(&mut self, may_wait: bool) -> StepOutcome {
        let input = std::mem::take(&mut self.input);
        let mut parser = std::mem::take(&mut self.parser);
        let mut read_to = 0;
        self.may_wait = may_wait;
        let shared = self.shared.as_ref().filter(|_| may_wait);
        if let Some(shared) = shared {
            self.wait_until = Some(Instant::now() + shared.config.stall_timeout);
        }
        // What has to wait waits on another thread, and behind the answers before it.
        let waits = if may_wait { StepOutcome::Full } else { StepOutcome::Long };
        let turn = loop {
            if self.is_closing {
                break StepOutcome::Close;
            }
            if self.is_full() {
                break StepOutcome::Full;
            }
            let most = self.request_bytes_max;
            let most = if self.session.is_some() { most } else { most.min(SMALL_BYTES) };
            match parser.next(input.get(read_to..).unwrap_or_default(), most) {
                Ok(None) => break StepOutcome::Incomplete,
                Ok(Some((arguments, length))) => {
                    let found = table::asked(&arguments);
                    let command = found.map(|(_, command)| command);
                    if is_long(command, &arguments) && (!may_wait || self.held.is_some()) {
                        parser.restart();
                        break waits;
                    }
                    let rest = input.get(read_to..).unwrap_or_default();
                    // With others behind it.
                    let mut done = match command.filter(|_| rest.len() > length) {
                        Some(command) if command.is_write() => self.coalesce(rest),
                        Some(command) if command.name == "get" => self.read_together(rest),
                        _ => 0,
                    };
                    if done == 0 {
                        self.is_exhausted = false;
                        if !arguments.is_empty() {
                            self.answer(&arguments);
                        }
                        if self.is_exhausted {
                            parser.restart();
                            break waits;
                        }
                        done = length;
                    }
                    read_to += done;
                }
                Err(text) => {
                    self.reply.error(&format!("ERR Protocol error: {text}"));
                    self.is_closing = true;
                }
            }
        };
        let is_watching = self.watching.is_some();
        if let Some(session) = &mut self.session {
            session.note_transaction(is_watching);
        }
        self.input = input;
        self.input.drain(..read_to);
        self.parser = parser;
        turn
    }

    pub fn answer(&mut self, arguments: &Arguments<'_>) {
        let since = Instant::now();
        let start = self.reply.out.len();
        let found = table::asked(arguments);
        let outcome = match found {
            Some((_, command)) => self.admit(command, arguments),
            None => Err(self.unknown(arguments).into()),
        };
        self.release_room();
        if self.is_exhausted {
            self.reply.out.truncate(start);
            return;
        }
        let failed = outcome.err().map(Failure::into_told);
        if let Some((_, text)) = &failed {
            self.reply.out.truncate(start);
            self.reply.error(text);
            self.spoil(found.map_or("", |(_, command)| command.name), arguments.len());
        }
        if let Some((position, _)) = found {
            let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.count((position, arguments), failed.map(|(code, _)| code), took);
        }
    }

    /// Notes that a command was refused: what is queued is not done then.
    fn spoil(&mut self, command: &str, arguments: usize) {
        match (command, &mut self.queue) {
            // Neither is a part of what is queued.
            ("multi", Some(_)) if arguments == 1 => {}
            ("watch", Some(_)) if arguments > 1 => {}
            // Nothing is left to be done by another.
            ("exec", _) if arguments > 1 => self.forget(),
            (_, Some(queue)) => queue.is_refused = true,
            (_, None) => {}
        }
    }

    /// Counts a command, its error, and its nanoseconds.
    pub fn count(
        &self,
        (position, arguments): (usize, &Arguments<'_>),
        failed: Option<Code>,
        took: u64,
    ) {
        if let Some(session) = &self.session {
            let took = Duration::from_nanos(took);
            session.note(took, failed.is_none(), || match table::COMMANDS.get(position) {
                Some(command) => words(command, arguments),
                None => RequestSummary::Alone("command"),
            });
        }
        if let Some(shared) = &self.shared {
            shared.config.resp_operations.count(position, failed, took);
        }
    }

    fn admit(&mut self, command: &Command, arguments: &Arguments<'_>) -> Result<(), Failure> {
        if !command.takes(arguments.len()) {
            let name = command.name;
            let text = format!("wrong number of arguments for '{name}' command");
            return Err(match name {
                "exec" => format!("EXECABORT Transaction discarded because of: {text}").into(),
                _ => format!("ERR {text}").into(),
            });
        }
        if !command.is_open() {
            let session = self.session.as_ref().ok_or(NO_AUTHENTICATION)?;
            if let Err(e) = session.check_in() {
                if e.code() == Code::Unauthenticated {
                    self.session = None;
                    self.forget();
                }
                // Else what follows MULTI would be done by itself, or wait for an EXEC for ever.
                if e.code() != Code::LimitExceeded || !command.bounds_queue() {
                    return Err(e.into());
                }
            }
        }
        self.refuse_beside_listening(command.name)?;
        if let Some(queue) = &mut self.queue
            && !command.is_about_queue()
        {
            queue.bytes += arguments.iter().map(|argument| argument.len() + 32).sum::<usize>();
            if queue.bytes > self.request_bytes_max {
                return Err("ERR too many commands between MULTI and EXEC".into());
            }
            let owned = |argument: &Cow<'_, [u8]>| Cow::Owned(argument.clone().into_owned());
            queue.commands.push(arguments.iter().map(owned).collect());
            self.reply.simple("QUEUED");
            return Ok(());
        }
        self.perform(command, arguments, None)
    }

    /// Does a command, and notes which commit has to be on the disk before it is answered.
    ///
    /// Buckets are read as they are on the disk. Behind writes that are not there yet, which the
    /// client is to see, a command reads in a transaction, and what that has read is waited for.
    pub fn perform(
        &mut self,
        command: &Command,
        arguments: &[Cow<'_, [u8]>],
        within: Option<&Transaction>,
    ) -> Result<(), Failure> {
        let is_behind = within.is_none() && command.is_read() && !self.pending.is_empty();
        let session = self.session.as_ref().filter(|_| is_behind);
        let outcome = match session.map(|session| session.database().clone()) {
            None => self.run(command, arguments, within),
            Some(database) => {
                let start = self.reply.out.len();
                let read = database.transact(|transaction| {
                    self.reply.out.truncate(start);
                    Ok(self.run(command, arguments, Some(transaction)))
                });
                read.map_err(Failure::from).and_then(|outcome| outcome)
            }
        };
        if within.is_none() {
            self.note_pending();
        }
        outcome
    }

    pub fn run(
        &mut self,
        command: &Command,
        arguments: &[Cow<'_, [u8]>],
        within: Option<&Transaction>,
    ) -> Result<(), Failure> {
        self.has_written |= command.is_write();
        if let Some(session) = &self.session {
            session.answer_in(self.answer_room());
        }
        let session = self.session.as_ref().filter(|_| self.may_wait);
        let _listed = session.and_then(|session| session.list(words(command, arguments)));
        let mut reply = std::mem::take(&mut self.reply);
        let mut call = Call { state: self, arguments, reply: &mut reply, within };
        let outcome = (command.run)(&mut call);
        self.reply = reply;
        if let Some(session) = &self.session {
            let room = session.end_answer();
            self.is_exhausted = outcome.is_err() && room.is_exhausted();
            match (room.into_share(), &mut self.held) {
                (Some(share), Some(held)) if outcome.is_ok() => held.absorb(share),
                (Some(share), held) if outcome.is_ok() => *held = Some(share),
                _ => {}
            }
        }
        outcome
    }

    /// What is said of an unknown command. A browser that was sent here by a page is not
    /// listened to any further.
    fn unknown(&mut self, arguments: &Arguments<'_>) -> String {
        let name = arguments.first().map_or(&[][..], |name| name);
        let of_browsers: [&[u8]; 2] = [b"post", b"host:"];
        if of_browsers.iter().any(|word| name.eq_ignore_ascii_case(word)) {
            self.is_closing = true;
        }
        unknown(arguments)
    }
}

/// A command in a few words: its name and its first key, and nothing of what may be a token.
fn words(command: &Command, arguments: &[Cow<'_, [u8]>]) -> RequestSummary {
    match arguments.get(1) {
        Some(first) if !command.is_open() => RequestSummary::Keys {
            operation: command.name,
            place: shown(first),
            count: arguments.len() - 1,
        },
        _ => RequestSummary::Alone(command.name),
    }
}

/// The beginning of an argument, as text.
fn shown(argument: &[u8]) -> String {
    let text = String::from_utf8_lossy(argument);
    text.chars().take(128).collect()
}

/// True for what may take long, or wait.
pub(super) fn is_long(command: Option<&Command>, arguments: &Arguments<'_>) -> bool {
    arguments.len() > ARGUMENTS_AT_ONCE || command.is_some_and(Command::is_long)
}

/// As Redis says it: with as many arguments as make up a line.
fn unknown(arguments: &Arguments<'_>) -> String {
    const BYTES_MAX: usize = 128;
    let name = arguments.first().map(|name| shown(name)).unwrap_or_default();
    if let (Some(_), Some(word)) = (table::find(name.as_bytes()), arguments.get(1)) {
        let (word, name) = (shown(word), name.to_uppercase());
        return format!("ERR unknown subcommand '{word}'. Try {name} HELP.");
    }
    let mut beginning = String::new();
    for argument in arguments.iter().skip(1) {
        let Some(left) = BYTES_MAX.checked_sub(beginning.len() + 1) else { break };
        let text: String = shown(argument).chars().take(left + 1).collect();
        beginning += &format!("'{text}' ");
    }
    format!("ERR unknown command '{name}', with args beginning with: {beginning}")
}
