//! The table, and what is asked for.

use std::collections::BTreeMap;

use crate::arguments::Arguments;
use crate::stores;

/// How a row is judged.
enum Asked {
    /// At least so many times the best of the others.
    Best(f64),
    /// At least so many times one of the others.
    Of(&'static str, f64),
    /// At most this.
    Most(f64),
    /// Not judged.
    Shown,
}

/// The rows, in order: name, unit, what is asked of Esker.
const ROWS: [(&str, &str, Asked); 25] = [
    ("bulk load, durable", "entries/s", Asked::Best(1.5)),
    ("single durable writes", "writes/s", Asked::Of("raw append and sync", 1.0 / 1.05)),
    ("raw append and sync", "syncs/s", Asked::Shown),
    ("single writes, more than raw", "µs", Asked::Most(10.0)),
    ("write through, rising keys", "writes/s", Asked::Best(1.5)),
    ("durable writes, 8 threads", "writes/s", Asked::Best(1.5)),
    ("durable writes, 64 threads", "writes/s", Asked::Best(1.5)),
    ("group commit, 8 × 200", "writes/s", Asked::Best(1.5)),
    ("batches of 1,000, durable", "entries/s", Asked::Best(1.5)),
    ("single writes, not synced", "writes/s", Asked::Best(1.5)),
    ("random reads, 1 thread", "reads/s", Asked::Best(1.3)),
    ("random reads, 2 threads", "reads/s", Asked::Shown),
    ("random reads, 4 threads", "reads/s", Asked::Best(1.3)),
    ("random reads, 8 threads", "reads/s", Asked::Best(1.3)),
    ("range reads of 10", "ranges/s", Asked::Of("lmdb", 1.0)),
    ("runs looked at by a range", "runs", Asked::Shown),
    ("reads beside writes, 99.9 %", "µs", Asked::Shown),
    ("writes beside reads, 99.9 %", "µs", Asked::Shown),
    ("removals, durable", "entries/s", Asked::Best(1.5)),
    ("size before compaction", "of the raw bytes", Asked::Shown),
    ("size compacted", "of the raw bytes", Asked::Most(1.08)),
    ("written, of the raw bytes", "times", Asked::Shown),
    ("open after a close", "ms", Asked::Most(100.0)),
    ("open after a kill", "ms", Asked::Most(1_000.0)),
    ("memory, bytes a key", "bytes", Asked::Most(20.0)),
];

/// What was measured: by row and store, one value a run.
pub struct Report {
    records: usize,
    runs: usize,
    values: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Report {
    /// Nothing yet.
    pub fn new(arguments: &Arguments) -> Self {
        Self { records: arguments.records, runs: arguments.runs, values: BTreeMap::new() }
    }

    /// Notes what a run gave.
    pub fn note(&mut self, row: &'static str, store: &'static str, value: f64) {
        eprintln!("  {store:8} {row:28} {value:14.2}");
        self.values.entry((row, store)).or_default().push(value);
    }

    /// The rows that have values, with the median of each store.
    pub fn medians(&self) -> Vec<(&'static str, &'static str, Vec<(&'static str, f64)>)> {
        let of = |(row, unit, _): &(&'static str, &'static str, Asked)| {
            let stores = stores::ALL.iter();
            let values = stores.filter_map(|kind| Some((kind.name, self.median(row, kind.name)?)));
            (*row, *unit, values.collect::<Vec<_>>())
        };
        ROWS.iter().map(of).filter(|(_, _, values)| !values.is_empty()).collect()
    }

    fn median(&self, row: &'static str, store: &'static str) -> Option<f64> {
        let mut values = self.values.get(&(row, store))?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// In how many runs a figure was reached; `None` when there is nothing to compare with.
    fn reached(&self, row: &'static str, asked: &Asked) -> Option<usize> {
        let ours = self.values.get(&(row, "esker"))?;
        let others: Vec<&Vec<f64>> = match asked {
            Asked::Shown => return None,
            Asked::Most(most) => return Some(ours.iter().filter(|ours| *ours <= most).count()),
            Asked::Of(other, _) => {
                let key = if ROWS.iter().any(|row| row.0 == *other) {
                    (*other, "esker")
                } else {
                    (row, *other)
                };
                vec![self.values.get(&key)?]
            }
            Asked::Best(_) => {
                let others = stores::ALL.iter().filter(|kind| kind.name != "esker");
                others.filter_map(|kind| self.values.get(&(row, kind.name))).collect()
            }
        };
        let (Asked::Best(factor) | Asked::Of(_, factor)) = asked else { return None };
        if others.is_empty() {
            return None;
        }
        let is_reached = |(run, ours): (usize, &f64)| {
            let best = others.iter().filter_map(|values| values.get(run)).copied();
            *ours >= best.fold(0.0, f64::max) * factor
        };
        Some(
            ours.iter().copied().enumerate().filter(|(run, ours)| is_reached((*run, ours))).count(),
        )
    }

    /// Prints the table and the verdict.
    pub fn print(&self) {
        println!("{} entries of 24 and 150 bytes, medians of {} runs", self.records, self.runs);
        for kind in stores::ALL {
            println!("  {:8} {}", kind.name, kind.settings);
        }
        let names: Vec<_> = stores::ALL.iter().map(|kind| kind.name).collect();
        println!("\n| row | {} | asked | reached |", names.join(" | "));
        println!("|---|{}---|---|", "---|".repeat(names.len()));
        let (mut reached, mut short) = (0, 0);
        for (row, unit, asked) in &ROWS {
            if stores::ALL.iter().all(|kind| self.median(row, kind.name).is_none()) {
                continue;
            }
            let cell = |name: &&'static str| match self.median(row, name) {
                Some(value) if value >= 1_000.0 => format!("{value:.0}"),
                Some(value) => format!("{value:.3}"),
                None => String::new(),
            };
            let cells: Vec<String> = names.iter().map(cell).collect();
            let wanted = match asked {
                Asked::Best(factor) => format!("{factor} × the best other"),
                Asked::Of(other, factor) => format!("{factor:.2} × {other}"),
                Asked::Most(most) => format!("≤ {most}"),
                Asked::Shown => String::new(),
            };
            let verdict = match self.reached(row, asked) {
                None => String::new(),
                Some(runs) if runs * 2 > self.runs => {
                    reached += 1;
                    format!("yes, {runs} of {}", self.runs)
                }
                Some(runs) => {
                    short += 1;
                    format!("no, {runs} of {}", self.runs)
                }
            };
            println!("| {row}, {unit} | {} | {wanted} | {verdict} |", cells.join(" | "));
        }
        println!("\n{reached} reached, {short} short");
    }
}
