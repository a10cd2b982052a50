//! What clients did to a database, in commit order, and what it must hold after each commit.
//!
//! In simulation one thread does everything, and the engine tells the number of each commit of rows
//! as soon as it has one. A change of tables as a whole pauses nowhere between the moment it looks
//! at the newest commit `p` and the moment it gets its own number, so it is commit `p + 1`, or was
//! refused because of what held at `p`. So each event says exactly where it belongs, whatever ran
//! before its caller was told. Events are judged in that order once no operation is under way.

use std::sync::Arc;

use esker::{ErrorKind, Value};

use crate::model::{NewRow, State, TableKind, TableState};
use crate::operators::Operators;
use crate::schema::{FieldChange, TableSchema};
use crate::statement::Statement;
use crate::transaction::Run;

/// A change that a client asked for.
#[derive(Clone, Debug)]
pub enum Action {
    /// A new table.
    Create {
        /// Its name.
        name: String,
        /// Its kind of key.
        kind: TableKind,
        /// Tells it from others of its name.
        incarnation: u64,
    },
    /// A table goes.
    Drop {
        /// Its name.
        name: String,
    },
    /// New rows, all or none: one row, many, or a load.
    Insert {
        /// The table.
        table: String,
        /// The rows.
        rows: Vec<NewRow>,
    },
    /// New or changed rows; of two with one key the last wins.
    Upsert {
        /// The table.
        table: String,
        /// The rows.
        rows: Vec<NewRow>,
    },
    /// Some fields of a row.
    Update {
        /// The table.
        table: String,
        /// The key.
        ident: u64,
        /// The fields.
        changes: Vec<(String, Value)>,
    },
    /// A row goes.
    Delete {
        /// The table.
        table: String,
        /// The key.
        ident: u64,
    },
    /// A row is changed by operators.
    Operate {
        /// The table.
        table: String,
        /// The key.
        ident: u64,
        /// What is done to its fields.
        operators: Operators,
    },
    /// The rows go whose keys lie between two, the second one not with them; all without both.
    DeleteRange {
        /// The table.
        table: String,
        /// The first key.
        from: Option<u64>,
        /// The key after the last.
        until: Option<u64>,
    },
    /// A statement.
    Statement {
        /// The table.
        table: String,
        /// What it does.
        statement: Statement,
        /// The schema that its rows were drawn for.
        drawn: Arc<TableSchema>,
    },
    /// The fields of a table change.
    Alter {
        /// The table.
        table: String,
        /// How.
        changes: Vec<FieldChange>,
    },
    /// A table has another name.
    Rename {
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
    /// All rows of a table go.
    Truncate {
        /// The table.
        table: String,
        /// Tells what is then there from what was.
        incarnation: u64,
    },
    /// Several of these, together or not at all.
    Transaction(Box<Run>),
}

impl Action {
    /// Whether it gives a table a unique index.
    #[must_use]
    pub fn adds_unique_index(&self) -> bool {
        let Self::Alter { changes, .. } = self else { return false };
        let is_unique = |c: &FieldChange| matches!(c, FieldChange::AddIndex(new) if new.unique);
        changes.iter().any(is_unique)
    }

    /// The table whose rows it changes.
    #[must_use]
    pub fn changes_rows_of(&self) -> Option<&str> {
        match self {
            Self::Insert { table, .. }
            | Self::Upsert { table, .. }
            | Self::Update { table, .. }
            | Self::Delete { table, .. }
            | Self::Operate { table, .. }
            | Self::DeleteRange { table, .. }
            | Self::Statement { table, .. } => Some(table),
            _ => None,
        }
    }
}

/// What the client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// It was refused.
    Refused(ErrorKind, String),
}

/// Whether a load that has not committed held a key of the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// No.
    #[default]
    No,
    /// Perhaps: the load was about to take or to release it.
    Perhaps,
    /// Yes.
    Surely,
}

/// One operation of a client.
#[derive(Clone, Debug)]
pub struct Event {
    /// The newest commit when it began.
    pub from: u64,
    /// The newest commit when it ended.
    pub until: u64,
    /// Its own number, when it got one that is known.
    pub commit: Option<u64>,
    /// What was asked for.
    pub action: Action,
    /// What was answered.
    pub outcome: Outcome,
    /// Whether a conflict with a load was possible.
    pub held: Held,
    /// The table that a long operation began with.
    pub origin: Option<Origin>,
    /// How many rows it is said to have changed, where that is said.
    pub rows: Option<u64>,
    /// Whether others may have committed while it wrote its rows to files.
    pub may_be_large: bool,
}

/// A table as a long operation found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Which table.
    pub incarnation: u64,
    /// The version of its schema.
    pub version: u64,
}

/// What a change must lead to.
enum Verdict {
    /// So many rows change, of tables that are known.
    Change(Box<State>, Option<u64>),
    Same,
    Refuse(ErrorKind),
}

/// A state that may hold instead, when a commit in a range has an unknown number.
#[derive(Clone, Debug)]
struct Alternative {
    from: u64,
    until: u64,
    state: Arc<State>,
}

/// The states of a database, by commit.
#[derive(Clone, Debug)]
pub struct History {
    states: Vec<(u64, Arc<State>)>,
    alternatives: Vec<Alternative>,
    /// Row ids, by the birth of the row.
    row_ids: std::collections::BTreeMap<u64, u64>,
    /// Whether the machine was made to fail.
    faulty: bool,
    /// The history as it was before the last open, and how many I/Os had been done by then: what
    /// that open found lost may stand in an image that is older.
    earlier: Option<(u64, Arc<History>)>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            states: vec![(0, Arc::default())],
            alternatives: Vec::new(),
            row_ids: std::collections::BTreeMap::new(),
            faulty: false,
            earlier: None,
        }
    }
}

impl History {
    /// From now on operations may fail because the machine does.
    pub fn expect_faults(&mut self, faulty: bool) {
        self.faulty = faulty;
    }

    /// Whether operations may fail because the machine does.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        self.faulty
    }

    /// The state after the newest commit at or before this one.
    #[must_use]
    pub fn at(&self, commit: u64) -> &Arc<State> {
        let after = self.states.partition_point(|(c, _)| *c <= commit);
        static EMPTY: std::sync::OnceLock<Arc<State>> = std::sync::OnceLock::new();
        let found = after.checked_sub(1).and_then(|i| self.states.get(i));
        found.map_or_else(|| EMPTY.get_or_init(Arc::default), |(_, state)| state)
    }

    /// The states that may hold after this commit: one, but for commits of unknown number.
    pub fn candidates(&self, commit: u64) -> impl Iterator<Item = &Arc<State>> {
        let others = self.alternatives.iter();
        let others = others.filter(move |a| (a.from..a.until).contains(&commit));
        std::iter::once(self.at(commit)).chain(others.map(|a| &a.state))
    }

    /// The newest state.
    #[must_use]
    pub fn newest(&self) -> &Arc<State> {
        self.at(u64::MAX)
    }

    /// The newest commit that changed anything.
    #[must_use]
    pub fn newest_commit(&self) -> u64 {
        self.states.last().map_or(0, |(commit, _)| *commit)
    }

    /// The commits after one, up to another.
    pub(crate) fn commits_after(&self, from: u64, until: u64) -> impl Iterator<Item = u64> {
        let commits = self.states.iter().map(|(commit, _)| *commit);
        commits.filter(move |commit| (from + 1..=until).contains(commit))
    }

    /// An open that began after `ios` I/Os found commits up to this one, and `state` there.
    pub fn truncate(&mut self, commit: u64, state: Arc<State>, ios: u64) {
        if self.newest_commit() > commit {
            self.earlier = Some((ios, Arc::new(self.clone())));
        }
        self.states.retain(|(c, _)| *c < commit);
        self.states.push((commit, state));
        self.alternatives.clear();
    }

    /// The history that images count by which were taken after `ios` I/Os.
    #[must_use]
    pub fn as_of(&self, ios: u64) -> &Self {
        match &self.earlier {
            Some((until, earlier)) if ios <= *until => earlier.as_of(ios),
            _ => self,
        }
    }

    /// Forgets earlier histories: a new life counts its I/Os from 0.
    pub fn forget_earlier(&mut self) {
        self.earlier = None;
    }

    /// The row id of a row, when it is known.
    #[must_use]
    pub fn row_id(&self, born: u64) -> Option<u64> {
        self.row_ids.get(&born).copied()
    }

    /// Notes the row id of a row.
    ///
    /// # Errors
    /// When it had another before.
    pub fn learn_row_id(&mut self, born: u64, row_id: u64) -> Result<(), String> {
        match self.row_ids.insert(born, row_id) {
            Some(before) if before != row_id => {
                Err(format!("row {born} had row id {before} and now has {row_id}"))
            }
            _ => Ok(()),
        }
    }

    /// Judges what happened while no other operation was under way.
    ///
    /// # Errors
    /// What was answered and cannot be right.
    pub fn judge(&mut self, mut events: Vec<Event>) -> Result<(), String> {
        events.sort_by_key(|event| match event.commit {
            Some(commit) => (commit, 0),
            None => (event.until, 1),
        });
        for event in events {
            self.judge_one(&event).map_err(|why| format!("{why}\n  {event:?}"))?;
        }
        Ok(())
    }

    fn judge_one(&mut self, event: &Event) -> Result<(), String> {
        if let Action::Transaction(run) = &event.action {
            if let Some((commit, state)) = run.judge(self, event)? {
                self.states.push((commit, Arc::new(state)));
            }
            return Ok(());
        }
        match (&event.outcome, event.commit) {
            (Outcome::Done, Some(commit)) => self.committed(event, commit),
            (Outcome::Done, None) => self.committed_somewhere(event),
            (Outcome::Unchanged, _) => self.unchanged(event),
            (Outcome::Refused(ErrorKind::OutcomeUnknown, _), Some(commit)) if self.faulty => {
                self.committed(event, commit)
            }
            (Outcome::Refused(ErrorKind::OutcomeUnknown, _), None) if self.faulty => {
                self.committed_somewhere(event)
            }
            (Outcome::Refused(kind, _), _) => self.refused(event, *kind),
        }
    }

    /// A statement that met a conflict with another commit begins again, on what that one left.
    fn unchanged(&self, event: &Event) -> Result<(), String> {
        let begins_again = matches!(event.action, Action::Statement { .. });
        let meanwhile = self.commits_after(event.from, event.until).filter(|_| begins_again);
        let mut read_at = std::iter::once(event.from).chain(meanwhile);
        match read_at.any(|commit| matches!(self.verdict(self.at(commit), event), Verdict::Same)) {
            true => Ok(()),
            false => Err("answered that there was nothing to do".to_owned()),
        }
    }

    fn committed(&mut self, event: &Event, commit: u64) -> Result<(), String> {
        if event.held == Held::Surely {
            return Err("changed a key that a load holds".to_owned());
        }
        match self.verdict(self.at(commit.saturating_sub(1)), event) {
            Verdict::Change(_, rows) if event.rows.is_some_and(|said| Some(said) != rows) => {
                Err(format!("{:?} rows were changed, expected {rows:?}", event.rows))
            }
            Verdict::Change(state, _) => {
                self.states.push((commit, Arc::new(*state)));
                Ok(())
            }
            Verdict::Same => Err("was done, where there was nothing to do".to_owned()),
            Verdict::Refuse(kind) => Err(format!("was done, expected {kind:?}")),
        }
    }

    fn committed_somewhere(&mut self, event: &Event) -> Result<(), String> {
        let (from, until) = (event.from + 1, event.until.max(event.from + 1));
        match self.verdict(self.at(until), event) {
            Verdict::Change(state, _) => {
                self.add_alternatives(event, from, until);
                self.states.push((until, Arc::new(*state)));
                Ok(())
            }
            _ => Err("it must have been refused, whatever its number".to_owned()),
        }
    }

    /// After each commit in between, it may have been done already: to what there was then, and not
    /// to what others have made of it since.
    fn add_alternatives(&mut self, event: &Event, from: u64, until: u64) {
        let between = self.states.iter().map(|(commit, _)| *commit);
        let mut starts = vec![from];
        starts.extend(between.filter(|commit| (from + 1..until).contains(commit)));
        for (i, start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(until);
            if let Verdict::Change(state, _) = self.verdict(self.at(*start), event) {
                let state = Arc::new(*state);
                self.alternatives.push(Alternative { from: *start, until: end, state });
            }
        }
    }

    fn refused(&self, event: &Event, kind: ErrorKind) -> Result<(), String> {
        use ErrorKind as K;
        let fault = matches!(kind, K::Io | K::Poisoned | K::OutcomeUnknown | K::NoSpace);
        if fault && self.faulty {
            return Ok(());
        }
        if kind == K::Conflict && event.held != Held::No {
            return Ok(());
        }
        // A long operation may have been refused for what came meanwhile, and so may one that wrote
        // files; any that was refused once, which waits, begins again when the table was changed
        // under it.
        let loading = event.origin.is_some();
        let waited = matches!(self.verdict(self.at(event.from), event), Verdict::Refuse(_));
        // One that enters rows into a unique index looks at those that come meanwhile, too.
        let long = loading || waited || event.may_be_large || event.action.adds_unique_index();
        let meanwhile = self.commits_after(event.from, event.until).filter(|_| long);
        for commit in std::iter::once(event.from).chain(meanwhile) {
            match self.verdict(self.at(commit), event) {
                Verdict::Refuse(expected) if expected == kind => return Ok(()),
                // A key that came after the load began is a conflict.
                Verdict::Refuse(K::AlreadyExists) if loading && kind == K::Conflict => {
                    return Ok(());
                }
                // A load of an older schema may meet such a key before it hears of the newer one.
                Verdict::Refuse(K::Conflict) if loading && kind == K::AlreadyExists => {
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(format!("refused as {kind:?} for no reason"))
    }

    /// What an action on a state must lead to.
    fn verdict(&self, state: &State, event: &Event) -> Verdict {
        let mut after = state.clone();
        let outcome = match (&event.action, event.origin) {
            (action, Some(origin)) => finish_load(&mut after, action, origin).map(Some),
            (action, None) if action.changes_rows_of().is_some() => {
                change_rows(&mut after, action).map(Some)
            }
            (action, None) => change_tables(&mut after, action).map(|()| None),
        };
        match outcome {
            Ok(Some(0)) => Verdict::Same,
            Ok(rows) => Verdict::Change(Box::new(after), rows),
            Err(kind) => Verdict::Refuse(kind),
        }
    }
}

/// Changes tables as a whole.
pub(crate) fn change_tables(state: &mut State, action: &Action) -> Result<(), ErrorKind> {
    match action {
        Action::Create { name, kind, incarnation } => {
            refuse_taken(state, name)?;
            let table = TableState::new(*kind, *incarnation);
            state.tables.insert(name.clone(), Arc::new(table));
        }
        Action::Drop { name } => {
            state.tables.remove(name).ok_or(ErrorKind::NotFound)?;
        }
        Action::Alter { table, changes } => {
            state.table_mut(table).ok_or(ErrorKind::NotFound)?.alter(changes)?;
        }
        Action::Rename { from, to } => {
            let table = state.tables.get(from).cloned().ok_or(ErrorKind::NotFound)?;
            refuse_taken(state, to)?;
            state.tables.remove(from);
            state.tables.insert(to.clone(), table);
        }
        Action::Truncate { table, incarnation } => {
            let table = state.table_mut(table).ok_or(ErrorKind::NotFound)?;
            table.incarnation = *incarnation;
            table.rows.clear();
        }
        _ => {}
    }
    Ok(())
}

fn refuse_taken(state: &State, name: &str) -> Result<(), ErrorKind> {
    if state.tables.contains_key(name) { Err(ErrorKind::AlreadyExists) } else { Ok(()) }
}

/// A load began with a table: it finds that very table again, whatever its name is now.
fn finish_load(state: &mut State, action: &Action, origin: Origin) -> Result<u64, ErrorKind> {
    let tables = state.tables.values_mut();
    let mut tables = tables.filter(|table| table.incarnation == origin.incarnation);
    let table = Arc::make_mut(tables.next().ok_or(ErrorKind::NotFound)?);
    if table.schema.version != origin.version {
        return Err(ErrorKind::Conflict);
    }
    change_rows_of(table, action)
}

/// Changes rows; how many.
fn change_rows(state: &mut State, action: &Action) -> Result<u64, ErrorKind> {
    let name = action.changes_rows_of().ok_or(ErrorKind::NotFound)?;
    change_rows_of(state.table_mut(name).ok_or(ErrorKind::NotFound)?, action)
}

fn change_rows_of(table: &mut TableState, action: &Action) -> Result<u64, ErrorKind> {
    let count = write_rows(table, action)?;
    if table.has_unique_values() { Ok(count) } else { Err(ErrorKind::AlreadyExists) }
}

/// Changes rows; how many. Values of unique indexes are not looked at.
pub(crate) fn write_rows(table: &mut TableState, action: &Action) -> Result<u64, ErrorKind> {
    match action {
        Action::Insert { rows, .. } => {
            rows.iter().try_for_each(|row| table.schema.fit(&row.values).map(drop))?;
            for row in rows {
                if table.rows.contains_key(&row.ident) {
                    return Err(ErrorKind::AlreadyExists);
                }
                table.put(row)?;
            }
            Ok(rows.len() as u64)
        }
        Action::Upsert { rows, .. } => {
            rows.iter().try_for_each(|row| table.put(row))?;
            Ok(rows.len() as u64)
        }
        Action::Update { ident, changes, .. } => Ok(u64::from(table.update(*ident, changes)?)),
        Action::Delete { ident, .. } => Ok(u64::from(table.rows.remove(ident).is_some())),
        Action::Operate { ident, operators, .. } => Ok(u64::from(operators.apply(table, *ident)?)),
        Action::DeleteRange { from, until, .. } => {
            let (kind, before) = (table.kind, table.rows.len());
            let key = |ident: Option<u64>| ident.map(|ident| kind.place(ident));
            let (from, until) = (key(*from), key(*until));
            table.rows.retain(|ident, _| {
                let place = Some(kind.place(*ident));
                place < from || until.is_some() && place >= until
            });
            Ok((before - table.rows.len()) as u64)
        }
        Action::Statement { statement, drawn, .. } => statement.apply(table, drawn),
        _ => Ok(0),
    }
}
