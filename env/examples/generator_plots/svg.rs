//! Line plots and grouped bars as small SVG files that look after themselves: white ground, no scripts, no fonts.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
/// Six colours that stay apart under the common colour-vision deficiencies (Okabe and Ito).
const COLOURS: [&str; 6] = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

/// One axis.
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    title: &'static str,
}

impl Axis {
    /// Equal differences at equal distances.
    pub fn linear(low: f64, high: f64, title: &'static str) -> Axis {
        let is_log = false;
        Axis {
            low,
            high,
            is_log,
            title,
        }
    }

    /// Equal ratios at equal distances, for times in seconds.
    pub fn log(low: f64, high: f64, title: &'static str) -> Axis {
        let is_log = true;
        Axis {
            low,
            high,
            is_log,
            title,
        }
    }

    /// Position of a value, 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let (low, high, value) = if self.is_log {
            (self.low.ln(), self.high.ln(), value.max(self.low).ln())
        } else {
            (self.low, self.high, value)
        };
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        const TIMES: [(f64, &str); 7] = [
            (1.0, "1 s"),
            (60.0, "1 min"),
            (600.0, "10 min"),
            (3600.0, "1 h"),
            (86_400.0, "1 d"),
            (604_800.0, "7 d"),
            (5_184_000.0, "60 d"),
        ];
        if self.is_log {
            return TIMES.map(|(value, label)| (value, label.to_string())).to_vec();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|step| step * power >= rough * 0.999);
        let step = step.unwrap_or(10.0) * power;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let count = ((self.high - self.low) / step + 1e-9).floor() as usize;
        let value = |tick: usize| self.low + tick as f64 * step;
        (0..=count)
            .map(|tick| (value(tick), format!("{:.decimals$}", value(tick))))
            .collect()
    }
}

/// A plot to draw into.
pub struct Plot {
    x: Axis,
    y: Axis,
    title: String,
    body: String,
    /// Whether the horizontal axis has ticks of its own; bars write their names instead.
    has_ticks: bool,
    num_series: usize,
}

impl Plot {
    pub fn new(title: &str, x: Axis, y: Axis) -> Plot {
        Plot {
            x,
            y,
            title: title.to_string(),
            body: String::new(),
            has_ticks: true,
            num_series: 0,
        }
    }

    fn px(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn py(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn legend(&mut self, name: &str, mark: &str) {
        let y = TOP + 8.0 + 18.0 * self.num_series as f64;
        let x = WIDTH - RIGHT + 14.0;
        let _ = writeln!(
            self.body,
            "<g transform=\"translate({x:.1} {y:.1})\">{mark}</g><text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            x + 24.0,
            y + 4.0
        );
        self.num_series += 1;
    }

    /// A line through points.
    pub fn line(&mut self, name: &str, points: &[(f64, f64)]) {
        let colour = COLOURS[self.num_series % COLOURS.len()];
        let mut path = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.px(x), self.py(y));
        }
        let stroke = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"");
        let _ = writeln!(self.body, "<path {stroke} d=\"{path}\"/>");
        self.legend(name, &format!("<path {stroke} d=\"M0 0H18\"/>"));
    }

    /// Points on their own.
    pub fn dots(&mut self, name: &str, points: &[(f64, f64)]) {
        let mark = "r=\"3\" fill=\"#ffffff\" stroke=\"#000000\" stroke-width=\"1.2\"";
        for &(x, y) in points {
            let (x, y) = (self.px(x), self.py(y));
            let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" {mark}/>");
        }
        self.legend(name, &format!("<circle cx=\"9\" cy=\"0\" {mark}/>"));
    }

    /// Groups of four bars side by side: two pairs, filled and outlined.
    pub fn bars(&mut self, names: [&str; 4], groups: &[(&str, [f64; 4])]) {
        const STYLES: [&str; 4] = [
            "fill=\"#0072b2\"",
            "fill=\"#ffffff\" stroke=\"#0072b2\"",
            "fill=\"#d55e00\"",
            "fill=\"#ffffff\" stroke=\"#d55e00\"",
        ];
        self.has_ticks = false;
        for (index, (label, values)) in groups.iter().enumerate() {
            let (from, to) = (self.px(index as f64), self.px(index as f64 + 1.0));
            let width = (to - from) * 0.2;
            for (bar, value) in values.iter().enumerate() {
                let x = from + (to - from) * 0.1 + width * bar as f64;
                let y = self.py(*value);
                let _ = writeln!(
                    self.body,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" {}/>",
                    width - 1.5,
                    self.py(0.0) - y,
                    STYLES[bar]
                );
            }
            let _ = writeln!(
                self.body,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                (from + to) / 2.0,
                HEIGHT - BOTTOM + 16.0,
                label.replace('<', "&lt;")
            );
        }
        for (name, style) in names.into_iter().zip(STYLES) {
            self.legend(
                name,
                &format!("<rect x=\"2\" y=\"-5\" width=\"14\" height=\"9\" {style}/>"),
            );
        }
    }

    /// The file.
    pub fn render(&self) -> String {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n<title>{0}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"17\" font-size=\"13\">{0}</text>\n",
            self.title
        );
        if self.has_ticks {
            for (value, label) in self.x.ticks() {
                let x = self.px(value);
                let _ = writeln!(
                    svg,
                    "<path stroke=\"#dddddd\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>\
                     <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                    bottom + 16.0
                );
            }
        }
        for (value, label) in self.y.ticks() {
            let y = self.py(value);
            let _ = writeln!(
                svg,
                "<path stroke=\"#dddddd\" d=\"M{LEFT} {y:.1}H{right:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let middle = (TOP + bottom) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"rotate(-90 14 {middle:.1})\" x=\"14\" y=\"{middle:.1}\" \
             text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            self.x.title,
            self.y.title
        );
        svg + &self.body + "</svg>\n"
    }
}
