//! A perceptron of one hidden layer over a flat list of parameters, forwards and backwards.

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

    /// Adds its outputs to `out`, and leaves what the hidden layer came to.
    pub fn add(&self, all: &[f32], x: &[f32], hidden: &mut [f32], out: &mut [f32]) {
        hidden.fill(0.0);
        linear(&all[self.at..self.second()], x, hidden);
        for value in hidden.iter_mut().filter(|value| **value < 0.0) {
            *value *= LEAK;
        }
        linear(&all[self.second()..self.end()], hidden, out);
    }

    /// Adds the derivatives by the parameters to `gradient`, and those by `x` to `by_x`.
    pub fn back(
        &self,
        (all, gradient): (&[f32], &mut [f32]),
        (x, hidden): (&[f32], &[f32]),
        by_out: &[f32],
        by_x: &mut [f32],
    ) {
        let mut by_hidden = [0.0; 64];
        let by_hidden = &mut by_hidden[..self.sizes[1]];
        let range = self.second()..self.end();
        linear_back(
            (&all[range.clone()], &mut gradient[range]),
            hidden,
            by_out,
            by_hidden,
        );
        for (by, value) in by_hidden.iter_mut().zip(hidden) {
            *by *= if *value < 0.0 { LEAK } else { 1.0 };
        }
        let range = self.at..self.second();
        linear_back((&all[range.clone()], &mut gradient[range]), x, by_hidden, by_x);
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

fn linear_back((weights, gradient): (&[f32], &mut [f32]), x: &[f32], by_out: &[f32], by_x: &mut [f32]) {
    let num = by_out.len();
    let (by_weights, by_biases) = gradient.split_at_mut(x.len() * num);
    add(1.0, by_out, by_biases);
    let rows = weights.chunks_exact(num).zip(by_weights.chunks_exact_mut(num));
    for ((x, by_x), (weights, by_weights)) in x.iter().zip(by_x).zip(rows) {
        add(*x, by_out, by_weights);
        *by_x += weights
            .iter()
            .zip(by_out)
            .map(|(weight, by)| weight * by)
            .sum::<f32>();
    }
}

/// Adds `factor` times `values` to `out`.
pub(super) fn add(factor: f32, values: &[f32], out: &mut [f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += factor * value;
    }
}
