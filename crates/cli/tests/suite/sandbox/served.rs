//! The program as a server of all protocols, on ports of this machine that are free.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::Sandbox;

/// A server of a database in a directory of a sandbox, `served`; killed at the end.
pub struct Served {
    pub child: Child,
    /// Addresses.
    pub wire: String,
    pub resp: String,
    pub http: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Starts one that gives what is under way so much time when it is told to stop.
    pub fn start(sandbox: &Sandbox, drain_timeout: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(["serve", "served", "--trust-local", "--drain-timeout", drain_timeout]);
        command.args(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]);
        command.args(["--resp-listen", "127.0.0.1:0"]);
        command.current_dir(&sandbox.0).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = |scheme: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix("listening on ").unwrap().strip_prefix(scheme).unwrap().to_owned()
        };
        let (wire, resp, http) = (next(""), next("redis://"), next("http://"));
        Self { child, wire, resp, http }
    }
}
