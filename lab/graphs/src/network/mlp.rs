//! A perceptron of one hidden layer over a flat list of parameters.

/// Slope of the rectifier below 0. *Assumed.*
pub(super) const LEAK: f32 = 0.2;

/// Sizes, and where its parameters begin: weights `[inputs, hidden]`, biases, weights `[hidden, outputs]`, biases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mlp {
    pub at: usize,
    pub sizes: [usize; 3],
}

impl Mlp {
    pub const fn end(&self) -> usize {
        let [inputs, hidden, outputs] = self.sizes;
        self.at + (inputs + 1) * hidden + (hidden + 1) * outputs
    }

    /// Where the second layer begins.
    pub const fn second(&self) -> usize {
        self.at + (self.sizes[0] + 1) * self.sizes[1]
    }

    /// Adds its outputs to `out`; HIDDEN is the size of the hidden layer.
    pub fn add<const HIDDEN: usize>(&self, all: &[f32], x: &[f32], out: &mut [f32]) {
        let mut hidden = [0.0; HIDDEN];
        linear(&all[self.at..self.second()], x, &mut hidden);
        for value in hidden.iter_mut().filter(|value| **value < 0.0) {
            *value *= LEAK;
        }
        linear(&all[self.second()..self.end()], &hidden, out);
    }
}

/// Adds `x W + b`.
fn linear(weights: &[f32], x: &[f32], out: &mut [f32]) {
    let (weights, biases) = weights.split_at(x.len() * out.len());
    add(1.0, biases, out);
    for (x, weights) in x.iter().zip(weights.chunks_exact(out.len())) {
        add(*x, weights, out);
    }
}

/// Adds `factor` times `values` to `out`.
pub(super) fn add(factor: f32, values: &[f32], out: &mut [f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += factor * value;
    }
}
