//! A chart of medians: a bar for each value, as long as its share of the greatest of its group.

use std::fmt::Write;

const COLOURS: [&str; 7] =
    ["#1b6ca8", "#9aa5b1", "#c08552", "#6a994e", "#bc4749", "#7b6d8d", "#e0a458"];
/// Where bars begin; their names end before it.
const LEFT: f64 = 156.0;
const LONGEST: f64 = 480.0;

/// Values of one unit, each with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they are of.
    pub name: String,
    /// What they count.
    pub unit: &'static str,
    /// The values, by name.
    pub values: Vec<(String, f64)>,
}

/// The chart as SVG.
pub fn svg(groups: &[Group]) -> String {
    let bars: usize = groups.iter().map(|group| group.values.len()).sum();
    let height = 40 + groups.len() * 34 + bars * 14;
    let mut out = String::new();
    let size = format!("width='760' height='{height}'");
    let font = "font-family='sans-serif' font-size='11'";
    let _ = writeln!(out, "<svg xmlns='http://www.w3.org/2000/svg' {size} {font}>");
    let _ = writeln!(out, "<rect width='100%' height='100%' fill='white'/>");
    let mut y = 24;
    for Group { name, unit, values } in groups {
        let best = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(out, "<text x='10' y='{y}' font-weight='bold'>{name} ({unit})</text>");
        y += 8;
        for ((name, value), colour) in values.iter().zip(COLOURS.iter().cycle()) {
            let width = value / best * LONGEST;
            let _ = writeln!(
                out,
                "<text x='{:.0}' y='{}' text-anchor='end'>{name}</text>\
                 <rect x='{LEFT:.0}' y='{y}' width='{width:.1}' height='11' fill='{colour}'/>\
                 <text x='{:.1}' y='{}'>{value:.1}</text>",
                LEFT - 6.0,
                y + 9,
                LEFT + 6.0 + width,
                y + 9
            );
            y += 14;
        }
        y += 26;
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_the_greatest_value() {
        let values = vec![("ours".to_owned(), 50.0), ("theirs".to_owned(), 100.0)];
        let drawn = svg(&[Group { name: "a".to_owned(), unit: "k/s", values }]);
        assert!(drawn.contains(">a (k/s)<") && drawn.contains("text-anchor='end'>theirs<"));
        assert!(drawn.contains("width='240.0'") && drawn.contains("width='480.0'"), "{drawn}");
    }
}
