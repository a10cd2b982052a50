//! One client: reading, writing, memory, time-outs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::state::{Pending, State, StepOutcome};
use crate::monitor::active_sessions::ActiveSession;
use crate::protocol::binary::Stream;
use crate::resources::budget::{SMALL_BYTES, Share};
use crate::resources::fair_share::FairShare;
use crate::session::{Level, Session, panic_guard::caught};
use crate::shared::Shared;
use crate::{Result, ServerConfig};

/// For how long a listener may be silent: ten years.
const LISTENS_FOR: Duration = Duration::from_secs(10 * 365 * 86_400);

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Serves a client until it goes, is idle for too long, or the server stops.
pub(crate) async fn serve(mut stream: Stream, shared: &Arc<Shared>) -> io::Result<()> {
    let (config, stall) = (&shared.config, shared.config.stall_timeout);
    let id = CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
    let mut state = State::of(shared, id);
    let mut stopping = shared.stopping.clone();
    let woken = Arc::clone(&state.woken);
    let (mut incoming, mut outgoing) = (config.budget.share(), config.budget.share());
    let (mut fair_share, mut is_at_end) = (FairShare::default(), false);
    loop {
        let turn = match take_turn(state).await {
            Ok((kept, turn)) => {
                state = kept;
                turn
            }
            Err(e) => return end(&mut stream, &e, stall).await,
        };
        let is_whole = state.push_told();
        let answered = settle(&mut state, &mut outgoing, stall).await;
        if answered.is_ok() {
            state.tell_said();
        }
        stream.write_all(&state.reply.out, stall).await?;
        state.reply.out.clear();
        state.reply.out.shrink_to(4 << 10);
        outgoing.resize(0);
        let active_session = state.session.as_ref().and_then(Session::active_session).cloned();
        let is_ended =
            active_session.as_ref().is_some_and(|active_session| active_session.is_ended());
        if is_ended {
            return Ok(());
        }
        let is_over = is_at_end || *stopping.borrow();
        if answered.is_err() || turn == StepOutcome::Close || (turn != StepOutcome::Full && is_over)
        {
            return Ok(());
        }
        if !is_whole {
            return end(&mut stream, &lost(), stall).await;
        }
        if turn == StepOutcome::Full || state.has_told() {
            continue;
        }
        if let Err(e) = incoming.wait(state.held_bytes(), stall).await {
            return end(&mut stream, &e, stall).await;
        }
        if state.input.is_empty() {
            state.input = Vec::new();
        }
        let holds = state.watching.is_some() || state.queue.is_some();
        let patience = patience(&state, holds, config);
        tokio::select! {
            read = stream.read(&mut state.input) => {
                let bytes = read?;
                is_at_end = bytes == 0;
                fair_share.note_read(bytes).await;
            }
            () = woken.notified() => expect_let_in(&state)?,
            _ = stopping.changed() => {}
            () = ActiveSession::ended(active_session.as_ref()) => return Ok(()),
            () = tokio::time::sleep(patience) => {
                if holds {
                    return end(&mut stream, &forgotten(patience), stall).await;
                }
                return Ok(());
            }
        }
    }
}

/// How long a client may be silent.
fn patience(state: &State, holds: bool, config: &ServerConfig) -> Duration {
    match (state.input.is_empty(), holds) {
        (false, _) => config.stall_timeout,
        (true, true) => config.transaction_timeout.min(config.idle_timeout),
        // A listener is silent.
        (true, false) if state.subscriptions.is_some() => LISTENS_FOR,
        (true, false) => config.idle_timeout,
    }
}

/// Ends a connection that is told what others say, once it may no longer be.
fn expect_let_in(state: &State) -> io::Result<()> {
    let Some(session) = state.session.as_ref().filter(|_| state.subscriptions.is_some()) else {
        return Ok(());
    };
    match session.expect(Level::Read, None) {
        Ok(()) => Ok(()),
        Err(e) => Err(io::Error::new(io::ErrorKind::PermissionDenied, e.to_string())),
    }
}

/// Why a connection ends that did not read what it was told.
fn lost() -> crate::Error {
    let message = "notifications were lost, since more waited than are kept: listen anew";
    crate::Error::new(crate::Code::LimitExceeded, message)
}

/// Why a connection ends that watches keys or has queued commands.
fn forgotten(patience: Duration) -> crate::Error {
    let message = format!(
        "nothing was sent for {} ms within WATCH or MULTI: what was queued is not done",
        patience.as_millis()
    );
    crate::Error::new(crate::Code::Timeout, message)
}

/// Tells an error, behind which the connection ends.
async fn end(stream: &mut Stream, e: &crate::Error, stall: Duration) -> io::Result<()> {
    stream.write_all(format!("-ERR {e}\r\n").as_bytes(), stall).await
}

/// Does what has come: at once, or on another thread what may take long.
async fn take_turn(mut state: State) -> Result<(State, StepOutcome)> {
    let first = caught(|| state.turn(false))?;
    if first != StepOutcome::Long {
        return Ok((state, first));
    }
    let done = tokio::task::spawn_blocking(move || {
        caught(move || {
            let turn = state.turn(true);
            (state, turn)
        })
    });
    let stops = |_| crate::Error::new(crate::Code::Unavailable, "the server stops");
    done.await.map_err(stops)?
}

/// Waits until what is answered is on the disk, and there is room for it. What is not known to be
/// there is not answered: one error is, and the client has to go. Where there is no room for
/// answers of what has been written, nothing is said, as no error would be true. Who has a share
/// does not wait for a little more: others may wait for that share.
async fn settle(state: &mut State, outgoing: &mut Share, stall: Duration) -> Result<()> {
    let mut settled = Ok(());
    for Pending { database, durability, commit } in std::mem::take(&mut state.pending) {
        if settled.is_ok() && !database.is_durable(commit) {
            settled = durability.wait(commit).await;
        }
    }
    let is_stored = settled.is_ok();
    if let Some(held) = state.held.take() {
        outgoing.absorb(held);
    }
    let bytes = state.reply.out.len();
    let is_covered = outgoing.bytes() > 0 && bytes <= outgoing.bytes() + SMALL_BYTES;
    if is_stored && !outgoing.resize(bytes) && !is_covered {
        settled = outgoing.wait(bytes, stall).await;
    }
    if let Err(e) = &settled {
        state.reply.out.clear();
        if !is_stored || !state.has_written {
            state.reply.error(&format!("ERR {e}"));
        }
    }
    state.has_written = false;
    settled
}
