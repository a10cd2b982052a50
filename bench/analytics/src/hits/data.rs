//! The rows of hits: each is made from its number alone.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Result;
use crate::draws::Draws;
use crate::workload::Table;

/// Words of texts; the first are the most frequent.
const WORDS: [&str; 48] = [
    "garden", "shop", "news", "weather", "house", "phone", "travel", "music", "cheap", "photo",
    "video", "recipe", "school", "train", "ticket", "hotel", "winter", "summer", "river", "stone",
    "bread", "coffee", "mirror", "window", "carpet", "bicycle", "engine", "doctor", "island",
    "market", "painting", "letter", "kitchen", "guitar", "football", "planet", "forest", "bridge",
    "castle", "lantern", "ladder", "button", "garten", "über", "café", "été", "мир", "лес",
];
const COUNTRIES: [&str; 12] =
    ["DE", "US", "FR", "IN", "BR", "JP", "GB", "PL", "IT", "ES", "NL", "SE"];
const SCREENS: [(u32, u32); 8] = [
    (1920, 1080),
    (1366, 768),
    (1536, 864),
    (2560, 1440),
    (390, 844),
    (360, 800),
    (1280, 720),
    (3840, 2160),
];

/// The first second: 2024-03-01.
const START_SECONDS: u64 = 1_709_251_200;
/// The rows are of thirty days.
const SPAN_SECONDS: u64 = 30 * 86_400;

/// A word; the first are the most frequent.
fn word(draws: &mut Draws) -> &'static str {
    draws.pick(&WORDS, 2)
}

/// A text of some words, always the same for a number.
fn words(number: u64, most: u64) -> String {
    let mut draws = Draws::of(number ^ 0x5eed);
    let count = 1 + draws.below(most);
    (0..count).map(|_| word(&mut draws)).collect::<Vec<_>>().join(" ")
}

/// The address of a page.
fn address(page: u64) -> String {
    let mut draws = Draws::of(page ^ 0xadd);
    let host = draws.skewed(3_000, 3);
    let www = if host.is_multiple_of(3) { "www." } else { "" };
    let (site, section, name) = (word(&mut draws), word(&mut draws), word(&mut draws));
    format!("https://{www}{site}{host}.example/{section}/{name}-{page}")
}

/// Writes the file of the table.
pub fn write(table: &Table, directory: &Path, rows: u64) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(table.file(directory))?);
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    writeln!(file, "{}", names.join(","))?;
    for row in 0..rows {
        write_row(&mut file, row, rows)?;
    }
    file.flush()?;
    Ok(())
}

/// Writes a row; its values are in the order of the columns.
fn write_row(out: &mut impl Write, row: u64, rows: u64) -> Result<()> {
    let mut draws = Draws::of(row.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let watch_id = draws.next() >> 1;
    let past = u128::from(row) * u128::from(SPAN_SECONDS) / u128::from(rows);
    let seconds = u64::try_from(past)? + draws.below(900);
    let (date, time) = moment(START_SECONDS + seconds.min(SPAN_SECONDS - 1));
    let counter = draws.skewed(6_000, 3);
    let user = match draws.chance(50) {
        true => draws.skewed(rows / 6 + 1, 4),
        false => draws.below(rows / 6 + 1),
    };
    // What a user has is always the same.
    let mut own = Draws::of(user ^ 0x05e2);
    let user_id = own.next() >> 1;
    let client_ip = own.next() >> 32;
    let region = own.skewed(5_000, 3);
    let country = own.pick(&COUNTRIES, 2);
    let is_mobile = own.chance(35);
    let phone = if is_mobile { 1 + own.skewed(60, 2) } else { 0 };
    let model = if is_mobile && own.chance(60) { own.skewed(180, 2) + 1 } else { 0 };
    let (os, agent) = (own.skewed(40, 3), own.skewed(80, 3));
    let (width, height) = own.pick(&SCREENS, 2);
    let page = draws.skewed(rows / 4 + 1_000, 3);
    let url = address(page);
    let referer =
        if draws.chance(45) { address(draws.skewed(rows / 8 + 1_000, 4)) } else { String::new() };
    let searched = draws.chance(18);
    let phrase = if searched { words(draws.skewed(rows / 10 + 100, 3), 4) } else { String::new() };
    let engine = if searched { 1 + draws.skewed(30, 3) } else { 0 };
    let source = i64::try_from(draws.skewed(11, 2))? - 1;
    let adv = if draws.chance(4) { 1 + draws.skewed(18, 2) } else { 0 };
    let flags = [8, 12, 2].map(|percent| u8::from(draws.chance(percent)));
    let (shown_width, shown_height) =
        (draws.below(u64::from(width)), draws.below(u64::from(height)));
    let duration = draws.skewed(600_000, 4);
    let load = draws.share().powi(3) * 12.0;
    let cents = if draws.chance(10) { draws.skewed(10_000_000, 4) } else { 0 };
    write!(out, "{watch_id},{date} {time},{date},{counter},{user_id},{client_ip},{region},")?;
    write!(out, "\"{country}\",\"{url}\",\"{referer}\",\"{}\",\"{phrase}\",", words(page, 6))?;
    write!(out, "{engine},{source},{adv},{},{},{},", flags[0], flags[1], flags[2])?;
    write!(out, "{},{phone},\"", u8::from(is_mobile))?;
    if model > 0 {
        write!(out, "model {model}")?;
    }
    write!(out, "\",{os},{agent},{width},{height},{shown_width},{shown_height},")?;
    writeln!(out, "{duration},{load},{}.{:02}", cents / 100, cents % 100)?;
    Ok(())
}

/// Date and time of a second of March 2024.
fn moment(seconds: u64) -> (String, String) {
    let past = seconds - START_SECONDS;
    let (day, second) = (past / 86_400 + 1, past % 86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    (format!("2024-03-{day:02}"), format!("{hour:02}:{minute:02}:{:02}", second % 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column_and_is_always_the_same() {
        let line = |row| {
            let mut text = Vec::new();
            write_row(&mut text, row, 1_000).unwrap();
            String::from_utf8(text).unwrap()
        };
        for row in 0..1_000 {
            assert_eq!(line(row).split(',').count(), 30, "{}", line(row));
            assert_eq!(line(row), line(row));
        }
    }
}
