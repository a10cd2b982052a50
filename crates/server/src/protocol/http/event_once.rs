//! Events that are stored once, however often their request is sent: those of a producer, and those
//! of a request with a key. What is kept for that is in the commit of the events.

use esker::{KeptEntry, Producer, Stream, Turn};

use super::super::event_outcomes::{
    Outcomes, PRODUCER_BYTES_MAX, Prepared, StoredEvent, outcomes_of, producer_name, stored,
    times_of,
};
use super::call::Call;
use super::write::{Written, once_of};
use crate::error::code_of;
use crate::session::IdempotencyKey;
use crate::{Code, Error, Result};

/// By what a request is done once.
pub(super) enum Once {
    /// It is done as often as it is sent.
    Not,
    Key(IdempotencyKey),
    /// The events of a producer, the first of which has a number.
    Producer(Producer, u64),
}

/// What is done with a request.
pub(super) enum Step {
    /// It is stored, with an entry that is in its commit.
    Store(Option<KeptEntry>),
    /// It was done before: this is what became of its events.
    Known(Vec<Result<StoredEvent>>),
    /// It was done before, and so was one after it: what became of them is not kept.
    Stored,
    /// It was done before: this was answered.
    Answer(Written),
}

impl Once {
    /// That of a request with a body.
    pub fn of(call: &Call, stream: &Stream, body: &[u8]) -> Result<Self> {
        let key = once_of(call, body)?;
        let Some(text) = call.header("esker-producer")? else {
            return Ok(key.map_or(Self::Not, Self::Key));
        };
        if key.is_some() {
            let message = "idempotency-key: not beside esker-producer, whose events are stored \
                           once anyway";
            return Err(Error::invalid(message));
        }
        let (name, epoch, seq) = producer_of(text)?;
        let name = producer_name(&call.principal.id, name)?;
        Ok(Self::Producer(stream.producer(&name, epoch)?, seq))
    }

    /// True where the body is read as a whole: it is known at its end what it is.
    pub fn is_asked(call: &Call) -> bool {
        let headers = &call.parts.headers;
        headers.contains_key("idempotency-key") || headers.contains_key("esker-producer")
    }

    /// What is done with events that are ready; `answer` is what is kept of what became of them.
    pub fn step(
        &self,
        database: &esker::Database,
        prepared: &Prepared,
        answer: impl Fn(Outcomes) -> Result<Written> + Send + Sync + 'static,
    ) -> Result<Step> {
        match self {
            Self::Not => Ok(Step::Store(None)),
            Self::Producer(producer, seq) => Ok(match producer.turn(*seq, times_of(prepared))? {
                Turn::New(entry) => Step::Store(Some(entry)),
                Turn::Known(outcomes) => {
                    let known = outcomes.into_iter().map(StoredEvent::of);
                    Step::Known(known.map(|known| known.map_err(Error::from)).collect())
                }
                Turn::Stored { .. } => Step::Stored,
            }),
            Self::Key(key) => {
                let prepared = prepared.clone();
                let value = move |rows: &[esker::Result<u64>]| {
                    let refused = |e: &esker::Error| Error::new(code_of(e.kind()), e.to_string());
                    let row = |row: &esker::Result<u64>| stored(row, refused);
                    let written = answer(outcomes_of(&prepared, rows.iter().map(row)));
                    let kept = written.and_then(|written| {
                        serde_json::to_vec(&written)
                            .map_err(|e| Error::new(Code::Internal, e.to_string()))
                    });
                    let failed =
                        |e: Error| esker::Error::new(esker::ErrorKind::InvalidInput, e.message());
                    kept.map_err(failed)
                };
                Ok(match key.beside(database, value)? {
                    Ok(kept) => {
                        Step::Answer(serde_json::from_slice(&kept).map_err(|e| {
                            Error::new(Code::Damaged, format!("a kept answer: {e}"))
                        })?)
                    }
                    Err(entry) => Step::Store(Some(entry)),
                })
            }
        }
    }
}

/// Name, epoch and number of the header of a producer.
fn producer_of(text: &str) -> Result<(&str, u64, u64)> {
    let wrong = || {
        let expected = "expected NAME; epoch=E; seq=N, with a name of 1 to 128 bytes";
        Error::invalid(format!("header esker-producer: {expected}, found {text:?}"))
    };
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| (1..=PRODUCER_BYTES_MAX).contains(&name.len()));
    let mut number = |name: &str| {
        let (known, value) = parts.next()?.split_once('=')?;
        let is_it = known.trim().eq_ignore_ascii_case(name);
        value.trim().parse::<u64>().ok().filter(|_| is_it)
    };
    let (epoch, seq) = (number("epoch"), number("seq"));
    match (name, epoch, seq, parts.next()) {
        (Some(name), Some(epoch), Some(seq), None) => Ok((name, epoch, seq)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_producer_has_three_parts() {
        assert_eq!(producer_of("agent 7; epoch=3; seq=40").unwrap(), ("agent 7", 3, 40));
        assert_eq!(producer_of("a;EPOCH = 0;Seq=0").unwrap(), ("a", 0, 0));
        let long = format!("{}; epoch=0; seq=0", "n".repeat(129));
        let wrong = ["", "a", "a; epoch=1", "a; seq=1; epoch=1", "a; epoch=-1; seq=0", &long];
        for text in wrong.into_iter().chain(["; epoch=0; seq=0", "a; epoch=0; seq=0; x=1"]) {
            assert!(producer_of(text).is_err(), "{text}");
        }
    }
}
