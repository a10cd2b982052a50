//! `kill -HUP` of a server: configuration, tokens and certificates are read again, and connections
//! stay.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test on real files")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the log has a line with a text, once more than before.
fn wait_for(sandbox: &Sandbox, text: &str, times: usize) -> String {
    let started = Instant::now();
    loop {
        let log = sandbox.read("log");
        if log.matches(text).count() >= times {
            return log.lines().rfind(|line| line.contains(text)).unwrap().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{text}: {log}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_hup_signal_reloads_without_dropping_connections() {
    let sandbox = Sandbox::new("reload");
    let config = "trust_local = true\nslow_query = \"10s\"\n[http]\nlisten = \"off\"\n";
    sandbox.write("esker.toml", format!("{config}[wire]\nlisten = \"127.0.0.1:0\"\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["serve", "db", "--config", "esker.toml"]).current_dir(&sandbox.0);
    let log = std::fs::File::create(sandbox.0.join("log")).unwrap();
    let mut served = Running(command.stdout(Stdio::piped()).stderr(log).spawn().unwrap());
    let mut lines = BufReader::new(served.0.stdout.take().unwrap()).lines();
    let address = lines.next().unwrap().unwrap().replace("listening on ", "");
    let stream = TcpStream::connect(&address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |line: &str| {
        (&stream).write_all(format!("{line}\n").as_bytes()).unwrap();
        answers.next().unwrap().unwrap()
    };
    assert_eq!(ask(r#"{"op": "begin"}"#), r#"{"ok":true}"#);
    let hup = || {
        let process = served.0.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &process]).status().unwrap().success());
    };
    // What is wrong changes nothing.
    sandbox.write("esker.toml", "trust_locl = true\n");
    hup();
    let line = wait_for(&sandbox, "the configuration was not read again", 1);
    assert!(line.contains("did you mean") && line.contains("trust_local"), "{line}");
    assert!(TcpStream::connect(&address).is_ok());
    // What can be changed is, and the rest is named.
    let config = config.replace("true", "false").replace("10s", "0s");
    sandbox.write("esker.toml", format!("{config}[wire]\nlisten = \"127.0.0.1:1\"\n"));
    hup();
    let line = wait_for(&sandbox, "the configuration was read again", 1);
    assert!(line.contains("changed=\"trust_local,slow_query\""), "{line}");
    assert!(line.contains("later=\"wire.listen\""), "{line}");
    // The connection of before goes on, in its transaction; others need a token now.
    assert_eq!(ask(r#"{"op": "sql", "sql": "SELECT 1 AS n"}"#), r#"{"ok":true,"rows":[{"n":1}]}"#);
    assert_eq!(ask(r#"{"op": "rollback"}"#), r#"{"ok":true}"#);
    wait_for(&sandbox, "slow statement", 1);
    let (_, error) = sandbox.fails(&["--connect", &address, "sql", "SELECT 1"]);
    assert!(error.contains("ESKER_TOKEN"), "{error}");
    Command::new("kill").args(["-TERM", &served.0.id().to_string()]).status().unwrap();
    assert!(served.0.wait().unwrap().success());
}
