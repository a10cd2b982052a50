//! `GET`s that have come together: their bucket is looked up once, and each value goes from where
//! it lies into the answer.

use esker::ScopedBucketReader;
use tokio::time::Instant;

use super::call::Failure;
use super::protocol::Parser;
use super::state::State;
use super::strings::tell_value;
use super::table;
use crate::session::Level;

/// Larger values are sent with a share of the common budget.
const VALUE_BYTES_MAX: usize = 4 << 10;

impl State {
    /// Answers the `GET`s at the start of the input. Returns how many of its bytes they are: 0 when
    /// the first is to be answered as other commands are.
    pub fn read_together(&mut self, input: &[u8]) -> usize {
        let found = table::find(b"get");
        let Some((position, _)) = found else { return 0 };
        // What is queued, or behind writes that are not on the disk, is read in another way.
        if self.queue.is_some() || !self.pending.is_empty() {
            return 0;
        }
        let end = self.read_from(position, input);
        self.note_pending();
        end
    }

    fn read_from(&mut self, position: usize, input: &[u8]) -> usize {
        let Some(session) = &self.session else { return 0 };
        let Ok(bucket) = session.own_bucket(Level::Read, self.bucket_name()) else { return 0 };
        let reader = ScopedBucketReader::Bucket(&bucket);
        let most = usize::try_from(session.result_bytes_max()).unwrap_or(usize::MAX);
        let most = most.min(VALUE_BYTES_MAX);
        let mut parser = Parser::default();
        let (mut end, mut since) = (0, Instant::now());
        while !self.is_full() {
            let rest = input.get(end..).unwrap_or_default();
            let Ok(Some((arguments, length))) = parser.next(rest, self.request_bytes_max) else {
                break;
            };
            let [name, key] = arguments.as_slice() else { break };
            if !name.eq_ignore_ascii_case(b"get") {
                break;
            }
            let (start, reply) = (self.reply.out.len(), &mut self.reply);
            let expect_small = |value: &[u8]| match value.len() <= most {
                true => Ok(()),
                false => Err(Failure::from("a large value")),
            };
            if tell_value(Some(&reader), key, reply, expect_small).is_err() {
                break;
            }
            // It was not answered yet: a client without the right gets its error behind the others.
            if self.session.as_ref().is_none_or(|session| session.check_in().is_err()) {
                self.reply.out.truncate(start);
                break;
            }
            let now = Instant::now();
            let took = now.saturating_duration_since(since).as_nanos();
            self.count((position, &arguments), None, u64::try_from(took).unwrap_or(u64::MAX));
            (end, since) = (end + length, now);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    #[test]
    fn answers_are_those_of_commands_one_by_one() {
        let database = esker::Options::new().memory().unwrap();
        let alone = || State::alone(Session::new(&database));
        let large = format!("SET large {}\r\n", "x".repeat(VALUE_BYTES_MAX + 1));
        let most = format!("SET most {}\r\n", "x".repeat(VALUE_BYTES_MAX));
        let commands = ["GET a", "SET a 1", "SET b 2"].map(|text| format!("{text}\r\n"));
        let made = alone().answer_all([&commands.concat()[..], &large, &most].concat().as_bytes());
        assert_eq!(made, b"$-1\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
        let commands = [
            "GET a",
            "get no",
            "GET large",
            "GeT most",
            "GET a b",
            "GET",
            "GET b",
            "MULTI",
            "GET a",
            "GET b",
            "SET a 3",
            "EXEC",
            "GET a",
            "GET b",
            "SET b 4",
            "GET b",
            "GET b",
            "SELECT 1",
            "GET a",
            "GET b",
            "SELECT 0",
            "GET b",
            "DEL b",
            "GET b",
            "GET a",
            "PING",
        ];
        let commands = commands.map(|text| format!("{text}\r\n"));
        let together = alone().answer_all(commands.concat().as_bytes());
        alone().answer_all(b"SET a 1\r\nSET b 2\r\n");
        let mut state = alone();
        let apart: Vec<u8> =
            commands.iter().flat_map(|command| state.answer_all(command.as_bytes())).collect();
        assert_eq!(String::from_utf8_lossy(&together), String::from_utf8_lossy(&apart));
        assert!(together.ends_with(b"$-1\r\n$1\r\n3\r\n+PONG\r\n"));
    }

    #[test]
    fn the_first_of_several_reads_only_those_like_it() {
        let database = esker::Options::new().memory().unwrap();
        let mut state = State::alone(Session::new(&database));
        state.answer_all(b"SET a 1\r\n");
        let input = b"GET a\r\nGET b\r\nSTRLEN a\r\n";
        assert_eq!(state.read_together(input), b"GET a\r\nGET b\r\n".len());
        assert_eq!(state.reply.out, b"$1\r\n1\r\n$-1\r\n");
    }
}
