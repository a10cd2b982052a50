//! Seeded randomness.

use std::sync::Arc;

use super::world::World;
use crate::Random;

/// A small seeded generator (SplitMix64), for the simulator and what drives it.
///
/// ```
/// use esker_vfs::sim::Generator;
///
/// let mut one = Generator::new(7, 0);
/// let mut two = Generator::new(7, 0);
/// assert_eq!(one.next_u64(), two.next_u64());
/// assert!(one.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Generator(u64);

impl Generator {
    /// The generator for one `stream` of a seed. Streams of one seed are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(stream)))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..bound`; zero when `bound` is.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// A position in a list of `len` elements; zero when it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// One of the elements.
    pub fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        const { assert!(N > 0, "nothing to pick from") };
        let chosen = self.index(N);
        #[allow(clippy::indexing_slicing, reason = "an index below N, which is not zero")]
        from[chosen]
    }

    /// True this often in a million.
    pub fn chance(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (to, from) in chunk.iter_mut().zip(self.next_u64().to_le_bytes()) {
                *to = from;
            }
        }
    }
}

/// The finaliser of SplitMix64: every input bit moves every output bit.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The generator that the engine draws from.
#[derive(Debug)]
pub(crate) struct SimRandom(pub(crate) Arc<World>);

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        let mut state = self.0.lock();
        let value = state.random.next_u64();
        state.trace.record("random", &[value]);
        value
    }
}
