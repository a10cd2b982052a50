//! The conversations in `docs/reference/wire.md` and `docs/guide/server.md`, with a server.

use std::io::{BufRead, BufReader, Read, Write};

use super::golden_frames::{digits, steps};
use super::tests::Running;
use crate::Code;

const REFERENCE: &str = include_str!("../../../../../docs/reference/wire.md");

const GUIDE: &str = include_str!("../../../../../docs/guide/server.md");

#[test]
fn the_lines_of_the_guide_are_answered_as_it_says() {
    let server = Running::empty();
    let stream = server.connect();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let (_, rest) = GUIDE.split_once("```lines\n").unwrap();
    let (conversation, _) = rest.split_once("```").unwrap();
    for line in conversation.lines() {
        if let Some(request) = line.strip_prefix("→ ") {
            (&stream).write_all(format!("{request}\n").as_bytes()).unwrap();
        } else if let Some(expected) = line.strip_prefix("← ") {
            let mut found = String::new();
            answers.read_line(&mut found).unwrap();
            assert_eq!(found.trim_end(), expected);
        }
    }
}

/// The next frame, or the greeting.
fn receive(stream: &mut impl Read, is_greeting: bool) -> Vec<u8> {
    let mut found = vec![0; 4];
    stream.read_exact(&mut found).unwrap();
    let length = match is_greeting {
        true => 2,
        false => u32::from_le_bytes(found.as_slice().try_into().unwrap()) as usize,
    };
    found.resize(4 + length, 0);
    stream.read_exact(&mut found[4..]).unwrap();
    found
}

#[test]
fn the_frames_of_the_reference_are_those_of_the_server() {
    let server = Running::empty();
    let mut stream = server.connect();
    let (mut is_greeting, mut others) = (true, Vec::new());
    for step in steps() {
        for (is_sent, bytes) in &step.lines {
            if *is_sent {
                stream.write_all(bytes).unwrap();
                continue;
            }
            let found = receive(&mut stream, std::mem::take(&mut is_greeting));
            if found != *bytes {
                others.push(format!("{}\n< {}", step.name, digits(&found)));
            }
        }
    }
    assert!(others.is_empty(), "the server answers otherwise:\n{}", others.join("\n"));
}

#[test]
fn the_reference_lists_every_code() {
    for code in Code::ALL {
        let row = format!("| `{}` |", code.as_str());
        assert!(REFERENCE.contains(&row), "{row}");
    }
}

#[test]
fn the_reference_lists_every_kind() {
    for kind in esker_wire::Kind::ALL {
        let row = format!("| {:02x} | {kind:?} |", kind.code());
        assert!(REFERENCE.contains(&row), "{row}");
    }
}
