//! Bugs that can be switched on, so that a campaign can be seen to find each of them.
//!
//! Compiled only with the cargo feature `sabotage`; otherwise [`planted`] is a constant.

/// True when the environment variable `ESKER_SABOTAGE` names this bug, alone or in a list with
/// commas between. The variable is read once.
#[cfg(feature = "sabotage")]
#[must_use]
pub fn planted(name: &str) -> bool {
    static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let list = std::env::var("ESKER_SABOTAGE").unwrap_or_default();
        list.split(',').map(str::to_owned).collect()
    });
    names.iter().any(|n| n == name)
}

/// False: this build has no planted bugs.
#[cfg(not(feature = "sabotage"))]
#[must_use]
pub const fn planted(_name: &str) -> bool {
    false
}
