//! Connections that tasks share.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pool::{Attempts, may_come_again, random_key};
use crate::{AsyncClient, Call, Error, Reply, Result};

/// Connections that tasks share: each takes one, and gives it back by dropping it. One that the
/// server has closed meanwhile, that failed, or that has a transaction still, is replaced.
///
/// An [`AsyncClient`] alone is enough for tasks that only ask one thing after another: its clones
/// share one connection. A transaction needs a connection of its own.
///
/// ```
/// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
/// # let server = served::Served::start();
/// # let url = server.url();
/// use esker_client::{AsyncPool, Call};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # runtime.block_on(async {
/// let pool = AsyncPool::new(&url, 4);
/// pool.get().await?.call(Call::bucket_put("b", &[("key", "value")])).await?;
/// let reply = pool.get().await?.call(Call::bucket_get("b", &["key"])).await?;
/// assert_eq!(reply.values()?, [Some(b"value".to_vec())]);
/// # Ok::<(), esker_client::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct AsyncPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    hello: Option<(Option<String>, Option<String>)>,
    most: usize,
    /// Connections that may be taken.
    room: Arc<Semaphore>,
    idle: Mutex<Vec<AsyncClient>>,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<AsyncClient>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncPool {
    /// Up to so many connections to a server, made when they are first needed.
    #[must_use]
    pub fn new(address: &str, most: usize) -> Self {
        Self::of(address.to_owned(), most.clamp(1, Semaphore::MAX_PERMITS), None)
    }

    fn of(address: String, most: usize, hello: Option<(Option<String>, Option<String>)>) -> Self {
        let (room, idle) = (Arc::new(Semaphore::new(most)), Mutex::default());
        Self { shared: Arc::new(Shared { address, hello, most, room, idle }) }
    }

    /// The same, for a client with a token, or without, on a database, or the server's own: each
    /// connection says so first.
    #[must_use]
    pub fn hello(self, token: Option<&str>, database: Option<&str>) -> Self {
        let hello = (token.map(str::to_owned), database.map(str::to_owned));
        Self::of(self.shared.address.clone(), self.shared.most, Some(hello))
    }

    /// A connection; waits while all are taken.
    ///
    /// # Errors
    /// When a new one is needed and there is no server, or it refuses.
    pub async fn get(&self) -> Result<AsyncPooled> {
        let room = Arc::clone(&self.shared.room).acquire_owned().await;
        let room = room.map_err(|_| Error::connection("the pool is closed"))?;
        let mut found = None;
        while let Some(client) = self.shared.idle().pop() {
            if client.is_sound() {
                found = Some(client);
                break;
            }
        }
        let client = match found {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(AsyncPooled { client, shared: Arc::clone(&self.shared), _room: room })
    }

    async fn connect(&self) -> Result<AsyncClient> {
        let client = AsyncClient::connect(&self.shared.address).await?;
        if let Some((token, database)) = &self.shared.hello {
            client.hello(token.as_deref(), database.as_deref()).await?;
        }
        Ok(client)
    }

    /// Does something with a connection, and again, a little later, when the server says that it
    /// may succeed then and was certainly not done: a conflict with somebody else, a limit.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # let server = served::Served::start();
    /// # let url = server.url();
    /// use esker_client::{AsyncPool, Call};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// # runtime.block_on(async {
    /// let pool = AsyncPool::new(&url, 4);
    /// pool.get().await?.call(Call::bucket_put("b", &[("n", "")])).await?;
    /// let added = pool.run(|client| async move {
    ///     client.call(Call::begin(false, false)).await?;
    ///     client.call(Call::bucket_put("b", &[("n", "1")])).await?;
    ///     client.call(Call::commit()).await
    /// });
    /// added.await?;
    /// # Ok::<(), esker_client::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// What the last attempt met.
    pub async fn run<R, W: Future<Output = Result<R>>>(
        &self,
        mut work: impl FnMut(AsyncClient) -> W,
    ) -> Result<R> {
        let mut attempts = Attempts::default();
        loop {
            // A transaction that failed goes with its connection.
            let done = match self.get().await {
                Ok(client) => work(client.client.clone()).await,
                Err(e) => Err(e),
            };
            match done {
                Err(e) if e.is_retryable() => tokio::time::sleep(attempts.wait_after(e)?).await,
                done => return done,
            }
        }
    }

    /// Does a write once: under a key of its own, by a new connection again when one broke before
    /// it was answered, or the server says that it may succeed later. See [`Call::once`].
    ///
    /// # Errors
    /// What the last attempt met; whether it was done is not known then when the connection failed.
    pub async fn call_once(&self, call: &Call) -> Result<Reply> {
        let call = call.once(&random_key()?);
        let mut attempts = Attempts::default();
        loop {
            let done = match self.get().await {
                Ok(client) => client.call(call.clone()).await,
                Err(e) => Err(e),
            };
            match done {
                Err(e) if may_come_again(&e) => tokio::time::sleep(attempts.wait_after(e)?).await,
                done => return done,
            }
        }
    }
}

/// A connection of an [`AsyncPool`]. A clone of its client that outlives it shares the connection
/// with its next user.
#[derive(Debug)]
pub struct AsyncPooled {
    client: AsyncClient,
    shared: Arc<Shared>,
    /// Given back after the connection was.
    _room: OwnedSemaphorePermit,
}

impl Deref for AsyncPooled {
    type Target = AsyncClient;

    fn deref(&self) -> &AsyncClient {
        &self.client
    }
}

impl Drop for AsyncPooled {
    fn drop(&mut self) {
        if self.client.is_sound() {
            self.shared.idle().push(self.client.clone());
        }
    }
}
