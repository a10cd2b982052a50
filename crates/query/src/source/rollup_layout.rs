//! The columns of what is kept of a rollup for one segment.
//!
//! ```text
//! column    0      1       2      3      4            5          6
//!           hour   model   rows   first  count(cost)  sum(cost)  greatest(ms) …
//!           └── keys ──┘                 └─ of each operand: count, then what is kept of it ─┘
//! ```
//!
//! Each row is a group, by rising keys, NULL last. Sums are whole numbers of the last digit. The
//! first row of a group is the place of groups in an answer: that in which rows are met.

use esker_format::DataType;
use esker_format::schema::RollupOperand;

/// How sums are kept: no segment has so many rows that one has more digits.
const SUM: DataType = DataType::Decimal { precision: 38, scale: 0 };

/// Where the columns are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupLayout {
    types: Vec<DataType>,
    rows: usize,
    operands: Vec<OperandColumns>,
}

/// The columns of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandColumns {
    /// How many values are not NULL.
    pub count: usize,
    /// Their sums.
    pub sum: Option<usize>,
    /// The least values.
    pub least: Option<usize>,
    /// The greatest values.
    pub greatest: Option<usize>,
}

impl RollupLayout {
    /// Of keys and operands with these types.
    #[must_use]
    pub fn new(keys: &[DataType], operands: &[(RollupOperand, DataType)]) -> Self {
        let (mut types, rows) = (keys.to_vec(), keys.len());
        types.extend([DataType::U32; 2]);
        let mut columns = Vec::with_capacity(operands.len());
        for (operand, data_type) in operands {
            let mut next = |is_kept: bool, data_type: DataType| {
                is_kept.then(|| {
                    types.push(data_type);
                    types.len() - 1
                })
            };
            let Some(count) = next(true, DataType::U32) else { continue };
            let sum = next(operand.sum, SUM);
            let least = next(operand.least, *data_type);
            let greatest = next(operand.greatest, *data_type);
            columns.push(OperandColumns { count, sum, least, greatest });
        }
        Self { types, rows, operands: columns }
    }

    /// The types of all columns.
    #[must_use]
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The column with how many rows a group has: behind the keys.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column with the number of the first row of a group.
    #[must_use]
    pub fn first(&self) -> usize {
        self.rows + 1
    }

    /// The columns of each operand.
    #[must_use]
    pub fn operands(&self) -> &[OperandColumns] {
        &self.operands
    }

    /// The type of a column; `None` where there is none.
    #[must_use]
    pub fn type_of(&self, column: usize) -> Option<DataType> {
        self.types.get(column).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::FieldId;

    #[test]
    fn each_operand_has_a_count_and_what_is_kept() {
        let counted = RollupOperand::counted(FieldId(3));
        let all = RollupOperand { sum: true, least: true, greatest: true, ..counted };
        let layout = RollupLayout::new(
            &[DataType::Timestamp, DataType::Text],
            &[(all, DataType::I32), (counted, DataType::Bool)],
        );
        assert_eq!(layout.rows(), 2);
        let [of_all, of_counted] = layout.operands() else { panic!("two operands") };
        assert_eq!((of_all.count, of_all.sum, of_all.greatest), (4, Some(5), Some(7)));
        assert_eq!((of_counted.count, of_counted.sum), (8, None));
        assert_eq!(layout.types().len(), 9);
        assert_eq!(layout.type_of(5), Some(SUM));
    }
}
