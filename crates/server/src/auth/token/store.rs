//! The tokens that there are, in a file that is replaced as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use esker_vfs::{Environment, LockMode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Principal, Scope, Standing};
use crate::file::{read_file, replace_file};
use crate::{Code, Error, Result};

const PREFIX: &str = "esk_";
const FILE: &str = "tokens.json";
const TEMPORARY: &str = "tokens.json.new";
const LOCK: &str = "tokens.lock";

/// How old what is known of the file may be, in nanoseconds: others may change it, too.
const REFRESH_NS: u64 = 1_000_000_000;
/// The least time between two readings for tokens that are not known: each may just have been made,
/// and guesses must not keep the server reading.
const UNKNOWN_REFRESH_NS: u64 = 20_000_000;

/// The most tokens of a server.
const TOKENS_MAX: usize = 10_000;

/// A token as it is stored: without what it takes to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The public part, which names it.
    pub id: String,
    /// What it is for, in the words of its maker.
    pub name: String,
    /// What it may do, as texts of [`Scope`].
    pub scopes: Vec<String>,
    /// When it was made, in microseconds since 1970.
    pub created_us: i64,
    /// When it ends, in microseconds since 1970; never without it.
    pub expires_us: Option<i64>,
    /// The SHA-256 of the whole text, in hexadecimal digits.
    hash: String,
}

/// What is shown of a token: all but its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenInfo {
    /// The public part, which names it.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was made, in microseconds since 1970.
    pub created_us: i64,
    /// When it ends, in microseconds since 1970; never without it.
    pub expires_us: Option<i64>,
}

impl From<&Token> for TokenInfo {
    fn from(token: &Token) -> Self {
        let Token { id, name, scopes, created_us, expires_us, .. } = token.clone();
        Self { id, name, scopes, created_us, expires_us }
    }
}

/// What a token that is made is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for, 1 to 200 characters.
    pub name: String,
    /// What it may do, at least one.
    pub scopes: Vec<Scope>,
    /// How long it holds; for ever without it.
    pub lifetime: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    tokens: Vec<Token>,
}

#[derive(Debug)]
struct Entry {
    hash: [u8; 32],
    principal: Principal,
    expires_us: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    tokens: BTreeMap<String, Token>,
    entries: BTreeMap<String, Entry>,
}

/// The tokens of a server.
#[derive(Debug)]
pub struct TokenStore {
    environment: Environment,
    /// Where the file is; without it nothing is kept.
    directory: Option<PathBuf>,
    state: RwLock<State>,
    /// Held while the file is read or written, so that readers are not.
    writing: Mutex<()>,
    /// When the file was last read.
    read_ns: AtomicU64,
    /// When it was last read for a token that was not known; 0 for never.
    unknown_ns: AtomicU64,
    /// How often the tokens have changed.
    generation: AtomicU64,
    /// The database by whose date tokens end.
    dates: OnceLock<esker::Database>,
}

impl TokenStore {
    /// The tokens of a directory; of none, tokens that end with the process.
    ///
    /// # Errors
    /// `Damaged` when the file is there and is not one of tokens.
    pub fn open(environment: &Environment, directory: Option<PathBuf>) -> Result<Self> {
        let state = match &directory {
            Some(directory) => read(environment, &directory.join(FILE))?,
            None => State::default(),
        };
        let read_ns = AtomicU64::new(environment.clock.monotonic_ns());
        let (environment, state) = (environment.clone(), RwLock::new(state));
        let (writing, generation, dates) = (Mutex::default(), AtomicU64::new(1), OnceLock::new());
        let unknown_ns = AtomicU64::new(0);
        Ok(Self { environment, directory, state, writing, read_ns, unknown_ns, generation, dates })
    }

    /// Tokens end by the date that a database goes by: a step of the wall clock brings none back,
    /// and ends none. Without one, by the wall clock.
    pub fn go_by(&self, database: &esker::Database) {
        let _ = self.dates.set(database.clone());
    }

    /// The date, in microseconds since 1970.
    fn now_us(&self) -> i64 {
        match self.dates.get() {
            Some(database) => database.moment().date_us,
            None => self.environment.clock.wall_us(),
        }
    }

    /// True when there is no token that could be used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).tokens.is_empty()
    }

    /// The tokens, by id.
    #[must_use]
    pub fn list(&self) -> Vec<TokenInfo> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.tokens.values().map(TokenInfo::from).collect()
    }

    /// Makes a token and returns it with its text, which is nowhere else.
    ///
    /// # Errors
    /// `InvalidRequest` without a name or a scope; `LimitExceeded` when there are too many.
    pub fn create(&self, new: &NewToken) -> Result<(TokenInfo, String)> {
        let length = new.name.chars().count();
        if length == 0 || length > 200 {
            let message = format!("name: expected 1 to 200 characters, found {length}");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        if new.scopes.is_empty() {
            let message = "scopes: expected at least one, such as read or write:TENANT";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let now_us = self.now_us();
        let id = self.random_digits(1);
        let text = self.text_of(&id);
        let lifetime_us = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let token = Token {
            hash: digits(&hash_of(&text)),
            id,
            name: new.name.clone(),
            scopes: new.scopes.iter().map(ToString::to_string).collect(),
            created_us: now_us,
            expires_us: new.lifetime.map(|time| now_us.saturating_add(lifetime_us(time))),
        };
        let info = TokenInfo::from(&token);
        self.change(|tokens| {
            if tokens.len() >= TOKENS_MAX {
                let message = format!("a server has at most {TOKENS_MAX} tokens: remove some");
                return Err(Error::new(Code::LimitExceeded, message));
            }
            tokens.insert(token.id.clone(), token);
            Ok(())
        })?;
        tracing::info!(token = info.id.as_str(), name = info.name.as_str(), "a token was made");
        Ok((info, text))
    }

    /// Makes a token with the same name, scopes and lifetime, and lets the old one end after
    /// `grace`, so that its users can change over.
    ///
    /// # Errors
    /// `NotFound` when there is no token of that id.
    pub fn rotate(&self, id: &str, grace: Duration) -> Result<(TokenInfo, String)> {
        let now_us = self.now_us();
        let new_id = self.random_digits(1);
        let text = self.text_of(&new_id);
        let until_us = now_us.saturating_add(i64::try_from(grace.as_micros()).unwrap_or(i64::MAX));
        let info = self.change(|tokens| {
            let old = tokens.get_mut(id).ok_or_else(|| not_found(id))?;
            let lifetime_us = old.expires_us.map(|end| end.saturating_sub(old.created_us));
            let new = Token {
                hash: digits(&hash_of(&text)),
                id: new_id,
                created_us: now_us,
                expires_us: lifetime_us.map(|lifetime| now_us.saturating_add(lifetime)),
                ..old.clone()
            };
            old.expires_us = Some(old.expires_us.map_or(until_us, |end| end.min(until_us)));
            if grace.is_zero() {
                tokens.remove(id);
            }
            let info = TokenInfo::from(&new);
            tokens.insert(new.id.clone(), new);
            Ok(info)
        })?;
        tracing::info!(token = id, by = info.id.as_str(), "a token was rotated");
        Ok((info, text))
    }

    /// Removes a token: from now on it opens nothing.
    ///
    /// # Errors
    /// `NotFound` when there is no token of that id.
    pub fn remove(&self, id: &str) -> Result<()> {
        self.change(|tokens| tokens.remove(id).map(drop).ok_or_else(|| not_found(id)))?;
        tracing::info!(token = id, "a token was removed");
        Ok(())
    }

    /// The principal of a text.
    ///
    /// # Errors
    /// `Unauthenticated`, in the same words for a token that is unknown, wrong or past its end.
    pub fn authenticate(&self, text: &str) -> Result<Principal> {
        let id = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).map(|(id, _)| id);
        let hash = hash_of(text);
        let refreshed = match self.is_known(id.unwrap_or_default()) {
            true => self.refresh(),
            false if self.may_read_for_unknown() => self.reload(),
            false => Ok(()),
        };
        if let Err(e) = refreshed {
            // Those read before hold: a client that shows a token does not learn what is wrong with
            // files.
            not_read(&e);
        }
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let entry = state.entries.get(id.unwrap_or_default()).ok_or_else(refused)?;
        let is_right: bool = entry.hash.ct_eq(&hash).into();
        let now_us = self.now_us();
        let is_over = entry.expires_us.is_some_and(|end| end <= now_us);
        if !is_right || is_over {
            return Err(refused());
        }
        Ok(entry.principal.clone())
    }

    /// True for a token that is not known and may have been made since the file was read.
    fn may_read_for_unknown(&self) -> bool {
        let now_ns = self.environment.clock.monotonic_ns();
        let last_ns = self.unknown_ns.load(Ordering::Relaxed);
        let is_due = last_ns == 0 || now_ns.saturating_sub(last_ns) >= UNKNOWN_REFRESH_NS;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let now_ns = now_ns.max(1);
        is_due && self.unknown_ns.compare_exchange(last_ns, now_ns, set, get).is_ok()
    }

    fn is_known(&self, id: &str) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.entries.contains_key(id)
    }

    fn random_digits(&self, words: usize) -> String {
        let mut text = String::new();
        for _ in 0..words {
            let _ = write!(text, "{:016x}", self.environment.random.next_u64());
        }
        text
    }

    fn text_of(&self, id: &str) -> String {
        format!("{PREFIX}{id}_{}", self.random_digits(4))
    }

    /// Makes a change durable, then visible.
    fn change<R>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Token>) -> Result<R>,
    ) -> Result<R> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _others = match &self.directory {
            Some(directory) => {
                let path = directory.join(LOCK);
                Some(self.environment.files.lock(&path, LockMode::Exclusive, "")?)
            }
            None => None,
        };
        let mut tokens = match &self.directory {
            Some(directory) => read(&self.environment, &directory.join(FILE))?.tokens,
            None => self.state.read().unwrap_or_else(PoisonError::into_inner).tokens.clone(),
        };
        let now_us = self.now_us();
        tokens.retain(|_, token| token.expires_us.is_none_or(|end| end > now_us));
        let outcome = change(&mut tokens)?;
        let entries = entries(&tokens)?;
        self.write(&tokens)?;
        self.replace(State { tokens, entries });
        Ok(outcome)
    }

    fn replace(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Reads the file again if that was not done lately.
    fn refresh(&self) -> Result<()> {
        if self.is_due() { self.reload() } else { Ok(()) }
    }

    /// True for the first who looks when the file was not read lately.
    fn is_due(&self) -> bool {
        self.due_age_ns().is_some()
    }

    /// How long ago the file was read, for the first who looks when that is not lately.
    fn due_age_ns(&self) -> Option<u64> {
        let (now_ns, read_ns) =
            (self.environment.clock.monotonic_ns(), self.read_ns.load(Ordering::Relaxed));
        let age_ns = now_ns.saturating_sub(read_ns);
        let is_old = self.directory.is_some() && age_ns >= REFRESH_NS;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_first = is_old && self.read_ns.compare_exchange(read_ns, now_ns, set, get).is_ok();
        is_first.then_some(age_ns)
    }

    /// Reads the file again, now.
    ///
    /// # Errors
    /// As for [`TokenStore::open`]; the tokens read before hold then.
    pub fn read_again(&self) -> Result<()> {
        self.reload()
    }

    fn reload(&self) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        // The thread that is at it does it for all.
        let Ok(_writing) = self.writing.try_lock() else { return Ok(()) };
        let state = read(&self.environment, &directory.join(FILE))?;
        let known =
            self.state.read().unwrap_or_else(PoisonError::into_inner).tokens == state.tokens;
        if !known {
            self.replace(state);
        }
        Ok(())
    }

    /// The same where waiting for the disk would harm others: beside the work at hand, unless
    /// the file was not read for so long that what is known may be wrong for this very request.
    fn refresh_beside(self: &Arc<Self>) {
        let Some(age_ns) = self.due_age_ns() else { return };
        if age_ns >= 2 * REFRESH_NS {
            if let Err(e) = self.reload() {
                not_read(&e);
            }
            return;
        }
        let this = Arc::clone(self);
        let reload = move || {
            if let Err(e) = this.reload() {
                not_read(&e);
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(reload)),
            Err(_) => reload(),
        }
    }

    /// When a token ends, in microseconds since 1970; `None` when there is none of that id.
    fn end_us(&self, id: &str) -> Option<i64> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.entries.get(id).map(|entry| entry.expires_us.unwrap_or(i64::MAX))
    }

    /// Refuses a client whose token is there no longer, or is past its end. A change by
    /// another program is seen about a second later.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub fn expect_valid(self: &Arc<Self>, standing: &Standing) -> Result<()> {
        self.refresh_beside();
        let generation = self.generation.load(Ordering::Acquire);
        let end_us = standing.end_us(generation, |id| self.end_us(id));
        if end_us < i64::MAX && end_us <= self.now_us() {
            return Err(refused());
        }
        Ok(())
    }

    fn write(&self, tokens: &BTreeMap<String, Token>) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let stored = Stored { version: 1, tokens: tokens.values().cloned().collect() };
        let text = serde_json::to_vec_pretty(&stored)
            .map_err(|e| Error::new(Code::Internal, format!("tokens: {e}")))?;
        replace_file(&self.environment, directory, TEMPORARY, FILE, &text)
    }
}

fn read(environment: &Environment, path: &std::path::Path) -> Result<State> {
    let Some(bytes) = read_file(environment, path)? else { return Ok(State::default()) };
    let damaged = |what: String| {
        Error::new(Code::Damaged, format!("{}: not a file of tokens: {what}", path.display()))
    };
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    if stored.version != 1 {
        return Err(damaged(format!("version {}, expected 1", stored.version)));
    }
    let tokens = stored.tokens.into_iter().map(|token| (token.id.clone(), token)).collect();
    let entries = entries(&tokens).map_err(|e| damaged(e.to_string()))?;
    Ok(State { tokens, entries })
}

fn entries(tokens: &BTreeMap<String, Token>) -> Result<BTreeMap<String, Entry>> {
    let invalid = |message| Error::new(Code::InvalidRequest, message);
    let entry = |token: &Token| {
        let hash = bytes_of(&token.hash)
            .ok_or_else(|| invalid(format!("token {}: its hash is not 64 digits", token.id)))?;
        let scopes = token.scopes.iter().map(|scope| scope.parse().map_err(invalid));
        let scopes = scopes.collect::<Result<Vec<Scope>>>()?;
        let (id, name) = (token.id.as_str().into(), token.name.as_str().into());
        let principal = Principal { id, name, scopes: scopes.into() };
        Ok((token.id.clone(), Entry { hash, principal, expires_us: token.expires_us }))
    };
    tokens.values().map(entry).collect()
}

fn not_read(e: &Error) {
    tracing::error!(error = %e, "the tokens were not read again");
}

fn refused() -> Error {
    Error::new(Code::Unauthenticated, "the token is unknown, wrong or past its end")
}

fn not_found(id: &str) -> Error {
    Error::new(Code::NotFound, format!("no token {id:?}"))
}

fn hash_of(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes_of(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(bytes)
}
