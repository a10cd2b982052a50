//! PUBLISH, SUBSCRIBE and their like: what is said on a channel goes to the connections that
//! listen at the moment and is stored nowhere.
//!
//! ```text
//! PUBLISH ─ said ─► the answers before it are on the disk ─► channels of the database ─► inbox
//!                                                                          wakes the connection
//! ```
//!
//! What a client publishes is told once all that it wrote before is on the disk: a listener that
//! wakes finds it there. In the second form of the protocol a connection that listens does nothing
//! else.

use std::sync::Arc;

use esker::{Database, Listener, Notification};
use tokio::sync::Notify;

use super::call::{Call, Outcome};
use super::glob::is_match;
use super::reply::Reply;
use super::state::State;
use crate::session::Level;

/// Bytes of the names of channels and patterns that a connection listens to, at the most.
const NAMES_BYTES_MAX: usize = 1 << 20;
/// Bytes that a name takes beside its text, about.
const NAME_BYTES: usize = 64;

/// What a connection listens to.
pub(super) struct Subscriptions {
    listener: Listener,
    bytes: usize,
}

/// What is told once it is on the disk.
pub(super) struct Said {
    database: Database,
    channel: Vec<u8>,
    payload: Vec<u8>,
}

impl Subscriptions {
    fn new(database: &Database, wake: &Arc<Notify>) -> Self {
        let wake = Arc::clone(wake);
        let listener = database.listener(Some(Box::new(move || wake.notify_one())));
        Self { listener, bytes: 0 }
    }

    /// How many there are.
    fn count(&self) -> usize {
        self.listener.channels().len() + self.listener.patterns().len()
    }

    fn recount(&mut self) {
        let names = self.listener.channels().into_iter().chain(self.listener.patterns());
        self.bytes = names.map(|name| name.len() + NAME_BYTES).sum();
    }
}

impl State {
    /// What it may do while it listens, in the second form of the protocol.
    pub fn refuse_beside_listening(&self, command: &str) -> Result<(), String> {
        const FREE: [&str; 7] =
            ["subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ping", "quit", "reset"];
        if self.subscriptions.is_none() || self.reply.is_third || FREE.contains(&command) {
            return Ok(());
        }
        Err(format!(
            "ERR Can't execute '{command}': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        ))
    }

    /// Tells others what was published, once what was written before is on the disk.
    pub fn tell_said(&mut self) {
        for Said { database, channel, payload } in std::mem::take(&mut self.said) {
            database.notify(&channel, &payload);
        }
    }

    /// Whether something was told that is not answered with yet.
    pub fn has_told(&self) -> bool {
        self.subscriptions.as_ref().is_some_and(|known| known.listener.has_next())
    }

    /// Answers with what was told, as far as there is room; false when some was lost.
    pub fn push_told(&mut self) -> bool {
        let Some(mut subscriptions) = self.subscriptions.take() else { return true };
        while !self.is_full() {
            match subscriptions.listener.try_next() {
                Some(told) => push(&mut self.reply, &told),
                None => break,
            }
        }
        let is_whole = !subscriptions.listener.take_overrun();
        self.subscriptions = Some(subscriptions);
        is_whole
    }
}

fn push(reply: &mut Reply, Notification { channel, pattern, payload }: &Notification) {
    match pattern {
        None => {
            reply.push(3);
            reply.bulk(b"message");
        }
        Some(pattern) => {
            reply.push(4);
            reply.bulk(b"pmessage");
            reply.bulk(pattern);
        }
    }
    reply.bulk(channel);
    reply.bulk(payload);
}

fn expect_allowed(call: &Call<'_>) -> Outcome {
    if call.state.queue.is_some() || call.within.is_some() {
        return Err(format!("ERR {} inside MULTI is not allowed", call.name()).into());
    }
    call.session()?.expect(Level::Read, None)?;
    let held = call.state.subscriptions.as_ref().map_or(0, |known| known.bytes);
    let added: usize = call.rest(1).iter().map(|name| name.len() + NAME_BYTES).sum();
    match held + added > NAMES_BYTES_MAX {
        true => Err("ERR too many channels: expected fewer, or a pattern".into()),
        false => Ok(()),
    }
}

fn begin(call: &mut Call<'_>, kind: &str, add: impl Fn(&mut Listener, &[u8])) -> Outcome {
    expect_allowed(call)?;
    let database = call.session()?.database().clone();
    let wake = Arc::clone(&call.state.woken);
    let known = call.state.subscriptions.take();
    let mut known = known.unwrap_or_else(|| Subscriptions::new(&database, &wake));
    for name in call.rest(1) {
        add(&mut known.listener, name);
        call.reply.push(3);
        call.reply.bulk(kind.as_bytes());
        call.reply.bulk(name);
        call.reply.number(known.count());
    }
    known.recount();
    call.state.subscriptions = Some(known);
    Ok(())
}

pub(super) fn subscribe(call: &mut Call<'_>) -> Outcome {
    begin(call, "subscribe", |listener, name| listener.listen(name))
}

pub(super) fn psubscribe(call: &mut Call<'_>) -> Outcome {
    begin(call, "psubscribe", |listener, name| listener.listen_to_pattern(name, is_match))
}

fn end(
    call: &mut Call<'_>,
    kind: &str,
    known_names: impl Fn(&Listener) -> Vec<Arc<[u8]>>,
    remove: impl Fn(&mut Listener, &[u8]) -> bool,
) -> Outcome {
    let mut known = call.state.subscriptions.take();
    let mut names: Vec<Arc<[u8]>> = call.rest(1).iter().map(|name| Arc::from(&**name)).collect();
    if names.is_empty() {
        names = known.iter().flat_map(|known| known_names(&known.listener)).collect();
    }
    let count = |known: &Option<Subscriptions>| known.as_ref().map_or(0, Subscriptions::count);
    if names.is_empty() {
        call.reply.push(3);
        call.reply.bulk(kind.as_bytes());
        call.reply.null();
        call.reply.number(count(&known));
    }
    for name in names {
        known.iter_mut().for_each(|known| {
            remove(&mut known.listener, &name);
        });
        call.reply.push(3);
        call.reply.bulk(kind.as_bytes());
        call.reply.bulk(&name);
        call.reply.number(count(&known));
    }
    known.iter_mut().for_each(Subscriptions::recount);
    call.state.subscriptions = known.filter(|known| known.count() > 0);
    Ok(())
}

pub(super) fn unsubscribe(call: &mut Call<'_>) -> Outcome {
    end(call, "unsubscribe", Listener::channels, Listener::unlisten)
}

pub(super) fn punsubscribe(call: &mut Call<'_>) -> Outcome {
    end(call, "punsubscribe", Listener::patterns, Listener::unlisten_to_pattern)
}

pub(super) fn publish(call: &mut Call<'_>) -> Outcome {
    let session = call.session()?;
    session.expect(Level::Write, None)?;
    let database = session.database().clone();
    let (channel, payload) = (call.argument(1).to_vec(), call.argument(2).to_vec());
    call.reply.number(database.listeners_of(&channel));
    call.state.said.push(Said { database, channel, payload });
    Ok(())
}

pub(super) fn channels(call: &mut Call<'_>) -> Outcome {
    if call.arguments.len() > 3 {
        return Err(call.wrong_count());
    }
    let pattern = call.arguments.get(2).map(|pattern| &**pattern);
    let fits = |name: &[u8]| pattern.is_none_or(|pattern| is_match(pattern, name));
    let all = call.session()?.database().channels();
    let names: Vec<Vec<u8>> = all.into_iter().map(|(name, _)| name).filter(|n| fits(n)).collect();
    call.reply.bulks(&names);
    Ok(())
}

pub(super) fn numbers(call: &mut Call<'_>) -> Outcome {
    let all = call.session()?.database().channels();
    let names = call.rest(2);
    call.reply.array(names.len() * 2);
    for name in names {
        let found = all.iter().find(|(known, _)| known.as_slice() == &**name);
        call.reply.bulk(name);
        call.reply.number(found.map_or(0, |(_, count)| *count));
    }
    Ok(())
}

pub(super) fn patterns(call: &mut Call<'_>) -> Outcome {
    let count = call.session()?.database().channel_patterns();
    call.reply.number(count);
    Ok(())
}
