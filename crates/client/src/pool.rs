//! Connections that threads share.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Call, Client, Duplicates, Error, Format, Load, Reply, Result};

/// How often [`Pool::run`] begins again.
const ATTEMPTS_MAX: u32 = 10;
/// The first wait before that; each is twice as long as the one before.
const FIRST_WAIT: Duration = Duration::from_millis(2);

/// Connections that threads share: each takes one, and gives it back by dropping it. One that the
/// server has closed meanwhile, that failed, or that has a transaction still, is replaced.
///
/// ```
/// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
/// # fn main() -> esker_client::Result<()> {
/// # let server = served::Served::start();
/// let pool = esker_client::Pool::new(&server.url(), 4);
/// pool.get()?.bucket_put("b", "key", "value")?;
/// assert_eq!(pool.get()?.bucket_get("b", "key")?, Some(b"value".to_vec()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    hello: Option<(Option<String>, Option<String>)>,
    most: usize,
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Client>,
    /// Connections there are, idle or not.
    count: usize,
}

/// How often something was begun again.
#[derive(Debug, Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// How long to wait before the next.
    ///
    /// # Errors
    /// The last one's, when there were enough.
    pub fn wait_after(&mut self, e: Error) -> Result<Duration> {
        self.0 += 1;
        if self.0 >= ATTEMPTS_MAX {
            return Err(e);
        }
        Ok(FIRST_WAIT * 2u32.saturating_pow(self.0 - 1))
    }
}

/// True when what has a key may be sent again.
pub(crate) fn may_come_again(e: &Error) -> bool {
    e.is_retryable() || e.code().is_none()
}

/// A key that no one else has.
pub(crate) fn random_key() -> Result<String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| Error::connection("no randomness"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Pool {
    /// Up to so many connections to a server, made when they are first needed.
    #[must_use]
    pub fn new(address: &str, most: usize) -> Self {
        Self::of(address.to_owned(), most.max(1), None)
    }

    fn of(address: String, most: usize, hello: Option<(Option<String>, Option<String>)>) -> Self {
        let (state, given_back) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { address, hello, most, state, given_back }) }
    }

    /// The same, for a client with a token, or without, on a database, or the server's own: each
    /// connection says so first.
    #[must_use]
    pub fn hello(self, token: Option<&str>, database: Option<&str>) -> Self {
        let hello = (token.map(str::to_owned), database.map(str::to_owned));
        Self::of(self.shared.address.clone(), self.shared.most, Some(hello))
    }

    /// Does something with a connection, and again, a little later, when the server says that it
    /// may succeed then and was certainly not done: a conflict with somebody else, a limit.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// let pool = esker_client::Pool::new(&server.url(), 4);
    /// pool.get()?.bucket_put("b", "n", "")?;
    /// pool.run(|client| {
    ///     client.begin()?;
    ///     let n = client.bucket_get("b", "n")?.map_or(0, |text| text.len());
    ///     client.bucket_put("b", "n", "x".repeat(n + 1))?;
    ///     client.commit()
    /// })?;
    /// assert_eq!(pool.get()?.bucket_get("b", "n")?.as_deref(), Some(&b"x"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the last attempt met.
    #[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
    pub fn run<R>(&self, mut work: impl FnMut(&mut Client) -> Result<R>) -> Result<R> {
        let mut attempts = Attempts::default();
        loop {
            // A transaction that failed goes with its connection.
            match self.get().and_then(|mut client| work(&mut client)) {
                Err(e) if e.is_retryable() => std::thread::sleep(attempts.wait_after(e)?),
                done => return done,
            }
        }
    }

    /// Does a write once: under a key of its own, by a new connection again when one broke before
    /// it was answered, or the server says that it may succeed later. See [`Call::once`].
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Pool};
    ///
    /// let pool = Pool::new(&server.url(), 4);
    /// let sold = pool.call_once(&Call::bucket_increment("stock", b"sold", 3))?;
    /// assert_eq!(sold.number(), Some(3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the last attempt met; whether it was done is not known then when the connection failed.
    #[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
    pub fn call_once(&self, call: &Call) -> Result<Reply> {
        let call = call.once(&random_key()?);
        let mut attempts = Attempts::default();
        loop {
            match self.get().and_then(|mut client| client.call(&call)) {
                Err(e) if may_come_again(&e) => std::thread::sleep(attempts.wait_after(e)?),
                done => return done,
            }
        }
    }

    /// Loads rows once: under a key of its own, by a new connection and from the first row again
    /// when one broke before it was answered, or the server says that it may succeed later. `fill`
    /// hands over the same rows each time. See [`Client::load_once`].
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Duplicates, Format, Pool};
    ///
    /// let pool = Pool::new(&server.url(), 4);
    /// pool.get()?.sql("CREATE TABLE t (n i64 PRIMARY KEY)", &[])?;
    /// let loaded = pool.load_once("t", Format::MessagePack, Duplicates::Error, |load| {
    ///     (0..1_000i64).try_for_each(|n| load.push(&[n.into()]))
    /// })?;
    /// assert_eq!(loaded, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the last attempt met; whether it was done is not known then when the connection failed.
    #[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
    pub fn load_once(
        &self,
        table: &str,
        format: Format,
        duplicates: Duplicates,
        mut fill: impl FnMut(&mut Load<'_>) -> Result<()>,
    ) -> Result<u64> {
        let key = random_key()?;
        let mut attempts = Attempts::default();
        loop {
            let loaded = self.get().and_then(|mut client| {
                let mut load = client.load_once(table, format, duplicates, &key)?;
                fill(&mut load)?;
                load.finish()
            });
            match loaded {
                Err(e) if may_come_again(&e) => std::thread::sleep(attempts.wait_after(e)?),
                done => return done,
            }
        }
    }

    /// A connection; waits while all are taken.
    ///
    /// # Errors
    /// When a new one is needed and there is no server, or it refuses.
    pub fn get(&self) -> Result<Pooled> {
        let mut state = self.shared.locked();
        let client = loop {
            if let Some(mut client) = state.idle.pop() {
                if client.socket.is_silent() {
                    break Some(client);
                }
                state.count -= 1;
                continue;
            }
            if state.count < self.shared.most {
                state.count += 1;
                break None;
            }
            let waited = self.shared.given_back.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        let mut pooled = Pooled { client, shared: Arc::clone(&self.shared) };
        if pooled.client.is_none() {
            let mut client = Client::connect(&self.shared.address)?;
            if let Some((token, database)) = &self.shared.hello {
                client.hello(token.as_deref(), database.as_deref())?;
            }
            pooled.client = Some(client);
        }
        Ok(pooled)
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of a [`Pool`].
#[derive(Debug)]
pub struct Pooled {
    client: Option<Client>,
    shared: Arc<Shared>,
}

impl Deref for Pooled {
    type Target = Client;

    #[allow(clippy::expect_used, reason = "there is one until it is dropped")]
    fn deref(&self) -> &Client {
        self.client.as_ref().expect("a connection")
    }
}

impl DerefMut for Pooled {
    #[allow(clippy::expect_used, reason = "there is one until it is dropped")]
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("a connection")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut state = self.shared.locked();
        let is_sound = |client: &Client| !client.is_broken && !client.may_be_within;
        match self.client.take().filter(is_sound) {
            Some(client) => state.idle.push(client),
            None => state.count -= 1,
        }
        drop(state);
        self.shared.given_back.notify_one();
    }
}
