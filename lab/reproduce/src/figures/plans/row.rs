//! A published row: what was trained on what, how, and how long a step took.

use csv::StringRecord;
use pleach_env::workload::plans::{
    GPUS, Gpu, MODELS, Machine, Model, Plan, Precision, Recompute, Trained, Training, best_plan,
};
use pleach_scheduler::physics::links::Fabric;

/// A published step.
#[derive(Clone, Debug)]
pub(super) struct Published {
    /// Whether it judges; else levels are fitted to it.
    pub is_judge: bool,
    /// Where it stands: the first word of the source.
    pub source: String,
    /// The software.
    pub software: &'static str,
    /// The GPU type, as levels call it.
    pub gpu: String,
    /// What is trained.
    pub training: Training,
    /// How it is cut.
    pub plan: Plan,
    /// Whether the plan is published; else it is the best one by the law.
    pub is_planned: bool,
    /// GPUs.
    pub num_gpus: u32,
    /// Years from the release of the software to the newest, at most 0.
    pub years: f64,
    /// Seconds of a step.
    pub measured_s: f64,
    /// The GPUs, at the whole of their peak.
    pub(super) machine: Machine,
}

/// Largest number that a row is believed to count.
const COUNT_MAX: f64 = (1 << 24) as f64;
/// Most GPUs of a row.
const GPUS_MAX: u32 = 1 << 17;
/// Level at which the plan of a row without one is searched.
const LEVEL_OF_SEARCH: f64 = 0.45;

/// (part of a source, the software, whether it counts attention as if it looked at the whole sequence).
const SOFTWARE: [(&str, &str, bool); 16] = [
    ("llm-foundry", "llm-foundry", true),
    ("Narayanan", "megatron-2021", true),
    ("Korthikanti", "megatron-2022", true),
    ("Megatron-LM column", "megatron-2023", true),
    ("MegaScale column", "megascale", true),
    ("Llama 3 report", "llama-3", false),
    ("Megatron-LM README", "megatron-2024", true),
    ("Megatron-Bridge", "megatron-bridge", false),
    ("mlcommons", "mlperf", false),
    ("Automodel", "automodel", false),
    ("NVIDIA/NeMo", "nemo", false),
    ("torchtitan", "torchtitan", false),
    ("Primus", "primus", false),
    ("gpu-recipes", "maxtext", false),
    ("ml-engineering", "deepspeed", false),
    ("Megatron-Core", "megatron-core", false),
];

/// Releases of Megatron-Bridge by the years to the newest.
const RELEASES: [(&str, f64); 9] = [
    ("25.09", -0.9),
    ("25.11", -0.75),
    ("26.02.01", -0.5),
    ("26.02", -0.5),
    ("26.04.01", -0.25),
    ("26.04", -0.33),
    ("26.06.01", -0.1),
    ("26.06", -0.17),
    ("26.08", 0.0),
];

/// Names of models, and what they are here where that is another word.
const NAMES: [(&str, &str); 12] = [
    ("llama3.1-405b", "llama-405b"),
    ("llama3.1-70b", "llama-70b"),
    ("llama3-70b", "llama-70b"),
    ("llama3.1-8b", "llama-8b"),
    ("llama3-8b", "llama-8b"),
    ("llama2-7b", "llama-7b"),
    ("llama2-13b", "llama-13b"),
    ("gpt3-175b", "gpt-175b"),
    ("gpt3-20b", "gpt-20b"),
    ("gpt3-5b", "gpt-5b"),
    ("a100-80", "a100"),
    ("h100-80", "h100"),
];

/// A record by the names of its columns.
pub(super) struct Fields<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
}

impl<'a> Fields<'a> {
    pub(super) fn new(header: &'a StringRecord, record: &'a StringRecord) -> Fields<'a> {
        Fields { header, record }
    }

    /// The field of the first of these columns that is there.
    fn text(&self, columns: &[&str]) -> &'a str {
        let position = |column: &&str| self.header.iter().position(|name| name == *column);
        let field = columns.iter().find_map(position);
        field.and_then(|field| self.record.get(field)).unwrap_or_default()
    }

    /// A number above 0.
    fn number(&self, columns: &[&str]) -> Option<f64> {
        let number: f64 = self.text(columns).parse().ok()?;
        (number > 0.0 && number <= f64::MAX).then_some(number)
    }

    fn count(&self, column: &str) -> Option<u32> {
        let count = self.number(&[column]).filter(|count| *count <= COUNT_MAX)?;
        (count >= 1.0).then_some(count as u32)
    }

    /// Whether the row judges.
    fn is_judge(&self) -> bool {
        match self.text(&["half"]) {
            "" => {
                let fields: Vec<&str> = self.record.iter().collect();
                let mut crc = flate2::Crc::new();
                crc.update(fields.join("|").as_bytes());
                crc.sum() % 2 == 1
            }
            half => half == "judge",
        }
    }
}

/// A row, or why it is left out.
pub(super) fn read_row(fields: &Fields) -> Result<Published, &'static str> {
    let source = fields.text(&["source", "src"]);
    let note = fields.text(&["note"]);
    if fields.text(&["task"]) == "rl-step" {
        return Err("a step of reinforcement learning");
    }
    if note.contains("optimiser on CPU") {
        return Err("the optimiser on CPUs, which plans do not have");
    }
    let found = SOFTWARE.iter().find(|(part, ..)| source.contains(part));
    let (_, software, is_whole) = *found.ok_or("software that is not known")?;
    let (gpu, known) = gpu_of(fields.text(&["gpu"])).ok_or("a GPU type that is not known")?;
    let precision = precision_of(fields.text(&["precision", "prec"])).ok_or("the precision is not stated")?;
    if known.peak(precision) <= 0.0 {
        return Err("a GPU type that does not compute in these bits");
    }
    let model = model_of(fields).ok_or("the shape of the model is not known")?;
    let sequence = fields.count("seq").ok_or("the sequence is not stated")?;
    let num_gpus = fields.count("num_gpus").or(fields.count("gpus"));
    let num_gpus = num_gpus
        .filter(|num| *num <= GPUS_MAX)
        .ok_or("the GPUs are not stated")?;
    // Of one source a model of 70 billion on eight GPUs is tuned by adapters.
    let is_adapter = fields.text(&["task"]) == "lora"
        || software == "megatron-bridge" && model.name == "llama-70b" && num_gpus == 8;
    let mut training = Training {
        model,
        trained: if is_adapter {
            Trained::Adapters
        } else {
            Trained::All
        },
        sequence,
        batch: 0,
        precision,
    };
    let machine = machine_of(&gpu, known, precision, if is_whole { 2.0 } else { 1.0 });
    let (plan, is_planned) = cut(fields, &mut training, num_gpus, &machine)?;
    let attention = if is_whole { 2.0 } else { 1.0 };
    let flop = training.matrix_flop() + attention * training.attention_flop();
    let of_tflops = |tflops: f64| tflops * 1e12 / flop;
    let rate = fields.number(&["tokens_s_gpu"]);
    let rate = rate.or_else(|| fields.number(&["tflops_gpu", "tflops"]).map(of_tflops));
    let rate = rate.ok_or("neither tokens nor FLOP a second")?;
    let tokens = f64::from(training.batch) * f64::from(sequence);
    let release = RELEASES.iter().find(|(name, _)| source.contains(name));
    let place = source.split([' ', ',']).next().unwrap_or_default();
    Ok(Published {
        is_judge: fields.is_judge(),
        source: place.into(),
        software,
        gpu,
        training,
        plan,
        is_planned,
        num_gpus,
        years: release.map_or(0.0, |(_, years)| *years),
        measured_s: tokens / (f64::from(num_gpus) * rate),
        machine,
    })
}

/// How the row is cut, by its own words or else by the best plan, with the batch filled in.
fn cut(
    fields: &Fields,
    training: &mut Training,
    num_gpus: u32,
    machine: &Machine,
) -> Result<(Plan, bool), &'static str> {
    let part = |column: &str| fields.count(column).unwrap_or(1);
    let is_planned = fields.count("tp").is_some();
    let note = fields.text(&["note"]);
    let is_anew = note.contains("full AC") || fields.number(&["recomp"]).is_some();
    let plan = Plan {
        tensor: part("tp"),
        pipeline: part("pp"),
        virtual_stages: part("vp"),
        context: part("cp"),
        expert: part("ep"),
        zero: fields.text(&["zero"]).parse().unwrap_or(1),
        micro_batch: part("mbs"),
        recompute: if is_anew { Recompute::Full } else { Recompute::None },
    };
    let readers = plan.readers(num_gpus);
    if readers == 0 || plan.expert > num_gpus {
        return Err("a plan of more GPUs than there are");
    }
    // Without a batch each copy is taken to pass one micro batch, which says nothing of stages.
    let one_each = (is_planned && plan.pipeline == 1).then(|| readers.saturating_mul(plan.micro_batch));
    let batch = fields.count("gbs").or(one_each);
    training.batch = batch.ok_or("the batch is not stated")?;
    if is_planned {
        return Ok((plan, true));
    }
    let machine = Machine {
        level: LEVEL_OF_SEARCH,
        ..*machine
    };
    let best = best_plan(training, &machine, num_gpus).ok_or("no plan is stated, and none fits")?;
    Ok((best.plan, false))
}

/// The type as levels call it, and what is known of it.
fn gpu_of(name: &str) -> Option<(String, &'static Gpu)> {
    let usual = NAMES.iter().find(|(named, _)| named.eq_ignore_ascii_case(name));
    let own = usual.map_or(name, |(_, own)| own).to_ascii_uppercase();
    // Variants that are measured on their own.
    let sold = match own.as_str() {
        "A100-40" => "A100",
        "H100-500W" => "H100",
        own => own,
    };
    let known = GPUS.iter().find(|gpu| gpu.name == sold)?;
    Some((own, known))
}

fn precision_of(name: &str) -> Option<Precision> {
    match name {
        "bf16" => Some(Precision::Bf16),
        "mxfp8" => Some(Precision::Mxfp8),
        "fp8" | "fp8-tensorwise" | "fp8-rowwise" => Some(Precision::Fp8),
        "nvfp4" | "fp4" => Some(Precision::Nvfp4),
        _ => None,
    }
}

/// A model by its name, else by the shape that the row gives.
fn model_of(fields: &Fields) -> Option<Model> {
    let name = fields.text(&["model"]).to_ascii_lowercase();
    let name = NAMES
        .iter()
        .find(|(named, _)| *named == name)
        .map_or(name.as_str(), |(_, own)| own);
    if let Some(known) = MODELS.iter().find(|model| model.name == name) {
        return Some(*known);
    }
    let parameters = fields.number(&["params"])?;
    let hidden = fields.count("hidden")?;
    Some(Model {
        name: "dense",
        parameters,
        active: parameters,
        layers: fields.count("layers")?,
        hidden,
        heads: 128,
        attention: hidden,
        vocabulary: if name.starts_with("mpt") { 50_368 } else { 51_200 },
        sequence: fields.count("seq")?,
        experts: None,
    })
}

fn machine_of(gpu: &str, known: &Gpu, precision: Precision, attention: f64) -> Machine {
    Machine {
        peak: known.peak(precision),
        peak_16: known.peak(Precision::Bf16),
        level: 1.0,
        attention,
        memory_gib: if gpu == "A100-40" { 40.0 } else { known.memory_gb },
        gpus_per_node: if gpu.starts_with("GB") { 4 } else { 8 },
        fabric: Fabric::from_name(known.fabric).unwrap_or_else(|error| panic!("{error}")),
    }
}
