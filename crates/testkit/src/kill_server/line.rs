//! What clients do: numbered operations, whose content follows from seed, client and number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use esker_vfs::sim::Generator;

use super::ending_keys::Expected;
use super::families::MEMBERS;
use super::stream_clients::{PRODUCED, StreamState, event_count};

/// Accounts that money goes between.
pub(super) const ACCOUNTS: i64 = 16;
/// What each of them has at first.
pub(super) const BALANCE: i64 = 1_000;
/// Rows of a load with an idempotency key.
const EVENT_ROWS: u64 = 10;

/// What a client does, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A row, by the wire protocol, and its answer.
    Rows,
    /// Rows, eight requests at a time.
    PipelinedRows,
    /// A load of MessagePack, of CSV and of NDJSON, by the wire protocol, in turn.
    WireLoads,
    /// A body of NDJSON and of CSV by HTTP, in turn.
    HttpLoads,
    /// A transaction of two updates and two rows by the wire protocol.
    WireTransfers,
    /// The same by HTTP.
    HttpTransfers,
    /// An entry of a bucket by the wire protocol.
    WireEntries,
    /// The same by HTTP: raw bytes.
    HttpEntries,
    /// Redis's INCR, eight commands at a time.
    Increments,
    /// Two times INCR and a SET between MULTI and EXEC.
    RedisTransactions,
    /// A number that two clients raise by WATCH, GET and EXEC, each with a mark of its own.
    WatchedCounts,
    /// Keys that end, that no longer end, and that have ended when an EXEC changes them.
    EndingKeys,
    /// An update with an idempotency key by HTTP.
    OnceUpdates,
    /// A body of NDJSON with one, to a table that takes equal rows.
    OnceLoads,
    /// An update with one by the wire protocol.
    WireOnceUpdates,
    /// Rows that refer to rows, some of which go with them.
    Families,
    /// Events of a stream, one or twenty, durable when they are answered.
    Events,
    /// The same, answered before.
    LaterEvents,
    /// Events of a producer.
    ProducedEvents,
    /// A reader that follows all of them.
    FollowedEvents,
}

impl Kind {
    /// What clients do, each of them one. Those that wait for the end of keys do so side by side.
    pub const ALL: [Self; 27] = [
        Self::Rows,
        Self::PipelinedRows,
        Self::WireLoads,
        Self::HttpLoads,
        Self::WireTransfers,
        Self::HttpTransfers,
        Self::WireEntries,
        Self::HttpEntries,
        Self::Increments,
        Self::RedisTransactions,
        Self::WatchedCounts,
        Self::WatchedCounts,
        Self::EndingKeys,
        Self::EndingKeys,
        Self::EndingKeys,
        Self::EndingKeys,
        Self::EndingKeys,
        Self::EndingKeys,
        Self::OnceUpdates,
        Self::OnceLoads,
        Self::WireOnceUpdates,
        Self::Families,
        Self::Families,
        Self::Events,
        Self::LaterEvents,
        Self::ProducedEvents,
        Self::FollowedEvents,
    ];

    /// Clients of streams, where there are no others.
    pub const OF_STREAMS: [Self; 10] = [
        Self::Events,
        Self::Events,
        Self::Events,
        Self::Events,
        Self::LaterEvents,
        Self::LaterEvents,
        Self::ProducedEvents,
        Self::ProducedEvents,
        Self::FollowedEvents,
        Self::FollowedEvents,
    ];

    /// As it is called where operations are counted.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows | Self::PipelinedRows => "rows",
            Self::WireLoads | Self::HttpLoads => "loads",
            Self::WireTransfers | Self::HttpTransfers => "transfers",
            Self::WireEntries | Self::HttpEntries => "entries",
            Self::Increments => "increments",
            Self::RedisTransactions => "redis transactions",
            Self::WatchedCounts => "watched transactions",
            Self::EndingKeys => "keys that end",
            Self::OnceUpdates | Self::OnceLoads | Self::WireOnceUpdates => "writes with a key",
            Self::Families => "families",
            Self::Events => "requests of events",
            Self::LaterEvents => "requests of events, answered before they are durable",
            Self::ProducedEvents => "requests of producers",
            Self::FollowedEvents => "events told by tails",
        }
    }

    /// What operation `n` leaves in the database: all of it, or nothing.
    pub fn effects(self, n: i64) -> Vec<(Part, u64)> {
        match self {
            Self::Rows | Self::PipelinedRows => vec![(Part::Row, 1)],
            Self::WireLoads | Self::HttpLoads => vec![(Part::LoadedRow, load_rows(n))],
            Self::WireTransfers | Self::HttpTransfers => vec![(Part::Debit, 1), (Part::Credit, 1)],
            Self::WireEntries | Self::HttpEntries => vec![(Part::Entry, 1)],
            Self::Increments => vec![(Part::Increment, 1)],
            Self::RedisTransactions => vec![(Part::Left, 1), (Part::Right, 1), (Part::Text, 1)],
            Self::WatchedCounts => vec![(Part::Mark, 1)],
            Self::EndingKeys => vec![(Part::Ending, 1)],
            Self::OnceUpdates | Self::WireOnceUpdates => vec![(Part::Update, 1)],
            Self::OnceLoads => vec![(Part::Event, EVENT_ROWS)],
            Self::Families => vec![(Part::Family, 1), (Part::Member, MEMBERS)],
            Self::Events | Self::LaterEvents => vec![(Part::Noted, event_count(n))],
            Self::ProducedEvents => vec![(Part::Noted, PRODUCED)],
            Self::FollowedEvents => Vec::new(),
        }
    }

    /// Whether what was not answered is sent again with the same key.
    pub fn is_once(self) -> bool {
        matches!(
            self,
            Self::OnceUpdates | Self::OnceLoads | Self::WireOnceUpdates | Self::ProducedEvents
        )
    }
}

/// What is found in the database of an operation. Of a counter at `v`, those below `v` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Row,
    LoadedRow,
    Debit,
    Credit,
    Entry,
    Increment,
    Left,
    Right,
    Text,
    Mark,
    Ending,
    Update,
    Event,
    Family,
    Member,
    Noted,
}

/// A client, over all lives of a server.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub kind: Kind,
    pub client: i64,
    /// Operations below this one were sent.
    pub sent: i64,
    /// Operations below this one were answered.
    pub answered: i64,
    /// What has to become of the keys of its operations.
    pub keys: BTreeMap<i64, Expected>,
    /// What a client of a stream remembers.
    pub stream: StreamState,
    pub counts: Counts,
}

/// What has happened to a client since it was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub answered: u64,
    /// Operations that were sent again with the same key, after the server had died.
    pub retried: u64,
    /// Keys that were refused with another body.
    pub refused: u64,
    /// Transactions that another client was quicker than.
    pub conflicts: u64,
    /// EXECs that answered null.
    pub nulls: u64,
    /// Keys that had to be there, and were, after a kill.
    pub there: u64,
    /// Keys that had to be gone, and were, after a kill.
    pub gone: u64,
}

impl Line {
    /// One for each in [`Kind::ALL`].
    pub fn all() -> Vec<Self> {
        Self::of(&Kind::ALL)
    }

    /// One for each in [`Kind::OF_STREAMS`].
    pub fn of_streams() -> Vec<Self> {
        Self::of(&Kind::OF_STREAMS)
    }

    fn of(kinds: &[Kind]) -> Vec<Self> {
        let line = |(client, kind): (i64, &Kind)| Self {
            kind: *kind,
            client,
            sent: 0,
            answered: 0,
            keys: BTreeMap::new(),
            stream: StreamState::default(),
            counts: Counts::default(),
        };
        (0..).zip(kinds).map(line).collect()
    }

    /// The next operation, which is about to be sent.
    pub fn begin(&mut self) -> i64 {
        let n = self.sent;
        self.sent += 1;
        n
    }

    /// Operations below this one have to be there: those that were answered, unless that was before
    /// they were durable.
    pub fn owed(&self) -> i64 {
        match self.kind {
            Kind::LaterEvents => self.stream.owed(self.answered),
            _ => self.answered,
        }
    }

    /// The first operation that was not answered is.
    pub fn answer(&mut self) {
        self.answered += 1;
        self.counts.answered += 1;
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { client, kind, sent, answered, .. } = self;
        write!(f, "client {client} ({kind:?}), {answered} of {sent} answered")
    }
}

/// How many rows load `n` has. Some are larger than an open group.
pub(super) fn load_rows(n: i64) -> u64 {
    if n % 8 == 7 { 700 } else { 60 }
}

fn generator(seed: u64, client: i64, n: i64) -> Generator {
    Generator::new(seed ^ client.unsigned_abs(), n.unsigned_abs())
}

/// A text of up to 200 characters.
pub(super) fn text(seed: u64, client: i64, n: i64) -> String {
    let mut generator = generator(seed, client, n);
    let mut text = format!("{client} {n}");
    for _ in 0..generator.below(12) {
        let _ = write!(text, " {:x}", generator.next_u64());
    }
    text
}

/// The value of an entry: bytes, some of them longer than a row may be.
pub(super) fn value(seed: u64, client: i64, n: i64) -> Vec<u8> {
    let mut generator = generator(seed, client, n);
    let most = if n % 32 == 31 { 70_000 } else { 300 };
    let mut bytes = vec![0; usize::try_from(generator.below(most)).unwrap_or_default()];
    generator.fill(&mut bytes);
    bytes
}

/// Money that goes from one account to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub from: i64,
    pub to: i64,
    pub amount: i64,
}

/// What transfer `n` of a client moves.
pub(super) fn transfer(seed: u64, client: i64, n: i64) -> Transfer {
    let mut generator = generator(seed, client, n);
    let mut below =
        |bound: i64| i64::try_from(generator.below(bound.unsigned_abs())).unwrap_or_default();
    let (from, step, amount) = (below(ACCOUNTS), 1 + below(ACCOUNTS - 1), 1 + below(100));
    Transfer { from, to: (from + step) % ACCOUNTS, amount }
}

/// The rows of a body with an idempotency key, as NDJSON.
pub(super) fn events(client: i64, n: i64) -> String {
    let row = |part| format!("{{\"client\":{client},\"n\":{n},\"part\":{part}}}\n");
    (0..EVENT_ROWS).map(row).collect()
}

/// The rows of load `n` of a client, as CSV or as NDJSON.
pub(super) fn load_text(is_csv: bool, client: i64, n: i64) -> String {
    let mut text = String::new();
    if is_csv {
        text += "client,n,part\n";
    }
    for part in 0..load_rows(n) {
        let _ = match is_csv {
            true => writeln!(text, "{client},{n},{part}"),
            false => writeln!(text, "{{\"client\":{client},\"n\":{n},\"part\":{part}}}"),
        };
    }
    text
}
