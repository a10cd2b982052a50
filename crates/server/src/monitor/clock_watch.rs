//! Telling the log when the machine's clock becomes suspect for a database, and when it agrees
//! again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use esker::ClockInfo;

use crate::auth::access_control::AccessControl;
use crate::tenant::TenantName;

/// How often the databases are looked at.
const EVERY: Duration = Duration::from_secs(5);

/// What was logged last of each database.
#[derive(Debug, Default)]
struct ClockWatch {
    suspect: BTreeMap<TenantName, bool>,
}

/// A change of what is known of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    BecameSuspect,
    AgreesAgain,
}

impl ClockWatch {
    fn note(&mut self, name: &TenantName, clock: &ClockInfo) -> Option<Change> {
        let before = self.suspect.insert(name.clone(), clock.is_suspect).unwrap_or_default();
        match (before, clock.is_suspect) {
            (false, true) => Some(Change::BecameSuspect),
            (true, false) => Some(Change::AgreesAgain),
            _ => None,
        }
    }
}

/// Looks at the clock of every open database now and then, for as long as the server runs, so that
/// a suspect one is known to the log, once per change.
pub async fn watch_clocks(access_control: Arc<AccessControl>) {
    let mut watch = ClockWatch::default();
    loop {
        for tenant in access_control.tenants.all_open() {
            let clock = tenant.database.clock();
            let (database, date_us) = (tenant.name.as_str(), clock.date_us);
            match watch.note(&tenant.name, &clock) {
                Some(Change::BecameSuspect) => {
                    let why = clock.warning().unwrap_or_default();
                    tracing::warn!(database, date_us, why, "the machine's clock is suspect");
                }
                Some(Change::AgreesAgain) => {
                    tracing::info!(database, date_us, "the machine's clock agrees again");
                }
                None => {}
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let (mut watch, name) = (ClockWatch::default(), TenantName::main());
        let clock = |is_suspect| ClockInfo { is_suspect, ..ClockInfo::default() };
        let told = [false, true, true, false, false, true].map(|is| watch.note(&name, &clock(is)));
        let (suspect, agrees) = (Some(Change::BecameSuspect), Some(Change::AgreesAgain));
        assert_eq!(told, [None, suspect, None, agrees, None, suspect]);
    }
}
