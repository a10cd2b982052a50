//! Listeners, and telling them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{FitsPattern, Inbox, Notification};
use crate::Database;
use crate::engine::Engine;

/// Gets what is told on some channels, from [`Database::listener`]; it listens until it is
/// dropped.
pub struct Listener {
    engine: Arc<Engine>,
    id: u64,
    inbox: Arc<Inbox>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({})", self.id)
    }
}

impl Database {
    /// Tells the listeners of a channel; how many times, where one that has it by
    /// several patterns counts for each. Nothing is stored.
    ///
    /// ```
    /// use esker::Options;
    ///
    /// let db = Options::new().memory()?;
    /// let mut listener = db.listener(None);
    /// listener.listen(b"stock");
    /// assert_eq!(db.notify(b"stock", b"bolt"), 1);
    /// assert_eq!(db.notify(b"other", b""), 0);
    /// assert_eq!(&*listener.try_next().unwrap().payload, b"bolt");
    /// assert_eq!(listener.try_next(), None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn notify(&self, channel: &[u8], payload: &[u8]) -> usize {
        self.engine().channels.tell(channel, payload)
    }

    /// A listener that has no channel yet. `wake` is called when something is told to it, by who
    /// tells it: it must not wait.
    #[must_use]
    pub fn listener(&self, wake: Option<Box<dyn Fn() + Send + Sync>>) -> Listener {
        let engine: &Arc<Engine> = self.engine();
        let (id, inbox) = engine.channels.add(&engine.environment.tasks, wake);
        Listener { engine: Arc::clone(engine), id, inbox }
    }

    /// How many times a channel would be told now.
    #[must_use]
    pub fn listeners_of(&self, channel: &[u8]) -> usize {
        self.engine().channels.count(channel)
    }

    /// The channels that have listeners by their names, sorted, with how many.
    #[must_use]
    pub fn channels(&self) -> Vec<(Vec<u8>, usize)> {
        let mut all: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for inbox in self.engine().channels.all() {
            for channel in inbox.state().channels.iter() {
                *all.entry(channel.to_vec()).or_default() += 1;
            }
        }
        all.into_iter().collect()
    }

    /// How many patterns are listened to.
    #[must_use]
    pub fn channel_patterns(&self) -> usize {
        let listeners = self.engine().channels.all();
        let mut patterns: Vec<Arc<[u8]>> = Vec::new();
        for inbox in listeners {
            patterns.extend(inbox.state().patterns.keys().cloned());
        }
        patterns.sort();
        patterns.dedup();
        patterns.len()
    }
}

impl Listener {
    /// Listens to a channel, too.
    pub fn listen(&mut self, channel: &[u8]) {
        self.inbox.state().channels.insert(Arc::from(channel));
    }

    /// Listens to a channel no longer; false when it did not.
    pub fn unlisten(&mut self, channel: &[u8]) -> bool {
        self.inbox.state().channels.remove(channel)
    }

    /// Listens to the channels that fit a pattern.
    pub fn listen_to_pattern(&mut self, pattern: &[u8], fits: FitsPattern) {
        self.inbox.state().patterns.insert(Arc::from(pattern), fits);
    }

    /// Listens to those no longer; false when it did not.
    pub fn unlisten_to_pattern(&mut self, pattern: &[u8]) -> bool {
        self.inbox.state().patterns.remove(pattern).is_some()
    }

    /// The channels that it listens to by their names, sorted.
    #[must_use]
    pub fn channels(&self) -> Vec<Arc<[u8]>> {
        self.inbox.state().channels.iter().cloned().collect()
    }

    /// The patterns that it listens to, sorted.
    #[must_use]
    pub fn patterns(&self) -> Vec<Arc<[u8]>> {
        self.inbox.state().patterns.keys().cloned().collect()
    }

    /// What was told first of what was not taken yet.
    #[must_use]
    pub fn try_next(&mut self) -> Option<Notification> {
        self.inbox.state().pop()
    }

    /// Whether something was told that was not taken yet.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.inbox.state().has_some()
    }

    /// The same, once there is something, or nothing after so long.
    #[must_use]
    pub fn next(&mut self, wait: Duration) -> Option<Notification> {
        let seen = self.inbox.told.generation();
        if let Some(next) = self.try_next() {
            return Some(next);
        }
        self.engine.environment.tasks.wait_timeout(&self.inbox.told, seen, wait);
        self.try_next()
    }

    /// Whether some was lost, since more waited than is kept; from now on anew.
    pub fn take_overrun(&mut self) -> bool {
        std::mem::take(&mut self.inbox.state().is_overrun)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.engine.channels.remove(self.id);
    }
}
