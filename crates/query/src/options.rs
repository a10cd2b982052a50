//! What a query runs with.

use std::sync::Arc;
use std::time::Duration;

use esker_format::Value;
use esker_vfs::{Clock, Environment, Tasks};

use crate::activity::Activity;
use crate::{Budget, Deadline, Limits, Result, RollupUse, Semantics, TemporaryFiles};

/// The machine a query runs on, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs the parallel parts.
    pub tasks: Arc<dyn Tasks>,
    /// Times the steps.
    pub clock: Arc<dyn Clock>,
    /// Where the temporary files are; `None` for none.
    pub temporary: Option<TemporaryFiles>,
    /// What the statement is given.
    pub inputs: Inputs,
    /// Whether sorted runs are used. The answer is the same.
    pub indexes: IndexUse,
    /// In which order tables are joined. The answer is the same.
    #[doc(hidden)]
    pub join_order: JoinOrder,
    /// Whether subqueries become joins. The answer is the same.
    pub unnesting: Unnesting,
    /// Whether the statement may read files: whoever opens its tables looks at this.
    pub reaches_files: bool,
    /// What goes on beside it, for who may know.
    pub activity: Option<Arc<dyn Activity>>,
}

/// In which order the tables of inner joins are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub enum JoinOrder {
    /// In that which is thought to take the least time.
    #[default]
    Cheapest,
    /// In that in which they are written, each condition as it is written: to test the others.
    AsWritten,
    /// In any, drawn from a seed: to test it.
    Random(u64),
}

/// Whether a subquery that names fields of the query around it becomes a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unnesting {
    /// Wherever that is possible.
    #[default]
    WherePossible,
    /// Nowhere: it runs for each combination of these fields' values. For tests.
    Never,
}

/// When a query reads the sorted runs of indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexUse {
    /// Where that is thought to take less time.
    #[default]
    WhenCheaper,
    /// Wherever they say anything: to test them.
    Always,
    /// Not at all.
    Never,
}

/// What a statement is given when it runs, apart from its text.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// What `now()` is: microseconds since 1970-01-01 UTC.
    pub now_us: i64,
    /// The values of its parameters, by position.
    pub parameters: Arc<[Value]>,
    /// Where `nextval` gets its values; `None` where an expression is computed once for many rows,
    /// or may be computed again.
    pub sequences: Option<Arc<dyn Sequences>>,
    /// What it may take.
    pub limits: Limits,
    /// Where NULLs go in its orders, and what a division by zero is.
    pub semantics: Semantics,
}

/// Gives out the values of named sequences.
pub trait Sequences: std::fmt::Debug + Send + Sync {
    /// The next value of a sequence.
    ///
    /// # Errors
    /// When there is no such sequence, or it has no more values.
    fn next_value(&self, name: &str) -> Result<i64>;
}

impl Inputs {
    /// The same within the memory that is left. What is kept of it is given back at the end.
    pub(crate) fn with_memory_left(&self) -> Self {
        let mut inputs = self.clone();
        inputs.limits.memory = Arc::new(Budget::within(&self.limits.memory));
        inputs
    }
}

impl Options {
    /// Fails once the statement is to end: see [`Limits::expect_time_left`]. For what works on a
    /// statement outside of this crate, every some thousand rows.
    ///
    /// # Errors
    /// `Cancelled` or `TimedOut`.
    pub fn expect_time_left(&self) -> Result<()> {
        self.inputs.limits.expect_time_left()
    }

    /// The same with a time to end, counted from now.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.inputs.limits.deadline = Some(Deadline::new(&self.clock, timeout));
        self
    }

    /// The same with so much memory, of which nothing is held.
    #[must_use]
    pub fn with_memory(mut self, limit_bytes: usize) -> Self {
        self.inputs.limits.memory = Arc::new(Budget::new(limit_bytes));
        self
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inputs.limits
    }

    /// Whether what is kept of rollups answers groupings.
    pub(crate) fn uses_rollups(&self) -> bool {
        // default: a statement that does not choose uses them
        let chosen = self.inputs.semantics.use_rollups.unwrap_or_default();
        chosen == RollupUse::On && self.indexes != IndexUse::Never
    }

    /// How many bytes the statement has written to temporary files so far.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.temporary.as_ref().map_or(0, TemporaryFiles::bytes_written)
    }

    /// The memory that the statement may hold.
    pub(crate) fn memory(&self) -> &Budget {
        &self.limits().memory
    }

    /// The same within the memory that is left. What is kept of it is given back at the end.
    pub(crate) fn with_memory_left(&self) -> Self {
        Self { inputs: self.inputs.with_memory_left(), ..self.clone() }
    }

    /// The budget of [`Options::new`]: 1 GiB.
    pub const MEMORY_BUDGET_BYTES: usize = 1 << 30;

    /// The threads and the clock of an environment, with the default budget, now.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        let limits = Limits {
            memory: Arc::new(Budget::new(Self::MEMORY_BUDGET_BYTES)),
            cancel: Arc::default(),
            left: Arc::default(),
            deadline: None,
            random: Some(Arc::clone(&environment.random)),
            clock: Some(Arc::clone(&environment.clock)),
        };
        Self::within(environment, limits)
    }

    /// The same with these limits.
    #[must_use]
    pub fn within(environment: &Environment, limits: Limits) -> Self {
        let (now_us, parameters) = (environment.clock.wall_us(), Arc::default());
        let semantics = Semantics::default();
        Self {
            tasks: Arc::clone(&environment.tasks),
            clock: Arc::clone(&environment.clock),
            temporary: None,
            inputs: Inputs { now_us, parameters, sequences: None, limits, semantics },
            indexes: IndexUse::default(),
            join_order: JoinOrder::default(),
            unnesting: Unnesting::default(),
            reaches_files: true,
            activity: None,
        }
    }
}

/// Sequences of nothing but zeros.
#[derive(Debug)]
pub(crate) struct NoValues;

impl Sequences for NoValues {
    fn next_value(&self, _: &str) -> Result<i64> {
        Ok(0)
    }
}

/// The same for a look only: no value of a sequence is given out.
pub(crate) fn without_values(inputs: &Inputs) -> Inputs {
    let sequences = inputs.sequences.as_ref().map(|_| Arc::new(NoValues) as Arc<dyn Sequences>);
    Inputs { sequences, ..inputs.clone() }
}
