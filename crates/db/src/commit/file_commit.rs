//! Commits that need files first: rows that are too large for a frame, and long values.

use esker_arena::ReaderGuard;

use crate::commit::journal::Ticket;
use crate::commit::options::CommitOptions;
use crate::commit::restaged::expect_as_staged;
use crate::commit::write_set::TableWrites;
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::{ErrorKind, Result};

impl Engine {
    /// True when changes cannot be numbered before files are written.
    pub(crate) fn needs_files(&self, parts: &[TableWrites<'_>]) -> bool {
        let bytes = || parts.iter().map(|part| part.staged.byte_count()).sum::<usize>();
        parts.iter().any(|part| {
            self.is_large_part(part) || self.has_long(&part.current.schema, &part.staged)
        }) || (parts.len() > 1 && bytes() > self.options.commit_bytes_max)
    }

    fn is_large_part(&self, part: &TableWrites<'_>) -> bool {
        part.private.is_some() || part.staged.is_large(self.options.commit_bytes_max)
    }

    /// Takes out the parts that do not go into a frame: those that are too large, and of the others
    /// the largest, until the rest does.
    fn take_large<'r>(&self, parts: &mut Vec<TableWrites<'r>>) -> Vec<TableWrites<'r>> {
        let mut sized: Vec<_> = std::mem::take(parts)
            .into_iter()
            .map(|part| (self.is_large_part(&part), part.staged.byte_count(), part))
            .collect();
        sized.sort_by_key(|(is_large, bytes, _)| (*is_large, *bytes));
        let (mut large, mut together) = (Vec::new(), 0);
        for (is_large, bytes, part) in sized {
            together += bytes;
            if is_large || together > self.options.commit_bytes_max {
                large.push(part);
            } else {
                parts.push(part);
            }
        }
        let by_table = |part: &TableWrites<'_>| part.current.core.id();
        parts.sort_by_key(by_table);
        large.sort_by_key(by_table);
        large
    }
}

impl EngineHandle {
    /// Writes what does not go into the log into files, then commits, if all is as it was staged.
    /// `staged_at` has been held since.
    pub(crate) fn commit_with_files(
        &self,
        parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        self.write_and_commit(parts, commit_options, staged_at).or_else(|e| {
            // What a refusal rests on may have been committed meanwhile.
            if e.kind() != ErrorKind::OutcomeUnknown && e.kind() != ErrorKind::Poisoned {
                self.acknowledge_published()?;
            }
            Err(e)
        })
    }

    fn write_and_commit(
        &self,
        mut parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        if self.is_durable() {
            for part in &mut parts {
                self.store_long(&part.current.schema, &mut part.staged.puts)?;
            }
        }
        let large = self.take_large(&mut parts);
        if !large.is_empty() {
            let ticket = self.spill(large, parts, commit_options, staged_at)?;
            self.settle_definitions(commit_options);
            return Ok(ticket);
        }
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            (commit_options.validate)(&mut catalogue)?;
            self.defining(&mut catalogue, commit_options, |catalogue| {
                expect_as_staged(catalogue, &mut parts, commit_options, staged_at)?;
                self.commit_in_frame(catalogue, &parts, commit_options)
            })?
        };
        self.acknowledge_as(ticket, commit_options.sync)?;
        self.settle_definitions(commit_options);
        Ok(ticket)
    }
}
