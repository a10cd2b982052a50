//! A query's steps, with how they read the table and what they met.

pub(crate) mod description;
pub(crate) mod estimates;
mod input;

use std::fmt::{self, Display, Formatter, Write};

use esker_vfs::sabotage::Bug;
use serde::Serialize;

use crate::bind::{Program, Projection, Stage};
use crate::bound::{Bound, OrderKey};
use crate::exec::profile::{Profile, projection_name, stage_name};
use crate::model::{Expr, Groups, OrderBy, RowCount};
use crate::{Error, Query, Result};

use description::Description;
pub use input::ExplainedInput;
pub(crate) use input::ExplainedJoin;

/// How a query is answered: its plan, and, when it has run, what it met. [`Display`] shows it to
/// people, serde to programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The table.
    pub table: String,
    /// What rows have to pass, as text.
    pub filter: Option<String>,
    /// About how many rows are read and pass.
    pub rows_estimated: u64,
    /// How each part of the table is read, in order.
    pub parts: Vec<ExplainedPart>,
    /// The steps, the one that reads the table first.
    pub steps: Vec<ExplainedStep>,
    /// What reading the table met; `None` when the query did not run.
    pub met: Option<Met>,
    /// The joins, or the query in place of a table, that the steps read; `None` for a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<ExplainedInput>,
    /// The subqueries that are answered before all that, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subqueries: Vec<ExplainedSubquery>,
    /// Whether the filter awaits the answer of a subquery, so that `parts` are read in whichever
    /// way is best once it is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits: bool,
}

/// A query within another that is answered first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedSubquery {
    /// The query.
    pub query: String,
    /// How it is answered.
    pub plan: Explanation,
}

/// How a part of a table is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedPart {
    /// The way.
    pub reading: Reading,
    /// The indexes that are used.
    pub indexes: Vec<String>,
    /// How many rows the part has.
    pub rows: usize,
    /// About how many of them are candidates.
    pub rows_estimated: u64,
}

/// A way to read a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Every row, but for what zone maps leave out.
    Scan,
    /// No row: none can pass.
    Nothing,
    /// The rows that indexes name.
    Index,
    /// The rows that the key index names.
    Key,
    /// No row: what is counted is known.
    Counted,
    /// No row, or those alone that the reader does not see: groups are kept of a rollup.
    Rollup,
    /// No row but those at the ends of indexes, or in the zone of the least or greatest value.
    Edges,
    /// The first rows in the order of an index.
    Ordered,
    /// Zones in the order of what zone maps know of them, until there are enough rows.
    Zones,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedStep {
    /// What it does: `group`, `sort`, …
    pub name: String,
    /// To what.
    pub what: String,
    /// About how many rows it makes.
    pub rows_estimated: u64,
    /// What it met; `None` when the query did not run.
    pub ran: Option<Ran>,
}

/// What a step met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// Rows it was given.
    pub rows_in: u64,
    /// Rows it made.
    pub rows_out: u64,
    /// How long it took itself, in milliseconds, what made its input ready left out.
    pub elapsed_ms: f64,
    /// Bytes that it wrote to temporary files, for what it had no memory for.
    pub spilled_bytes: u64,
}

/// What reading a table met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Met {
    /// Zones of [`crate::ZONE_ROWS`] rows.
    pub zones: u64,
    /// Zones that zone maps or indexes left out.
    pub zones_pruned: u64,
    /// Rows that were looked at.
    pub rows_read: u64,
    /// Rows that passed.
    pub rows_passed: u64,
    /// How long the query took in all, in milliseconds: its steps, and the joins, queries and
    /// subqueries before them.
    pub elapsed_ms: f64,
}

impl Explanation {
    /// The same where it took so much longer to make ready what it reads.
    pub(crate) fn after(mut self, ready_ns: u64) -> Self {
        if !Bug::TotalLeavesJoinsOut.is_planted() {
            self.met.iter_mut().for_each(|met| met.elapsed_ms += ready_ns as f64 / 1e6);
        }
        self
    }

    /// The same with what is made ready before: joins and queries, and subqueries.
    pub(crate) fn reading(
        self,
        input: Option<ExplainedInput>,
        subqueries: Vec<ExplainedSubquery>,
    ) -> Self {
        // What is read by the first step alone is counted there.
        let read = self.met.map(|met| met.rows_read);
        let input = input.map(|input| ExplainedInput { rows: input.rows.or(read), ..input });
        Self { input, subqueries, ..self }
    }

    /// About how many rows the last step makes.
    pub(crate) fn rows_out_estimated(&self) -> u64 {
        self.steps.last().map_or(self.rows_estimated, |step| step.rows_estimated)
    }

    /// As a document of JSON: what `EXPLAIN (FORMAT JSON)` answers.
    ///
    /// # Errors
    /// None: every member has a form in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::invalid(format!("a plan: {e}")))
    }
}

/// The plan of a query, with what its steps met if it has run.
pub(crate) fn explained(
    query: &Query,
    program: &Program,
    Description { parts, kept, estimates }: Description,
    profile: Option<&Profile>,
) -> Explanation {
    let ran = |i: usize| {
        let step = profile?.steps.get(i)?;
        let elapsed_ms = step.elapsed_ns as f64 / 1e6;
        let (rows_in, rows_out) = (step.counts.rows_passed, step.rows_out);
        Some(Ran { rows_in, rows_out, elapsed_ms, spilled_bytes: step.spilled_bytes })
    };
    let mut steps = Vec::with_capacity(program.stages.len() + 2);
    let over = |after: usize| program.windows.as_ref().filter(|windows| windows.after == after);
    let mut add = |name: &str, what: String| {
        let (place, name) = (steps.len(), name.to_owned());
        // default: there is an estimate for each step
        let rows_estimated = estimates.steps.get(place).copied().unwrap_or_default();
        steps.push(ExplainedStep { name, what, rows_estimated, ran: ran(place) });
    };
    for (i, stage) in program.stages.iter().enumerate() {
        over(i).into_iter().for_each(|_| add("window", list(&query.windows())));
        let kept = kept.as_ref().filter(|_| i == 0).map_or(String::new(), |kept| told(stage, kept));
        add(stage_name(stage), grouped(query, i, stage) + &kept);
    }
    over(program.stages.len()).into_iter().for_each(|_| add("window", list(&query.windows())));
    add(projection_name(&program.projection), shown(query, &program.projection));
    let met = profile.and_then(|profile| {
        let counts = profile.steps.first()?.counts;
        Some(Met {
            zones: counts.zones,
            zones_pruned: counts.zones_pruned,
            rows_read: counts.rows_scanned,
            rows_passed: counts.rows_passed,
            elapsed_ms: profile.elapsed_ns as f64 / 1e6,
        })
    });
    let filter = query.filter.as_ref().map(ToString::to_string);
    let (table, awaits) = (query.table.clone(), awaits_answer(program));
    let (input, subqueries, rows_estimated) = (None, Vec::new(), estimates.read);
    Explanation { table, filter, rows_estimated, parts, steps, met, input, subqueries, awaits }
}

/// Whether what rows have to pass is known only once a subquery has been answered.
fn awaits_answer(program: &Program) -> bool {
    program.first_step().filter().is_some_and(Bound::is_unanswered)
}

/// One line per step, the last step first, each indented below the step that reads its rows.
impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps.iter().rev().enumerate() {
            write!(f, "{}{} {}", "  ".repeat(depth), step.name, step.what)?;
            write!(f, "  (about {} rows", step.rows_estimated)?;
            if let Some(Ran { rows_in, rows_out, elapsed_ms, spilled_bytes }) = step.ran {
                write!(f, "; rows in {rows_in}, out {rows_out}, {elapsed_ms:.3} ms")?;
                if spilled_bytes > 0 {
                    write!(f, ", {spilled_bytes} bytes to temporary files")?;
                }
            }
            f.write_str(")\n")?;
        }
        let indent = "  ".repeat(self.steps.len());
        if let Some(input) = &self.input {
            let depth = self.steps.len();
            if let Some(filter) = &self.filter {
                writeln!(f, "{indent}filter {filter}")?;
            }
            input.show(f, depth + usize::from(self.filter.is_some()))?;
            self.show_subqueries(f, &indent)?;
            return self.show_total(f);
        }
        let filter = self.filter.as_ref().map_or(String::new(), |f| format!(" where {f}"));
        let table = if self.table.is_empty() { "one row" } else { &self.table };
        write!(f, "{indent}scan {table}{filter}  (parts {}", self.parts.len())?;
        if let Some(met) = self.met {
            let Met { zones, zones_pruned, rows_read, rows_passed, .. } = met;
            write!(f, ", zones {zones}, pruned {zones_pruned}")?;
            write!(f, ", rows read {rows_read}, passed {rows_passed}")?;
        }
        f.write_str(")\n")?;
        self.show_parts(f, &format!("{indent}  "), &|_| true)?;
        if self.awaits {
            writeln!(f, "{indent}  chosen again once the subqueries below are answered")?;
        }
        self.show_subqueries(f, &indent)?;
        self.show_total(f)
    }
}

impl Explanation {
    /// The parts that are read alike in one of some ways, on a line each.
    fn show_parts(
        &self,
        f: &mut Formatter<'_>,
        indent: &str,
        is_shown: &dyn Fn(Reading) -> bool,
    ) -> fmt::Result {
        let mut told: Vec<(Reading, &[String])> = Vec::new();
        for part in self.parts.iter().filter(|part| is_shown(part.reading)) {
            let way = (part.reading, part.indexes.as_slice());
            if told.contains(&way) {
                continue;
            }
            told.push(way);
            let alike = self.parts.iter().filter(|p| (p.reading, p.indexes.as_slice()) == way);
            let (mut count, mut rows, mut estimated) = (0, 0, 0);
            for part in alike {
                (count, rows) = (count + 1, rows + part.rows);
                estimated += part.rows_estimated;
            }
            let what = part.reading.told(&part.indexes);
            let parts = if count == 1 { "part" } else { "parts" };
            writeln!(f, "{indent}{what}: {count} {parts}, about {estimated} of {rows} rows")?;
        }
        Ok(())
    }

    /// What of a query in place of a table is not read row by row.
    fn show_rollups(&self, f: &mut Formatter<'_>, indent: &str) -> fmt::Result {
        self.show_parts(f, indent, &|reading| reading == Reading::Rollup)
    }

    fn show_subqueries(&self, f: &mut Formatter<'_>, indent: &str) -> fmt::Result {
        for subquery in &self.subqueries {
            writeln!(f, "{indent}first {}", subquery.query)?;
            for line in subquery.plan.to_string().lines() {
                writeln!(f, "{indent}  {line}")?;
            }
        }
        Ok(())
    }

    fn show_total(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.met.iter().try_for_each(|met| writeln!(f, "total {:.3} ms", met.elapsed_ms))
    }
}

impl Reading {
    fn told(self, indexes: &[String]) -> String {
        let names = indexes.join(", ");
        match self {
            Self::Scan => "every row".to_owned(),
            Self::Nothing => "no row can pass".to_owned(),
            Self::Index => format!("rows named by index {names}"),
            Self::Key => "rows looked up by key".to_owned(),
            Self::Counted if indexes.is_empty() => "counted without reading".to_owned(),
            Self::Counted => format!("counted by index {names}"),
            Self::Rollup => format!("groups kept of rollup {names}"),
            Self::Edges => "ends of indexes and zones".to_owned(),
            Self::Ordered => format!("in the order of index {names}"),
            Self::Zones => "zones by their bounds, until enough rows are found".to_owned(),
        }
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn shown(query: &Query, projection: &Projection) -> String {
    let mut text = if query.select.is_empty() { "*".to_owned() } else { list(&query.select) };
    if let Some(having) = &query.having {
        let _ = write!(text, " having {having}");
    }
    if let Some(qualify) = &query.qualify {
        let _ = write!(text, " qualify {qualify}");
    }
    if !query.order_by.is_empty() {
        // Where NULLs go is shown where it is written, or not as by default.
        let key = |(key, order): (&OrderBy, &OrderKey)| {
            let (expr, descending) = (written(&key.expr, query), key.descending);
            let is_default = order.nulls_first != descending;
            let nulls_first = key.nulls_first.or((!is_default).then_some(order.nulls_first));
            OrderBy { expr, descending, nulls_first }
        };
        let keys: Vec<_> = query.order_by.iter().zip(&projection.order).map(key).collect();
        let _ = write!(text, " by {}", list(&keys));
    }
    if let Some(limit) = &query.limit {
        let _ = write!(text, " limit {limit}");
    }
    if query.offset != RowCount::Number(0) {
        let _ = write!(text, " offset {}", query.offset);
    }
    text
}

/// A key as it reads, where it is the place of a select item.
fn written(key: &Expr, query: &Query) -> Expr {
    let item = match key {
        Expr::Item(place) => query.item("", *place).ok(),
        _ => None,
    };
    item.map_or(key, |item| &item.expr).clone()
}

/// What a step keeps, where that is less than it shows.
fn told(shown: &Stage, kept: &Stage) -> String {
    let mut text = String::new();
    if !kept.shown_keys.is_empty() {
        let _ = write!(text, ", keeping {} of {} keys", kept.keys.len(), shown.keys.len());
    }
    if !kept.shown.is_empty() {
        let (few, all) = (kept.aggregates.len(), shown.aggregates.len());
        let _ = write!(text, ", keeping {few} of {all} aggregates");
    }
    if kept.shown.iter().any(|shown| shown.added != 0) {
        text.push_str(", constants added at the end");
    }
    text
}

fn grouped(query: &Query, stage: usize, of: &Stage) -> String {
    let is_all = query.group_by.is_empty() && query.grouping_sets.is_empty();
    match (stage, is_all) {
        (0, false) => {
            let keys = query.group_by.iter().map(|key| written(key, query).to_string()).collect();
            format!("by {}", Groups { keys, sets: &query.grouping_sets, is_whole: false })
        }
        (0, true) if of.keys.is_empty() => "all".to_owned(),
        _ => format!("distinct {}", list(&query.select)),
    }
}
