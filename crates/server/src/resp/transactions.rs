//! MULTI, EXEC, DISCARD, WATCH: several commands in one commit.
//!
//! The commands run in a transaction of the database; when others have changed what it changes,
//! they run again. One that is watched for begins with WATCH, and is not run again: EXEC then says
//! that nothing was done.

use std::collections::BTreeSet;

use esker::{Error, ErrorKind, Transaction};

use super::call::{Call, Failure, Outcome};
use super::protocol::{Arguments, integer};
use super::state::State;
use super::table;

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

pub(super) fn watch(call: &mut Call<'_>) -> Outcome {
    const WATCHED_MAX: usize = 10_000;
    if call.state.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    if call.state.watched.len() + call.rest(1).len() > WATCHED_MAX {
        return Err(format!("ERR more than {WATCHED_MAX} keys to watch").into());
    }
    let bytes: usize = call.rest(1).iter().map(|key| key.len()).sum();
    if call.state.watched_bytes() + bytes > call.state.request_bytes_max {
        return Err("ERR too many bytes of keys to watch".into());
    }
    call.view()?;
    // The transaction is to see the bucket, should it be made for what follows.
    let _ = call.bucket_to_put();
    if call.state.watching.is_none() {
        let transaction = call.session()?.database().begin()?;
        call.state.watching = Some(transaction);
    }
    let database = call.state.database;
    let keys = call.rest(1).iter().map(|key| (database, key.to_vec()));
    call.state.watched.extend(keys);
    call.reply.ok();
    Ok(())
}

pub(super) fn unwatch(call: &mut Call<'_>) -> Outcome {
    call.state.watching = None;
    call.state.watched.clear();
    call.reply.ok();
    Ok(())
}

pub(super) fn exec(call: &mut Call<'_>) -> Outcome {
    let Some(queue) = call.state.queue.take() else {
        return Err("ERR EXEC without MULTI".into());
    };
    let watching = call.state.watching.take();
    let watched = std::mem::take(&mut call.state.watched);
    if queue.is_refused {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(text.into());
    }
    make_buckets(call, &queue.commands)?;
    let Some(transaction) = watching else { return repeated(call, &queue.commands) };
    let names = call.state.buckets.clone();
    let name = |database: usize| names.get(database).map_or("", String::as_str);
    for (database, key) in &watched {
        // Noted as read: the commit fails when others have changed it since.
        match transaction.bucket(name(*database)) {
            Ok(bucket) => drop(bucket.get_for_update(key)?),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e.into()),
        }
    }
    let before = call.state.database;
    let done = run(call.state, &queue.commands, &transaction);
    match done.and_then(|out| transaction.commit().map(|_| out)) {
        Ok(out) => call.reply.out.extend_from_slice(&out),
        Err(e) if e.kind() == ErrorKind::Conflict => {
            call.state.database = before;
            call.reply.null_array();
        }
        Err(e) => return Err(e.into()),
    }
    Ok(())
}

/// Runs commands until nobody comes between.
fn repeated(call: &mut Call<'_>, commands: &[Arguments<'static>]) -> Outcome {
    let database = call.session()?.database().clone();
    let before = call.state.database;
    let out = database.transact(|transaction| {
        call.state.database = before;
        run(call.state, commands, transaction)
    });
    call.reply.out.extend_from_slice(&out?);
    Ok(())
}

/// Makes the buckets that are put into, which cannot be done within a transaction.
fn make_buckets(call: &Call<'_>, commands: &[Arguments<'static>]) -> Outcome {
    let (mut at, mut wanted) = (call.state.database, BTreeSet::new());
    for arguments in commands {
        let Some((_, command)) = arguments.first().and_then(|name| table::find(name)) else {
            continue;
        };
        if command.name == "select" {
            let to = arguments.get(1).and_then(|to| integer(to));
            at = to.and_then(|to| usize::try_from(to).ok()).unwrap_or(at);
        } else if command.is_put() {
            wanted.insert(at);
        }
    }
    for database in wanted {
        if let Some(name) = call.state.buckets.get(database) {
            // Whoever may not is told by the command.
            let _ = call.session()?.bucket_to_put(name);
        }
    }
    Ok(())
}

/// Runs commands, one after another; those that fail do not keep others from being done.
fn run(
    state: &mut State,
    commands: &[Arguments<'static>],
    transaction: &Transaction,
) -> Result<Vec<u8>, Error> {
    let mut kept = std::mem::take(&mut state.reply);
    // The shares of an attempt that others came between.
    state.held = None;
    state.is_within_exec = true;
    state.reply.is_third = kept.is_third;
    state.reply.array(commands.len());
    let mut ended = Ok(());
    for arguments in commands {
        let start = state.reply.out.len();
        let Some((_, command)) = arguments.first().and_then(|name| table::find(name)) else {
            continue;
        };
        match state.perform(command, arguments, Some(transaction)) {
            Ok(()) => {}
            // What was cancelled or took too long may have been done in part.
            Err(Failure::Engine(e))
                if matches!(
                    e.kind(),
                    ErrorKind::Conflict | ErrorKind::TimedOut | ErrorKind::Cancelled
                ) =>
            {
                ended = Err(e);
                break;
            }
            Err(failure) => {
                state.reply.out.truncate(start);
                state.reply.error(&failure.into_told().1);
            }
        }
        let is_too_large = state.reply.out.len() > super::call::ANSWER_BYTES_MAX;
        let covered = state.cover();
        if let (true, _) | (_, Err(_)) = (is_too_large, &covered) {
            let why = covered.err().map_or("the answers are too large".into(), |e| e.to_string());
            ended = Err(Error::new(ErrorKind::OverBudget, why));
            break;
        }
    }
    state.is_within_exec = false;
    kept.is_third = state.reply.is_third;
    let out = std::mem::replace(&mut state.reply, kept).out;
    ended.map(|()| out)
}
