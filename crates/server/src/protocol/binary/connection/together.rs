//! Changes of single rows that have come together: one commit for all of them.
//!
//! Updates of rows of one table that follow each other in what has come, or deletes, are done in
//! one commit. Each is answered by itself. Where one of them would fail, or what comes of them one
//! by one may be something else, nothing of it was done, and each is done as if it had come alone.

use esker::RowUpdate;
use esker_wire::{Frame, Kind};
use tokio::time::Instant;

use super::super::operations::Asked;
use super::super::{decode, encode};
use super::Connection;
use crate::session::{Answer, RequestSummary, Session, panic_guard::caught};
use crate::{Code, Error, Result};

/// The most requests of one commit.
const REQUESTS_MAX: usize = 256;
/// The most bytes of the frame of each.
const FRAME_BYTES_MAX: usize = 4 << 10;

/// Requests that have come, each with the frame it came in.
struct Gathered<'i> {
    kind: Kind,
    table: &'i str,
    frames: Vec<Frame<'i>>,
    changes: Vec<RowUpdate<&'i str>>,
    /// Where each ends in the input.
    ends: Vec<usize>,
}

impl Connection<'_> {
    /// Does the changes of rows at the start of the input in one commit. Returns how many of its
    /// bytes they are: 0 when there are not two that can share one.
    pub(super) fn coalesce(&mut self, input: &[u8], now: &mut Instant) -> usize {
        let Some(mut gathered) = self.gather(input) else { return 0 };
        let Some(session) = &self.session else { return 0 };
        if session.is_in_transaction() || session.expect_wanted().is_err() {
            return 0;
        }
        let count = gathered.frames.len();
        let admitted = (0..count).take_while(|_| session.check_in().is_ok()).count();
        gathered.frames.truncate(admitted);
        gathered.changes.truncate(admitted);
        let Some(last) = admitted.checked_sub(1) else { return 0 };
        let end = gathered.ends.get(last).copied().unwrap_or(0);
        let asked = Asked { kind: gathered.kind, since: *now };
        let began = *now;
        let changes = std::mem::take(&mut gathered.changes);
        let done =
            caught(|| session.database().without_waiting(|| change(session, &gathered, changes)));
        *now = Instant::now();
        let words = || gathered.words();
        let took = now.saturating_duration_since(began);
        match done {
            Ok((Ok(found), commit)) => {
                session.note(took, true, words);
                self.tell(&gathered, asked, &found, commit, *now);
            }
            // It is unknown then whether they were done: doing them again might do them twice.
            Err(e) | Ok((Err(e), _)) if is_unknown(&e) => {
                session.note(took, false, words);
                for frame in &gathered.frames {
                    encode::error(&mut self.out, frame.id, &e);
                    asked.count(&self.shared.config.operations, Some(e.code()), *now);
                }
            }
            _ => self.do_apart(&gathered, now),
        }
        end
    }

    /// The requests at the start of the input that change rows of one table alike; `None` when
    /// there are not two.
    fn gather<'i>(&self, input: &'i [u8]) -> Option<Gathered<'i>> {
        let mut gathered: Option<Gathered<'i>> = None;
        let (mut end, most) = (0, self.request_bytes_max());
        while let Ok(Some((frame, length))) = Frame::parse(input.get(end..)?, most) {
            if length > FRAME_BYTES_MAX {
                break;
            }
            let kind = frame.kind().ok().filter(|kind| matches!(kind, Kind::Update | Kind::Delete));
            let Some(kind) = kind.filter(|_| !self.running.contains_key(&frame.id)) else { break };
            if gathered.as_ref().is_some_and(|g| g.kind != kind || g.frames.len() == REQUESTS_MAX) {
                break;
            }
            let Ok((table, change)) = decode::row_change(kind, frame.payload) else { break };
            let all = gathered.get_or_insert_with(|| Gathered {
                kind,
                table,
                frames: Vec::new(),
                changes: Vec::new(),
                ends: Vec::new(),
            });
            if all.table != table {
                break;
            }
            end += length;
            all.frames.push(frame);
            all.changes.push(change);
            all.ends.push(end);
        }
        gathered.filter(|gathered| gathered.frames.len() > 1)
    }

    /// Answers them, now or once their commit is durable.
    fn tell(
        &mut self,
        gathered: &Gathered<'_>,
        asked: Asked,
        found: &[bool],
        commit: Option<u64>,
        now: Instant,
    ) {
        let is_durable = |commit: &u64| {
            self.session.as_ref().is_some_and(|session| session.database().is_durable(*commit))
        };
        let commit = commit.filter(|commit| !is_durable(commit));
        let out = if commit.is_some() { &mut self.holding.frames } else { &mut self.out };
        for (frame, found) in gathered.frames.iter().zip(found) {
            encode::answer(out, frame.id, &Ok(Answer::Changed(u64::from(*found))));
        }
        for _ in &gathered.frames {
            match commit {
                Some(_) => self.holding.asked.push((asked, None)),
                None => asked.count(&self.shared.config.operations, None, now),
            }
        }
        self.holding.commit = self.holding.commit.max(commit.unwrap_or(0));
    }

    /// Does them one by one.
    fn do_apart(&mut self, gathered: &Gathered<'_>, now: &mut Instant) {
        for frame in &gathered.frames {
            let asked = Asked { kind: gathered.kind, since: *now };
            let done = decode::request(gathered.kind, frame.payload)
                .map(|request| self.begin(frame.id, asked, request, false));
            self.settle(frame.id, asked, done, now);
        }
    }
}

impl Gathered<'_> {
    fn words(&self) -> RequestSummary {
        let operation = if self.kind == Kind::Update { "update" } else { "delete" };
        RequestSummary::Keys { operation, place: self.table.to_owned(), count: self.frames.len() }
    }
}

/// Does all of them; whether there was a row, of each.
fn change(
    session: &Session,
    gathered: &Gathered<'_>,
    changes: Vec<RowUpdate<&str>>,
) -> Result<Vec<bool>> {
    if gathered.kind == Kind::Update {
        return session.update_each(gathered.table, &changes);
    }
    let keys: Vec<_> = changes.into_iter().map(|(key, _)| key).collect();
    session.delete_each(gathered.table, &keys)
}

fn is_unknown(e: &Error) -> bool {
    matches!(e.code(), Code::OutcomeUnknown | Code::Unavailable | Code::Internal)
}
