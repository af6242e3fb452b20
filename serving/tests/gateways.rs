//! Trees as endpoint pickers of inference gateways run them: by what endpoints tell, and in the pickers' own schedulers.
//!
//! The simulator asks the schedulers themselves: a program in Go with one of them answers each request by a line. Their dependencies
//! take minutes to compile the first time, so these tests run in a stage of `./check.sh` (`PLEACH_CHECK_ROUTERS=1`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pleach_scheduler::Problem;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};
use pleach_serving::llm::deploy::{Deployment, EndpointPicker, plugin};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Decision, Facts, Fleet, Outcome, Requests, Router, SCHEMA, ScorerRouter, by_name, simulate,
};
use pleach_workloads::Seed;

/// What a tree reads: both believed times, and the least of the second over all endpoints.
type Reads = [&'static str; 3];
/// As an endpoint reported, with all that was sent since.
const TOLD: Reads = ["ttft_share", "tpot_share", "least_tpot_share"];
/// With what has been computed and has ended since taken off: rates that no endpoint reports.
const NOW: Reads = ["ttft_now_share", "tpot_now_share", "least_tpot_now_share"];

/// Refuses where even the least believed TPOT is above a share of its target; sends where both believed times are least.
fn tree([ttft, tpot, least]: Reads, most: f32) -> Tree {
    let column = |name: &str| SCHEMA.joined_index(name).unwrap() as u16;
    let split = |name: &str, raw: f32, left: u32, right: u32| Node::Split {
        feature: column(name),
        threshold: SCHEMA.features[usize::from(column(name))].encode(raw),
        left,
        right,
    };
    let leaf = |id: u32, score: f32| Node::Leaf {
        id,
        score,
        samples: 0,
        weight: 0.0,
    };
    let nodes = [
        split("is_refuse", 0.5, 1, 2),
        leaf(0, 1.0),
        split(least, most, 3, 4),
        leaf(1, 0.0),
        leaf(2, 2.0),
    ];
    let weights = [ttft, tpot].map(|name| KeyWeight {
        feature: column(name),
        weight: 1.0,
    });
    let meta = TreeMeta {
        name: "least believed times".into(),
        tie_key: TieKey::Index,
        key_weights: weights.to_vec(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    };
    Tree::over(&SCHEMA, meta, &nodes).unwrap()
}

fn told() -> Tree {
    tree(TOLD, 0.5)
}

fn fleet(may_refuse: bool) -> Fleet {
    Fleet {
        may_refuse,
        ..crate::fleet::fleet(16, 1, 1.0)
    }
}

/// Lists of a comparison.
const NUM_LISTS: u64 = 20;

fn list(num_requests: u32, rate_per_s: f64, seed: u64) -> Requests {
    let generator = RequestGenerator {
        num_requests,
        rate_per_s,
        turns: 2.0,
        ..RequestGenerator::default()
    };
    generator.draw(Seed(seed)).unwrap()
}

fn play(list: &Requests, fleet: &Fleet, router: &mut dyn Router) -> (Outcome, f64) {
    let outcome = simulate(list, fleet, router).unwrap();
    let hits = 100.0 * outcome.hit_share(fleet.targets);
    (outcome, hits)
}

/// Times of a request: now, and when endpoints reported, ns.
#[derive(Clone, Copy)]
struct Times {
    now_ns: u64,
    told_ns: u64,
}

impl Times {
    fn of(list: &Requests, decision: &Decision<'_>) -> Times {
        let now_s = list.rows()[decision.num_routed as usize].arrival_s;
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Times {
            now_ns: ns(now_s),
            told_ns: ns(now_s - decision.facts_age_s),
        }
    }

    /// Seconds as Go makes them of a duration.
    fn age_s(self) -> f64 {
        let age_ns = self.now_ns - self.told_ns;
        (age_ns / 1_000_000_000) as f64 + (age_ns % 1_000_000_000) as f64 / 1e9
    }
}

/// The facts that an exported plug-in has: as reported, but for the tokens of prompts that are not computed. It knows when it
/// sent which prompts.
#[derive(Default)]
struct Memory(Vec<Vec<(u64, u64)>>);

impl Memory {
    fn facts(&mut self, decision: &Decision<'_>, times: Times) -> Vec<Facts> {
        self.0.resize(decision.facts.len(), Vec::new());
        let replicas = self.0.iter().zip(decision.facts).zip(decision.sent);
        let seen = replicas.map(|((log, told), sent)| {
            let before = &log[..log.len() - sent.requests as usize];
            Facts {
                waiting_tokens: waiting_tokens(before, told.waiting_requests, times, decision),
                ..*told
            }
        });
        seen.collect()
    }

    fn note(&mut self, decision: &Decision<'_>, times: Times, chosen: Option<usize>) {
        if let Some(replica) = chosen {
            self.0[replica].push((times.now_ns, decision.prompt_tokens.into()));
        }
    }
}

/// The larger of two guesses: the requests that wait are the last that were sent, the mean of these where fewer are known, as long as
/// this one where none is; and prompts, the last 64, are computed one after another at the pace of full steps.
fn waiting_tokens(before: &[(u64, u64)], waiting: u64, times: Times, decision: &Decision<'_>) -> u64 {
    let pace = decision.fleet.pace;
    let token_ps = pace.prompt_token_ps + pace.step_ps / u64::from(pace.tokens_max);
    let (mut left_ps, mut at_ns) = (0_u64, 0);
    for (sent_ns, tokens) in &before[before.len().saturating_sub(64)..] {
        left_ps = left_ps.saturating_sub(1000 * (sent_ns - at_ns)) + tokens * token_ps;
        at_ns = *sent_ns;
    }
    left_ps = left_ps.saturating_sub(1000 * (times.told_ns - at_ns));
    let last = &before[before.len().saturating_sub(waiting as usize)..];
    let queued = match last.len() as u64 {
        0 => waiting * u64::from(decision.prompt_tokens),
        num => last.iter().map(|(_, tokens)| tokens).sum::<u64>() * waiting / num,
    };
    queued.max(left_ps / token_ps)
}

/// A tree by the facts of a plug-in, beside the plug-in itself where there is one.
struct Deployed<'a> {
    list: &'a Requests,
    tree: ScorerRouter,
    memory: Memory,
    picker: Option<Picker>,
    num_refused: usize,
}

impl<'a> Deployed<'a> {
    fn new(list: &'a Requests, picker: Option<Picker>) -> Deployed<'a> {
        Deployed {
            list,
            tree: ScorerRouter::of_tree(&told()).unwrap(),
            memory: Memory::default(),
            picker,
            num_refused: 0,
        }
    }
}

impl Router for Deployed<'_> {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        let times = Times::of(self.list, decision);
        let facts = self.memory.facts(decision, times);
        let seen = Decision {
            facts: &facts,
            facts_age_s: times.age_s(),
            ..*decision
        };
        let chosen = self.tree.route(&seen)?;
        if let Some(picker) = &mut self.picker {
            assert_eq!(
                picker.ask(decision, times),
                chosen,
                "request {}",
                decision.num_routed
            );
        }
        self.memory.note(decision, times, chosen);
        self.num_refused += usize::from(chosen.is_none());
        Ok(chosen)
    }
}

/// A plug-in alone, and how often the tree by all facts of the simulation chooses another endpoint.
struct Estimating<'a> {
    list: &'a Requests,
    tree: ScorerRouter,
    picker: Picker,
    num_others: usize,
}

impl Router for Estimating<'_> {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        let chosen = self.picker.ask(decision, Times::of(self.list, decision));
        self.num_others += usize::from(self.tree.route(decision)? != chosen);
        Ok(chosen)
    }
}

/// The scorers that a picker has by default, in that picker; beside our rule of the same name.
struct Theirs<'a> {
    list: &'a Requests,
    picker: Picker,
    weighted: Box<dyn Router>,
    num_ties: usize,
}

/// Queue, keys and values and prefix weighed 2, 2, 3, as both document it: the oracle of what is equal.
fn sum_of_scores(decision: &Decision<'_>, replica: usize) -> f64 {
    let waiting = |facts: &Facts| facts.waiting_requests as f64;
    let least = decision.facts.iter().map(waiting).fold(f64::INFINITY, f64::min);
    let most = decision.facts.iter().map(waiting).fold(0.0, f64::max);
    let facts = &decision.facts[replica];
    let queue = if most > least {
        (most - waiting(facts)) / (most - least)
    } else {
        1.0
    };
    let free = 1.0 - facts.context_tokens as f64 / decision.fleet.pace.kv_tokens as f64;
    let held = f64::from(decision.held_tokens(replica)) / f64::from(decision.prompt_tokens);
    2.0 * queue + 2.0 * free + 3.0 * held
}

impl Router for Theirs<'_> {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        let theirs = self.picker.ask(decision, Times::of(self.list, decision)).unwrap();
        let ours = self.weighted.route(decision)?.unwrap();
        if theirs != ours {
            let [theirs, ours] = [theirs, ours].map(|replica| sum_of_scores(decision, replica));
            // The picker draws among equal ones; ours takes the one that was sent to longest ago.
            assert_eq!(
                theirs.to_bits(),
                ours.to_bits(),
                "request {}",
                decision.num_routed
            );
            self.num_ties += 1;
        }
        Ok(Some(theirs))
    }
}

/// A program with a picker's scheduler.
struct Picker {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Picker {
    fn start(program: &Path, whose: &str) -> Picker {
        let mut program = Command::new(program)
            .args([whose, "{\"refuse\": true}"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Picker {
            input: program.stdin.take().unwrap(),
            output: BufReader::new(program.stdout.take().unwrap()),
            program,
        }
    }

    fn ask(&mut self, decision: &Decision<'_>, times: Times) -> Option<usize> {
        let kv_tokens = decision.fleet.pace.kv_tokens as f64;
        let mut line = format!("{} {} {}", times.now_ns, times.told_ns, decision.prompt_tokens);
        for (replica, facts) in decision.facts.iter().enumerate() {
            let kv_use = facts.context_tokens as f64 / kv_tokens;
            let (waiting, running) = (facts.waiting_requests, facts.running_requests);
            let held = decision.held_tokens(replica);
            let ended = facts.ended_requests;
            write!(
                line,
                " {waiting} {running} {:016x} {held} {ended}",
                kv_use.to_bits()
            )
            .unwrap();
        }
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let answer: i64 = answer.trim().parse().expect("an answer of the picker");
        usize::try_from(answer).ok()
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Builds the program of a picker with the exported tree; none where Go or the picker's source is missing, which is noted.
fn built(picker: EndpointPicker, fleet: &Fleet, tree: &Tree) -> Option<PathBuf> {
    let go = pleach_tests::program(&["go"])?;
    // Always the same folder, so that what was compiled there is found again in Go's cache.
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("gateways")
        .join(picker.name());
    fs::create_dir_all(folder).unwrap();
    if picker == EndpointPicker::LlmDRouter {
        let archive = pleach_tests::data("llm-d-router/llm-d-router-ebab6879.tgz")?;
        let tar = pleach_tests::program(&["tar"])?;
        let unpacked = Command::new(tar)
            .arg("xzf")
            .arg(archive)
            .arg("-C")
            .arg(folder)
            .status();
        assert!(unpacked.unwrap().success());
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateways");
    for (from, to) in [
        (own.join("protocol.go"), "protocol.go"),
        (own.join(picker.name()).join("picker.go"), "picker.go"),
        (own.join(picker.name()).join("go.mod"), "go.mod"),
        (own.join(picker.name()).join("go.sum"), "go.sum"),
    ] {
        fs::write(folder.join(to), fs::read(from).unwrap()).unwrap();
    }
    let deployment = Deployment {
        pace: fleet.pace,
        pace_of: "llama-3-8b on one H100".into(),
        targets: fleet.targets,
        may_refuse: false,
    };
    fs::create_dir_all(folder.join("pleach")).unwrap();
    let text = plugin(tree, picker, &deployment).unwrap();
    fs::write(folder.join("pleach").join(picker.file_name()), text).unwrap();
    let program = folder.join("picker");
    let found = Command::new(go)
        .args(["build", "-ldflags=-s -w", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    Some(program)
}

/// What is lost by the one fact that endpoints do not tell: less than lists differ, on both sides of where queues begin.
#[test]
fn a_tree_by_what_endpoints_tell_hits_nearly_as_much_as_by_all_facts() {
    let fleet = fleet(true);
    for rate_per_s in [170.0, 190.0, 210.0] {
        let gains = (0..NUM_LISTS).map(|seed| {
            let list = list(8_000, rate_per_s, seed);
            let (_, all) = play(&list, &fleet, &mut ScorerRouter::of_tree(&told()).unwrap());
            let (_, told) = play(&list, &fleet, &mut Deployed::new(&list, None));
            told - all
        });
        let gains: Vec<f64> = gains.collect();
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        let squares = gains
            .iter()
            .map(|gain| (gain - mean) * (gain - mean))
            .sum::<f64>();
        let error = (squares / (NUM_LISTS * (NUM_LISTS - 1)) as f64).sqrt();
        println!(
            "{rate_per_s} requests a second: {mean:+.2} points of hits (standard error {error:.2}) by what endpoints tell"
        );
        assert!(mean.abs() < 1.5, "{mean} points at {rate_per_s}");
    }
}

fn a_picker_chooses_as_we_do(picker: EndpointPicker) {
    let fleet = fleet(true);
    let Some(program) = built(picker, &fleet, &told()) else {
        return;
    };
    let list = list(3_000, 230.0, 7);
    let mut deployed = Deployed::new(&list, Some(Picker::start(&program, "ours")));
    let (_, hits) = play(&list, &fleet, &mut deployed);
    let refused = deployed.num_refused;
    println!(
        "{}: 3000 requests, all as ours, {refused} refused, {hits:.2} % hits",
        picker.name()
    );
    assert!((100..2_000).contains(&refused), "{refused} refused");

    for scrape_s in [1.0, 0.05] {
        its_own_scorers_choose_as_weighted(picker, &program, scrape_s);
    }
}

/// Where all can be served, with facts a second old, and as old as pickers look by default.
fn its_own_scorers_choose_as_weighted(picker: EndpointPicker, program: &Path, scrape_s: f64) {
    let list = self::list(3_000, 120.0, 7);
    let fleet = Fleet {
        scrape_s,
        ..fleet(false)
    };
    let weighted = || by_name("weighted:own=false", 1).unwrap();
    let mut theirs = Theirs {
        list: &list,
        picker: Picker::start(program, "theirs"),
        weighted: weighted(),
        num_ties: 0,
    };
    let (_, in_picker) = play(&list, &fleet, &mut theirs);
    let [same, counting, tree] = [
        &mut *weighted(),
        &mut *by_name("weighted", 1).unwrap(),
        &mut Deployed::new(&list, None),
    ]
    .map(|router| play(&list, &fleet, router).1);
    let ties = theirs.num_ties;
    println!(
        "{}, looks {scrape_s} s apart: its own scorers {in_picker:.2} % hits, as our weighted but for {ties} draws among equal ones; \
         weighted:own=false {same:.2} %, weighted {counting:.2} %, the tree without refusals {tree:.2} %",
        picker.name()
    );
    assert!(ties < 1_500, "{ties} ties");
}

/// Columns of rates that no endpoint tells, by what the plug-in has seen itself.
fn estimates_of_rates_hit_nearly_as_much(picker: EndpointPicker) {
    let (fleet, tree) = (fleet(true), tree(NOW, 0.9));
    let Some(program) = built(picker, &fleet, &tree) else {
        return;
    };
    let list = self::list(6_000, 200.0, 7);
    let by_tree = || ScorerRouter::of_tree(&tree).unwrap();
    let mut estimating = Estimating {
        list: &list,
        tree: by_tree(),
        picker: Picker::start(&program, "ours"),
        num_others: 0,
    };
    let (outcome, told) = play(&list, &fleet, &mut estimating);
    let (_, all) = play(&list, &fleet, &mut by_tree());
    let refused = 6_000 - outcome.served().count();
    println!(
        "{}: a tree of rates: {told:.2} % hits in the picker, {all:.2} % by all facts, {refused} refused, {} of 6000 chosen otherwise",
        picker.name(),
        estimating.num_others
    );
    assert!(
        (told - all).abs() < 5.0 && (50..3_000).contains(&refused),
        "{told} and {all}, {refused} refused"
    );
}

#[test]
#[ignore = "compiles a picker: PLEACH_CHECK_ROUTERS=1 ./check.sh"]
fn the_gateway_api_inference_extension_chooses_as_we_do() {
    a_picker_chooses_as_we_do(EndpointPicker::Gie);
    estimates_of_rates_hit_nearly_as_much(EndpointPicker::Gie);
}

#[test]
#[ignore = "compiles a picker: PLEACH_CHECK_ROUTERS=1 ./check.sh"]
fn llm_d_router_chooses_as_we_do() {
    a_picker_chooses_as_we_do(EndpointPicker::LlmDRouter);
    estimates_of_rates_hit_nearly_as_much(EndpointPicker::LlmDRouter);
}
