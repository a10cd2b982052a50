//! What may take long, on a thread where waiting does no harm.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use esker_wire::frame::PAYLOAD_BYTES_MAX;
use esker_wire::{Code, Kind};
use tokio::sync::mpsc;

use super::encode::{self, FrameSink};
use super::point;
use crate::auth::authenticator::{Admitted, Authenticator};
use crate::resources::budget::Share;
use crate::session::{Answer, IdempotencyKey, Request, ResultBudget, Session, panic_guard::caught};
use crate::{Error, Result};

/// What a job hands to its connection.
#[derive(Debug)]
pub(super) struct JobOutput {
    /// The request.
    pub id: u32,
    /// Frames.
    pub bytes: Vec<u8>,
    /// Their share of the budget.
    pub share: Share,
    /// Nothing follows.
    pub finished: Option<Box<Finished>>,
}

/// A job has ended.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// Requests behind it had to wait for it.
    pub was_away: bool,
    /// The session of the connection, where the job had it.
    pub session: Option<Session>,
    /// Who was let in.
    pub admitted: Option<Admitted>,
    /// The code of its error.
    pub failed: Option<Code>,
    /// It has changed something.
    pub has_changed: bool,
    /// The commit that has to be durable before it is told.
    pub commit: Option<u64>,
}

/// Where a job hands what it has to say.
pub(super) struct Place {
    pub id: u32,
    pub to: mpsc::Sender<JobOutput>,
    /// The share of the budget of the request, and then of its answer.
    pub share: Share,
    /// How long to wait for one.
    pub stall: Duration,
}

impl Place {
    /// Hands frames on; breaks when no receiver takes them, or there is no memory for them.
    pub fn send(&mut self, bytes: Vec<u8>) -> Result<ControlFlow<()>> {
        self.share.wait_here(bytes.len(), self.stall)?;
        let output = JobOutput { id: self.id, bytes, share: self.share.take(), finished: None };
        Ok(match self.to.blocking_send(output) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    }

    /// Hands the last frames on.
    pub fn finish(mut self, mut bytes: Vec<u8>, mut finished: Finished) {
        if let Err(e) = self.share.wait_here(bytes.len(), self.stall) {
            let e = if finished.has_changed { e.though_done() } else { e };
            finished.failed = Some(e.code());
            bytes.clear();
            encode::error(&mut bytes, self.id, &e);
        }
        let finished = Some(Box::new(finished));
        let output = JobOutput { id: self.id, bytes, share: self.share, finished };
        let _ = self.to.blocking_send(output);
    }
}

/// What a job does.
pub(super) enum Work {
    /// A request.
    Request(Request),
    /// A request that is done once.
    IdempotencyKey(IdempotencyKey, Request),
    /// Rows by many keys: the kind and the payload.
    Keys(Kind, Vec<u8>),
}

/// Starts a job. It has the session of the connection, or one for itself.
pub(super) fn start(place: Place, work: Work, session: Session, is_own: bool) {
    tokio::task::spawn_blocking(move || {
        let (id, mut place, mut session) = (place.id, place, session);
        let fresh = session.sibling();
        let room = ResultBudget::shared(place.share.sibling(), place.stall).twice();
        session.answer_in(room.at_most(PAYLOAD_BYTES_MAX));
        let Done { bytes, failed, has_changed } =
            match caught(|| run(&mut place, work, &mut session, is_own)) {
                Ok(done) => done,
                Err(e) => {
                    // A transaction that met it is rolled back.
                    session = fresh;
                    if !is_own {
                        session.defer();
                    }
                    Done::failed(id, &e, false)
                }
            };
        if let Some(share) = session.end_answer().into_share() {
            place.share.absorb(share);
        }
        let session = (!is_own).then_some(session);
        let was_away = !is_own;
        let (admitted, commit) = (None, None);
        let finished = Finished { was_away, session, failed, has_changed, admitted, commit };
        place.finish(bytes, finished);
    });
}

/// The last frames of an answer.
struct Done {
    bytes: Vec<u8>,
    failed: Option<Code>,
    has_changed: bool,
}

impl Done {
    fn failed(id: u32, e: &Error, has_changed: bool) -> Self {
        let mut bytes = Vec::new();
        encode::error(&mut bytes, id, e);
        Self { bytes, failed: Some(e.code()), has_changed }
    }

    /// Refuses the rest of an answer that is too large.
    fn within(self, id: u32, left: u64, most: u64) -> Self {
        if self.bytes.len() as u64 <= left {
            return self;
        }
        let e = Error::too_large_answer(most);
        let e = if self.has_changed { e.though_done() } else { e };
        Self::failed(id, &e, self.has_changed)
    }
}

/// Lets somebody in who has to wait for a database to be opened.
pub(super) fn admit(
    place: Place,
    authenticator: Arc<dyn Authenticator>,
    (token, database): (Option<String>, Option<String>),
) {
    tokio::task::spawn_blocking(move || {
        let admitted = caught(|| {
            let admitted = authenticator.admit(token.as_deref(), database.as_deref())?;
            admitted.session.check_in().map(|()| admitted)
        });
        let mut bytes = Vec::new();
        let mut finished = Finished { was_away: true, ..Finished::default() };
        match admitted.and_then(|admitted| admitted) {
            Ok(admitted) => {
                encode::done(&mut bytes, place.id, encode::version);
                finished.admitted = Some(admitted);
            }
            Err(e) => {
                encode::error(&mut bytes, place.id, &e);
                finished.failed = Some(e.code());
            }
        }
        place.finish(bytes, finished);
    });
}

fn run(place: &mut Place, work: Work, session: &mut Session, is_own: bool) -> Done {
    let id = place.id;
    let request = match work {
        Work::Keys(kind, payload) => {
            let mut bytes = Vec::new();
            let _listed = session.list(point::words(kind, &payload));
            let failed = point::answer(session, kind, id, &payload, &mut bytes);
            return Done { bytes, failed, has_changed: false };
        }
        Work::IdempotencyKey(once, request) => return write_once(session, id, &once, &request),
        Work::Request(request) => request,
    };
    let most = session.result_bytes_max();
    let mut refused = None;
    let deferred = session.deferred().cloned();
    // Nothing leaves before it is durable.
    let settle = || deferred.as_ref().map_or(Ok(()), |deferred| Ok(deferred.wait()?));
    let mut send = |bytes| {
        settle().and_then(|()| place.send(bytes)).unwrap_or_else(|e: Error| {
            refused = Some(e);
            ControlFlow::Break(())
        })
    };
    let (gathered, sent, has_changed) = (Vec::new(), 0, false);
    let mut sink = FrameSink { id, send: &mut send, gathered, sent, most, has_changed };
    let answer = session.stream(request, &mut sink);
    let answer = answer.and_then(|answer| refuse_begin(session, is_own, answer));
    let (mut bytes, sent, has_changed) = (sink.gathered, sink.sent, sink.has_changed);
    // Rows that rest on what may be lost are not sent either.
    let unsettled = settle().err();
    let too_large = (sent > most).then(|| Error::too_large_answer(most));
    let refused = unsettled.or(too_large).or(refused);
    let refused = refused.map(|e| if has_changed { e.though_done() } else { e });
    if let Some(e) = refused {
        return Done::failed(id, &e, has_changed);
    }
    encode::answer(&mut bytes, id, &answer);
    let failed = answer.err().map(|e| e.code());
    Done { bytes, failed, has_changed }.within(id, most.saturating_sub(sent), most)
}

/// Does a write once. Its frames are kept, and sent again when it comes again.
fn write_once(session: &mut Session, id: u32, once: &IdempotencyKey, request: &Request) -> Done {
    let done = once.run(session, |session| {
        let answer = session.run(request.clone())?;
        let mut frames = Vec::new();
        encode::answer(&mut frames, 0, &Ok(answer));
        // It is in a transaction: nothing is done where this is refused.
        session.take_answer(frames.len())?;
        Ok(frames)
    });
    match done {
        Ok(frames) => Done { bytes: encode::with_id(frames, id), failed: None, has_changed: true },
        Err(e) => Done::failed(id, &e, false),
    }
}

/// A transaction in the session of a job alone would have no owner.
fn refuse_begin(session: &mut Session, is_own: bool, answer: Answer) -> Result<Answer> {
    if !is_own || !session.is_in_transaction() {
        return Ok(answer);
    }
    session.run(Request::Rollback)?;
    Err(Error::new(Code::InvalidRequest, "a transaction: expected BEGIN as the first word"))
}
