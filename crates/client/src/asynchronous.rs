//! The async client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esker_wire::Frame;
use esker_wire::frame::{GREETING_BYTES, greeting, parse_greeting};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};

use crate::call::Boundary;
use crate::tail::TailFrame;
use crate::tls;
use crate::{Address, Call, Error, Reply, Result};

/// Requests that wait to be sent.
const WAITING_MAX: usize = 1024;
/// Bytes that are sent at once.
const SENT_BYTES: usize = 64 << 10;

/// A connection to a server, for async code. Cheap to clone; all clones share the connection, and
/// what they ask at the same time is sent together and answered in any order.
///
/// ```
/// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
/// # let server = served::Served::start();
/// # let url = server.url();
/// use esker_client::{AsyncClient, Call};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # runtime.block_on(async {
/// let client = AsyncClient::connect(&url).await?;
/// client.call(Call::sql("CREATE TABLE t (n i64 PRIMARY KEY)", &[])).await?;
/// let insert = |n: i64| client.call(Call::insert("t", &[vec![n.into()]]));
/// let (one, two) = tokio::join!(insert(1), insert(2));
/// (one?, two?);
/// let rows = client.call(Call::sql("SELECT n FROM t ORDER BY n", &[])).await?.rows;
/// assert_eq!(rows.len(), 2);
/// # Ok::<(), esker_client::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct AsyncClient {
    to_send: mpsc::Sender<(u32, Call)>,
    waiting: Arc<Waiting>,
    next_id: Arc<AtomicU32>,
    /// A transaction was begun, and its end is not known.
    may_be_within: Arc<AtomicBool>,
}

type Answer = oneshot::Sender<Result<Reply>>;

/// The frames of a tail, as they come: no more than it has given credit for.
type TailFrames = mpsc::UnboundedSender<Result<TailFrame>>;

/// Who waits for which answer.
#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: BTreeMap<u32, (Reply, Answer)>,
    tails: BTreeMap<u32, TailFrames>,
    failed: Option<Error>,
}

impl Waiting {
    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: u32, answer: Answer) -> Result<()> {
        let mut state = self.locked();
        if let Some(e) = &state.failed {
            return Err(e.clone());
        }
        state.answers.insert(id, (Reply::default(), answer));
        Ok(())
    }

    fn take(&self, frame: &Frame<'_>) -> Result<()> {
        let mut state = self.locked();
        if frame.id == 0 {
            return Reply::default().take(frame).map(drop);
        }
        if let Some(frames) = state.tails.get(&frame.id) {
            // The caller may not want to know any more.
            let _ = frames.send(Ok(TailFrame::of(frame)));
            if frame.is_last() {
                state.tails.remove(&frame.id);
            }
            return Ok(());
        }
        let Some((reply, _)) = state.answers.get_mut(&frame.id) else { return Ok(()) };
        let taken = reply.take(frame);
        if !matches!(taken, Ok(false))
            && let Some((reply, answer)) = state.answers.remove(&frame.id)
        {
            // The caller may not want to know any more.
            let _ = answer.send(taken.map(|_| reply));
        }
        Ok(())
    }

    fn fail(&self, e: &Error) {
        let mut state = self.locked();
        state.failed = Some(e.clone());
        for (_, (_, answer)) in std::mem::take(&mut state.answers) {
            let _ = answer.send(Err(e.clone()));
        }
        for (_, frames) in std::mem::take(&mut state.tails) {
            let _ = frames.send(Err(e.clone()));
        }
    }
}

impl AsyncClient {
    /// Connects to a server: see [`Address`]. Within a tokio runtime.
    ///
    /// # Errors
    /// When there is no server, or one of another version.
    pub async fn connect(address: &str) -> Result<Self> {
        match Address::parse(address)? {
            Address::Tcp(host) => {
                let stream = TcpStream::connect(&host).await;
                let stream = stream.map_err(|e| Error::connection(format!("{host}: {e}")))?;
                stream.set_nodelay(true)?;
                let (reader, writer) = stream.into_split();
                Self::start(reader, writer).await
            }
            Address::Tls(host, authorities) => {
                let failed = |e| Error::connection(format!("{host}: {e}"));
                let stream = TcpStream::connect(&host).await.map_err(failed)?;
                stream.set_nodelay(true)?;
                let connector =
                    tokio_rustls::TlsConnector::from(tls::config(authorities.as_deref())?);
                let stream = connector.connect(tls::name(&host)?, stream).await;
                let stream = stream.map_err(|e| tls::refused_by(&host, &e))?;
                let (reader, writer) = tokio::io::split(stream);
                Self::start(reader, writer).await
            }
            Address::Unix(path) => {
                let (reader, writer) = UnixStream::connect(&path).await?.into_split();
                Self::start(reader, writer).await
            }
        }
    }

    async fn start(
        mut reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Self> {
        writer.write_all(&greeting()).await?;
        let mut found = [0; GREETING_BYTES];
        reader.read_exact(&mut found).await?;
        parse_greeting(found)?;
        let (to_send, calls) = mpsc::channel(WAITING_MAX);
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(send_calls(writer, calls, Arc::clone(&waiting)));
        tokio::spawn(receive_answers(reader, Arc::clone(&waiting)));
        let (next_id, may_be_within) = (Arc::new(AtomicU32::new(1)), Arc::default());
        Ok(Self { to_send, waiting, next_id, may_be_within })
    }

    /// True while the connection has not failed, and has no transaction.
    pub(crate) fn is_sound(&self) -> bool {
        !self.may_be_within.load(Ordering::SeqCst) && self.waiting.locked().failed.is_none()
    }

    /// Says who asks, and for which database.
    ///
    /// # Errors
    /// `Unauthenticated`, `Forbidden`, `NotFound`.
    pub async fn hello(&self, token: Option<&str>, database: Option<&str>) -> Result<()> {
        self.call(Call::hello(token, database)).await.map(drop)
    }

    fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed).max(1)
    }

    /// Sends a request whose frames are handed on as they come.
    pub(crate) async fn begin_tail(
        &self,
        call: Call,
    ) -> Result<(u32, mpsc::UnboundedReceiver<Result<TailFrame>>)> {
        let (id, (to, frames)) = (self.next_id(), mpsc::unbounded_channel());
        {
            let mut state = self.waiting.locked();
            if let Some(e) = &state.failed {
                return Err(e.clone());
            }
            state.tails.insert(id, to);
        }
        self.say(id, call).await?;
        Ok((id, frames))
    }

    /// Sends what is answered by frames of another request, or not at all.
    pub(crate) async fn say(&self, id: u32, call: Call) -> Result<()> {
        let ended = |_| Error::connection("the connection has ended");
        self.to_send.send((id, call)).await.map_err(ended)
    }

    /// Ends a tail, whose last frames belong to no one.
    pub(crate) fn end_tail(&self, id: u32) {
        self.waiting.locked().tails.remove(&id);
        let cancel = (id, Call::cancel(id));
        if let Err(mpsc::error::TrySendError::Full(cancel)) = self.to_send.try_send(cancel)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let to_send = self.to_send.clone();
            runtime.spawn(async move { to_send.send(cancel).await });
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the server said, or that the connection failed.
    pub async fn call(&self, call: Call) -> Result<Reply> {
        let id = self.next_id();
        let (answer, answered) = oneshot::channel();
        self.waiting.add(id, answer)?;
        let boundary = call.boundary();
        if boundary == Boundary::Begins {
            self.may_be_within.store(true, Ordering::SeqCst);
        }
        let ended = || Error::connection("the connection has ended");
        self.to_send.send((id, call)).await.map_err(|_| ended())?;
        let reply = answered.await.map_err(|_| ended())?;
        if reply.is_ok() && boundary == Boundary::Ends {
            self.may_be_within.store(false, Ordering::SeqCst);
        }
        reply
    }
}

/// Sends the requests that are there, all at once.
async fn send_calls(
    mut writer: impl AsyncWrite + Unpin,
    mut calls: mpsc::Receiver<(u32, Call)>,
    waiting: Arc<Waiting>,
) {
    let mut out = Vec::new();
    while let Some((id, call)) = calls.recv().await {
        call.frame(&mut out, id);
        while out.len() < SENT_BYTES
            && let Ok((id, call)) = calls.try_recv()
        {
            call.frame(&mut out, id);
        }
        if let Err(e) = writer.write_all(&out).await {
            return waiting.fail(&e.into());
        }
        out.clear();
    }
    let _ = writer.shutdown().await;
}

async fn receive_answers(mut reader: impl AsyncRead + Unpin, waiting: Arc<Waiting>) {
    let mut input = Vec::new();
    loop {
        match read_answers(&mut reader, &mut input, &waiting).await {
            Ok(()) => {}
            Err(e) => return waiting.fail(&e),
        }
    }
}

async fn read_answers(
    reader: &mut (impl AsyncRead + Unpin),
    input: &mut Vec<u8>,
    waiting: &Waiting,
) -> Result<()> {
    input.reserve(SENT_BYTES);
    if reader.read_buf(input).await? == 0 {
        return Err(Error::connection("the server closed the connection"));
    }
    let mut read_to = 0;
    while let Some((frame, length)) =
        Frame::parse(input.get(read_to..).unwrap_or_default(), u32::MAX as usize)?
    {
        waiting.take(&frame)?;
        read_to += length;
    }
    input.drain(..read_to);
    Ok(())
}
