//! What a history came to.

use super::cycles;
use super::inference::Inference;
use super::{Anomaly, Finding, History, Level};

/// How many findings of a name are kept with all they say.
pub(super) const KEPT: usize = 8;

/// The anomalies of a history, counted by name, with a few of each.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    counts: [u64; Anomaly::ALL.len()],
    findings: Vec<Finding>,
}

impl Verdict {
    /// How often an anomaly was found. Cycles are counted up to a limit for each component of
    /// transactions that depend on each other in circles.
    #[must_use]
    pub fn count(&self, anomaly: Anomaly) -> u64 {
        self.counts.get(anomaly as usize).copied().unwrap_or_default()
    }

    /// The anomalies found, each with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Anomaly, u64)> {
        Anomaly::ALL.into_iter().map(|a| (a, self.count(a))).filter(|(_, count)| *count > 0)
    }

    /// Those that a level forbids.
    pub fn forbidden(&self, level: Level) -> impl Iterator<Item = (Anomaly, u64)> {
        self.counts().filter(move |(anomaly, _)| level.forbids(*anomaly))
    }

    /// The first few findings of each name.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Adds another's findings to the counts; their transactions are those of another history.
    pub fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Counts an anomaly, and keeps it if it is one of the first of its name.
    pub(super) fn add(&mut self, anomaly: Anomaly, finding: impl FnOnce() -> Finding) {
        let Some(count) = self.counts.get_mut(anomaly as usize) else { return };
        *count += 1;
        if *count <= KEPT as u64 {
            self.findings.push(finding());
        }
    }

    /// Counts what one key shows.
    pub(super) fn add_plain(
        &mut self,
        anomaly: Anomaly,
        transactions: &[u32],
        what: impl FnOnce() -> String,
    ) {
        self.add(anomaly, || Finding {
            anomaly,
            transactions: transactions.to_vec(),
            cycle: Vec::new(),
            what: what(),
        });
    }

    /// The counts on one line: `write skew 12, G2-item 3`.
    #[must_use]
    pub fn summary(&self) -> String {
        let parts: Vec<_> = self.counts().map(|(name, count)| format!("{name} {count}")).collect();
        if parts.is_empty() { "no anomaly".to_owned() } else { parts.join(", ") }
    }
}

impl History {
    /// Finds the anomalies of the history, whatever its transactions were promised.
    #[must_use]
    pub fn judge(&self) -> Verdict {
        let Inference { graph, verdict, keys } = Inference::of(self);
        cycles::find(self, &graph, &keys, verdict)
    }

    /// What a level forbids, each with its transactions; empty when it keeps what it promises.
    #[must_use]
    pub fn failures(&self, verdict: &Verdict, level: Level) -> String {
        let forbidden = verdict.findings.iter().filter(|found| level.forbids(found.anomaly));
        forbidden.map(|found| found.shown(self)).collect()
    }
}
