//! One worker: its queue, what it runs, what it loads, what its memory holds.

use std::collections::VecDeque;

use crate::workflows::memory::{Held, Memory};
use crate::workflows::policy::Seen;
use crate::workflows::system::System;

/// A task that waits or runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub query: usize,
    pub task: usize,
    pub model: usize,
    pub believed_us: u64,
    pub true_us: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Worker {
    memory: Memory,
    queue: VecDeque<Item>,
    /// What runs, and its believed end.
    running: Option<(Item, u64)>,
    /// What is loaded, and its end.
    loading: Option<(usize, u64)>,
    held: Vec<Held>,
    free_mib: u64,
    num_uses: u64,
    pub num_loads: u64,
    pub busy_us: u64,
}

/// What a worker has begun: ends, µs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Begun {
    pub run_end_us: Option<u64>,
    pub load_end_us: Option<u64>,
}

impl Worker {
    /// With models in memory from the beginning: those from `first` on, in a circle, as many as fit.
    pub fn new(system: &System, memory: Memory, first: Option<usize>) -> Worker {
        let mut worker = Worker {
            memory,
            queue: VecDeque::new(),
            running: None,
            loading: None,
            held: Vec::new(),
            free_mib: system.workers().memory_mib,
            num_uses: 0,
            num_loads: 0,
            busy_us: 0,
        };
        let num_models = system.models().len();
        for model in first
            .into_iter()
            .flat_map(|first| (first..first + num_models).map(move |model| model % num_models))
        {
            let size_mib = system.models()[model].size_mib;
            if size_mib <= worker.free_mib {
                worker.hold(model, size_mib);
            }
        }
        worker
    }

    fn hold(&mut self, model: usize, size_mib: u64) {
        self.free_mib -= size_mib;
        self.num_uses += 1;
        self.held.push(Held {
            model,
            size_mib,
            last: self.num_uses,
        });
    }

    pub fn push(&mut self, item: Item) {
        self.queue.push_back(item);
    }

    /// The task that ran ends.
    pub fn end_run(&mut self) -> Option<Item> {
        let (item, _) = self.running.take()?;
        Some(item)
    }

    /// The model that was loaded is there. Its memory was taken when it began.
    pub fn end_load(&mut self, system: &System) {
        if let Some((model, _)) = self.loading.take() {
            let size_mib = system.models()[model].size_mib;
            self.free_mib += size_mib;
            self.hold(model, size_mib);
        }
    }

    /// Begins what can begin: the head of the queue, if its model is there, then a load.
    pub fn act(&mut self, now_us: u64, system: &System) -> Begun {
        let mut begun = Begun::default();
        if self.running.is_none()
            && let Some(item) = self.queue.front().copied()
            && let Some(held) = self.held.iter_mut().find(|held| held.model == item.model)
        {
            self.num_uses += 1;
            held.last = self.num_uses;
            self.queue.pop_front();
            self.running = Some((item, now_us + item.believed_us));
            self.busy_us += item.true_us;
            begun.run_end_us = Some(now_us + item.true_us);
        }
        if self.loading.is_none() && !self.queue.is_empty() {
            let size_mib = |model: usize| system.models()[model].size_mib;
            let models: VecDeque<usize> = self.queue.iter().map(|item| item.model).collect();
            let running = self.running.map(|(item, _)| item.model);
            if let Some(load) = self
                .memory
                .next(&self.held, &models, running, self.free_mib, size_mib)
            {
                self.held.retain(|held| {
                    let goes = load.victims.contains(&held.model);
                    self.free_mib += if goes { held.size_mib } else { 0 };
                    !goes
                });
                self.free_mib -= size_mib(load.model);
                let end_us = now_us + system.models()[load.model].load_us;
                self.loading = Some((load.model, end_us));
                self.num_loads += 1;
                begun.load_end_us = Some(end_us);
            }
        }
        begun
    }

    /// What it tells of itself: when all that it has is believed to be done, and the models that it has or will have.
    pub fn seen(&self, now_us: u64) -> Seen {
        let mut free_us = self.running.map_or(now_us, |(_, end_us)| end_us.max(now_us));
        let mut models = 0;
        for held in &self.held {
            models |= 1 << held.model;
        }
        if let Some((model, end_us)) = self.loading {
            models |= 1 << model;
            if self.queue.front().is_some_and(|item| item.model == model) {
                free_us = free_us.max(end_us);
            }
        }
        for item in &self.queue {
            models |= 1 << item.model;
            free_us += item.believed_us;
        }
        Seen { free_us, models }
    }
}
