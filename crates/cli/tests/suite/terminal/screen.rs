//! What a terminal shows of what is written to it: the part of ECMA-48 that line editors use.

/// Lines, of which the last ones are on the screen.
pub struct Screen {
    lines: Vec<Vec<char>>,
    /// The first line on the screen.
    top: usize,
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
    saved: (usize, usize),
    /// Bytes of a sequence or a character that is not whole yet.
    rest: Vec<u8>,
    /// What the terminal answers to questions.
    reports: String,
}

impl Screen {
    pub fn new(rows: usize, columns: usize) -> Self {
        let lines = vec![Vec::new()];
        let (rest, reports, saved) = (Vec::new(), String::new(), (0, 0));
        Self { lines, top: 0, rows, columns, row: 0, column: 0, saved, rest, reports }
    }

    pub fn take_reports(&mut self) -> String {
        std::mem::take(&mut self.reports)
    }

    pub fn cursor_line(&self) -> String {
        let line = self.lines.get(self.top + self.row);
        line.map(|line| trimmed(line)).unwrap_or_default()
    }

    /// All lines, those that have left the screen included.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| trimmed(line) + "\n").collect()
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let mut at = 0;
        while at < bytes.len() {
            match self.step(&bytes[at..]) {
                Some(taken) => at += taken,
                None => break,
            }
        }
        self.rest = bytes[at..].to_vec();
    }

    /// Takes one character or sequence: its bytes; none when it is not whole.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes[0] {
            b'\x1b' => return self.escape(bytes),
            b'\r' => self.column = 0,
            b'\n' => self.next_line(),
            8 => self.column = self.column.saturating_sub(1),
            0..=31 => {}
            first => {
                let length = match first {
                    0..0x80 => 1,
                    0x80..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                let text = std::str::from_utf8(bytes.get(..length)?).unwrap_or("?");
                self.put(text.chars().next().unwrap_or('?'));
                return Some(length);
            }
        }
        Some(1)
    }

    fn escape(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes.get(1)? {
            b'[' => {
                let end = bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte))? + 2;
                let parameters = String::from_utf8_lossy(&bytes[2..end]).into_owned();
                self.control(bytes[end], &parameters);
                Some(end + 1)
            }
            b']' => {
                let end = bytes.iter().position(|byte| *byte == 7);
                let other = bytes.windows(2).position(|two| two == b"\x1b\\").map(|at| at + 1);
                Some(end.or(other)? + 1)
            }
            b'7' => {
                self.saved = (self.row, self.column);
                Some(2)
            }
            b'8' => {
                (self.row, self.column) = self.saved;
                Some(2)
            }
            b'(' | b')' => bytes.get(2).map(|_| 3),
            _ => Some(2),
        }
    }

    fn control(&mut self, command: u8, parameters: &str) {
        let mut numbers = parameters.split(';').map(|text| text.parse::<usize>().unwrap_or(0));
        let first = numbers.next().unwrap_or(0);
        let count = first.max(1);
        match command {
            b'A' => self.row = self.row.saturating_sub(count),
            b'B' => self.row = (self.row + count).min(self.rows - 1),
            b'C' => self.column = (self.column + count).min(self.columns - 1),
            b'D' => self.column = self.column.saturating_sub(count),
            b'E' => (self.row, self.column) = ((self.row + count).min(self.rows - 1), 0),
            b'F' => (self.row, self.column) = (self.row.saturating_sub(count), 0),
            b'G' => self.column = count - 1,
            b'd' => self.row = (count - 1).min(self.rows - 1),
            b'H' | b'f' => {
                let column = numbers.next().unwrap_or(0).max(1);
                (self.row, self.column) = ((count - 1).min(self.rows - 1), column - 1);
            }
            b'J' => self.clear(first),
            b'K' => {
                let column = self.column;
                let line = self.line();
                match first {
                    0 => line.truncate(column),
                    1 => line.iter_mut().take(column + 1).for_each(|c| *c = ' '),
                    _ => line.clear(),
                }
            }
            b'S' => {
                self.top += count;
                self.line();
            }
            b'n' if first == 6 => {
                let (row, column) = (self.row + 1, self.column + 1);
                self.reports.push_str(&format!("\x1b[{row};{column}R"));
            }
            _ => {}
        }
    }

    fn clear(&mut self, what: usize) {
        let (at, column) = (self.top + self.row, self.column);
        self.line().truncate(column);
        match what {
            0 => self.lines.truncate(at + 1),
            _ => {
                self.lines.truncate(self.top);
                self.line();
            }
        }
    }

    /// The line with the cursor.
    fn line(&mut self) -> &mut Vec<char> {
        let at = self.top + self.row;
        if self.lines.len() <= at {
            self.lines.resize(at + 1, Vec::new());
        }
        &mut self.lines[at]
    }

    fn next_line(&mut self) {
        match self.row + 1 < self.rows {
            true => self.row += 1,
            false => self.top += 1,
        }
        self.line();
    }

    fn put(&mut self, c: char) {
        if self.column >= self.columns {
            self.column = 0;
            self.next_line();
        }
        let column = self.column;
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = c;
        self.column += 1;
    }
}

fn trimmed(line: &[char]) -> String {
    line.iter().collect::<String>().trim_end().to_owned()
}
