//! Where scans go on: a number for a client, a key for the server.
//!
//! A cursor is good for any connection, as often as it is sent. The oldest are forgotten when
//! there are too many, and a client that sends one of those gets an error.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, Weak};

use crate::session::group_sync::Durability;

/// The most that are known.
const CURSORS_MAX: usize = 4_096;
/// The most bytes of their keys.
const KEY_BYTES_MAX: usize = 4 << 20;

/// A bucket of a database: tenants may have buckets of one name.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The database, by what it alone has.
    pub database: Weak<Durability>,
    pub bucket: String,
}

#[derive(Debug, Default)]
struct Known {
    /// The number of the oldest.
    first: u64,
    keys: VecDeque<(Place, Vec<u8>)>,
    bytes: usize,
}

/// The cursors of a server.
#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<Known>);

impl Cursors {
    /// A number for the last key of a bucket that was sent.
    pub fn add(&self, place: Place, key: &[u8]) -> u64 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.bytes += key.len();
        known.keys.push_back((place, key.to_vec()));
        while known.keys.len() > CURSORS_MAX || known.bytes > KEY_BYTES_MAX {
            let Some((_, key)) = known.keys.pop_front() else { break };
            known.bytes -= key.len();
            known.first += 1;
        }
        // 0 is the start of a scan, and its end.
        known.first + known.keys.len() as u64
    }

    /// The key of a number; `None` when it is not known, or of another bucket.
    pub fn find(&self, place: &Place, cursor: u64) -> Option<Vec<u8>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = cursor.checked_sub(known.first + 1)?;
        let (of, key) = known.keys.get(usize::try_from(position).ok()?)?;
        let is_there = of.bucket == place.bucket && of.database.ptr_eq(&place.database);
        is_there.then(|| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn place(bucket: &str) -> Place {
        Place { database: Weak::new(), bucket: bucket.to_owned() }
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let (cursors, b) = (Cursors::default(), place("b"));
        let first = cursors.add(b.clone(), b"k");
        assert_eq!((first, cursors.find(&b, first)), (1, Some(b"k".to_vec())));
        assert_eq!((cursors.find(&place("c"), first), cursors.find(&b, 0)), (None, None));
        let last = (0..CURSORS_MAX).map(|_| cursors.add(b.clone(), b"l")).last().unwrap();
        assert_eq!((cursors.find(&b, first), cursors.find(&b, last)), (None, Some(vec![b'l'])));
    }

    #[tokio::test]
    async fn a_cursor_is_of_one_database() {
        let database = esker::Options::new().memory().unwrap();
        let [mine, yours] = [0, 1].map(|_| Durability::start(&database));
        let of = |durability: &Arc<Durability>| Place {
            database: Arc::downgrade(durability),
            ..place("b")
        };
        let cursors = Cursors::default();
        let cursor = cursors.add(of(&mine), b"k");
        assert_eq!(cursors.find(&of(&mine), cursor), Some(b"k".to_vec()));
        assert_eq!(cursors.find(&of(&yours), cursor), None);
    }
}
