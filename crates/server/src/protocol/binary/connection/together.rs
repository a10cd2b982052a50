//! Changes of single rows that have come together: one commit for all of them.
//!
//! Updates of rows of one table that follow each other in what has come, or deletes, are requests
//! that the database [coalesces](esker::Database::coalesce_requests): each has its own answer.

use esker::{Requests, RowUpdate, Scope, Transaction, Value};
use esker_wire::{Frame, Kind};
use tokio::time::Instant;

use super::super::operations::Asked;
use super::super::{decode, encode};
use super::Connection;
use crate::Result;
use crate::session::{Answer, Level, RequestSummary, Session, panic_guard::caught};

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

/// Requests that are done together, for the database.
struct Together<'s, 'i> {
    session: &'s Session,
    gathered: &'s Gathered<'i>,
}

impl Requests for Together<'_, '_> {
    /// Whether there was a row, or why the session refused the request.
    type Answer = Result<bool>;

    fn count(&self) -> usize {
        self.gathered.changes.len()
    }

    fn at_once(&mut self) -> Option<esker::Result<Vec<Result<bool>>>> {
        let Gathered { kind, table, changes, .. } = self.gathered;
        // As each by itself would count.
        let more = if *kind == Kind::Update { changes.len() } else { 0 };
        self.expect(more).ok()?;
        let table = match self.session.database().table(table) {
            Ok(table) => table,
            Err(e) => return Some(Err(e)),
        };
        let found = match kind {
            Kind::Update => table.update_each(changes),
            _ => {
                let keys: Vec<&[Value]> = changes.iter().map(|(key, _)| key.as_slice()).collect();
                table.delete_each(&keys)
            }
        };
        Some(found.map(|found| found.into_iter().map(Ok).collect()))
    }

    fn alone(&mut self, at: usize) -> Option<esker::Result<Option<Result<bool>>>> {
        Some(self.change(self.session.database(), at))
    }

    fn run(&mut self, at: usize, within: &Transaction) -> esker::Result<Option<Result<bool>>> {
        self.change(within, at)
    }
}

impl Together<'_, '_> {
    fn change(&self, scope: &dyn Scope, at: usize) -> esker::Result<Option<Result<bool>>> {
        let Gathered { kind, table, changes, .. } = self.gathered;
        let Some((key, fields)) = changes.get(at) else { return Ok(None) };
        if let Err(e) = self.expect(0) {
            return Ok(Some(Err(e)));
        }
        let table = scope.table(table)?;
        let found = match kind {
            Kind::Update => table.update(key, fields)?,
            _ => table.delete(key)?,
        };
        Ok(Some(Ok(found)))
    }

    /// Refuses what the client may not change, and bytes that would be more than there may be.
    fn expect(&self, bytes: usize) -> Result<()> {
        self.session.expect(Level::Write, Some(self.gathered.table))?;
        match self.gathered.kind {
            Kind::Update => self.session.reserve_quota(0, bytes),
            _ => Ok(()),
        }
    }
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
        let mut together = Together { session, gathered: &gathered };
        let done = caught(|| session.database().coalesce_requests(&mut together));
        let commit = session.take_commit();
        session.release_room();
        // Where it is unknown whether they were done, that is the answer to each.
        let results: Vec<Result<bool>> = match done.and_then(|done| Ok(done?)) {
            Ok(done) => done.into_iter().map(|done| done?).collect(),
            Err(e) => gathered.frames.iter().map(|_| Err(e.clone())).collect(),
        };
        *now = Instant::now();
        let took = now.saturating_duration_since(began);
        session.note(took, results.iter().all(Result::is_ok), || gathered.words());
        self.tell(&gathered, asked, results, commit, *now);
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
        results: Vec<Result<bool>>,
        commit: Option<u64>,
        now: Instant,
    ) {
        let is_durable = |commit: &u64| {
            self.session.as_ref().is_some_and(|session| session.database().is_durable(*commit))
        };
        let commit = commit.filter(|commit| !is_durable(commit));
        let out = if commit.is_some() { &mut self.holding.frames } else { &mut self.out };
        for (frame, found) in gathered.frames.iter().zip(results) {
            let answer = found.map(|found| Answer::Changed(u64::from(found)));
            encode::answer(out, frame.id, &answer);
            let failed = answer.err().map(|e| e.code());
            match commit {
                Some(_) => self.holding.asked.push((asked, failed)),
                None => asked.count(&self.shared.config.operations, failed, now),
            }
        }
        self.holding.commit = self.holding.commit.max(commit.unwrap_or(0));
    }
}

impl Gathered<'_> {
    fn words(&self) -> RequestSummary {
        let operation = if self.kind == Kind::Update { "update" } else { "delete" };
        RequestSummary::Keys { operation, place: self.table.to_owned(), count: self.frames.len() }
    }
}
