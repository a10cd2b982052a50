//! What the clients of one simulated machine share: the database, and what has happened to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::{Database, ErrorKind, Value};
use esker_vfs::sim::Simulation;

use super::config::Config;
use super::numbers::Numbered;
use crate::answer::Saw;
use crate::history::{Action, Event, Held, History, Origin, Outcome};
use crate::model::State;

/// How many operations are kept in words.
const LAST_OPERATIONS: usize = 2_000;
/// No commit of a workload has as many bytes.
const LARGE_BYTES: usize = 1 << 20;

/// The kind of an error as the model has it. Of several rows the engine may test whether all fit
/// before it tests any check, so that the model does not tell the two from each other.
#[must_use]
pub fn modelled(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::ConstraintViolated => ErrorKind::InvalidInput,
        other => other,
    }
}

/// What a read saw.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The commit it read at.
    pub at: u64,
    /// The table.
    pub table: String,
    /// What it found.
    pub saw: Saw,
}

/// The keys that a load holds, or may hold.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// What its table is called, or was.
    pub tables: BTreeSet<String>,
    pub perhaps: BTreeSet<u64>,
    pub surely: BTreeSet<u64>,
    /// Its table was dropped, truncated or renamed: another of that name knows nothing of it.
    pub unsure: bool,
}

/// What the mutex guards. Nobody keeps it locked while the engine works.
pub(crate) struct Inner {
    pub db: Option<Database>,
    pub history: History,
    pub events: Vec<Event>,
    pub reads: Vec<Read>,
    /// Row ids that were returned: commit, table, key, row id.
    pub row_ids: Vec<(u64, String, u64, u64)>,
    pub loads: BTreeMap<u64, Holding>,
    /// Tables that may be others now than the model knows.
    pub remade: BTreeSet<String>,
    /// Tables that may have other fields now than the model knows.
    pub altered: BTreeSet<String>,
    pub next_serial: u64,
    /// Values of the sequence that were given out in this life, with the I/Os done by then.
    pub given: Vec<(u64, i64)>,
    /// The greatest that was given out before.
    pub given_before: i64,
    pub operations: VecDeque<(u64, String)>,
    pub problem: Option<String>,
    /// An answer said that this life of the database is over.
    pub over: bool,
    /// Commits are durable when they return.
    pub sync: bool,
    /// Limits are so small that commits may be written as files first.
    pub large_commits: bool,
}

/// What the clients of one simulated machine share.
pub(crate) struct World {
    pub machine: Simulation,
    /// Whether one client alone works on the database.
    pub is_alone: bool,
    inner: Mutex<Inner>,
}

/// An operation that has begun.
pub(crate) struct Begun {
    pub db: Database,
    pub from: u64,
    pub held: Held,
    numbered: Numbered,
}

impl World {
    pub fn new(machine: Simulation, history: History, next_serial: u64, config: &Config) -> Self {
        let inner = Inner {
            db: None,
            history,
            events: Vec::new(),
            reads: Vec::new(),
            row_ids: Vec::new(),
            loads: BTreeMap::new(),
            remade: BTreeSet::new(),
            altered: BTreeSet::new(),
            next_serial,
            given: Vec::new(),
            given_before: 0,
            operations: VecDeque::new(),
            problem: None,
            over: false,
            sync: config.sync,
            large_commits: config.commit_bytes < LARGE_BYTES,
        };
        Self { machine, is_alone: config.clients == 0, inner: Mutex::new(inner) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest state that has been judged.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(self.lock().history.newest())
    }

    /// A number that no row has had.
    pub fn serial(&self) -> u64 {
        let mut inner = self.lock();
        inner.next_serial += 1;
        inner.next_serial
    }

    /// Remembers an operation for reports.
    pub fn note(&self, what: impl FnOnce() -> String) {
        let io = self.machine.io_count();
        let mut inner = self.lock();
        if inner.operations.len() == LAST_OPERATIONS {
            inner.operations.pop_front();
        }
        inner.operations.push_back((io, what()));
    }

    /// Reports a wrong answer.
    pub fn fail(&self, why: impl Into<String>) {
        self.lock().problem.get_or_insert(why.into());
    }

    /// Begins an operation; `None` while no database is open.
    pub fn begin(&self, action: Option<&Action>, own_load: Option<u64>) -> Option<Begun> {
        let mut inner = self.lock();
        let db = inner.db.clone()?;
        inner.expect(action);
        let held = action.map_or(Held::No, |action| inner.held(action, own_load));
        drop(inner);
        let from = db.info().published_commit;
        Some(Begun { db, from, held, numbered: Numbered::begin() })
    }

    /// Ends a change: notes what was answered, and what that promises.
    pub fn end(
        &self,
        begun: &Begun,
        action: Action,
        result: Result<Done, esker::Error>,
        origin: Option<Origin>,
    ) {
        let until = begun.db.info().published_commit;
        // Changes of tables as a whole tell no number: theirs is the next one.
        let next = begun.numbered.commit().unwrap_or(begun.from + 1);
        let (outcome, commit) = match &result {
            Ok(Done::Changed { commit, .. }) => (Outcome::Done, Some(commit.unwrap_or(next))),
            Ok(Done::Rows(1..)) => (Outcome::Done, Some(next)),
            Ok(Done::Rows(0)) => (Outcome::Unchanged, None),
            Ok(Done::Unchanged) => (Outcome::Unchanged, None),
            Err(e) => {
                let unknown = e.kind() == ErrorKind::OutcomeUnknown && origin.is_none();
                let outcome = Outcome::Refused(modelled(e.kind()), e.to_string());
                (outcome, unknown.then_some(next))
            }
        };
        self.note(|| format!("{} {outcome:?} as {commit:?}", describe(&action)));
        let mut inner = self.lock();
        if let Err(e) = &result {
            inner.over |= matches!(e.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Poisoned);
        }
        if inner.sync {
            // A refusal, too, tells of what was committed before.
            match (&outcome, commit) {
                (Outcome::Done, Some(commit)) => self.machine.mark(commit),
                (Outcome::Unchanged, _) => self.machine.mark(match &action {
                    Action::Transaction(run) => run.told,
                    _ => begun.from,
                }),
                (Outcome::Refused(ErrorKind::AlreadyExists, _), _) => {
                    self.machine.mark(begun.from);
                }
                _ => {}
            }
        }
        if let (Ok(Done::Changed { row_id: Some(row_id), .. }), Some(commit)) = (&result, commit)
            && let Some((table, ident)) = one_row(&action)
        {
            inner.row_ids.push((commit, table, ident, *row_id));
        }
        let (from, held) = (begun.from, begun.held);
        let rows = match &result {
            Ok(Done::Rows(rows)) => Some(*rows),
            _ => None,
        };
        let may_be_large = inner.large_commits && action.changes_rows_of().is_some();
        let event =
            Event { from, until, commit, action, outcome, held, origin, rows, may_be_large };
        inner.events.push(event);
    }

    /// Notes what a read saw.
    pub fn saw(&self, at: u64, table: &str, saw: Saw) {
        let mut inner = self.lock();
        if inner.sync {
            self.machine.mark(at);
        }
        inner.reads.push(Read { at, table: table.to_owned(), saw });
    }

    /// Judges everything that happened since the last time. No operation may be under way.
    pub fn judge(&self) -> Result<(), String> {
        let mut inner = self.lock();
        if let Some(problem) = inner.problem.take() {
            return Err(problem);
        }
        let events = std::mem::take(&mut inner.events);
        inner.history.judge(events)?;
        inner.remade.clear();
        inner.altered.clear();
        for (commit, table, ident, row_id) in std::mem::take(&mut inner.row_ids) {
            let state = Arc::clone(inner.history.at(commit));
            let row = state.table(&table).and_then(|table| table.rows.get(&ident));
            let born = row.ok_or("a row id was returned for a row that is not there")?.born;
            inner.history.learn_row_id(born, row_id)?;
        }
        for read in std::mem::take(&mut inner.reads) {
            judge_read(&mut inner.history, &read)
                .map_err(|why| format!("a read of {} at commit {}: {why}", read.table, read.at))?;
        }
        Ok(())
    }
}

/// What a change that succeeded did.
pub(crate) enum Done {
    /// It changed something; the commit, where it is not simply the next one.
    Changed { row_id: Option<u64>, commit: Option<u64> },
    /// A statement changed so many rows.
    Rows(u64),
    /// There was nothing to do.
    Unchanged,
}

impl Inner {
    /// Notes what a change that begins may make of tables, before anybody knows.
    pub(super) fn expect(&mut self, action: Option<&Action>) {
        let (gone, new) = match action {
            Some(Action::Create { name, .. }) => (None, Some(name)),
            Some(Action::Drop { name }) => (Some(name), None),
            Some(Action::Truncate { table, .. }) => (Some(table), Some(table)),
            Some(Action::Rename { from, to }) => (Some(from), Some(to)),
            Some(Action::Alter { table, .. }) => {
                self.altered.insert(table.clone());
                return;
            }
            _ => return,
        };
        let is_gone = |load: &&mut Holding| gone.is_some_and(|name| load.tables.contains(name));
        for load in self.loads.values_mut().filter(is_gone) {
            let surely = std::mem::take(&mut load.surely);
            load.perhaps.extend(surely);
            load.unsure = true;
            load.tables.extend(new.cloned());
        }
        self.remade.extend(new.cloned());
    }

    fn held(&self, action: &Action, own_load: Option<u64>) -> Held {
        if let Action::Transaction(run) = action {
            let is_met = |load: &Holding| run.names().any(|name| load.tables.contains(name));
            return if self.loads.values().any(is_met) { Held::Perhaps } else { Held::No };
        }
        let Some(table) = action.changes_rows_of() else { return Held::No };
        let idents = match action {
            Action::Insert { rows, .. } | Action::Upsert { rows, .. } => {
                Some(rows.iter().map(|row| row.ident).collect())
            }
            Action::Update { ident, .. }
            | Action::Delete { ident, .. }
            | Action::Operate { ident, .. } => Some(vec![*ident]),
            Action::Statement { statement, .. } => statement.idents(),
            _ => None,
        };
        let others = self.loads.iter().filter(|(id, _)| Some(**id) != own_load);
        let others = others.map(|(_, load)| load).filter(|load| load.tables.contains(table));
        let held = |load: &Holding| match &idents {
            None => Held::Perhaps,
            Some(idents) if idents.iter().any(|i| load.surely.contains(i)) => Held::Surely,
            Some(idents) if idents.iter().any(|i| load.perhaps.contains(i)) => Held::Perhaps,
            _ => Held::No,
        };
        let most = others.clone().map(held).max().unwrap_or_default();
        // A load may hold values of a unique index.
        let newest = self.history.newest();
        let has_unique = newest.table(table).is_some_and(|t| t.schema.has_unique_index());
        if (has_unique || self.altered.contains(table)) && others.count() > 0 {
            return most.max(Held::Perhaps);
        }
        // A row that is left out touches no key.
        if matches!(action, Action::Statement { .. }) { most.min(Held::Perhaps) } else { most }
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Insert { table, rows } | Action::Upsert { table, rows } if rows.len() > 3 => {
            let verb = if matches!(action, Action::Insert { .. }) { "insert" } else { "upsert" };
            format!("{verb} {} rows into {table}", rows.len())
        }
        Action::Transaction(run) => run.to_string(),
        _ => {
            let mut text = format!("{action:?}");
            if text.len() > 300 {
                let end = (0..=300).rev().find(|end| text.is_char_boundary(*end));
                text.truncate(end.unwrap_or_default());
            }
            text
        }
    }
}

fn one_row(action: &Action) -> Option<(String, u64)> {
    let (Action::Insert { table, rows } | Action::Upsert { table, rows }) = action else {
        return None;
    };
    match rows.as_slice() {
        [row] => Some((table.clone(), row.ident)),
        _ => None,
    }
}

fn judge_read(history: &mut History, read: &Read) -> Result<(), String> {
    // A snapshot has the tables of its commit, whatever became of them since.
    let state = Arc::clone(history.at(read.at));
    let table = state.table(&read.table);
    read.saw.compare(table)?;
    let (Saw::Rows(rows), Some(table)) = (&read.saw, table) else { return Ok(()) };
    rows.iter().try_for_each(|(row_id, values)| {
        let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
        let model = table.kind.ident(&refs).and_then(|ident| table.rows.get(&ident));
        model.map_or(Ok(()), |model| history.learn_row_id(model.born, *row_id))
    })
}
