//! Applications: graphs of functions with one target from end to end, cut into groups that are planned together.
//!
//! # The cut
//! ESG (HPDC'24) distributes the target by dominators. A function on every path of a graph stands in its chain; what lies
//! between two of the chain is a region, whose branches are treated alike, and stretched until they are as long as its
//! longest. Three functions of a chain in a row are a group. The share of a group is its part of the way that is left.
//! How deep to cut and how to stretch short branches is *ours*; the names and the size of a group are as remembered of
//! the paper.

use pleach_scheduler::Problem;

use super::fronts::{Point, front, plan};
use super::profile::{Configuration, Function};

/// Functions of an application at most.
pub(crate) const STAGES_MAX: usize = 8;
/// Functions of a group at most (ESG).
const GROUP_MAX: usize = 3;

/// An application as it is given: functions by name, and which follows which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Name of the function of each stage.
    pub functions: Vec<String>,
    /// From a stage to one that needs its output.
    pub edges: Vec<(usize, usize)>,
}

impl Graph {
    /// A chain.
    #[must_use]
    pub fn chain(name: &str, functions: &[&str]) -> Graph {
        Graph {
            name: name.into(),
            functions: functions.iter().map(|name| (*name).to_string()).collect(),
            edges: (1..functions.len()).map(|stage| (stage - 1, stage)).collect(),
        }
    }
}

/// A function of an application: what has a queue of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Number of the application.
    pub app: usize,
    /// Number of the function.
    pub function: usize,
    /// Steps that need its output.
    pub next: Vec<usize>,
    /// Steps whose output it needs.
    pub num_previous: usize,
    /// Steps planned together: this one first, to the end of its group.
    pub group: Vec<usize>,
    /// Their part of the time that is left when this one begins, 0 to 1.
    pub group_share: f64,
    /// Its own part of that time, 0 to 1.
    pub rest_share: f64,
    /// Its part of the whole target, 0 to 1.
    pub share: f64,
    /// Time of the longest way from here on by reference latencies, us.
    pub rest_us: u64,
    /// The same by the fastest configurations, us.
    pub fastest_us: u64,
    /// Ways through the group's other steps.
    pub(crate) after: Vec<Point>,
}

/// An application.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: std::ops::Range<usize>,
    /// Time of its longest way by reference latencies, us. Targets are multiples of it, or of a request's own run time.
    pub base_us: u64,
}

/// Functions, and applications made of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Functions.
    pub functions: Vec<Function>,
    /// Applications.
    pub apps: Vec<App>,
    /// Steps of all applications; each has a queue.
    pub steps: Vec<Step>,
}

impl Work {
    /// The first configurations of the cheapest ways through a step's group, by place in their function's front, and what each way
    /// costs, $. Asked are batches at most, a time for the group (us), how many ways.
    #[must_use]
    pub fn ways(&self, step: usize, asked: (usize, u64, usize)) -> Vec<(usize, f64)> {
        let (place, mut found) = (&self.steps[step], Vec::new());
        plan(
            self.functions[place.function].pareto(),
            &place.after,
            asked,
            &mut found,
        );
        found
    }

    /// Puts applications together.
    ///
    /// # Errors
    /// No application; one with no function or too many, an unknown function, an edge that leads nowhere, a cycle: by name.
    pub fn new(functions: Vec<Function>, graphs: &[Graph]) -> Result<Work, Problem> {
        let mut work = Work {
            functions,
            apps: Vec::new(),
            steps: Vec::new(),
        };
        Problem::refuse_if(
            graphs.is_empty(),
            "apps",
            0,
            "at least one",
            "Name an application.",
        )?;
        for graph in graphs {
            work.join(graph)?;
        }
        Ok(work)
    }

    fn join(&mut self, graph: &Graph) -> Result<(), Problem> {
        let key = format!("apps.{}", graph.name);
        let functions = self.functions_of(&key, graph)?;
        let num = functions.len();
        let mut next = vec![Vec::new(); num];
        let mut num_previous = vec![0; num];
        for &(from, to) in &graph.edges {
            Problem::refuse_if(
                from >= num || to >= num || next[from].contains(&to),
                &key,
                format_args!("{from} -> {to}"),
                format_args!("edges between its {num} stages, each once"),
                "Mend the graph.",
            )?;
            next[from].push(to);
            num_previous[to] += 1;
        }
        let order = order(&key, &next, &num_previous)?;
        let of = |figure: &dyn Fn(&Function) -> u64| -> Vec<u64> {
            functions
                .iter()
                .map(|function| figure(&self.functions[*function]))
                .collect()
        };
        let rest_us = longest(&order, &next, &of(&Function::reference_us));
        let fastest_us = longest(&order, &next, &of(&|function| function.fastest().latency_us));
        let mut cut = Cut {
            next: &next,
            weights: self.normal_lengths(&functions),
            groups: vec![Vec::new(); num],
        };
        cut.region(&order, 1.0);
        let ways = longest(&order, &next, &cut.weights);
        let whole = ways.iter().copied().fold(0.0, f64::max);
        let first = self.steps.len();
        for stage in 0..num {
            let group = &cut.groups[stage];
            let weight = |stages: &[usize]| stages.iter().map(|stage| cut.weights[*stage]).sum::<f64>();
            let lists: Vec<&[Configuration]> = group[1..]
                .iter()
                .map(|stage| self.functions[functions[*stage]].pareto())
                .collect();
            self.steps.push(Step {
                app: self.apps.len(),
                function: functions[stage],
                next: next[stage].iter().map(|stage| first + stage).collect(),
                num_previous: num_previous[stage],
                group: group.iter().map(|stage| first + stage).collect(),
                group_share: (weight(group) / ways[stage]).min(1.0),
                rest_share: (cut.weights[stage] / ways[stage]).min(1.0),
                share: cut.weights[stage] / whole,
                rest_us: rest_us[stage],
                fastest_us: fastest_us[stage],
                after: front(&lists),
            });
        }
        self.apps.push(App {
            name: graph.name.clone(),
            steps: first..self.steps.len(),
            base_us: rest_us.iter().copied().max().unwrap_or(0),
        });
        Ok(())
    }

    fn functions_of(&self, key: &str, graph: &Graph) -> Result<Vec<usize>, Problem> {
        Problem::refuse_if(
            !(1..=STAGES_MAX).contains(&graph.functions.len()),
            key,
            format_args!("{} functions", graph.functions.len()),
            format_args!("1 to {STAGES_MAX}"),
            "Cut the application.",
        )?;
        let named = graph.functions.iter().map(|name| {
            let found = self.functions.iter().position(|function| function.name() == name);
            found.ok_or_else(|| {
                let known: Vec<&str> = self.functions.iter().map(Function::name).collect();
                Problem::new(key, name, known.join(", "), "Take a function that is there.")
            })
        });
        named.collect()
    }

    /// Mean over configurations that all functions have of the latency over that of the slowest function there (ESG's average
    /// normalised length); by reference latencies where they have none in common.
    fn normal_lengths(&self, functions: &[usize]) -> Vec<f64> {
        let at = |function: usize, like: &Configuration| {
            let mut all = self.functions[function].configurations().iter();
            let same = all.find(|k| (k.batch, k.cores, k.slices) == (like.batch, like.cores, like.slices));
            same.map(|k| k.latency_us as f64)
        };
        let mut sums = vec![0.0; functions.len()];
        for like in self.functions[functions[0]].configurations() {
            let of_all = functions.iter().map(|function| at(*function, like));
            let Some(latencies) = of_all.collect::<Option<Vec<f64>>>() else {
                continue;
            };
            let slowest = latencies.iter().copied().fold(0.0, f64::max);
            for (sum, latency) in sums.iter_mut().zip(latencies) {
                *sum += latency / slowest;
            }
        }
        if sums[0] == 0.0 {
            let references = functions
                .iter()
                .map(|function| self.functions[*function].reference_us() as f64);
            return references.collect();
        }
        sums
    }
}

/// Stages, each after those that it needs.
fn order(key: &str, next: &[Vec<usize>], num_previous: &[usize]) -> Result<Vec<usize>, Problem> {
    let mut open = num_previous.to_vec();
    let mut order: Vec<usize> = (0..next.len()).filter(|stage| open[*stage] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        for &to in &next[order[done]] {
            open[to] -= 1;
            if open[to] == 0 {
                order.push(to);
            }
        }
        done += 1;
    }
    if order.len() < next.len() {
        let stages: Vec<String> = (0..next.len())
            .filter(|stage| open[*stage] > 0)
            .map(|s| s.to_string())
            .collect();
        let value = format!("a cycle before or among stages {}", stages.join(", "));
        return Err(Problem::new(
            key,
            value,
            "graphs without cycles",
            "Leave an edge out.",
        ));
    }
    Ok(order)
}

/// Length of the longest way from each stage on, its own among it.
fn longest<T: Copy + PartialOrd + std::ops::Add<Output = T> + Default>(
    order: &[usize],
    next: &[Vec<usize>],
    lengths: &[T],
) -> Vec<T> {
    let mut ways = vec![T::default(); next.len()];
    for &stage in order.iter().rev() {
        let after = next[stage].iter().map(|to| ways[*to]);
        let after = after.fold(T::default(), |most, way| if way > most { way } else { most });
        ways[stage] = lengths[stage] + after;
    }
    ways
}

/// A cut under way.
struct Cut<'a> {
    next: &'a [Vec<usize>],
    /// Lengths, stretched as far as they are cut.
    weights: Vec<f64>,
    /// Of each stage: itself and what comes after it in its group.
    groups: Vec<Vec<usize>>,
}

impl Cut<'_> {
    /// Cuts a part of the graph, whose stages come in order.
    fn region(&mut self, stages: &[usize], stretch: f64) {
        let chain = on_every_path(self.next, stages);
        if chain.is_empty() {
            let branches = branches(self.next, stages);
            let lengths: Vec<f64> = branches.iter().map(|branch| self.length(branch)).collect();
            let most = lengths.iter().copied().fold(0.0, f64::max);
            for (branch, length) in branches.iter().zip(lengths) {
                if branches.len() > 1 {
                    self.region(branch, stretch * most / length);
                } else {
                    // No function is on every path and no branch stands alone: each is a group of its own.
                    branch.iter().for_each(|stage| self.settle(&[*stage], stretch));
                }
            }
            return;
        }
        // What lies before the chain, between two of it, after it: by how many of the chain lead there.
        let place = |stage: usize| {
            chain
                .iter()
                .filter(|of_chain| leads(self.next, **of_chain, stage))
                .count()
        };
        let mut between = vec![Vec::new(); chain.len() + 1];
        for stage in stages.iter().filter(|stage| !chain.contains(stage)) {
            between[place(*stage)].push(*stage);
        }
        let mut run: Vec<usize> = Vec::new();
        for (at, stage) in chain.iter().enumerate() {
            if run.len() == GROUP_MAX || !between[at].is_empty() {
                self.settle(&run, stretch);
                run.clear();
            }
            run.push(*stage);
        }
        self.settle(&run, stretch);
        for region in between.iter().filter(|region| !region.is_empty()) {
            self.region(region, stretch);
        }
    }

    /// A group.
    fn settle(&mut self, run: &[usize], stretch: f64) {
        for (at, stage) in run.iter().enumerate() {
            self.weights[*stage] *= stretch;
            self.groups[*stage] = run[at..].to_vec();
        }
    }

    /// Longest way through a part.
    fn length(&self, stages: &[usize]) -> f64 {
        let inside = inside(self.next, stages);
        longest(stages, &inside, &self.weights)
            .into_iter()
            .fold(0.0, f64::max)
    }
}

/// Edges within a part.
fn inside(next: &[Vec<usize>], stages: &[usize]) -> Vec<Vec<usize>> {
    let mut kept = vec![Vec::new(); next.len()];
    for &stage in stages {
        kept[stage] = next[stage]
            .iter()
            .copied()
            .filter(|to| stages.contains(to))
            .collect();
    }
    kept
}

/// Stages through which all paths of a part lead: as many paths lead through them as there are.
fn on_every_path(next: &[Vec<usize>], stages: &[usize]) -> Vec<usize> {
    let inside = inside(next, stages);
    let mut from = vec![0_u64; next.len()];
    for &stage in stages.iter().rev() {
        let on = inside[stage].iter().map(|to| from[*to]).sum::<u64>();
        from[stage] = on.max(1);
    }
    let is_later = |stage: usize| stages.iter().any(|other| inside[*other].contains(&stage));
    let mut to = vec![0_u64; next.len()];
    for &stage in stages {
        if !is_later(stage) {
            to[stage] = 1;
        }
        for &after in &inside[stage] {
            to[after] += to[stage];
        }
    }
    let firsts = stages.iter().filter(|stage| !is_later(**stage));
    let all: u64 = firsts.map(|stage| from[*stage]).sum();
    let kept = stages
        .iter()
        .copied()
        .filter(|stage| to[*stage] * from[*stage] == all);
    kept.collect()
}

/// Whether a way leads from one stage to another.
fn leads(next: &[Vec<usize>], from: usize, to: usize) -> bool {
    from != to && (next[from].contains(&to) || next[from].iter().any(|stage| leads(next, *stage, to)))
}

/// Parts between which no edge leads, in order.
fn branches(next: &[Vec<usize>], stages: &[usize]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for &stage in stages {
        let touches = |part: &Vec<usize>| part.iter().any(|other| next[*other].contains(&stage));
        let (mut joined, apart): (Vec<_>, Vec<_>) = parts.into_iter().partition(touches);
        let mut part: Vec<usize> = joined.drain(..).flatten().collect();
        part.push(stage);
        parts = apart;
        parts.push(part);
    }
    for part in &mut parts {
        part.sort_by_key(|stage| stages.iter().position(|other| other == stage));
    }
    parts
}

#[cfg(test)]
mod tests;
