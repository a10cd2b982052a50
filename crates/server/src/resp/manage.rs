//! The connection, and what programs ask of a server.

use std::fmt::Write;

use super::call::{Call, Outcome, SYNTAX};
use super::glob;
use super::protocol::integer;
use super::reply::Reply;
use super::table::{self, COMMANDS, Command};
use crate::Code;

/// The version of Redis whose commands these are.
const REDIS_VERSION: &str = "7.0.0";

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    match call.arguments.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.argument(1)),
        _ => return Err(call.wrong_count()),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Outcome {
    call.reply.bulk(call.argument(1));
    Ok(())
}

pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.state.is_closing = true;
    call.reply.ok();
    Ok(())
}

pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    call.state.forget();
    call.state.name.clear();
    call.state.database = 0;
    call.reply.is_third = false;
    call.reply.simple("RESET");
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    let wanted = integer(call.argument(1)).ok_or("ERR invalid DB index")?;
    let wanted = usize::try_from(wanted).ok().filter(|at| *at < call.state.buckets.len());
    call.state.database = wanted.ok_or("ERR DB index is out of range")?;
    call.reply.ok();
    Ok(())
}

/// Lets whoever shows a token in, to a database of the server, or its own.
fn let_in(call: &mut Call<'_>, database: &[u8], token: &[u8]) -> Outcome {
    let Some(admission) = call.state.admission() else {
        return Err("ERR there are no tokens here".into());
    };
    let (database, token) = (String::from_utf8_lossy(database), String::from_utf8_lossy(token));
    let database = Some(&*database).filter(|name| *name != "default");
    let admitted = admission.admit(Some(&token), database);
    let admitted = admitted.and_then(|admitted| {
        admitted.session.check_in()?;
        Ok(admitted)
    });
    match admitted {
        // The commands of an EXEC are of one transaction, and so of one database and its rights.
        Ok(admitted) if call.within.is_some() => {
            call.state.next_seat = Some(admitted);
            Ok(())
        }
        Ok(admitted) => {
            call.state.forget();
            call.state.seat(admitted);
            Ok(())
        }
        Err(e) if matches!(e.code(), Code::Unauthenticated | Code::Forbidden) => {
            Err("WRONGPASS invalid username-password pair or user is disabled.".into())
        }
        Err(e) => Err(e.into()),
    }
}

pub(super) fn auth(call: &mut Call<'_>) -> Outcome {
    match call.rest(1) {
        [token] => let_in(call, b"default", token)?,
        [database, token] => let_in(call, database, token)?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn hello(call: &mut Call<'_>) -> Outcome {
    let mut is_third = call.reply.is_third;
    if call.arguments.len() > 1 {
        let version = integer(call.argument(1));
        is_third = match version.ok_or("ERR Protocol version is not an integer or out of range")? {
            2 => false,
            3 => true,
            _ => return Err("NOPROTO unsupported protocol version".into()),
        };
    }
    let mut rest = call.rest(2);
    let mut name = None;
    while let Some(option) = rest.first() {
        rest = match (option.to_ascii_uppercase().as_slice(), rest) {
            (b"AUTH", [_, database, token, rest @ ..]) => {
                let_in(call, database, token)?;
                rest
            }
            (b"SETNAME", [_, new, rest @ ..]) => {
                expect_name(new)?;
                name = Some(new.to_vec());
                rest
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
            }
        };
    }
    if call.state.session.is_none() {
        return Err("NOAUTH HELLO must be called with the client already authenticated, \
                    otherwise the HELLO <proto> AUTH <user> <pass> option can be used to \
                    authenticate the client and select the RESP protocol version at the same time"
            .into());
    }
    if let Some(name) = name {
        call.state.name = name;
    }
    call.reply.is_third = is_third;
    let id = i64::try_from(call.state.id).unwrap_or(i64::MAX);
    let reply = &mut *call.reply;
    reply.map(7);
    let texts = [("server", "esker"), ("version", REDIS_VERSION)];
    for (name, text) in texts.into_iter().chain([("mode", "standalone"), ("role", "master")]) {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if is_third { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id);
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

fn expect_name(name: &[u8]) -> Outcome {
    const NAME_BYTES_MAX: usize = 1_024;
    if name.len() > NAME_BYTES_MAX || name.iter().any(|byte| !byte.is_ascii_graphic()) {
        let text = "ERR Client names cannot contain spaces, newlines or special characters.";
        return Err(text.into());
    }
    Ok(())
}

pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    let count = call.arguments.len();
    match (call.word(1).as_str(), count) {
        ("ID", 2) => call.reply.integer(i64::try_from(call.state.id).unwrap_or(i64::MAX)),
        ("GETNAME", 2) if call.state.name.is_empty() => call.reply.null(),
        ("GETNAME", 2) => call.reply.bulk(&call.state.name),
        ("SETNAME", 3) => {
            let name = call.argument(2);
            expect_name(name)?;
            call.state.name = name.to_vec();
            call.reply.ok();
        }
        ("SETINFO", 4) | ("NO-EVICT" | "NO-TOUCH", 3) => call.reply.ok(),
        (word, _) => {
            let text = format!("ERR unknown subcommand or wrong number of arguments for '{word}'");
            return Err(text.into());
        }
    }
    Ok(())
}

fn about(reply: &mut Reply, command: &Command) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity);
    reply.set(command.told_flags().count());
    command.told_flags().for_each(|flag| reply.simple(flag));
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    // Categories, hints, places of keys, subcommands.
    (0..4).for_each(|_| reply.array(0));
}

pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let word = call.word(1);
    match word.as_str() {
        "" => {
            call.reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| about(call.reply, command));
        }
        "COUNT" => call.reply.number(COMMANDS.len()),
        "LIST" => {
            let names: Vec<_> = COMMANDS.iter().map(|command| command.name).collect();
            call.reply.bulks(&names);
        }
        "INFO" => {
            let names = call.rest(2);
            call.reply.array(names.len());
            for name in names {
                match table::find(name) {
                    Some((_, command)) => about(call.reply, command),
                    None => call.reply.null_array(),
                }
            }
        }
        "DOCS" => documents(call),
        word => return Err(format!("ERR unknown subcommand '{word}'").into()),
    }
    Ok(())
}

fn documents(call: &mut Call<'_>) {
    let names = call.rest(2);
    let is_wanted = |command: &&Command| {
        names.is_empty()
            || names.iter().any(|name| name.eq_ignore_ascii_case(command.name.as_ref()))
    };
    let wanted: Vec<_> = COMMANDS.iter().filter(is_wanted).collect();
    call.reply.map(wanted.len());
    for command in wanted {
        call.reply.bulk(command.name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"summary");
        let (syntax, meaning) = (command.syntax, command.meaning);
        call.reply.bulk(format!("{syntax}: {meaning}").as_bytes());
        call.reply.bulk(b"group");
        call.reply.bulk(b"string");
    }
}

pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    if call.word(1) != "GET" || call.arguments.len() < 3 {
        let text = "ERR CONFIG: expected GET and a pattern; `esker config` tells all of the server";
        return Err(text.into());
    }
    let databases = call.state.buckets.len().to_string();
    let bytes = call.state.request_bytes_max.to_string();
    let known = [
        ("appendonly", "yes"),
        ("databases", databases.as_str()),
        ("proto-max-bulk-len", bytes.as_str()),
        ("save", ""),
    ];
    let patterns = call.rest(2);
    let is_wanted = |name: &str| {
        let is_match = |pattern: &[u8]| glob::is_match(pattern, name.as_bytes());
        patterns.iter().any(|pattern| is_match(&pattern.to_ascii_lowercase()))
    };
    let wanted: Vec<_> = known.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    call.reply.map(wanted.len());
    for (name, value) in wanted {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let wanted: Vec<_> = (1..call.arguments.len()).map(|position| call.word(position)).collect();
    let all = ["ALL", "DEFAULT", "EVERYTHING"];
    let is_wanted = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|word| word == name || all.contains(&word.as_str()))
    };
    let mut text = String::new();
    if is_wanted("SERVER") {
        let version = env!("CARGO_PKG_VERSION");
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
             esker_version:{version}\r\n\r\n"
        );
    }
    if is_wanted("CLIENTS") {
        let count = call.state.connections();
        let _ = write!(text, "# Clients\r\nconnected_clients:{count}\r\n\r\n");
    }
    if is_wanted("REPLICATION") {
        text.push_str("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
    }
    if is_wanted("KEYSPACE") {
        text.push_str("# Keyspace\r\n");
        for (number, name) in call.state.buckets.iter().enumerate() {
            // Tables, and what the token does not reach, are left out.
            let Ok(view) = call.view_of(name) else { continue };
            let count = view.len()?;
            if count == 0 {
                continue;
            }
            let _ = write!(text, "db{number}:keys={count},expires=0,avg_ttl=0\r\n");
        }
    }
    call.reply.bulk(text.as_bytes());
    Ok(())
}
