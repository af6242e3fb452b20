//! Which worker runs which task: what a rule may know, and published rules by name.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;

use crate::workflows::memory::Memory;
use crate::workflows::system::{System, Workflow};
use pleach_serving::settings::{Settings, rule};

/// What a worker reported of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When all that it had was believed to be done, µs.
    pub free_us: u64,
    /// Models that it had, loaded or had queued tasks of, a bit each.
    pub models: u64,
}

/// What the worker that decides knows: its own present state, and what the others reported last.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// µs.
    pub now_us: u64,
    /// The worker that decides.
    pub own: usize,
    /// By number.
    pub workers: &'a [Seen],
    /// Models, workflows, links.
    pub system: &'a System,
}

impl View<'_> {
    /// Believed wait at a worker, µs.
    #[must_use]
    pub fn wait_us(&self, worker: usize) -> u64 {
        self.workers[worker].free_us.saturating_sub(self.now_us)
    }

    fn has(&self, worker: usize, model: usize) -> bool {
        self.workers[worker].models & (1 << model) != 0
    }
}

/// A task whose inputs are all there.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a> {
    /// Its workflow.
    pub workflow: &'a Workflow,
    /// Its number there.
    pub task: usize,
    /// Where inputs lie, and their kB.
    pub inputs: &'a [(usize, u64)],
    /// Where it was planned to run, and the wait believed there, µs.
    pub planned: Option<(usize, u64)>,
}

/// Places tasks.
pub trait Placer: Send {
    /// Worker and believed wait (µs) for each task of a query that comes to [`View::own`]; empty: later.
    ///
    /// # Errors
    /// A rule that cannot decide.
    fn plan(&mut self, view: &View<'_>, workflow: &Workflow) -> Result<Vec<(usize, u64)>, Problem>;

    /// The worker of a task that may run now.
    ///
    /// # Errors
    /// A rule that cannot decide.
    fn place(&mut self, view: &View<'_>, ready: &Ready<'_>) -> Result<usize, Problem>;

    /// What workers do with their memory.
    fn memory(&self) -> Memory;
}

/// Of all rules here.
const FAMILY: &str = "workflow placer";
/// The rules.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "compass", "waits, models in memory, links",
        "by rank the earliest end, loads counted; anew where the wait has grown", "arXiv 2402.17652"),
    rule(FAMILY, "jit", "waits, models in memory, links", "the earliest end when its inputs are there", "baseline of Compass"),
    rule(FAMILY, "heft", "waits, links", "by rank the earliest end when the query comes", "Topcuoglu et al., TPDS'02"),
    rule(FAMILY, "hash", "nothing", "each model has one worker", "baseline of Compass"),
];

/// Growth of a wait beyond which a task is planned anew. *Assumed*.
const THETA: f64 = 2.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// By rank at arrival; factor beyond which tasks are placed anew.
    Planned {
        theta: Option<f64>,
    },
    Jit,
    Hash,
}

struct Named {
    rule: Rule,
    /// Whether loads count.
    loads: bool,
    memory: Memory,
}

/// The rule of a name with settings. All have `lookahead=true` and `prefetch=true` for memories; all but `hash` have `loads`
/// (whether loads count: not in `heft`, *assumed*); `compass` has `theta=2` and `replan=true`.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(text: &str) -> Result<Box<dyn Placer>, Problem> {
    let mut settings = Settings::of("placer", text, POLICIES)?;
    let memory = Memory {
        looks_ahead: settings.truth("lookahead")?.unwrap_or(true),
        prefetches: settings.truth("prefetch")?.unwrap_or(true),
    };
    let name = settings.name;
    let loads = if name == "hash" {
        false
    } else {
        settings.truth("loads")?.unwrap_or(name != "heft")
    };
    let rule = match name {
        "compass" => {
            let theta = settings.number("theta", 1.0..=1e6)?.unwrap_or(THETA);
            let replans = settings.truth("replan")?.unwrap_or(true);
            Rule::Planned {
                theta: replans.then_some(theta),
            }
        }
        "heft" => Rule::Planned { theta: None },
        "jit" => Rule::Jit,
        _ => Rule::Hash,
    };
    settings.end()?;
    Ok(Box::new(Named { rule, loads, memory }))
}

impl Named {
    /// When a task is believed to end at a worker where it may begin at `start_us`, µs.
    fn end_us(&self, view: &View<'_>, workflow: &Workflow, task: usize, worker: usize, start_us: u64) -> u64 {
        let task = &workflow.tasks()[task];
        let is_loaded = self.loads && !view.has(worker, task.model);
        let load_us = if is_loaded {
            view.system.models()[task.model].load_us
        } else {
            0
        };
        start_us + load_us + task.run_us
    }

    /// All tasks in the order of their ranks, each where it ends first.
    fn by_rank(&self, view: &View<'_>, workflow: &Workflow) -> Vec<(usize, u64)> {
        let links = view.system.workers();
        let ranks_us = workflow.ranks_us(links);
        let mut order: Vec<usize> = (0..ranks_us.len()).collect();
        order.sort_by_key(|task| std::cmp::Reverse(ranks_us[*task]));
        let mut workers = view.workers.to_vec();
        let mut plan = vec![(0, 0); ranks_us.len()];
        let mut ends_us = vec![0; ranks_us.len()];
        for task in order {
            let planned = View {
                workers: &workers,
                ..*view
            };
            let input_us = |worker: usize| {
                let come = |from: usize, at_us: u64, kb: u64| {
                    at_us + if from == worker { 0 } else { links.transfer_us(kb) }
                };
                let before = workflow.tasks()[task].after.iter();
                let last = before.map(|before| {
                    come(
                        plan[*before].0,
                        ends_us[*before],
                        workflow.tasks()[*before].output_kb,
                    )
                });
                last.max()
                    .unwrap_or_else(|| come(view.own, view.now_us, workflow.input_kb))
            };
            let end_us = |worker: usize| {
                let start_us = workers[worker].free_us.max(view.now_us).max(input_us(worker));
                self.end_us(&planned, workflow, task, worker, start_us)
            };
            let chosen = earliest(workers.len(), view.own, end_us);
            ends_us[task] = end_us(chosen);
            plan[task] = (chosen, planned.wait_us(chosen));
            workers[chosen].free_us = ends_us[task];
            workers[chosen].models |= 1 << workflow.tasks()[task].model;
        }
        plan
    }

    /// Where a task with its inputs ends first.
    fn now(&self, view: &View<'_>, ready: &Ready<'_>) -> usize {
        let links = view.system.workers();
        earliest(view.workers.len(), view.own, |worker| {
            let moved = ready.inputs.iter().filter(|(from, _)| *from != worker);
            let input_us = moved.map(|(_, kb)| links.transfer_us(*kb)).max().unwrap_or(0);
            let start_us = view.now_us + input_us.max(view.wait_us(worker));
            self.end_us(view, ready.workflow, ready.task, worker, start_us)
        })
    }
}

/// The worker with the least of a time; among equal ones that which decides, then the first behind it.
fn earliest(num: usize, own: usize, time_us: impl Fn(usize) -> u64) -> usize {
    let behind = (0..num).map(|step| (own + step) % num);
    behind.min_by_key(|worker| time_us(*worker)).unwrap_or(own)
}

/// A worker for a model, the same always: the finalizer of SplitMix64 over the model's number.
fn hashed(model: usize, num_workers: usize) -> usize {
    let mut bits = (model as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) % num_workers as u64) as usize
}

impl Placer for Named {
    fn plan(&mut self, view: &View<'_>, workflow: &Workflow) -> Result<Vec<(usize, u64)>, Problem> {
        Ok(match self.rule {
            Rule::Planned { .. } => self.by_rank(view, workflow),
            Rule::Jit => Vec::new(),
            Rule::Hash => {
                let tasks = workflow.tasks().iter();
                tasks
                    .map(|task| (hashed(task.model, view.workers.len()), 0))
                    .collect()
            }
        })
    }

    fn place(&mut self, view: &View<'_>, ready: &Ready<'_>) -> Result<usize, Problem> {
        Ok(match (self.rule, ready.planned) {
            (Rule::Planned { theta: Some(theta) }, Some((worker, wait_us))) => {
                let has_grown = view.wait_us(worker) as f64 > theta * wait_us as f64;
                if has_grown { self.now(view, ready) } else { worker }
            }
            (_, Some((worker, _))) => worker,
            (_, None) => self.now(view, ready),
        })
    }

    fn memory(&self) -> Memory {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five free workers that have all models: the root stays, and so does the branch of the highest rank.
    #[test]
    fn branches_spread_where_that_ends_sooner() {
        let system = System::compass(0).unwrap();
        let workers = [Seen {
            free_us: 0,
            models: u64::MAX,
        }; 5];
        let view = View {
            now_us: 0,
            own: 2,
            workers: &workers,
            system: &system,
        };
        let plan = by_name("compass")
            .unwrap()
            .plan(&view, &system.workflows()[0])
            .unwrap();
        let placed: Vec<usize> = plan.iter().map(|(worker, _)| *worker).collect();
        // Root on its entry; of equal ranks the lower number stays, the others go on to the next workers.
        assert_eq!(placed, [2, 4, 2, 3]);
        let cold = [Seen::default(); 5];
        let view = View {
            workers: &cold,
            ..view
        };
        let plan = by_name("compass")
            .unwrap()
            .plan(&view, &system.workflows()[1])
            .unwrap();
        assert_eq!(plan[0].0, 2);
    }

    #[test]
    fn a_task_is_placed_anew_only_where_its_wait_has_grown() {
        let system = System::compass(0).unwrap();
        let mut workers = [Seen {
            free_us: 0,
            models: u64::MAX,
        }; 5];
        workers[1].free_us = 250_000;
        let view = View {
            now_us: 0,
            own: 0,
            workers: &workers,
            system: &system,
        };
        let ready = |wait_us| Ready {
            workflow: &system.workflows()[1],
            task: 1,
            inputs: &[(0, 10)],
            planned: Some((1, wait_us)),
        };
        let mut compass = by_name("compass").unwrap();
        assert_eq!(compass.place(&view, &ready(125_000)).unwrap(), 1);
        assert_eq!(compass.place(&view, &ready(124_999)).unwrap(), 0);
        assert_eq!(
            by_name("compass:replan=false")
                .unwrap()
                .place(&view, &ready(0))
                .unwrap(),
            1
        );
        assert_eq!(by_name("heft").unwrap().place(&view, &ready(0)).unwrap(), 1);
    }

    #[test]
    fn who_counts_loads_goes_where_the_model_is() {
        let system = System::compass(0).unwrap();
        let mut workers = [Seen::default(); 5];
        workers[3].models = 1 << 3;
        let view = View {
            now_us: 0,
            own: 0,
            workers: &workers,
            system: &system,
        };
        let root = |name: &str| {
            by_name(name)
                .unwrap()
                .plan(&view, &system.workflows()[1])
                .unwrap()[0]
                .0
        };
        assert_eq!(
            (root("compass"), root("heft"), root("heft:loads=true")),
            (3, 0, 3)
        );
    }

    #[test]
    fn names_and_settings_that_are_not_there_are_refused() {
        for (text, expected) in [
            ("eft", "compass, jit, heft, hash"),
            ("hash:loads=true", "lookahead, prefetch"),
            ("compass:theta=0", "1 to 1000000"),
        ] {
            let error = by_name(text).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
