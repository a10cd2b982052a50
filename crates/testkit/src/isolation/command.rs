//! The command line of the `history` program.

use std::process::ExitCode;
use std::time::Instant;

use super::drive::{Drive, Judged, Place, Workload};
use super::planted::{PLANTED, THIRTEEN, verdict};
use super::{Anomaly, Level, Verdict};

const USAGE: &str = "\
usage: history [--transactions N] [--threads N] [--seed N] [--level snapshot|serializable]
               [--place NAME] [--workload NAME]
       history --planted [--seed N]

  without a mode, N transactions in all (200,000) are run on the database, of both levels or of one,
  in memory, on a directory, while it merges, and with crashes, and their histories are judged,
  or those of one place or workload alone, by its name, which are then the same as among all;
  --planted puts each anomaly into an honest history, to see it named
";

/// How many transactions the histories have into which anomalies are put.
const HONEST: u32 = 5_000;
/// How many lines are shown of what is wrong with one history.
const SHOWN_LINES: usize = 24;
/// From so many transactions on, all that snapshots allow has to be seen.
const ENOUGH: u64 = 50_000;
/// What snapshot isolation allows.
const ALLOWED: [Anomaly; 4] = [Anomaly::WriteSkew, Anomaly::G2Item, Anomaly::G2, Anomaly::ReadOnly];

/// What the command line says.
#[derive(Clone, Debug)]
struct Arguments {
    planted: bool,
    transactions: u64,
    threads: u64,
    seed: u64,
    levels: Vec<Level>,
    place: Option<Place>,
    workload: Option<Workload>,
}

impl Arguments {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut parsed = Self {
            planted: false,
            transactions: 200_000,
            threads: 8,
            seed: 1,
            levels: vec![Level::Snapshot, Level::Serializable],
            place: None,
            workload: None,
        };
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--planted" => parsed.planted = true,
                "--transactions" => parsed.transactions = rest.next()?.parse().ok()?,
                "--threads" => parsed.threads = rest.next()?.parse().ok()?,
                "--seed" => parsed.seed = rest.next()?.parse().ok()?,
                "--level" => {
                    let name = rest.next()?;
                    parsed.levels.retain(|level| level.name() == name);
                }
                "--place" => {
                    let name = rest.next()?;
                    parsed.place = Some(Place::ALL.into_iter().find(|p| p.name() == name)?);
                }
                "--workload" => {
                    let name = rest.next()?;
                    parsed.workload = Some(Workload::ALL.into_iter().find(|w| w.name() == name)?);
                }
                _ => return None,
            }
        }
        (!parsed.levels.is_empty()).then_some(parsed)
    }
}

/// Runs the program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let Some(arguments) = Arguments::parse(arguments) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let is_well = if arguments.planted {
        planted(arguments.seed)
    } else {
        // Each level is judged, whatever the one before it came to.
        let levels: Vec<bool> = arguments.levels.iter().map(|l| drive(&arguments, *l)).collect();
        levels.into_iter().all(|is_well| is_well)
    };
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[allow(clippy::disallowed_methods, reason = "the program itself runs on the real machine")]
fn now() -> Instant {
    Instant::now()
}

/// Runs the transactions of a level everywhere, and prints what they came to.
fn drive(arguments: &Arguments, level: Level) -> bool {
    let Arguments { transactions, threads, seed, .. } = *arguments;
    // Both levels have half of them each, also when only one is asked for.
    let each_level = transactions.div_ceil(2);
    let mut total = Judged::default();
    println!("level {level}, {threads} threads, seed {seed}");
    for place in Place::ALL.into_iter().filter(|p| arguments.place.is_none_or(|only| only == *p)) {
        let start = now();
        let mut here = Judged::default();
        for (number, workload) in (1..).zip(Workload::ALL) {
            if arguments.workload.is_some_and(|only| only != workload) {
                continue;
            }
            let share = each_level * place.share();
            let transactions = share.div_ceil(100 * Workload::ALL.len() as u64);
            let seed = seed.wrapping_mul(1_000).wrapping_add(number);
            let drive = Drive { workload, place, level, transactions, threads, seed };
            let judged = drive.judge();
            if !judged.failures.is_empty() {
                println!("{drive:?}:");
                judged.failures.lines().take(SHOWN_LINES).for_each(|line| println!("  {line}"));
            }
            here.add(&judged);
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("  {:<10} {} in {seconds:.1} s", place.name(), here.shown());
        total.add(&here);
    }
    println!("  {:<10} {}", "in all", total.shown());
    println!("  anomalies  {}", total.verdict.summary());
    let is_whole = arguments.place.is_none() && arguments.workload.is_none();
    let missed = if is_whole { missed(&total.verdict, level, each_level) } else { Vec::new() };
    if !missed.is_empty() {
        println!("  allowed and not seen: {}", missed.join(", "));
    }
    let is_well = total.failures.is_empty() && missed.is_empty();
    println!("  forbidden  {}", if total.failures.is_empty() { "none" } else { "SOME, above" });
    is_well
}

/// What a level allows and was not seen.
fn missed(seen: &Verdict, level: Level, transactions: u64) -> Vec<&'static str> {
    let is_due = level == Level::Snapshot && transactions >= ENOUGH;
    let missed = ALLOWED.into_iter().filter(|allowed| is_due && seen.count(*allowed) == 0);
    missed.map(Anomaly::name).collect()
}

impl Judged {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        self.crashes += other.crashes;
        for (mine, theirs) in self.in_doubt.iter_mut().zip(other.in_doubt) {
            *mine += theirs;
        }
        self.verdict.absorb(&other.verdict);
        self.failures.push_str(&other.failures);
    }

    fn shown(&self) -> String {
        let [committed, aborted, _] = self.outcomes;
        let all: u64 = self.outcomes.iter().sum();
        let crashes = match self.crashes {
            0 => String::new(),
            crashes => {
                let [survived, lost] = self.in_doubt;
                format!(
                    ", {crashes} crashes ({survived} commits in doubt survived, {lost} did not)"
                )
            }
        };
        format!("{all} transactions, {committed} committed, {aborted} aborted{crashes}")
    }
}

/// Prints what is found of each planted anomaly; whether each was named.
fn planted(seed: u64) -> bool {
    let (thirteen, others) = PLANTED.split_at(THIRTEEN);
    let thirteen = plant(thirteen, seed);
    let others = plant(others, seed);
    thirteen && others
}

fn plant(anomalies: &[Anomaly], seed: u64) -> bool {
    let mut named = 0;
    for &anomaly in anomalies {
        let (_, verdict) = verdict(anomaly, HONEST, seed);
        let is_named = verdict.count(anomaly) > 0;
        named += usize::from(is_named);
        let mark = if is_named { "named" } else { "MISSED" };
        let level = anomaly.forbidden_from();
        println!("  {anomaly:<20} {mark}, forbidden from {level:<20} found: {}", verdict.summary());
    }
    println!("planted anomalies named: {named}/{}", anomalies.len());
    named == anomalies.len()
}
