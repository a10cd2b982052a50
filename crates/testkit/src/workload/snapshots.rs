//! Reading as of older commits, whatever has become of tables since.

use std::sync::Arc;

use esker::{ErrorKind, Query, Snapshot, Value};

use super::client::{Client, SNAPSHOTS_MAX, TABLES};
use super::world::Begun;
use crate::answer::Saw;
use crate::model::State;

impl Client {
    /// Takes a snapshot, reads one, or lets one go.
    pub(super) fn use_snapshot(&mut self, state: &State) {
        let Some(Begun { db, .. }) = self.world.begin(None, None) else { return };
        let draw = self.generator.below(10);
        if self.snapshots.is_empty() || (draw < 3 && self.snapshots.len() < SNAPSHOTS_MAX) {
            match db.snapshot() {
                Ok(snapshot) => {
                    self.world.note(|| format!("snapshot at {}", snapshot.commit()));
                    self.snapshots.push(snapshot);
                }
                Err(e) => self.read_failed(&e),
            }
            return;
        }
        let chosen = self.generator.index(self.snapshots.len());
        if draw > 7 {
            let snapshot = self.snapshots.remove(chosen);
            self.world.note(|| format!("drop the snapshot at {}", snapshot.commit()));
            return;
        }
        let Some(snapshot) = self.snapshots.get(chosen).cloned() else { return };
        let name = match self.pick_then(&snapshot) {
            Some(name) if self.generator.chance(850_000) => name,
            _ => match self.pick_table(state) {
                Some((name, _)) if self.generator.chance(500_000) => name,
                _ => self.generator.pick(TABLES).to_owned(),
            },
        };
        self.read_at(&name, &snapshot);
        self.get_at(&name, &snapshot);
    }

    /// A table that there was, as far as is known.
    fn pick_then(&mut self, snapshot: &Snapshot) -> Option<String> {
        let state = Arc::clone(self.world.lock().history.at(snapshot.commit()));
        let at = self.generator.index(state.tables.len().max(1));
        state.tables.keys().nth(at).cloned()
    }

    /// Reads a whole table as of a snapshot.
    fn read_at(&mut self, name: &str, snapshot: &Snapshot) {
        let at = snapshot.commit();
        let table = match snapshot.table(name) {
            Ok(table) => table,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return self.world.saw(at, name, Saw::Nothing);
            }
            Err(e) => return self.read_failed(&e),
        };
        self.world.note(|| format!("read {name} at {at}"));
        self.world.saw(at, name, Saw::Schema(Box::new((**table.schema()).clone())));
        let saw = match self.generator.chance(300_000) {
            true => snapshot.query(&Query::table(name)).map(|a| Saw::Answer(a.to_rows())),
            false => table.rows().map(Saw::Rows),
        };
        match saw.and_then(|saw| Ok((saw, table.count()?))) {
            Ok((saw, count)) => {
                self.world.saw(at, name, saw);
                self.world.saw(at, name, Saw::Count(count));
            }
            Err(e) => self.read_failed(&e),
        }
    }

    /// Looks one row up as of a snapshot.
    fn get_at(&mut self, name: &str, snapshot: &Snapshot) {
        let state = Arc::clone(self.world.lock().history.at(snapshot.commit()));
        let Some(table) = state.table(name) else { return };
        let (ident, key) = self.pick_row(table);
        if key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        match snapshot.table(name).and_then(|table| table.get(&key)) {
            Ok(row) => {
                let row = row.map(esker::Row::into_values);
                self.world.saw(snapshot.commit(), name, Saw::Row(ident, row));
            }
            Err(e) => self.read_failed(&e),
        }
    }
}
