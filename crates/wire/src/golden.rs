//! The golden frames of `docs/reference/wire.md`, for the tests here and of both sides.

const REFERENCE: &str = include_str!("../../../docs/reference/wire.md");

/// A step of the conversation.
pub(crate) struct Step {
    /// What it shows.
    pub name: &'static str,
    /// What is sent and received, in order; true for what is sent. Greetings are among it.
    pub lines: Vec<(bool, Vec<u8>)>,
}

/// Every step, in order.
pub(crate) fn steps() -> Vec<Step> {
    let (_, rest) = REFERENCE.split_once("```frames\n").unwrap();
    let (conversation, _) = rest.split_once("```").unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for line in conversation.lines().filter(|line| !line.is_empty()) {
        let (mark, rest) = line.split_at(1);
        match mark {
            "#" => steps.push(Step { name: rest.trim(), lines: Vec::new() }),
            _ => steps.last_mut().unwrap().lines.push((mark == ">", bytes(rest))),
        }
    }
    steps
}

fn bytes(digits: &str) -> Vec<u8> {
    digits.split_whitespace().map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Bytes as the reference writes them.
pub(crate) fn digits(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}
