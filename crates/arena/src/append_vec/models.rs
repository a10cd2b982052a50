//! Loom models of publication: an element below the length is finished, and its chunk is there.

use super::publication::{Publication, place_of};
use crate::words::loom_words::{LoomWords, explore};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Plain memory, on which loom reports any access not ordered by the words.
struct Elements(Vec<UnsafeCell<u64>>);

#[allow(unsafe_code, reason = "loom's cells")]
// SAFETY: loom checks that accesses are ordered, which is what the models are about.
unsafe impl Sync for Elements {}

#[test]
#[allow(unsafe_code, reason = "loom's cells")]
fn loom_published_elements_are_finished() {
    explore(|| {
        let publication = Arc::new(Publication::new(LoomWords::new(64)).unwrap());
        // Elements 30 … 33 cross from chunk 0 to chunk 1.
        publication.ensure(0, 30, |_| Ok(1)).unwrap();
        publication.publish(30);
        let elements = Arc::new(Elements((0..4).map(|_| UnsafeCell::new(0)).collect()));
        let reader = {
            let (publication, elements) = (Arc::clone(&publication), Arc::clone(&elements));
            thread::spawn(move || {
                let mut seen = 30;
                for _ in 0..2 {
                    let len = publication.len();
                    assert!(len >= seen && [30, 31, 33, 34].contains(&len));
                    for index in seen..len {
                        assert_ne!(publication.chunk(place_of(index).chunk), 0);
                        // SAFETY: loom checks the access.
                        let value = elements.0[index - 30].with(|cell| unsafe { *cell });
                        assert_eq!(value, 7);
                    }
                    seen = len;
                }
            })
        };
        for (len, end) in [(30, 31), (31, 33), (33, 34)] {
            publication.ensure(len, end, |_| Ok(2)).unwrap();
            for index in len..end {
                // SAFETY: loom checks the access.
                elements.0[index - 30].with_mut(|cell| unsafe { *cell = 7 });
            }
            publication.publish(end);
        }
        reader.join().unwrap();
        assert_eq!(publication.len(), 34);
    });
}
