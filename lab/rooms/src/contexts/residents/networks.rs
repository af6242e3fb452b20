//! The networks of Miriam's benchmark, batch 1, from their published shapes; pooling and activations cost nothing.

use pleach_scheduler::Problem;

use super::{Device, Kernel, Network};

/// Their names.
pub const NETWORKS: [&str; 6] = ["alexnet", "cifarnet", "gru", "lstm", "resnet", "squeezenet"];

/// Width of the recurrent networks and steps of a sequence. *Assumed.*
const WIDTH: u32 = 512;
const STEPS: usize = 30;

/// A convolution: channels in and out, filter, side of the output.
type Convolution = ([u32; 2], u32, u32);

/// AlexNet for one GPU (Krizhevsky, 2014).
const ALEXNET: [Convolution; 5] = [
    ([3, 64], 11, 55),
    ([64, 192], 5, 27),
    ([192, 384], 3, 13),
    ([384, 256], 3, 13),
    ([256, 256], 3, 13),
];
/// The network of Caffe's CIFAR-10 example.
const CIFARNET: [Convolution; 3] = [([3, 32], 5, 32), ([32, 32], 5, 16), ([32, 64], 5, 8)];

/// A network of a name on a device.
///
/// # Errors
/// A name that is not there.
pub fn by_name(name: &str, device: &Device) -> Result<Network, Problem> {
    let convolutions = |list: &[Convolution]| -> Vec<Kernel> {
        let of =
            |(channels, filter, side): &Convolution| Kernel::convolution(device, *channels, *filter, *side);
        list.iter().map(of).collect()
    };
    let products = |list: &[(u32, u32)]| -> Vec<Kernel> {
        list.iter()
            .map(|(from, to)| Kernel::product(device, *from, *to))
            .collect()
    };
    let kernels = match name {
        "alexnet" => [
            convolutions(&ALEXNET),
            products(&[(9_216, 4_096), (4_096, 4_096), (4_096, 1_000)]),
        ]
        .concat(),
        "cifarnet" => [convolutions(&CIFARNET), products(&[(1_024, 64), (64, 10)])].concat(),
        "resnet" => [convolutions(&resnet18()), products(&[(512, 1_000)])].concat(),
        "squeezenet" => convolutions(&squeezenet()),
        // Input and state to three gates or four, step by step.
        "gru" => vec![Kernel::product(device, 2 * WIDTH, 3 * WIDTH); STEPS],
        "lstm" => vec![Kernel::product(device, 2 * WIDTH, 4 * WIDTH); STEPS],
        _ => {
            let hint = "Take one of Miriam's benchmark.";
            return Err(Problem::new("network", name, NETWORKS.join(", "), hint));
        }
    };
    Ok(Network { kernels })
}

/// ResNet-18 (He et al., 2016), without the three projections.
fn resnet18() -> Vec<Convolution> {
    let mut list = vec![([3, 64], 7, 112)];
    let mut from = 64;
    for (to, side) in [(64, 56), (128, 28), (256, 14), (512, 7)] {
        list.push(([from, to], 3, side));
        list.extend([([to, to], 3, side); 3]);
        from = to;
    }
    list
}

/// SqueezeNet 1.1 (Iandola et al., 2016): fire modules of a squeeze and two expansions.
fn squeezenet() -> Vec<Convolution> {
    let mut list = vec![([3, 64], 3, 111)];
    let mut from = 64;
    for (squeeze, expand, side) in [
        (16, 64, 55),
        (16, 64, 55),
        (32, 128, 27),
        (32, 128, 27),
        (48, 192, 13),
        (48, 192, 13),
        (64, 256, 13),
        (64, 256, 13),
    ] {
        list.extend([
            ([from, squeeze], 1, side),
            ([squeeze, expand], 1, side),
            ([squeeze, expand], 3, side),
        ]);
        from = 2 * expand;
    }
    list.push(([512, 1_000], 1, 13));
    list
}
