//! The table at the end.

use crate::arguments::Arguments;
use crate::machine::Machine;
use crate::outcome::{Asked, Goal, Measure, Outcome, median};
use crate::plot::Group;
use crate::rows::Row;

const HEADER: [&str; 7] =
    ["row", "asked", "reached (median)", "in runs", "limit here", "of the limit", "segments"];

pub(crate) struct Report {
    rows: Vec<(&'static Row, Vec<Outcome>, Option<String>)>,
    runs: usize,
    row_count: u64,
    rows_wanted: u64,
}

impl Report {
    pub(crate) fn new(rows: &[&'static Row], arguments: &Arguments) -> Self {
        let rows = rows.iter().map(|row| (*row, Vec::new(), None)).collect();
        let Arguments { runs, rows: row_count, rows_wanted, .. } = *arguments;
        Self { rows, runs, row_count, rows_wanted }
    }

    pub(crate) fn add(&mut self, name: &str, outcome: Outcome) {
        if let Some((_, outcomes, _)) = self.rows.iter_mut().find(|(row, ..)| row.name == name) {
            outcomes.push(outcome);
        }
    }

    pub(crate) fn fail(&mut self, name: &str, error: String) {
        if let Some((_, _, failure)) = self.rows.iter_mut().find(|(row, ..)| row.name == name) {
            *failure = Some(error);
        }
    }

    pub(crate) fn print(&self, machine: &Machine) {
        let (mut lines, mut reached, mut short) = (vec![HEADER.map(str::to_owned)], 0, 0);
        for (row, outcomes, failure) in &self.rows {
            for (i, asked) in row.asked.iter().enumerate() {
                let measures: Vec<Measure> =
                    outcomes.iter().filter_map(|o| o.measures.get(i)).copied().collect();
                let is_reached = failure.is_none() && is_reached(asked, &measures);
                match is_reached {
                    true if asked.goal == Goal::Told => {}
                    true => reached += 1,
                    false => short += 1,
                }
                let segments = outcomes.last().and_then(|o| o.segments);
                let mut line = line(row, asked, &measures, segments);
                if let (Some(_), [_, _, found, ..]) = (failure, &mut line) {
                    *found = "failed".to_owned();
                }
                lines.push(line);
            }
        }
        println!();
        print_lines(&lines);
        self.print_notes();
        println!();
        machine.print();
        if self.row_count != self.rows_wanted || self.runs < 5 {
            let (rows, runs) = (self.row_count, self.runs);
            println!("a shrunken run of {rows} rows, {runs} runs: no figure counts");
        }
        println!("{reached} reached, {short} short");
    }

    /// The medians of each row, those of one unit together.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (row, outcomes, _) in &self.rows {
            for (i, asked) in row.asked.iter().enumerate() {
                let values = outcomes.iter().filter_map(|outcome| outcome.measures.get(i));
                let values: Vec<f64> = values.map(|measure| measure.value).collect();
                if values.is_empty() {
                    continue;
                }
                let value = (asked.figure.to_owned(), median(&values));
                let (name, unit) = (row.name.to_owned(), asked.unit.name());
                match groups.last_mut() {
                    Some(last) if last.name == name && last.unit == unit => last.values.push(value),
                    _ => groups.push(Group { name, unit, values: vec![value] }),
                }
            }
        }
        groups
    }

    fn print_notes(&self) {
        println!();
        for (row, outcomes, failure) in &self.rows {
            if let Some(failure) = failure {
                println!("{}: failed: {failure}", row.name);
            }
            for note in outcomes.last().map(|o| o.notes.as_slice()).unwrap_or_default() {
                println!("{} (last run): {note}", row.name);
            }
        }
    }
}

/// A figure is reached when most of its runs reach it: three of five.
fn is_reached(asked: &Asked, measures: &[Measure]) -> bool {
    !measures.is_empty() && count_reached(asked, measures) * 2 > measures.len()
}

fn count_reached(asked: &Asked, measures: &[Measure]) -> usize {
    measures.iter().filter(|m| m.goal.unwrap_or(asked.goal).is_reached(m.value)).count()
}

fn line(row: &Row, asked: &Asked, measures: &[Measure], segments: Option<usize>) -> [String; 7] {
    let name = match asked.figure {
        "" => row.name.to_owned(),
        figure => format!("{}: {figure}", row.name),
    };
    let goal = measures.last().and_then(|m| m.goal).unwrap_or(asked.goal);
    let goal = match goal {
        Goal::AtLeast(least) => format!("≥ {}", asked.unit.show(least)),
        Goal::AtMost(most) => format!("≤ {}", asked.unit.show(most)),
        Goal::Told => "—".to_owned(),
    };
    let values: Vec<f64> = measures.iter().map(|m| m.value).collect();
    let limits: Vec<f64> = measures.iter().filter_map(|m| m.limit).collect();
    let ratios: Vec<f64> =
        measures.iter().filter_map(|m| Some(m.value / m.limit.filter(|l| *l != 0.0)?)).collect();
    let (mut limit, mut ratio) = (String::new(), String::new());
    if !limits.is_empty() {
        limit = format!("{} {}", asked.unit.show(median(&limits)), asked.limit);
        ratio = format!("{:.2}", median(&ratios));
    }
    let value = if values.is_empty() { "—".to_owned() } else { asked.unit.show(median(&values)) };
    let runs = format!("{} of {}", count_reached(asked, measures), measures.len());
    let segments = segments.map(|s| s.to_string()).unwrap_or_default();
    [name, goal, value, runs, limit, ratio, segments]
}

fn print_lines(lines: &[[String; 7]]) {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rules = widths.iter().map(|width| "-".repeat(width + 2));
            println!("|{}|", rules.collect::<Vec<_>>().join("|"));
        }
    }
}
