//! Numbers that look random, each series of one number.

/// Numbers that look random, of one number.
pub struct Draws(u64);

impl Draws {
    /// The series of a number.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to and not including 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below a number, each as likely.
    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }

    /// Below a number, the low ones far more often: the square root of all has half of the draws
    /// for a power of 2, and so on.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is below count")]
    pub fn skewed(&mut self, count: u64, power: i32) -> u64 {
        (count as f64 * self.share().powi(power)) as u64
    }

    /// True so many times of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of all, the first far more often: see [`Draws::skewed`].
    pub fn pick<T: Copy + Default>(&mut self, all: &[T], power: i32) -> T {
        let at = self.skewed(all.len() as u64, power);
        usize::try_from(at).ok().and_then(|at| all.get(at)).copied().unwrap_or_default()
    }
}
