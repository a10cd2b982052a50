//! A damaged database is an error or the rows that were committed, up to some commit: never a
//! panic, and never other rows.

use esker::{DataType, Database, Options, Result, Schema, Value};
use esker_vfs::sim::{CrashChoice, CrashImage, Simulation};
use std::path::PathBuf;
use std::sync::OnceLock;

const TABLE: &str = "birds";

/// The most places that are damaged at once.
const DAMAGES_MAX: usize = 16;

type Row = (u64, Vec<Value>);

/// A whole database, and the rows after each of its commits.
struct Specimen {
    image: CrashImage,
    /// The files, each with its length without the zeros that are reserved at its end.
    files: Vec<(PathBuf, u64)>,
    states: Vec<Vec<Row>>,
}

/// The target: whether the database was closed, then what is done to it, eight bytes each.
pub fn run(data: &[u8]) {
    let Some((closed, damages)) = data.split_first() else { return };
    let specimen = specimen(closed & 1 == 1);
    let mut image = specimen.image.clone();
    for damage in damages.as_chunks().0.iter().take(DAMAGES_MAX) {
        apply(&mut image, &specimen.files, *damage);
    }
    let simulation = Simulation::from_image(&image, 7, esker_vfs::sim::Options::default());
    if let Ok(db) = options(&simulation).create(false).open("db") {
        let mut states = specimen.states.clone();
        assert_known(&db, &states);
        _ = db.check();
        if write(&db, 1_000).is_ok() {
            let written = rows(&db);
            states.extend(written);
            assert_known(&db, &states);
        }
        if db.close().is_ok()
            && let Ok(db) = options(&simulation).create(false).open("db")
        {
            assert_known(&db, &states);
        }
    }
}

/// One edit of one file: a byte replaced, a bit inverted, the file cut, or a few bytes of one file
/// written over another.
fn apply(image: &mut CrashImage, files: &[(PathBuf, u64)], damage: [u8; 8]) {
    let [which, kind, a, b, c, d, value, from] = damage;
    let Some((path, len)) = files.get(usize::from(which) % files.len()) else { return };
    let offset = u64::from(u32::from_le_bytes([a, b, c, d])) % len;
    match kind % 5 {
        0 => _ = image.overwrite(path, offset, &[value]),
        1 => _ = image.flip_bit(path, offset, value % 8),
        2 => _ = image.truncate(path, offset),
        3 => _ = image.truncate(path, len + u64::from(value)),
        _ => {
            let other = files.get(usize::from(from) % files.len());
            let bytes = other.and_then(|(other, _)| image.read(other)).unwrap_or_default();
            let start = usize::try_from(offset).unwrap_or_default().min(bytes.len());
            let end = (start + usize::from(value)).min(bytes.len());
            _ = image.overwrite(path, offset, &bytes[start..end]);
        }
    }
}

/// What can be read is a state that was committed; a table may be gone with its commit.
fn assert_known(db: &Database, states: &[Vec<Row>]) {
    if let Some(found) = rows(db) {
        assert!(states.contains(&found), "never committed: {found:?}");
        for (_, values) in &found {
            let Ok(Some(row)) = db.table(TABLE).and_then(|table| table.get(&values[..1])) else {
                continue;
            };
            assert_eq!(row.values(), values.as_slice(), "found by its key");
        }
    }
}

fn rows(db: &Database) -> Option<Vec<Row>> {
    db.table(TABLE).ok()?.snapshot().ok()?.rows().ok()
}

fn options(simulation: &Simulation) -> Options {
    let options = Options::new().environment(simulation.environment()).background(false);
    options.group_limit(8, 1 << 20).small_group_limit(0).index_file_limit(1)
}

fn specimen(closed: bool) -> &'static Specimen {
    static SPECIMENS: OnceLock<[Specimen; 2]> = OnceLock::new();
    let make = || [false, true].map(|closed| build(closed).expect("a database is made"));
    let [open, whole] = SPECIMENS.get_or_init(make);
    if closed { whole } else { open }
}

/// A database with segments, an index file, a checkpoint, deletes, and commits in the log after it.
fn build(closed: bool) -> Result<Specimen> {
    let simulation = Simulation::new(1, esker_vfs::sim::Options::default());
    let db = options(&simulation).open("db")?;
    let schema = Schema::builder().field("id", DataType::I64).nullable("name", DataType::Text);
    let table = db.create_table(TABLE, schema.primary_key(["id"]).build()?)?;
    let mut states = vec![rows(&db).unwrap_or_default()];
    for step in 0..6 {
        if step == 3 {
            db.wait_idle()?;
            db.checkpoint()?;
        }
        write(&db, step * 10)?;
        states.extend(rows(&db));
        if step % 2 == 1 {
            table.delete(&[Value::Int(step * 10 - 5)])?;
            states.extend(rows(&db));
        }
    }
    if closed {
        drop(table);
        db.close()?;
    }
    let image = simulation.crash_image(CrashChoice::KeepAll);
    let used = |path: &PathBuf| {
        let bytes = image.read(path).unwrap_or_default();
        bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last as u64 + 1)
    };
    let files = image.paths().into_iter().map(|path| (path.clone(), used(&path))).collect();
    Ok(Specimen { image, files, states })
}

/// Ten rows, in one commit.
fn write(db: &Database, first: i64) -> Result<()> {
    let row = |id: i64| vec![Value::Int(id), Value::Text(format!("bird {}", id % 7))];
    db.table(TABLE)?.insert_many(&(first..first + 10).map(row).collect::<Vec<_>>())
}
