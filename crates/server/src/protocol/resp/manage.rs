//! The connection: who it is of, its form and its database.

use super::call::{Call, NOT_AN_INTEGER, Outcome, SYNTAX};
use super::client::expect_name;
use super::protocol::integer;
use crate::Code;

/// The version of Redis whose commands these are.
pub(super) const REDIS_VERSION: &str = "7.0.0";

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    if call.state.subscriptions.is_some() && !call.reply.is_third && call.arguments.len() < 3 {
        call.reply.array(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(call.argument(1));
        return Ok(());
    }
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
    call.state.subscriptions = None;
    call.state.name.clear();
    call.state.database = 0;
    call.reply.is_third = false;
    call.reply.simple("RESET");
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    let wanted = integer(call.argument(1)).ok_or(NOT_AN_INTEGER)?;
    let wanted = i32::try_from(wanted).map_err(|_| {
        let (least, most) = (i32::MIN, i32::MAX);
        format!("ERR value is out of range, value must between {least} and {most}")
    })?;
    let wanted = usize::try_from(wanted).ok().filter(|at| *at < call.state.buckets.len());
    call.state.database = wanted.ok_or("ERR DB index is out of range")?;
    call.reply.ok();
    Ok(())
}

/// Lets a client with a token in, to a database of the server, or its own.
fn let_in(call: &mut Call<'_>, database: &[u8], token: &[u8]) -> Outcome {
    let Some(authenticator) = call.state.authenticator() else {
        return Err("ERR there are no tokens here".into());
    };
    let (database, token) = (String::from_utf8_lossy(database), String::from_utf8_lossy(token));
    let database = Some(&*database).filter(|name| *name != "default");
    let admitted = authenticator.admit(Some(&token), database);
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
            call.state.active_session(admitted);
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

/// A command that does nothing without a subcommand.
pub(super) fn no_subcommand(call: &mut Call<'_>) -> Outcome {
    Err(call.wrong_count())
}
