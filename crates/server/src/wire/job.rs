//! What may take long, on a thread where waiting harms nobody.

use std::ops::ControlFlow;

use esker_wire::Kind;
use tokio::sync::mpsc;

use super::encode::{self, FrameSink};
use super::point;
use crate::session::{Answer, Request, Session};
use crate::{Code, Error, Result};

/// What a job hands to its connection.
#[derive(Debug)]
pub(super) struct JobOutput {
    /// The request.
    pub id: u32,
    /// Frames.
    pub bytes: Vec<u8>,
    /// Nothing follows.
    pub finished: Option<Finished>,
}

/// A job has ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// The session of the connection, where the job had it.
    pub session: Option<Session>,
}

/// What a job does.
pub(super) enum Work {
    /// A request.
    Request(Request),
    /// Rows by many keys: the kind and the payload.
    Keys(Kind, Vec<u8>),
}

/// Starts a job. It has the session of the connection, or one for itself.
pub(super) fn start(
    id: u32,
    work: Work,
    session: Session,
    is_own: bool,
    to: mpsc::Sender<JobOutput>,
) {
    tokio::task::spawn_blocking(move || {
        let mut session = session;
        let bytes = run(id, work, &mut session, is_own, &to);
        let session = (!is_own).then_some(session);
        let _ = to.blocking_send(JobOutput { id, bytes, finished: Some(Finished { session }) });
    });
}

fn run(
    id: u32,
    work: Work,
    session: &mut Session,
    is_own: bool,
    to: &mpsc::Sender<JobOutput>,
) -> Vec<u8> {
    let request = match work {
        Work::Keys(kind, payload) => {
            let mut out = Vec::new();
            point::answer(session, kind, id, &payload, &mut out);
            return out;
        }
        Work::Request(request) => request,
    };
    let mut send = |bytes| match to.blocking_send(JobOutput { id, bytes, finished: None }) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    let mut sink = FrameSink { id, send: &mut send, gathered: Vec::new() };
    let answer =
        session.stream(request, &mut sink).and_then(|answer| refuse_begin(session, is_own, answer));
    let mut bytes = sink.gathered;
    encode::answer(&mut bytes, id, &answer);
    bytes
}

/// A transaction in the session of a job alone would be nobody's.
fn refuse_begin(session: &mut Session, is_own: bool, answer: Answer) -> Result<Answer> {
    if !is_own || !session.is_in_transaction() {
        return Ok(answer);
    }
    session.run(Request::Rollback)?;
    Err(Error::new(Code::InvalidRequest, "a transaction: expected BEGIN as the first word"))
}
