//! The shares of the budget of a connection.

use std::collections::VecDeque;

use esker_wire::Frame;

use super::super::{buffers, encode, stream::READ_BYTES};
use super::Connection;
use super::answers::Held;
use crate::Error;
use crate::resources::budget::SMALL_BYTES;

/// A buffer of answers that is kept while nothing is under way.
const OUT_KEPT_BYTES: usize = 4 << 10;

/// The bytes of answers that wait.
pub(super) fn bytes_of(out: &[u8], held: &VecDeque<Held>) -> usize {
    out.len() + held.iter().map(|held| held.frames.len()).sum::<usize>()
}

impl Connection<'_> {
    /// Brings the shares in step with what is in memory.
    pub(super) fn share_memory(&mut self) {
        let rest = self.input.get(self.read_to..).unwrap_or_default();
        if !rest.is_empty() || self.incoming.bytes() > 0 {
            // A large frame needs its share before it comes.
            let announced = Frame::announced(rest).filter(|total| {
                *total > SMALL_BYTES && Frame::parse(rest, self.request_bytes_max()).is_ok()
            });
            let needed = announced.unwrap_or(0).max(rest.len());
            if self.wanted.is_none() {
                match self.incoming.resize(needed) {
                    true => self.make_room(announced),
                    false => self.wanted = Some(needed),
                }
            }
        }
        let answers = bytes_of(&self.out, &self.held);
        if answers != self.outgoing.bytes() {
            self.is_over = !self.outgoing.resize(answers);
        }
    }

    /// Makes room for a large frame that has its share, once.
    fn make_room(&mut self, announced: Option<usize>) {
        let end = self.read_to + announced.unwrap_or(0);
        if end > self.input.capacity() {
            self.input.reserve_exact(end + READ_BYTES - self.input.len());
        }
    }

    /// The most bytes of a request; fewer before it is known who asks.
    pub(super) fn request_bytes_max(&self) -> usize {
        let is_known = self.session.is_some() || self.is_away;
        let most = self.shared.config.request_bytes_max;
        if is_known { most } else { most.min(SMALL_BYTES) }
    }

    /// There was no memory for what the client sends: it gets an error, and has to begin again.
    pub(super) fn refuse(&mut self, e: &Error) {
        self.wanted = None;
        encode::error(&mut self.out, 0, e);
        self.read_to = self.input.len();
        self.end();
    }

    /// Drops what has been dealt with.
    pub(super) fn compact_input(&mut self) {
        if self.read_to >= self.input.len() {
            self.input.clear();
            self.read_to = 0;
            if self.input.capacity() > buffers::KEPT_BYTES_MAX {
                self.input = Vec::new();
            }
        } else if self.read_to > READ_BYTES {
            self.input.drain(..self.read_to);
            self.read_to = 0;
        }
    }

    /// A connection that waits has no larger buffers than it needs.
    pub(super) fn release_buffers(&mut self) {
        let rest = self.input.get(self.read_to..).unwrap_or_default();
        if rest.is_empty() {
            self.read_to = 0;
            buffers::give(std::mem::take(&mut self.input));
        } else if rest.len() < READ_BYTES / 4 && self.incoming.bytes() <= rest.len() {
            let rest = rest.to_vec();
            self.read_to = 0;
            buffers::give(std::mem::replace(&mut self.input, rest));
        }
        if self.out.is_empty() && self.out.capacity() > OUT_KEPT_BYTES {
            buffers::give(std::mem::take(&mut self.out));
        }
    }
}
