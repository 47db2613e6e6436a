//! SVG bar charts with real text, a transparent background and a figure next to each bar.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 80.0;
const TOP: f64 = 48.0;
const BAR_HEIGHT: f64 = 18.0;
const GAP: f64 = 14.0;

/// Colors with sufficient contrast on light and dark pages. Series are also labeled in the legend.
const STYLE: &str = "\
.qm-chart text{font:13px system-ui,sans-serif;fill:#1f2328}.qm-chart .title{font-size:16px;font-weight:600}\
.qm-chart .s0{fill:#57606a}.qm-chart .s1{fill:#0969da}.qm-chart .s2{fill:#1a7f37}.qm-chart .s3{fill:#9a6700}\
.qm-chart .axis{stroke:#8c959f;stroke-width:1}\
@media(prefers-color-scheme:dark){.qm-chart text{fill:#e6edf3}.qm-chart .s0{fill:#9198a1}\
.qm-chart .s1{fill:#4493f8}.qm-chart .s2{fill:#3fb950}.qm-chart .s3{fill:#d29922}}";

/// Bar chart of shares between 0 and 1, grouped, with one bar per series in each group.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// Title of the chart.
    pub title: String,
    /// Names of the series.
    pub series: Vec<String>,
    /// Groups: a name and one value per series; `None` if there is no value.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

impl BarChart {
    /// Renders the chart as SVG.
    pub fn svg(&self) -> String {
        let legend = if self.series.len() > 1 { 24.0 } else { 0.0 };
        let bars: usize = self.groups.iter().map(|(_, values)| values.len()).sum();
        let height = TOP + legend + bars as f64 * BAR_HEIGHT + self.groups.len() as f64 * GAP + 16.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\" class=\"qm-chart\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <style>{STYLE}</style>\n<text class=\"title\" x=\"16\" y=\"28\">{}</text>\n",
            escape(&self.title),
            escape(&self.description()),
            escape(&self.title),
        );
        if legend > 0.0 {
            let mut x = LEFT;
            for (i, name) in self.series.iter().enumerate() {
                let y = TOP - 6.0;
                append(
                    &mut svg,
                    format_args!("<rect class=\"s{}\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\"/>\n", i % 4),
                );
                append(&mut svg, format_args!("<text x=\"{}\" y=\"{}\">{}</text>\n", x + 18.0, y + 11.0, escape(name)));
                x += 40.0 + 8.0 * name.chars().count() as f64;
            }
        }
        let (start, mut y) = (TOP + legend, TOP + legend);
        for (name, values) in &self.groups {
            let middle = y + values.len() as f64 * BAR_HEIGHT / 2.0 + 4.5;
            let (x, name) = (LEFT - 10.0, escape(name));
            append(&mut svg, format_args!("<text x=\"{x}\" y=\"{middle}\" text-anchor=\"end\">{name}</text>\n"));
            for (i, value) in values.iter().enumerate() {
                let share = value.filter(|value| value.is_finite()).unwrap_or(0.0).clamp(0.0, 1.0);
                let width = ((WIDTH - LEFT - RIGHT) * share * 10.0).round() / 10.0;
                let (class, bar) = (i % 4, BAR_HEIGHT - 3.0);
                append(
                    &mut svg,
                    format_args!(
                        "<rect class=\"s{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"{bar}\"/>\n"
                    ),
                );
                let (x, low, figure) = (LEFT + width + 6.0, y + 12.0, format_percent(*value));
                append(&mut svg, format_args!("<text x=\"{x}\" y=\"{low}\">{figure}</text>\n"));
                y += BAR_HEIGHT;
            }
            y += GAP;
        }
        let (top, end) = (start - 4.0, y - GAP + 4.0);
        append(
            &mut svg,
            format_args!("<line class=\"axis\" x1=\"{LEFT}\" y1=\"{top}\" x2=\"{LEFT}\" y2=\"{end}\"/>\n"),
        );
        svg + "</svg>\n"
    }

    /// Returns the text alternative for screen readers.
    fn description(&self) -> String {
        let group = |(name, values): &(String, Vec<Option<f64>>)| {
            let figures =
                values.iter().zip(&self.series).map(|(value, series)| format!("{series} {}", format_percent(*value)));
            format!("{name}: {}", figures.collect::<Vec<_>>().join(", "))
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }
}

fn format_percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), |value| format!("{:.1} %", value * 100.0))
}

/// Appends to the SVG; writing to a string cannot fail.
fn append(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    svg.write_fmt(piece).ok();
}

/// Escapes text for XML, and drops characters that XML does not allow.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(' '),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {}
            other => out.push(other),
        }
    }
    out
}
