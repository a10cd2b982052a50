//! The `kill_server` program: its options, and what it prints.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;

use super::{kill_server, planted, served};

const USAGE: &str = "\
usage: kill_server [--cycles N] [--seed N] [--streams] [--planted]

  --cycles N   how many servers are killed under load, 300 unless told
  --seed N     what clients do follows from it, 1 unless told
  --streams    clients of streams alone: events, and a reader that follows them
  --planted    plants each bug in a process of its own, and says what finds it; needs the cargo
               feature `sabotage`";

/// What a campaign does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// How many servers are killed; `None`: as many as is usual.
    pub cycles: Option<u64>,
    /// What clients do follows from it.
    pub seed: u64,
    /// Whether clients are those of streams alone.
    pub are_streams: bool,
    /// Whether bugs are planted, to be found.
    pub plants: bool,
}

impl Options {
    const CYCLES: u64 = 300;

    fn parse(mut words: &[&str]) -> Result<Self, String> {
        let mut options = Self { cycles: None, seed: 1, are_streams: false, plants: false };
        loop {
            words = match words {
                [] => return Ok(options),
                ["--cycles", cycles, rest @ ..] => {
                    options.cycles = Some(number(cycles)?);
                    rest
                }
                ["--seed", seed, rest @ ..] => {
                    options.seed = number(seed)?;
                    rest
                }
                ["--streams", rest @ ..] => {
                    options.are_streams = true;
                    rest
                }
                ["--planted", rest @ ..] => {
                    options.plants = true;
                    rest
                }
                ["--help", ..] => return Err(USAGE.to_owned()),
                [word, ..] => return Err(format!("{word:?} is not expected\n{USAGE}")),
            };
        }
    }

    fn run(self) -> Result<(), String> {
        if self.plants {
            return planted::run_all(self);
        }
        let tally = kill_server(self.cycles.unwrap_or(Self::CYCLES), self.seed, self.are_streams)?;
        println!("{tally}");
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|e| format!("expected a number, found {text:?}: {e}\n{USAGE}"))
}

/// Runs the `kill_server` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", directory] => served::serve(Path::new(directory)).map_err(|e| e.to_string()),
        words => Options::parse(words).and_then(Options::run),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
