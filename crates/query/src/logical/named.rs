//! Queries by a name, which WITH gives them: which there are, and their answers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use esker_format::Schema;

use super::names::{called, without_twins};
use super::{Answered, Context};
use crate::exec::output::Materialised;
use crate::model::With;
use crate::{Error, ExplainedInput, Query, Result, Semantics, Source, View};

/// With so many, each is answered before the next: none is looked for within another.
const MANY: usize = 16;

/// A query by a name, and those that it may read itself.
pub(super) struct NamedQuery {
    pub(super) with: With,
    pub(super) outer: Option<Rc<Self>>,
    /// The view that it is, or stands in.
    view: Option<Arc<View>>,
    /// Whether the answer is kept: it is read more than once.
    is_kept: bool,
    answer: RefCell<Option<Kept>>,
    /// What is known of the answer without running it.
    look: RefCell<Option<Kept>>,
}

/// The rows of a query by a name.
#[derive(Clone)]
pub(super) struct Kept {
    /// Each column by a name of its own.
    pub(super) rows: Arc<Materialised>,
    /// What the columns are called.
    pub(super) schema: Schema,
    pub(super) input: ExplainedInput,
}

impl NamedQuery {
    /// Rows that are at hand, by a name.
    pub(super) fn of_rows(name: &str, rows: Materialised, outer: Option<Rc<Self>>) -> Self {
        let schema = rows.schema().clone();
        let rows = Arc::new(rows.with_schema(without_twins(schema.clone())));
        Self::of_kept(name, rows, schema, outer)
    }

    /// The same of rows that others hold, too, with each column by a name of its own.
    pub(super) fn of_shared(name: &str, rows: Arc<Materialised>, outer: Option<Rc<Self>>) -> Self {
        let schema = rows.schema().clone();
        Self::of_kept(name, rows, schema, outer)
    }

    fn of_kept(
        name: &str,
        rows: Arc<Materialised>,
        schema: Schema,
        outer: Option<Rc<Self>>,
    ) -> Self {
        let input = ExplainedInput::query(name, None, rows.row_count() as u64, 0);
        let kept = RefCell::new(Some(Kept { rows, schema, input }));
        let with = With::new(name, Query::default());
        Self { with, outer, view: None, is_kept: true, answer: kept.clone(), look: kept }
    }
}

impl NamedQuery {
    /// The query, where it runs wherever it is named.
    pub(super) fn inlined(&self) -> Option<&With> {
        (!self.is_kept && !self.with.recursive).then_some(&self.with)
    }

    /// Another query in its place, which runs where it is named.
    pub(super) fn with_query(&self, query: Query) -> Self {
        Self {
            with: With { query, ..self.with.clone() },
            outer: self.outer.clone(),
            view: self.view.clone(),
            is_kept: false,
            answer: RefCell::default(),
            look: RefCell::default(),
        }
    }
}

impl Context<'_, '_> {
    /// Does what is to be done where the queries are known that a named query may read.
    pub(super) fn where_named<R>(&self, named: &NamedQuery, run: impl FnOnce() -> R) -> R {
        let before = self.names_known.replace(named.outer.clone());
        let view = self.in_view.replace(named.view.clone());
        let done = run();
        self.names_known.replace(before);
        self.in_view.replace(view);
        done
    }

    /// Does what is to be done where the queries are known that a query names.
    pub(super) fn beside<R>(&self, query: &Query, run: impl FnOnce() -> Result<R>) -> Result<R> {
        if query.with.is_empty() {
            return run();
        }
        let before = self.names_known.borrow().clone();
        let done = self.name_all(query).and_then(|()| run());
        self.names_known.replace(before);
        done
    }

    fn name_all(&self, query: &Query) -> Result<()> {
        let are_many = query.with.len() > MANY;
        for (i, with) in query.with.iter().enumerate() {
            if query.with.iter().take(i).any(|other| other.is_called(&with.name)) {
                let name = &with.name;
                return Err(Error::invalid(format!("WITH: two queries are called {name:?}")));
            }
            let uses = query.uses_behind(i);
            let named = Rc::new(NamedQuery {
                with: with.clone(),
                outer: self.names_known.borrow().clone(),
                view: self.in_view.borrow().clone(),
                is_kept: are_many || with.materialized.unwrap_or(uses > 1),
                answer: RefCell::default(),
                look: RefCell::default(),
            });
            // One that is not read is not run, but has to be right.
            if are_many && uses > 0 || uses == 0 && !self.runs {
                self.named_rows(&named, None)?;
            }
            self.names_known.replace(Some(named));
        }
        Ok(())
    }

    /// The query of a name: one that WITH gives it, or a view.
    pub(super) fn named(&self, name: &str) -> Option<Rc<NamedQuery>> {
        let mut next = self.names_known.borrow().clone();
        while let Some(named) = next {
            if named.with.is_called(name) {
                return Some(named);
            }
            next = named.outer.clone();
        }
        self.view(name)
    }

    /// The rows of a query by a name; of one that reads itself, where nothing else reads them, no
    /// more than `most`.
    pub(super) fn named_rows(&self, named: &Rc<NamedQuery>, most: Option<u64>) -> Result<Kept> {
        let slot = if self.runs { &named.answer } else { &named.look };
        if let Some(kept) = &*slot.borrow() {
            return Ok(Kept { input: kept.input.clone().again(), ..kept.clone() });
        }
        let With { name, columns, query, recursive, .. } = &named.with;
        let most = most.filter(|_| !named.is_kept);
        let answered = self.where_named(named, || match recursive {
            true => self.recursive(&named.with, most),
            false => self.answer(query).map_err(|e| e.at(name)),
        });
        let Answered { rows, input, elapsed_ns, plan } = answered?;
        let schema = called(rows.schema().clone(), columns, name)?;
        let count = rows.row_count() as u64;
        let input = ExplainedInput::query(name, input, count, elapsed_ns).with_plan(plan);
        let input = if self.runs { input } else { input.not_run() };
        let rows = Arc::new(rows.with_schema(without_twins(schema.clone())));
        let kept = Kept { rows, schema, input };
        if named.is_kept || !self.runs {
            slot.replace(Some(kept.clone()));
        }
        Ok(kept)
    }
}

impl NamedQuery {
    /// A view, with the first `count` of its columns, as one that chooses `reader` reads it.
    pub(super) fn of_view(
        name: &str,
        view: &Arc<View>,
        (count, reader): (usize, Semantics),
    ) -> Self {
        let query = view.query_for(reader, count);
        let columns = view.column_names().into_iter().take(count).collect();
        let with = With { columns, ..With::new(name, query) };
        Self {
            with,
            outer: None,
            view: Some(Arc::clone(view)),
            is_kept: false,
            answer: RefCell::default(),
            look: RefCell::default(),
        }
    }

    /// Whether it is a view of this name, with so many columns.
    pub(super) fn is_view(&self, name: &str, count: usize) -> bool {
        self.with.name == name && self.with.columns.len() == count
    }
}
