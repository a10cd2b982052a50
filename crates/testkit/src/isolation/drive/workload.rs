//! What transactions are about to do.

use std::collections::VecDeque;

use esker_vfs::sim::Generator;

use crate::isolation::{Condition, Key};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Lists are read and appended to.
    Append,
    /// Registers are read, written and deleted.
    Register,
    /// Money goes from account to account; whoever looks sees all of it.
    Bank,
    /// Two registers are read and one of them is written.
    WriteSkew,
    /// A register is written, others read two of them.
    LongFork,
    /// Rows are looked for by an indexed value, and such rows come and go.
    Phantom,
    /// Two registers of which one transaction writes one, another the other, and a third none.
    ReadOnly,
    /// Two registers are read for update and one of them is written: what snapshots allow does not
    /// happen then.
    ForUpdate,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    ReadList(Key),
    Append(Key),
    Read(Key),
    /// A register is read, and nobody else may change it before the commit.
    Hold(Key),
    Write(Key, i64),
    Delete(Key),
    /// A register is read and written with so much more.
    Add(Key, i64),
    Look(Condition),
    /// All accounts are looked at, and their sum compared.
    Audit,
    /// A register is written and the write taken back.
    Scratch(Key),
}

/// The accounts.
const ACCOUNTS: u32 = 16;
/// The table of the accounts.
const BANK: u32 = 7;
/// What each has at first.
const BALANCE: i64 = 100;
/// What all have together.
pub(super) const TOTAL: i64 = BALANCE * ACCOUNTS as i64;
/// The number of accounts.
pub(super) const ACCOUNT_COUNT: usize = ACCOUNTS as usize;

/// Asks for every row of a table.
fn everything(table: u32) -> Condition {
    Condition { table, least: i64::MIN, greatest: i64::MAX }
}

/// All accounts.
pub(super) const AUDIT: Condition = Condition { table: BANK, least: i64::MIN, greatest: i64::MAX };

impl Workload {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Append,
        Self::Register,
        Self::Bank,
        Self::WriteSkew,
        Self::LongFork,
        Self::Phantom,
        Self::ReadOnly,
        Self::ForUpdate,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "list-append",
            Self::Register => "register",
            Self::Bank => "bank",
            Self::WriteSkew => "write skew",
            Self::LongFork => "long fork",
            Self::Phantom => "phantom",
            Self::ReadOnly => "read-only",
            Self::ForUpdate => "for update",
        }
    }

    /// After how many transactions keys are new ones.
    fn renewed(self) -> u64 {
        match self {
            Self::Append | Self::Register => 120,
            Self::Bank => u64::MAX,
            Self::WriteSkew | Self::LongFork | Self::ReadOnly | Self::ForUpdate => 40,
            Self::Phantom => 60,
        }
    }

    /// The table of the transaction of a number.
    fn table(self, number: u64) -> u32 {
        100 + u32::try_from(number / self.renewed()).unwrap_or_default()
    }

    /// What has to be there before all else.
    pub(super) fn first(self) -> VecDeque<Intent> {
        match self {
            Self::Bank => {
                (0..ACCOUNTS).map(|row| Intent::Write(Key::new(BANK, row), BALANCE)).collect()
            }
            _ => VecDeque::new(),
        }
    }

    /// Reads all that the last transactions before a number may have changed.
    pub(super) fn audit(self, number: u64) -> VecDeque<Intent> {
        let newest = self.table(number);
        let tables = newest.saturating_sub(2).max(100)..=newest;
        match self {
            Self::Bank => VecDeque::from([Intent::Audit]),
            Self::Append => {
                let lists = tables.flat_map(|table| (0..LISTS).map(move |r| Key::new(table, r)));
                lists.map(Intent::ReadList).collect()
            }
            _ => tables.map(|table| Intent::Look(everything(table))).collect(),
        }
    }

    /// The transaction of a number.
    pub(super) fn draw(self, number: u64, g: &mut Generator) -> VecDeque<Intent> {
        let table = self.table(number);
        let mut below = |count: u32| u32::try_from(g.below(u64::from(count))).unwrap_or_default();
        match self {
            Self::Append => (0..1 + below(4))
                .map(|_| match (below(2), Key::new(table, below(LISTS))) {
                    (0, key) => Intent::Append(key),
                    (_, key) => Intent::ReadList(key),
                })
                .collect(),
            Self::Register => {
                (0..1 + below(5)).map(|_| register(Key::new(table, below(20)), below(9))).collect()
            }
            Self::Bank if below(3) == 0 => VecDeque::from([Intent::Audit]),
            Self::Bank => {
                let (from, to, amount) = (below(ACCOUNTS), below(ACCOUNTS), i64::from(below(9)));
                let add = |row, by| Intent::Add(Key::new(BANK, row), by);
                VecDeque::from([add(from, -amount), add(to, amount)])
            }
            Self::WriteSkew | Self::ForUpdate => {
                let read = if self == Self::ForUpdate { Intent::Hold } else { Intent::Read };
                let pair = below(4) * 2;
                let written = pair + below(2);
                let [one, other, written] = [pair, pair + 1, written].map(|r| Key::new(table, r));
                VecDeque::from([read(one), read(other), Intent::Write(written, 1)])
            }
            Self::LongFork => {
                let pair = below(4) * 2;
                let [one, other] = [pair, pair + 1].map(|row| Key::new(table, row));
                match below(4) {
                    0 => VecDeque::from([Intent::Write(one, 1)]),
                    1 => VecDeque::from([Intent::Write(other, 1)]),
                    2 => VecDeque::from([Intent::Read(one), Intent::Read(other)]),
                    _ => VecDeque::from([Intent::Read(other), Intent::Read(one)]),
                }
            }
            Self::Phantom => {
                let least = i64::from(below(4)) * 5;
                let looked_for = Condition { table, least, greatest: least + 4 };
                let row = Key::new(table, below(12));
                let change = match below(4) {
                    0 => Intent::Delete(row),
                    _ => Intent::Write(row, i64::from(below(20))),
                };
                let look = Intent::Look(looked_for);
                match below(5) {
                    0 => VecDeque::from([look, change, look]),
                    1 => VecDeque::from([look]),
                    _ => VecDeque::from([look, change]),
                }
            }
            Self::ReadOnly => {
                let pair = below(3) * 2;
                let [one, other] = [pair, pair + 1].map(|row| Key::new(table, row));
                match below(3) {
                    0 => VecDeque::from([
                        Intent::Read(one),
                        Intent::Read(other),
                        Intent::Write(other, 1),
                    ]),
                    1 => VecDeque::from([Intent::Write(one, 1)]),
                    _ => VecDeque::from([Intent::Read(one), Intent::Read(other)]),
                }
            }
        }
    }
}

/// How many lists are in use at a time.
const LISTS: u32 = 9;

fn register(key: Key, kind: u32) -> Intent {
    match kind {
        0..=3 => Intent::Read(key),
        4 | 5 => Intent::Write(key, i64::from(key.row)),
        6 => Intent::Add(key, 1),
        7 => Intent::Delete(key),
        _ => Intent::Scratch(key),
    }
}
