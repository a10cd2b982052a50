//! Loads: a request, and rows on the lines behind it, until an empty one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::answer::Told;
use super::line::{LoadLine, line_end, request_bytes_max};
use crate::monitor::active_sessions::ActiveSession;
use crate::protocol::binary::Stream;
use crate::protocol::binary::bulk;
use crate::protocol::binary::bulk::{Begin, CHUNKS_MAX, Chunk};
use crate::resources::budget::Share;
use crate::session::{Answer, Session};
use crate::shared::{ServerConfig, Shared};
use crate::{Code, Error, Result};

/// Rows are handed on once there are as many bytes of them.
const CHUNK_BYTES: usize = 64 << 10;

/// A load whose rows come. Where it was refused they are read all the same: they are no requests.
pub(super) struct Loading<'s> {
    id: Option<String>,
    begun: Result<Begun>,
    shared: &'s Shared,
    since: Instant,
}

/// The socket, what has come of it, and whether more may come.
type Source<'c> = (&'c mut Stream, &'c mut Vec<u8>, &'c mut bool);

/// How a wait for more rows ended.
enum Waited {
    Read(usize),
    /// An administrator has ended the session.
    Ended,
}

/// Waits for more rows, as long as the client has for that.
async fn wait(
    stream: &mut Stream,
    input: &mut Vec<u8>,
    active_session: Option<&Arc<ActiveSession>>,
    stall: Duration,
) -> io::Result<Waited> {
    tokio::select! {
        read = tokio::time::timeout(stall, stream.read(input)) => Ok(Waited::Read(read??)),
        () = ActiveSession::ended(active_session) => Ok(Waited::Ended),
    }
}

impl<'s> Loading<'s> {
    /// The load that a line begins; nothing where it asks something else.
    pub fn begin(line: &[u8], session: Option<&Session>, shared: &'s Shared) -> Option<Self> {
        let LoadLine { id, table, on_duplicate, key } = LoadLine::of(line)?;
        let begun = table.and_then(|table| {
            let begin = Begin::of_lines(table, &on_duplicate, key)?;
            start(begin, session, &shared.config)
        });
        Some(Self { id, begun, shared, since: Instant::now() })
    }

    /// Takes the rows, and tells what came of them; nothing when the client went away before the
    /// empty line, and nothing was loaded.
    ///
    /// # Errors
    /// When the socket fails, or nothing comes for too long.
    pub async fn take_rows(
        self,
        (stream, input, is_at_end): Source<'_>,
        session: &mut Option<Session>,
        incoming: &mut Share,
    ) -> io::Result<Option<Told>> {
        let Self { id, begun, shared, since } = self;
        let stall = shared.config.stall_timeout;
        let most = request_bytes_max(&shared.config, session.as_ref());
        let active_session = session.as_ref().and_then(Session::active_session).cloned();
        let (loading, mut to_load, mut failed) = match begun {
            Ok((loading, to_load)) => (Some(loading), Some(to_load), None),
            Err(e) => (None, None, Some(e)),
        };
        let (mut chunk, mut searched) = (Vec::new(), 0);
        loop {
            while let Some(length) = line_end(input, searched, false) {
                searched = 0;
                let line: Vec<u8> = input.drain(..length).collect();
                let is_end = line.trim_ascii().is_empty();
                if is_end
                    && active_session
                        .as_ref()
                        .is_some_and(|active_session| active_session.is_ended())
                {
                    return Ok(None);
                }
                chunk.extend_from_slice(&line);
                if is_end || chunk.len() >= CHUNK_BYTES {
                    let rows = std::mem::take(&mut chunk);
                    // They get a share of their own, which is not waited for with this one.
                    incoming.resize(input.len().min(incoming.bytes()));
                    if let Err(e) = hand_on(&mut to_load, rows, is_end, shared, stall).await {
                        failed = failed.or(Some(e));
                    }
                }
                if is_end {
                    let told = finish(loading, failed).await;
                    return Ok(Some(tell(id, told, session, shared, since)));
                }
            }
            searched = input.len();
            if searched > most {
                let e = Error::new(Code::LimitExceeded, format!("a row of more than {most} bytes"));
                return refuse(stream, id, &e, stall).await;
            }
            if let Err(e) = incoming.wait(searched + chunk.len(), stall).await {
                return refuse(stream, id, &e, stall).await;
            }
            if *is_at_end {
                return Ok(None);
            }
            match wait(stream, input, active_session.as_ref(), stall).await? {
                Waited::Read(bytes) => *is_at_end = bytes == 0,
                Waited::Ended => return Ok(None),
            }
        }
    }
}

/// Tells that the rest is read no more: the connection ends behind it.
async fn refuse(
    stream: &mut Stream,
    id: Option<String>,
    e: &Error,
    stall: Duration,
) -> io::Result<Option<Told>> {
    let told = Told::error(id, e);
    stream.write_all(&[told.out, vec![b'\n']].concat(), stall).await?;
    Ok(None)
}

/// A load under way, and where its rows go.
type Begun = (JoinHandle<Result<u64>>, mpsc::Sender<Chunk>);

fn start(begin: Begin, session: Option<&Session>, config: &ServerConfig) -> Result<Begun> {
    let hello = || Error::new(Code::Unauthenticated, "expected {\"op\": \"hello\"} first");
    let session = session.ok_or_else(hello)?;
    session.check_in()?;
    let once = begin.once(session, "json-lines", config.idempotency_lifetime)?;
    let (to_load, chunks) = mpsc::channel(CHUNKS_MAX);
    let load = bulk::load_in_turn((begin, once), session.sibling(), config.stall_timeout, chunks);
    Ok((tokio::spawn(load), to_load))
}

/// Hands rows to the load, with a share of the budget; behind the last it gets the end. What has
/// failed takes no more.
async fn hand_on(
    to_load: &mut Option<mpsc::Sender<Chunk>>,
    rows: Vec<u8>,
    is_end: bool,
    shared: &Shared,
    stall: Duration,
) -> Result<()> {
    let Some(sender) = to_load.take() else { return Ok(()) };
    let mut share = shared.config.budget.share();
    share.wait(rows.len(), stall).await?;
    let is_open = sender.send(Some((rows, share))).await.is_ok();
    if is_open && is_end {
        // It has ended itself where no receiver takes this.
        let _ = sender.send(None).await;
    } else if is_open {
        *to_load = Some(sender);
    }
    Ok(())
}

async fn finish(loading: Option<JoinHandle<Result<u64>>>, failed: Option<Error>) -> Result<u64> {
    let loaded = match loading {
        Some(loading) => {
            let stops = |_| Error::new(Code::Unavailable, "the server stops");
            Some(loading.await.map_err(stops)?)
        }
        None => None,
    };
    match (failed, loaded) {
        (Some(e), _) => Err(e),
        (None, Some(loaded)) => loaded,
        (None, None) => Ok(0),
    }
}

fn tell(
    id: Option<String>,
    loaded: Result<u64>,
    session: &mut Option<Session>,
    shared: &Shared,
    since: Instant,
) -> Told {
    let told = match loaded {
        Ok(rows) => Told::answer(id, &Answer::Stored { rows, row_id: None }),
        Err(e) => {
            if e.code() == Code::Unauthenticated {
                *session = None;
            }
            Told::error(id, &e)
        }
    };
    super::line::count("load", &told, since, shared);
    told
}
