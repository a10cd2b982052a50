//! Where bytes lie that a slice of a column borrows and that no file has as they are read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// How many pieces the first shelf has; each one more has twice as many as the one before.
const PIECES: usize = 16;
/// The most shelves: more pieces than memory holds.
const SHELVES: usize = 40;

/// Memory for what readers of packed columns borrow: numbers that were unpacked, blocks that were
/// decompressed. It takes none until it is needed, and gives all of it back when it is dropped: who
/// reads makes one for a batch of rows, not for a table.
///
/// ```
/// use esker_format::Room;
///
/// let room = Room::default();
/// let (a, b) = (room.bytes(vec![1, 2]), room.bytes(vec![3]));
/// assert_eq!((a, b), (&[1, 2][..], &[3][..]));
/// ```
#[derive(Default)]
pub struct Room {
    shelves: OnceLock<Box<[Shelf; SHELVES]>>,
    count: AtomicUsize,
}

type Shelf = OnceLock<Box<[OnceLock<Piece>]>>;

enum Piece {
    None,
    Bytes(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Shared(Arc<[u8]>),
}

impl Room {
    /// Keeps bytes.
    pub fn bytes(&self, bytes: Vec<u8>) -> &[u8] {
        match self.keep(Piece::Bytes(bytes)) {
            Piece::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Keeps numbers.
    pub fn u16s(&self, numbers: Vec<u16>) -> &[u16] {
        match self.keep(Piece::U16(numbers)) {
            Piece::U16(numbers) => numbers,
            _ => &[],
        }
    }

    /// Keeps numbers.
    pub fn u32s(&self, numbers: Vec<u32>) -> &[u32] {
        match self.keep(Piece::U32(numbers)) {
            Piece::U32(numbers) => numbers,
            _ => &[],
        }
    }

    /// Keeps numbers.
    pub fn u64s(&self, numbers: Vec<u64>) -> &[u64] {
        match self.keep(Piece::U64(numbers)) {
            Piece::U64(numbers) => numbers,
            _ => &[],
        }
    }

    /// Keeps bytes that others have, too.
    pub fn shared(&self, bytes: Arc<[u8]>) -> &[u8] {
        match self.keep(Piece::Shared(bytes)) {
            Piece::Shared(bytes) => bytes,
            _ => &[],
        }
    }

    fn keep(&self, piece: Piece) -> &Piece {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let shelf = (number / PIECES + 1).ilog2();
        let len = PIECES << shelf;
        let shelves = self.shelves.get_or_init(|| Box::new([const { OnceLock::new() }; SHELVES]));
        let place = shelves.get(shelf as usize).and_then(|shelf| {
            let places = shelf.get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
            places.get(number + PIECES - len)
        });
        // default: there are more places than a computer has bytes
        place.map_or(&Piece::None, |place| place.get_or_init(|| piece))
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Room")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_where_they_are() {
        let room = Room::default();
        let kept: Vec<_> = (0..100u32).map(|n| room.u32s(vec![n, n + 1])).collect();
        let shared = room.shared(Arc::from([7u8, 8]));
        for (n, piece) in (0u32..).zip(kept) {
            assert_eq!(piece, [n, n + 1]);
        }
        assert_eq!(shared, [7, 8]);
    }
}
