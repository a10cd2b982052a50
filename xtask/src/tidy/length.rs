//! Files of at most 700 lines, functions of at most 70, lines of at most 100 columns.

use super::{Project, Source, Violation};

/// The most lines of a source file.
pub const FILE_LINES_MAX: usize = 700;
/// The most lines of a function, signature and closing brace included.
pub const FUNCTION_LINES_MAX: usize = 70;
/// The most columns of a line.
pub const LINE_COLUMNS_MAX: usize = 100;

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// From there to its closing brace, both included.
    pub lines: usize,
}

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    project.sources().flat_map(|source| check_source(&source)).collect()
}

fn check_source(source: &Source<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let message = format!("file has {lines} lines, expected at most {FILE_LINES_MAX}");
        found.push(Violation::new(source.path, 0, message));
    }
    for (number, line) in (1..).zip(source.text.lines()) {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            let message =
                format!("line has {columns} columns, expected at most {LINE_COLUMNS_MAX}");
            found.push(Violation::new(source.path, number, message));
        }
    }
    for function in functions(source) {
        let Function { name, line, lines } = function;
        if lines > FUNCTION_LINES_MAX {
            let message = format!(
                "function `{name}` has {lines} lines, expected at most {FUNCTION_LINES_MAX}"
            );
            found.push(Violation::new(source.path, line, message));
        }
    }
    found
}

/// Every function with a body, nested ones too. Closures and function pointers are not functions.
#[must_use]
pub fn functions(source: &Source<'_>) -> Vec<Function> {
    functions_in(&source.code())
}

/// The same of tokens without comments.
#[must_use]
pub fn functions_in(code: &[super::lexer::Token<'_>]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate().filter(|(_, token)| token.is("fn")) {
        let mut rest = code.iter().skip(at + 1);
        // After `fn` comes a name, in a macro perhaps `$name`; in the type of a pointer, a bracket.
        let name = match rest.next() {
            Some(name) if name.is_word() => name.text,
            Some(dollar) if dollar.is("$") => rest.next().map_or("", |name| name.text),
            _ => continue,
        };
        if let Some(last) = last_line(rest) {
            let lines = last - token.line + 1;
            found.push(Function { name: name.to_owned(), line: token.line, lines });
        }
    }
    found
}

/// The line of the brace that closes the body; none when a semicolon stands where a body would.
fn last_line<'a>(rest: impl Iterator<Item = &'a super::lexer::Token<'a>>) -> Option<usize> {
    let (mut brackets, mut braces, mut before) = (0isize, 0isize, "");
    for token in rest {
        match token.text {
            _ if !token.is(token.text) => {}
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            ";" if brackets == 0 && braces == 0 => return None,
            // `Name<{ N }>` in a signature is a constant, not the body.
            "{" if braces == 0 && (brackets > 0 || before == "<") => brackets += 1,
            "}" if braces == 0 => brackets -= 1,
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if braces == 0 {
                    return Some(token.line);
                }
            }
            _ => {}
        }
        before = token.text;
    }
    None
}
