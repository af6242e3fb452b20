//! Size against performance: trees of several sizes from one teacher on lists that nothing was chosen by, beside the teacher and
//! heuristics. The headline of a distillation, in place of how often a tree agrees with its teacher.

use std::fmt::Write as _;

use pleach_distill::{DistillConfig, PruneConfig};
use pleach_env::{EnvConfig, Split};
use pleach_scheduler::policy::TieKey;
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::tree::Tree;
use serde::Serialize;

use super::parts::{Lists, PartRow, REPORTED, in_words, markdown, paired};
use super::plays::Rivals;
use super::prune;
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::stats::Ratio;
use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, colour, legend};
use crate::progress::Watcher;
use crate::train::validation::Validation;

/// Workloads on which the tree of each size is chosen among the rounds of DAgger.
const NUM_VALIDATION: usize = 32;
/// A teacher that gains less than this over the best heuristic has no gain of which a share could be kept.
const GAIN_MIN: f64 = 0.01;
/// Largest ratio that a plot shows; what is beyond stands in the table.
const RATIO_SHOWN_MAX: f64 = 1.6;

/// What a frontier is made of.
#[derive(Clone, Debug)]
pub struct FrontierInput {
    /// Whom the trees learn from.
    pub teacher: PolicySpec,
    /// How; its `leaves` are the sizes. Nothing is pruned.
    pub distill: DistillConfig,
    /// Lists of each part.
    pub num_lists: usize,
    /// Policies that are shown beside the trees.
    pub against: Vec<PolicySpec>,
}

/// A size and what its tree is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeRow {
    /// Leaves of the tree: at most those that were asked for.
    pub leaves: usize,
    /// Splits on its longest path.
    pub depth: usize,
    /// Order inside a tier.
    pub tie_key: TieKey,
    /// Share of the held-out decision points on which it agrees with the teacher.
    pub agreement: f64,
    /// Ratio to the best heuristic on the validation workloads, which chose it among the trees of its size.
    pub ratio_of_choice: f64,
    /// Average JCT over that of the best heuristic, part by part.
    pub parts: Vec<PartRow>,
    /// The same over the teacher's.
    pub over_teacher: Vec<Option<Ratio>>,
    /// Share of the teacher's gain over the best heuristic that it keeps; none where the teacher gains nothing.
    pub kept: Vec<Option<f64>>,
}

/// Another policy on the same lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineRow {
    /// Its name.
    pub policy: String,
    /// Average JCT over that of the best heuristic, part by part.
    pub parts: Vec<PartRow>,
}

/// Size against performance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrontierReport {
    /// Version of this form.
    pub schema: u32,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
    /// The smallest tree first.
    pub sizes: Vec<SizeRow>,
    /// The teacher first.
    pub lines: Vec<LineRow>,
}

/// Distils the teacher to trees of all sizes at once, takes the best of each size by the validation workloads, and reports them on
/// lists of their own. The trees come in the order of the rows.
///
/// # Errors
/// Settings out of range, a teacher or a run that fails.
pub fn frontier(
    env: &EnvConfig,
    input: &FrontierInput,
    seed: u64,
    watcher: &Watcher,
) -> Result<(FrontierReport, Vec<Tree>), Error> {
    let config = DistillConfig {
        prune: PruneConfig {
            tries: 0,
            ..input.distill.prune
        },
        ..input.distill.clone()
    };
    let validation = Validation::new(env, seed, NUM_VALIDATION)?;
    let distilled = watcher.part("distill", 0, || {
        prune(env, &input.teacher, &config, &validation, seed, watcher)
    })?;
    // The best judged tree of each size.
    let mut chosen: Vec<(usize, f64)> = Vec::new();
    for (place, student) in distilled.report.students.iter().enumerate() {
        let Some(ratio) = student.ratio else { continue };
        let leaves_of = |place: usize| distilled.report.students[place].leaves;
        match chosen
            .iter_mut()
            .find(|(other, _)| leaves_of(*other) == student.leaves)
        {
            Some(best) if ratio < best.1 => *best = (place, ratio),
            Some(_) => {}
            None => chosen.push((place, ratio)),
        }
    }
    chosen.sort_by_key(|(place, _)| distilled.report.students[*place].leaves);
    let drawn = (seed, "distill/frontier");
    let lists = Lists::draw(
        &env.in_split(Split::Test),
        &REPORTED,
        drawn,
        input.num_lists,
        Rivals::Heuristics,
        watcher,
    )?;
    let of_teacher = lists.all(&input.teacher)?;
    let mut lines = vec![LineRow {
        policy: input.teacher.name().to_string(),
        parts: lists.rows(&of_teacher),
    }];
    for policy in &input.against {
        lines.push(LineRow {
            policy: policy.name().to_string(),
            parts: lists.rows(&lists.all(policy)?),
        });
    }
    let (mut sizes, mut trees) = (Vec::new(), Vec::new());
    for (place, ratio_of_choice) in chosen {
        let tree = distilled.students[place].clone();
        let own = lists.all(&PolicySpec::tree("tree", tree.clone()))?;
        let parts = lists.rows(&own);
        let over_teacher = (0..lists.parts.len())
            .map(|part| paired(&lists.of_part(&own, part), &lists.of_part(&of_teacher, part)))
            .collect();
        let student = &distilled.report.students[place];
        sizes.push(SizeRow {
            leaves: student.leaves,
            depth: student.depth,
            tie_key: student.tie_key,
            agreement: student.fidelity.agreement,
            ratio_of_choice,
            kept: kept(&parts, &lines[0].parts),
            parts,
            over_teacher,
        });
        trees.push(tree);
    }
    let report = FrontierReport {
        schema: 1,
        num_lists: input.num_lists,
        sizes,
        lines,
    };
    Ok((report, trees))
}

/// Share of the teacher's gain that is kept, part by part.
fn kept(own: &[PartRow], teacher: &[PartRow]) -> Vec<Option<f64>> {
    let of = |(own, teacher): (&PartRow, &PartRow)| {
        let gain = -ln(teacher.jct.mean);
        (gain >= GAIN_MIN).then(|| -ln(own.jct.mean) / gain)
    };
    own.iter().zip(teacher).map(of).collect()
}

impl FrontierReport {
    /// The table in Markdown, then how each tree stands to the teacher.
    #[must_use]
    pub fn markdown(&self) -> String {
        let trees = self.sizes.iter().map(|row| {
            let agreement = 100.0 * row.agreement;
            (
                format!("{} leaves ({agreement:.0} % agree)", row.leaves),
                row.parts.clone(),
            )
        });
        let lines = self
            .lines
            .iter()
            .map(|row| (format!("*{}*", row.policy), row.parts.clone()));
        let rows: Vec<(String, Vec<PartRow>)> = trees.chain(lines).collect();
        let parts = rows.first().map_or(&[][..], |(_, parts)| parts).to_vec();
        let mut text = markdown(&parts, &rows);
        let name = self.lines.first().map_or("", |row| &row.policy);
        let _ = write!(
            text,
            "\nThe trees over {name}, and the share of its gain over the best heuristic that they keep (no gain: it has none of 1 %):\n\n\
             | tree |"
        );
        for part in &parts {
            let _ = write!(text, " {} |", part.part);
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(parts.len()));
        for row in &self.sizes {
            let _ = write!(text, "| {} leaves |", row.leaves);
            for (ratio, kept) in row.over_teacher.iter().zip(&row.kept) {
                let ratio = ratio.as_ref().map_or_else(String::new, in_words);
                let kept = match kept {
                    None => "no gain".to_string(),
                    Some(kept) if *kept <= 0.0 => "none".to_string(),
                    Some(kept) => format!("{:.0} %", 100.0 * kept),
                };
                let _ = write!(text, " {ratio}, {kept} |");
            }
            text.push('\n');
        }
        text
    }

    /// A plot for each part, with its name: leaves against the ratio of average JCT to the best heuristic, with a legend.
    #[must_use]
    pub fn plots(&self) -> Vec<(String, String)> {
        let parts = self.lines.first().map_or(&[][..], |row| &row.parts);
        (0..parts.len())
            .map(|part| (parts[part].part.clone(), self.plot(part)))
            .collect()
    }

    fn plot(&self, part: usize) -> String {
        let log2 = |leaves: usize| ln(leaves as f64) / std::f64::consts::LN_2;
        let trees: Vec<(f64, &Ratio)> = self
            .sizes
            .iter()
            .filter_map(|row| Some((log2(row.leaves), &row.parts.get(part)?.jct)))
            .collect();
        let lines = self
            .lines
            .iter()
            .filter_map(|row| Some((row.policy.as_str(), row.parts.get(part)?.jct.mean)));
        let lines: Vec<(&str, f64)> = lines.collect();
        let ends = trees
            .iter()
            .flat_map(|(_, ratio)| [ratio.low.unwrap_or(ratio.mean), ratio.high.unwrap_or(ratio.mean)])
            .chain(lines.iter().map(|(_, ratio)| *ratio));
        let (low, high) = ends.fold((1.0_f64, 1.0_f64), |(low, high), end| {
            (low.min(end), high.max(end))
        });
        let ticks = trees
            .iter()
            .zip(&self.sizes)
            .map(|((x, _), row)| (*x, row.leaves.to_string()));
        let (first, last) = (
            trees.first().map_or(1.0, |(x, _)| *x),
            trees.last().map_or(2.0, |(x, _)| *x),
        );
        let heuristic = self
            .lines
            .first()
            .and_then(|row| row.parts.get(part))
            .map_or("", |row| row.best_heuristic.as_str());
        let mut frame = Frame::new(
            Axis::fixed("leaves", first - 0.3, last + 0.3, ticks.collect()),
            Axis::log_ratio(
                &format!("average JCT / that of {heuristic}"),
                low * 0.98,
                high.min(RATIO_SHOWN_MAX) * 1.02,
            ),
            320.0,
        );
        let (left, right) = (first - 0.3, last + 0.3);
        let best = (heuristic, 1.0);
        let others = lines.into_iter().filter(|(name, _)| *name != heuristic);
        let mut names = vec!["trees".to_string()];
        for (name, ratio) in std::iter::once(best).chain(others) {
            if ratio <= RATIO_SHOWN_MAX {
                frame.line(names.len(), name, &[(left, ratio), (right, ratio)]);
            }
            names.push(format!("{name} {ratio:.3}"));
        }
        let points: Vec<(f64, f64)> = trees.iter().map(|(x, ratio)| (*x, ratio.mean)).collect();
        frame.line(0, "trees", &points);
        let mut marks = String::new();
        for (x, ratio) in &trees {
            let (x, y) = (frame.px(*x), frame.py(ratio.mean));
            if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
                let (bottom, top) = (frame.py(low), frame.py(high));
                let _ = write!(
                    marks,
                    "<path class=\"line\" stroke=\"{}\" d=\"M{x:.1} {bottom:.1}V{top:.1}\"/>",
                    colour(0)
                );
            }
            let _ = writeln!(
                marks,
                "<circle r=\"4\" fill=\"{}\" cx=\"{x:.1}\" cy=\"{y:.1}\"/>",
                colour(0)
            );
        }
        frame.add(&marks);
        let names: Vec<(usize, &str)> = names.iter().map(String::as_str).enumerate().collect();
        let described =
            "Leaves of a tree against its average JCT over that of the best heuristic, with 95 % intervals";
        frame.render(described) + &legend(&names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use pleach_tests::assert_well_formed;

    #[test]
    fn every_size_stands_beside_its_teacher_on_lists_that_nothing_was_chosen_by() {
        let env = env_of("Pleach/GavelMulti-v1", Some(40), None).unwrap();
        let input = FrontierInput {
            teacher: PolicySpec::heuristic("sjf-best-type").unwrap(),
            distill: DistillConfig {
                leaves: vec![2, 4, 8],
                rounds: 1,
                episodes: 2,
                ..DistillConfig::default()
            },
            num_lists: 3,
            against: vec![PolicySpec::heuristic("fifo").unwrap()],
        };
        let (report, trees) = frontier(&env, &input, 3, &Watcher::nobody()).unwrap();
        let sizes: Vec<usize> = report.sizes.iter().map(|row| row.leaves).collect();
        assert!(sizes.len() >= 2 && sizes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(trees.iter().map(Tree::num_leaves).eq(sizes.iter().copied()));
        let names: Vec<&str> = report.lines.iter().map(|row| row.policy.as_str()).collect();
        assert_eq!(names, ["sjf-best-type", "fifo"]);
        for row in &report.sizes {
            assert_eq!((row.parts.len(), row.over_teacher.len()), (5, 5));
            // The paired ratio to the teacher is that of the two ratios to the heuristic.
            for ((own, teacher), over) in row
                .parts
                .iter()
                .zip(&report.lines[0].parts)
                .zip(&row.over_teacher)
            {
                let over = over.as_ref().unwrap().mean;
                assert!((over - own.jct.mean / teacher.jct.mean).abs() < 1e-9);
            }
            // A heuristic gains nothing over the best one.
            assert!(row.kept.iter().all(Option::is_none));
        }
        let text = report.markdown();
        assert!(
            text.contains("| *fifo* |") && text.contains(", no gain |"),
            "{text}"
        );
        let plots = report.plots();
        assert_eq!((plots.len(), plots[2].0.as_str()), (5, "four times as long"));
        for (_, svg) in &plots {
            assert_well_formed(svg);
            assert_eq!(svg.matches("<circle").count(), sizes.len());
        }
        assert_eq!(frontier(&env, &input, 3, &Watcher::nobody()).unwrap().0, report);
    }
}
