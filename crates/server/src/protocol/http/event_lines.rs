//! Events as NDJSON, CSV or MessagePack, of any length: read by the one reader of files, no faster
//! than they are stored. A line that is no event costs the others nothing.

use std::cell::RefCell;
use std::io::{Cursor, Read};
use std::sync::Arc;

use esker::{AppendedColumns, Batch, ReadyRows, Schema, Stream};
use esker_import::{Format, ImportOptions, ImportReader, Places, Reject, packed_lines};
use esker_vfs::Environment;

use super::super::event_outcomes::{Place, StoredEvent, ends, of_commit};
use super::event_tally::Tally;
use crate::resources::budget::Share;
use crate::session::Session;
use crate::{Code, Error, Result};

/// What reading a body of any length may take.
const READ_BYTES: u64 = 32 << 20;
/// Commits that may be on the way to the disk before a body is read on.
const UNSYNCED_COMMITS: usize = 16;

/// Lines, where they stand, in their order.
type Lines<T> = Vec<(Place, Result<T>)>;

/// What is wrong with lines.
type Rejects = Vec<(Place, Error)>;

/// Where the rows of a batch stand, the first of which has a number.
type Numbered<'p> = (BodyForm, &'p Places, u64);

/// How the events of a body are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyForm {
    /// One object of JSON, or a list of them.
    Json,
    /// Line by line, or as CSV has it.
    Lines(Format),
    /// In MessagePack, which is read as lines of JSON.
    Packed,
}

impl BodyForm {
    fn options(self, schema: &Schema) -> ImportOptions {
        let format = match self {
            Self::Lines(format) => format,
            Self::Json | Self::Packed => Format::Ndjson,
        };
        ImportOptions::default().format(format).schema(schema.clone()).memory_bytes(READ_BYTES)
    }

    fn place(self, line: Option<u64>) -> Place {
        // default: an error without a line is one of all
        let line = line.unwrap_or(0);
        if self == Self::Packed { Place::Item(line) } else { Place::Line(line) }
    }

    /// The body as it is read.
    fn reader(self, body: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
        match self {
            Self::Packed => Ok(Box::new(packed_lines(body)?)),
            Self::Json | Self::Lines(_) => Ok(Box::new(body)),
        }
    }

    /// What reading found wrong with a line, whose number is told beside.
    fn refused(self, reject: &Reject) -> (Place, Error) {
        (self.place(reject.error.line()), Error::invalid(reject.error.detail()))
    }
}

/// What became of the rows of a batch, the first of which has a number, and of the lines that are
/// none, in the order of their lines.
fn in_order<T>(
    rejects: Rejects,
    (form, places, first): Numbered<'_>,
    rows: impl Iterator<Item = Result<T>>,
) -> Lines<T> {
    let place = |at| form.place(places.find(at).map(|(_, line)| line));
    let rows = (first..).zip(rows).map(|(at, row)| (place(at), row));
    let mut lines: Lines<T> = rejects.into_iter().map(|(at, e)| (at, Err(e))).collect();
    lines.extend(rows);
    lines.sort_by_key(|(place, _)| *place);
    places.forget();
    lines
}

/// The events of a body that is there as a whole, ready to be stored.
pub(super) fn whole(
    environment: &Environment,
    stream: &Stream,
    schema: &Arc<Schema>,
    (form, bytes): (BodyForm, impl Read + Send + 'static),
    most: usize,
) -> Result<(ReadyRows, Lines<i64>)> {
    let (body, options) = (form.reader(bytes)?, form.options(schema));
    let reader = ImportReader::from_reader(environment, "body", body, None, options)?;
    let (places, rejects) = (reader.places(), RefCell::default());
    let (mut ready, mut lines, mut first) = (ReadyRows::none(schema), Vec::new(), 0);
    reader.read_or_reject::<Error>(
        |batch, _| {
            let count = batch.len() as u64;
            let events = stream.ready_columns(schema, batch);
            let times = events.times()?.into_iter().map(|time| time.map_err(Error::from));
            lines.extend(in_order(rejects.take(), (form, &places, first), times));
            ready.append(events.rows)?;
            first += count;
            match lines.len() > most {
                true => Err(too_many(most)),
                false => Ok(()),
            }
        },
        |reject, _| {
            rejects.borrow_mut().push(form.refused(&reject));
            Ok(())
        },
    )?;
    Ok((ready, lines))
}

/// More events than a request may have that is read as a whole.
fn too_many(most: usize) -> Error {
    Error::invalid(format!("body: expected at most {most} events in a request that is one commit"))
}

/// A body of any length on its way into a stream.
pub(super) struct LongBody {
    pub session: Session,
    pub environment: Environment,
    pub stream: Stream,
    pub form: BodyForm,
    /// Whether what is stored is told once it is on the disk; as the database says unless given.
    pub is_durable: Option<bool>,
    /// What became of the events so far.
    pub tally: Tally,
    /// The commit that has to be on the disk before that is told.
    pub unsynced: Option<u64>,
    commits: usize,
    /// Counts events that were tried, as they are.
    counted: Box<dyn Fn(u64) + Send>,
}

impl LongBody {
    pub fn new(
        session: Session,
        environment: Environment,
        (stream, form): (Stream, BodyForm),
        (is_durable, is_minimal): (Option<bool>, bool),
        counted: impl Fn(u64) + Send + 'static,
    ) -> Self {
        let tally = Tally::new(is_minimal);
        let (unsynced, commits, counted) = (None, 0, Box::new(counted));
        Self { session, environment, stream, form, is_durable, tally, unsynced, commits, counted }
    }

    /// Stores what is read, piece by piece; what was stored stays where that ends early.
    pub fn store(
        &mut self,
        body: impl Read + Send + 'static,
        (length, mut share): (Option<u64>, Share),
        patience: std::time::Duration,
    ) -> Result<()> {
        self.expect_wanted()?;
        let schema = self.stream.schema();
        let form = self.form;
        let most = READ_BYTES.min(share.most() as u64);
        let options = form.options(&schema).memory_bytes(most);
        let length = length.filter(|_| form != BodyForm::Packed);
        let body = form.reader(body)?;
        let reader = ImportReader::from_reader(&self.environment, "body", body, length, options)?;
        let memory = usize::try_from(reader.memory_bytes()).unwrap_or(usize::MAX);
        share.wait_here(memory, patience)?;
        let (places, rejects) = (reader.places(), RefCell::default());
        let mut first = 0;
        reader.read_or_reject(
            |batch, _| {
                self.expect_wanted()?;
                let count = batch.len() as u64;
                self.store_piece(&schema, batch, (rejects.take(), (form, &places, first)))?;
                first += count;
                Ok(())
            },
            |reject, _| {
                rejects.borrow_mut().push(form.refused(&reject));
                Ok::<_, Error>(())
            },
        )?;
        self.expect_wanted()
    }

    fn store_piece(
        &mut self,
        schema: &Arc<Schema>,
        batch: Batch,
        (rejects, rows): (Rejects, Numbered<'_>),
    ) -> Result<()> {
        let (events, commits) = match batch.is_empty() {
            true => (Vec::new(), None),
            false => {
                self.session.reserve_quota(batch.len(), 0)?;
                let AppendedColumns { events, commit, newest } =
                    self.stream.append_columns(schema, batch);
                self.session.release_room();
                (events, Some((commit, newest)))
            }
        };
        (self.counted)(events.len() as u64);
        let stored = events.into_iter().map(StoredEvent::of);
        let events = stored.map(|event| event.map_err(|e| of_commit(&e)));
        let mut ended = Ok(());
        for (place, outcome) in in_order(rejects, rows, events) {
            match &outcome {
                // Others of the piece may be stored, and are told.
                Err(e) if ends(e.code()) => ended = ended.and(Err(e.clone())),
                _ => self.tally.add(place, &outcome),
            }
        }
        // Where the disk fails, the answer still counts these events.
        let noted = commits.map_or(Ok(()), |(commit, newest)| self.note(commit, newest));
        ended.and(noted)
    }

    /// Notes a commit of events, and waits for the disk now and then: what is not on it is bounded.
    fn note(&mut self, commit: Option<u64>, newest: u64) -> Result<()> {
        match (self.is_durable, commit) {
            (Some(true), _) => self.unsynced = Some(newest),
            (None, Some(commit)) => self.unsynced = Some(commit),
            // Waits for the disk where a crash could take too much.
            (Some(false), Some(commit)) => return Ok(self.stream.reveal(commit)?),
            (_, None) => {}
        }
        self.commits += 1;
        if self.unsynced.is_some() && self.commits.is_multiple_of(UNSYNCED_COMMITS) {
            self.session.database().sync()?;
        }
        Ok(())
    }

    fn expect_wanted(&self) -> Result<()> {
        if self.session.active_session().is_some_and(|active| active.is_ended()) {
            return Err(Error::new(Code::Cancelled, "the session was ended"));
        }
        self.session.expect_wanted()?;
        self.session.expect_valid()
    }
}

/// A body as something that is read.
pub(super) fn reader_of(bytes: axum::body::Bytes) -> impl Read + Send + 'static {
    Cursor::new(bytes)
}
