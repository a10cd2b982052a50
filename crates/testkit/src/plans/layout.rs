//! Where the rows of a case lie when it is asked about them.

use esker::{
    ChangeOptions, Database, IndexUse, JoinOrder, Limits, NullsOrder, Options, Semantics, Snapshot,
    Unnesting,
};
use esker_vfs::sim::{Generator, Options as SimOptions, Simulation};

use super::Case;
use super::case::{Step, TABLE};
use super::rollup::KeptGroups;

/// How the rows lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In the open group, read from first to last: neither an index nor the key is used, and no
    /// subquery becomes a join.
    Scanned,
    /// In the open group.
    Open,
    /// In several segments and an open group.
    Sealed,
    /// In one segment, without dead rows but those that a snapshot sees.
    Merged,
    /// In several segments and an open group, opened again from checkpoint and log.
    Reopened,
    /// In the segments of a bulk load, changed afterwards.
    Loaded,
}

/// The memory of a query that has little.
const LITTLE_BYTES: usize = 96 << 10;

/// Enough memory for the rows that a statement changes, where queries have little.
fn with_memory() -> ChangeOptions {
    let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
    ChangeOptions { limits, ..ChangeOptions::default() }
}

/// Where NULLs go, for all layouts of a case.
fn semantics_of(case: &Case) -> Semantics {
    let nulls_order = Some(match case.seed % 4 {
        0 => NullsOrder::Smallest,
        1 => NullsOrder::Greatest,
        2 => NullsOrder::First,
        _ => NullsOrder::Last,
    });
    Semantics { nulls_order, ..Semantics::default() }
}

/// A database with the rows of a case.
pub(super) struct Built {
    /// Holds the files.
    _machine: Simulation,
    db: Database,
    /// The snapshot taken in the middle, where the database has not been opened again since.
    pub(super) old: Option<Snapshot>,
}

impl Layout {
    /// Every layout; the first has the answers that others are compared with.
    pub const ALL: [Self; 6] =
        [Self::Scanned, Self::Open, Self::Sealed, Self::Merged, Self::Reopened, Self::Loaded];

    /// True when all rows stay in the open group.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Scanned | Self::Open)
    }

    /// Tables are joined as they are written, then in any other orders.
    fn join_order(self, case: &Case) -> JoinOrder {
        match (self, case.seed.wrapping_add(self as u64) % 3) {
            (Self::Scanned, _) => JoinOrder::AsWritten,
            (_, 0) => JoinOrder::Cheapest,
            _ => JoinOrder::Random(case.seed),
        }
    }

    fn options(self, case: &Case, index_use: IndexUse, machine: &Simulation) -> Options {
        let rows = 16 * case.scale;
        let options = Options::new().background(false).environment(machine.environment());
        let options = options.index_use(index_use).join_order(self.join_order(case));
        let options = options.semantics(semantics_of(case));
        match self {
            Self::Scanned => options.unnesting(Unnesting::Never),
            Self::Open => options,
            _ => options.group_limit(rows, 1 << 30).small_group_limit(0).segment_limit(rows),
        }
    }

    pub(super) fn build(self, case: &Case, generator: &mut Generator) -> esker::Result<Built> {
        let machine = Simulation::new(7, SimOptions::default());
        // Few rows are seldom worth a look-up.
        let forced = generator.chance(850_000);
        let index_use = match self {
            Self::Scanned => IndexUse::Never,
            _ if forced => IndexUse::Always,
            _ => IndexUse::WhenCheaper,
        };
        let options = self.options(case, index_use, &machine);
        // With little memory, sorts and groups go through temporary files.
        let is_tight = !self.is_open() && generator.chance(250_000);
        let options = if is_tight { options.query_memory_limit(LITTLE_BYTES) } else { options };
        let db = options.open("db")?;
        let table = db.create_table(TABLE, case.schema()?)?;
        let mut built = Built { _machine: machine, db, old: None };
        if generator.chance(800_000) {
            built.set_indexes(case, &(0..case.index_count()).collect::<Vec<_>>())?;
        }
        let comes_first = generator.chance(700_000);
        if comes_first {
            built.create_rollups(case)?;
        }
        for (number, step) in case.steps.iter().enumerate() {
            match step {
                Step::Insert(rows) if self == Self::Loaded && number == 0 => {
                    let mut load = table.load()?;
                    rows.iter().try_for_each(|row| load.push_row(row))?;
                    load.finish()?;
                }
                Step::Insert(rows) => table.insert_many(rows)?,
                Step::Change(change) => drop(built.db.change_with(change, &with_memory())?),
                Step::Remember => built.old = Some(built.db.snapshot()?),
            }
            if !self.is_open() && generator.chance(600_000) {
                built.db.wait_idle()?;
            }
        }
        drop(table);
        if !comes_first {
            built.create_rollups(case)?;
            built.db.wait_idle()?;
        }
        match self {
            Self::Merged => drop(built.db.compact(false, &mut |_, _| {})?),
            Self::Reopened => {
                built.old = None;
                if generator.chance(500_000) {
                    built.db.checkpoint()?;
                }
                let Built { _machine: machine, db, .. } = built;
                db.close()?;
                let options = self.options(case, index_use, &machine);
                // With little memory, sorts and groups go through temporary files.
                let is_tight = !self.is_open() && generator.chance(250_000);
                let options =
                    if is_tight { options.query_memory_limit(LITTLE_BYTES) } else { options };
                let db = options.open("db")?;
                built = Built { _machine: machine, db, old: None };
            }
            _ => {}
        }
        Ok(built)
    }
}

impl Built {
    /// From now on the table has these indexes and no others.
    pub(super) fn set_indexes(&self, case: &Case, numbers: &[usize]) -> esker::Result<()> {
        let schema = self.db.table(TABLE)?.schema();
        let wanted: Vec<_> = numbers.iter().filter_map(|number| case.index(*number)).collect();
        for index in schema.row_indexes() {
            if wanted.iter().all(|wanted| wanted.name != index.name) {
                self.db.drop_index(TABLE, &index.name)?;
            }
        }
        let missing = wanted.into_iter().filter(|index| schema.index(&index.name).is_err());
        self.db.create_indexes(TABLE, &missing.cloned().collect::<Vec<_>>())
    }

    fn create_rollups(&self, case: &Case) -> esker::Result<()> {
        let create = |rollup: &KeptGroups| self.db.create_rollup(&rollup.name, &rollup.query());
        case.rollups.iter().try_for_each(create)
    }

    pub(super) fn snapshot(&self) -> esker::Result<Snapshot> {
        self.db.snapshot()
    }
}
