//! A terminal: a pseudo-terminal with a program in it, and the screen that a person would see.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test outside the engine, on real files"
)]

mod screen;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetwinsize, tcsetwinsize};
use screen::Screen;

/// How long a line may take to be answered.
const PATIENCE: Duration = Duration::from_secs(60);
/// A screen that has not changed for so long shows all there is.
const SETTLED: Duration = Duration::from_millis(60);

const ROWS: u16 = 50;
const COLUMNS: u16 = 120;

/// A program in a terminal; it ends with it.
pub struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    screen: Screen,
    changed: Instant,
    is_over: bool,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    /// Starts a program with the terminal as its own, so that Ctrl-C reaches it.
    pub fn start(command: &Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let main = openpt(flags).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let mut size = tcgetwinsize(&main).unwrap();
        size.ws_row = ROWS;
        size.ws_col = COLUMNS;
        tcsetwinsize(&main, size).unwrap();
        let path = ptsname(&main, Vec::new()).unwrap();
        let open = || {
            let file = File::options().read(true).write(true).open(path.to_str().unwrap());
            Stdio::from(OwnedFd::from(file.unwrap()))
        };
        let mut own = Command::new("setsid");
        own.arg("--ctty").arg("--wait").arg(command.get_program()).args(command.get_args());
        own.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => own.env(name, value),
                None => own.env_remove(name),
            };
        }
        own.env("TERM", "xterm-256color").stdin(open()).stdout(open()).stderr(open());
        let child = own.spawn().unwrap();
        let seen = Seen {
            screen: Screen::new(usize::from(ROWS), usize::from(COLUMNS)),
            changed: Instant::now(),
            is_over: false,
        };
        let seen = Arc::new(Mutex::new(seen));
        let main = File::from(main);
        let (mut output, mut answers) = (main.try_clone().unwrap(), main.try_clone().unwrap());
        let shown = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The system reports the end of the program as an error.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut seen = shown.lock().unwrap();
                seen.screen.write(&bytes[..count]);
                seen.changed = Instant::now();
                let reports = seen.screen.take_reports();
                drop(seen);
                let _ = answers.write_all(reports.as_bytes());
            }
            shown.lock().unwrap().is_over = true;
        });
        Self { child, keys: main, seen }
    }

    /// Types keys, and waits until something of them is shown, or the program has ended: the prompt
    /// from before is no answer to them.
    pub fn keys(&mut self, keys: &str) {
        let before = self.seen.lock().unwrap().screen.text();
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        let started = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap();
            if seen.is_over || seen.screen.text() != before {
                return;
            }
            drop(seen);
            assert!(started.elapsed() < PATIENCE, "nothing of {keys:?} is shown:\n{before}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the line with the cursor is this, or the program has ended where it is empty;
    /// returns all that has been shown.
    pub fn wait(&mut self, line: &str) -> String {
        let started = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap();
            let is_there = match line {
                "" => seen.is_over,
                line => seen.screen.cursor_line() == line && seen.changed.elapsed() >= SETTLED,
            };
            let text = seen.screen.text();
            drop(seen);
            if is_there {
                return text;
            }
            assert!(started.elapsed() < PATIENCE, "waited for {line:?}, and saw:\n{text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until something is shown.
    pub fn wait_for(&mut self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let shown = self.seen.lock().unwrap().screen.text();
            if shown.contains(text) {
                return shown;
            }
            assert!(started.elapsed() < PATIENCE, "waited for {text:?}, and saw:\n{shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the program, and whether it has succeeded.
    pub fn succeeded(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// Closes the terminal under the program, as when a window is closed.
    pub fn hang_up(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
