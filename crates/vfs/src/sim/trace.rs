//! A running hash over all that happens, and the last lines of it in words.

use std::collections::VecDeque;

use super::random::mix;

/// What happened so far, folded into 64 bits.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    keep: usize,
    lines: VecDeque<String>,
}

impl Trace {
    pub(crate) fn new(seed: u64, keep: usize) -> Self {
        Self { hash: mix(seed), keep, lines: VecDeque::new() }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    /// Adds one happening.
    pub(crate) fn record(&mut self, what: &str, numbers: &[u64]) {
        self.record_at(what, "", numbers);
    }

    /// Adds one happening at a place.
    pub(crate) fn record_at(&mut self, what: &str, place: &str, numbers: &[u64]) {
        let mut hash = fold(fold(self.hash, what.as_bytes()), place.as_bytes());
        for number in numbers {
            hash = mix(hash ^ number);
        }
        self.hash = hash;
        if self.keep > 0 {
            if self.lines.len() == self.keep {
                self.lines.pop_front();
            }
            self.lines.push_back(format!("{what} {place} {numbers:?}"));
        }
    }
}

/// Folds bytes and their number into a hash: thirty-two at a time in four lanes, which do not
/// wait for one another, then eight at a time.
pub(crate) fn fold(hash: u64, bytes: &[u8]) -> u64 {
    let mut hash = hash ^ bytes.len() as u64;
    let (blocks, rest) = bytes.as_chunks::<32>();
    if !blocks.is_empty() {
        let mut lanes = [hash, hash ^ 1, hash ^ 2, hash ^ 3];
        for block in blocks {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                *lane = step(*lane, *word);
            }
        }
        hash = lanes.into_iter().fold(hash, |hash, lane| mix(hash ^ lane));
    }
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = step(hash, *word);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(hash ^ u64::from_le_bytes(last))
}

fn step(hash: u64, word: [u8; 8]) -> u64 {
    let hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ (hash >> 32)
}
