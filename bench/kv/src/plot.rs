//! A chart of the medians: a bar a store and row, as long as its share of the row's best.

use std::fmt::Write;

use crate::report::Report;

const COLOURS: [&str; 7] =
    ["#1b6ca8", "#9aa5b1", "#c08552", "#6a994e", "#bc4749", "#7b6d8d", "#e0a458"];

/// The chart as SVG.
pub fn svg(report: &Report) -> String {
    let rows = report.medians();
    let bars: usize = rows.iter().map(|(_, _, values)| values.len()).sum();
    let height = 40 + rows.len() * 34 + bars * 14;
    let mut out = String::new();
    let size = format!("width='760' height='{height}'");
    let font = "font-family='sans-serif' font-size='11'";
    let _ = writeln!(out, "<svg xmlns='http://www.w3.org/2000/svg' {size} {font}>");
    let _ = writeln!(out, "<rect width='100%' height='100%' fill='white'/>");
    let mut y = 24;
    for (row, unit, values) in rows {
        let best = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(out, "<text x='10' y='{y}' font-weight='bold'>{row} ({unit})</text>");
        y += 8;
        for (at, (store, value)) in values.iter().enumerate() {
            let width = value / best * 480.0;
            let colour = COLOURS[at % COLOURS.len()];
            let _ = writeln!(
                out,
                "<text x='60' y='{}' text-anchor='end'>{store}</text>\
                 <rect x='66' y='{y}' width='{width:.1}' height='11' fill='{colour}'/>\
                 <text x='{:.1}' y='{}'>{value:.1}</text>",
                y + 9,
                72.0 + width,
                y + 9
            );
            y += 14;
        }
        y += 26;
    }
    out.push_str("</svg>\n");
    out
}
