//! A connection without a socket, for fuzzing: one frame after another, each answered.

use esker_wire::{Frame, Kind};

use super::{append, decode, encode, point};
use crate::session::Session;

/// Answers the frames that some bytes have, as a connection would, in order; what is no frame ends
/// it. Of loads, hellos and cancelling there is nothing here.
#[must_use]
pub fn answer_frames(session: &mut Session, mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        match Frame::parse(input, 1 << 20) {
            Ok(None) => return out,
            Ok(Some((frame, length))) => {
                answer_frame(session, &frame, &mut out);
                input = input.get(length..).unwrap_or_default();
            }
            Err(e) => {
                encode::error(&mut out, 0, &e.into());
                return out;
            }
        }
    }
}

fn answer_frame(session: &mut Session, frame: &Frame<'_>, out: &mut Vec<u8>) {
    let kind = match frame.kind() {
        Ok(kind) => kind,
        Err(e) => return encode::error(out, frame.id, &e.into()),
    };
    if point::is_point(kind) && !session.is_in_transaction() {
        point::answer(session, kind, frame.id, frame.payload, out);
        return;
    }
    if matches!(kind, Kind::Append | Kind::AppendColumns) {
        return append::answer_here(session, frame, kind, out);
    }
    let answer = decode::request(kind, frame.payload).and_then(|request| session.run(request));
    encode::answer(out, frame.id, &answer);
}
