//! Every command, asked with every token that does not reach so far: the refusal that is
//! documented, nothing changed, nothing told.

use std::io::{Read, Write};
use std::sync::Arc;

use esker_vfs::Environment;

use super::document::words;
use super::table::{COMMANDS, Command};
use super::tests::Running;
use crate::ServerConfig;
use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::config::Config;
use crate::two_tenants::{Tenants, expect_nothing};

/// The command with its arguments, made of the table: keys and numbers are all `1`.
fn line(command: &Command) -> String {
    let given = match command.name {
        "auth" | "hello" | "quit" | "reset" => return command.name.to_owned(),
        "config|get" => "*",
        "scan" => "0",
        "keys" => "*",
        "getex" => "1 EX 5",
        "flushdb" | "dbsize" | "randomkey" => "",
        _ => {
            let names = words(command);
            let count = usize::try_from(command.arity.abs()).unwrap();
            let given = vec!["1"; count - names.split(' ').count()];
            return format!("{names} {}", given.join(" "));
        }
    };
    format!("{} {given}", words(command))
}

/// Commands and subcommands; those that need a subcommand are not asked without.
fn every() -> impl Iterator<Item = &'static Command> {
    let every = COMMANDS.iter().flat_map(Command::with_subcommands);
    every.filter(|command| command.subcommands.is_empty() || command.arity == -1)
}

/// Sends lines, and returns what is told of them until the end of the connection.
fn converse(server: &Running, lines: &[&str]) -> Vec<String> {
    let mut stream = server.connect();
    stream.write_all(lines.join("\r\n").as_bytes()).unwrap();
    stream.write_all(b"\r\nQUIT\r\n").unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    String::from_utf8_lossy(&told).split("\r\n").map(str::to_owned).collect()
}

/// The scopes in `mill` with which a command is refused.
fn small_scopes(command: &Command) -> Vec<&'static str> {
    let others = ["admin:mill/u", "admin:mill/c"];
    let of_keys = command.is_of_keys();
    let lower: &[&str] = match command.name {
        "flushdb" => &["read:mill", "write:mill", "write:mill/b"],
        _ if command.is_write() => &["read:mill", "read:mill/b"],
        _ => &[],
    };
    let others = if of_keys { &others[..] } else { &[] };
    lower.iter().chain(others).copied().collect()
}

#[test]
fn no_command_does_or_tells_anything_for_a_token_that_does_not_reach_it() {
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let resp_buckets = vec!["b".to_owned(), "c".to_owned()];
    let config =
        Config { memory: true, resp_listen: Some(local), resp_buckets, ..Config::default() };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let tenants = Tenants::new(&access_control);
    let server = Running::with(ServerConfig::of(&access_control).unwrap(), || {
        Arc::new(TokenAuthenticator::new(&access_control))
    });
    let dead = tenants.dead_tokens();
    let (_, shop) = tenants.token("admin:shop", None);
    let mut count = 0;
    for command in every() {
        let line = line(command);
        let mut expect = |lines: &[&str], at: usize, code: &str| {
            let state = tenants.state();
            let told = converse(&server, lines);
            let what = format!("{lines:?}: {told:?}");
            let found = told.get(at).unwrap_or_else(|| panic!("{what}"));
            assert!(found.starts_with(code), "{what}");
            expect_nothing(&tenants, &state, told.join("|").as_bytes(), &what);
            count += 1;
        };
        if !command.is_open() {
            expect(&[&line], 0, "-NOAUTH");
            for token in dead.iter().map(|(_, token)| token).chain([&shop]) {
                let auth = format!("AUTH mill {token}");
                expect(&[&auth, &line], 0, "-WRONGPASS");
                expect(&[&auth, &line], 1, "-NOAUTH");
            }
        }
        for scope in small_scopes(command) {
            let auth = format!("AUTH mill {}", tenants.token(scope, None).1);
            expect(&[&auth, &line], 1, "-NOPERM");
            // The same when it is queued: it is refused at once, or in the answer of EXEC.
            if !command.is_about_queue() {
                expect(&[&auth, "MULTI", &line, "EXEC"], 4, "-NOPERM");
            }
        }
    }
    eprintln!("{count} cases of commands");
    assert!(count > 400);
    let (_, admin) = tenants.token("admin:mill", None);
    for command in every() {
        let told = converse(&server, &[&format!("AUTH mill {admin}"), &line(command)]);
        let refused = |told: &String| told.starts_with("-NOPERM") || told.starts_with("-NOAUTH");
        assert!(!told.iter().any(refused), "{}: {told:?}", command.name);
    }
}
