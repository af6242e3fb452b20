//! What the network sees of a decision: the stages that have not ended with their edges, and the rows of the board.

use crate::board::Board;
use crate::columns::{CONTEXT_WIDTH, ROW_WIDTH};
use crate::engine::{Engine, StageId};

/// Numbers of a node.
pub const NODE_WIDTH: usize = 5;

/// A decision as a graph.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Of each stage of a job in the system that has not ended: executors that are dealt over all, 1 where they are its job's and -1
    /// elsewhere, executors of its job over all, tasks left over 200 and work left over 100 s, both at most 8. Job by job, children
    /// before parents.
    pub nodes: Vec<[f32; NODE_WIDTH]>,
    /// Where the children of each node begin in `children`; one more for the end.
    pub starts: Vec<u32>,
    /// Nodes that wait for a node.
    pub children: Vec<u32>,
    /// Where the nodes of each job begin; one more for the end.
    pub jobs: Vec<u32>,
    /// The stage of each node.
    stages: Vec<StageId>,
    /// Rows of the board, `[rows, row width]`.
    pub rows: Vec<f32>,
    /// The numbers around them.
    pub context: [f32; CONTEXT_WIDTH],
    /// Node and job of each row; none where no stage is chosen.
    pub of_row: Vec<Option<(u32, u32)>>,
}

impl Look {
    /// Looks at a decision of which the board has the rows.
    pub fn look(&mut self, engine: &Engine, board: &Board) {
        self.fill_nodes(engine);
        self.rows.clear();
        self.rows.extend_from_slice(board.rows());
        self.context.copy_from_slice(board.context());
        self.of_row.clear();
        for choice in board.choices() {
            let of_row = choice.and_then(|(stage, _)| self.node_of(engine, stage));
            self.of_row.push(of_row);
        }
    }

    /// Place of a stage among the nodes, and of its job.
    fn node_of(&self, engine: &Engine, stage: StageId) -> Option<(u32, u32)> {
        let own = engine.job(stage);
        let job = engine.active().iter().position(|job| *job == own)?;
        let mut nodes = self.nodes_of(job);
        let node = nodes.find(|node| self.stages[*node] == stage)?;
        Some((node as u32, job as u32))
    }

    fn fill_nodes(&mut self, engine: &Engine) {
        for list in [&mut self.starts, &mut self.children, &mut self.jobs] {
            list.clear();
        }
        self.nodes.clear();
        self.stages.clear();
        let all = engine.list().machine().executors as f32;
        let (free, source) = (engine.free() as f32 / all, engine.source_job());
        let mut node_of = Vec::new();
        for &job in engine.active() {
            self.jobs.push(self.nodes.len() as u32);
            let own = if Some(job) == source { 1.0 } else { -1.0 };
            let supply = engine.supply(job) as f32 / all;
            let (graph, Some(first)) = (engine.graph(job), engine.stages_of(job).next()) else {
                continue;
            };
            node_of.clear();
            node_of.resize(graph.stages().len(), 0);
            for &place in graph.order().iter().rev() {
                let stage = StageId(first.0 + place);
                if engine.has_ended(stage) {
                    continue;
                }
                node_of[place as usize] = self.nodes.len() as u32;
                self.stages.push(stage);
                self.starts.push(self.children.len() as u32);
                let children = graph.children(place as usize).iter();
                self.children
                    .extend(children.map(|child| node_of[*child as usize]));
                let left = engine.tasks_left(stage) as f32;
                let work = left * engine.recent_ms(stage) as f32 / 1e5;
                self.nodes
                    .push([free, own, supply, (left / 200.0).min(8.0), work.min(8.0)]);
            }
        }
        self.starts.push(self.children.len() as u32);
        self.jobs.push(self.nodes.len() as u32);
    }

    /// Keeps some rows alone.
    #[must_use]
    pub fn only(&self, rows: &[usize]) -> Look {
        let mut kept = self.clone();
        kept.rows = rows.iter().flat_map(|row| self.row(*row)).copied().collect();
        kept.of_row = rows.iter().map(|row| self.of_row[*row]).collect();
        kept
    }

    /// Numbers of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * ROW_WIDTH..][..ROW_WIDTH]
    }

    /// Nodes that wait for a node.
    #[must_use]
    pub fn children(&self, node: usize) -> &[u32] {
        &self.children[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Nodes of a job.
    #[must_use]
    pub fn nodes_of(&self, job: usize) -> std::ops::Range<usize> {
        self.jobs[job] as usize..self.jobs[job + 1] as usize
    }
}
