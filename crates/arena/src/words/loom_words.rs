//! Words backed by loom's atomics, so that the models run the containers' real code.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "only the models use it")]

use crate::error::ArenaError;
use crate::words::{WordHeap, Words};
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// A fixed number of words, all made by the thread that makes this.
#[derive(Debug)]
pub(crate) struct LoomWords {
    words: Vec<AtomicU64>,
    next: Mutex<u64>,
}

impl LoomWords {
    pub(crate) fn new(count: usize) -> Self {
        // Word 0 means "none", as in the arena.
        let words = (0..count).map(|_| AtomicU64::new(0)).collect();
        Self { words, next: Mutex::new(8) }
    }

    fn word(&self, word: u64) -> &AtomicU64 {
        &self.words[usize::try_from(word).unwrap()]
    }
}

impl Words for &LoomWords {
    fn load(self, word: u64) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }

    fn store(self, word: u64, value: u64) {
        self.word(word).store(value, Ordering::Release);
    }

    fn compare_exchange(self, word: u64, current: u64, new: u64) -> Result<u64, u64> {
        self.word(word).compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    fn fence(self) {
        fence(Ordering::SeqCst);
    }
}

impl WordHeap for LoomWords {
    type View<'a> = &'a LoomWords;

    fn view(&self) -> &LoomWords {
        self
    }

    fn allocate(&self, count: u64) -> Result<u64, ArenaError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *next;
        let end = first + count.next_multiple_of(8);
        assert!(end <= self.words.len() as u64, "the model needs {end} words");
        *next = end;
        Ok(first)
    }

    fn allocated_bytes(&self) -> u64 {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) * 8
    }
}

/// Runs a model over every interleaving with at most three preemptions (`LOOM_MAX_PREEMPTIONS`).
///
/// The model's own thread writes and a spawned one reads, never the other way round: loom remembers
/// one last access a word, so a writer that loads a word before it stores to it hides a reader's
/// load that went before, and the reduction then skips what should be explored. With the reader
/// second, its loads meet the writer's stores, which nothing hides.
pub(crate) fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.max_branches = 20_000;
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&runs);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let runs = runs.load(Ordering::Relaxed);
    eprintln!("{runs} interleavings");
    assert!(runs > 3, "only {runs} interleavings: the model explores nothing");
}
