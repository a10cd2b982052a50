//! A directory in which a backup is being made, or was not finished.

/// The name of the file that a directory has while a backup is made in it.
pub(crate) const UNFINISHED_FILE: &str = "BACKUP-UNFINISHED";

/// What to do about a directory that is no backup yet.
pub(crate) fn unfinished(dir: &std::path::Display<'_>) -> String {
    format!(
        "{dir}: a backup into this directory was not finished; remove it and make the backup again"
    )
}
