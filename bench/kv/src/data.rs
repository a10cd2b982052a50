//! Keys and values, made before any clock starts.

/// Bytes of a key and of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub key: usize,
    pub value: usize,
}

/// Those of LMDB's benchmark.
pub const USUAL: Sizes = Sizes { key: 24, value: 150 };
/// Small ones.
pub const SMALL: Sizes = Sizes { key: 16, value: 8 };
/// Those of emdb's `concurrent_reads`.
const NUMBERED: Sizes = Sizes { key: 12, value: 64 };
/// Entries that are put one by one, each durable.
pub const SINGLES: usize = 1_000;
/// Entries of the batches: a hundred of a thousand.
pub const BATCHED: usize = 100_000;
/// Entries that are put one by one without waiting for the disk.
pub const UNSYNCED: usize = 50_000;
/// Entries that several threads put, each durable: by eight, and by sixty-four.
pub const GROUPED: usize = 3_200;
/// What there is beside the records, for all phases.
const MORE: usize = SINGLES + BATCHED + UNSYNCED + 3 * GROUPED;

/// What keys are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Random,
    /// All but the last eight bytes are the same.
    SharedPrefix,
    /// Numbers that rise by one, the most significant byte first.
    Counter,
    /// All have one hash by FxHash, which has no secret.
    EqualHashes,
}

/// Keys, none twice, and random values.
pub struct Data {
    sizes: Sizes,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// How many entries are loaded at first.
    pub records: usize,
    /// The order of reading.
    pub shuffled: Vec<u32>,
}

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 8);
        while out.len() < bytes {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(bytes);
        out
    }
}

impl Data {
    /// Enough entries for all phases, of which the first `records` are loaded.
    pub fn new(records: usize, sizes: Sizes, seed: u64) -> Self {
        let mut random = Random(seed);
        let keys = random.fill((records + MORE) * sizes.key);
        Self::with_keys(keys, sizes, records, random)
    }

    /// So many entries whose keys are of a kind.
    pub fn of_kind(kind: KeyKind, records: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut keys = Vec::with_capacity(records * USUAL.key);
        for number in 0..records as u64 {
            let words = match kind {
                KeyKind::Random => [random.next(), random.next(), random.next()],
                KeyKind::SharedPrefix => [0x7573_6572_3a30_3030, 0x3a61_6c6c, random.next()],
                KeyKind::Counter => [0, 0, number.swap_bytes()],
                KeyKind::EqualHashes => {
                    let (first, second) = (random.next(), random.next());
                    [first, second, fx(fx(0, first), second).rotate_left(5)]
                }
            };
            words.iter().for_each(|word| keys.extend_from_slice(&word.to_le_bytes()));
        }
        Self::with_keys(keys, USUAL, records, random)
    }

    /// So many entries with keys like `key-00000017`.
    pub fn numbered(records: usize) -> Self {
        let keys = (0..records).map(|number| format!("key-{number:08}")).collect::<String>();
        Self::with_keys(keys.into_bytes(), NUMBERED, records, Random(0))
    }

    fn with_keys(keys: Vec<u8>, sizes: Sizes, records: usize, mut random: Random) -> Self {
        let values = random.fill(keys.len() / sizes.key * sizes.value);
        let mut shuffled: Vec<u32> = (0..u32::try_from(records).unwrap_or(u32::MAX)).collect();
        for i in (1..shuffled.len()).rev() {
            let other = usize::try_from(random.next() % (i as u64 + 1)).unwrap_or_default();
            shuffled.swap(i, other);
        }
        shuffled.truncate(1_000_000);
        Self { sizes, keys, values, records, shuffled }
    }

    /// A key.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.keys[at * self.sizes.key..(at + 1) * self.sizes.key]
    }

    /// Its value.
    pub fn value(&self, at: usize) -> &[u8] {
        &self.values[at * self.sizes.value..(at + 1) * self.sizes.value]
    }

    /// Bytes of some entries, as they are.
    pub fn raw_bytes(&self, entries: usize) -> u64 {
        (entries * (self.sizes.key + self.sizes.value)) as u64
    }
}

/// A step of FxHash: the last word of a key can be chosen so that every hash is 0.
fn fx(state: u64, word: u64) -> u64 {
    (state.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}
