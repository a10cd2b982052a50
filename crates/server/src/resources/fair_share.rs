//! Turns of connections that share a thread.
//!
//! Of a client that sends without a pause there is always more to read, and its connection does not
//! wait. The runtime takes its turn away after so many reads, but of 64 KiB each: those of dozens
//! of such clients come to many MiB before anybody else has a turn. So bytes are counted.

/// Bytes that are read before others have their turn.
const BYTES_MAX: usize = 1 << 20;
/// What a read counts at the least.
const READ_BYTES_MIN: usize = 16 << 10;

/// What a connection has read in its turn.
#[derive(Debug, Default)]
pub(crate) struct FairShare {
    bytes: usize,
}

impl FairShare {
    /// Notes a read, and lets others have their turn once there were enough.
    pub async fn note_read(&mut self, bytes: usize) {
        self.bytes += bytes.max(READ_BYTES_MIN);
        if self.bytes >= BYTES_MAX {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn others_have_a_turn_for_each_mebibyte_and_for_many_small_reads() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let count = async |reads, bytes| {
            let (others, is_done) = (Cell::new(0), Cell::new(false));
            let reads = async {
                let mut fair_share = FairShare::default();
                for _ in 0..reads {
                    fair_share.note_read(bytes).await;
                }
                is_done.set(true);
            };
            let other = async {
                while !is_done.get() {
                    others.set(others.get() + 1);
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(reads, other);
            others.get()
        };
        assert!((10..=11).contains(&runtime.block_on(count(160, 64 << 10))));
        assert!((10..=11).contains(&runtime.block_on(count(640, 1))));
        assert_eq!(runtime.block_on(count(10, 64 << 10)), 0);
    }
}
