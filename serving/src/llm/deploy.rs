//! A routing tree as Go source: a plug-in of the endpoint pickers that stand behind inference gateways.
//!
//! One file has the tree, the columns and their order (`Score`, `Key`, `Rows`, `Rank`: the same bits as [`ScorerRouter`] gives,
//! which tests hold) and a thin adapter (`Plugin`, `Factory`) for the interfaces of one picker. The adapter remembers what it sent
//! itself, and estimates what no endpoint tells (docs/serving.md lists what is exact).
//!
//! [`ScorerRouter`]: crate::llm::ScorerRouter
//!
//! # What is deliberately not here
//! Named rules, which pickers have themselves.

use pleach_scheduler::Problem;
use pleach_scheduler::features::Scale;
use pleach_scheduler::tree::{Export, Tree};

use crate::llm::columns::SCHEMA;
use crate::llm::outcome::Targets;
use crate::llm::step_time::Pace;

const RANK: &str = include_str!("deploy/rank.go.txt");
const PLUGIN: &str = include_str!("deploy/plugin.go.txt");

/// An endpoint picker that takes plug-ins in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointPicker {
    /// Gateway API inference extension, `sigs.k8s.io/gateway-api-inference-extension` v1.5.0.
    Gie,
    /// Its successor, `github.com/llm-d/llm-d-router` at commit ebab6879.
    LlmDRouter,
}

impl EndpointPicker {
    /// All.
    pub const ALL: [EndpointPicker; 2] = [EndpointPicker::Gie, EndpointPicker::LlmDRouter];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EndpointPicker::Gie => "gie",
            EndpointPicker::LlmDRouter => "llm-d-router",
        }
    }

    /// Name of the file.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            EndpointPicker::Gie => "tree_gie.go",
            EndpointPicker::LlmDRouter => "tree_llm_d_router.go",
        }
    }

    /// What the adapter says in this picker's words.
    fn words(self) -> &'static [(&'static str, &'static str)] {
        match self {
            EndpointPicker::Gie => &GIE,
            EndpointPicker::LlmDRouter => &LLM_D_ROUTER,
        }
    }

    fn imports(self) -> String {
        let (standard, common, module) = match self {
            EndpointPicker::Gie => (
                &["bytes", "context", "encoding/json", "errors", "fmt"][..],
                None,
                "sigs.k8s.io/gateway-api-inference-extension/pkg",
            ),
            EndpointPicker::LlmDRouter => (
                &["context", "encoding/json", "fmt"][..],
                Some("errcommon"),
                "github.com/llm-d/llm-d-router/pkg",
            ),
        };
        let mut text = String::from("import (\n");
        for name in standard
            .iter()
            .chain(&["math", "math/bits", "sort", "sync", "time"])
        {
            text.push_str(&format!("\t\"{name}\"\n"));
        }
        text.push('\n');
        if let Some(name) = common {
            text.push_str(&format!("\t{name} \"{module}/common/error\"\n"));
        }
        for name in [
            "interface/datalayer",
            "interface/plugin",
            "interface/requestcontrol",
            "interface/scheduling",
            "plugins/datalayer/attribute/prefix",
        ] {
            text.push_str(&format!("\t\"{module}/epp/framework/{name}\"\n"));
        }
        text + ")\n"
    }
}

const GIE: [(&str, &str); 14] = [
    ("REQUEST", "LLMRequest"),
    ("SCORE_STATE", "_ *scheduling.CycleState, "),
    ("ADMISSION", "AdmissionPlugin"),
    ("ADMIT", "AdmitRequest"),
    ("RESPONSE", "ResponseBody"),
    ("ENDPOINT_ID", "NamespacedName"),
    ("STABILITY", ""),
    ("PARAMETERS", "raw json.RawMessage"),
    (
        "DECODE",
        "\tif len(raw) > 0 {
\t\tdecoder := json.NewDecoder(bytes.NewReader(raw))
\t\tdecoder.DisallowUnknownFields()
\t\tif err := decoder.Decode(&parameters); err != nil {
\t\t\treturn nil, fmt.Errorf(\"%s: %w\", PluginType, err)
\t\t}
\t}",
    ),
    (
        "CONSUMES",
        "// Consumes is what a producer has to leave at the endpoints.
func (p *Plugin) Consumes() map[string]any {
\treturn map[string]any{prefix.PrefixCacheMatchInfoKey: prefix.PrefixCacheMatchInfo{}}
}",
    ),
    ("PREFIX_KEY", "prefix.PrefixCacheMatchInfoKey"),
    (
        "PRE_REQUEST",
        "// PreRequest is called when an endpoint was picked.
func (p *Plugin) PreRequest(_ context.Context, request *scheduling.LLMRequest, result *scheduling.SchedulingResult) {
\tp.note(request, result)
}",
    ),
    (
        "REFUSAL",
        "errors.New(\"the tree refuses the request: it would be late everywhere\")",
    ),
    (
        "TOKENS",
        "uint64(0)
\tif request.TokenizedPrompt != nil {
\t\ttokens = uint64(len(request.TokenizedPrompt.TokenIDs))
\t}",
    ),
];

const LLM_D_ROUTER: [(&str, &str); 14] = [
    ("REQUEST", "InferenceRequest"),
    ("SCORE_STATE", ""),
    ("ADMISSION", "Admitter"),
    ("ADMIT", "Admit"),
    ("RESPONSE", "ResponseBodyProcessor"),
    ("ENDPOINT_ID", "ID"),
    ("STABILITY", "plugin.StabilityAlpha, "),
    ("PARAMETERS", "decoder *json.Decoder"),
    (
        "DECODE",
        "\tif decoder != nil {
\t\tif err := decoder.Decode(&parameters); err != nil {
\t\t\treturn nil, fmt.Errorf(\"%s: %w\", PluginType, err)
\t\t}
\t}",
    ),
    (
        "CONSUMES",
        "// Consumes is what a producer has to leave at the endpoints.
func (p *Plugin) Consumes() plugin.DataDependencies {
\treturn plugin.DataDependencies{
\t\tRequired: map[plugin.DataKey]any{prefix.PrefixCacheMatchInfoDataKey: prefix.PrefixCacheMatchInfo{}},
\t}
}",
    ),
    ("PREFIX_KEY", "prefix.PrefixCacheMatchInfoDataKey"),
    (
        "PRE_REQUEST",
        "// PreRequest is called when an endpoint was picked.
func (p *Plugin) PreRequest(_ context.Context, request *scheduling.InferenceRequest, result *scheduling.SchedulingResult) error {
\tp.note(request, result)
\treturn nil
}",
    ),
    (
        "REFUSAL",
        "errcommon.Error{
\t\tCode: errcommon.ResourceExhausted,
\t\tMsg:  \"the tree refuses the request: it would be late everywhere\",
\t}",
    ),
    (
        "TOKENS",
        "uint64(0)
\tif request.Body != nil {
\t\ttokens = natural(request.Body.TokenizedRequest.TokenCount())
\t}",
    ),
];

/// What a tree is deployed with.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Of a replica: believed times rest on it.
    pub pace: Pace,
    /// Of which model on which GPU it is, for the reader.
    pub pace_of: String,
    /// What users expect; the picker's configuration may say otherwise.
    pub targets: Targets,
    /// Whether a request may be refused; the picker's configuration may say otherwise.
    pub may_refuse: bool,
}

/// One Go file of a package `pleach`: the plug-in of a picker.
///
/// # Errors
/// A tree of other rows than requests, or one that reads a column that no picker can fill.
pub fn plugin(tree: &Tree, picker: EndpointPicker, deployment: &Deployment) -> Result<String, Problem> {
    let adapter = filled(PLUGIN, picker.words());
    source(tree, &picker.imports(), &adapter, deployment)
}

/// The tree, its columns and their order, before an adapter that needs these imports.
fn source(tree: &Tree, imports: &str, adapter: &str, deployment: &Deployment) -> Result<String, Problem> {
    Problem::refuse_if(
        tree.schema() != &SCHEMA,
        "file",
        tree.schema().name,
        SCHEMA.name,
        "pleach distill --search --workload requests makes one.",
    )?;
    let package = "package pleach\n";
    let head = format!("{package}\n{imports}\n{}", constants(deployment));
    let text = tree.export(Export::Go).replacen(package, &head, 1);
    let [send, refuse] = [columns(tree, true)?, columns(tree, false)?];
    let [sqrt_2, log10_2, log10_e] = {
        use std::f32::consts::{LOG10_2, LOG10_E, SQRT_2};
        [SQRT_2, LOG10_2, LOG10_E].map(|constant| format!("{constant:?}"))
    };
    let words = [
        ("SEND_COLUMNS", &*send),
        ("REFUSE_COLUMNS", &*refuse),
        ("SQRT_2", &*sqrt_2),
        ("LOG10_2", &*log10_2),
        ("LOG10_E", &*log10_e),
    ];
    let rank = filled(RANK, &words);
    Ok(text + &rank + adapter)
}

/// A text with words in the place of their markers.
fn filled(text: &str, words: &[(&str, &str)]) -> String {
    let words = words.iter();
    words.fold(text.to_owned(), |text, (marker, words)| {
        text.replace(&format!("{{{{{marker}}}}}"), words)
    })
}

fn constants(deployment: &Deployment) -> String {
    let Deployment {
        pace,
        pace_of,
        targets,
        may_refuse,
    } = deployment;
    let numbers = [
        ("stepPs", pace.step_ps),
        ("requestPs", pace.request_ps),
        ("contextTokenPs", pace.context_token_ps),
        ("weightsPs", pace.weights_ps),
        ("expertsPs", pace.experts_ps),
        ("expertsLeft", pace.experts_left.into()),
        ("tokenPs", pace.token_ps),
        ("promptTokenPs", pace.prompt_token_ps),
        ("promptLinkPs", pace.prompt_link_ps),
        ("promptPairParts", pace.prompt_pair_parts),
        ("beforeQueuePs", pace.before_queue_ps),
        ("beforeQueueTokenPs", pace.before_queue_token_ps),
        ("afterFirstPs", pace.after_first_ps),
        ("kvTokens", pace.kv_tokens),
        ("batchMax", pace.batch_max.into()),
        ("tokensMax", pace.tokens_max.into()),
    ];
    let mut text = format!(
        "// Pace of {pace_of}: picoseconds of a step, of each request and token in context, to read weights and experts, of a token's\n\
         // operations, of a prompt's on the links, of the way in and more for each token of a prompt, of the way out; pairs of a prompt's\n\
         // tokens in 1/1024 ps; tokens that fit, requests of a batch, tokens of a step. Constants are fitted to published measurements (docs/serving.md of Pleach).\nconst (\n"
    );
    for (name, number) in numbers {
        text.push_str(&format!("\t{name:<18} uint64 = {number}\n"));
    }
    text.push_str(")\n\n// As exported; the plugin's parameters may say otherwise.\nconst (\n");
    text.push_str(&format!("\texportedTTFTS  = {:?}\n", targets.ttft_s));
    text.push_str(&format!("\texportedTPOTS  = {:?}\n", targets.tpot_s));
    text + &format!("\texportedRefuse = {may_refuse}\n)\n")
}

/// What fills the columns of an endpoint's row, or of the one that refuses, a line each, beside their names.
fn columns(tree: &Tree, is_send: bool) -> Result<String, Problem> {
    let (reads, indent) = (tree.reads(), if is_send { "\t\t\t" } else { "\t\t" });
    let features = SCHEMA.features[..tree.width()].iter().enumerate();
    let lines = features.map(|(number, feature)| {
        let raw = raw(feature.name, is_send);
        let is_read = reads.contains(&(number as u16));
        let value = match (raw, feature.scale) {
            (None, _) if is_read => {
                let hint = "Search for a tree that reads only what endpoints tell.";
                let allowed = "columns that an endpoint picker can fill";
                return Err(Problem::new("file", feature.name, allowed, hint));
            }
            (None | Some("0"), _) => "0".to_owned(),
            (Some("1"), _) => "1".to_owned(),
            (Some(raw), Scale::Linear(divisor)) => {
                format!("encode({raw}, {:?}, {divisor:?}, false)", feature.max)
            }
            (Some(raw), Scale::Log(divisor)) => {
                format!("encode({raw}, {:?}, {divisor:?}, true)", feature.max)
            }
        };
        Ok(format!("{indent}// {}\n{indent}{value},\n", feature.name))
    });
    lines.collect()
}

/// The raw value of a column, in Go; 0 and 1 need no scale. None for a column that is not known here.
fn raw(name: &str, is_send: bool) -> Option<&'static str> {
    let of_context = match name {
        "facts_age_s" => "request.FactsAgeS",
        "prompt_s" => "promptS(float64(request.PromptTokens))",
        "least_ttft_share" => "least[0]",
        "least_tpot_share" => "least[1]",
        "least_ttft_now_share" => "least[2]",
        "least_tpot_now_share" => "least[3]",
        "load" => "promptS(request.SlowTokensPerS)/(float64(len(all))/request.Pickers)",
        "burst" => "request.FastTokensPerS/math.Max(request.SlowTokensPerS, 1)",
        _ => "",
    };
    if !of_context.is_empty() {
        return Some(of_context);
    }
    let of_endpoint = match name {
        "is_send" => "1",
        "is_refuse" => "0",
        "waiting_requests" => "float64(facts.WaitingRequests)",
        "waiting_prompt_s" => "promptS(float64(facts.WaitingTokens))",
        "running_requests" => "float64(facts.RunningRequests)",
        "kv_share" => "float64(facts.ContextTokens)/float64(facts.KVTokens)",
        "sent_requests" => "float64(facts.SentRequests)",
        "sent_prompt_s" => "promptS(float64(facts.SentTokens))",
        "ttft_share" => "share[0]",
        "tpot_share" => "share[1]",
        "held_share" => "float64(facts.HeldTokens)/float64(request.PromptTokens)",
        "turns" => "float64(request.NumRouted-facts.Last)/float64(len(all))",
        "ttft_now_share" => "share[2]",
        "tpot_now_share" => "share[3]",
        "ended_requests" => "endedRequests(request, facts)",
        "prompt_share" => "facts.PromptShare",
        _ => return None,
    };
    match (is_send, name) {
        (true, _) => Some(of_endpoint),
        (false, "is_refuse") => Some("1"),
        (false, _) => Some("0"),
    }
}

#[cfg(test)]
mod tests;
