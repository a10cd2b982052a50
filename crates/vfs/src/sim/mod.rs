//! The simulated machine: one thread, seeded order, a faulty disk.
