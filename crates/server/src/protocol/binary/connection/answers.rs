//! What waits for the disk, and for the socket.

use std::io;

use esker_wire::{Code, Frame};
use tokio::time::Instant;

use super::super::encode;
use super::super::job::JobOutput;
use super::super::operations::Asked;
use super::Connection;
use crate::session::Canceller;
use crate::session::group_sync;

/// Answers that are sent once a commit is durable.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub commit: u64,
    pub frames: Vec<u8>,
    /// What they answer, and with which errors.
    pub asked: Vec<(Asked, Option<Code>)>,
}

impl Connection<'_> {
    /// Takes what a job has to say.
    pub(super) fn take(&mut self, output: JobOutput) {
        self.outgoing.absorb(output.share);
        let commit = output.finished.as_ref().and_then(|finished| finished.commit);
        match commit {
            Some(_) => self.holding.frames.extend_from_slice(&output.bytes),
            None => self.out.extend_from_slice(&output.bytes),
        }
        let Some(finished) = output.finished else { return };
        let finished = *finished;
        if let Some(running) = self.running.remove(&output.id) {
            self.beside -= usize::from(running.is_beside);
            self.tails -= usize::from(running.tap.is_some());
            if let Some(commit) = commit {
                self.holding.commit = self.holding.commit.max(commit);
                self.holding.asked.push((running.asked, finished.failed));
            } else {
                let operations = &self.shared.config.operations;
                running.asked.count(operations, finished.failed, Instant::now());
            }
        }
        if self.full == Some(output.id) {
            self.full = None;
        }
        if finished.was_away {
            self.is_away = false;
            if let Some(mut session) = finished.session {
                // Cancelling what has ended just now ends nothing that follows.
                session.cancelled_by(Canceller::default());
                self.session = Some(session);
            }
        }
        if let Some(admitted) = finished.admitted {
            self.active_session(admitted);
        }
    }

    /// Holds the answers to the writes of this turn until they are durable.
    pub(super) fn hold(&mut self) {
        if self.holding.frames.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.holding);
        if let Some((durability, _)) = &self.durability {
            durability.want(held.commit);
        }
        self.held.push_back(held);
    }

    /// Lets answers go whose commits are durable.
    pub(super) fn release(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let Some((_, reached)) = &mut self.durability else { return };
        let reached = group_sync::outcome(&reached.borrow_and_update());
        let now = Instant::now();
        while let Some(first) = self.held.front() {
            let failed = match &reached {
                Ok(commit) if first.commit > *commit => return,
                Ok(_) => {
                    self.out.extend_from_slice(&first.frames);
                    None
                }
                Err(e) => {
                    let mut rest = first.frames.as_slice();
                    while let Ok(Some((frame, length))) = Frame::parse(rest, usize::MAX) {
                        encode::error(&mut self.out, frame.id, e);
                        rest = rest.get(length..).unwrap_or_default();
                    }
                    Some(e.code())
                }
            };
            for (asked, code) in &first.asked {
                asked.count(&self.shared.config.operations, failed.or(*code), now);
            }
            self.held.pop_front();
        }
    }

    /// Writes what is ready, as far as it goes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = self.out.get(self.written..).unwrap_or_default();
            match self.stream.try_write(rest)? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(n) => self.written += n,
                None => return Ok(()),
            }
        }
        // As long as something waits for the socket, there is something to write.
        if !self.out.is_empty() && self.stream.try_flush()? {
            self.out.clear();
            self.written = 0;
        }
        Ok(())
    }
}
