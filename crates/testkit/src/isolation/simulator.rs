//! A tiny database in memory that keeps what it promises: it makes honest histories.
//!
//! Every version is kept with the number of its commit. A transaction reads at the commit that was
//! newest when it began; at its end it aborts when another has changed a key that it changed, and,
//! to be serializable, one that it read or a table in which it looked.

use std::collections::{BTreeMap, BTreeSet};

use esker_vfs::sim::Generator;

use super::{Cell, Condition, History, Key, Level, Operation, Outcome, Transaction};

/// How the history is made.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// How many transactions begin.
    pub transactions: u32,
    /// How many are at work at a time; one makes a serial history.
    pub clients: usize,
    /// What they are promised: `Snapshot`, or `Serializable`, which is strict here.
    pub level: Level,
    /// The seed of all that is random.
    pub seed: u64,
}

/// Tables of lists are numbered from here.
const LISTS: u32 = 1_000_000;
/// Tables that are read by conditions are numbered from here.
const ROWS: u32 = 2_000_000;
/// The table of registers.
const REGISTERS: u32 = 1;
/// After how many transactions lists and rows are new ones, so that none becomes long.
const RENEWED: u32 = 60;

/// What a key holds.
#[derive(Clone, Debug)]
enum State {
    List(Vec<u64>),
    Cell(Option<Cell>),
}

/// A client at work.
#[derive(Debug)]
struct Client {
    begin: u64,
    snapshot: u64,
    left: u64,
    operations: Vec<Operation>,
    /// What it changed, as it sees it.
    own: BTreeMap<Key, State>,
    read: BTreeSet<Key>,
    looked_in: BTreeSet<u32>,
}

struct Machine {
    generator: Generator,
    level: Level,
    clock: u64,
    commit: u64,
    stamp: u64,
    versions: BTreeMap<Key, Vec<(u64, State)>>,
    tables: BTreeMap<u32, u64>,
    history: History,
}

impl Simulation {
    /// Makes the history.
    #[must_use]
    pub fn run(&self) -> History {
        let mut machine = Machine {
            generator: Generator::new(self.seed, 91),
            level: self.level,
            clock: 0,
            commit: 0,
            stamp: 0,
            versions: BTreeMap::new(),
            tables: BTreeMap::new(),
            history: History::default(),
        };
        let mut clients: Vec<Option<Client>> = (0..self.clients.max(1)).map(|_| None).collect();
        let mut begun = 0;
        while begun < self.transactions || clients.iter().any(Option::is_some) {
            let at = machine.generator.index(clients.len());
            let Some(slot) = clients.get_mut(at) else { continue };
            match slot.take() {
                Some(mut client) if client.left > 0 => {
                    client.left -= 1;
                    machine.operate(&mut client, begun / RENEWED);
                    *slot = Some(client);
                }
                Some(client) => machine.end(client),
                None if begun < self.transactions => {
                    begun += 1;
                    *slot = Some(machine.begin());
                }
                None => {}
            }
        }
        machine.history
    }
}

impl Machine {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn begin(&mut self) -> Client {
        Client {
            begin: self.tick(),
            snapshot: self.commit,
            left: 1 + self.generator.below(5),
            operations: Vec::new(),
            own: BTreeMap::new(),
            read: BTreeSet::new(),
            looked_in: BTreeSet::new(),
        }
    }

    /// The newest version that a client sees.
    fn state(&self, client: &Client, key: Key) -> Option<State> {
        if let Some(own) = client.own.get(&key) {
            return Some(own.clone());
        }
        let versions = self.versions.get(&key)?;
        let seen = versions.iter().rev().find(|(commit, _)| *commit <= client.snapshot);
        seen.map(|(_, state)| state.clone())
    }

    fn list(&self, client: &Client, key: Key) -> Vec<u64> {
        match self.state(client, key) {
            Some(State::List(values)) => values,
            _ => Vec::new(),
        }
    }

    fn cell(&self, client: &Client, key: Key) -> Option<Cell> {
        match self.state(client, key) {
            Some(State::Cell(cell)) => cell,
            _ => None,
        }
    }

    fn below(&mut self, count: u32) -> u32 {
        u32::try_from(self.generator.below(u64::from(count))).unwrap_or_default()
    }

    fn operate(&mut self, client: &mut Client, epoch: u32) {
        let register = Key::new(REGISTERS, self.below(12));
        let list = Key::new(LISTS + epoch, self.below(5));
        let row = Key::new(ROWS + epoch, self.below(10));
        self.stamp += 1;
        let stamp = self.stamp;
        let value = i64::from(self.below(20));
        let operation = match self.below(7) {
            0 => {
                let mut values = self.list(client, list);
                values.push(stamp);
                client.own.insert(list, State::List(values));
                Operation::Append { key: list, value: stamp }
            }
            1 => {
                client.read.insert(list);
                Operation::ReadList { key: list, values: self.list(client, list).into() }
            }
            2 => Operation::Read { key: register, cell: self.read(client, register) },
            3 => self.write(client, register, Some(Cell { stamp, value })),
            4 => {
                // Rows come, change and go.
                let is_there = self.generator.chance(700_000);
                self.write(client, row, is_there.then_some(Cell { stamp, value }))
            }
            5 => Operation::Read { key: row, cell: self.read(client, row) },
            _ => {
                let least = value / 2;
                let condition = Condition { table: row.table, least, greatest: least + 5 };
                self.look(client, condition)
            }
        };
        client.operations.push(operation);
    }

    fn read(&self, client: &mut Client, key: Key) -> Option<Cell> {
        client.read.insert(key);
        self.cell(client, key)
    }

    fn write(&self, client: &mut Client, key: Key, cell: Option<Cell>) -> Operation {
        client.own.insert(key, State::Cell(cell));
        Operation::Write { key, cell }
    }

    fn look(&self, client: &mut Client, condition: Condition) -> Operation {
        client.looked_in.insert(condition.table);
        let of_table = Key::new(condition.table, 0)..=Key::new(condition.table, u32::MAX);
        let mut keys: BTreeSet<Key> =
            self.versions.range(of_table.clone()).map(|(key, _)| *key).collect();
        keys.extend(client.own.range(of_table).map(|(key, _)| *key));
        let cells = keys.into_iter().filter_map(|key| Some((key, self.cell(client, key)?)));
        let rows = cells.filter(|(_, cell)| condition.matches(Some(*cell))).collect();
        Operation::read_where(condition, rows)
    }

    /// Whether what the client relies on has changed since it began.
    fn has_conflict(&self, client: &Client) -> bool {
        let is_newer = |key: &Key| {
            let newest = self.versions.get(key).and_then(|versions| versions.last());
            newest.is_some_and(|(commit, _)| *commit > client.snapshot)
        };
        let table_is_newer =
            |table: &u32| self.tables.get(table).is_some_and(|commit| *commit > client.snapshot);
        let relies_on_reads = self.level >= Level::Serializable && !client.own.is_empty();
        client.own.keys().any(is_newer)
            || (relies_on_reads
                && (client.read.iter().any(is_newer)
                    || client.looked_in.iter().any(table_is_newer)))
    }

    fn end(&mut self, client: Client) {
        let gives_up = self.generator.chance(50_000);
        let (mut commit, mut outcome) = (None, Outcome::Aborted);
        if !gives_up && !self.has_conflict(&client) {
            outcome = Outcome::Committed;
            if !client.own.is_empty() {
                self.commit += 1;
                commit = Some(self.commit);
                for (key, state) in client.own {
                    self.versions.entry(key).or_default().push((self.commit, state));
                    self.tables.insert(key.table, self.commit);
                }
            }
        }
        let end = self.tick();
        self.history.transactions.push(Transaction {
            begin: client.begin,
            end,
            snapshot: Some(client.snapshot),
            commit,
            outcome,
            isolation: self.level,
            operations: client.operations,
        });
    }
}
