//! How answers look: `\x`, `\pset`, `\timing`, `\timeout`.

use esker_format::suggest::near_or_all;

use super::session::{Next, Session};
use crate::arguments::Format;
use crate::failure::{Failure, Result};
use crate::sql::Settings;
use crate::{Console, units};

/// One thing that `\pset` sets.
pub(super) struct Setting {
    pub(super) name: &'static str,
    get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<()>,
}

pub(super) const SETTINGS: [Setting; 6] = [
    Setting {
        name: "format",
        get: |settings| match settings.format {
            Some(Format::Csv) => "csv".to_owned(),
            Some(Format::Json) => "json".to_owned(),
            Some(Format::Table) | None => "table".to_owned(),
        },
        set: |settings, text| {
            settings.format = Some(match text {
                "table" => Format::Table,
                "csv" => Format::Csv,
                "json" => Format::Json,
                _ => return Err(expected("table, csv or json", text)),
            });
            Ok(())
        },
    },
    Setting {
        name: "null",
        get: |settings| format!("{:?}", settings.style.null),
        set: |settings, text| {
            settings.style.null = unquoted(text).to_owned();
            Ok(())
        },
    },
    Setting {
        name: "types",
        get: |settings| on_or_off(settings.style.types),
        set: |settings, text| switch(&mut settings.style.types, text),
    },
    Setting {
        name: "counts",
        get: |settings| on_or_off(settings.style.counts),
        set: |settings, text| switch(&mut settings.style.counts, text),
    },
    Setting {
        name: "rows",
        get: |settings| match settings.style.rows_max {
            usize::MAX => "all".to_owned(),
            most => units::count(most as u64),
        },
        set: |settings, text| {
            settings.style.rows_max = match text {
                "all" => usize::MAX,
                _ => text.parse().map_err(|_| expected("a number, or all", text))?,
            };
            Ok(())
        },
    },
    Setting {
        name: "expanded",
        get: |settings| on_or_off(settings.style.expanded),
        set: |settings, text| switch(&mut settings.style.expanded, text),
    },
];

fn expected(what: &str, found: &str) -> Failure {
    Failure::usage(format!("expected {what}, found {found:?}"))
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on".to_owned() } else { "off".to_owned() }
}

/// Sets a switch; turns it over where nothing is said.
fn switch(switch: &mut bool, text: &str) -> Result<()> {
    *switch = match text {
        "" => !*switch,
        "on" => true,
        "off" => false,
        _ => return Err(expected("on or off", text)),
    };
    Ok(())
}

/// A text without the quotes around it.
fn unquoted(text: &str) -> &str {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"')).unwrap_or(text)
}

impl Session {
    pub(super) fn expand(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        switch(&mut self.settings.style.expanded, rest)?;
        let state = on_or_off(self.settings.style.expanded);
        writeln!(console.out, "expanded is {state}")?;
        Ok(Next::Line)
    }

    pub(super) fn time(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        switch(&mut self.settings.timing, rest)?;
        writeln!(console.out, "timing is {}", on_or_off(self.settings.timing))?;
        Ok(Next::Line)
    }

    /// Sets or shows how long a statement may take.
    pub(super) fn set_timeout(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let timeout = &mut self.settings.limits.timeout;
        match rest {
            "" => {}
            "off" => *timeout = None,
            time => *timeout = Some(units::parse_duration(time).map_err(Failure::usage)?),
        }
        match timeout {
            Some(time) => writeln!(console.out, "timeout is {}", units::duration(*time))?,
            None => writeln!(console.out, "timeout is off")?,
        }
        Ok(Next::Line)
    }

    /// Sets one thing, or shows one, or all.
    pub(super) fn set_look(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            for setting in &SETTINGS {
                writeln!(console.out, "{:10}{}", setting.name, (setting.get)(&self.settings))?;
            }
            return Ok(Next::Line);
        }
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let near = near_or_all(name, "it sets", SETTINGS.iter().map(|setting| setting.name));
            return Err(Failure::usage(format!(r"\pset {name}: no such setting{near}")));
        };
        if !value.is_empty() {
            (setting.set)(&mut self.settings, value.trim())?;
        }
        writeln!(console.out, "{name} is {}", (setting.get)(&self.settings))?;
        Ok(Next::Line)
    }
}
