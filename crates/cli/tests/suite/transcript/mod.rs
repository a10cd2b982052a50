//! Pages with commands, and what they show.

/// The blocks of a page in their order, with the word behind their first backticks.
#[allow(dead_code, reason = "each test uses a part")]
pub fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').unwrap()).collect()
}

/// The commands of a page with what they show. Commands begin with `$ `, and go on behind `> `.
pub fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => found.push((command.to_owned(), String::new())),
                None if line.starts_with("> ") => {
                    let (command, shown) = found.last_mut().unwrap();
                    assert!(shown.is_empty(), "{line}");
                    command.push('\n');
                    command.push_str(line.strip_prefix("> ").unwrap());
                }
                None => {
                    let shown = &mut found.last_mut().unwrap().1;
                    shown.push_str(line);
                    shown.push('\n');
                }
            },
        }
    }
    assert!(!inside && !found.is_empty());
    found
}

/// Whether a text is a pattern in which `…` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
