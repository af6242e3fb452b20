//! The columns of a routing decision: a row for each replica, and one for refusing where that is allowed.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, Law, RowKind, Scale, View};

use crate::columns::{column, falls, kind};
use crate::llm::router::Decision;

const KINDS: [RowKind; 2] = [
    kind("send", "send the request to this replica"),
    kind("refuse", "refuse the request"),
];
const SEND: Among = Among::Varies(Kinds::of(&[0]));
const ALL: Among = Among::Varies(Kinds::of(&[0, 1]));

const ONE: Scale = Scale::Linear(1.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.** Times and numbers of requests are given as a logarithm.
#[rustfmt::skip]
const FEATURES: [Feature; 24] = [
    column(Row, Among::Flag(0), "is_send", "", 1.0, ONE, "1: the request goes to this replica."),
    column(Row, Among::Flag(1), "is_refuse", "", 1.0, ONE, "1: the request is refused."),
    falls(column(Row, SEND, "waiting_requests", "", 1e4, Scale::Log(4.0), "Requests that waited when the gateway looked.")),
    falls(column(Row, SEND, "waiting_prompt_s", "s", 1e3, Scale::Log(3.0),
        "Time that the prompts not computed then take by themselves.")),
    falls(column(Row, SEND, "running_requests", "", 1e3, Scale::Log(3.0), "Requests in the batch then.")),
    falls(column(Row, SEND, "kv_share", "", 1.0, ONE, "Share of the memory for keys and values that was taken then.")),
    falls(column(Row, SEND, "sent_requests", "", 1e4, Scale::Log(4.0), "Requests that this gateway has sent there since.")),
    falls(column(Row, SEND, "sent_prompt_s", "s", 1e3, Scale::Log(3.0), "Time that their prompts take by themselves.")),
    falls(column(Row, SEND, "ttft_share", "", 1e3, Scale::Log(3.0),
        "Believed time to the first token there over its target, what was sent since counted.")),
    falls(column(Row, SEND, "tpot_share", "", 1e2, Scale::Log(2.0), "Believed time between two tokens there over its target.")),
    column(Row, SEND, "held_share", "", 1.0, ONE, "Share of the prompt that the replica is believed to hold."),
    column(Row, SEND, "turns", "", 1e2, Scale::Log(2.0),
        "Requests of this gateway since it last sent one there, over the replicas."),
    column(Context, ALL, "facts_age_s", "s", 3.6e3, Scale::Log(3.0), "Time since the gateway looked."),
    column(Context, ALL, "prompt_s", "s", 1e2, Scale::Log(2.0), "Time that the prompt takes by itself."),
    falls(column(Context, ALL, "least_ttft_share", "", 1e3, Scale::Log(3.0), "The least of all replicas' ttft_share.")),
    falls(column(Context, ALL, "least_tpot_share", "", 1e2, Scale::Log(2.0), "The least of all replicas' tpot_share.")),
    falls(column(Row, SEND, "ttft_now_share", "", 1e3, Scale::Log(3.0),
        "Time to the first token there over its target, what has been computed since the look taken off.")),
    falls(column(Row, SEND, "tpot_now_share", "", 1e2, Scale::Log(2.0),
        "Time between two tokens there over its target, prompts in the same steps counted, what has ended taken off.")),
    column(Row, SEND, "ended_requests", "", 1e4, Scale::Log(4.0),
        "Of this gateway's requests those believed to have ended there since it looked."),
    column(Row, SEND, "prompt_share", "", 1.0, ONE, "Share of its time that prompts took there in the last ten seconds."),
    falls(column(Context, ALL, "least_ttft_now_share", "", 1e3, Scale::Log(3.0), "The least of all replicas' ttft_now_share.")),
    falls(column(Context, ALL, "least_tpot_now_share", "", 1e2, Scale::Log(2.0), "The least of all replicas' tpot_now_share.")),
    column(Context, ALL, "load", "", 1e2, Scale::Log(2.0),
        "Time of the prompts that came in a second of the last half minute, over this gateway's share of the replicas."),
    column(Context, ALL, "burst", "", 1e2, Scale::Log(2.0),
        "Tokens of prompts a second in the last three seconds over those in the last half minute."),
];

/// No replica's share is below the least of all.
const LAWS: [Law; 4] = [at_most(14, 8), at_most(15, 9), at_most(20, 16), at_most(21, 17)];

const fn at_most(least: usize, most: usize) -> Law {
    Law::AtMost {
        least,
        most,
        among: Kinds::of(&[0]),
    }
}

/// Numbers of a row, and of the context.
pub(crate) const ROW_WIDTH: usize = ROUTING_2.num_row;
const CONTEXT_WIDTH: usize = ROUTING_2.num_context;

/// The first columns.
pub const ROUTING_1: View = View::of("routing-1", &FEATURES, 16);
/// All columns.
pub const ROUTING_2: View = View::of("routing-2", &FEATURES, FEATURES.len());
/// What policies that route requests read.
pub static SCHEMA: FeatureSchema =
    FeatureSchema::new("routing", &KINDS, &FEATURES, &LAWS, &[ROUTING_1, ROUTING_2]);

/// The columns of a group, by their places in it.
const fn of_group<const WIDTH: usize>(is_row: bool) -> [Feature; WIDTH] {
    let (mut found, mut at, mut place) = ([FEATURES[0]; WIDTH], 0, 0);
    while at < FEATURES.len() {
        if matches!(FEATURES[at].group, Row) == is_row {
            found[place] = FEATURES[at];
            place += 1;
        }
        at += 1;
    }
    found
}

const OF_ROW: [Feature; ROW_WIDTH] = of_group(true);
const OF_CONTEXT: [Feature; CONTEXT_WIDTH] = of_group(false);

/// Writes the rows, replicas first, and the context.
pub(crate) fn write(decision: &Decision<'_>, rows: &mut Vec<f32>, context: &mut Vec<f32>) {
    rows.clear();
    context.clear();
    let mut least = [f64::INFINITY; 4];
    for replica in 0..decision.facts.len() {
        let raw = of_replica(decision, replica, &mut least);
        let columns = OF_ROW.iter().zip(raw);
        rows.extend(columns.map(|(feature, raw)| feature.encode(raw as f32)));
    }
    if decision.fleet.may_refuse {
        let is_refuse = |place: usize| f32::from(u8::from(place == 1));
        rows.extend((0..ROW_WIDTH).map(is_refuse));
    }
    let columns = OF_CONTEXT.iter().zip(of_all(decision, least));
    context.extend(columns.map(|(feature, raw)| feature.encode(raw as f32)));
}

fn of_replica(decision: &Decision<'_>, replica: usize, least: &mut [f64; 4]) -> [f64; ROW_WIDTH] {
    let (facts, sent, fleet) = (&decision.facts[replica], &decision.sent[replica], decision.fleet);
    let now = decision.believed(replica, true);
    let shares = [
        decision.ttft_s(replica, true) / fleet.targets.ttft_s,
        decision.tpot_s(replica, true) / fleet.targets.tpot_s,
        now.ttft_s / fleet.targets.ttft_s,
        now.tpot_s / fleet.targets.tpot_s,
    ];
    for (least, share) in least.iter_mut().zip(shares) {
        *least = least.min(share);
    }
    [
        1.0,
        0.0,
        facts.waiting_requests as f64,
        prompt_s(decision, facts.waiting_tokens as f64),
        facts.running_requests as f64,
        facts.context_tokens as f64 / fleet.pace.kv_tokens as f64,
        sent.requests as f64,
        prompt_s(decision, sent.tokens as f64),
        shares[0],
        shares[1],
        f64::from(decision.held_tokens(replica)) / f64::from(decision.prompt_tokens),
        (decision.num_routed - sent.last) as f64 / decision.facts.len() as f64,
        shares[2],
        shares[3],
        decision.ended_requests(replica),
        decision.lately[replica].prompt_share,
    ]
}

fn of_all(decision: &Decision<'_>, least: [f64; 4]) -> [f64; CONTEXT_WIDTH] {
    let (flow, fleet) = (decision.flow, decision.fleet);
    let own_replicas = fleet.num_replicas as f64 / fleet.num_gateways as f64;
    [
        decision.facts_age_s,
        prompt_s(decision, f64::from(decision.prompt_tokens)),
        least[0],
        least[1],
        least[2],
        least[3],
        prompt_s(decision, flow.slow_tokens_per_s) / own_replicas,
        flow.fast_tokens_per_s / flow.slow_tokens_per_s.max(1.0),
    ]
}

/// Time of tokens of prompts by themselves, s.
fn prompt_s(decision: &Decision<'_>, tokens: f64) -> f64 {
    decision.fleet.pace.prompt_s(tokens)
}
