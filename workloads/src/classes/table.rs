//! Published model sizes, and what follows from them for memory, checkpoints and starts: one row a model.
//!
//! # Source
//! Parameters: the papers named in each row. Bytes a parameter: SGD with momentum 12 on the GPU and 8 in a file; Adam 16 and 12;
//! Adam in mixed precision 18 and 14 (weight 2, gradient 4, master copy 4, moments 8; ZeRO, SC'20); a frozen base 2, its adapters
//! alone in the file; a model that is only used 2 and 2. `gpu_memory_gb` adds the activations of the usual batch on
//! `num_gpus` and a context of 1.5 GB, after which everything is divided as the usual plan does (ZeRO stage, tensor and pipeline
//! parallel); activations, `host_memory_gb` (loaders, caches, copies of the state) and `warm_up_s` are *assumed*, within a half. `interval_s`: Meta's RSC (arXiv 2410.21680) assumes an
//! hour and recommends 5 minutes, BLOOM's logbook has 3 hours, VAST's large runs 15 to 40 minutes; small models 10 to 30 minutes.
//! `restart_s`, where it is given, was measured whole and counts instead: the constants of Sia's (SOSP'23) and Muri's
//! (SIGCOMM'22) released simulators. `utilisation`: Lucid (ASPLOS'23), by its nearest model; of large models *assumed*.
//! `step_s`: the usual batch of a
//! GPU over published throughputs of one V100, of models above 1.6 billion parameters 6 x active parameters x tokens at half of an
//! A100's peak (a third for experts, Llama 3's 43 % of an H100 for 405B); *assumed*, within a factor of 2. `sent_gb`: what is
//! all-reduced in a step: gradients of 4 bytes, in mixed precision 2; sharded states (ZeRO 3) gather twice and scatter once, half
//! as much again; of a pipeline each stage sends its own part.

use pleach_scheduler::physics::links::StepCost;

/// What is published of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFacts {
    /// Its name here.
    pub name: &'static str,
    /// Parameters, millions.
    pub parameters_m: f64,
    /// Bytes of a checkpoint for each parameter.
    pub file_bytes: f64,
    /// GPUs for which the memory holds.
    pub num_gpus: u32,
    /// Memory on each of them, GB.
    pub gpu_memory_gb: f64,
    /// Host memory for each of its GPUs, GB.
    pub host_memory_gb: f64,
    /// Time between two checkpoints, s; 0: it writes none.
    pub interval_s: f64,
    /// Data pipeline, compilation and first steps, s.
    pub warm_up_s: f64,
    /// A whole restart as it was measured, s.
    pub restart_s: Option<f64>,
    /// Part of the time in which it keeps a GPU busy, (0, 1].
    pub utilisation: f64,
    /// Compute of a step on one GPU, s.
    pub step_s: f64,
    /// What a step sends, as the content of one all-reduce over the gang, GB; 0: nothing.
    pub sent_gb: f64,
    /// Where the number of parameters and a measured restart come from.
    pub source: &'static str,
}

impl ClassFacts {
    /// What a step computes and sends; none where it sends nothing. Small models send when all is computed, as Gavel's spread gangs
    /// show; large ones beside it (*assumed*).
    #[must_use]
    pub fn step(&self) -> Option<StepCost> {
        let gamma = if self.parameters_m < 1000.0 { 1.0 } else { 2.0 };
        (self.sent_gb > 0.0).then_some(StepCost {
            compute_s: self.step_s,
            gradient_bytes: self.sent_gb * 1e9,
            gamma,
        })
    }

    /// Size of a checkpoint, GB.
    #[must_use]
    pub fn state_gb(&self) -> f64 {
        self.parameters_m * 1e6 * self.file_bytes / 1e9
    }
}

/// The row of a model.
#[allow(clippy::too_many_arguments)] // A row has as many columns.
const fn row(
    name: &'static str,
    parameters_m: f64,
    file_bytes: f64,
    on: (u32, f64, f64),
    interval_s: f64,
    starts: (f64, Option<f64>),
    utilisation: f64,
    step: (f64, f64),
    source: &'static str,
) -> ClassFacts {
    ClassFacts {
        name,
        parameters_m,
        file_bytes,
        num_gpus: on.0,
        gpu_memory_gb: on.1,
        host_memory_gb: on.2,
        interval_s,
        warm_up_s: starts.0,
        restart_s: starts.1,
        utilisation,
        step_s: step.0,
        sent_gb: step.1,
        source,
    }
}

/// All models.
#[rustfmt::skip]
pub const CLASSES: [ClassFacts; 30] = [
    row("resnet18-cifar", 11.2, 8.0, (1, 4.1, 8.0), 600.0, (2.0, Some(50.0)), 0.69, (0.05, 0.045), "He et al., CVPR 2016; Sia: cifar10"),
    row("resnet50-imagenet", 25.6, 8.0, (4, 10.8, 24.0), 1200.0, (60.0, Some(250.0)), 0.99, (0.18, 0.102), "He et al., CVPR 2016; Sia: imagenet"),
    row("vgg16", 138.0, 8.0, (4, 12.2, 16.0), 1200.0, (10.0, None), 0.90, (0.28, 0.552), "Simonyan and Zisserman, ICLR 2015"),
    row("yolov3", 62.0, 8.0, (4, 12.2, 16.0), 1200.0, (30.0, Some(80.0)), 0.90, (0.25, 0.248), "Redmon and Farhadi, arXiv 1804.02767; Sia: yolov3"),
    row("bert-base", 110.0, 14.0, (4, 11.5, 12.0), 1200.0, (30.0, Some(120.0)), 1.0, (0.12, 0.22), "Devlin et al., NAACL 2019; Sia: bert"),
    row("bert-large", 340.0, 14.0, (8, 21.6, 12.0), 1800.0, (30.0, None), 1.0, (0.24, 0.68), "Devlin et al., NAACL 2019"),
    row("deepspeech2-asr", 38.0, 12.0, (4, 10.1, 16.0), 1200.0, (10.0, Some(25.0)), 0.78, (0.4, 0.152), "Amodei et al., ICML 2016; Sia: deepspeech2"),
    row("whisper-large-ft", 1550.0, 14.0, (8, 27.1, 24.0), 1800.0, (30.0, None), 0.95, (0.8, 3.1), "Radford et al., ICML 2023"),
    row("ncf-recsys", 32.0, 12.0, (1, 4.0, 16.0), 600.0, (3.0, Some(15.0)), 0.10, (0.02, 0.128), "He et al., WWW 2017; Sia: ncf"),
    row("dlrm-dcnv2", 24_500.0, 4.2, (16, 16.0, 100.0), 1800.0, (60.0, None), 0.45, (0.02, 0.1), "MLPerf Training, DLRM-DCNv2"),
    row("a2c-atari", 1.7, 12.0, (1, 2.5, 16.0), 600.0, (28.0, Some(38.0)), 0.13, (0.02, 0.007), "Mnih et al., ICML 2016; Muri: a2c"),
    row("dqn-atari", 1.7, 12.0, (1, 2.5, 24.0), 600.0, (1.0, Some(5.0)), 0.13, (0.02, 0.007), "Mnih et al., Nature 2015; Muri: dqn"),
    row("rlhf-7b", 8030.0, 14.0, (16, 41.2, 60.0), 1800.0, (90.0, None), 0.80, (20.0, 24.1), "Llama 3 8B, arXiv 2407.21783, as actor"),
    row("gpt2-124m", 124.0, 14.0, (4, 19.7, 10.0), 1800.0, (50.0, None), 0.95, (0.5, 0.248), "Radford et al. 2019"),
    row("gpt2-355m", 355.0, 14.0, (8, 27.9, 10.0), 1800.0, (50.0, None), 0.95, (1.4, 0.71), "Radford et al. 2019"),
    row("gpt2-774m", 774.0, 14.0, (8, 31.3, 10.0), 1800.0, (50.0, None), 0.97, (3.0, 1.55), "Radford et al. 2019"),
    row("gpt2-1.5b", 1558.0, 14.0, (8, 41.2, 12.0), 1800.0, (50.0, None), 0.97, (6.0, 3.1), "Radford et al. 2019"),
    row("sd2-unet", 865.0, 14.0, (8, 41.1, 16.0), 1800.0, (70.0, None), 0.95, (0.5, 1.73), "Stable Diffusion 2, model card"),
    row("flux-12b", 11_900.0, 14.0, (64, 45.8, 40.0), 1800.0, (120.0, None), 0.97, (4.0, 35.7), "FLUX.1, model card"),
    row("llama-8b", 8030.0, 14.0, (32, 51.6, 60.0), 1800.0, (120.0, None), 0.98, (5.0, 24.1), "Llama 3, arXiv 2407.21783"),
    row("llama-8b-lora", 8030.0, 0.03, (1, 32.4, 30.0), 1800.0, (60.0, None), 0.95, (3.0, 0.05), "Llama 3; LoRA, ICLR 2022"),
    row("llama-13b", 13_016.0, 14.0, (64, 60.8, 60.0), 1800.0, (120.0, None), 0.98, (8.2, 39.0), "Llama 2, arXiv 2307.09288"),
    row("llama-70b", 70_554.0, 14.0, (256, 48.0, 100.0), 1800.0, (120.0, None), 0.98, (44.0, 35.3), "Llama 3, arXiv 2407.21783"),
    row("llama-70b-sft", 70_554.0, 14.0, (64, 52.2, 100.0), 3600.0, (90.0, None), 0.98, (22.0, 212.0), "Llama 3, arXiv 2407.21783"),
    row("llama-70b-lora", 70_554.0, 0.03, (8, 41.0, 60.0), 3600.0, (95.0, None), 0.95, (8.0, 141.0), "Llama 3; LoRA, ICLR 2022"),
    row("llama-405b", 405_853.0, 14.0, (8192, 51.1, 150.0), 1800.0, (150.0, None), 0.98, (12.0, 50.7), "Llama 3, arXiv 2407.21783"),
    row("mixtral-8x7b", 46_703.0, 14.0, (128, 44.6, 100.0), 1800.0, (120.0, None), 0.95, (12.0, 23.4), "Mixtral, arXiv 2401.04088"),
    row("deepseek-v3", 671_000.0, 14.0, (2048, 46.8, 150.0), 1800.0, (150.0, None), 0.95, (18.0, 83.9), "DeepSeek-V3, arXiv 2412.19437"),
    row("eval-7b", 8030.0, 2.0, (1, 29.6, 30.0), 0.0, (18.0, None), 0.45, (0.05, 0.0), "Llama 3 8B, weights alone"),
    row("eval-70b", 70_554.0, 2.0, (4, 56.8, 60.0), 0.0, (30.0, None), 0.45, (0.05, 0.17), "Llama 3 70B, weights alone"),
];

/// Names by which lists call models, as a beginning of theirs in small letters and digits, and the row that stands for them. Longer
/// beginnings stand before shorter ones. A model that is not in the table stands with one of its size (*assumed*).
#[rustfmt::skip]
pub(super) const NAMES: [(&str, &str); 53] = [
    ("resnet50", "resnet50-imagenet"), ("imagenet", "resnet50-imagenet"), ("resnet101", "resnet50-imagenet"),
    ("resnet152", "resnet50-imagenet"), ("inception", "resnet50-imagenet"), ("googlenet", "resnet50-imagenet"),
    ("densenet", "resnet50-imagenet"), ("vit", "resnet50-imagenet"), ("efficientnet", "resnet50-imagenet"),
    ("resnet", "resnet18-cifar"), ("cifar10", "resnet18-cifar"), ("mobilenet", "resnet18-cifar"),
    ("shufflenet", "resnet18-cifar"), ("squeezenet", "resnet18-cifar"), ("pointnet", "resnet18-cifar"),
    ("vgg", "vgg16"), ("alexnet", "vgg16"), ("yolo", "yolov3"), ("cyclegan", "yolov3"), ("dcgan", "resnet18-cifar"),
    ("bertlarge", "bert-large"), ("robertalarge", "bert-large"), ("bert", "bert-base"), ("roberta", "bert-base"),
    ("transformer", "bert-base"), ("gnmt", "bert-base"), ("t5", "gpt2-774m"), ("deepspeech", "deepspeech2-asr"),
    ("m5", "deepspeech2-asr"), ("lstm", "deepspeech2-asr"), ("lm", "deepspeech2-asr"), ("whisper", "whisper-large-ft"),
    ("ncf", "ncf-recsys"), ("neumf", "ncf-recsys"), ("recommendation", "ncf-recsys"), ("dlrm", "dlrm-dcnv2"),
    ("a3c", "a2c-atari"), ("a2c", "a2c-atari"), ("ppo", "a2c-atari"), ("td3", "a2c-atari"), ("dqn", "dqn-atari"),
    ("gpt215b", "gpt2-1.5b"), ("gpt2xl", "gpt2-1.5b"), ("gpt2large", "gpt2-774m"), ("gpt2", "gpt2-124m"),
    ("llama70", "llama-70b"), ("llama270", "llama-70b"), ("llama370", "llama-70b"), ("llama405", "llama-405b"),
    ("llama13", "llama-13b"), ("llama213", "llama-13b"), ("llama", "llama-8b"), ("mixtral", "mixtral-8x7b"),
];

/// A kind of jobs of which a list says no more, and what they train by the size of their gang: at most so many GPUs, and any of
/// these with equal chances. *Assumed*: nobody published what each job trained.
pub(super) type Mix = (&'static str, &'static [(u32, &'static [&'static str])]);

const ANY: &[(u32, &[&str])] = &[
    (
        1,
        &[
            "resnet18-cifar",
            "resnet50-imagenet",
            "yolov3",
            "bert-base",
            "deepspeech2-asr",
            "ncf-recsys",
            "dqn-atari",
        ],
    ),
    (
        8,
        &[
            "resnet50-imagenet",
            "vgg16",
            "yolov3",
            "bert-base",
            "bert-large",
            "gpt2-124m",
        ],
    ),
    (
        u32::MAX,
        &["resnet50-imagenet", "bert-large", "gpt2-355m", "gpt2-1.5b"],
    ),
];

/// The kinds; the six of Acme's (NSDI'24) are its own words.
pub(super) const MIXES: [Mix; 7] = [
    ("any", ANY),
    ("other", ANY),
    ("evaluation", &[(2, &["eval-7b"]), (u32::MAX, &["eval-70b"])]),
    (
        "fine-tuning",
        &[
            (4, &["llama-8b-lora"]),
            (8, &["llama-70b-lora", "rlhf-7b"]),
            (32, &["rlhf-7b", "llama-8b"]),
            (u32::MAX, &["llama-70b-sft"]),
        ],
    ),
    (
        "multi-modal",
        &[
            (8, &["sd2-unet", "whisper-large-ft"]),
            (u32::MAX, &["flux-12b", "sd2-unet"]),
        ],
    ),
    (
        "debugging",
        &[
            (1, &["gpt2-124m"]),
            (8, &["gpt2-1.5b"]),
            (64, &["llama-8b"]),
            (u32::MAX, &["llama-70b"]),
        ],
    ),
    (
        "pre-training",
        &[
            (8, &["gpt2-1.5b"]),
            (64, &["llama-8b"]),
            (256, &["llama-13b", "mixtral-8x7b"]),
            (u32::MAX, &["llama-70b"]),
        ],
    ),
];

/// What is published of a class of this name, or of the model that stands behind `: ` in it.
#[must_use]
pub fn facts_of(name: &str) -> Option<&'static ClassFacts> {
    let name = name.rsplit_once(": ").map_or(name, |(_, model)| model);
    if let Some(facts) = CLASSES.iter().find(|facts| facts.name == name) {
        return Some(facts);
    }
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let found = NAMES.iter().find(|(beginning, _)| letters.starts_with(beginning));
    found.map(|(_, row)| row_of(row))
}

/// The row of a name that stands in the table.
pub(super) fn row_of(name: &str) -> &'static ClassFacts {
    let found = CLASSES.iter().find(|facts| facts.name == name);
    found.unwrap_or(&CLASSES[0])
}
