//! COMMAND, and the HELP of commands with subcommands: the table, as answers.

use super::call::{Call, Outcome, SYNTAX};
use super::glob;
use super::reply::Reply;
use super::table::{self, COMMANDS, Command};

/// Commands and subcommands.
fn every() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().flat_map(Command::with_subcommands)
}

/// COMMAND.
pub(super) fn all(call: &mut Call<'_>) -> Outcome {
    call.reply.array(COMMANDS.len());
    COMMANDS.iter().for_each(|command| about(call.reply, command));
    Ok(())
}

/// COMMAND INFO.
pub(super) fn some(call: &mut Call<'_>) -> Outcome {
    let names = call.rest(2);
    if names.is_empty() {
        return all(call);
    }
    call.reply.array(names.len());
    for name in names {
        match table::named(name) {
            Some(command) => about(call.reply, command),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn about(reply: &mut Reply, command: &Command) {
    let words = |reply: &mut Reply, words: &[String]| {
        reply.set(words.len());
        words.iter().for_each(|word| reply.simple(word));
    };
    let flags: Vec<_> = command.told_flags().map(str::to_owned).collect();
    let categories: Vec<_> = command.categories().iter().map(|name| format!("@{name}")).collect();
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity);
    words(reply, &flags);
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    words(reply, &categories);
    // Hints, and places of keys beyond those three numbers.
    reply.set(0);
    reply.set(0);
    reply.array(command.subcommands.len());
    command.subcommands.iter().for_each(|subcommand| about(reply, subcommand));
}

pub(super) fn count(call: &mut Call<'_>) -> Outcome {
    call.reply.number(COMMANDS.len());
    Ok(())
}

/// COMMAND LIST.
pub(super) fn list(call: &mut Call<'_>) -> Outcome {
    let names: Vec<_> = match (call.word(2).as_str(), call.word(3).as_str(), call.rest(2)) {
        (_, _, []) => every().map(|command| command.name).collect(),
        ("FILTERBY", filter, [_, _, wanted]) => {
            let wanted = wanted.to_ascii_lowercase();
            let is_wanted = |command: &&Command| match filter {
                "ACLCAT" => command.categories().iter().any(|name| name.as_bytes() == wanted),
                "PATTERN" => glob::is_match(&wanted, command.name.as_bytes()),
                _ => false,
            };
            if !matches!(filter, "ACLCAT" | "MODULE" | "PATTERN") {
                return Err(SYNTAX.into());
            }
            every().filter(is_wanted).map(|command| command.name).collect()
        }
        _ => return Err(SYNTAX.into()),
    };
    call.reply.bulks(&names);
    Ok(())
}

/// COMMAND GETKEYS.
pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let arguments = call.rest(2).to_vec();
    let (_, command) = table::asked(&arguments).ok_or("ERR Invalid command specified")?;
    let (first, last, step) = command.keys;
    let (Ok(first), Ok(step)) = (usize::try_from(first), usize::try_from(step)) else {
        return Err(SYNTAX.into());
    };
    if step == 0 {
        return Err("ERR The command has no key arguments".into());
    }
    if !command.takes(arguments.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    // Up to the last argument where there may be more.
    let last = usize::try_from(last).unwrap_or(arguments.len() - 1);
    let keys: Vec<_> = arguments.iter().take(last + 1).skip(first).step_by(step).collect();
    call.reply.bulks(&keys);
    Ok(())
}

/// COMMAND DOCS.
pub(super) fn documents(call: &mut Call<'_>) -> Outcome {
    let names = call.rest(2);
    let wanted: Vec<_> = match names {
        [] => COMMANDS.iter().collect(),
        names => names.iter().filter_map(|name| table::named(name)).collect(),
    };
    call.reply.map(wanted.len());
    wanted.into_iter().for_each(|command| document(call.reply, command));
    Ok(())
}

fn document(reply: &mut Reply, command: &Command) {
    let (syntax, meaning) = (command.syntax, command.meaning);
    let summary = format!("{syntax}: {meaning}");
    reply.bulk(command.name.as_bytes());
    reply.map(if command.subcommands.is_empty() { 2 } else { 3 });
    for (name, text) in [("summary", summary.as_str()), ("group", command.group.name())] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.trim_start_matches(": ").as_bytes());
    }
    if !command.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(command.subcommands.len());
        command.subcommands.iter().for_each(|subcommand| document(reply, subcommand));
    }
}

/// HELP, of any command with subcommands.
pub(super) fn help(call: &mut Call<'_>) -> Outcome {
    let found = table::find(call.argument(0));
    let subcommands = found.map_or(&[][..], |(_, command)| command.subcommands);
    call.reply.array(1 + 2 * subcommands.len());
    let name = call.word(0);
    call.reply.simple(&format!("{name} <subcommand> [argument ...]. Subcommands are:"));
    for subcommand in subcommands {
        let (name, syntax) = (subcommand.last_name().to_uppercase(), subcommand.syntax);
        call.reply.simple(format!("{name} {syntax}").trim_end());
        call.reply.simple(&format!("    {}", subcommand.meaning));
    }
    Ok(())
}
