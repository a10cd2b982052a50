//! `cargo xtask compare`: the benchmarks of two builds in turn, as a table of ratios.
//!
//! Machines differ from hour to hour, so a figure alone says little. The two programs run one after
//! the other, several times; each figure of a pair of runs gives a ratio, above 1 where the newer
//! program is worse, and the median of the ratios counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::program::{Program, root, target_directory};
use crate::{Error, ErrorKind, Result};

const USAGE: &str = "\
usage: cargo xtask compare (--against COMMIT | --old PROGRAM) [--new PROGRAM] [--runs N]
                           [--most RATIO] [--only ROW,ROW] [--rows N] TABLE...

  --against COMMIT  builds esker-bench of this commit
  --old, --new      programs that are built already
  --runs N          pairs of runs; 5 unless given
  --most RATIO      the ratio that counts as reached; 1.03 unless given
  --only, --rows    go to the benchmark: its rows, and the size of its tables
  TABLE             a table of esker-bench: engine, queries, slate, txn, server, …";

/// What to compare.
#[derive(Debug)]
struct Arguments {
    old: Option<PathBuf>,
    against: Option<String>,
    new: Option<PathBuf>,
    runs: usize,
    most: f64,
    passed_on: Vec<String>,
    tables: Vec<String>,
}

impl Arguments {
    fn parse(words: &[String]) -> Result<Self> {
        let (old, against, new) = (None, None, None);
        let (passed_on, tables) = (Vec::new(), Vec::new());
        let mut this = Self { old, against, new, runs: 5, most: 1.03, passed_on, tables };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                this.tables.push(word.clone());
                continue;
            }
            let missing = || Error::usage(format!("{word}: a value is missing\n{USAGE}"));
            let value = words.next().ok_or_else(missing)?;
            let wrong = |_| Error::usage(format!("{word} {value}: expected a number"));
            match word.as_str() {
                "--old" => this.old = Some(PathBuf::from(value)),
                "--new" => this.new = Some(PathBuf::from(value)),
                "--against" => this.against = Some(value.clone()),
                "--runs" => this.runs = value.parse::<usize>().map_err(|_| wrong(()))?.max(1),
                "--most" => this.most = value.parse().map_err(|_| wrong(()))?,
                "--only" | "--rows" => this.passed_on.extend([word.clone(), value.clone()]),
                _ => return Err(Error::usage(format!("{word}: unknown\n{USAGE}"))),
            }
        }
        if this.tables.is_empty() || this.old.is_some() == this.against.is_some() {
            return Err(Error::usage(USAGE.to_owned()));
        }
        Ok(this)
    }
}

/// Compares two programs.
///
/// # Errors
/// For arguments that are wrong, and when a program does not build or run.
pub fn run(words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words)?;
    let old = match (&arguments.old, &arguments.against) {
        (Some(program), _) => program.clone(),
        (None, Some(commit)) => built_of(commit)?,
        (None, None) => return Err(Error::usage(USAGE.to_owned())),
    };
    let new = match &arguments.new {
        Some(program) => program.clone(),
        None => built(&root(), &root().join("target"))?,
    };
    let (mut within, mut above) = (0, 0);
    for table in &arguments.tables {
        let mut figures = Figures::default();
        for run in 1..=arguments.runs {
            // Each goes first in turn, since the first of a pair finds the machine colder.
            let pair = [(Side::Old, &old), (Side::New, &new)];
            let turns = if run % 2 == 1 { [0, 1] } else { [1, 0] };
            for (side, program) in turns.into_iter().filter_map(|at| pair.get(at)) {
                eprintln!("{table}: run {run} of {}, {side:?}", arguments.runs);
                figures.read(*side, &measured(program, table, &arguments.passed_on)?);
            }
        }
        let (good, bad) = figures.print(table, arguments.most);
        within += good;
        above += bad;
    }
    println!("{within} reached, {above} short");
    Ok(())
}

/// The program of a commit, built apart.
fn built_of(commit: &str) -> Result<PathBuf> {
    let sources = target_directory("compare").join(commit);
    if !sources.is_dir() {
        let path = sources.to_string_lossy();
        Program::new("git").arguments(&["worktree", "add", "--detach", &path, commit]).run()?;
    }
    built(&sources, &target_directory("compare").join("build"))
}

fn built(sources: &Path, target: &Path) -> Result<PathBuf> {
    Program::cargo(&["build", "--release", "--locked", "--package", "esker-bench", "--target-dir"])
        .arguments(&[target.to_string_lossy()])
        .directory(sources)
        .run()?;
    Ok(target.join("release").join("esker-bench"))
}

/// What one run of a table printed.
fn measured(program: &Path, table: &str, passed_on: &[String]) -> Result<String> {
    // What a run measured is on one stream and the names of its figures on the other.
    let script = "exec \"$0\" \"$@\" 2>&1";
    let output = Program::new("sh")
        .arguments(&["-c", script, &program.to_string_lossy(), table, "--runs", "1"])
        .arguments(passed_on)
        .output()?;
    String::from_utf8(output).map_err(|e| {
        let message = format!("{}: its output is not UTF-8: {e}", program.display());
        Error::new(ErrorKind::Exited(1), message)
    })
}

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

/// A figure by its row and its place there.
type Place = (String, usize);

/// What all runs measured.
#[derive(Debug, Default)]
struct Figures {
    old: BTreeMap<Place, Vec<f64>>,
    new: BTreeMap<Place, Vec<f64>>,
    /// Figures in the order of the table.
    order: Vec<Place>,
    /// The name of each, and whether more of it is better.
    named: BTreeMap<Place, (String, bool)>,
}

impl Figures {
    /// Takes the output of one run.
    fn read(&mut self, side: Side, output: &str) {
        let values = match side {
            Side::Old => &mut self.old,
            Side::New => &mut self.new,
        };
        for line in output.lines() {
            let Some((_, line)) = line.split_once("run 1 of 1: ") else { continue };
            let Some((row, measures)) = line.split_once(" … ") else { continue };
            let numbers = measures.split(';').next().into_iter().flat_map(|all| all.split(", "));
            let numbers = numbers.filter_map(|number| number.trim().parse::<f64>().ok());
            for (at, number) in numbers.enumerate() {
                values.entry((row.to_owned(), at)).or_default().push(number);
            }
        }
        if side == Side::New && self.order.is_empty() {
            self.read_names(output);
        }
    }

    /// Takes names and goals of figures from the table of a run.
    fn read_names(&mut self, output: &str) {
        let mut last: Option<Place> = None;
        for line in output.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, asked, shown, ..] = cells.as_slice() else { continue };
            let (row, _) = name.split_once(": ").unwrap_or((name, ""));
            let at = match &last {
                Some((before, at)) if before == row => at + 1,
                _ => 0,
            };
            let place = (row.to_owned(), at);
            if self.new.contains_key(&place) {
                let rises = asked.starts_with('≥') || (*asked == "—" && shown.ends_with("/s"));
                self.order.push(place.clone());
                self.named.insert(place.clone(), ((*name).to_owned(), rises));
            }
            last = Some(place);
        }
    }

    /// Prints the table; how many figures are within the limit, and how many above it.
    fn print(&self, table: &str, most: f64) -> (usize, usize) {
        println!("\n## {table}\n\n| figure | old | new | new by old, as time | within {most} |");
        println!("|---|---|---|---|---|");
        let (mut within, mut above) = (0, 0);
        for place in &self.order {
            let (Some(old), Some(new)) = (self.old.get(place), self.new.get(place)) else {
                println!("| {} | — | — | — | one side has none |", place.0);
                continue;
            };
            let Some((name, rises)) = self.named.get(place) else { continue };
            let ratio = median(old.iter().zip(new).map(|(old, new)| ratio(*old, *new, *rises)));
            let (old, new) = (median(old.iter().copied()), median(new.iter().copied()));
            let is_within = ratio <= most;
            let mark = if is_within { "yes" } else { "no" };
            println!("| {name} | {old:.4} | {new:.4} | {ratio:.3} | {mark} |");
            within += usize::from(is_within);
            above += usize::from(!is_within);
        }
        (within, above)
    }
}

/// How much worse the newer one is.
fn ratio(old: f64, new: f64, rises: bool) -> f64 {
    match (old == new, rises) {
        (true, _) => 1.0,
        (false, true) => old / new,
        (false, false) => new / old,
    }
}

/// The middle one, or the mean of the middle two. Zero when there is none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1).and_then(|at| sorted.get(at))) {
        (Some(high), Some(low)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (Some(value), _) => *value,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
run 1 of 1: get … 450; a note, with a comma
run 1 of 1: scan … 1500000000, 2
| row        | asked         | reached (median) | in runs |
|------------|---------------|------------------|---------|
| get        | ≤ 450 ns      | 450 ns           | 1 of 1  |
| scan: sum  | ≥ 1 G rows/s  | 1.50 G rows/s    | 1 of 1  |
| scan: part | —             | 2.00 ×           | 1 of 1  |
";

    #[test]
    fn figures_are_read_with_their_direction() {
        let mut figures = Figures::default();
        figures.read(Side::Old, &OUTPUT.replace("450", "400"));
        figures.read(Side::New, OUTPUT);
        let named: Vec<_> = figures.order.iter().filter_map(|at| figures.named.get(at)).collect();
        let expected = [("get", false), ("scan: sum", true), ("scan: part", false)];
        assert_eq!(named, expected.map(|(name, rises)| (name.to_owned(), rises)).each_ref());
        assert_eq!(figures.old.get(&("get".to_owned(), 0)), Some(&vec![400.0]));
        assert_eq!(figures.print("t", 1.03), (2, 1));
    }

    #[test]
    fn a_ratio_above_one_is_worse() {
        assert_eq!(ratio(100.0, 50.0, true), 2.0);
        assert_eq!(ratio(100.0, 50.0, false), 0.5);
        assert_eq!(ratio(0.0, 0.0, true), 1.0);
    }

    #[test]
    fn without_a_side_to_compare_with_it_is_refused() {
        let words = ["slate".to_owned()];
        assert_eq!(Arguments::parse(&words).unwrap_err().kind(), ErrorKind::Usage);
    }
}
