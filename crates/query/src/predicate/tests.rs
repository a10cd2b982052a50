//! Patterns, conditions, and what zone maps say of them.
