//! What a query is resolved with, and what comes of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::named::NamedQuery;
use crate::exec::output::Materialised;
use crate::model::QUERY_DEPTH_MAX;
use crate::source::SourceRef;
use crate::{
    Error, ExplainedInput, ExplainedSubquery, Explanation, Options, Query, Result, Source, View,
};

/// The tables that a statement may read, all as of one commit.
pub trait Tables {
    /// A table by its name.
    ///
    /// # Errors
    /// When there is none.
    fn table(&self, name: &str) -> Result<&dyn Source>;

    /// A view by its name; no table has it then.
    fn view(&self, name: &str) -> Option<&Arc<View>> {
        let _ = name;
        None
    }

    /// Whether there is any view.
    fn has_views(&self) -> bool {
        false
    }
}

/// What a statement is resolved with.
pub(crate) struct Context<'a, 'o> {
    pub(super) tables: &'a dyn Tables,
    pub(super) options: &'o Options,
    /// False where nothing is to be read, only looked at.
    pub(super) runs: bool,
    /// How subqueries are answered, where that is to be shown.
    pub(super) told: Option<RefCell<Vec<ExplainedSubquery>>>,
    /// Whether the steps of queries are to be shown.
    pub(super) shows_plans: bool,
    /// In how many queries the one at hand lies, itself included.
    pub(super) depth: Cell<usize>,
    /// How many relations have been made of the values that queries within others name.
    pub(super) outer_count: Cell<usize>,
    /// The queries that have names where the one at hand lies, the last one first.
    pub(super) names_known: RefCell<Option<Rc<NamedQuery>>>,
    pub(super) any_order: AnyOrder,
    /// The view that the query at hand is a part of.
    pub(super) in_view: RefCell<Option<Arc<View>>>,
    /// The views that have been read.
    pub(super) views: RefCell<Vec<Rc<NamedQuery>>>,
}

/// Which queries may read and show rows in any order.
#[derive(Default)]
pub(super) struct AnyOrder {
    /// Whether the outermost query may read them so, where that was found before it runs.
    pub(super) outermost: bool,
    /// The same, once it is found.
    pub(super) found: Cell<bool>,
    /// Whether the query that is resolved next may show them so.
    pub(super) next: Cell<bool>,
}

/// The query that is left, what it reads, and how that was made ready.
pub(super) type Ready<'a> = (Query, SourceRef<'a>, Option<ExplainedInput>);

/// The answer of a query within another.
pub(super) struct Answered {
    pub(super) rows: Materialised,
    pub(super) input: Option<ExplainedInput>,
    /// How long it took, with all that it reads.
    pub(super) elapsed_ns: u64,
    /// How it came about, where that is to be shown.
    pub(super) plan: Option<Explanation>,
}

impl<'a, 'o> Context<'a, 'o> {
    pub(super) fn new(
        tables: &'a dyn Tables,
        options: &'o Options,
        runs: bool,
        told: Option<RefCell<Vec<ExplainedSubquery>>>,
    ) -> Self {
        let (depth, outer_count) = (Cell::new(0), Cell::new(0));
        let (names_known, any_order) = (RefCell::default(), AnyOrder::default());
        let (in_view, views) = (RefCell::default(), RefCell::default());
        let shows_plans = false;
        Self {
            tables,
            options,
            runs,
            told,
            shows_plans,
            depth,
            outer_count,
            names_known,
            any_order,
            in_view,
            views,
        }
    }

    /// The same where another is.
    pub(super) fn within<'b, 'p>(self, other: &Context<'b, 'p>) -> Self {
        let (depth, outer_count) = (other.depth.clone(), other.outer_count.clone());
        let (names_known, in_view) = (other.names_known.clone(), other.in_view.clone());
        Self { depth, outer_count, names_known, in_view, ..self }
    }

    /// The same where nothing is read.
    pub(super) fn looking(&self) -> Self {
        Self::new(self.tables, self.options, false, None).within(self)
    }

    /// The same with other options; EXPLAIN does not show what it runs.
    pub(super) fn silent<'p>(&self, options: &'p Options) -> Context<'a, 'p> {
        Context::new(self.tables, options, self.runs, None).within(self)
    }

    /// The same with other options; [`Self::take_told`] keeps what EXPLAIN shows of it.
    pub(super) fn with_options<'p>(&self, options: &'p Options) -> Context<'a, 'p> {
        let told = self.told.as_ref().map(|_| RefCell::default());
        let context = Context::new(self.tables, options, self.runs, told).within(self);
        Context { shows_plans: self.shows_plans, ..context }
    }

    /// Takes over what EXPLAIN shows of queries that ran with other options.
    pub(super) fn take_told(&self, other: Context<'a, '_>) {
        if let (Some(told), Some(more)) = (&self.told, other.told) {
            told.borrow_mut().extend(more.into_inner());
        }
    }

    /// How long the subqueries took that EXPLAIN shows by themselves: not a part of the time of
    /// what asked them.
    pub(super) fn subqueries_ns(&self) -> u64 {
        let Some(told) = &self.told else { return 0 };
        let told = told.borrow();
        let all = told.iter().filter_map(|one| one.plan.met).map(|met| met.elapsed_ms);
        // default: no statement runs for more than centuries
        let whole = Duration::try_from_secs_f64(all.sum::<f64>() / 1e3).unwrap_or_default();
        u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Does what is to be done a level deeper.
    pub(super) fn nested<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        let depth = self.depth.get() + 1;
        if depth > QUERY_DEPTH_MAX {
            let message = format!("queries nest too deep: at most {QUERY_DEPTH_MAX} levels");
            return Err(Error::invalid(message));
        }
        self.options.expect_time_left()?;
        self.depth.set(depth);
        let done = run();
        self.depth.set(depth - 1);
        done
    }

    /// Notes how a subquery is answered.
    pub(super) fn note(&self, query: &Query, plan: Option<Explanation>) {
        if let (Some(told), Some(plan)) = (&self.told, plan) {
            told.borrow_mut().push(ExplainedSubquery { query: query.to_string(), plan });
        }
    }
}
