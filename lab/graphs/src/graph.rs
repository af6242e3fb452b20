//! A graph of stages: what each stage has to do, how long its tasks take, and which stages wait for which.

use pleach_scheduler::Problem;

/// Numbers of executors at a job for which durations are known.
///
/// # Source
/// Decima's measurements of TPC-H (decima-sim c010dd7).
pub const LEVELS: [u32; 8] = [5, 10, 20, 40, 50, 60, 80, 100];
/// Most stages of a graph. *Assumed*; the largest jobs of Alibaba's trace of 2018 have about as many.
pub const STAGES_MAX: usize = 1_000;
/// Most tasks of a stage. *Assumed.*
pub const TASKS_MAX: u32 = 100_000;
/// Most durations of a stage. *Assumed.*
const DURATIONS_MAX: usize = 100_000;
/// Longest task, ms: 30 days. *Assumed.*
pub const TASK_MS_MAX: u32 = 2_592_000_000;

/// What an executor remembers when it begins a task, which decides how long the task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wave {
    /// The executor remembers no stage.
    Fresh,
    /// It comes from another stage of the job.
    First,
    /// It has just run a task of the same stage.
    Rest,
    /// As [`Wave::First`] with the warm-up added, where no fresh task was measured.
    Warmed,
}

/// A stage as files and generators describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Tasks, from 1.
    pub tasks: u32,
    /// Mean duration of a task over all of them, ms.
    pub mean_ms: u32,
    /// Those of [`LEVELS`] that were measured, ascending.
    pub levels: Vec<u32>,
    /// Durations of fresh tasks by level, ms; may be empty.
    pub fresh: Vec<Vec<u32>>,
    /// Durations of first tasks by level, ms; may be empty where fresh ones are known.
    pub first: Vec<Vec<u32>>,
    /// Durations of all later tasks by level, ms; may be empty.
    pub rest: Vec<Vec<u32>>,
}

/// Durations of which one is drawn: a range, the level and the wave that they are of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    start: u32,
    len: u32,
    pub wave: Wave,
    pub level: u32,
}

/// A stage, ready for drawing.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Tasks.
    pub tasks: u32,
    /// Mean duration of a task, ms.
    pub mean_ms: u32,
    /// By what the executor remembers (nothing, the stage, another) and place in [`LEVELS`].
    cells: [[Cell; 8]; 3],
    durations: Vec<u32>,
}

impl Stage {
    /// The range of durations for an executor that remembers `memory` (0 nothing, 1 this stage, 2 another) at a level.
    #[inline]
    pub(crate) fn cell(&self, memory: usize, level: usize) -> Cell {
        self.cells[memory][level]
    }

    /// The duration of a task in a range, ms, by the lower half of its draw.
    #[inline]
    pub(crate) fn duration_ms(&self, cell: Cell, draw: u64) -> u64 {
        let place = ((draw & 0xffff_ffff) * u64::from(cell.len)) >> 32;
        u64::from(self.durations[cell.start as usize + place as usize])
    }

    /// Shortest duration of any task, ms.
    #[must_use]
    pub fn least_ms(&self) -> u32 {
        self.durations.iter().copied().min().unwrap_or(0)
    }

    fn new(profile: &Profile) -> Result<Stage, String> {
        let waves = [&profile.fresh, &profile.first, &profile.rest];
        let num = profile.levels.len();
        if !(1..=TASKS_MAX).contains(&profile.tasks) {
            return Err(format!("{} tasks, not 1 to {TASKS_MAX}", profile.tasks));
        }
        let is_known = |level: &u32| LEVELS.contains(level);
        if num == 0 || !profile.levels.iter().all(is_known) || !profile.levels.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "levels {:?}, not some of {LEVELS:?} in order",
                profile.levels
            ));
        }
        if waves.iter().any(|wave| wave.len() != num) {
            return Err(format!("durations that are not of {num} levels"));
        }
        let all = || waves.iter().flat_map(|wave| wave.iter().flatten());
        if all().count() > DURATIONS_MAX || all().any(|ms| !(1..=TASK_MS_MAX).contains(ms)) {
            return Err(format!(
                "more than {DURATIONS_MAX} durations, or one beyond 1 to {TASK_MS_MAX} ms"
            ));
        }
        if (0..num).any(|level| profile.fresh[level].is_empty() && profile.first[level].is_empty()) {
            return Err("a level without fresh and first durations".into());
        }
        if !(1..=TASK_MS_MAX).contains(&profile.mean_ms) {
            return Err(format!(
                "a mean of {} ms, not 1 to {TASK_MS_MAX}",
                profile.mean_ms
            ));
        }
        let mut durations = Vec::new();
        let ranges = waves.map(|wave| {
            let ranges = wave.iter().map(|cell| {
                durations.extend_from_slice(cell);
                ((durations.len() - cell.len()) as u32, cell.len() as u32)
            });
            ranges.collect::<Vec<(u32, u32)>>()
        });
        let cell = |memory: usize, level: usize| {
            let found = profile.levels.iter().position(|own| *own == LEVELS[level]);
            let place = found.unwrap_or(num - 1);
            let has = |wave: usize| ranges[wave][place].1 > 0;
            let (wave, of) = match memory {
                0 if has(0) => (Wave::Fresh, 0),
                0 => (Wave::Warmed, 1),
                1 if has(2) => (Wave::Rest, 2),
                _ if has(1) => (Wave::First, 1),
                _ => (Wave::Fresh, 0),
            };
            let (start, len) = ranges[of][place];
            let level = profile.levels[place];
            Cell {
                start,
                len,
                wave,
                level,
            }
        };
        let cells = std::array::from_fn(|memory| std::array::from_fn(|level| cell(memory, level)));
        Ok(Stage {
            tasks: profile.tasks,
            mean_ms: profile.mean_ms,
            cells,
            durations,
        })
    }
}

/// A job's graph: stages by number, and the edges between them.
#[derive(Clone, Debug)]
pub struct Graph {
    stages: Vec<Stage>,
    children: Vec<Vec<u32>>,
    parents: Vec<Vec<u32>>,
    order: Vec<u32>,
    path_ms: Vec<u64>,
    work_ms: u64,
}

impl Graph {
    /// A graph of stages with edges `(parent, child)`; an edge that is given twice counts once.
    ///
    /// # Errors
    /// No stage or too many, an edge to a stage that is not there, a circle, a stage that cannot be run.
    pub fn new(profiles: &[Profile], edges: &[(u32, u32)]) -> Result<Graph, Problem> {
        let refused = |what: String, allowed: &str| Problem::new("graph", what, allowed, "Mend the graph.");
        let num = profiles.len();
        if !(1..=STAGES_MAX).contains(&num) {
            let allowed = format!("1 to {STAGES_MAX} stages");
            return Err(refused(format!("{num} stages"), &allowed));
        }
        let stages = profiles.iter().enumerate().map(|(number, profile)| {
            let refused = |what| refused(format!("stage {number}: {what}"), "a stage that can be run");
            Stage::new(profile).map_err(refused)
        });
        let stages = stages.collect::<Result<Vec<_>, _>>()?;
        let (mut children, mut parents) = (vec![Vec::new(); num], vec![Vec::new(); num]);
        for &(parent, child) in edges {
            let (Some(below), Some(above)) =
                (children.get_mut(parent as usize), parents.get_mut(child as usize))
            else {
                return Err(refused(
                    format!("edge {parent} to {child}"),
                    "stages of the graph",
                ));
            };
            if !below.contains(&child) {
                below.push(child);
                above.push(parent);
            }
        }
        let order = in_order(&children, &parents);
        let order = order.ok_or_else(|| refused("a circle of edges".into(), "a graph without circles"))?;
        let mut path_ms = vec![0_u64; num];
        for stage in order.iter().rev().map(|stage| *stage as usize) {
            let below = children[stage].iter().map(|child| path_ms[*child as usize]);
            path_ms[stage] = u64::from(stages[stage].mean_ms) + below.max().unwrap_or(0);
        }
        let work = stages
            .iter()
            .map(|stage| u64::from(stage.mean_ms) * u64::from(stage.tasks));
        Ok(Graph {
            work_ms: work.sum(),
            stages,
            children,
            parents,
            order,
            path_ms,
        })
    }

    /// Stages by number.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Stages, parents before children.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Stages that wait for a stage.
    #[must_use]
    pub fn children(&self, stage: usize) -> &[u32] {
        &self.children[stage]
    }

    /// Stages that a stage waits for.
    #[must_use]
    pub fn parents(&self, stage: usize) -> &[u32] {
        &self.parents[stage]
    }

    /// Longest path from a stage to an end of the graph, itself included, by mean durations, ms: the upward rank of HEFT.
    #[must_use]
    pub fn path_ms(&self, stage: usize) -> u64 {
        self.path_ms[stage]
    }

    /// Sum over all tasks of the mean durations of their stages, ms.
    #[must_use]
    pub fn work_ms(&self) -> u64 {
        self.work_ms
    }

    /// Longest path of shortest durations, ms: no schedule ends the job sooner.
    #[must_use]
    pub fn bound_ms(&self) -> u64 {
        let mut path = vec![0_u64; self.stages.len()];
        for stage in self.order.iter().rev().map(|stage| *stage as usize) {
            let below = self.children[stage].iter().map(|child| path[*child as usize]);
            path[stage] = u64::from(self.stages[stage].least_ms()) + below.max().unwrap_or(0);
        }
        path.into_iter().max().unwrap_or(0)
    }

    /// Number of edges.
    #[must_use]
    pub fn num_edges(&self) -> usize {
        self.children.iter().map(Vec::len).sum()
    }
}

/// Stages, parents before children; none where there is a circle.
fn in_order(children: &[Vec<u32>], parents: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
    let is_first = |stage: &u32| parents[*stage as usize].is_empty();
    let mut order: Vec<u32> = (0..waiting.len() as u32).filter(is_first).collect();
    let mut next = 0;
    while next < order.len() {
        for &child in &children[order[next] as usize] {
            waiting[child as usize] -= 1;
            if waiting[child as usize] == 0 {
                order.push(child);
            }
        }
        next += 1;
    }
    (order.len() == waiting.len()).then_some(order)
}
