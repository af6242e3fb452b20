//! A comparison of autoscalers as one HTML page: the table, and of each its replicas, the training beside and the misses over the
//! first day.

use super::compare::MixedComparison;
use super::timeline::{PART_S, Timeline};
use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, at_both_widths, legend};
use crate::report::page::{html_table, page, preformatted, section};

impl Timeline {
    fn html(&self, name: &str) -> String {
        let lines = [
            ("replicas that take requests", self.of_state(0)),
            ("replicas being loaded", self.of_state(1)),
            ("replicas that take no more", self.of_state(2)),
            ("GPUs that train", self.training.clone()),
        ];
        let time = |title: &str| Axis::time(title, self.span_s);
        let drawn = at_both_widths(|width| {
            let gpus = Axis::linear("GPUs", 0.0, self.num_gpus);
            let mut frame = Frame::new(time("time of the day"), gpus, 260.0).wide(width);
            for (series, (name, points)) in lines.iter().enumerate() {
                frame.line(series, name, &self.stairs(points));
            }
            Some(frame.render(&format!("{name}: replicas and GPUs that train over the day")))
        });
        let missed = at_both_widths(|width| {
            let most = self.missed_pct.iter().copied().fold(0.1, f64::max);
            let missed = Axis::linear("requests outside of a target (%)", 0.0, most);
            let mut frame = Frame::new(time("time of the day"), missed, 160.0).wide(width);
            let points = self.missed_pct.iter().enumerate();
            let mut points: Vec<(f64, f64)> = points
                .map(|(part, missed)| (PART_S * part as f64, *missed))
                .collect();
            points.push((self.span_s, 0.0));
            frame.steps(4, "requests outside of a target, %", &points);
            Some(frame.render(&format!(
                "{name}: share of requests outside of a target, by quarter of an hour"
            )))
        });
        let names: Vec<(usize, &str)> = lines.iter().map(|(name, _)| *name).enumerate().collect();
        drawn.unwrap_or_default() + &legend(&names) + &missed.unwrap_or_default()
    }

    fn of_state(&self, state: usize) -> Vec<(f64, f64)> {
        self.replicas
            .iter()
            .map(|(at_s, num)| (*at_s, num[state]))
            .collect()
    }

    /// Points of a line that holds each value until the next, to the end.
    fn stairs(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut found: Vec<(f64, f64)> = Vec::new();
        for &(at_s, value) in points {
            match found.last().copied() {
                Some((_, before)) if before == value => {}
                Some((_, before)) => found.extend([(at_s, before), (at_s, value)]),
                None => found.push((at_s, value)),
            }
        }
        found.extend(found.last().copied().map(|(_, value)| (self.span_s, value)));
        found
    }
}

impl MixedComparison {
    /// The page.
    #[must_use]
    pub fn html(&self, command_line: &str) -> String {
        let mut body = String::from("<h1>Serving and training on the same GPUs</h1>\n");
        section(&mut body, "Autoscalers", Some(html_table(&self.table())));
        for row in &self.rows {
            section(
                &mut body,
                &row.autoscaler,
                Some(row.timeline.html(&row.autoscaler)),
            );
        }
        section(&mut body, "How this was made", Some(preformatted(command_line)));
        page("Serving and training on the same GPUs", &body)
    }
}
