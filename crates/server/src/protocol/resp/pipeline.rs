//! Writes that have come together: one commit for all of them.
//!
//! From a write on, commands that read or write keys of the selected bucket are done in one
//! transaction, in order, as far as they have come: each sees what those before it wrote. One that
//! is refused changes nothing and is answered by its own error. Plain `SET`s, which read nothing,
//! are a batch, which others who set the same keys do not disturb. Where the database refuses, be
//! it one command or the commit, nothing of it was done, and its commands are done one by one, as
//! if they had come alone.

use esker::{Error, ErrorKind};
use tokio::time::Instant;

use super::call::Failure;
use super::protocol::{Arguments, Parser};
use super::state::{Pending, State};
use super::table::{self, Command};
use super::turn::is_long;
use crate::Code;

/// The most commands of one commit.
const COMMANDS_MAX: usize = 1_024;
/// The most bytes of their arguments.
const BYTES_MAX: usize = 1 << 20;
/// How often they are tried together when others come between.
const ATTEMPTS_MAX: usize = 2;

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

/// The commands of a transaction that have been done.
#[derive(Default)]
struct Progress {
    /// The error of each, and its nanoseconds.
    outcomes: Vec<(Option<Code>, u64)>,
    /// How many were counted as requests.
    admitted: usize,
    attempts: usize,
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
        let start = self.reply.out.len();
        let mut progress = Progress::default();
        if !self.is_ready_for(&gathered) {
            return self.do_apart(&gathered, &progress, None);
        }
        let done = match blind > 1 {
            true => self.put_together(&gathered, &mut progress),
            false => {
                // Each asks for its own.
                self.release_room();
                self.do_together(&gathered, &mut progress)
            }
        };
        self.release_room();
        if let Err(e) = done {
            self.reply.out.truncate(start);
            return self.do_apart(&gathered, &progress, Some(&e));
        }
        for (item, (code, took)) in gathered.iter().zip(&progress.outcomes) {
            self.count((item.position, &item.arguments), *code, *took);
        }
        let last = progress.outcomes.len().checked_sub(1).and_then(|last| gathered.get(last));
        match last {
            Some(item) => item.end,
            // The first is not allowed, and hardly any other.
            None => self.do_apart(&gathered, &progress, None),
        }
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

    /// True when there is a bucket, and room for all: limits count what is committed.
    fn is_ready_for(&self, gathered: &[Gathered<'_>]) -> bool {
        let Some(session) = &self.session else { return false };
        if !gathered.iter().any(|item| item.command.is_put()) {
            return true;
        }
        let entries = gathered.iter().map(|item| item.arguments.len()).sum();
        let bytes = gathered.last().map_or(0, |item| item.end);
        session.reserve_quota(entries, bytes).is_ok()
            && session.own_bucket_to_put(self.bucket_name()).is_ok()
    }

    /// Does plain `SET`s in one batch.
    fn put_together(
        &mut self,
        gathered: &[Gathered<'_>],
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let Some(session) = &self.session else { return Ok(()) };
        let database = session.database().clone();
        self.has_written = true;
        let Ok(bucket) = session.own_bucket_to_put(self.bucket_name()) else {
            return Err(Error::new(ErrorKind::NotFound, "the bucket may not be put into"));
        };
        let (done, commit) = database.without_waiting(|| {
            let mut batch = database.batch();
            for item in gathered {
                if !self.is_admitted(progress) {
                    break;
                }
                let since = Instant::now();
                let [_, key, value] = item.arguments.as_slice() else { break };
                batch.put(&bucket, key, value)?;
                let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                progress.outcomes.push((None, took));
            }
            if batch.is_empty() { Ok(()) } else { batch.commit().map(drop) }
        });
        if let (Some(commit), Some(durability)) = (commit, self.durability.clone()) {
            self.note(Pending { database, durability, commit });
        }
        if done.is_ok() {
            progress.outcomes.iter().for_each(|_| self.reply.ok());
        }
        done
    }

    fn do_together(
        &mut self,
        gathered: &[Gathered<'_>],
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let Some(session) = &self.session else { return Ok(()) };
        let database = session.database().clone();
        let start = self.reply.out.len();
        let (done, commit) = database.without_waiting(|| {
            database.transact(|transaction| {
                progress.attempts += 1;
                if progress.attempts > ATTEMPTS_MAX {
                    return Err(Error::new(ErrorKind::Cancelled, "others were quicker"));
                }
                self.reply.out.truncate(start);
                progress.outcomes.clear();
                for item in gathered {
                    let begun = self.reply.out.len();
                    // What is not done here comes again, and gets its error then.
                    if self.is_full() || !self.is_admitted(progress) {
                        break;
                    }
                    let since = Instant::now();
                    let code = match self.run(item.command, &item.arguments, Some(transaction)) {
                        Ok(()) => None,
                        Err(Failure::Engine(e)) => return Err(e),
                        Err(_) if self.is_exhausted => {
                            self.reply.out.truncate(begun);
                            break;
                        }
                        Err(failure) => {
                            let (code, text) = failure.into_told();
                            self.reply.out.truncate(begun);
                            self.reply.error(&text);
                            Some(code)
                        }
                    };
                    let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    progress.outcomes.push((code, took));
                }
                Ok(())
            })
        });
        if let (Some(commit), Some(durability)) = (commit, self.durability.clone()) {
            self.note(Pending { database, durability, commit });
        }
        done
    }

    /// Counts the next command as a request, once.
    fn is_admitted(&self, progress: &mut Progress) -> bool {
        if progress.outcomes.len() < progress.admitted {
            return true;
        }
        let admitted = self.session.as_ref().is_some_and(|session| session.check_in().is_ok());
        progress.admitted += usize::from(admitted);
        admitted
    }

    /// Does them one by one, as far as there is room for their answers. Returns how many bytes of
    /// the input they are.
    fn do_apart(
        &mut self,
        gathered: &[Gathered<'_>],
        progress: &Progress,
        cause: Option<&Error>,
    ) -> usize {
        use ErrorKind::{Io, OutcomeUnknown, Poisoned};
        // It is unknown then whether they were done: doing them again might do them twice.
        let unknown = cause.filter(|e| matches!(e.kind(), OutcomeUnknown | Poisoned | Io));
        let mut end = 0;
        for (index, item) in gathered.iter().enumerate() {
            if self.is_full() {
                break;
            }
            self.is_exhausted = false;
            if index >= progress.admitted {
                self.answer(&item.arguments);
                if self.is_exhausted {
                    break;
                }
                end = item.end;
                continue;
            }
            let (since, begun) = (Instant::now(), self.reply.out.len());
            let outcome = match unknown {
                Some(e) => Err(Failure::Engine(Error::new(e.kind(), e.to_string()))),
                None => self.perform(item.command, &item.arguments, None),
            };
            self.release_room();
            if self.is_exhausted {
                self.reply.out.truncate(begun);
                break;
            }
            end = item.end;
            let failed = outcome.err().map(Failure::into_told);
            if let Some((_, text)) = &failed {
                self.reply.out.truncate(begun);
                self.reply.error(text);
            }
            let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.count((item.position, &item.arguments), failed.map(|(code, _)| code), took);
        }
        end
    }
}
