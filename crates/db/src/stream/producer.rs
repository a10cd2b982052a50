//! Producers: events in order, each stored once, however often its request is sent.
//!
//! A producer numbers its events from 0. What it has sent last is kept in an entry of the bucket
//! [`PRODUCERS`], which is put in the commit of the events. A request that comes again is answered
//! as the first time; one that leaves some out is refused, and so is one of an older epoch, whose
//! sender was replaced.

use std::sync::Arc;

use esker_format::codec::{Reader, Writer};
use esker_format::{Value, invariant};
use esker_log::sabotage::Bug;

use super::kept::{KeptEntry, KeptValue};
use super::{EventId, Stream};
use crate::{Bucket, Error, ErrorKind, Result, Ttl};

/// The bucket that has what producers have sent last.
pub const PRODUCERS: &str = "esker_producers";

const FORM: u8 = 1;
/// How often a request is begun again after another one of its producer.
const ATTEMPTS_MAX: usize = 16;
/// Bytes of the outcomes of a request that are kept one by one.
const OUTCOME_BYTES_MAX: usize = 40 << 10;
/// Bytes of what is kept of an error.
const MESSAGE_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 255;

/// One sender of the events of a stream: see [`Stream::producer`]. Of its clones, one sends at a
/// time.
#[derive(Clone)]
pub struct Producer {
    stream: Stream,
    bucket: Bucket,
    key: Vec<u8>,
    epoch: u64,
}

/// What a request of a producer is.
pub enum Turn {
    /// The next one: the entry goes into the commit of its events.
    New(KeptEntry),
    /// The last one once more: what became of its events.
    Known(Vec<Result<EventId>>),
    /// One before the last, or one of too many events to keep their ids: it was stored.
    Stored {
        /// How many events it had.
        events: u64,
    },
}

/// What became of an event before its commit: its time, or why it is refused.
pub type Prepared = std::result::Result<i64, Error>;

/// What is kept of a producer.
struct State {
    /// The table that the stream was: it is another one once it was cleared, or made anew.
    table: u32,
    epoch: u64,
    /// The number of the first event of the last request, and how many it had.
    seq: u64,
    count: u64,
    /// What became of them, unless they are too many.
    outcomes: Option<Vec<Result<EventId>>>,
}

impl State {
    fn next(&self) -> u64 {
        self.seq.saturating_add(self.count)
    }

    fn encode((table, epoch, seq): (u32, u64, u64), outcomes: &[Result<EventId>]) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(FORM);
        out.u32(table);
        out.u64(epoch);
        out.u64(seq);
        out.varint(outcomes.len() as u64);
        let head = out.len();
        let mut before = (0u64, 0u64);
        for outcome in outcomes {
            match outcome {
                Ok(id) => {
                    let (ms, row_id) = (id.time_ms(), id.row_id());
                    out.u8(0);
                    out.varint(zigzag(ms.wrapping_sub(before.0)));
                    out.varint(zigzag(row_id.wrapping_sub(before.1)));
                    before = (ms, row_id);
                }
                Err(e) => {
                    out.u8(if e.kind() == ErrorKind::ConstraintViolated { 2 } else { 1 });
                    out.text(cut(&e.to_string()));
                }
            }
        }
        let mut bytes = out.into_bytes();
        if bytes.len() - head > OUTCOME_BYTES_MAX {
            bytes.truncate(head);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Reader::new(bytes);
        let form = input.u8()?;
        invariant!(form == FORM, PRODUCERS, "an entry has form {form}, expected {FORM}");
        let (table, epoch) = (input.u32()?, input.u64()?);
        let (seq, count) = (input.u64()?, input.varint()?);
        if input.remaining() == 0 && count > 0 {
            return Ok(Self { table, epoch, seq, count, outcomes: None });
        }
        let (mut outcomes, mut before) = (Vec::new(), (0u64, 0u64));
        for _ in 0..count {
            outcomes.push(match input.u8()? {
                0 => {
                    let ms = before.0.wrapping_add(unzigzag(input.varint()?));
                    let row_id = before.1.wrapping_add(unzigzag(input.varint()?));
                    before = (ms, row_id);
                    Ok(EventId::of_ms(ms, row_id))
                }
                form => {
                    let kind = match form {
                        2 => ErrorKind::ConstraintViolated,
                        _ => ErrorKind::InvalidInput,
                    };
                    Err(Error::new(kind, input.text()?))
                }
            });
        }
        input.finish()?;
        Ok(Self { table, epoch, seq, count, outcomes: Some(outcomes) })
    }
}

/// Whether another request of the producer came first.
fn is_late(stored: &Result<Vec<Result<EventId>>>) -> bool {
    let is_late = |e: &Error| e.kind() == ErrorKind::AlreadyExists;
    match stored {
        Err(e) => is_late(e),
        Ok(outcomes) => outcomes.iter().any(|outcome| outcome.as_ref().is_err_and(is_late)),
    }
}

/// A difference that may be of any sign, small where it is near 0.
fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

fn unzigzag(n: u64) -> u64 {
    n >> 1 ^ (n & 1).wrapping_neg()
}

/// What is kept of a message.
fn cut(text: &str) -> &str {
    let ends = |at: &usize| text.is_char_boundary(*at);
    // default: 0 is a boundary of every text
    let end = (0..=text.len().min(MESSAGE_BYTES_MAX)).rev().find(ends).unwrap_or(0);
    // default: a boundary was found
    text.get(..end).unwrap_or_default()
}

impl Stream {
    /// A producer of events of this stream, by a name that is its own, and by its epoch: who takes
    /// over from another one has a higher epoch, numbers its events from 0 anew, and the other one
    /// is refused from then on. Where the stream was cleared or made anew, it goes on, or begins
    /// at 0.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let producer = db.stream("events")?.producer("agent 7", 1)?;
    /// let events = [[Value::Timestamp(1)], [Value::Timestamp(2)]];
    /// let first = producer.append_from(0, &events)?;
    /// let again = producer.append_from(0, &events)?; // no answer came, so it is sent again
    /// assert_eq!(first[1].as_ref().ok(), again[1].as_ref().ok());
    /// assert_eq!((db.table("events")?.count()?, producer.next_seq()?), (2, 2));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a name of no or too many bytes; as for [`Database::bucket`].
    ///
    /// [`Database::bucket`]: crate::Database::bucket
    pub fn producer(&self, name: &str, epoch: u64) -> Result<Producer> {
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            let found = name.len();
            let message = format!("producer: expected a name of 1 to 255 bytes, found {found}");
            return Err(Error::invalid(message));
        }
        let mut key = Writer::new();
        key.text(&self.table.name());
        key.raw(name.as_bytes());
        let bucket = self.bucket(PRODUCERS)?;
        Ok(Producer { stream: self.clone(), bucket, key: key.into_bytes(), epoch })
    }
}

impl Producer {
    /// The number of its next event.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn next_seq(&self) -> Result<u64> {
        let state = self.state()?.1;
        // default: the first event of an epoch has number 0
        Ok(state.filter(|state| state.epoch == self.epoch).map_or(0, |state| state.next()))
    }

    /// Adds events, each with an outcome of its own, the first of which has a number; once they are
    /// as durable as the database says. What was stored before is not stored again.
    ///
    /// # Errors
    /// `SequenceGap` naming the number that is expected; `Fenced` when another one has taken over;
    /// what the commit of all of them meets.
    pub fn append_from(
        &self,
        seq: u64,
        events: &[impl AsRef<[Value]>],
    ) -> Result<Vec<Result<EventId>>> {
        let current = self.stream.table.current();
        let ready = self.stream.ready_events(&current, events);
        let mut attempts = 0;
        loop {
            let entry = match self.turn(seq, ready.times()?)? {
                Turn::New(entry) => entry,
                Turn::Known(outcomes) => return self.durable(outcomes),
                Turn::Stored { events } => {
                    let message = format!("{events} events from {seq} on are stored already");
                    return Err(Error::new(ErrorKind::AlreadyExists, message));
                }
            };
            let stored = self.stream.append_kept(ready.rows.clone(), Some(entry));
            attempts += 1;
            if is_late(&stored) && attempts < ATTEMPTS_MAX {
                self.stream.table.engine.wait_for_published()?;
                continue;
            }
            return Ok(ready.outcomes(stored?));
        }
    }

    /// An answer that was given before is given again once it is as durable.
    fn durable(&self, outcomes: Vec<Result<EventId>>) -> Result<Vec<Result<EventId>>> {
        self.stream.table.engine.acknowledge_published().map(|()| outcomes)
    }

    /// What a request is whose first event has a number: see [`Producer::append_from`]. The entry
    /// is made for what is read now.
    ///
    /// # Errors
    /// As for [`Producer::append_from`].
    pub fn turn(&self, seq: u64, events: Vec<Prepared>) -> Result<Turn> {
        let (bytes, state) = self.state()?;
        let count = events.len() as u64;
        if let Some(known) = self.known(state, seq, count)? {
            return Ok(known);
        }
        let table = self.stream.table.core().id();
        let kept = (table.0, self.epoch, seq);
        let value = move |outcomes: &[Result<u64>]| {
            let mut outcomes = outcomes.iter();
            let outcome = |event: &Prepared| match event {
                Err(e) => Ok(Err(e.repeated())),
                Ok(time_us) => match outcomes.next() {
                    Some(Ok(row_id)) => Ok(Ok(EventId::new(*time_us, *row_id))),
                    Some(Err(e)) => Ok(super::fate::id_of(Err(e.repeated()))),
                    None => Err(super::fate::lost()),
                },
            };
            let all = events.iter().map(outcome).collect::<Result<Vec<_>>>()?;
            Ok(State::encode(kept, &all))
        };
        let value: Arc<KeptValue> = Arc::new(value);
        let kept = (self.key.clone(), bytes);
        let entry = KeptEntry::new(self.bucket.clone(), kept, Ttl::Never, value);
        Ok(Turn::New(entry.of_table(table)))
    }

    /// What is answered of a request that is not the next one.
    fn known(&self, state: Option<State>, seq: u64, count: u64) -> Result<Option<Turn>> {
        let gap = |expected: u64| {
            let message = format!("sequence_gap: expected event {expected}, found {seq}");
            Err(Error::new(ErrorKind::SequenceGap, message))
        };
        let Some(state) = state.filter(|state| state.epoch >= self.epoch) else {
            return if seq == 0 { Ok(None) } else { gap(0) };
        };
        if state.epoch > self.epoch && !Bug::ProducerEpochNotFenced.is_planted() {
            let (newest, found) = (state.epoch, self.epoch);
            let message = format!("fenced: the producer is in epoch {newest}, found {found}");
            return Err(Error::new(ErrorKind::Fenced, message));
        }
        let next = state.next();
        let is_other = state.table != self.stream.table.core().id().0;
        let is_next = seq == next || (seq > next && Bug::ProducerGapAccepted.is_planted());
        if is_next || (seq == 0 && is_other) {
            return Ok(None);
        }
        let is_last = seq == state.seq && count == state.count;
        match state.outcomes.filter(|_| is_last) {
            Some(outcomes) => Ok(Some(Turn::Known(outcomes))),
            None if seq < next && seq.saturating_add(count) <= next => {
                Ok(Some(Turn::Stored { events: count }))
            }
            None => gap(next),
        }
    }

    fn state(&self) -> Result<(Option<Vec<u8>>, Option<State>)> {
        let bytes = self.bucket.get(&self.key)?.map(|value| value.to_vec());
        let state = bytes.as_deref().map(State::decode).transpose()?;
        Ok((bytes, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let outcomes = vec![
            Ok(EventId::new(1_767_323_045_123_456, 7)),
            Err(Error::new(ErrorKind::ConstraintViolated, "é".repeat(200))),
            Ok(EventId::new(-5, 8)),
            Err(Error::invalid("what")),
            Ok(EventId::new(i64::MAX, u64::MAX)),
        ];
        let state = State::decode(&State::encode((7, 3, 90), &outcomes)).unwrap();
        assert_eq!((state.table, state.epoch, state.seq), (7, 3, 90));
        assert_eq!((state.count, state.next()), (5, 95));
        let kept = state.outcomes.unwrap();
        assert_eq!(kept.len(), 5);
        for (kept, outcome) in kept.iter().zip(&outcomes) {
            match (kept, outcome) {
                (Ok(kept), Ok(id)) => assert_eq!(kept, id),
                (Err(kept), Err(e)) => {
                    assert_eq!(kept.kind(), e.kind());
                    assert!(e.to_string().starts_with(&kept.to_string()));
                }
                other => panic!("{other:?}"),
            }
        }
        let many: Vec<_> = (0..50_000).map(|at| Ok(EventId::new(at, 1))).collect();
        let state = State::decode(&State::encode((7, 3, 0), &many)).unwrap();
        assert!(state.outcomes.is_none() && state.next() == 50_000);
        let none = State::decode(&State::encode((7, 0, 5), &[])).unwrap();
        assert_eq!((none.next(), none.outcomes.map(|o| o.len())), (5, Some(0)));
        assert!(State::decode(&[9]).is_err() && State::decode(&[]).is_err());
    }
}
