//! The one way in which containers reach shared memory.

mod arena_words;
#[cfg(loom)]
pub(crate) mod loom_words;

pub(crate) use arena_words::ArenaWords;

use crate::error::ArenaError;

/// Atomic 64-bit words, named by their index.
///
/// The containers' algorithms are written against this trait and [`WordHeap`]; the arena backs them
/// in the engine and loom's atomics in the models. Every load acquires and every store releases:
/// a reader of a stored value sees all that its writer did before. That costs nothing on x86-64,
/// needs no fences that a race detector cannot follow, and leaves one rule to remember.
pub(crate) trait Words: Copy {
    /// The word's value; 0 for a word that does not exist.
    fn load(self, word: u64) -> u64;

    /// The same for a look at many words: in a model no other thread runs before each.
    fn peek(self, word: u64) -> u64 {
        self.load(word)
    }

    /// Replaces the word's value.
    fn store(self, word: u64, value: u64);

    /// Replaces `current` by `new`; the value found when it is another one.
    fn compare_exchange(self, word: u64, current: u64, new: u64) -> Result<u64, u64>;

    /// Orders everything before it against everything after it, among all such fences.
    fn fence(self);
}

/// The words of one container, and a way to get more of them.
pub(crate) trait WordHeap: Send + Sync {
    /// The words, in a form that stays in registers: an acquiring load makes the compiler forget
    /// what it knows of memory, the address of the words included.
    type View<'a>: Words
    where
        Self: 'a;

    fn view(&self) -> Self::View<'_>;

    /// The index of the first of `count` zeroed words, aligned to 8 words. They belong to the
    /// container that holds this handle and are freed with it.
    fn allocate(&self, count: u64) -> Result<u64, ArenaError>;

    /// Bytes taken by `allocate` so far.
    fn allocated_bytes(&self) -> u64;
}
