//! Keys and values, made before any clock starts.

/// Bytes of a key.
pub const KEY_BYTES: usize = 24;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 150;
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

/// Random keys, none twice, and random values.
pub struct Data {
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
    pub fn new(records: usize, seed: u64) -> Self {
        let count = records + MORE;
        let mut random = Random(seed);
        let keys = random.fill(count * KEY_BYTES);
        let values = random.fill(count * VALUE_BYTES);
        let mut shuffled: Vec<u32> = (0..u32::try_from(records).unwrap_or(u32::MAX)).collect();
        for i in (1..shuffled.len()).rev() {
            let other = usize::try_from(random.next() % (i as u64 + 1)).unwrap_or_default();
            shuffled.swap(i, other);
        }
        shuffled.truncate(1_000_000);
        Self { keys, values, records, shuffled }
    }

    /// A key.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.keys[at * KEY_BYTES..(at + 1) * KEY_BYTES]
    }

    /// Its value.
    pub fn value(&self, at: usize) -> &[u8] {
        &self.values[at * VALUE_BYTES..(at + 1) * VALUE_BYTES]
    }

    /// Bytes of some entries, as they are.
    pub fn raw_bytes(entries: usize) -> u64 {
        (entries * (KEY_BYTES + VALUE_BYTES)) as u64
    }
}
