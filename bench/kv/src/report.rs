//! The table, and what is asked for.

use std::collections::BTreeMap;

use crate::plot::Group;

/// How a row is judged.
pub enum Asked {
    /// At least so many times the best of the others.
    Best(f64),
    /// At least so many times one of the others.
    Of(&'static str, f64),
    /// At least so many times each of these.
    Each(&'static [(&'static str, f64)]),
    /// At least so many times each of these, and so many times the best of the rest.
    Rest(&'static [(&'static str, f64)], f64),
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
    /// Not judged, but shown with the ratio to the best of the others.
    Beside,
    /// Not judged.
    Shown,
}

impl Asked {
    fn text(&self) -> String {
        let listed = |each: &[(&str, f64)]| {
            let each = each.iter().map(|(other, factor)| format!("{factor} × {other}"));
            each.collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Best(factor) => format!("{factor} × the best other"),
            Self::Of(other, factor) => format!("{factor:.2} × {other}"),
            Self::Each(each) => listed(each),
            Self::Rest(each, factor) => format!("{}, {factor} × the rest", listed(each)),
            Self::Most(most) => format!("≤ {most}"),
            Self::Least(least) => format!("≥ {least}"),
            Self::Beside | Self::Shown => String::new(),
        }
    }
}

/// A row: name, unit, what is asked of Esker.
pub type Row = (&'static str, &'static str, Asked);

/// The rows of buckets, in order.
pub const ROWS: &[Row] = &[
    ("bulk load, durable", "entries/s", Asked::Best(1.5)),
    ("work left after the load", "s", Asked::Shown),
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
    ("random reads, 2 threads", "reads/s", Asked::Beside),
    ("random reads, 4 threads", "reads/s", Asked::Best(1.3)),
    ("random reads, 8 threads", "reads/s", Asked::Best(1.3)),
    ("concurrent reads, 1 × 5,000", "reads/s", Asked::Beside),
    ("concurrent reads, 2 × 5,000", "reads/s", Asked::Beside),
    ("concurrent reads, 4 × 5,000", "reads/s", Asked::Beside),
    ("concurrent reads, 8 × 5,000", "reads/s", Asked::Beside),
    ("range reads of 10", "ranges/s", Asked::Rest(&[("lmdb", 1.0)], 2.0)),
    ("runs looked at by a range", "runs", Asked::Shown),
    ("reads beside writes, 99.9 %", "µs", Asked::Shown),
    ("writes beside reads, 99.9 %", "µs", Asked::Shown),
    ("removals, durable", "entries/s", Asked::Best(1.5)),
    ("size before compaction", "of the raw bytes", Asked::Shown),
    ("size compacted", "of the raw bytes", Asked::Most(1.08)),
    ("written, of the raw bytes", "times", Asked::Shown),
    ("open after a close", "ms", Asked::Most(100.0)),
    ("open after a kill", "ms", Asked::Most(1_000.0)),
    ("index checkpoint, bytes a key", "bytes", Asked::Most(10.0)),
    ("memory, bytes a key", "bytes", Asked::Most(20.0)),
    ("anonymous memory, bytes a key", "bytes", Asked::Shown),
    ("the same, just opened", "bytes", Asked::Shown),
    ("puts of adversarial keys", "of random keys' rate", Asked::Least(0.5)),
    ("reads of adversarial keys", "of random keys' rate", Asked::Least(0.5)),
];

/// What was measured: by row and store, one value a run.
pub struct Report {
    title: String,
    rows: &'static [Row],
    /// The names of the stores, ours first, and their settings.
    stores: Vec<(&'static str, &'static str)>,
    runs: usize,
    values: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Report {
    /// Nothing yet.
    pub fn new(
        title: String,
        rows: &'static [Row],
        stores: Vec<(&'static str, &'static str)>,
        runs: usize,
    ) -> Self {
        Self { title, rows, stores, runs, values: BTreeMap::new() }
    }

    /// Notes what a run gave.
    pub fn note(&mut self, row: &'static str, store: &'static str, value: f64) {
        eprintln!("  {store:10} {row:29} {value:14.2}");
        self.values.entry((row, store)).or_default().push(value);
    }

    /// The rows that have values, with the median of each store.
    pub fn groups(&self) -> Vec<Group> {
        let of = |(row, unit, _): &Row| {
            let stores = self.stores.iter();
            let values =
                stores.filter_map(|(name, _)| Some(((*name).to_owned(), self.median(row, name)?)));
            Group { name: (*row).to_owned(), unit, values: values.collect() }
        };
        self.rows.iter().map(of).filter(|group| !group.values.is_empty()).collect()
    }

    fn median(&self, row: &'static str, store: &'static str) -> Option<f64> {
        let mut values = self.values.get(&(row, store))?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// In how many runs a figure was reached; `None` when there is nothing to compare with.
    fn reached(&self, row: &'static str, asked: &Asked) -> Option<usize> {
        let ours = self.values.get(&(row, "esker"))?;
        let mut others: Vec<(&Vec<f64>, f64)> = Vec::new();
        match asked {
            Asked::Shown | Asked::Beside => return None,
            Asked::Most(most) => return Some(ours.iter().filter(|ours| *ours <= most).count()),
            Asked::Least(least) => return Some(ours.iter().filter(|ours| *ours >= least).count()),
            Asked::Of(other, factor) => {
                let key = if self.rows.iter().any(|row| row.0 == *other) {
                    (*other, "esker")
                } else {
                    (row, *other)
                };
                others.push((self.values.get(&key)?, *factor));
            }
            Asked::Each(each) => others.extend(self.of_each(row, each)),
            Asked::Rest(each, factor) => {
                others.extend(self.of_each(row, each));
                others.extend(self.of_rest(row, each, *factor));
            }
            Asked::Best(factor) => others.extend(self.of_rest(row, &[], *factor)),
        }
        if others.is_empty() {
            return None;
        }
        let is_reached = |(run, ours): (usize, &f64)| {
            let wanted =
                others.iter().filter_map(|(values, factor)| Some(values.get(run)? * factor));
            *ours >= wanted.fold(0.0, f64::max)
        };
        Some(
            ours.iter().copied().enumerate().filter(|(run, ours)| is_reached((*run, ours))).count(),
        )
    }

    /// What some stores gave, with what is asked of ours as a multiple of it.
    fn of_each(
        &self,
        row: &'static str,
        each: &'static [(&'static str, f64)],
    ) -> impl Iterator<Item = (&Vec<f64>, f64)> {
        each.iter()
            .filter_map(move |(other, factor)| Some((self.values.get(&(row, *other))?, *factor)))
    }

    /// The same of all others but these.
    fn of_rest(
        &self,
        row: &'static str,
        but: &'static [(&'static str, f64)],
        factor: f64,
    ) -> impl Iterator<Item = (&Vec<f64>, f64)> {
        let names = self.stores.iter().map(|(name, _)| *name);
        let rest = names
            .filter(move |name| *name != "esker" && !but.iter().any(|(other, _)| other == name));
        let values = rest.filter_map(move |name| self.values.get(&(row, name)));
        values.map(move |values| (values, factor))
    }

    /// Our median as a multiple of the best of the others.
    fn of_best(&self, row: &'static str) -> Option<f64> {
        let others = self.stores.iter().map(|(name, _)| *name).filter(|name| *name != "esker");
        let best = others.filter_map(|name| self.median(row, name)).reduce(f64::max)?;
        Some(self.median(row, "esker")? / best)
    }

    /// Prints the table and the verdict.
    pub fn print(&self) {
        println!("{}, medians of {} runs", self.title, self.runs);
        for (name, settings) in &self.stores {
            println!("  {name:10} {settings}");
        }
        let names: Vec<_> = self.stores.iter().map(|(name, _)| *name).collect();
        println!("\n| row | {} | asked | reached |", names.join(" | "));
        println!("|---|{}---|---|", "---|".repeat(names.len()));
        let (mut reached, mut short) = (0, 0);
        for (row, unit, asked) in self.rows {
            if names.iter().all(|name| self.median(row, name).is_none()) {
                continue;
            }
            let cell = |name: &&'static str| match self.median(row, name) {
                Some(value) if value >= 1_000.0 => format!("{value:.0}"),
                Some(value) => format!("{value:.3}"),
                None => String::new(),
            };
            let cells: Vec<String> = names.iter().map(cell).collect();
            let wanted = asked.text();
            let verdict = match self.reached(row, asked) {
                None if matches!(asked, Asked::Beside) => match self.of_best(row) {
                    Some(ratio) => format!("{ratio:.2} × the best other"),
                    None => String::new(),
                },
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
