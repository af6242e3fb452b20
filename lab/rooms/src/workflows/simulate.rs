//! A list of queries played on workers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pleach_scheduler::Problem;

use crate::workflows::outcome::{Outcome, Served};
use crate::workflows::policy::{Placer, Ready, Seen, View};
use crate::workflows::query::Queries;
use crate::workflows::system::System;
use crate::workflows::worker::{Item, Worker};

/// What happens. Of one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker's task ends.
    Ran(usize),
    /// A worker's load ends.
    Loaded(usize),
    /// A task's inputs are at its worker: query, task, worker.
    Came(usize, usize, usize),
}

/// A query under way.
struct Flight {
    /// Inputs that each task lacks.
    num_lacking: Vec<usize>,
    /// Worker and believed wait of each, or none.
    plan: Vec<(usize, u64)>,
    /// Where each ran, and its end.
    ran: Vec<Option<(usize, u64)>>,
    num_left: usize,
}

/// A run under way.
struct Run<'a> {
    system: &'a System,
    queries: &'a Queries,
    placer: &'a mut dyn Placer,
    workers: Vec<Worker>,
    /// What each worker reported last, and when it reports next.
    told: Vec<Seen>,
    next_us: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    flights: BTreeMap<usize, Flight>,
    finish_us: Vec<Option<u64>>,
    num_tasks: u64,
    num_moved: u64,
}

/// Plays a list; `is_warm`: workers begin with as many models as fit, each from another one on, and with nothing otherwise.
/// Deterministic in the list, the system and the rule.
///
/// # Errors
/// A rule that fails or places a task nowhere.
pub fn simulate(
    system: &System,
    queries: &Queries,
    is_warm: bool,
    placer: &mut dyn Placer,
) -> Result<Outcome, Problem> {
    let workers = *system.workers();
    let memory = placer.memory();
    let num = workers.num;
    let first = |worker: usize| is_warm.then_some(worker * system.models().len() / num);
    let offset = |worker: usize| (u128::from(workers.refresh_us) * worker as u128 / num as u128) as u64;
    let mut run = Run {
        system,
        queries,
        placer,
        workers: (0..num)
            .map(|worker| Worker::new(system, memory, first(worker)))
            .collect(),
        told: vec![Seen::default(); num],
        next_us: (0..num).map(offset).collect(),
        events: BinaryHeap::new(),
        flights: BTreeMap::new(),
        finish_us: vec![None; queries.rows().len()],
        num_tasks: 0,
        num_moved: 0,
    };
    for (worker, seen) in run.told.iter_mut().enumerate() {
        *seen = run.workers[worker].seen(0);
    }
    let mut next = 0;
    loop {
        let event_us = run.events.peek().map(|Reverse((at_us, _))| *at_us);
        let arrival_us = queries.rows().get(next).map(|row| row.arrival_us);
        let Some(now_us) = event_us.into_iter().chain(arrival_us).min() else {
            break;
        };
        run.tell(now_us);
        while let Some(Reverse((at_us, event))) = run.events.peek().copied()
            && at_us == now_us
        {
            run.events.pop();
            run.happen(now_us, event)?;
        }
        while queries
            .rows()
            .get(next)
            .is_some_and(|row| row.arrival_us == now_us)
        {
            run.arrive(now_us, next)?;
            next += 1;
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    /// Workers that were due by now have reported their state at that time. Nothing happened since the last event, so of several
    /// reports only the last matters.
    fn tell(&mut self, now_us: u64) {
        let period_us = self.system.workers().refresh_us;
        if period_us == 0 {
            return;
        }
        for (worker, next_us) in self.next_us.iter_mut().enumerate() {
            if *next_us <= now_us {
                let last_us = *next_us + (now_us - *next_us) / period_us * period_us;
                self.told[worker] = self.workers[worker].seen(last_us);
                *next_us = last_us + period_us;
            }
        }
    }

    /// What a worker knows: its own present state, and what the others reported, or their present state where nothing is old.
    fn known(&self, now_us: u64, own: usize) -> Vec<Seen> {
        let is_fresh = self.system.workers().refresh_us == 0;
        let of = |(worker, told): (usize, &Seen)| {
            if is_fresh || worker == own {
                self.workers[worker].seen(now_us)
            } else {
                *told
            }
        };
        self.told.iter().enumerate().map(of).collect()
    }

    fn arrive(&mut self, now_us: u64, query: usize) -> Result<(), Problem> {
        let row = &self.queries.rows()[query];
        let workflow = &self.system.workflows()[row.workflow];
        let seen = self.known(now_us, row.entry);
        let view = View {
            now_us,
            own: row.entry,
            workers: &seen,
            system: self.system,
        };
        let plan = self.placer.plan(&view, workflow)?;
        if !plan.is_empty() && plan.len() != workflow.tasks().len() {
            let allowed = format!("a worker for each of {} tasks, or none", workflow.tasks().len());
            return Err(Problem::new("placer", plan.len(), allowed, "Place all tasks."));
        }
        let num_lacking: Vec<usize> = workflow.tasks().iter().map(|task| task.after.len()).collect();
        let roots: Vec<usize> = (0..num_lacking.len())
            .filter(|task| num_lacking[*task] == 0)
            .collect();
        self.num_tasks += num_lacking.len() as u64;
        self.flights.insert(
            query,
            Flight {
                ran: vec![None; num_lacking.len()],
                num_left: num_lacking.len(),
                num_lacking,
                plan,
            },
        );
        for task in roots {
            self.dispatch(now_us, query, task, row.entry)?;
        }
        Ok(())
    }

    /// A task has its inputs, and a worker decides where it runs. Inputs were on their way to the planned worker since they were
    /// there; elsewhere they begin now.
    fn dispatch(&mut self, now_us: u64, query: usize, task: usize, own: usize) -> Result<(), Problem> {
        let row = &self.queries.rows()[query];
        let workflow = &self.system.workflows()[row.workflow];
        let flight = &self.flights[&query];
        let mut inputs = Vec::new();
        let mut since_us = Vec::new();
        for before in &workflow.tasks()[task].after {
            if let Some((worker, end_us)) = flight.ran[*before] {
                inputs.push((worker, workflow.tasks()[*before].output_kb));
                since_us.push(end_us);
            }
        }
        if inputs.is_empty() {
            inputs.push((row.entry, workflow.input_kb));
            since_us.push(now_us);
        }
        let seen = self.known(now_us, own);
        let view = View {
            now_us,
            own,
            workers: &seen,
            system: self.system,
        };
        let planned = flight.plan.get(task).copied();
        let chosen = self.placer.place(
            &view,
            &Ready {
                workflow,
                task,
                inputs: &inputs,
                planned,
            },
        )?;
        if chosen >= self.workers.len() {
            let allowed = format!("a worker below {}", self.workers.len());
            return Err(Problem::new("placer", chosen, allowed, "Choose a worker."));
        }
        let is_as_planned = planned.is_some_and(|(worker, _)| worker == chosen);
        self.num_moved += u64::from(planned.is_some() && !is_as_planned);
        let come_us = inputs.iter().zip(&since_us).map(|((from, kb), since_us)| {
            let begin_us = if is_as_planned { *since_us } else { now_us };
            begin_us
                + if *from == chosen {
                    0
                } else {
                    self.system.workers().transfer_us(*kb)
                }
        });
        let at_us = come_us.max().unwrap_or(now_us).max(now_us);
        if at_us == now_us {
            return self.happen(now_us, Event::Came(query, task, chosen));
        }
        self.events
            .push(Reverse((at_us, Event::Came(query, task, chosen))));
        Ok(())
    }

    fn happen(&mut self, now_us: u64, event: Event) -> Result<(), Problem> {
        match event {
            Event::Came(query, task, worker) => {
                let row = &self.queries.rows()[query];
                let of = &self.system.workflows()[row.workflow].tasks()[task];
                self.workers[worker].push(Item {
                    query,
                    task,
                    model: of.model,
                    believed_us: of.run_us,
                    true_us: row.run_us[task],
                });
                self.act(now_us, worker);
            }
            Event::Loaded(worker) => {
                self.workers[worker].end_load(self.system);
                self.act(now_us, worker);
            }
            Event::Ran(worker) => {
                let item = self.workers[worker].end_run();
                self.act(now_us, worker);
                if let Some(item) = item {
                    self.ran(now_us, worker, item)?;
                }
            }
        }
        Ok(())
    }

    fn act(&mut self, now_us: u64, worker: usize) {
        let begun = self.workers[worker].act(now_us, self.system);
        if let Some(end_us) = begun.run_end_us {
            self.events.push(Reverse((end_us, Event::Ran(worker))));
        }
        if let Some(end_us) = begun.load_end_us {
            self.events.push(Reverse((end_us, Event::Loaded(worker))));
        }
    }

    /// A task ended: its successors that lack nothing more are placed by this worker.
    fn ran(&mut self, now_us: u64, worker: usize, item: Item) -> Result<(), Problem> {
        let workflow = &self.system.workflows()[self.queries.rows()[item.query].workflow];
        let Some(flight) = self.flights.get_mut(&item.query) else {
            unreachable!("a task of a query that ended");
        };
        let old = flight.ran[item.task].replace((worker, now_us));
        assert!(
            old.is_none(),
            "task {} of query {} ran twice",
            item.task,
            item.query
        );
        flight.num_left -= 1;
        if flight.num_left == 0 {
            self.flights.remove(&item.query);
            self.finish_us[item.query] = Some(now_us);
            return Ok(());
        }
        let mut ready = Vec::new();
        for next in workflow.successors(item.task) {
            flight.num_lacking[*next] -= 1;
            if flight.num_lacking[*next] == 0 {
                ready.push(*next);
            }
        }
        for task in ready {
            self.dispatch(now_us, item.query, task, worker)?;
        }
        Ok(())
    }

    fn outcome(self) -> Outcome {
        let rows = self.queries.rows().iter().zip(&self.finish_us);
        let served = rows.map(|(row, finish_us)| Served {
            arrival_us: row.arrival_us,
            finish_us: finish_us.unwrap_or_else(|| unreachable!("a query was lost")),
            critical_us: self.system.workflows()[row.workflow].critical_us(&row.run_us),
        });
        Outcome {
            queries: served.collect(),
            num_tasks: self.num_tasks,
            num_loads: self.workers.iter().map(|worker| worker.num_loads).sum(),
            num_moved: self.num_moved,
            busy_us: self.workers.iter().map(|worker| worker.busy_us).sum(),
        }
    }
}
