//! API keys: who sends, into which tier, and how fast.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use esker_vfs::Environment;
use sha2::{Digest, Sha256};

/// The tier of a key that names none.
pub const DEFAULT_TIER: &str = "free";

/// A key that a client shows.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// What events are stamped with.
    pub id: String,
    /// What the client shows.
    pub secret: String,
    /// How long its events are kept: see the tables.
    pub tier: String,
}

impl ApiKey {
    /// `ID:SECRET`, `ID:SECRET:TIER`, or a secret alone, whose id is made of it.
    ///
    /// # Errors
    /// For a text without a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let (first, second, tier) = (parts.next(), parts.next(), parts.next());
        let (id, secret) = match (first, second) {
            (Some(id), Some(secret)) => (id.to_owned(), secret),
            (first, _) => {
                let secret = first.unwrap_or_default();
                let hash = Sha256::digest(secret);
                let id: String = hash.iter().take(4).map(|byte| format!("{byte:x}")).collect();
                (format!("key_{id}"), secret)
            }
        };
        if id.is_empty() || secret.is_empty() {
            return Err(format!("{text:?}: expected ID:SECRET[:TIER]"));
        }
        let tier = tier.unwrap_or(DEFAULT_TIER).to_owned();
        Ok(Self { id, secret: secret.to_owned(), tier })
    }
}

/// How many events a key may send.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// In the long run.
    pub events_per_second: f64,
    /// At once.
    pub burst: f64,
}

/// Who a request comes from.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The id of its key; `None` where there are no keys.
    pub key: Option<String>,
    /// Its tier.
    pub tier: String,
}

/// The keys. Without any, everybody may do everything.
pub struct Keys {
    /// By the hash of the secret: looking one up tells nothing of another.
    by_hash: BTreeMap<Vec<u8>, Caller>,
    limit: Option<RateLimit>,
    /// What is left of the limit of each key, and as of when in nanoseconds.
    left: Mutex<BTreeMap<String, (f64, u64)>>,
    environment: Environment,
}

impl Keys {
    /// Some keys, and the limit of each.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = ApiKey>, limit: Option<RateLimit>) -> Self {
        let caller = |ApiKey { id, secret, tier }: ApiKey| {
            (Sha256::digest(secret).to_vec(), Caller { key: Some(id), tier })
        };
        let by_hash = keys.into_iter().map(caller).collect();
        Self { by_hash, limit, left: Mutex::default(), environment: Environment::os() }
    }

    /// The caller of an `Authorization` header; `None` if its key is unknown.
    #[must_use]
    pub fn caller(&self, authorization: Option<&str>) -> Option<Caller> {
        if self.by_hash.is_empty() {
            return Some(Caller { key: None, tier: DEFAULT_TIER.to_owned() });
        }
        let secret = authorization?.strip_prefix("Bearer ")?;
        self.by_hash.get(Sha256::digest(secret).as_slice()).cloned()
    }

    /// Takes some events from the limit of a caller.
    ///
    /// # Errors
    /// The seconds after which there is room for them.
    pub fn take(&self, caller: &Caller, events: usize) -> Result<(), u64> {
        let (Some(limit), Some(key)) = (self.limit, &caller.key) else { return Ok(()) };
        let RateLimit { events_per_second, burst } = limit;
        let now = self.environment.clock.monotonic_ns();
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, as_of) = all.entry(key.clone()).or_insert((burst, now));
        let since = std::time::Duration::from_nanos(now.saturating_sub(*as_of)).as_secs_f64();
        (*left, *as_of) = ((*left + since * events_per_second).min(burst), now);
        // What is more than may come at once takes all there is.
        let wanted = f64::from(u32::try_from(events).unwrap_or(u32::MAX)).min(burst);
        if *left >= wanted {
            *left -= wanted;
            return Ok(());
        }
        let seconds = std::time::Duration::try_from_secs_f64((wanted - *left) / events_per_second);
        Err(seconds.map_or(u64::MAX, |seconds| seconds.as_secs() + 1))
    }
}
