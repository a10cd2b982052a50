//! Writes that have come together: one commit for all of them.
//!
//! From a write on, commands that read or write keys of the selected bucket are requests that the
//! database [coalesces](esker::Database::coalesce_requests), in order, as far as they have come:
//! each sees what those before it wrote. One that is refused changes nothing and is answered by its
//! own error. Plain `SET`s, which read nothing, are a batch, which others who set the same keys do
//! not disturb.

use esker::{Error, Requests, Transaction};
use tokio::time::Instant;

use super::call::Failure;
use super::protocol::{Arguments, Parser};
use super::state::State;
use super::table::{self, Command};
use super::turn::is_long;
use crate::Code;
use crate::session::Level;

/// The most commands of one commit.
const COMMANDS_MAX: usize = 1_024;
/// The most bytes of their arguments.
const BYTES_MAX: usize = 1 << 20;

/// A command that has come.
struct Gathered<'i> {
    position: usize,
    command: &'static Command,
    arguments: Arguments<'i>,
    /// Where it ends in the input.
    end: usize,
}

impl Gathered<'_> {
    /// True for `SET key value`: what it does depends on nothing.
    fn is_blind(&self) -> bool {
        self.command.name == "set" && self.arguments.len() == 3
    }
}

/// Commands that are done together, for the database.
struct Pipeline<'s, 'i> {
    state: &'s mut State,
    gathered: Vec<Gathered<'i>>,
    /// All of them are plain `SET`s.
    is_blind: bool,
    /// How many were counted as requests.
    admitted: usize,
    /// What was answered before.
    start: usize,
    /// Of those that were done, where their answers end, and the nanoseconds that they took.
    done: Vec<(usize, u64)>,
}

impl State {
    /// Does the commands at the start of the input in one commit. Returns how many of its bytes
    /// they are: 0 when there are not two that can share one.
    pub fn coalesce(&mut self, input: &[u8]) -> usize {
        let mut gathered = self.gather(input);
        if gathered.len() < 2 {
            return 0;
        }
        let blind = gathered.iter().take_while(|item| item.is_blind()).count();
        if blind > 1 {
            gathered.truncate(blind);
        }
        let is_ready = self.is_ready_for(&gathered, blind > 1);
        let database = self.session.as_ref().map(|session| session.database().clone());
        let Some(database) = database.filter(|_| is_ready) else {
            return self.answer_each(&gathered);
        };
        if blind <= 1 {
            // Each asks for its own.
            self.release_room();
        }
        let (start, admitted, done) = (self.reply.out.len(), 0, Vec::new());
        let mut all =
            Pipeline { state: self, gathered, is_blind: blind > 1, admitted, start, done };
        let results = database.coalesce_requests(&mut all);
        let end = all.answer(results);
        let gathered = all.gathered;
        self.release_room();
        self.note_pending();
        // The first is not allowed, and hardly any other.
        end.unwrap_or_else(|| self.answer_each(&gathered))
    }

    /// Does commands one by one. Returns how many bytes of the input they are.
    fn answer_each(&mut self, gathered: &[Gathered<'_>]) -> usize {
        let mut end = 0;
        for item in gathered {
            if self.is_full() {
                break;
            }
            self.is_exhausted = false;
            self.answer(&item.arguments);
            if self.is_exhausted {
                break;
            }
            end = item.end;
        }
        end
    }

    fn gather<'i>(&self, input: &'i [u8]) -> Vec<Gathered<'i>> {
        let (mut gathered, mut end) = (Vec::new(), 0);
        let mut parser = Parser::default();
        if self.queue.is_some() || self.session.is_none() {
            return gathered;
        }
        while gathered.len() < COMMANDS_MAX && end < BYTES_MAX {
            let rest = input.get(end..).unwrap_or_default();
            let Ok(Some((arguments, length))) = parser.next(rest, self.request_bytes_max) else {
                break;
            };
            let found = table::asked(&arguments);
            let Some((position, command)) = found else { break };
            let shares =
                if gathered.is_empty() { command.is_write() } else { command.is_of_keys() };
            if !shares || !command.takes(arguments.len()) || is_long(Some(command), &arguments) {
                break;
            }
            end += length;
            gathered.push(Gathered { position, command, arguments, end });
        }
        gathered
    }

    /// True when there is a bucket, which is made for plain `SET`s, and room for all: limits count
    /// what is committed.
    fn is_ready_for(&self, gathered: &[Gathered<'_>], is_blind: bool) -> bool {
        let Some(session) = &self.session else { return false };
        if !gathered.iter().any(|item| item.command.is_put()) {
            return true;
        }
        let entries = gathered.iter().map(|item| item.arguments.len()).sum();
        let bytes = gathered.last().map_or(0, |item| item.end);
        let bucket = || match is_blind {
            true => session.own_bucket_to_put(self.bucket_name()),
            false => session.own_bucket(Level::Write, self.bucket_name()),
        };
        session.reserve_quota(entries, bytes).is_ok() && bucket().is_ok()
    }
}

impl Requests for Pipeline<'_, '_> {
    /// The code of the error that was answered.
    type Answer = Option<Code>;

    fn count(&self) -> usize {
        self.gathered.len()
    }

    /// Plain `SET`s are a batch.
    fn at_once(&mut self) -> Option<esker::Result<Vec<Option<Code>>>> {
        let session = self.state.session.as_ref().filter(|_| self.is_blind)?;
        let bucket = session.own_bucket_to_put(self.state.bucket_name()).ok()?;
        self.state.has_written = true;
        let mut batch = bucket.batch();
        for at in 0..self.gathered.len() {
            let since = Instant::now();
            if !self.is_admitted(at) {
                break;
            }
            let [_, key, value] = self.gathered.get(at)?.arguments.as_slice() else { break };
            if let Err(e) = batch.put(&bucket, key, value) {
                return Some(Err(e));
            }
            self.state.reply.ok();
            self.note_done(since);
        }
        let committed = if batch.is_empty() { Ok(()) } else { batch.commit() };
        Some(committed.map(|()| vec![None; self.done.len()]))
    }

    fn alone(&mut self, at: usize) -> Option<esker::Result<Option<Option<Code>>>> {
        if !self.is_blind {
            return None;
        }
        // What was reserved for all of them, or for the one before.
        self.state.release_room();
        Some(self.run_in(None, at))
    }

    fn run(&mut self, at: usize, transaction: &Transaction) -> esker::Result<Option<Option<Code>>> {
        self.run_in(Some(transaction), at)
    }
}

impl Pipeline<'_, '_> {
    fn run_in(
        &mut self,
        transaction: Option<&Transaction>,
        at: usize,
    ) -> esker::Result<Option<Option<Code>>> {
        let begun = self.end_of_answers();
        // One that was refused before it began has no answer here.
        self.done.resize(at, (begun, 0));
        let begun = self.end_of_answers();
        self.state.reply.out.truncate(begun);
        // What is not done here comes again, and gets its error then.
        if self.state.is_full() || !self.is_admitted(at) {
            return Ok(None);
        }
        let Some(item) = self.gathered.get(at) else { return Ok(None) };
        let since = Instant::now();
        self.state.is_exhausted = false;
        let code = match self.state.run(item.command, &item.arguments, transaction) {
            Ok(()) => None,
            Err(_) if self.state.is_exhausted => {
                self.state.reply.out.truncate(begun);
                return Ok(None);
            }
            Err(Failure::Engine(e)) => {
                self.state.reply.out.truncate(begun);
                self.note_done(since);
                return Err(e);
            }
            Err(failure) => {
                let (code, text) = failure.into_told();
                self.state.reply.out.truncate(begun);
                self.state.reply.error(&text);
                Some(code)
            }
        };
        self.note_done(since);
        Ok(Some(code))
    }

    fn end_of_answers(&self) -> usize {
        self.done.last().map_or(self.start, |(end, _)| *end)
    }

    fn note_done(&mut self, since: Instant) {
        let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.done.push((self.state.reply.out.len(), took));
    }

    /// Counts a command as a request, once.
    fn is_admitted(&mut self, at: usize) -> bool {
        if at >= self.admitted {
            let session = self.state.session.as_ref();
            self.admitted += usize::from(session.is_some_and(|session| session.check_in().is_ok()));
        }
        at < self.admitted
    }

    /// Answers the commands by their results: the answers that lie there, but for those of commands
    /// that the database refused, or of all. Returns where the last of them ends in the input.
    fn answer(
        &mut self,
        results: esker::Result<Vec<esker::Result<Option<Code>>>>,
    ) -> Option<usize> {
        let results = results.unwrap_or_else(|e| {
            let same = |_: &(usize, u64)| Err(Error::new(e.kind(), e.to_string()));
            self.done.iter().map(same).collect()
        });
        let written = self.end_of_answers();
        self.done.resize(results.len(), (written, 0));
        self.state.reply.out.truncate(written);
        let has_failed = results.iter().any(Result::is_err);
        let written = match has_failed {
            true => self.state.reply.out.split_off(self.start),
            false => Vec::new(),
        };
        let (mut from, mut end) = (0, None);
        for ((item, result), (to, took)) in self.gathered.iter().zip(results).zip(&self.done) {
            let to = to - self.start;
            let code = result.unwrap_or_else(|e| {
                let (code, text) = Failure::Engine(e).into_told();
                self.state.reply.error(&text);
                from = to;
                Some(code)
            });
            if has_failed {
                self.state.reply.out.extend_from_slice(written.get(from..to).unwrap_or_default());
            }
            from = to;
            self.state.count((item.position, &item.arguments), code, *took);
            end = Some(item.end);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::framed;
    use super::*;
    use crate::session::Session;

    fn answers(state: &mut State, commands: &[String]) -> String {
        let out = state.answer_all(commands.concat().as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }

    fn frames(commands: &[&str]) -> Vec<String> {
        commands.iter().map(|command| framed(command)).collect()
    }

    #[test]
    fn what_the_database_refuses_is_refused_alone() {
        let database = esker::Options::new().memory().unwrap();
        let mut state = State::alone(Session::new(&database));
        answers(&mut state, &frames(&["SET n 1"]));
        let long = "k".repeat(70_000);
        let (before, refused) = (database.published_commit(), format!("APPEND {long} x"));
        let commands = ["INCR n", &refused, "INCR n", "HGET n x", &refused, "GET n", "SET m 7"];
        let told = answers(&mut state, &frames(&commands));
        let told: Vec<&str> = told.split("\r\n").collect();
        assert_eq!([told[0], told[2]], [":2", ":3"]);
        assert!(told[1].starts_with("-ERR") && told[1].contains("70000 bytes"), "{told:?}");
        assert!(told[3].starts_with("-ERR unknown command"), "{told:?}");
        // A pipeline ends with a command that is none of its kind.
        assert_eq!(database.published_commit(), before + 2);
        assert!(told.ends_with(&["$1", "3", "+OK", ""]), "{told:?}");
    }

    /// Where one of a batch is refused, they are done one after another.
    #[test]
    fn plain_sets_of_which_one_is_refused() {
        let database = esker::Options::new().memory().unwrap();
        let mut state = State::alone(Session::new(&database));
        answers(&mut state, &frames(&["SET n 1"]));
        let (before, long) = (database.published_commit(), "k".repeat(70_000));
        let refused = format!("SET {long} x");
        let told = answers(&mut state, &frames(&["SET a 1", &refused, "SET b 2", "SET a 3"]));
        let told: Vec<&str> = told.split("\r\n").collect();
        assert_eq!([told[0], told[2], told[3]], ["+OK"; 3]);
        assert!(told[1].starts_with("-ERR") && told[1].contains("70000 bytes"), "{told:?}");
        assert_eq!(database.published_commit(), before + 3);
        let told = answers(&mut state, &frames(&["SET a 1", "SET b 2", "SET c 3", "GET a"]));
        assert_eq!(told, "+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n");
        assert_eq!(database.published_commit(), before + 4);
    }
}
