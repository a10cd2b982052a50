//! Connections that threads share.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Client, Result};

/// Connections that threads share: each takes one, and gives it back by dropping it.
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

impl Pool {
    /// Up to so many connections to a server, made when they are first needed.
    #[must_use]
    pub fn new(address: &str, most: usize) -> Self {
        let shared = Shared {
            address: address.to_owned(),
            most: most.max(1),
            state: Mutex::default(),
            given_back: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A connection; waits while all are taken.
    ///
    /// # Errors
    /// When a new one is needed and nobody is there.
    pub fn get(&self) -> Result<Pooled> {
        let mut state = self.shared.locked();
        let client = loop {
            if let Some(client) = state.idle.pop() {
                break Some(client);
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
            pooled.client = Some(Client::connect(&self.shared.address)?);
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
        match self.client.take().filter(|client| !client.is_broken) {
            Some(client) => state.idle.push(client),
            None => state.count -= 1,
        }
        drop(state);
        self.shared.given_back.notify_one();
    }
}
