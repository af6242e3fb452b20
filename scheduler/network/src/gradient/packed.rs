//! The weights of one minibatch, packed once for both directions.

use crate::matrix::Panels;
use crate::parameters::{Layout, at};

/// Weights packed for both directions.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedWeights {
    forward: [Panels; 7],
    /// The same transposed, but for the first layer, whose inputs have no gradient; of the first of the context, the part
    /// that sees codes.
    backward: [Panels; 6],
}

/// The weights of one minibatch.
pub(super) struct Packed<'a> {
    pub(super) layout: &'a Layout,
    parameters: &'a [f32],
    pub(super) forward: &'a [Panels; 7],
    pub(super) backward: &'a [Panels; 6],
}

/// Layers in the order of [`Packed::forward`]; those of [`Packed::backward`] begin with the second.
const LAYERS: [usize; 7] = [
    at::ENCODER_0,
    at::ENCODER_1,
    at::CONTEXT_0,
    at::CONTEXT_1,
    at::POINTER_CANDIDATE,
    at::POINTER_CONTEXT,
    at::VALUE_0,
];

impl<'a> Packed<'a> {
    pub(super) fn new(
        layout: &'a Layout,
        parameters: &'a [f32],
        panels: &'a mut PackedWeights,
    ) -> Packed<'a> {
        for (panels, layer) in panels.forward.iter_mut().zip(LAYERS) {
            panels.pack(layout.slice(parameters, layer), layout.entries[layer].shape[1]);
        }
        let codes = layout.num_codes();
        for (panels, layer) in panels.backward.iter_mut().zip(&LAYERS[1..]) {
            let [inputs, outputs] = layout.entries[*layer].shape;
            let rows = if *layer == at::CONTEXT_0 { codes } else { inputs };
            panels.pack_transposed(layout.slice(parameters, *layer), outputs, rows);
        }
        Packed {
            layout,
            parameters,
            forward: &panels.forward,
            backward: &panels.backward,
        }
    }

    pub(super) fn of(&self, index: usize) -> &'a [f32] {
        self.layout.slice(self.parameters, index)
    }
}
