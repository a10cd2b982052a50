//! Channels: wake-ups for listeners in this process.
//!
//! ```text
//! NOTIFY stock, 'bolt'     PUBLISH stock bolt
//!          └──────────┬───────────┘
//!                 Channels ─► queue of each listener that has the channel, or a pattern of it
//! ```
//!
//! A notification goes to the listeners of the moment and is stored nowhere: one that comes later,
//! or restarts, does not get it. What must not be missed is in a feed or a stream. A
//! listener that does not take what it is told loses it beyond a number of bytes, and is told that
//! it has.

mod listener;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_vfs::sync::{AtomicU64, Mutex, MutexGuard};
use esker_vfs::{Event, Tasks};

pub use listener::Listener;

/// Bytes that wait for a listener, at the most.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a notification beside its texts, about.
const NOTIFICATION_BYTES: usize = 64;

/// What was told on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The channel.
    pub channel: Arc<[u8]>,
    /// The pattern by which a listener has it; `None`: by its name.
    pub pattern: Option<Arc<[u8]>>,
    /// What was said.
    pub payload: Arc<[u8]>,
}

/// Whether a channel fits a pattern: the pattern, and the name of the channel.
pub type FitsPattern = fn(&[u8], &[u8]) -> bool;

/// The listeners of a database.
#[derive(Default)]
pub(crate) struct Channels {
    listeners: Mutex<BTreeMap<u64, Arc<Inbox>>>,
    next: AtomicU64,
}

/// What a listener has, and what waits for it.
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    pub(super) told: Event,
    tasks: Arc<dyn Tasks>,
    wake: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
pub(super) struct InboxState {
    pub(super) channels: BTreeSet<Arc<[u8]>>,
    pub(super) patterns: BTreeMap<Arc<[u8]>, FitsPattern>,
    queue: VecDeque<Notification>,
    bytes: usize,
    pub(super) is_overrun: bool,
}

impl InboxState {
    pub(super) fn has_some(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many times it is told what is said on a channel.
    fn count(&self, channel: &[u8]) -> usize {
        let by_pattern = self.patterns.iter().filter(|(pattern, fits)| fits(pattern, channel));
        usize::from(self.channels.contains(channel)) + by_pattern.count()
    }

    /// What was told first.
    pub(super) fn pop(&mut self) -> Option<Notification> {
        let next = self.queue.pop_front()?;
        let bytes = next.channel.len() + next.payload.len() + NOTIFICATION_BYTES;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(next)
    }
}

impl Inbox {
    pub(super) fn state(&self) -> MutexGuard<'_, InboxState> {
        // default: what it has is whole between any two steps
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a listener, by its name for the channel and by each pattern; how many times.
    fn tell(&self, channel: &Arc<[u8]>, payload: &Arc<[u8]>) -> usize {
        let mut state = self.state();
        let by_name = state.channels.contains(channel).then_some(None);
        let fitting = state.patterns.iter().filter(|(pattern, fits)| fits(pattern, channel));
        let by_pattern = fitting.map(|(pattern, _)| Some(Arc::clone(pattern)));
        let patterns: Vec<Option<Arc<[u8]>>> = by_name.into_iter().chain(by_pattern).collect();
        for pattern in &patterns {
            let bytes = channel.len() + payload.len() + NOTIFICATION_BYTES;
            if state.bytes + bytes > QUEUE_BYTES_MAX {
                state.is_overrun = true;
                break;
            }
            state.bytes += bytes;
            let (channel, payload) = (Arc::clone(channel), Arc::clone(payload));
            state.queue.push_back(Notification { channel, pattern: pattern.clone(), payload });
        }
        drop(state);
        if !patterns.is_empty() {
            self.tasks.signal(&self.told, usize::MAX);
            self.wake.iter().for_each(|wake| wake());
        }
        patterns.len()
    }
}

impl Channels {
    /// One more listener, and its number.
    pub(super) fn add(
        &self,
        tasks: &Arc<dyn Tasks>,
        wake: Option<Box<dyn Fn() + Send + Sync>>,
    ) -> (u64, Arc<Inbox>) {
        let (state, told, tasks) = (Mutex::default(), Event::new(), Arc::clone(tasks));
        let inbox = Arc::new(Inbox { state, told, tasks, wake });
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // default: it is whole between any two steps
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.insert(id, Arc::clone(&inbox));
        (id, inbox)
    }

    pub(super) fn remove(&self, id: u64) {
        // default: as above
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    pub(super) fn all(&self) -> Vec<Arc<Inbox>> {
        // default: it is whole between any two steps
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.values().map(Arc::clone).collect()
    }

    pub(super) fn count(&self, channel: &[u8]) -> usize {
        self.all().iter().map(|inbox| inbox.state().count(channel)).sum()
    }

    pub(super) fn tell(&self, channel: &[u8], payload: &[u8]) -> usize {
        let listeners = self.all();
        if listeners.is_empty() {
            return 0;
        }
        let (channel, payload) = (Arc::from(channel), Arc::from(payload));
        listeners.iter().map(|inbox| inbox.tell(&channel, &payload)).sum()
    }
}
