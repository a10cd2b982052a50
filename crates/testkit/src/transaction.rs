//! Transactions of a workload: what one did step by step and was told, judged once it is known
//! what it began with, and what others had committed by its end.
//!
//! A transaction is replayed on the state of the commit that it read at: so each of its answers is
//! compared. What it has come to is then put upon the state before its own commit. Where others
//! have changed one of its keys since, or a table that it defines, or (serializable) what it has
//! read, it must have been refused.

mod staged;

use std::fmt;
use std::sync::Arc;

use esker::ErrorKind;

use crate::answer::Saw;
use crate::history::{Action, Event, History, Outcome};
use crate::model::State;
pub(crate) use staged::Staged;

/// A step of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// A change: how many rows were changed, or why it was refused.
    Change(Action, Result<u64, ErrorKind>),
    /// A read of a table by its name.
    Read(String, Saw),
    /// A savepoint.
    Savepoint,
    /// Back to a savepoint, by its place among those that there are.
    RollbackTo(usize),
    /// A savepoint goes, and those that came later.
    Release(usize),
}

/// What a transaction did.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The commit that it read at.
    pub read_at: u64,
    /// Whether what it read has to be so still when it commits.
    pub serializable: bool,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// Whether it gave up.
    pub is_rolled_back: bool,
    /// The newest commit that its answers told of.
    pub told: u64,
}

impl Run {
    /// Tables that it may have met, by their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps
            .iter()
            .flat_map(|step| match step {
                Step::Change(Action::Create { name, .. } | Action::Drop { name }, _) => {
                    [Some(name.as_str()), None]
                }
                Step::Change(Action::Alter { table, .. } | Action::Truncate { table, .. }, _) => {
                    [Some(table.as_str()), None]
                }
                Step::Change(Action::Rename { from, to }, _) => {
                    [Some(from.as_str()), Some(to.as_str())]
                }
                Step::Change(action, _) => [action.changes_rows_of(), None],
                Step::Read(table, _) => [Some(table.as_str()), None],
                _ => [None, None],
            })
            .flatten()
    }

    /// Judges all its answers, and its end; what it has made of the database, and the commit.
    ///
    /// # Errors
    /// What was answered and cannot be right.
    pub(crate) fn judge(
        &self,
        history: &History,
        event: &Event,
    ) -> Result<Option<(u64, State)>, String> {
        let base = Arc::clone(history.at(self.read_at));
        let later = history.commits_after(self.read_at, event.until);
        let later: Vec<_> = later.map(|commit| history.at(commit)).collect();
        let staged = self.replay(&base, &later, history.is_faulty())?;
        match (&event.outcome, event.commit) {
            (Outcome::Unchanged, _) if self.is_rolled_back || staged.is_unchanged() => Ok(None),
            (Outcome::Unchanged, _) => Err("a commit that left nothing".to_owned()),
            (Outcome::Done, Some(commit)) => self.committed(history, &staged, commit),
            (Outcome::Refused(ErrorKind::OutcomeUnknown, _), Some(commit))
                if history.is_faulty() =>
            {
                self.committed(history, &staged, commit)
            }
            (Outcome::Done, None) => Err("a commit without a number".to_owned()),
            (Outcome::Refused(kind, _), _) => {
                self.refused(history, &staged, event, *kind).map(|()| None)
            }
        }
    }

    /// Does it again in the model. Others may have led to the states that came later.
    fn replay(
        &self,
        base: &Arc<State>,
        later: &[&Arc<State>],
        is_faulty: bool,
    ) -> Result<Staged, String> {
        let mut staged = Staged::new(Arc::clone(base));
        let mut savepoints = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            let wrong = |why: String| Err(format!("step {number}, {step:?}: {why}"));
            match step {
                Step::Savepoint => savepoints.push(staged.clone()),
                Step::RollbackTo(at) => {
                    savepoints.truncate(at + 1);
                    if let Some(saved) = savepoints.last() {
                        staged.go_back_to(saved);
                    }
                }
                Step::Release(at) => savepoints.truncate(*at),
                Step::Read(name, saw) => {
                    if let Err(why) = saw.compare(staged.state().table(name)) {
                        return wrong(why);
                    }
                    staged.note_read(name, saw);
                }
                Step::Change(action, answer) => {
                    let before = staged.clone();
                    let expected = staged.change(action);
                    if expected.is_err() {
                        staged.refuse(&before);
                    }
                    match (&expected, answer) {
                        (Ok(expected), Ok(rows)) if expected == rows => {}
                        (Err(expected), Err(kind)) if expected == kind => {}
                        (Err(_), Err(kind)) if before.may_refuse(action, *kind) => {}
                        (_, Err(kind)) if is_faulty && is_fault(*kind) => staged = before,
                        // New rows get numbers from a table that others may have dropped: before it
                        // is seen whether a later row of the same change exists already.
                        (_, Err(ErrorKind::Conflict)) if before.lacks(action, later) => {
                            staged.refuse(&before);
                        }
                        _ => return wrong(format!("expected {expected:?}")),
                    }
                }
            }
        }
        Ok(staged)
    }

    fn committed(
        &self,
        history: &History,
        staged: &Staged,
        commit: u64,
    ) -> Result<Option<(u64, State)>, String> {
        let before = history.at(commit.saturating_sub(1));
        if self.serializable {
            staged.expect_reads_unchanged(before)?;
        }
        match staged.upon(before) {
            Ok(state) => Ok(Some((commit, state))),
            Err(kind) => Err(format!("was committed, expected {kind:?}")),
        }
    }

    fn refused(
        &self,
        history: &History,
        staged: &Staged,
        event: &Event,
        kind: ErrorKind,
    ) -> Result<(), String> {
        if history.is_faulty() && is_fault(kind) {
            return Ok(());
        }
        let mut states = std::iter::once(self.read_at)
            .chain(history.commits_after(self.read_at, event.until))
            .map(|commit| history.at(commit));
        let is_right = match kind {
            ErrorKind::Conflict if event.held != crate::history::Held::No => true,
            ErrorKind::Conflict => states.any(|state| staged.is_disturbed_by(state)),
            _ => states.any(|state| staged.upon(state).is_err_and(|expected| expected == kind)),
        };
        if is_right { Ok(()) } else { Err(format!("refused as {kind:?} for no reason")) }
    }
}

/// What a machine that fails may lead to.
pub(crate) fn is_fault(kind: ErrorKind) -> bool {
    use ErrorKind as K;
    matches!(kind, K::Io | K::Poisoned | K::OutcomeUnknown | K::NoSpace)
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.serializable { "serializable " } else { "" };
        let end = if self.is_rolled_back { ", rolled back" } else { "" };
        write!(f, "a {level}transaction at {}{end}:", self.read_at)?;
        for step in &self.steps {
            let text: String = format!("{step:?}").chars().take(200).collect();
            write!(f, "\n    {text}")?;
        }
        Ok(())
    }
}
