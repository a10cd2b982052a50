//! A place in a text, shown underlined.

use std::fmt;

/// The most characters of a line that are shown.
const SHOWN_CHARS: usize = 76;
/// How many of them stand before the place in a long line.
const BEFORE_CHARS: usize = 30;

/// A line of a text with a part of it marked.
///
/// ```
/// use esker_format::Excerpt;
///
/// let excerpt = Excerpt::of(b"SELECT nme\nFROM people", 7, 3);
/// assert_eq!((excerpt.line(), excerpt.column()), (1, 8));
/// assert_eq!(excerpt.to_string(), "SELECT nme\n       ^^^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    line: usize,
    column: usize,
    /// The part of the line that is shown, without control characters.
    shown: String,
    /// Where the marks stand in it, in characters.
    start: usize,
    marks: usize,
}

impl Excerpt {
    /// The line of `text` on which `position` stands, with `length` bytes from there on marked, as
    /// far as they are on that line; one character at least.
    #[must_use]
    pub fn of(text: &[u8], position: usize, length: usize) -> Self {
        let position = position.min(text.len());
        let (before, after) = text.split_at(position);
        // default: the first line starts where the text does.
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        // default: the last line ends where the text does.
        let line_end = after.iter().position(|b| *b == b'\n').unwrap_or(after.len());
        let ((_, head), (rest, _)) = (before.split_at(line_start), after.split_at(line_end));
        let (marked, _) = rest.split_at(line_end.min(length));
        let (head, rest) = (String::from_utf8_lossy(head), String::from_utf8_lossy(rest));
        let marks = String::from_utf8_lossy(marked).trim_end().chars().count().max(1);
        let column = head.chars().count() + 1;
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let all = head.chars().chain(rest.trim_end().chars()).map(visible);
        let skipped =
            if column + marks <= SHOWN_CHARS { 0 } else { column.saturating_sub(BEFORE_CHARS) };
        let mut shown: String = if skipped > 0 { "…".into() } else { String::new() };
        let start = column - 1 - skipped + shown.chars().count();
        let mut all = all.skip(skipped);
        shown.extend(all.by_ref().take(SHOWN_CHARS));
        if all.next().is_some() {
            shown.push('…');
        }
        let marks = marks.min(SHOWN_CHARS - start.min(SHOWN_CHARS - 1));
        Self { line: before.split(|b| *b == b'\n').count(), column, shown, start, marks }
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The character of the line at which the marks start, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shown)?;
        write!(f, "{:start$}{}", "", "^".repeat(self.marks), start = self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line = format!("{}oops{}", "a".repeat(200), "b".repeat(200));
        let text = format!("first\n{line}\nlast");
        let excerpt = Excerpt::of(text.as_bytes(), 206, 4);
        assert_eq!((excerpt.line(), excerpt.column()), (2, 201));
        let shown = excerpt.to_string();
        let (line, marks) = shown.split_once('\n').unwrap();
        assert!(line.starts_with("…aaa") && line.ends_with("bbb…"), "{line}");
        let column = marks.find('^').unwrap();
        assert_eq!(line.chars().skip(column).take(4).collect::<String>(), "oops");
        assert_eq!(marks.trim_start(), "^^^^");
    }

    #[test]
    fn any_place_can_be_shown() {
        let text = "a\tb\u{e9}\r\n\n\u{1f600}x";
        for position in 0..text.len() + 3 {
            for length in 0..5 {
                let shown = Excerpt::of(text.as_bytes(), position, length).to_string();
                assert!(shown.ends_with('^') && shown.lines().count() == 2, "{shown}");
            }
        }
        assert_eq!(Excerpt::of(b"a\tb", 2, 1).to_string(), "a b\n  ^");
        assert_eq!(Excerpt::of(b"ab\n", 2, 9).to_string(), "ab\n  ^");
    }
}
