//! Loads a workload into each engine, compares their answers, and times them in turn.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::Result;
use crate::answer::{Cell, Rows, difference, difference_to_printed};
use crate::arguments::Arguments;
use crate::ours::Ours;
use crate::peer::{Peer, seconds_of};
use crate::report::{Line, Report, median};
use crate::workload::{Engine, Question, Workload};

/// A question of SQLite's that takes longer is timed once; of the others, one that takes ten times
/// as long.
const ONCE_SECONDS: f64 = 1.0;

/// A workload that every engine has loaded.
pub struct Comparison<'a> {
    arguments: &'a Arguments,
    workload: Workload,
    /// Who is asked, ours first.
    engines: Vec<Engine>,
    peer: RefCell<Peer>,
    directory: PathBuf,
}

/// The name of an engine in requests.
fn peer_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "sqlite",
        _ => "duckdb",
    }
}

impl<'a> Comparison<'a> {
    /// Makes the rows and loads them.
    pub fn new(arguments: &'a Arguments, workload: Workload, beside: Vec<Engine>) -> Result<Self> {
        let name = format!("esker-bench-analytics-{}", std::process::id());
        let directory = arguments.dir.join(name);
        std::fs::create_dir_all(&directory)?;
        let peer = RefCell::new(Peer::start()?);
        let engines = [vec![Engine::Esker], beside].concat();
        let this = Self { arguments, workload, engines, peer, directory };
        // Without an engine that was wanted there is nothing to compare: that is said at once.
        for engine in this.beside() {
            this.ask_peer(&json!({"do": "open", "engine": peer_name(engine)}))?;
        }
        eprintln!("{}: making rows …", this.workload.title);
        (this.workload.write)(&this.directory)?;
        for engine in &this.engines {
            let start = Instant::now();
            match engine {
                Engine::Esker => this.load_ours()?,
                other => this.load_peer(*other)?,
            }
            eprintln!("{} loaded it in {:.1} s", engine.name(), start.elapsed().as_secs_f64());
        }
        for table in this.workload.tables {
            std::fs::remove_file(table.file(&this.directory))?;
        }
        Ok(this)
    }

    fn beside(&self) -> impl Iterator<Item = Engine> {
        self.engines.iter().copied().filter(|engine| *engine != Engine::Esker)
    }

    fn ask_peer(&self, request: &Json) -> Result<Json> {
        Ok(self.peer.borrow_mut().ask(request)?)
    }

    fn path(&self, engine: Engine) -> PathBuf {
        self.directory.join(engine.name())
    }

    fn load_ours(&self) -> Result<()> {
        let Arguments { seconds, memory_bytes, .. } = *self.arguments;
        let ours = Ours::open(&self.path(Engine::Esker), usize::MAX, memory_bytes, seconds)?;
        for table in self.workload.tables {
            ours.load(table, &self.directory)?;
        }
        ours.settle()
    }

    fn load_peer(&self, engine: Engine) -> Result<()> {
        let name = peer_name(engine);
        self.open_peer(engine, std::thread::available_parallelism()?.get())?;
        for table in self.workload.tables {
            let create = table.create(engine);
            self.ask_peer(&json!({"do": "run", "engine": name, "sql": create, "rows": false}))?;
            let path = table.file(&self.directory);
            let load = json!({"do": "load", "engine": name, "table": table.name, "path": path});
            self.ask_peer(&load)?;
        }
        if engine == Engine::Sqlite {
            let analyze = json!({"do": "run", "engine": name, "sql": "ANALYZE", "rows": false});
            self.ask_peer(&analyze)?;
        }
        Ok(())
    }

    /// Opens the database of an engine; gives its name and version.
    fn open_peer(&self, engine: Engine, threads: usize) -> Result<String> {
        let bytes = self.arguments.memory_bytes;
        let settings = match engine {
            Engine::Sqlite => json!({"cache_size": -i64::try_from(bytes / 1024)?}),
            _ => json!({"threads": threads, "memory_limit": format!("{bytes}B")}),
        };
        let path = self.path(engine);
        let path = path.to_str().ok_or("the directory's name is not UTF-8")?;
        let version = self.peer.borrow_mut().open(peer_name(engine), Some(path), &settings)?;
        Ok(format!("{} {version}", engine.name()))
    }

    fn questions(&self) -> impl Iterator<Item = &Question> {
        let only = &self.arguments.only;
        let wanted = move |q: &&Question| only.is_empty() || only.contains(&q.name);
        self.workload.questions.iter().filter(wanted)
    }

    fn open_ours(&self, threads: usize) -> Result<Ours> {
        let Arguments { seconds, memory_bytes, .. } = *self.arguments;
        Ours::open(&self.path(Engine::Esker), threads, memory_bytes, seconds)
    }

    /// Shows what Esker does for each question.
    pub fn explain(&self) -> Result<()> {
        let ours = self.open_ours(self.arguments.threads.first().copied().unwrap_or(1))?;
        for question in self.questions() {
            // The second shows what no file has to be read for.
            let explained =
                ours.explain(&question.esker).and_then(|_| ours.explain(&question.esker));
            let text = explained.unwrap_or_else(|e| format!("refused: {e}"));
            println!("## {}\n\n{text}\n", question.name);
        }
        Ok(())
    }

    /// Asks, compares and times.
    pub fn run(&self, threads: usize) -> Result<Report> {
        let ours = self.open_ours(threads)?;
        let mut versions = Vec::new();
        for engine in self.beside() {
            versions.push(self.open_peer(engine, threads)?);
        }
        let Arguments { runs, memory_bytes, .. } = *self.arguments;
        let about = format!(
            "{threads} thread{}, {} MiB, {}, medians of {runs} runs; load average before {}",
            if threads == 1 { "" } else { "s" },
            memory_bytes >> 20,
            versions.join(", "),
            load_average()
        );
        let title = format!("{}: {about}", self.workload.title);
        let mut report = Report::new(title, &self.workload, self.arguments.only.is_empty());
        for question in self.questions() {
            let line = self.measure(&ours, question)?;
            eprintln!("{}", line.shown());
            report.add(line);
        }
        for planned in &self.workload.planned {
            let seconds = (0..runs.max(5)).map(|_| ours.plan(&planned.text));
            let seconds = seconds.collect::<Result<Vec<_>>>()?;
            report.add_plan(planned, median(&seconds));
        }
        Ok(report)
    }

    /// Asks an engine; its time and its rows.
    fn ask(&self, ours: &Ours, engine: Engine, text: &str) -> Result<(f64, Rows)> {
        if engine == Engine::Esker {
            return ours.ask(text);
        }
        let seconds = self.arguments.seconds;
        let (seconds, rows) = self.peer.borrow_mut().run(peer_name(engine), text, seconds)?;
        let row = |row: &Vec<Json>| row.iter().map(Cell::of_peer).collect();
        Ok((seconds, rows.iter().map(row).collect()))
    }

    /// How long an engine takes.
    fn time(&self, ours: &Ours, engine: Engine, text: &str) -> Result<f64> {
        if engine == Engine::Esker {
            return Ok(ours.ask(text)?.0);
        }
        let (name, seconds) = (peer_name(engine), self.arguments.seconds);
        let request =
            json!({"do": "run", "engine": name, "sql": text, "seconds": seconds, "rows": false});
        Ok(seconds_of(&self.ask_peer(&request)?)?)
    }

    fn measure(&self, ours: &Ours, question: &Question) -> Result<Line> {
        let mut line = Line::new(&question.name, self.workload.beside);
        let (mut timed, mut ours_rows) = (Vec::new(), None);
        for engine in &self.engines {
            let Some(text) = question.text(*engine) else { continue };
            match self.ask(ours, *engine, text) {
                Err(e) => line.fail(*engine, first_line(&e.to_string())),
                Ok((seconds, rows)) => {
                    if *engine == Engine::Esker {
                        let tolerance = question.printed_tolerance;
                        line.compare_to_printed(
                            question.printed.and_then(|printed| {
                                difference_to_printed(&rows, printed, tolerance)
                            }),
                        );
                        ours_rows = Some(rows);
                    } else if let Some(ours) = &ours_rows {
                        line.compare(*engine, difference(ours.clone(), rows, question.is_ordered));
                    }
                    let most = if *engine == Engine::Sqlite { 1.0 } else { 10.0 } * ONCE_SECONDS;
                    timed.push((*engine, text, seconds > most, vec![seconds]));
                }
            }
        }
        for (_, _, _, seconds) in timed.iter_mut().filter(|(_, _, once, _)| !once) {
            // The first reads files that none has read.
            seconds.clear();
        }
        for run in 0..self.arguments.runs {
            // Each goes first in turn, since the first finds the machine colder.
            let first = run % timed.len().max(1);
            timed.rotate_left(first);
            for (engine, text, once, seconds) in &mut timed {
                if !*once {
                    seconds.push(self.time(ours, *engine, text)?);
                }
            }
            timed.rotate_right(first);
        }
        for (engine, _, _, seconds) in timed {
            line.time(engine, median(&seconds));
        }
        Ok(line)
    }
}

impl Drop for Comparison<'_> {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

fn remove(directory: &Path) {
    if let Err(e) = std::fs::remove_dir_all(directory) {
        eprintln!("{}: {e}", directory.display());
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}
