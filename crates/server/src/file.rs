//! Small files that are read and replaced as a whole.

use std::path::Path;

use esker_vfs::{Environment, OpenMode};

use crate::{Code, Error, Result};

/// The most bytes of a file that is read as a whole.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a server has beside the database in its directory, and beside those of tenants.
const SERVER_FILES: [&str; 8] = [
    "tokens.json",
    "tokens.json.new",
    "tokens.lock",
    "limits.json",
    "limits.json.new",
    "tenants",
    "backups",
    "restoring",
];

/// Verifies a database, as [`esker::Database::check`] does. Files of a server are none that nothing
/// names.
///
/// # Errors
/// When the check cannot be done.
pub fn check(database: &esker::Database) -> Result<esker::CheckReport> {
    let mut report = database.check()?;
    report.notes.retain(|note| !SERVER_FILES.contains(&note.place.as_str()));
    Ok(report)
}

/// A small file as a whole; none when there is none.
pub(crate) fn read_file(environment: &Environment, path: &Path) -> Result<Option<Vec<u8>>> {
    if !environment.files.exists(path)? {
        return Ok(None);
    }
    let file = environment.files.open(path, OpenMode::Read)?;
    let length = file.len()?;
    if length > FILE_BYTES_MAX {
        let message = format!("{}: {length} bytes, expected fewer", path.display());
        return Err(Error::new(Code::Damaged, message));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

/// Puts a file in place of another, so that a crash leaves the one or the other.
pub(crate) fn replace_file(
    environment: &Environment,
    directory: &Path,
    temporary: &str,
    name: &str,
    bytes: &[u8],
) -> Result<()> {
    let (files, temporary) = (&environment.files, directory.join(temporary));
    if files.exists(&temporary)? {
        files.remove(&temporary)?;
    }
    let file = files.open(&temporary, OpenMode::CreateNew)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()?;
    files.rename(&temporary, &directory.join(name))?;
    files.sync_dir(directory)?;
    Ok(())
}
