//! How what a query reads was made ready: joins, and queries in place of tables.

use std::fmt::{Formatter, Result};

use serde::Serialize;

use super::Explanation;
use crate::exec::join::JoinCounts;
use crate::model::JoinKind;

/// A table, a query in place of one, or a join of two of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExplainedInput {
    /// `table`, `query`, `inner join`, `left join`, `semi join`, `anti join` or `full join`;
    /// `function`, `values`, `union`, `union all`, `intersect`, `except` and several of these;
    /// `recursive union`.
    pub kind: String,
    /// What the table or query is called; for a join, the equalities that pairs are found by.
    pub what: String,
    /// What its rows have to pass as well; for a join, its pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// For a join, the side that an index is made of: `left` or `right`. The other streams past it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built: Option<String>,
    /// For an input of a join that ran, what its rows were asked for as well: the keys that the
    /// other side had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_filter: Option<String>,
    /// How many rows that removed, where it is known apart from the filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_removed: Option<u64>,
    /// About how many rows come out.
    pub rows_estimated: u64,
    /// How many did; `None` when it did not run, or was not counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// How long it took, in milliseconds, all that it reads included; `None` for a table, which is
    /// read by what is above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<f64>,
    /// Bytes that a join wrote to temporary files, for what it had no memory for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled_bytes: Option<u64>,
    /// The steps of a query. What they read, where it is not a table, is among `inputs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Explanation>>,
    /// What a join has on the left and on the right; what a query reads, where that is not a table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Self>,
}

/// What is to be shown of a join.
pub(crate) struct ExplainedJoin {
    pub(crate) kind: JoinKind,
    pub(crate) keys: Vec<String>,
    pub(crate) pair: Vec<String>,
    pub(crate) builds_left: bool,
}

impl ExplainedInput {
    pub(crate) fn table(name: &str) -> Self {
        Self { kind: "table".to_owned(), what: name.to_owned(), ..Self::default() }
    }

    /// A query in place of a table, with what it reads.
    pub(crate) fn query(name: &str, input: Option<Self>, rows: u64, elapsed_ns: u64) -> Self {
        Self {
            kind: "query".to_owned(),
            what: name.to_owned(),
            rows_estimated: rows,
            rows: Some(rows),
            elapsed_ms: Some(elapsed_ns as f64 / 1e6),
            inputs: input.into_iter().collect(),
            ..Self::default()
        }
    }

    /// What is made of several inputs: rows of queries as one, rows that are written out.
    pub(crate) fn combined(kind: &str, inputs: Vec<Self>, rows: u64, elapsed_ns: u64) -> Self {
        let mut estimates = inputs.iter().map(|input| input.rows_estimated);
        let rows_estimated = match kind {
            "intersect" | "intersect all" => estimates.min(),
            "except" | "except all" => estimates.next(),
            _ => estimates.reduce(u64::saturating_add),
        };
        Self {
            kind: kind.to_owned(),
            // default: rows that are made of nothing are known
            rows_estimated: rows_estimated.unwrap_or(rows),
            rows: Some(rows),
            elapsed_ms: Some(elapsed_ns as f64 / 1e6),
            inputs,
            ..Self::default()
        }
    }

    /// The same with the steps that made its rows.
    pub(crate) fn with_plan(self, plan: Option<Explanation>) -> Self {
        let Some(mut plan) = plan else { return self };
        let inputs = plan.input.take().into_iter().collect();
        let rows_estimated = plan.rows_out_estimated();
        Self { rows_estimated, inputs, plan: Some(Box::new(plan)), ..self }
    }

    /// The same where its rows, which are there, are read once more.
    pub(crate) fn again(self) -> Self {
        Self { elapsed_ms: None, inputs: Vec::new(), plan: None, ..self }
    }

    /// The same where it has not run.
    pub(crate) fn not_run(self) -> Self {
        Self { rows: None, elapsed_ms: None, ..self }
    }

    /// The same with what its rows have to pass.
    pub(crate) fn filtered(self, filter: &str, rows_estimated: u64) -> Self {
        let filter = (!filter.is_empty()).then(|| filter.to_owned());
        Self { filter: filter.or(self.filter), rows_estimated, ..self }
    }

    pub(crate) fn join(join: &ExplainedJoin, estimates: [u64; 2], inputs: Vec<Self>) -> Self {
        let [left, right] = estimates;
        let pairs = match join.keys.is_empty() {
            true => left.saturating_mul(right),
            false => left.max(right),
        };
        let rows_estimated = match join.kind {
            JoinKind::Inner => pairs,
            JoinKind::Left => pairs.max(left),
            JoinKind::Right => pairs.max(right),
            JoinKind::Full => pairs.max(left).max(right),
            JoinKind::Semi | JoinKind::Anti => left.div_ceil(2),
        };
        Self {
            kind: format!("{} join", join.kind.name().to_lowercase()),
            what: join.keys.join(" AND "),
            filter: (!join.pair.is_empty()).then(|| join.pair.join(" AND ")),
            built: Some(if join.builds_left { "left" } else { "right" }.to_owned()),
            rows_estimated,
            inputs,
            ..Self::default()
        }
    }

    /// Notes what a join met, and how long it took once its inputs were there.
    pub(crate) fn ran(&mut self, counts: JoinCounts, builds_left: bool, elapsed_ns: u64) {
        self.rows = Some(counts.rows_out);
        let inputs_ms: f64 = self.inputs.iter().filter_map(|input| input.elapsed_ms).sum();
        self.elapsed_ms = Some(inputs_ms + elapsed_ns as f64 / 1e6);
        let (built, probed) = (counts.rows_built, counts.rows_probed);
        let met = if builds_left { [built, probed] } else { [probed, built] };
        for (input, rows) in self.inputs.iter_mut().zip(met) {
            input.rows = input.rows.or(Some(rows));
        }
        if let Some(probed) = self.inputs.get_mut(usize::from(builds_left)) {
            (probed.runtime_filter, probed.rows_removed) = (counts.narrowing, counts.rows_removed);
        }
    }

    /// A line for each, those that are read below what reads them.
    pub(super) fn show(&self, f: &mut Formatter<'_>, depth: usize) -> Result {
        write!(f, "{}{}", "  ".repeat(depth), self.kind)?;
        if !self.what.is_empty() {
            let on = if self.built.is_some() { "on " } else { "" };
            write!(f, " {on}{}", self.what)?;
        }
        self.filter.iter().try_for_each(|filter| write!(f, " where {filter}"))?;
        write!(f, "  (about {} rows", self.rows_estimated)?;
        self.rows.iter().try_for_each(|rows| write!(f, ", found {rows}"))?;
        self.built.iter().try_for_each(|built| write!(f, ", {built} side built"))?;
        if let Some(filter) = &self.runtime_filter {
            match self.rows_removed {
                Some(rows) => write!(f, ", {rows} removed by {filter}")?,
                None => write!(f, ", looked for by {filter}")?,
            }
        }
        self.elapsed_ms.iter().try_for_each(|ms| write!(f, ", {ms:.3} ms"))?;
        if let Some(bytes) = self.spilled_bytes.filter(|bytes| *bytes > 0) {
            write!(f, ", {bytes} bytes to temporary files")?;
        }
        f.write_str(")\n")?;
        if let Some(plan) = &self.plan {
            plan.show_rollups(f, &"  ".repeat(depth + 1))?;
        }
        self.inputs.iter().try_for_each(|input| input.show(f, depth + 1))
    }
}
