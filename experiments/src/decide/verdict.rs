//! The rules by which a run ends in *deploy*, *do not deploy* or *nothing to win here*. They stand in docs/import.md too.
//!
//! *Ours*, and conservative: to deploy what does not help costs more than to wait another month. The same tests choose the
//! candidate that goes on ([`Choice`]) and judge it on later days.

use serde::{Deserialize, Serialize};

use crate::evaluate::idle::WAIT_MIN;
use crate::evaluate::stats::Ratio;
use crate::twin::{Trust, Under, UnderRow};

/// What is won must be at least this part of the mean completion time.
const GAIN_MIN: f64 = 0.02;
/// The same where the twin is only of the same size as the site: the upper end of the interval.
const ROUGH_HIGH_MAX: f64 = 0.9;
/// What p99 JCT and slowdown may be over the site's, and what fairness may be below it.
const WORSE_MAX: f64 = 0.02;
/// Parts of the judging part on which an interval must rest.
const PARTS_MIN: usize = 10;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Run it as a shadow, then live.
    Deploy,
    /// Leave things as they are: what was found is not surely better, or cannot be trusted.
    DoNotDeploy,
    /// No policy that we know would do much.
    NothingToWin,
}

/// What is decided, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is to be done.
    pub decision: Decision,
    /// With which policy, where one is to be deployed.
    pub policy: Option<String>,
    /// Why, the decisive reason first.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let reasons = self.reasons.join("; ");
        match (self.decision, &self.policy) {
            (Decision::Deploy, Some(policy)) => format!("deploy {policy}: {reasons}"),
            (Decision::NothingToWin, _) => format!("nothing to win here, because {reasons}"),
            _ => format!("do not deploy: {reasons}"),
        }
    }
}

/// The candidate that goes on from the part in which is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name; the site's policy where no candidate is ahead of it.
    pub policy: String,
    /// What speaks against it there; nothing where one passed the tests.
    pub against: Vec<String>,
}

impl Choice {
    /// Of the candidates that are ahead of the site's policy, the first row, and no worse in p99, slowdown and fairness, the
    /// one with the least mean completion time. Where none passes, the one that is furthest ahead, with what speaks
    /// against it.
    #[must_use]
    pub fn of(compared: &Under) -> Choice {
        let site = &compared.rows[0];
        let ahead = compared.rows[1..]
            .iter()
            .filter(|row| row.avg_jct_s < site.avg_jct_s);
        let judged = ahead.map(|row| (row, worse(row, site)));
        let best = judged.min_by(|a, b| {
            let fails = a.1.is_empty().cmp(&b.1.is_empty()).reverse();
            fails.then(a.0.avg_jct_s.total_cmp(&b.0.avg_jct_s))
        });
        match best {
            Some((row, against)) => Choice {
                policy: row.policy.clone(),
                against,
            },
            None => Choice {
                policy: site.policy.clone(),
                against: Vec::new(),
            },
        }
    }

    /// The same, or a change of the site's own settings where one passes the tests and is hardly behind: it needs no program
    /// beside the site's. Of several the one with the least mean completion time.
    #[must_use]
    pub fn or_change(self, compared: &Under, changes: &[String]) -> Choice {
        let site = &compared.rows[0];
        let row = compared.row(&self.policy).unwrap_or(site);
        let most = match self.against.is_empty() {
            true => row.avg_jct_s * (1.0 + GAIN_MIN),
            false => f64::INFINITY,
        };
        let rows = changes.iter().filter_map(|name| compared.row(name));
        let passing =
            rows.filter(|row| row.avg_jct_s < most.min(site.avg_jct_s) && worse(row, site).is_empty());
        match passing.min_by(|one, other| one.avg_jct_s.total_cmp(&other.avg_jct_s)) {
            Some(change) => Choice {
                policy: change.policy.clone(),
                against: Vec::new(),
            },
            None => self,
        }
    }

    /// Whether a tree goes on beside it: where it passes the tests, and is ahead of what was chosen, or of the site's policy
    /// where that did not pass.
    #[must_use]
    pub fn gives_way(&self, compared: &Under, tree: &str) -> bool {
        let site = &compared.rows[0];
        let rival = match self.against.is_empty() {
            true => compared.row(&self.policy).unwrap_or(site),
            false => site,
        };
        compared
            .row(tree)
            .is_some_and(|row| row.avg_jct_s < rival.avg_jct_s && worse(row, site).is_empty())
    }
}

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// How far the twin can be trusted; none: it is not known when jobs began.
    pub trust: Option<Trust>,
    /// The part that judges, the site's policy first.
    pub judged: &'a Under,
    /// The candidate that went on.
    pub choice: &'a Choice,
    /// The tree, where it went on too.
    pub learned: Option<&'a str>,
}

/// Decides. Whether the simulation can be believed comes before all that it says.
#[must_use]
pub fn verdict(evidence: &Evidence<'_>) -> Verdict {
    let (rows, choice) = (&evidence.judged.rows, evidence.choice);
    let site = &rows[0];
    match evidence.trust {
        None => {
            return refused(
                "it is not known when jobs began, so nothing says that the simulation is like the site",
            );
        }
        Some(Trust::No) => return refused("the twin is not believable"),
        Some(Trust::Close | Trust::Roughly | Trust::NoQueue) => {}
    }
    // Where it is not known of these days what jobs waited, the believed simulation stands in.
    let wait_s = evidence.judged.observed_wait_s.unwrap_or(site.avg_wait_s);
    let part = wait_s / (wait_s + site.avg_jct_s - site.avg_wait_s).max(1e-9);
    if evidence.trust == Some(Trust::NoQueue) || part < WAIT_MIN {
        return told(
            Decision::NothingToWin,
            vec![format!(
                "no job waits: {:.1} % of the mean completion time is waiting",
                100.0 * part
            )],
        );
    }
    let num_parts = site.jct_parts_s.len();
    if num_parts < PARTS_MIN {
        return refused(&format!(
            "the part that judges has {num_parts} days or weeks, and an interval needs {PARTS_MIN}: give a longer list"
        ));
    }
    let is_rough = evidence.trust == Some(Trust::Roughly);
    let mut against = Vec::new();
    let learned = evidence.learned.filter(|name| *name != choice.policy);
    for name in learned.into_iter().chain([choice.policy.as_str()]) {
        let Some(row) = evidence.judged.row(name).filter(|row| row.policy != site.policy) else {
            continue;
        };
        let mut reasons = objections(row, site, is_rough);
        if Some(name) == learned {
            reasons.extend(not_ahead(evidence, name));
        } else {
            let before = choice.against.iter();
            reasons.extend(before.map(|reason| format!("where was chosen {reason}")));
        }
        if reasons.is_empty() {
            let mut reasons = vec![format!(
                "mean completion time over that under {}{}",
                site.policy,
                shown(row.jct)
            )];
            reasons.push("p99, slowdown and fairness are no worse".into());
            return Verdict {
                policy: Some(name.to_owned()),
                ..told(Decision::Deploy, reasons)
            };
        }
        against.push(format!("{name}: {}", reasons.join(", ")));
    }
    let most = rows[1..].iter().filter_map(|row| row.jct).map(|jct| jct.mean);
    let most = most.fold(f64::INFINITY, f64::min);
    if most > 1.0 - GAIN_MIN {
        let known = match most.is_finite() {
            true => format!(
                "the best that was found is at {most:.3} of the mean completion time under {}",
                site.policy
            ),
            false => format!("{} is the strongest that we know here", site.policy),
        };
        return told(Decision::NothingToWin, vec![known]);
    }
    told(Decision::DoNotDeploy, against)
}

/// That a tree is not surely ahead of what was chosen beside it, where that could be deployed.
fn not_ahead(evidence: &Evidence<'_>, name: &str) -> Option<String> {
    let (rival, site) = (&evidence.choice.policy, &evidence.judged.rows[0].policy);
    if rival == site || !evidence.choice.against.is_empty() {
        return None;
    }
    let ratio = evidence.judged.between(name, rival);
    let is_ahead = ratio.is_some_and(|ratio| ratio.high.is_some_and(|high| high < 1.0));
    (!is_ahead).then(|| format!("it is not surely ahead of {rival}{}", shown(ratio)))
}

/// What speaks against a policy in place of the site's.
fn objections(row: &UnderRow, site: &UnderRow, is_rough: bool) -> Vec<String> {
    let mut found = Vec::new();
    let high_max = if is_rough { ROUGH_HIGH_MAX } else { 1.0 };
    match row.jct {
        Some(Ratio {
            mean,
            high: Some(high),
            ..
        }) if high < high_max && mean <= 1.0 - GAIN_MIN => {}
        ratio if is_rough => found.push(format!(
            "the twin is rough, and mean completion time{} is not surely below {high_max}",
            shown(ratio)
        )),
        ratio => found.push(format!(
            "mean completion time{} is not surely lower",
            shown(ratio)
        )),
    }
    found.extend(worse(row, site));
    found
}

/// In what a policy is worse than the site's though the mean be better: the tail, short jobs, fairness.
fn worse(row: &UnderRow, site: &UnderRow) -> Vec<String> {
    let mut found = Vec::new();
    for (what, own, of_site) in [
        ("p99 JCT", row.p99_jct_s, site.p99_jct_s),
        ("slowdown", row.avg_slowdown, site.avg_slowdown),
    ] {
        if own > of_site * (1.0 + WORSE_MAX) {
            found.push(format!("{what} is {:.1} % worse", 100.0 * (own / of_site - 1.0)));
        }
    }
    if row.fairness < site.fairness - WORSE_MAX {
        found.push(format!(
            "fairness falls from {:.3} to {:.3}",
            site.fairness, row.fairness
        ));
    }
    found
}

/// ` 0.83 [0.78, 0.88]`; nothing where there is no ratio.
fn shown(ratio: Option<Ratio>) -> String {
    match ratio {
        Some(Ratio {
            mean,
            low: Some(low),
            high: Some(high),
            ..
        }) => format!(" {mean:.3} [{low:.3}, {high:.3}]"),
        Some(ratio) => format!(" {:.3}", ratio.mean),
        None => String::new(),
    }
}

fn told(decision: Decision, reasons: Vec<String>) -> Verdict {
    Verdict {
        decision,
        policy: None,
        reasons,
    }
}

fn refused(reason: &str) -> Verdict {
    told(Decision::DoNotDeploy, vec![reason.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::Span;

    /// A policy whose completion times are this part of the site's in each of 12 parts, give or take `spread`.
    fn row(policy: &str, part: f64, spread: f64) -> UnderRow {
        let own: Vec<f64> = (0..12)
            .map(|number| 1000.0 * (part + if number % 2 == 0 { spread } else { -spread }))
            .collect();
        let pairs: Vec<(f64, f64)> = own.iter().map(|own| (*own, 1000.0)).collect();
        UnderRow {
            policy: policy.into(),
            avg_jct_s: 1000.0 * part,
            p99_jct_s: 5000.0,
            avg_wait_s: 400.0 * part,
            avg_slowdown: 3.0,
            fairness: 0.9,
            jct: Ratio::of_sums(&pairs),
            wait: None,
            jct_parts_s: own,
        }
    }

    fn under(rows: Vec<UnderRow>) -> Under {
        Under {
            span: Span {
                since_s: 0.0,
                part_days: 1.0,
            },
            num_jobs: 100,
            observed_wait_s: None,
            rows,
        }
    }

    fn decided(trust: Option<Trust>, rows: Vec<UnderRow>, learned: bool) -> Verdict {
        verdict(&Evidence {
            trust,
            judged: &under(rows),
            choice: &Choice {
                policy: "sjf".into(),
                against: Vec::new(),
            },
            learned: learned.then_some("tree"),
        })
    }

    #[test]
    fn the_best_candidate_that_passes_the_tests_of_the_verdict_goes_on() {
        let unfair = || UnderRow {
            fairness: 0.6,
            ..row("sjf", 0.35, 0.1)
        };
        let (near, best) = (row("fifo-skip", 0.9, 0.1), row("gpu-time-reserve", 0.4, 0.1));
        let choice = |rows: Vec<UnderRow>| {
            let site = vec![row("easy", 1.0, 0.0)];
            Choice::of(&under(site.into_iter().chain(rows).collect()))
        };
        let found = choice(vec![near, unfair(), best]);
        assert_eq!(
            (found.policy.as_str(), found.against.len()),
            ("gpu-time-reserve", 0)
        );
        // Where none passes, the one that is furthest ahead is judged, and not deployed whatever the judge finds.
        let late = UnderRow {
            p99_jct_s: 6000.0,
            ..row("fifo-skip", 0.5, 0.1)
        };
        let found = choice(vec![late, unfair()]);
        assert_eq!(found.policy, "sjf");
        assert_eq!(found.against, ["fairness falls from 0.900 to 0.600"]);
        let judged = under(vec![row("easy", 1.0, 0.0), row("sjf", 0.5, 0.1)]);
        let refused = verdict(&Evidence {
            trust: Some(Trust::Close),
            judged: &judged,
            choice: &found,
            learned: None,
        });
        let words = "do not deploy: sjf: where was chosen fairness falls";
        assert!(refused.line().starts_with(words), "{}", refused.line());
        // A tree that passes goes on beside it, and need not be ahead of what cannot be deployed.
        let with_tree = |part: f64| under(vec![row("easy", 1.0, 0.0), unfair(), row("tree", part, 0.1)]);
        assert!(found.gives_way(&with_tree(0.8), "tree") && !found.gives_way(&with_tree(1.1), "tree"));
        // None is ahead of the site's own.
        assert_eq!(choice(vec![row("sjf", 1.1, 0.1)]).policy, "easy");
    }

    #[test]
    fn a_twin_that_is_not_believed_never_says_that_no_job_waits_and_observed_waits_decide_it() {
        let idle = || {
            let mut rows = vec![row("easy", 1.0, 0.0), row("sjf", 0.99, 0.0)];
            rows[0].avg_wait_s = 1.0;
            rows
        };
        for trust in [None, Some(Trust::No)] {
            let found = decided(trust, idle(), false);
            assert_eq!(found.decision, Decision::DoNotDeploy, "{}", found.line());
        }
        // A tenth of the time that was observed is waiting, whatever is simulated; and the other way round.
        let seen = |wait_s: f64, rows: Vec<UnderRow>| {
            let judged = Under {
                observed_wait_s: Some(wait_s),
                ..under(rows)
            };
            let choice = Choice::of(&judged);
            verdict(&Evidence {
                trust: Some(Trust::Roughly),
                judged: &judged,
                choice: &choice,
                learned: None,
            })
        };
        assert!(!seen(111.0, idle()).line().contains("waits"));
        let found = seen(1.0, vec![row("easy", 1.0, 0.0), row("sjf", 0.5, 0.1)]);
        assert!(found.line().contains("no job waits: 0.2 %"), "{}", found.line());
    }

    #[test]
    fn what_is_surely_better_and_worse_in_nothing_is_deployed() {
        let rows = || vec![row("easy", 1.0, 0.0), row("sjf", 0.8, 0.1), row("tree", 0.6, 0.1)];
        let found = decided(Some(Trust::Close), rows(), true);
        assert_eq!(
            (found.decision, found.policy.as_deref()),
            (Decision::Deploy, Some("tree"))
        );
        // A tree that is not surely ahead of the heuristic gives way to it.
        let mut near = rows();
        near[2] = row("tree", 0.79, -0.1);
        let found = decided(Some(Trust::Close), near, true);
        assert_eq!(found.policy.as_deref(), Some("sjf"));
        let found = decided(Some(Trust::Close), rows(), false);
        assert_eq!(found.policy.as_deref(), Some("sjf"));
        // A rough twin asks for more: 0.8 with an interval up to 0.86 is enough, 0.88 is not.
        assert_eq!(
            decided(Some(Trust::Roughly), rows(), false).decision,
            Decision::Deploy
        );
        let mut near = rows();
        near[1] = row("sjf", 0.88, 0.1);
        let found = decided(Some(Trust::Roughly), near, false);
        assert!(found.decision == Decision::DoNotDeploy && found.line().contains("rough"));
    }

    #[test]
    fn a_worse_tail_slowdown_or_fairness_or_an_interval_up_to_one_stops_it() {
        type Change = fn(&mut UnderRow);
        let changes: [(Change, &str); 4] = [
            (|row| row.p99_jct_s *= 1.1, "p99 JCT is 10.0 % worse"),
            (|row| row.avg_slowdown *= 1.03, "slowdown is 3.0 % worse"),
            (|row| row.fairness = 0.8, "fairness falls from 0.900 to 0.800"),
            (|row| *row = self::row("sjf", 0.95, 0.4), "not surely lower"),
        ];
        for (change, words) in changes {
            let mut rows = vec![row("easy", 1.0, 0.0), row("sjf", 0.8, 0.1)];
            change(&mut rows[1]);
            let found = decided(Some(Trust::Close), rows, false);
            assert_eq!(found.decision, Decision::DoNotDeploy, "{words}");
            assert!(found.line().contains(words), "{}", found.line());
        }
    }

    #[test]
    fn nothing_is_deployed_on_a_twin_that_is_not_believable_or_on_few_days() {
        let rows = || vec![row("easy", 1.0, 0.0), row("sjf", 0.5, 0.1)];
        for (trust, words) in [(None, "not known"), (Some(Trust::No), "not believable")] {
            let found = decided(trust, rows(), false);
            assert!(found.decision == Decision::DoNotDeploy && found.line().contains(words));
        }
        let mut short = rows();
        short[0].jct_parts_s.truncate(9);
        assert!(
            decided(Some(Trust::Close), short, false)
                .line()
                .contains("9 days")
        );
    }

    #[test]
    fn where_no_job_waits_or_nothing_is_better_there_is_nothing_to_win() {
        let mut idle = vec![row("easy", 1.0, 0.0), row("sjf", 0.9, 0.0)];
        idle[0].avg_wait_s = 5.0;
        let found = decided(Some(Trust::Close), idle, false);
        assert!(found.decision == Decision::NothingToWin && found.line().contains("no job waits"));
        let level = vec![row("easy", 1.0, 0.0), row("sjf", 0.99, 0.1)];
        let found = decided(Some(Trust::Close), level, false);
        assert!(found.decision == Decision::NothingToWin && found.line().contains("0.990"));
        let alone = decided(Some(Trust::Close), vec![row("sjf", 1.0, 0.0)], false);
        assert!(alone.decision == Decision::NothingToWin && alone.line().contains("strongest"));
    }
}
