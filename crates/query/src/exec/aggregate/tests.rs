//! Sums are exact or compensated, and extremes agree with the order of values.
