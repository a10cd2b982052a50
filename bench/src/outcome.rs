//! What one run of a row gave.

/// When a figure is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// No figure is asked for: it is only told.
    Told,
}

impl Goal {
    pub(crate) fn is_reached(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Told => true,
        }
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    RowsPerSecond,
    /// Of operations.
    PerSecond,
    Seconds,
    Nanoseconds,
    Microseconds,
    Bytes,
    Count,
    /// A multiple of something measured in the same run.
    Times,
}

impl Unit {
    /// What a value counts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RowsPerSecond => "rows/s",
            Self::PerSecond => "operations/s",
            Self::Seconds => "s",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Times => "times",
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::RowsPerSecond if value >= 1e9 => format!("{:.2} G rows/s", value / 1e9),
            Self::RowsPerSecond if value >= 1e6 => format!("{:.2} M rows/s", value / 1e6),
            Self::RowsPerSecond => format!("{:.1} k rows/s", value / 1e3),
            Self::PerSecond => format!("{:.1} k/s", value / 1e3),
            Self::Seconds => format!("{value:.3} s"),
            Self::Nanoseconds => format!("{value:.0} ns"),
            Self::Microseconds => format!("{value:.1} µs"),
            Self::Bytes if value.abs() >= 1e9 => format!("{:.3} GB", value / 1e9),
            Self::Bytes if value.abs() >= 1024.0 * 1024.0 => {
                format!("{:.1} MiB", value / 1024.0 / 1024.0)
            }
            Self::Bytes if value.abs() >= 1024.0 => format!("{:.0} KiB", value / 1024.0),
            Self::Bytes => format!("{value:.1} B"),
            Self::Count => format!("{value:.0}"),
            Self::Times => format!("{value:.2} ×"),
        }
    }
}

/// A figure that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// What it is, within its row; empty when the row has one figure.
    pub(crate) figure: &'static str,
    pub(crate) goal: Goal,
    pub(crate) unit: Unit,
    /// The physical limit it stands beside, in words; empty when there is none.
    pub(crate) limit: &'static str,
}

/// A figure that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) value: f64,
    /// The physical limit in the same unit.
    pub(crate) limit: Option<f64>,
    /// In place of the goal of the row, where it depends on the machine.
    pub(crate) goal: Option<Goal>,
}

/// One run of a row: a measure for every figure asked for, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) measures: Vec<Measure>,
    pub(crate) segments: Option<usize>,
    pub(crate) notes: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(value: f64, limit: f64) -> Self {
        Self::default().and(value, Some(limit))
    }

    pub(crate) fn and(mut self, value: f64, limit: Option<f64>) -> Self {
        self.measures.push(Measure { value, limit, goal: None });
        self
    }

    pub(crate) fn and_with_goal(mut self, value: f64, limit: f64, goal: Goal) -> Self {
        self.measures.push(Measure { value, limit: Some(limit), goal: Some(goal) });
        self
    }

    pub(crate) fn segments(mut self, segments: usize) -> Self {
        self.segments = Some(segments);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// In one line, while the benchmark runs.
    pub(crate) fn line(&self) -> String {
        let numbers = self.measures.iter().map(|m| format!("{:.6}", m.value).to_owned());
        let numbers: Vec<String> = numbers.map(|n| trim_zeros(&n)).collect();
        let mut line = numbers.join(", ");
        for note in &self.notes {
            line.push_str("; ");
            line.push_str(note);
        }
        line
    }
}

fn trim_zeros(number: &str) -> String {
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The middle one, or the mean of the middle two. Zero when there is none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or_default();
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => at(middle),
        _ if sorted.is_empty() => 0.0,
        _ => f64::midpoint(at(middle - 1), at(middle)),
    }
}

/// The value that a share of all does not pass, in percent. Sorts.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let position = values.len().saturating_sub(1) * percent / 100;
    values.get(position).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 99), 99.0);
        assert_eq!(percentile(&mut values, 50), 50.0);
    }

    #[test]
    fn goals_are_reached_from_their_side() {
        assert!(Goal::AtLeast(2.0).is_reached(2.0) && !Goal::AtLeast(2.0).is_reached(1.9));
        assert!(Goal::AtMost(2.0).is_reached(2.0) && !Goal::AtMost(2.0).is_reached(2.1));
    }

    #[test]
    fn values_are_shown_with_their_unit() {
        assert_eq!(Unit::RowsPerSecond.show(3.5e6), "3.50 M rows/s");
        assert_eq!(Unit::RowsPerSecond.show(1.5e9), "1.50 G rows/s");
        assert_eq!(Unit::Bytes.show(65_536.0), "64 KiB");
        assert_eq!(Unit::Bytes.show(8.0), "8.0 B");
        assert_eq!(Unit::Nanoseconds.show(449.6), "450 ns");
    }

    #[test]
    fn a_line_has_all_figures() {
        let outcome = Outcome::of(1.5, 2.0).and(3.0, None).note("noted");
        assert_eq!(outcome.line(), "1.5, 3; noted");
        assert_eq!(Outcome::default().and(100.0, None).line(), "100");
    }
}
