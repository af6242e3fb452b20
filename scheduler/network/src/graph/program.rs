//! A graph with its parameters, ready to run: constants computed beforehand, products with parameters packed.

use super::kernels::{self, Reduction};
use super::op::Op;
use super::tensor::{Tensor, len_of, refuse};
use super::{Graph, WORK_MAX, logic, shape};
use crate::Error;
use crate::error::unfit;
use crate::matrix::{self, Panels};
use crate::parameters::LANES;

/// Numbers of rows with which a graph is tried before it is used: a network that works on these works on any.
const TRIED: [usize; 3] = [1, 2, 7];

/// A graph that runs.
#[derive(Clone, Debug)]
pub struct Program {
    graph: Graph,
    /// Every value that does not depend on an observation; None where it does. Indexed as values are.
    constants: Vec<Option<Tensor>>,
    /// The second factor of a product where it is constant and its columns are a multiple of eight. Indexed as nodes are.
    packed: Vec<Option<Panels>>,
}

/// Values of one run; one for each thread.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    values: Vec<Option<Tensor>>,
}

impl Program {
    /// Binds parameters, in the order of the flat list, and tries the graph.
    ///
    /// # Errors
    /// As [`Graph::check`]; An [`Error`] for another number of parameters; An [`Error`] where shapes do not go
    /// together or the scores are not one for each row.
    pub fn new(graph: &Graph, parameters: &[f32]) -> Result<Program, Error> {
        graph.check()?;
        if parameters.len() != graph.num_parameters() {
            return Err(unfit(
                "number of parameters",
                graph.num_parameters(),
                parameters.len(),
            ));
        }
        let mut constants = vec![None, None];
        let mut rest = parameters;
        for parameter in &graph.parameters {
            let (own, behind) = rest.split_at(parameter.len());
            len_of(&parameter.shape)?;
            constants.push(Some(Tensor::floats(parameter.shape.clone(), own.to_vec())));
            rest = behind;
        }
        for integers in &graph.integers {
            let constant = Tensor::integers(integers.shape.clone(), integers.values.clone());
            constants.push(Some(constant));
        }
        let mut program = Program {
            packed: vec![None; graph.nodes.len()],
            graph: graph.clone(),
            constants,
        };
        program.fold()?;
        for num_rows in TRIED {
            let rows = vec![0.0; num_rows * graph.num_features];
            let context = vec![0.0; graph.num_context];
            program.run(
                &rows,
                &context,
                &mut Workspace::default(),
                &mut vec![0.0; num_rows],
            )?;
        }
        Ok(program)
    }

    /// The graph that it runs.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Computes what depends on no observation, and packs the second factors of products.
    fn fold(&mut self) -> Result<(), Error> {
        let mut work = 0;
        for index in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[index];
            let inputs: Option<Vec<&Tensor>> = node
                .inputs
                .iter()
                .map(|input| self.constants[*input].as_ref())
                .collect();
            let value = match inputs {
                Some(inputs) => {
                    Some(apply(&node.op, &inputs, None, &mut work).map_err(at_node(index, &node.op))?)
                }
                None => None,
            };
            if value.is_none() {
                self.packed[index] = self.pack(index);
            }
            self.constants.push(value);
        }
        Ok(())
    }

    /// The second factor of node `index`, packed, where that can be.
    fn pack(&self, index: usize) -> Option<Panels> {
        let node = &self.graph.nodes[index];
        let transposed = match node.op {
            Op::MatMul => false,
            Op::Gemm { trans_b, .. } => trans_b,
            _ => return None,
        };
        let factor = self.constants[node.inputs[1]].as_ref()?;
        let factor = if transposed {
            shape::transpose(factor, &[]).ok()?
        } else {
            factor.clone()
        };
        let [inputs, outputs] = factor.shape[..] else {
            return None;
        };
        if inputs == 0 || outputs == 0 || outputs % LANES != 0 {
            return None;
        }
        let mut panels = Panels::default();
        panels.pack(factor.as_floats().ok()?, outputs);
        Some(panels)
    }

    /// Scores the rows of one decision; what is expected of it, where the graph says.
    ///
    /// `rows` is `[N, F]`, `context` is `[G]`, `scores` is `[N]`.
    ///
    /// # Errors
    /// An [`Error`] with the node, where a value grows beyond a bound or an index is outside of a value;
    /// An [`Error`] for inputs of another size.
    pub fn run(
        &self,
        rows: &[f32],
        context: &[f32],
        workspace: &mut Workspace,
        scores: &mut [f32],
    ) -> Result<Option<f32>, Error> {
        let graph = &self.graph;
        let sizes = (scores.len() * graph.num_features, graph.num_context);
        if sizes != (rows.len(), context.len()) {
            return Err(unfit(
                "numbers of rows and context",
                format!("{} and {}", sizes.0, sizes.1),
                format!("{} and {}", rows.len(), context.len()),
            ));
        }
        let values = &mut workspace.values;
        values.clear();
        values.resize(self.constants.len(), None);
        values[0] = Some(Tensor::floats(
            vec![1, scores.len(), graph.num_features],
            rows.to_vec(),
        ));
        values[1] = Some(Tensor::floats(vec![1, graph.num_context], context.to_vec()));
        let first = graph.first_result();
        let mut work = 0;
        for (index, node) in graph.nodes.iter().enumerate() {
            if self.constants[first + index].is_some() {
                continue;
            }
            let of = |input: &usize| self.constants[*input].as_ref().or(values[*input].as_ref());
            let inputs: Vec<&Tensor> = node.inputs.iter().filter_map(of).collect();
            let packed = self.packed[index].as_ref();
            let value = apply(&node.op, &inputs, packed, &mut work).map_err(at_node(index, &node.op))?;
            values[first + index] = Some(value);
        }
        let of = |index: usize| self.constants[index].as_ref().or(values[index].as_ref());
        let Some(result) = of(graph.scores) else {
            return refuse("no scores");
        };
        let result = result.as_floats()?;
        if result.len() != scores.len() {
            let (found, wanted) = (result.len(), scores.len());
            return refuse(format!(
                "{found} scores for {wanted} rows; one for each row is needed"
            ));
        }
        scores.copy_from_slice(result);
        match graph.value.map(of) {
            Some(Some(value)) => match value.as_floats()? {
                [value] => Ok(Some(*value)),
                values => refuse(format!("the value is {} numbers; one is needed", values.len())),
            },
            _ => Ok(None),
        }
    }
}

/// Says at which node an error happened.
fn at_node(index: usize, op: &Op) -> impl Fn(Error) -> Error + use<> {
    let name = format!("{op:?}");
    move |mut error| {
        error.hint = format!("node {index} ({name}): {}", error.hint);
        error
    }
}

/// The result of an operator.
pub(super) fn apply(
    op: &Op,
    inputs: &[&Tensor],
    packed: Option<&Panels>,
    work: &mut u64,
) -> Result<Tensor, Error> {
    let x = inputs[0];
    let unary = |of: fn(f32) -> f32| kernels::each(x, of);
    let pair = |of_floats, of_integers| kernels::elementwise(x, inputs[1], of_floats, of_integers);
    let reduce = |axes, keep: &bool, floats, end, integers| {
        let by = Reduction {
            floats,
            end,
            integers,
        };
        kernels::reduce(x, axes, *keep, &by)
    };
    let as_is: fn(f32, usize) -> f32 = |x, _| x;
    match op {
        Op::Add => pair(|a, b| a + b, i64::checked_add),
        Op::Sub => pair(|a, b| a - b, i64::checked_sub),
        Op::Mul => pair(|a, b| a * b, i64::checked_mul),
        Op::Div => pair(|a, b| a / b, i64::checked_div),
        Op::Relu => unary(|x| x.max(0.0)),
        Op::Tanh => unary(kernels::tanh),
        Op::Sigmoid => unary(kernels::sigmoid),
        Op::Erf => unary(kernels::erf),
        Op::Exp => unary(pleach_scheduler::portable_math::exp_f32),
        Op::Sqrt => unary(f32::sqrt),
        Op::Neg => unary(|x| -x),
        Op::Log => unary(pleach_scheduler::portable_math::ln_f32),
        Op::Abs => unary(f32::abs),
        Op::Softplus => unary(kernels::softplus),
        Op::LeakyRelu { alpha } => kernels::each(x, |x| if x < 0.0 { alpha * x } else { x }),
        Op::Elu { alpha } => kernels::each(x, |x| kernels::elu(x, *alpha)),
        Op::Pow => pair(kernels::pow, |_, _| None),
        Op::Mod => logic::remainder(x, inputs[1]),
        Op::Max => pair(f32::max, |a, b| Some(a.max(b))),
        Op::Min => pair(f32::min, |a, b| Some(a.min(b))),
        Op::Equal => logic::compare(x, inputs[1], f32::eq, i64::eq),
        Op::Greater => logic::compare(x, inputs[1], f32::gt, i64::gt),
        Op::GreaterOrEqual => logic::compare(x, inputs[1], f32::ge, i64::ge),
        Op::Less => logic::compare(x, inputs[1], f32::lt, i64::lt),
        Op::LessOrEqual => logic::compare(x, inputs[1], f32::le, i64::le),
        Op::Not => logic::not(x),
        Op::And => pair(|_, _| f32::NAN, |a, b| Some((a != 0 && b != 0).into())),
        Op::Or => pair(|_, _| f32::NAN, |a, b| Some((a != 0 || b != 0).into())),
        Op::Where => logic::choose(x, inputs[1], inputs[2]),
        Op::Truth => Ok(logic::truth(x)),
        Op::Identity => Ok(x.clone()),
        Op::Scale { by } => kernels::each(x, |x| x * by),
        Op::MatMul => product(x, inputs[1], packed, work),
        Op::Gemm { .. } => gemm(op, inputs, packed, work),
        Op::Softmax { axis } => kernels::softmax(x, *axis),
        Op::LayerNormalization { axis, epsilon } => kernels::layer_normalization(inputs, *axis, *epsilon),
        Op::ReduceMean { axes, keep } => {
            reduce(axes, keep, (0.0, |a, b| a + b), |x, n| x / n.max(1) as f32, None)
        }
        Op::ReduceSum { axes, keep } => reduce(
            axes,
            keep,
            (0.0, |a, b| a + b),
            as_is,
            Some((0, i64::wrapping_add)),
        ),
        Op::ReduceMax { axes, keep } => reduce(
            axes,
            keep,
            (f32::NEG_INFINITY, f32::max),
            as_is,
            Some((i64::MIN, i64::max)),
        ),
        Op::ReduceMin { axes, keep } => reduce(
            axes,
            keep,
            (f32::INFINITY, f32::min),
            as_is,
            Some((i64::MAX, i64::min)),
        ),
        Op::Concat { axis } => kernels::concat(inputs, *axis),
        Op::Gather { axis } => shape::gather(x, inputs[1], *axis),
        Op::Transpose { order } => shape::transpose(x, order),
        Op::Reshape => shape::reshape(x, inputs[1]),
        Op::Squeeze => shape::squeeze(x, inputs.get(1).copied()),
        Op::Unsqueeze => shape::unsqueeze(x, inputs[1]),
        Op::Slice => shape::slice(inputs),
        Op::Expand => shape::expand(x, inputs[1]),
        Op::Shape => Ok(Tensor::integers(
            vec![x.shape.len()],
            x.shape.iter().map(|n| *n as i64).collect(),
        )),
        Op::Cast { to_integers } => Ok(shape::cast(x, *to_integers)),
        Op::Fill { value } => shape::fill(x, *value),
    }
}

/// A product, by packed panels where the second factor has some. Counts its multiplications before it makes them.
fn product(x: &Tensor, by: &Tensor, packed: Option<&Panels>, work: &mut u64) -> Result<Tensor, Error> {
    let columns = by.shape.last().copied().unwrap_or(1) as u64;
    let batches: usize = by.shape.iter().rev().skip(2).product();
    let numbers = x.shape.iter().product::<usize>() as u64;
    *work = work.saturating_add(numbers.saturating_mul(columns).saturating_mul(batches as u64));
    if *work > WORK_MAX {
        return refuse(format!("more than {WORK_MAX} multiplications in one decision"));
    }
    let (Some(panels), [.., inputs]) = (packed, &x.shape[..]) else {
        return kernels::matmul(x, by);
    };
    let (factor_inputs, outputs) = panels.shape();
    if *inputs != factor_inputs {
        return refuse(format!("a product of {:?} by {factor_inputs} rows", x.shape));
    }
    let mut shape = x.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = outputs;
    }
    let mut out = vec![0.0; len_of(&shape)?];
    matrix::product(x.as_floats()?, panels, &mut out);
    Ok(Tensor::floats(shape, out))
}

/// `alpha A B + beta C`
fn gemm(op: &Op, inputs: &[&Tensor], packed: Option<&Panels>, work: &mut u64) -> Result<Tensor, Error> {
    let Op::Gemm {
        alpha,
        beta,
        trans_a,
        trans_b,
    } = op
    else {
        return refuse("no Gemm");
    };
    let turned = |x: &Tensor, turn: bool| {
        if turn {
            shape::transpose(x, &[])
        } else {
            Ok(x.clone())
        }
    };
    let a = turned(inputs[0], *trans_a)?;
    if a.shape.len() != 2 || inputs[1].shape.len() != 2 {
        return refuse("Gemm of values that have not two axes");
    }
    let mut out = match packed {
        Some(_) => product(&a, inputs[1], packed, work)?,
        None => product(&a, &turned(inputs[1], *trans_b)?, None, work)?,
    };
    if *alpha != 1.0 {
        out = kernels::each(&out, |x| x * alpha)?;
    }
    match inputs.get(2) {
        Some(c) if *beta == 1.0 => kernels::elementwise(&out, c, |a, b| a + b, |_, _| None),
        Some(c) => kernels::elementwise(&out, &kernels::each(c, |x| x * beta)?, |a, b| a + b, |_, _| None),
        None => Ok(out),
    }
}
