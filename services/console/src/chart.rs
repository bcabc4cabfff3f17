//! Charts: columns, lines and bars as SVG. Places are in percent and sizes of texts in pixels, so that a chart fits every width and
//! stays readable.

use crate::show::{Html, count, escape};

/// Pixels that a chart is high, without the labels below it.
const HEIGHT: f64 = 130.0;
/// Labels below a chart, at most.
const LABELS: usize = 6;
/// Fewer columns are no wider than so many would be.
const FEW: usize = 12;

#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Written below.
    pub(crate) label: String,
    /// One number for each series.
    pub(crate) parts: Vec<u64>,
}

/// Draws columns of parts that stand on one another. `series` names the parts; the first has colour 0.
pub(crate) fn columns(about: &str, series: &[(&str, &str)], columns: &[Column]) -> Html {
    let most = columns.iter().map(|column| column.parts.iter().sum::<u64>()).max().unwrap_or(0);
    let top = nice(most);
    let (mut svg, scale) = frame(about, top, count);
    let width = 100.0 / real(columns.len().max(FEW));
    for (n, column) in columns.iter().enumerate() {
        let x = width * real(n);
        let mut y = HEIGHT;
        let parts = column.parts.iter().zip(series).filter(|(part, _)| **part > 0);
        let told = told(parts.map(|(part, (name, _))| format!("{} {name}", count(*part))));
        svg += &format!(
            "<g><title>{}: {}</title><rect x=\"{x:.2}%\" y=\"0\" width=\"{width:.2}%\" height=\"{HEIGHT}\" fill=\"transparent\"/>",
            escape(&column.label),
            escape(&told)
        );
        for (part, (_, colour)) in column.parts.iter().zip(series).filter(|(part, _)| **part > 0) {
            let height = (ratio(*part, top) * (HEIGHT - 14.0)).max(1.0);
            y -= height;
            svg += &format!(
                "<rect class=\"{colour}\" x=\"{:.2}%\" y=\"{y:.1}\" width=\"{:.2}%\" height=\"{height:.1}\"/>",
                x + width * 0.12,
                width * 0.76
            );
        }
        svg += "</g>";
    }
    svg += &scale;
    svg += &labels(columns.iter().map(|column| column.label.as_str()), columns.len());
    svg += "</svg>";
    Html(format!("<figure class=\"chart\">{svg}{}</figure>", legend(series)))
}

/// Draws a line for each series over the same labels; `None` is a gap.
pub(crate) fn lines(
    about: &str,
    series: &[(&str, &str, Vec<Option<u64>>)],
    names: &[String],
    unit: fn(u64) -> String,
) -> Html {
    let most = series.iter().flat_map(|(.., values)| values.iter().flatten()).max().copied().unwrap_or(0);
    let top = nice(most);
    let (mut svg, scale) = frame(about, top, unit);
    let step = 100.0 / real(names.len().max(FEW));
    svg += &format!(
        "<svg x=\"0\" y=\"0\" width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 100 {HEIGHT}\" preserveAspectRatio=\"none\">"
    );
    for (_, colour, values) in series {
        let mut path = String::new();
        let mut pen = 'M';
        for (n, value) in values.iter().enumerate() {
            match value {
                None => pen = 'M',
                Some(value) => {
                    let (x, y) = (step * (real(n) + 0.5), HEIGHT - ratio(*value, top) * (HEIGHT - 14.0));
                    path += &format!("{pen}{x:.2} {y:.1} ");
                    pen = 'L';
                }
            }
        }
        svg += &format!("<path class=\"line {colour}\" d=\"{path}\" vector-effect=\"non-scaling-stroke\"/>");
    }
    svg += "</svg>";
    for (n, name) in names.iter().enumerate() {
        let told = told(series.iter().filter_map(|(what, _, values)| {
            values.get(n).copied().flatten().map(|value| format!("{what} {}", unit(value)))
        }));
        svg += &format!(
            "<rect x=\"{:.2}%\" y=\"0\" width=\"{step:.2}%\" height=\"{HEIGHT}\" fill=\"transparent\"><title>{}: {}</title></rect>",
            step * real(n),
            escape(name),
            escape(&told)
        );
        // A point on its own has no line.
        for (_, colour, values) in series {
            let alone = |at: usize| values.get(at).copied().flatten().is_none();
            if let Some(value) = values.get(n).copied().flatten()
                && alone(n + 1)
                && (n == 0 || alone(n - 1))
            {
                let (x, y) = (step * (real(n) + 0.5), HEIGHT - ratio(value, top) * (HEIGHT - 14.0));
                svg += &format!("<circle class=\"dot {colour}\" cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"3.5\"/>");
            }
        }
    }
    svg += &scale;
    svg += &labels(names.iter().map(String::as_str), names.len());
    svg += "</svg>";
    let names: Vec<(&str, &str)> = series.iter().map(|(name, colour, _)| (*name, *colour)).collect();
    Html(format!("<figure class=\"chart\">{svg}{}</figure>", legend(&names)))
}

/// Draws shares of a whole as one bar.
pub(crate) fn meter(parts: &[(&str, u64, &str)]) -> Html {
    let whole: u64 = parts.iter().map(|(_, part, _)| part).sum();
    let there = || parts.iter().filter(|(_, part, _)| *part > 0);
    let told = told(there().map(|(name, part, _)| format!("{} {name}", count(*part))));
    let mut svg = format!("<svg class=\"meter\" role=\"img\" aria-label=\"{}\">", escape(&told));
    let mut x = 0.0;
    for (name, part, colour) in there() {
        let width = ratio(*part, whole) * 100.0;
        svg += &format!(
            "<rect class=\"{colour}\" x=\"{x:.2}%\" y=\"0\" width=\"{width:.2}%\" height=\"100%\"><title>{} {name}</title></rect>",
            count(*part)
        );
        x += width;
    }
    svg += "</svg>";
    Html(svg)
}

/// Says a part of a chart to who cannot see it.
fn told(parts: impl Iterator<Item = String>) -> String {
    let told = parts.collect::<Vec<_>>().join(", ");
    if told.is_empty() { "nothing".to_owned() } else { told }
}

/// Returns the beginning of a chart, and the numbers of its scale, which come last: no column covers them.
fn frame(about: &str, top: u64, unit: fn(u64) -> String) -> (String, String) {
    let mut scale = String::new();
    let mut svg = format!("<svg role=\"img\" aria-label=\"{}\" height=\"{}\">", escape(about), HEIGHT + 20.0);
    for half in [0_u64, 1, 2] {
        let y = HEIGHT - (HEIGHT - 14.0) * ratio(half, 2);
        svg += &format!("<line class=\"grid-line\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        if half > 0 && top > 1 {
            scale += &format!("<text x=\"0\" y=\"{:.1}\">{}</text>", y - 3.0, escape(&unit(top * half / 2)));
        }
    }
    (svg, scale)
}

fn labels<'a>(names: impl Iterator<Item = &'a str>, all: usize) -> String {
    let every = all.div_ceil(LABELS).max(1);
    let width = 100.0 / real(all.max(FEW));
    let shown = names.enumerate().filter(|(n, _)| n % every == 0);
    shown
        .map(|(n, name)| {
            format!("<text x=\"{:.2}%\" y=\"{}\">{}</text>", width * (real(n) + 0.12), HEIGHT + 15.0, escape(name))
        })
        .collect()
}

fn legend(series: &[(&str, &str)]) -> String {
    let one = |(name, colour): &(&str, &str)| {
        let shape = if colour.starts_with('l') {
            format!("<line class=\"line {colour}\" x2=\"10\" y1=\"5\" y2=\"5\"/>")
        } else {
            format!("<rect class=\"{colour}\" width=\"10\" height=\"10\"/>")
        };
        format!("<span><svg aria-hidden=\"true\">{shape}</svg>{}</span>", escape(name))
    };
    format!("<figcaption class=\"legend\">{}</figcaption>", series.iter().map(one).collect::<String>())
}

/// Returns the next larger number of one digit, or of one and a half.
fn nice(most: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 4, 6, 8] {
            if unit.saturating_mul(step) >= most {
                return unit.saturating_mul(step).max(1);
            }
        }
        unit = unit.saturating_mul(10);
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    real_u64(part) / real_u64(whole.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a place on a chart")]
const fn real_u64(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a place on a chart")]
const fn real(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_a_round_number() {
        for (most, top) in [(0, 1), (1, 1), (3, 4), (7, 8), (9, 10), (41, 60), (999, 1_000), (u64::MAX, u64::MAX)] {
            assert_eq!(nice(most), top, "{most}");
        }
    }

    #[test]
    fn every_column_tells_its_numbers() {
        let series = [("succeeded", "c4"), ("failed", "c1")];
        let html = columns("Calls", &series, &[Column { label: "10:00".to_owned(), parts: vec![1_200, 3] }]).0;
        assert!(html.contains("<title>10:00: 1\u{202f}200 succeeded, 3 failed</title>"), "{html}");
    }
}
