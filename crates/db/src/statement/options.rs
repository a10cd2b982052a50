//! What a query is run with, and how long and large it may grow.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use esker_format::Value;
use esker_query::{Activity, Budget, Deadline, Semantics, TemporaryFiles};

use crate::engine::Engine;

/// What a statement may take. What is not given is the database's: [`Options::statement_timeout`],
/// [`Options::query_memory_limit`], [`Options::cancel`].
///
/// [`Options::statement_timeout`]: crate::Options::statement_timeout
/// [`Options::query_memory_limit`]: crate::Options::query_memory_limit
/// [`Options::cancel`]: crate::Options::cancel
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// How long it may take. Past it the statement ends with [`ErrorKind::TimedOut`] and has
    /// changed nothing.
    ///
    /// [`ErrorKind::TimedOut`]: crate::ErrorKind::TimedOut
    pub timeout: Option<Duration>,
    /// The most memory that its groups, sort keys and answer take at once, in bytes. What groups,
    /// sort keys and sides of joins need beyond lies in temporary files of the database's
    /// directory.
    pub memory_bytes: Option<usize>,
    /// Ends it with [`ErrorKind::Cancelled`] while set, in place of the database's flag.
    ///
    /// [`ErrorKind::Cancelled`]: crate::ErrorKind::Cancelled
    pub cancel: Option<Arc<AtomicBool>>,
    /// Whether it is kept from [files](crate::Options::files), which the database reaches.
    pub without_files: bool,
    /// What goes on beside it, as who runs it knows; a server tells administrators.
    pub activity: Option<Arc<dyn Activity>>,
}

/// What a query is run with.
///
/// ```
/// use std::time::Duration;
/// use esker::{DataType, ErrorKind, Limits, Options, Query, QueryOptions, Schema};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("n", DataType::I64).build()?;
/// db.create_table("t", schema)?.insert(&[1i64.into()])?;
/// let limits = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
/// let options = QueryOptions { limits, ..QueryOptions::default() };
/// let error = db.query_with(&Query::table("t"), &options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TimedOut);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// The values of its parameters, by position.
    pub parameters: Arc<[Value]>,
    /// How long it may take and how much memory it may have.
    pub limits: Limits,
    /// Where NULLs go in its orders, and what a division by zero is; what it does not choose is the
    /// database's: [`Options::semantics`](crate::Options::semantics).
    pub semantics: Semantics,
}

impl Engine {
    /// What queries are run with unless they say otherwise.
    pub(crate) fn query_options(&self) -> esker_query::Options {
        self.statement_options(&QueryOptions::default())
    }

    /// What is evaluated outside of a statement may take so much. Its time counts from here.
    pub(crate) fn limits(&self) -> esker_query::Limits {
        esker_query::Limits {
            memory: Arc::new(Budget::new(self.options.query_memory_limit_bytes)),
            cancel: Arc::clone(&self.options.cancel),
            left: Arc::default(),
            deadline: self
                .options
                .statement_timeout
                .map(|timeout| Deadline::new(&self.environment.clock, timeout)),
            // What is kept is the same each time that it is computed.
            random: None,
            clock: None,
        }
    }

    /// What a statement is run with. Its time counts from here.
    pub(crate) fn statement_options(&self, given: &QueryOptions) -> esker_query::Options {
        let Limits { timeout, memory_bytes, cancel, without_files, activity } = &given.limits;
        // default: what a statement does not say the database does, here and below
        let memory_bytes = memory_bytes.unwrap_or(self.options.query_memory_limit_bytes);
        let limits = esker_query::Limits {
            memory: Arc::new(Budget::new(memory_bytes)),
            // default: the same
            cancel: Arc::clone(cancel.as_ref().unwrap_or(&self.options.cancel)),
            left: Arc::default(),
            deadline: timeout
                .or(self.options.statement_timeout)
                .map(|timeout| Deadline::new(&self.environment.clock, timeout)),
            random: Some(Arc::clone(&self.environment.random)),
            clock: Some(Arc::clone(&self.environment.clock)),
        };
        let mut options = esker_query::Options::within(&self.environment, limits);
        options.inputs.parameters = Arc::clone(&given.parameters);
        options.inputs.semantics = given.semantics.or(self.options.semantics);
        options.reaches_files = !without_files;
        options.activity.clone_from(activity);
        options.indexes = self.options.index_use;
        options.join_order = self.options.join_order;
        options.unnesting = self.options.unnesting;
        if !self.dir.as_os_str().is_empty() {
            let files = TemporaryFiles::new(&self.environment, self.dir.clone());
            options.temporary = Some(files);
        }
        options
    }
}
