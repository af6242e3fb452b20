//! The real state before each cycle: heads, what becomes of them, their order between ClusterQueues, victims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use pleach_dealing::kueue::{Outcome, State, Workload};

use super::{Case, Job, Row, cases};

/// The log tells that quota is back up to so long after it was, s.
const TOLD_S: f64 = 0.1;
/// The Job controller counts pods that ended once a second, and Kueue gives back the quota of each.
const COUNTED_S: f64 = 1.0;
/// Until then a GPU of one list was held by something that is not in it, s.
const HELD: (&str, f64) = ("kueue_cohort", 6.4);

/// What agreed, of how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agreement {
    heads: (usize, usize),
    pub(crate) outcomes: (usize, usize),
    order: (usize, usize),
    victims: (usize, usize),
    /// Real admissions among the outcomes.
    admissions: (usize, usize),
    /// Outcomes that are right only with the quota that the log tells of later.
    told: usize,
    odd: Vec<String>,
}

fn count(pair: &mut (usize, usize), is_right: bool) {
    pair.0 += usize::from(is_right);
    pair.1 += 1;
}

/// What the real Kueue did in a cycle: the jobs that it tried, in order; what became of each, with the jobs that it preempted.
#[derive(Default)]
struct Real {
    tried: Vec<u32>,
    outcomes: BTreeMap<u32, Outcome>,
}

struct Given<'a> {
    case: &'a Case,
    numbers: BTreeMap<&'a str, u32>,
    state: State,
    evicting: BTreeSet<u32>,
    since_s: f64,
    found: Agreement,
}

fn total(job: &Job, of: u32) -> [i64; 3] {
    let [gpus, cores, gib] = job.of_pod.map(|each| each * i64::from(of));
    [gpus * 1000, cores * 1000, gib * 1024]
}

impl<'a> Given<'a> {
    fn of(name: &str, case: &'a Case) -> Given<'a> {
        Given {
            case,
            numbers: case.jobs.iter().map(|job| job.name.as_str()).zip(0..).collect(),
            state: State::new(case.config.clone(), &["GPU".to_owned()], true),
            evicting: BTreeSet::new(),
            since_s: if name == HELD.0 { HELD.1 } else { 0.0 },
            found: Agreement::default(),
        }
    }

    fn play(mut self) -> Agreement {
        let mut cycles: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in self.case.log.iter().filter(|row| !row["cycle"].is_empty()) {
            cycles.entry(&row["cycle"]).or_default().push(row);
        }
        let log = &self.case.log;
        for (number, row) in log.iter().enumerate() {
            if row["what"] != "heads" {
                self.see(row);
                continue;
            }
            let at_s = super::number(row, "t_s");
            let real = self.real(&cycles[row["cycle"].as_str()]);
            let mut told = Given {
                state: self.state.clone(),
                evicting: self.evicting.clone(),
                found: Agreement::default(),
                numbers: self.numbers.clone(),
                ..self
            };
            let soon = log[number..]
                .iter()
                .take_while(|row| super::number(row, "t_s") <= at_s + TOLD_S);
            soon.filter(|row| row["what"] == "status")
                .for_each(|row| told.see(row));
            let counted = self
                .case
                .ends
                .iter()
                .take_while(|(end_s, _)| end_s + COUNTED_S <= at_s + TOLD_S);
            for (_, job) in counted {
                told.state
                    .give_back(*job, total(&self.case.jobs[*job as usize], 1));
            }
            self.judge(&real, at_s, &told.state.tried());
            self.carry_out(&real, at_s);
        }
        self.found
    }

    /// Follows what happens between cycles.
    fn see(&mut self, row: &Row) {
        let Some(job) = self.numbers.get(row["job"].as_str()).copied() else {
            if row["what"] == "flush" {
                (0..self.case.config.cluster_queues.len()).for_each(|queue| self.state.flush(queue));
            }
            return;
        };
        match (row["what"].as_str(), row["detail"].as_str()) {
            ("created", _) => self.submit(job),
            // Its pods are gone. Other updates to "pending" are echoes of tries.
            ("status", "pending") if self.evicting.remove(&job) => drop(self.state.evicted(job)),
            ("status", "finished") => drop(self.state.give_back(job, [i64::MAX; 3])),
            _ => {}
        }
    }

    fn submit(&mut self, number: u32) {
        let job = &self.case.jobs[number as usize];
        self.state.submit(Workload {
            job: number,
            queue: self.state.queue(&job.namespace, "q").unwrap(),
            priority: job.priority,
            created_s: job.created_s,
            uid: job.uid,
            asks: total(job, job.pods),
            kinds: u64::MAX,
        });
    }

    fn real(&self, rows: &[&Row]) -> Real {
        let mut real = Real::default();
        let mut victims: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in rows {
            let Some(job) = self.numbers.get(row["job"].as_str()).copied() else {
                continue;
            };
            let detail = &row["detail"];
            match row["what"].as_str() {
                "attempt" => real.tried.push(job),
                "preempts" => {
                    // One victim's name is missing in the log.
                    let victim = self.numbers.get(detail.split(' ').next().unwrap()).copied();
                    victims.entry(job).or_default().push(victim.unwrap_or(u32::MAX));
                }
                "assumed" => drop(real.outcomes.insert(job, Outcome::Admitted(u64::MAX))),
                "requeued" => {
                    let reason = detail.split("reason=").nth(1).unwrap().split(' ').next().unwrap();
                    let outcome = match reason {
                        "" => Outcome::Refused,
                        "PendingPreemption" => Outcome::Preempts(victims.remove(&job).unwrap_or_default()),
                        _ => Outcome::Again,
                    };
                    real.outcomes.insert(job, outcome);
                }
                _ => {}
            }
        }
        real
    }

    /// `told`: what it would do with the quota that the log says soon is back.
    fn judge(&mut self, real: &Real, at_s: f64, told: &[(u32, Outcome)]) {
        let heads = self.state.heads();
        let own = self.state.tried();
        let found = &mut self.found;
        for job in &real.tried {
            count(&mut found.heads, heads.contains(job));
        }
        if at_s < self.since_s {
            return;
        }
        if real.tried.len() > 1 {
            let order = |of: &[(u32, Outcome)]| of.iter().map(|(job, _)| *job).collect::<Vec<u32>>();
            count(
                &mut found.order,
                order(&own) == real.tried || order(told) == real.tried,
            );
        }
        for (job, outcome) in real
            .tried
            .iter()
            .filter_map(|job| real.outcomes.get_key_value(job))
        {
            let of = |all: &[(u32, Outcome)]| {
                all.iter()
                    .find(|(other, _)| other == job)
                    .map(|(_, outcome)| outcome.clone())
            };
            let (own, told) = (of(&own), of(told));
            let is_alike = |own: &Option<Outcome>| {
                own.as_ref()
                    .is_some_and(|own| std::mem::discriminant(own) == std::mem::discriminant(outcome))
            };
            let is_right = is_alike(&own) || is_alike(&told);
            count(&mut found.outcomes, is_right);
            found.told += usize::from(!is_alike(&own) && is_right);
            if matches!(outcome, Outcome::Admitted(_)) {
                count(&mut found.admissions, is_right);
            }
            if let Outcome::Preempts(victims) = outcome {
                let set = |jobs: &[u32]| jobs.iter().copied().collect::<BTreeSet<u32>>();
                let named = |own: &Option<Outcome>| match own {
                    Some(Outcome::Preempts(own)) => Some(set(own)),
                    _ => None,
                };
                let is_same = [named(&own), named(&told)].contains(&Some(set(victims)));
                if !victims.is_empty() {
                    count(&mut found.victims, is_same);
                }
                if !is_same {
                    found.odd.push(format!(
                        "{at_s}: {job} preempts {victims:?}, not {own:?} {told:?}"
                    ));
                }
            } else if !is_right {
                found
                    .odd
                    .push(format!("{at_s}: {job} {own:?} {told:?}, really {outcome:?}"));
            }
        }
    }

    fn carry_out(&mut self, real: &Real, at_s: f64) {
        for (job, outcome) in &real.outcomes {
            match outcome {
                Outcome::Admitted(_) => self.state.admit(*job, (self.case.zero_s + at_s).floor() as i64),
                Outcome::Preempts(victims) => {
                    self.state.preempt(*job, victims);
                    self.evicting.extend(victims);
                }
                Outcome::Refused => self.state.refuse(*job),
                Outcome::Again => {}
            }
        }
    }
}

/// What agreed in each recorded run.
pub(crate) fn all() -> &'static [(String, Agreement)] {
    static ALL: LazyLock<Vec<(String, Agreement)>> = LazyLock::new(|| {
        let cases = cases().into_iter();
        cases
            .map(|(name, case)| (name.clone(), Given::of(&name, &case).play()))
            .collect()
    });
    &ALL
}

#[test]
fn given_the_real_state_it_makes_the_cycles_of_a_real_kueue() {
    let percent = |(right, of): (usize, usize)| 100.0 * right as f64 / of.max(1) as f64;
    let mut all = Agreement::default();
    for (name, found) in self::all() {
        let Agreement {
            heads,
            outcomes,
            order,
            victims,
            admissions,
            told,
            ..
        } = found;
        println!(
            "{name}: heads {heads:?}, outcomes {outcomes:?} (of which {told} by what the log tells later), admissions {admissions:?}, \
             order between queues {order:?}, victims {victims:?}"
        );
        found.odd.iter().for_each(|odd| println!("   {odd}"));
        for (sum, pair) in [
            (&mut all.heads, heads),
            (&mut all.outcomes, outcomes),
            (&mut all.order, order),
            (&mut all.victims, victims),
            (&mut all.admissions, admissions),
        ] {
            *sum = (sum.0 + pair.0, sum.1 + pair.1);
        }
    }
    println!("{all:?}");
    if all.heads.1 > 0 {
        assert!(
            percent(all.heads) >= 99.9 && percent(all.order) >= 99.9,
            "{all:?}"
        );
        assert!(
            percent(all.outcomes) >= 99.9 && percent(all.admissions) >= 99.0,
            "{all:?}"
        );
        assert!(percent(all.victims) >= 90.0, "{all:?}");
    }
}
