//! The table of a run, and what of it is reached.

use std::fmt::Write;

use crate::plot::Group;
use crate::workload::{Engine, Planned, Workload};

/// What a question came to.
#[derive(Clone, Debug)]
pub struct Line {
    name: String,
    /// Seconds, of Esker, DuckDB and SQLite.
    seconds: [Option<f64>; 3],
    /// By whose time Esker's is divided.
    beside: Engine,
    /// Why there is none, or how its answer differs from Esker's.
    faults: [Option<String>; 3],
    /// How Esker's answer differs from what the specification prints.
    misprint: Option<String>,
}

fn place(engine: Engine) -> usize {
    match engine {
        Engine::Esker => 0,
        Engine::DuckDb => 1,
        Engine::Sqlite => 2,
    }
}

impl Line {
    /// Nothing is known yet.
    pub fn new(name: &str, beside: Engine) -> Self {
        Self {
            name: name.to_owned(),
            seconds: [None; 3],
            beside,
            faults: [const { None }; 3],
            misprint: None,
        }
    }

    /// Notes that an engine gives no answer.
    pub fn fail(&mut self, engine: Engine, why: String) {
        self.note(engine, format!("no answer: {why}"));
    }

    /// Notes how the answer of an engine differs, if it does.
    pub fn compare(&mut self, engine: Engine, difference: Option<String>) {
        if let Some(difference) = difference {
            self.note(engine, format!("Esker gives another answer: {difference}"));
        }
    }

    /// Notes how Esker's answer differs from what the specification prints, if it does.
    pub fn compare_to_printed(&mut self, difference: Option<String>) {
        self.misprint = difference;
    }

    fn note(&mut self, engine: Engine, what: String) {
        if let Some(fault) = self.faults.get_mut(place(engine)) {
            *fault = Some(what);
        }
    }

    /// Notes how long an engine takes.
    pub fn time(&mut self, engine: Engine, seconds: f64) {
        if let Some(time) = self.seconds.get_mut(place(engine)) {
            *time = Some(seconds);
        }
    }

    fn fault(&self, engine: Engine) -> Option<&String> {
        self.faults.get(place(engine)).and_then(Option::as_ref)
    }

    fn time_of(&self, engine: Engine) -> Option<f64> {
        self.seconds.get(place(engine)).copied().flatten()
    }

    /// Whether Esker answers, and as the other does.
    fn is_right(&self) -> bool {
        let faults = [self.fault(Engine::Esker), self.fault(self.beside), self.misprint.as_ref()];
        faults.iter().all(Option::is_none) && self.time_of(Engine::Esker).is_some()
    }

    /// Esker's time by the other's.
    fn ratio(&self) -> Option<f64> {
        Some(self.time_of(Engine::Esker)? / self.time_of(self.beside)?)
    }

    /// Its line of the table.
    pub fn shown(&self) -> String {
        let time =
            |seconds: Option<f64>| seconds.map_or("—".into(), |s| format!("{:.1}", s * 1e3));
        let [ours, duckdb, sqlite] = self.seconds.map(time);
        let ratio = self.ratio().map_or("—".into(), |ratio| format!("{ratio:.2}"));
        let other = self.fault(self.beside).or(self.misprint.as_ref());
        let answer = match (self.fault(Engine::Esker), other) {
            (Some(_), _) => "none",
            (None, Some(_)) => "differs",
            (None, None) => "equal",
        };
        format!("| {} | {ours} | {duckdb} | {ratio} | {sqlite} | {answer} |", self.name)
    }
}

/// What all questions came to.
pub struct Report {
    title: String,
    mean_most: Option<f64>,
    ratio_most: Option<f64>,
    beside: Engine,
    lines: Vec<Line>,
    /// What was planned alone, its time in milliseconds, and what that may be.
    plans: Vec<(String, f64, f64)>,
}

impl Report {
    /// Nothing yet. A mean is judged only where all is asked.
    pub fn new(title: String, workload: &Workload, asks_all: bool) -> Self {
        let mean_most = workload.mean_most.filter(|_| asks_all);
        let Workload { beside, ratio_most, .. } = *workload;
        Self { title, mean_most, ratio_most, beside, lines: Vec::new(), plans: Vec::new() }
    }

    /// Adds a question.
    pub fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Adds a query that was planned, with how long that took.
    pub fn add_plan(&mut self, planned: &Planned, seconds: f64) {
        self.plans.push((planned.name.clone(), seconds * 1e3, planned.ms_most));
    }

    /// Prints how long planning took; how many figures are reached, and how many are short.
    fn print_plans(&self) -> (usize, usize) {
        for (name, ms, most) in &self.plans {
            println!("{name}: planned in {ms:.2} ms (asked: ≤ {most})");
        }
        let reached = self.plans.iter().filter(|(_, ms, most)| ms <= most).count();
        (reached, self.plans.len() - reached)
    }

    /// Prints the table; how many figures are reached, and how many are short.
    pub fn print(&self) -> (usize, usize) {
        let header = format!(
            "| question | Esker, ms | DuckDB, ms | Esker by {} | SQLite, ms | answer |",
            self.beside.name()
        );
        println!("\n## {}\n\n{header}", self.title);
        println!("|{}", "---|".repeat(header.matches('|').count() - 1));
        self.lines.iter().for_each(|line| println!("{}", line.shown()));
        println!();
        let (mut reached, mut short) = self.print_plans();
        for line in &self.lines {
            let within = self.ratio_most.is_none_or(|most| line.ratio().is_none_or(|r| r <= most));
            let is_reached = line.is_right() && within;
            reached += usize::from(is_reached);
            short += usize::from(!is_reached);
            for (engine, fault) in
                [Engine::Esker, Engine::DuckDb, Engine::Sqlite].iter().zip(&line.faults)
            {
                if let Some(fault) = fault {
                    println!("{}, {}: {fault}", line.name, engine.name());
                }
            }
            if let Some(misprint) = &line.misprint {
                println!("{}: the specification prints another answer: {misprint}", line.name);
            }
        }
        let is_right = self.lines.iter().all(Line::is_right);
        if let Some(mean) = self.mean() {
            let mut said =
                format!("geometric mean of the ratios to {}: {mean:.2}", self.beside.name());
            if let Some(most) = self.mean_most {
                let is_reached = is_right && mean <= most;
                reached += usize::from(is_reached);
                short += usize::from(!is_reached);
                let _ = write!(said, " (asked: ≤ {most} with all answers equal)");
            }
            println!("{said}");
        }
        let worst = self.lines.iter().filter_map(|line| Some((line.ratio()?, &line.name)));
        if let Some((ratio, name)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) {
            let asked = self.ratio_most.map(|most| format!(" (asked of each: ≤ {most})"));
            println!("the worst: {name}, {ratio:.2}{}", asked.unwrap_or_default());
        }
        (reached, short)
    }

    fn mean(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.lines.iter().filter_map(Line::ratio).collect();
        let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
    }

    /// The ratios, to be drawn.
    pub fn groups(&self) -> Vec<Group> {
        let ratio = |line: &Line| Some((line.name.clone(), 100.0 * line.ratio()?));
        let values: Vec<(String, f64)> = self.lines.iter().filter_map(ratio).collect();
        let name = self.title.split(';').next().unwrap_or_default().to_owned();
        let unit = match self.beside {
            Engine::Sqlite => "% of SQLite's time",
            _ => "% of DuckDB's time",
        };
        vec![Group { name, unit, values }]
    }
}

/// The middle one, or the mean of the middle two. Zero when there is none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1).and_then(|at| sorted.get(at))) {
        (Some(high), Some(low)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (Some(value), _) => *value,
        (None, _) => 0.0,
    }
}
