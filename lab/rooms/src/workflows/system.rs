//! Models, workflows and workers, checked once.

use pleach_scheduler::Problem;

use pleach_serving::settings::within;

/// Most models of a system: workers report them as bits of one number.
pub(crate) const MODELS_MAX: usize = 64;
/// Most tasks of a workflow.
pub(crate) const TASKS_MAX: usize = 1_000;
/// Most workers.
const WORKERS_MAX: usize = 1_000;
/// Longest time of a task, and of anything else here, µs.
pub(crate) const TIME_US_MAX: u64 = 86_400_000_000;

/// A model that tasks need in GPU memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Memory that it takes, with what it needs to run, MiB.
    pub size_mib: u64,
    /// From the host's memory to the GPU, µs.
    pub load_us: u64,
}

/// A task of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Number of its model.
    pub model: usize,
    /// Believed time with the model in memory, µs.
    pub run_us: u64,
    /// What it gives to each successor, kB.
    pub output_kb: u64,
    /// Tasks that come before it.
    pub after: Vec<usize>,
}

/// A graph of tasks without cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What a query brings, kB.
    pub input_kb: u64,
    tasks: Vec<Task>,
    /// Tasks that come after each.
    successors: Vec<Vec<usize>>,
    /// A task behind all that come before it.
    order: Vec<usize>,
}

impl Workflow {
    /// Tasks as (name, model, run time in µs, output in kB, names of the tasks before it).
    ///
    /// # Errors
    /// A model or a task that is not there, a name twice, a cycle; each named.
    pub fn new(
        name: &str,
        input_kb: u64,
        tasks: &[(&str, &str, u64, u64, &[&str])],
        models: &[Model],
    ) -> Result<Workflow, Problem> {
        let key = |task: &str, what: &str| format!("workflows.{name}.{task}{what}");
        within(&format!("workflows.{name}.tasks"), tasks.len(), 1, TASKS_MAX)?;
        let names: Vec<&str> = tasks.iter().map(|task| task.0).collect();
        let mut checked = Vec::with_capacity(tasks.len());
        for (number, (task, model, run_us, output_kb, after)) in tasks.iter().enumerate() {
            if names[..number].contains(task) {
                return Err(Problem::new(
                    key(task, ""),
                    *task,
                    "each name once",
                    "Give it another name.",
                ));
            }
            let Some(model_number) = models.iter().position(|known| known.name == *model) else {
                let known: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
                return Err(Problem::new(
                    key(task, ".model"),
                    *model,
                    known.join(", "),
                    "Add the model.",
                ));
            };
            within(&key(task, ".run_us"), *run_us, 1, TIME_US_MAX)?;
            let number_of = |before: &&str| {
                let refused = || {
                    Problem::new(
                        key(task, ".after"),
                        *before,
                        names.join(", "),
                        "Name a task of this workflow.",
                    )
                };
                names.iter().position(|name| name == before).ok_or_else(refused)
            };
            checked.push(Task {
                name: (*task).to_string(),
                model: model_number,
                run_us: *run_us,
                output_kb: *output_kb,
                after: after.iter().map(number_of).collect::<Result<_, _>>()?,
            });
        }
        let mut successors = vec![Vec::new(); checked.len()];
        for (number, task) in checked.iter().enumerate() {
            for before in &task.after {
                successors[*before].push(number);
            }
        }
        let order = order(&checked, &successors).map_err(|task| {
            let value = checked[task].name.as_str();
            Problem::new(
                format!("workflows.{name}"),
                value,
                "a graph without cycles",
                "This task comes before itself.",
            )
        })?;
        Ok(Workflow {
            name: name.to_string(),
            input_kb,
            tasks: checked,
            successors,
            order,
        })
    }

    /// By number.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Tasks that come after one.
    #[must_use]
    pub fn successors(&self, task: usize) -> &[usize] {
        &self.successors[task]
    }

    /// The longest path when each task takes so long, µs: no placement ends a query sooner.
    #[must_use]
    pub fn critical_us(&self, run_us: &[u64]) -> u64 {
        let mut ends_us = vec![0; self.tasks.len()];
        for task in &self.order {
            let start_us = self.tasks[*task]
                .after
                .iter()
                .map(|before| ends_us[*before])
                .max();
            ends_us[*task] = start_us.unwrap_or(0) + run_us[*task];
        }
        ends_us.into_iter().max().unwrap_or(0)
    }

    /// Upward ranks (Topcuoglu et al., HEFT, 2002), µs: the task's time, and the longest way from there to an end, outputs moved.
    #[must_use]
    pub fn ranks_us(&self, workers: &Workers) -> Vec<u64> {
        let mut ranks_us = vec![0; self.tasks.len()];
        for number in self.order.iter().rev() {
            let task = &self.tasks[*number];
            let moved_us = workers.transfer_us(task.output_kb);
            let longest = self.successors[*number]
                .iter()
                .map(|next| moved_us + ranks_us[*next])
                .max();
            ranks_us[*number] = task.run_us + longest.unwrap_or(0);
        }
        ranks_us
    }
}

/// Tasks in an order in which each comes behind its predecessors, or one of a cycle.
fn order(tasks: &[Task], successors: &[Vec<usize>]) -> Result<Vec<usize>, usize> {
    let mut num_before: Vec<usize> = tasks.iter().map(|task| task.after.len()).collect();
    let mut order: Vec<usize> = (0..tasks.len()).filter(|task| num_before[*task] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for successor in &successors[order[next]] {
            num_before[*successor] -= 1;
            if num_before[*successor] == 0 {
                order.push(*successor);
            }
        }
        next += 1;
    }
    let Some(mut task) = (0..tasks.len()).find(|task| num_before[*task] > 0) else {
        return Ok(order);
    };
    // Each task that waits has a predecessor that waits: as many steps back as there are tasks end within a cycle.
    for _ in 0..tasks.len() {
        let waits = tasks[task].after.iter().find(|before| num_before[**before] > 0);
        task = *waits.unwrap_or(&task);
    }
    Err(task)
}

/// Equal workers, each with one GPU that runs one task at a time and loads one model at a time beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Workers.
    pub num: usize,
    /// GPU memory of each for models, MiB.
    pub memory_mib: u64,
    /// Time to begin a transfer between two workers, µs.
    pub link_latency_us: u64,
    /// kB that then pass in a ms.
    pub link_kb_per_ms: u64,
    /// Time between two looks at the state of another worker, µs; 0: all is known at once.
    pub refresh_us: u64,
}

impl Workers {
    /// Time of a transfer between two workers, µs.
    #[must_use]
    pub fn transfer_us(&self, kb: u64) -> u64 {
        self.link_latency_us + kb * 1_000 / self.link_kb_per_ms
    }
}

/// Models, the workflows that use them, and workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    models: Vec<Model>,
    workflows: Vec<Workflow>,
    workers: Workers,
}

/// A model that passes the PCI bus at 12 GB/s. *Assumed*: what PCIe 3.0 x16 gives.
fn model(name: &str, size_mib: u64) -> Model {
    Model {
        name: name.into(),
        size_mib,
        load_us: size_mib * 1_048_576 / 12_000,
    }
}

impl System {
    /// Checks.
    ///
    /// # Errors
    /// A model that fits no worker, numbers out of range.
    pub fn new(models: Vec<Model>, workflows: Vec<Workflow>, workers: Workers) -> Result<System, Problem> {
        within("models", models.len(), 1, MODELS_MAX)?;
        within("workflows", workflows.len(), 1, 1_000)?;
        within("workers.num", workers.num, 1, WORKERS_MAX)?;
        within(
            "workers.link_kb_per_ms",
            workers.link_kb_per_ms,
            1,
            u64::from(u32::MAX),
        )?;
        within("workers.link_latency_us", workers.link_latency_us, 0, TIME_US_MAX)?;
        within("workers.refresh_us", workers.refresh_us, 0, TIME_US_MAX)?;
        for model in &models {
            within(
                &format!("models.{}.size_mib", model.name),
                model.size_mib,
                1,
                workers.memory_mib,
            )?;
            within(
                &format!("models.{}.load_us", model.name),
                model.load_us,
                0,
                TIME_US_MAX,
            )?;
        }
        for workflow in &workflows {
            let known = workflow.tasks.iter().all(|task| task.model < models.len());
            if !known {
                let allowed = "workflows over these models";
                return Err(Problem::new(
                    "workflows",
                    &workflow.name,
                    allowed,
                    "Make them of the same list.",
                ));
            }
        }
        Ok(System {
            models,
            workflows,
            workers,
        })
    }

    /// Four workflows on five T4 (16 GB): translation with three branches, captions that are spoken, answers to questions,
    /// perception in three dimensions.
    ///
    /// # Source
    /// Compass (arXiv 2402.17652): the four workflows, their kinds of models, five T4, views refreshed each 200 ms. All times and
    /// sizes are *assumed*: sizes such that half of the models fit one GPU, times such that three queries a second are three
    /// quarters of what five workers do; 100 Gb/s between workers.
    ///
    /// # Errors
    /// None in truth.
    pub fn compass(refresh_us: u64) -> Result<System, Problem> {
        let models = vec![
            model("opt", 6_144),
            model("marian-fr", 2_048),
            model("mt5", 4_096),
            model("vit-gpt2", 4_096),
            model("espnet", 3_072),
            model("bart", 5_120),
            model("detr", 3_072),
            model("glpn", 3_072),
            model("fusion", 512),
        ];
        let workflows = vec![
            Workflow::new(
                "translation",
                10,
                &[
                    ("understand", "opt", 600_000, 10, &[]),
                    ("french", "marian-fr", 350_000, 10, &["understand"]),
                    ("chinese", "mt5", 400_000, 10, &["understand"]),
                    ("japanese", "mt5", 400_000, 10, &["understand"]),
                ],
                &models,
            )?,
            Workflow::new(
                "caption",
                2_000,
                &[
                    ("describe", "vit-gpt2", 700_000, 10, &[]),
                    ("speak", "espnet", 550_000, 500, &["describe"]),
                ],
                &models,
            )?,
            Workflow::new(
                "questions",
                10,
                &[
                    ("find", "bart", 450_000, 10, &[]),
                    ("answer", "opt", 650_000, 10, &["find"]),
                ],
                &models,
            )?,
            Workflow::new(
                "perception",
                4_000,
                &[
                    ("detect", "detr", 350_000, 100, &[]),
                    ("depth", "glpn", 450_000, 4_000, &[]),
                    ("join", "fusion", 100_000, 1_000, &["detect", "depth"]),
                ],
                &models,
            )?,
        ];
        let workers = Workers {
            num: 5,
            memory_mib: 16_384,
            link_latency_us: 100,
            link_kb_per_ms: 12_500,
            refresh_us,
        };
        System::new(models, workflows, workers)
    }

    /// By number.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// By number.
    #[must_use]
    pub fn workflows(&self) -> &[Workflow] {
        &self.workflows
    }

    /// The workers.
    #[must_use]
    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models() -> Vec<Model> {
        vec![model("a", 100), model("b", 200)]
    }

    fn refusal(tasks: &[(&str, &str, u64, u64, &[&str])]) -> String {
        Workflow::new("w", 0, tasks, &models()).unwrap_err().to_string()
    }

    #[test]
    fn cycles_and_what_is_not_there_are_refused_with_their_name() {
        let said = refusal(&[
            ("one", "a", 1, 0, &[]),
            ("two", "a", 1, 0, &["one", "four"]),
            ("three", "b", 1, 0, &["two"]),
            ("four", "b", 1, 0, &["three"]),
            ("five", "b", 1, 0, &["four"]),
        ]);
        let is_of_the_cycle = ["two", "three", "four"]
            .iter()
            .any(|name| said.contains(&format!("= {name}:")));
        assert!(is_of_the_cycle && said.contains("without cycles"), "{said}");
        let said = refusal(&[("one", "c", 1, 0, &[])]);
        assert!(
            said.contains("workflows.w.one.model = c: allowed is a, b"),
            "{said}"
        );
        let said = refusal(&[("one", "a", 1, 0, &["two"])]);
        assert!(said.contains("workflows.w.one.after = two"), "{said}");
        let said = refusal(&[("one", "a", 1, 0, &[]), ("one", "a", 1, 0, &[])]);
        assert!(said.contains("each name once"), "{said}");
        let said = refusal(&[("one", "a", 1, 0, &["one"])]);
        assert!(said.contains("= one:") && said.contains("cycles"), "{said}");
    }

    #[test]
    fn a_model_that_fits_no_worker_is_refused() {
        let workflow = Workflow::new("w", 0, &[("one", "a", 1, 0, &[])], &models()).unwrap();
        let mut workers = *System::compass(0).unwrap().workers();
        workers.memory_mib = 150;
        let said = System::new(models(), vec![workflow], workers)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("models.b.size_mib = 200: allowed is 1 to 150"),
            "{said}"
        );
    }

    /// 600 ms, then the longer of the branches; 10 kB take 100 us and less than one more.
    #[test]
    fn critical_paths_and_ranks_are_as_worked_by_hand() {
        let system = System::compass(0).unwrap();
        let translation = &system.workflows()[0];
        let run_us: Vec<u64> = translation.tasks().iter().map(|task| task.run_us).collect();
        assert_eq!(translation.critical_us(&run_us), 1_000_000);
        assert_eq!(
            translation.ranks_us(system.workers()),
            [1_000_100, 350_000, 400_000, 400_000]
        );
        // 4 GB at 12 GB/s: a third of a second.
        assert_eq!(system.models()[2].load_us, 357_913);
    }
}
