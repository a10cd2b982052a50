//! The word by which a column of scattered values names each of them.

/// Bits of a word that hold the length.
const LENGTH_BITS: u32 = 24;
/// The length that no value of a heap has.
const LONG: u64 = (1 << LENGTH_BITS) - 1;

/// Where one of the values of a column lies.
///
/// ```
/// use esker_format::value_file::HeapWord;
///
/// let word = HeapWord::Long { index: 5 }.word();
/// assert_eq!(HeapWord::of(word), HeapWord::Long { index: 5 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapWord {
    /// In the heap of the column.
    Near {
        /// Its first byte there.
        position: u64,
        /// Its length in bytes, below 2²⁴ − 1.
        len: u64,
    },
    /// In a value file.
    Long {
        /// The number of its reference among those of the column.
        index: u64,
    },
}

impl HeapWord {
    /// What a word says.
    #[must_use]
    #[inline]
    pub fn of(word: u64) -> Self {
        match word & LONG {
            LONG => Self::Long { index: word >> LENGTH_BITS },
            len => Self::Near { position: word >> LENGTH_BITS, len },
        }
    }

    /// The word that says it.
    #[must_use]
    pub fn word(self) -> u64 {
        match self {
            Self::Near { position, len } => position << LENGTH_BITS | len,
            Self::Long { index } => index << LENGTH_BITS | LONG,
        }
    }

    /// The place of a value in a heap, where a word has room for it.
    #[must_use]
    pub fn near(position: usize, len: usize) -> Option<Self> {
        let (position, len) = (position as u64, len as u64);
        let fits = len < LONG && position < 1 << (u64::BITS - LENGTH_BITS);
        fits.then_some(Self::Near { position, len })
    }
}
