//! The network as a module of Burn, which takes its gradient: many decisions at once, one level of stages after the other.
//!
//! [`Network::forward`](super::Network::forward) is the same function in plain Rust for one decision, as policies play it; a test
//! holds each to the other.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::leaky_relu;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};

use super::{E, H, JOINED, LEAK, Look, NODE_WIDTH, Network, S, hand};
use crate::columns::{CONTEXT_WIDTH, ROW_WIDTH};

/// Where gradients are taken.
type Cpu = burn::backend::Autodiff<burn::backend::Flex>;

/// A perceptron of one hidden layer.
#[derive(Module, Debug)]
struct Perceptron<B: Backend> {
    hidden: Linear<B>,
    out: Linear<B>,
}

impl<B: Backend> Perceptron<B> {
    fn new([inputs, hidden, outputs]: [usize; 3], device: &B::Device) -> Perceptron<B> {
        Perceptron {
            hidden: LinearConfig::new(inputs, hidden).init(device),
            out: LinearConfig::new(hidden, outputs).init(device),
        }
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        self.out
            .forward(leaky_relu(self.hidden.forward(x), f64::from(LEAK)))
    }
}

/// All of a network's parameters, in the order of their list.
#[derive(Module, Debug)]
struct Messages<B: Backend> {
    prepare: Perceptron<B>,
    message: Perceptron<B>,
    update: Perceptron<B>,
    gather: Perceptron<B>,
    join: Perceptron<B>,
    score: Perceptron<B>,
}

/// Several decisions as one graph. Stages stand level by level, those that nothing waits for first.
#[derive(Default)]
struct Graphs {
    nodes: Vec<f32>,
    levels: Vec<Level>,
    job_of_node: Vec<i32>,
    look_of_job: Vec<i32>,
    rows: Vec<f32>,
    /// Of each row its stage and its job, or the number of all where it has none, and its decision.
    of_row: [Vec<i32>; 3],
    hand: Vec<f32>,
}

/// Stages of one level, and the edges that end there: above the first level each stage has one.
#[derive(Default)]
struct Level {
    num: usize,
    children: Vec<i32>,
    /// Within the level.
    parents: Vec<i32>,
}

/// How many edges lie below each stage, at most.
fn heights(look: &Look) -> Vec<usize> {
    let mut heights: Vec<usize> = Vec::with_capacity(look.nodes.len());
    for node in 0..look.nodes.len() {
        let below = look
            .children(node)
            .iter()
            .map(|child| heights[*child as usize] + 1);
        heights.push(below.max().unwrap_or(0));
    }
    heights
}

impl Graphs {
    fn of(looks: &[&Look], network: &Network) -> Graphs {
        let mut all = Graphs::default();
        let heights: Vec<Vec<usize>> = looks
            .iter()
            .map(|look| {
                if network.messages {
                    heights(look)
                } else {
                    Vec::new()
                }
            })
            .collect();
        let mut places: Vec<Vec<i32>> = heights.iter().map(|own| vec![0; own.len()]).collect();
        let highest = heights.iter().flatten().max().copied();
        let (mut num_nodes, mut num_jobs) = (0, 0);
        for height in highest.map_or(0..0, |highest| 0..highest + 1) {
            let mut level = Level::default();
            let mut first_job = 0;
            for (look, (own, places)) in looks.iter().zip(heights.iter().zip(&mut places)) {
                for job in 0..look.jobs.len() - 1 {
                    for node in look.nodes_of(job).filter(|node| own[*node] == height) {
                        places[node] = num_nodes + level.num as i32;
                        all.nodes.extend(look.nodes[node]);
                        all.job_of_node.push(first_job + job as i32);
                        for &child in look.children(node) {
                            level.children.push(places[child as usize]);
                            level.parents.push(level.num as i32);
                        }
                        level.num += 1;
                    }
                }
                first_job += look.jobs.len() as i32 - 1;
            }
            num_nodes += level.num as i32;
            all.levels.push(level);
        }
        for (number, (look, places)) in looks.iter().zip(&places).enumerate() {
            let own_jobs = if network.messages { look.jobs.len() - 1 } else { 0 };
            all.look_of_job.extend((0..own_jobs).map(|_| number as i32));
            for (row, of_row) in look.of_row.iter().enumerate() {
                let of_row = of_row.filter(|_| network.messages);
                all.rows.extend(look.row(row));
                all.rows.extend(look.context);
                all.hand.push(hand(look.row(row), network.offers));
                all.of_row[0].push(of_row.map_or(-1, |(node, _)| places[node as usize]));
                all.of_row[1].push(of_row.map_or(-1, |(_, job)| num_jobs + job as i32));
                all.of_row[2].push(if network.messages { number as i32 } else { 0 });
            }
            num_jobs += own_jobs as i32;
        }
        for (list, num) in all.of_row.iter_mut().zip([num_nodes, num_jobs]) {
            list.iter_mut()
                .filter(|place| **place < 0)
                .for_each(|place| *place = num);
        }
        all
    }
}

fn floats<B: Backend>(data: &[f32], width: usize) -> Tensor<B, 2> {
    let shape = [data.len() / width, width];
    Tensor::from_data(TensorData::new(data.to_vec(), shape), &B::Device::default())
}

fn places<B: Backend>(data: &[i32]) -> Tensor<B, 1, Int> {
    Tensor::from_data(
        TensorData::new(data.to_vec(), [data.len()]),
        &B::Device::default(),
    )
}

/// Sums of embeddings by where they belong, of so many.
fn sums<B: Backend>(num: usize, of: &[i32], values: Tensor<B, 2>) -> Tensor<B, 2> {
    let zero = Tensor::zeros([num, E], &values.device());
    zero.select_assign(0, places(of), values, IndexingUpdateOp::Add)
}

/// The embeddings at these places, 0 at the place after the last.
fn at<B: Backend>(values: Option<Tensor<B, 2>>, of: &[i32]) -> Tensor<B, 2> {
    let none = Tensor::zeros([1, E], &B::Device::default());
    let all: Vec<Tensor<B, 2>> = values.into_iter().chain([none]).collect();
    Tensor::cat(all, 0).select(0, places(of))
}

impl<B: Backend> Messages<B> {
    fn new(device: &B::Device) -> Messages<B> {
        Messages {
            prepare: Perceptron::new([NODE_WIDTH, H, E], device),
            message: Perceptron::new([E, H, E], device),
            update: Perceptron::new([E, H, E], device),
            gather: Perceptron::new([NODE_WIDTH + E, H, E], device),
            join: Perceptron::new([E, H, E], device),
            score: Perceptron::new([JOINED, S, 1], device),
        }
    }

    /// The scores of all rows. `[rows]`
    fn forward(&self, graphs: &Graphs, num_looks: usize) -> Tensor<B, 1> {
        let (mut own, mut jobs, mut all) = (None, None, None);
        if !graphs.levels.is_empty() {
            let x = floats::<B>(&graphs.nodes, NODE_WIDTH);
            let stages = self.own(graphs, &x);
            let seen = self.gather.forward(Tensor::cat(vec![x, stages.clone()], 1));
            let of_jobs = sums(graphs.look_of_job.len(), &graphs.job_of_node, seen);
            let joined = self.join.forward(of_jobs.clone());
            all = Some(sums(num_looks, &graphs.look_of_job, joined));
            (own, jobs) = (Some(stages), Some(of_jobs));
        }
        let [node, job, look] = &graphs.of_row;
        let rows = floats(&graphs.rows, ROW_WIDTH + CONTEXT_WIDTH);
        let joined = Tensor::cat(vec![rows, at(own, node), at(jobs, job), at(all, look)], 1);
        (self.score.forward(joined) + floats(&graphs.hand, 1)).squeeze_dim(1)
    }

    /// What each stage comes to, level by level. `[stages, E]`
    fn own(&self, graphs: &Graphs, x: &Tensor<B, 2>) -> Tensor<B, 2> {
        let prepared = self.prepare.forward(x.clone());
        let (mut own, mut said): (Vec<Tensor<B, 2>>, Vec<Tensor<B, 2>>) = Default::default();
        let mut first = 0;
        for level in &graphs.levels {
            let mut here = prepared.clone().narrow(0, first, level.num);
            if !level.children.is_empty() {
                let heard = Tensor::cat(said.clone(), 0).select(0, places(&level.children));
                here = here + self.update.forward(sums(level.num, &level.parents, heard));
            }
            said.push(self.message.forward(here.clone()));
            own.push(here);
            first += level.num;
        }
        Tensor::cat(own, 0)
    }
}

/// Puts a list of parameters into a module.
struct Fill<'a>(&'a [f32]);

impl<B: Backend> ModuleMapper<B> for Fill<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let shape = tensor.shape();
        let (own, rest) = self.0.split_at(shape.num_elements());
        self.0 = rest;
        let tensor = Tensor::from_data(TensorData::new(own.to_vec(), shape), &tensor.device());
        Param::from_mapped_value(id, tensor.require_grad(), mapper)
    }
}

/// Takes the gradients of a module as a list, 0 where nothing depends on a parameter.
struct Take<'a, B: AutodiffBackend>(&'a B::Gradients, Vec<f32>);

impl<B: AutodiffBackend> ModuleVisitor<B> for Take<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let tensor = param.val();
        let num = tensor.shape().num_elements();
        let gradient = tensor.grad(self.0).map(|gradient| gradient.into_data().to_vec());
        match gradient {
            Some(Ok(own)) => self.1.extend::<Vec<f32>>(own),
            _ => self.1.resize(self.1.len() + num, 0.0),
        }
    }
}

impl Network {
    /// The gradient of a loss by the parameters: `by_scores` gets the scores of all rows of the decisions, one decision after the
    /// other, and returns the derivatives of the loss by them.
    ///
    /// # Panics
    /// If a decision has no row.
    #[must_use]
    pub fn gradient(&self, looks: &[&Look], by_scores: impl FnOnce(&[f32]) -> Vec<f32>) -> Vec<f32> {
        let device = Default::default();
        let module = Messages::<Cpu>::new(&device).map(&mut Fill(&self.parameters));
        let scores = module.forward(&Graphs::of(looks, self), looks.len());
        let found = scores.clone().inner().into_data();
        let by = by_scores(found.as_slice().unwrap_or_default());
        let num = by.len();
        let by = Tensor::from_data(TensorData::new(by, [num]), &device);
        let gradients = (scores * by).sum().backward();
        let mut take = Take::<Cpu>(&gradients, Vec::new());
        module.visit(&mut take);
        take.1
    }
}
