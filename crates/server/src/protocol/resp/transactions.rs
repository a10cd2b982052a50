//! MULTI, EXEC, DISCARD: several commands in one commit.
//!
//! The commands run in a transaction of the database, which begins with EXEC; when others have
//! changed what it changes, they run again, unless a key that is watched is not as it was: EXEC
//! then says that nothing was done.

use esker::{Database, Error, ErrorKind, Transaction};
use esker_log::sabotage::Bug;

use super::call::{ANSWER_BYTES_MAX, Call, Failure, Outcome};
use super::protocol::Arguments;
use super::state::{Settings, State};
use super::table;
use super::watch::Watching;

pub(super) fn multi(call: &mut Call<'_>) -> Outcome {
    if call.state.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.state.queue = Some(super::state::Queue::default());
    call.reply.ok();
    Ok(())
}

pub(super) fn discard(call: &mut Call<'_>) -> Outcome {
    if call.state.queue.is_none() {
        return Err("ERR DISCARD without MULTI".into());
    }
    call.state.forget();
    call.reply.ok();
    Ok(())
}

pub(super) fn exec(call: &mut Call<'_>) -> Outcome {
    let Some(queue) = call.state.queue.take() else {
        return Err("ERR EXEC without MULTI".into());
    };
    let watching = call.state.watching.take();
    if queue.is_refused {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(text.into());
    }
    let database = call.session()?.database().clone();
    // The commands answer where EXEC does, in the form that is chosen.
    std::mem::swap(&mut call.state.reply, call.reply);
    let attempt = Attempt::begin(call.state, &queue.commands, watching.as_ref());
    let done = attempt.run(call.state, &database);
    std::mem::swap(&mut call.state.reply, call.reply);
    done
}

/// Commands that run again until no other commit conflicts.
struct Attempt<'q> {
    commands: &'q [Arguments<'static>],
    watching: Option<&'q Watching>,
    /// How the connection was before.
    settings: Settings,
    /// How much was answered before, and published.
    start: usize,
    said: usize,
}

impl<'q> Attempt<'q> {
    fn begin(
        state: &State,
        commands: &'q [Arguments<'static>],
        watching: Option<&'q Watching>,
    ) -> Self {
        let (settings, start) = (state.settings(), state.reply.out.len());
        Self { commands, watching, settings, start, said: state.said.len() }
    }

    /// As if no command had been done.
    fn forget(&self, state: &mut State) {
        state.reply.out.truncate(self.start);
        state.said.truncate(self.said);
        state.adopt(&self.settings);
        state.next_seat = None;
        // The shares of an attempt that others came between.
        state.held = None;
    }

    fn run(&self, state: &mut State, database: &Database) -> Outcome {
        let mut is_null = false;
        let done = database.transact(|transaction| {
            self.forget(state);
            let within = match self.watching {
                Some(watching) if Bug::ExecByTimeOfWatch.is_planted() => watching.first(),
                _ => transaction,
            };
            is_null = !self.is_as_watched(within, &state.buckets)?;
            match is_null {
                // Nothing is to be tried again.
                true => Err(Error::new(ErrorKind::Cancelled, "a key that is watched has changed")),
                false => run_all(state, self, within),
            }
        });
        match done {
            Ok(()) => {
                if let Some(admitted) = state.next_seat.take() {
                    state.active_session(admitted);
                }
                Ok(())
            }
            Err(_) if is_null => {
                self.forget(state);
                state.reply.null_array();
                Ok(())
            }
            Err(e) => {
                self.forget(state);
                Err(e.into())
            }
        }
    }

    /// Whether the keys that are watched are as they were. The commit looks again.
    fn is_as_watched(&self, transaction: &Transaction, buckets: &[String]) -> esker::Result<bool> {
        match self.watching {
            Some(watching) if !Bug::WatchNotValidated.is_planted() => {
                watching.holds_in(transaction, buckets)
            }
            _ => Ok(true),
        }
    }
}

/// Runs commands, one after another; those that fail do not keep others from being done.
fn run_all(
    state: &mut State,
    attempt: &Attempt<'_>,
    transaction: &Transaction,
) -> Result<(), Error> {
    state.is_within_exec = true;
    state.reply.array(attempt.commands.len());
    let ended = attempt
        .commands
        .iter()
        .try_for_each(|arguments| run_one(state, arguments, attempt.start, transaction));
    state.is_within_exec = false;
    ended
}

fn run_one(
    state: &mut State,
    arguments: &Arguments<'static>,
    answers_start: usize,
    transaction: &Transaction,
) -> Result<(), Error> {
    let start = state.reply.out.len();
    let Some((_, command)) = table::asked(arguments) else { return Ok(()) };
    // What a command changed before it failed is taken back, and the others go on.
    match transaction.all_or_nothing(|within| state.perform(command, arguments, Some(within))) {
        Ok(()) => {}
        // What was cancelled or took too long may have been done in part.
        Err(Failure::Engine(e))
            if matches!(
                e.kind(),
                ErrorKind::Conflict | ErrorKind::TimedOut | ErrorKind::Cancelled
            ) =>
        {
            return Err(e);
        }
        Err(failure) => {
            state.reply.out.truncate(start);
            state.reply.error(&failure.into_told().1);
        }
    }
    if state.reply.out.len() - answers_start > ANSWER_BYTES_MAX {
        return Err(Error::new(ErrorKind::OverBudget, "the answers are too large"));
    }
    state.cover().map_err(|e| Error::new(ErrorKind::OverBudget, e.to_string()))
}
