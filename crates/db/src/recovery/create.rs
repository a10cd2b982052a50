//! Creating a database: the log first, then the checkpoint by which a directory is known to be one.

use std::path::Path;
use std::sync::Arc;

use esker_format::checkpoint::Checkpoint;
use esker_log::Log;
use esker_vfs::{Environment, FileLock, OpenMode};

use super::{Parts, log_options, remove_leftovers};
use crate::commit::journal::Journal;
use crate::commit::watermarks::Watermarks;
use crate::engine::Engine;
use crate::maintenance::checkpoint_path;
use crate::{Options, Result};

/// Creates an empty database in a directory that holds at most leftovers of a creation.
pub(super) fn create(
    environment: Environment,
    options: Options,
    dir: &Path,
    lock: Box<dyn FileLock>,
) -> Result<Engine> {
    // The name of a directory that exists already may not be durable yet.
    environment.files.create_dir_all(dir)?;
    let path = checkpoint_path(dir, 1);
    if environment.files.exists(&path)? {
        // What a crash left of a creation that got no further. Before its log goes: the two have
        // to be of one database.
        environment.files.remove(&path)?;
        environment.files.sync_dir(dir)?;
    }
    let random = || environment.random.next_u64();
    let database = u128::from(random()) << 64 | u128::from(random());
    let hash_key = [random(), random()];
    let watermarks = Arc::new(Watermarks::new(0));
    let log_options = log_options(&watermarks, 0, &options);
    let reserve_bytes = log_options.reserve_bytes;
    let log = Log::create(&environment, dir, database, log_options)?;
    let checkpoint = Checkpoint {
        database,
        number: 1,
        hash_key,
        next_table: 1,
        next_segment: 1,
        ..Checkpoint::default()
    };
    let file = environment.files.open(&path, OpenMode::CreateNew)?;
    file.write_all_at(&checkpoint.encode(), 0)?;
    file.sync_data()?;
    environment.files.sync_dir(dir)?;
    if reserve_bytes > 0 {
        // What fails here is tried again.
        let _ = log.fill_reserve(reserve_bytes);
    }
    let last = log.next_commit() - 1;
    watermarks.start_at(last);
    let journal = Journal::Log(Box::new(log));
    let (dir, lock) = (dir.to_owned(), Some(lock));
    let of = (database, hash_key);
    let (clock, memory_of) = (None, None);
    let parts =
        Parts { environment, options, dir, lock, of, clock, journal, watermarks, memory_of };
    let engine = parts.assemble()?;
    engine.lock().checkpoint_number = 1;
    // A load may have written segments before any commit was durable.
    remove_leftovers(&engine, 1)?;
    Ok(engine)
}
