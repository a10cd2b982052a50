//! Versions that died, row group by row group: who may still see or ask for them.

use esker_arena::ReadCommits;
use esker_log::sabotage::Bug;

use crate::Result;
use crate::delete_stamp::DeleteStamp;
use crate::view::RowGroup;

impl RowGroup {
    pub(crate) fn delete_stamp(&self, row: usize) -> DeleteStamp {
        match self {
            Self::Group(group) => group.delete_stamp(row),
            Self::Segment(segment) => segment.delete_stamp(row),
        }
    }

    /// Notes that a dead row has a successor. Under the commit lock.
    pub(crate) fn supersede(&self, row: usize) -> Result<()> {
        let delete_stamp = self.delete_stamp(row);
        if delete_stamp.commit() == 0 || delete_stamp.is_superseded() {
            return Ok(());
        }
        match self {
            Self::Group(group) => group.supersede(row, delete_stamp),
            Self::Segment(segment) => segment.supersede(row, delete_stamp),
        }
    }

    /// True when a row had expired before it died, and no other version has taken its place since:
    /// for readers that know what expires it went without a change.
    #[must_use]
    pub fn has_ended(&self, row: usize) -> bool {
        let delete_stamp = self.delete_stamp(row);
        delete_stamp.is_ended() && !delete_stamp.is_superseded()
    }

    /// Grows whenever a row dies, or a dead one gets a successor: by no less than the rows that a
    /// rewrite may drop, for the same readers.
    #[must_use]
    pub fn delete_events(&self) -> u64 {
        let succeeded = match self {
            Self::Group(group) => group.succeeded_count(),
            Self::Segment(segment) => segment.succeeded_count(),
        };
        self.dead_count() + succeeded
    }

    /// True when a rewrite may drop a dead version: no reader sees it, now or later, and none finds
    /// by it when its key was changed last.
    #[must_use]
    pub fn is_droppable(&self, row: usize, readers: &ReadCommits) -> bool {
        let delete_stamp = self.delete_stamp(row);
        let deleted = delete_stamp.commit();
        if deleted == 0 || deleted <= readers.oldest() {
            return deleted != 0;
        }
        if deleted > readers.since() {
            return false;
        }
        if Bug::VersionsOfNewerSnapshotsDropped.is_planted() {
            let oldest = ReadCommits::new(vec![readers.oldest()], readers.since());
            return !oldest.may_see(self.created(row), deleted);
        }
        let nobody_asks = delete_stamp.is_superseded()
            || deleted <= readers.oldest_writer()
            || Bug::NewestDeadVersionDropped.is_planted();
        nobody_asks && !readers.may_see(self.created(row), deleted)
    }

    /// How many rows a rewrite would drop because they are dead, how many more it would once
    /// readers to come begin later, and the commit by which the last of the dead died.
    #[must_use]
    pub fn count_droppable(&self, readers: &ReadCommits) -> (u64, u64, u64) {
        if self.dead_count() == 0 {
            return (0, 0, 0);
        }
        let later = readers.later();
        let (mut now, mut soon, mut newest) = (0, 0, 0);
        for row in 0..self.row_count() {
            newest = newest.max(self.deleted(row));
            if self.is_droppable(row, readers) {
                now += 1;
            } else if self.is_droppable(row, &later) {
                soon += 1;
            }
        }
        (now, soon, newest)
    }

    /// The commit by which the last of the dead rows died; 0 when there are none.
    #[must_use]
    pub fn newest_delete_stamp(&self) -> u64 {
        match self.dead_count() {
            0 => 0,
            _ => (0..self.row_count()).map(|row| self.deleted(row)).fold(0, u64::max),
        }
    }

    /// True when a row had died by a commit.
    #[must_use]
    pub fn has_dead_by(&self, commit: u64) -> bool {
        let had_died = |row| (1..=commit).contains(&self.deleted(row));
        self.dead_count() > 0 && (0..self.row_count()).any(had_died)
    }

    /// True when a rewrite would drop a row that had died by a commit.
    #[must_use]
    pub fn drops_dead_by(&self, commit: u64, readers: &ReadCommits) -> bool {
        let goes =
            |row| (1..=commit).contains(&self.deleted(row)) && self.is_droppable(row, readers);
        self.dead_count() > 0 && (0..self.row_count()).any(goes)
    }
}

#[cfg(test)]
mod tests {
    use super::DeleteStamp;

    #[test]
    fn a_word_tells_commit_and_successor() {
        let dead = DeleteStamp::deleted(7);
        assert_eq!((dead.commit(), dead.is_superseded()), (7, false));
        let superseded = DeleteStamp::from_word(dead.with_successor().word());
        assert_eq!((superseded.commit(), superseded.is_superseded()), (7, true));
        assert_eq!(superseded, DeleteStamp::replaced(7));
        let ended = DeleteStamp::ended(7).with_successor();
        assert_eq!((ended.commit(), ended.is_superseded(), ended.is_ended()), (7, true, true));
        assert!(!superseded.is_ended());
        assert_eq!(DeleteStamp::from_word(0).commit(), 0);
    }
}
