//! The groups of a query, merged morsel by morsel: into one table while there are few, and in
//! partitions, some morsels at a time, once there are many.

use esker_format::Batch;

use super::{Groups, ManyGroups};
use crate::bind::Stage;
use crate::budget::Charge;
use crate::exec::aggregate::Accumulator;
use crate::{Options, Result};

/// From so many groups on, partitions pay.
const MANY: usize = 16 << 10;

/// Where a morsel has fewer groups than this, one table takes them as fast.
const MANY_OF_MORSEL: usize = 4 << 10;

/// How many groups wait to be merged at once, at the most.
const WAITING_MAX: usize = 512 << 10;

/// Groups that have been met, in the order of the rows.
pub(crate) struct Merging<'s, 'b> {
    few: Groups<'s>,
    many: Option<ManyGroups<'s>>,
    /// Groups of later morsels that are not merged yet, and what they take of the budget.
    waiting: Vec<Groups<'s>>,
    waiting_charges: Vec<Charge<'b>>,
    is_divisible: bool,
    held: Charge<'b>,
}

impl<'s, 'b> Merging<'s, 'b> {
    pub(crate) fn new(stage: &'s Stage, options: &'b Options) -> Self {
        let few = Groups::new(stage);
        let is_divisible =
            !stage.keys.is_empty() && few.accumulators.iter().all(Accumulator::is_divisible);
        let (waiting, waiting_charges) = (Vec::new(), Vec::new());
        Self {
            few,
            many: None,
            waiting,
            waiting_charges,
            is_divisible,
            held: options.memory().charge(),
        }
    }

    /// Adds the groups of later rows, and what they take of the budget.
    ///
    /// # Errors
    /// `OverBudget` when the groups need more memory than there is; when the query is to end.
    pub(crate) fn add(
        &mut self,
        other: Groups<'s>,
        charge: Charge<'b>,
        options: &Options,
    ) -> Result<()> {
        let are_many = self.few.len() >= MANY && other.len() >= MANY_OF_MORSEL;
        let is_many =
            self.many.is_some() || !self.waiting.is_empty() || self.is_divisible && are_many;
        if !is_many {
            self.few.merge(other);
            return self.held.set(self.few.bytes());
        }
        self.waiting.push(other);
        self.waiting_charges.push(charge);
        let waiting = self.waiting.iter().map(Groups::len).sum::<usize>();
        if waiting >= WAITING_MAX { self.merge_waiting(options) } else { Ok(()) }
    }

    fn merge_waiting(&mut self, options: &Options) -> Result<()> {
        let stage = self.few.stage;
        let many = match &mut self.many {
            Some(many) => many,
            None => {
                let few = std::mem::replace(&mut self.few, Groups::new(stage));
                self.waiting.insert(0, few);
                self.many.insert(ManyGroups::new(stage))
            }
        };
        many.merge(std::mem::take(&mut self.waiting), options)?;
        self.waiting_charges.clear();
        self.held.set(many.bytes())
    }

    /// The groups as rows: the keys, then the aggregates.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type; as [`Merging::add`].
    pub(crate) fn finish(mut self, options: &Options) -> Result<Vec<Batch>> {
        if !self.waiting.is_empty() {
            self.merge_waiting(options)?;
        }
        match self.many {
            Some(many) => many.finish(options),
            None => self.few.finish(options),
        }
    }
}
