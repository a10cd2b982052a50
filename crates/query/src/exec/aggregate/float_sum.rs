//! Sums of floats that carry their rounding errors along (Knuth's two-sum), so that a sum is off
//! by little more than its last rounding, whatever the order of its terms.
//!
//! The order is fixed all the same: within a morsel, row `r` of a part goes to lane `r % 8`, and
//! lanes, then morsels, are added up in order. So the same rows in the same parts give the same
//! bits, however they are encoded, cut into batches or spread over threads.

use crate::evaluate::Selection;

/// A sum and what rounding has taken from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FloatSum {
    sum: f64,
    carry: f64,
}

impl FloatSum {
    pub(crate) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let shadow = sum - self.sum;
        self.carry += (self.sum - (sum - shadow)) + (value - shadow);
        self.sum = sum;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.add(other.sum);
        self.carry += other.carry;
    }

    pub(crate) fn value(self) -> f64 {
        // With infinities the carry is NaN and means nothing.
        if self.sum.is_finite() { self.sum + self.carry } else { self.sum }
    }
}

const LANES: usize = 8;

/// The sum of one group, in lanes that do not wait for each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FloatLanes {
    sums: [f64; LANES],
    carries: [f64; LANES],
}

impl FloatLanes {
    /// Adds the selected rows of a batch that starts at row `start` of its part. Rows that are
    /// NULL hold zero.
    pub(crate) fn add(&mut self, values: &[f64], selection: Selection<'_>, start: usize) {
        if let Selection::Rows(rows) = selection {
            for (row, value) in rows.iter().zip(values) {
                self.add_one(start + *row as usize, *value);
            }
            return;
        }
        let ahead = (start.next_multiple_of(LANES) - start).min(values.len());
        let (head, body) = values.split_at_checked(ahead).unwrap_or((values, &[]));
        for (i, value) in head.iter().enumerate() {
            self.add_one(start + i, *value);
        }
        let (chunks, rest) = body.as_chunks::<LANES>();
        let (mut sums, mut carries) = (self.sums, self.carries);
        for chunk in chunks {
            for ((sum, carry), value) in sums.iter_mut().zip(&mut carries).zip(chunk) {
                let new = *sum + value;
                let shadow = new - *sum;
                *carry += (*sum - (new - shadow)) + (value - shadow);
                *sum = new;
            }
        }
        (self.sums, self.carries) = (sums, carries);
        let end = start + values.len() - rest.len();
        for (i, value) in rest.iter().enumerate() {
            self.add_one(end + i, *value);
        }
    }

    fn add_one(&mut self, row: usize, value: f64) {
        let lane = row % LANES;
        if let (Some(sum), Some(carry)) = (self.sums.get_mut(lane), self.carries.get_mut(lane)) {
            let mut one = FloatSum { sum: *sum, carry: *carry };
            one.add(value);
            (*sum, *carry) = (one.sum, one.carry);
        }
    }

    /// The lanes added up, in order.
    pub(crate) fn total(&self) -> FloatSum {
        let mut total = FloatSum::default();
        for (sum, carry) in self.sums.iter().zip(&self.carries) {
            total.merge(FloatSum { sum: *sum, carry: *carry });
        }
        total
    }
}
