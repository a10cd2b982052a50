//! The commands of `docs/guide/http.md` are run against a server, and show what it says.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::sandbox::Sandbox;
use crate::transcript::{commands, matches};

const GUIDE: &str = include_str!("../../../../docs/guide/http.md");

/// What the page leaves out; the last of two headers of a name counts here.
const CURL: &str = r#"#!/bin/sh
method=$1; path=$2; shift 2
case "$1" in -H|'') ;; *) body=$1 ;; esac
[ $# -gt 0 ] && [ "$1" != -H ] && shift
media='Content-Type: application/json'
case "$*" in *Content-Type*) media='X-Nothing: 1' ;; esac
case "$body" in '<'*) media='Content-Type: text/html' ;; esac
exec curl -s -X "$method" "$SERVER/v1/databases/default$path" -H "Authorization: Bearer $TOKEN" \
    -H "$media" ${body:+--data-binary "$body"} "$@"
"#;

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_commands_show_what_the_page_says() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("left out: there is no curl here to run the commands with");
        return;
    }
    let sandbox = Sandbox::new("http-guide");
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["serve", "shop", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]);
    command.current_dir(&sandbox.0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut served = Served(command.spawn().unwrap());
    let lines = BufReader::new(served.0.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| line.unwrap());
    let server = lines.find_map(|line| Some(line.strip_prefix("listening on http")?.to_owned()));
    let server = format!("http{}", server.unwrap());
    let token = sandbox.ok(&["token", "create", "shop", "--name", "me", "--scope", "admin"]);
    // A server that runs knows it within a second.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    sandbox.write("esker-curl", CURL);
    for (line, shown) in commands(GUIDE) {
        let line = line.replace("esker-curl", "sh ./esker-curl");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&sandbox.0);
        shell.env("SERVER", &server).env("TOKEN", token.trim());
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(matches(shown.trim_end(), text.trim_end()), "{line}\n{shown}\nbut: {text}");
    }
    Command::new("kill").args(["-TERM", &served.0.id().to_string()]).status().unwrap();
    assert!(served.0.wait().unwrap().success(), "it ends by itself when it is told");
}
