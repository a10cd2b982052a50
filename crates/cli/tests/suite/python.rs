//! The client for Python beside a server: its own tests, the examples of its README, its wheel.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::sandbox::Sandbox;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python");

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Python, from 3.9 on, which writes no compiled files beside the sources.
fn python() -> Option<Command> {
    let is_new = "import sys; sys.exit(sys.version_info < (3, 9))";
    let found = Command::new("python3").args(["-c", is_new]).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no python3, 3.9 or later, here");
        return None;
    }
    let mut python = Command::new("python3");
    python.env("PYTHONDONTWRITEBYTECODE", "1").env("ESKER", env!("CARGO_BIN_EXE_esker"));
    Some(python)
}

fn expect_success(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, error) = (&output.stdout, &output.stderr);
    let said = [String::from_utf8_lossy(out), String::from_utf8_lossy(error)].concat();
    assert!(output.status.success(), "{said}");
}

#[test]
fn its_tests_pass() {
    let Some(mut python) = python() else { return };
    let modules = ["esker._messagepack", "esker._address"];
    let doctest = |m| format!("assert not doctest.testmod(importlib.import_module('{m}')).failed");
    let code = format!("import doctest, importlib\n{}", modules.map(doctest).join("\n"));
    expect_success(python.current_dir(CLIENT).args(["-c", &code]));
    let Some(mut python) = self::python() else { return };
    let warnings = "error::ResourceWarning";
    expect_success(python.current_dir(CLIENT).args(["-W", warnings, "-m", "unittest", "-q"]));
}

#[test]
fn the_examples_of_its_page_run_from_its_wheel() {
    let Some(mut python) = python() else { return };
    let sandbox = Sandbox::new("python");
    let code = "import sys, wheel_backend; print(wheel_backend.build_wheel(sys.argv[1]))";
    expect_success(python.current_dir(CLIENT).args(["-c", code]).arg(&sandbox.0));
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["serve", "shop", "--memory", "--trust-local", "--listen", "127.0.0.1:0"]);
    command.args(["--http-listen", "127.0.0.1:0"]);
    command.current_dir(&sandbox.0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut served = Served(command.spawn().unwrap());
    let lines = BufReader::new(served.0.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| line.unwrap());
    let url = lines.find_map(|line| {
        line.strip_prefix("listening on ").filter(|at| !at.starts_with("http")).map(str::to_owned)
    });
    let page = std::fs::read_to_string(Path::new(CLIENT).join("README.md")).unwrap();
    let blocks = page.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next());
    let program = format!("URL = {:?}\n{}", url.unwrap(), blocks.collect::<String>());
    assert!(program.matches("assert").count() > 10, "{program}");
    sandbox.write("page.py", &program);
    let Some(mut python) = self::python() else { return };
    let wheel = sandbox.0.join("esker-0.1.0-py3-none-any.whl");
    expect_success(python.current_dir(&sandbox.0).env("PYTHONPATH", wheel).arg("page.py"));
}
