//! Which record is asked for, by the distributions of the YCSB paper.
//!
//! *Zipfian*: the record of rank r comes up in proportion to 1 / r^0.99, drawn as in Gray et al.,
//! "Quickly generating billion-record synthetic databases". *Scrambled*: the ranks are hashed
//! over the records, so that the popular ones do not lie side by side. *Latest*: the rank counts
//! back from the record that was inserted last. *Uniform*: each alike.

use crate::data::mix;

const THETA: f64 = 0.99;
/// Ranks before they are scrambled, and the sum of their weights, as in YCSB.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
const SCRAMBLED_WEIGHTS: f64 = 26.469_028_201_783_02;

/// Numbers from a seed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// At least 0, and below 1.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// At least 0, and below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.number()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// Ranks from 0, the most popular, of a number that may grow.
#[derive(Clone, Debug)]
pub(super) struct Zipfian {
    ranks: u64,
    weights: f64,
}

impl Zipfian {
    pub fn new(ranks: u64) -> Self {
        let mut zipfian = Self { ranks: 0, weights: 0.0 };
        zipfian.grow(ranks);
        zipfian
    }

    /// There are so many ranks now.
    pub fn grow(&mut self, ranks: u64) {
        for rank in self.ranks..ranks {
            self.weights += 1.0 / ((rank + 1) as f64).powf(THETA);
        }
        self.ranks = self.ranks.max(ranks);
    }

    pub fn next(&self, random: &mut Random) -> u64 {
        let (part, ranks) = (random.part(), self.ranks as f64);
        let second = 0.5_f64.powf(THETA);
        let weight = part * self.weights;
        if weight < 1.0 {
            return 0;
        }
        if weight < 1.0 + second {
            return 1;
        }
        let eta = (1.0 - (2.0 / ranks).powf(1.0 - THETA)) / (1.0 - (1.0 + second) / self.weights);
        whole(ranks * (eta * part - eta + 1.0).powf(1.0 / (1.0 - THETA))).min(self.ranks - 1)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cut on purpose: a rank is what stands before the point, and casts saturate"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Which of the records there are is asked for.
#[derive(Clone, Debug)]
pub(super) enum Distribution {
    /// Over so many records, of which the last need not be there yet.
    Scrambled {
        ranks: Zipfian,
        records: u64,
    },
    Latest(Zipfian),
    #[cfg(test)]
    Uniform,
}

impl Distribution {
    /// Popular records among those there are and will be.
    pub fn scrambled(records: u64) -> Self {
        let ranks = Zipfian { ranks: SCRAMBLED_RANKS, weights: SCRAMBLED_WEIGHTS };
        Self::Scrambled { ranks, records }
    }

    /// A record, of so many that there are.
    pub fn next(&mut self, random: &mut Random, there_are: u64) -> u64 {
        match self {
            Self::Scrambled { ranks, records } => loop {
                let record = fnv(ranks.next(random)) % *records;
                if record < there_are {
                    return record;
                }
            },
            Self::Latest(zipfian) => {
                zipfian.grow(there_are);
                there_are - 1 - zipfian.next(random)
            }
            #[cfg(test)]
            Self::Uniform => random.below(there_are),
        }
    }
}

/// The 64-bit hash that YCSB scatters numbers with.
pub(super) fn fnv(number: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    fn counts(records: u64, mut next: impl FnMut(&mut Random) -> u64) -> Vec<u64> {
        let mut counts = vec![0; usize::try_from(records).unwrap()];
        let mut random = Random::new(7);
        for _ in 0..DRAWS {
            counts[usize::try_from(next(&mut random)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        let zipfian = Zipfian::new(1_000);
        let counts = counts(1_000, |random| zipfian.next(random));
        for rank in [0usize, 1, 9, 99] {
            let wanted = 1.0 / ((rank + 1) as f64).powf(THETA) / zipfian.weights * DRAWS as f64;
            // What Gray's formula gives for single ranks is near the law, not the law.
            let (from, to) = (rank, (rank + 1 + rank / 3).min(999));
            let found = counts[from..to].iter().sum::<u64>() as f64 / (to - from) as f64;
            assert!((found / wanted - 1.0).abs() < 0.25, "rank {rank}: {found}, not {wanted}");
        }
    }

    #[test]
    fn growing_gives_what_beginning_there_gives() {
        let mut grown = Zipfian::new(10);
        grown.grow(5_000);
        assert!((grown.weights - Zipfian::new(5_000).weights).abs() < 1e-9);
    }

    #[test]
    fn the_latest_is_the_most_popular_and_the_scrambled_are_scattered() {
        let mut latest = Distribution::Latest(Zipfian::new(1));
        let found = counts(500, |random| latest.next(random, 500));
        assert!(found.iter().max() == found.last() && found[0] < found[499] / 50);
        let mut scrambled = Distribution::scrambled(600);
        let mut found = counts(500, |random| scrambled.next(random, 500));
        found.sort_unstable();
        // A tenth of the records have far more than a tenth of the requests.
        assert!(found[450..].iter().sum::<u64>() > DRAWS / 4, "{found:?}");
        let uniform = counts(500, |random| Distribution::Uniform.next(random, 500));
        assert!(uniform.iter().all(|count| (200..700).contains(count)));
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Eight zero bytes leave the basis multiplied eight times.
        let mut wanted = 0xCBF2_9CE4_8422_2325_u64;
        (0..8).for_each(|_| wanted = wanted.wrapping_mul(1_099_511_628_211));
        assert_eq!(fnv(0), wanted.cast_signed().unsigned_abs());
        assert_ne!(fnv(1), fnv(256));
    }
}
