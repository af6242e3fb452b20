//! The network that passes messages: its gradient, its files, and the groups that it may choose among.

use std::sync::Arc;

use pleach_graphs::board::Offers;
use pleach_graphs::engine::Engine;
use pleach_graphs::generate::{Arrivals, Shape, graphs, list};
use pleach_graphs::list::Machine;
use pleach_graphs::network::{Deciding, Look, Network, Pass, best};
use pleach_graphs::rules::{by_name, play};
use pleach_workloads::Seed;

/// A network whose last weights are drawn too, so that all of its parts have a derivative.
pub fn network(messages: bool, offers: Offers) -> Network {
    let mut state = 7_u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut network = Network::new(messages, offers, &mut draw);
    for parameter in &mut network.parameters {
        *parameter += (0.2 * draw() - 0.1) as f32;
    }
    network
}

fn stream(seed: u64) -> Arc<pleach_graphs::list::List> {
    let drawn = Arc::new(graphs(Shape::Tpch, 12, Seed(seed)).unwrap());
    let arrivals = Arrivals::Stream { jobs: 12, load: 2.0 };
    Arc::new(list(&drawn, Machine::default(), arrivals, Seed(seed)).unwrap())
}

/// Every 20th decision of a play, with what the plain network makes of it.
pub fn looks(network: &Network) -> Vec<(Look, Pass)> {
    let list = stream(3);
    let mut engine = Engine::new(Arc::clone(&list));
    let mut deciding = Deciding::new(network.clone());
    let (mut found, mut number) = (Vec::new(), 0);
    while !engine.is_over() {
        let choices = deciding.see(&engine).to_vec();
        if number % 20 == 0 {
            found.push((deciding.look.clone(), deciding.pass.clone()));
        }
        number += 1;
        engine.decide(choices[best(&deciding.pass.scores)]);
    }
    found
}

/// All decisions at once have the scores that they have one by one, and along the gradient of the module the plain ones grow by its
/// length.
#[test]
fn the_module_is_the_plain_network_with_a_gradient() {
    for (messages, offers) in [
        (true, Offers::Caps),
        (true, Offers::Groups),
        (false, Offers::Caps),
    ] {
        let network = network(messages, offers);
        let looks = looks(&network);
        assert!(looks.len() > 5 && looks.iter().any(|(look, _)| !look.children.is_empty()));
        let plain: Vec<f32> = looks.iter().flat_map(|(_, pass)| pass.scores.clone()).collect();
        let by: Vec<f32> = (0..plain.len()).map(|row| (row % 3) as f32 - 1.0).collect();
        let all: Vec<&Look> = looks.iter().map(|(look, _)| look).collect();
        let gradient = network.gradient(&all, |scores| {
            assert_eq!(scores.len(), plain.len());
            for (score, plain) in scores.iter().zip(&plain) {
                assert!((score - plain).abs() < 1e-4, "{score} for {plain}");
            }
            by.clone()
        });
        let size = gradient.iter().map(|by| by * by).sum::<f32>().sqrt();
        let at = |sign: f32| -> f64 {
            let mut moved = network.clone();
            for (parameter, by) in moved.parameters.iter_mut().zip(&gradient) {
                *parameter += sign * 1e-4 * by / size;
            }
            let scores = looks.iter().flat_map(|(look, _)| {
                let mut pass = Pass::default();
                moved.forward(look, &mut pass);
                pass.scores
            });
            scores.zip(&by).map(|(score, by)| f64::from(score * by)).sum()
        };
        let slope = (at(1.0) - at(-1.0)) / 2e-4;
        assert!(
            (slope / f64::from(size) - 1.0).abs() < 0.03,
            "{slope}, not {size}"
        );
    }
}

/// Some rows alone have the scores that they have among all.
#[test]
fn rows_are_scored_each_for_itself() {
    for offers in [Offers::Caps, Offers::Groups] {
        let network = network(true, offers);
        for (look, pass) in looks(&network) {
            let kept = [pass.scores.len() - 1, 0];
            let mut alone = Pass::default();
            network.forward(&look.only(&kept), &mut alone);
            assert_eq!(alone.scores, kept.map(|row| pass.scores[row]));
        }
    }
}

#[test]
fn a_file_is_read_as_it_was_written_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stage.weights");
    let name = format!("stage-network:file={}", path.display());
    let list = stream(5);
    let text = serde_json::to_string(&network(false, Offers::Groups)).unwrap();
    std::fs::write(&path, &text).unwrap();
    assert_eq!(Network::read(&path).unwrap(), network(false, Offers::Groups));
    let mut rule = by_name(&name, &list, 0).unwrap();
    assert!(play(Arc::clone(&list), rule.as_mut()).unwrap().mean_jct_s() > 2.0);
    for (spoilt, words) in [
        (text.replace("groups", "all"), "unknown variant"),
        (text.replace("messages", "message"), "unknown field"),
        (text.replace("\"parameters\":[", "\"parameters\":[0.5,"), "not 3"),
        (text[..text.len() / 2].to_string(), "EOF"),
        (String::new(), "EOF"),
    ] {
        std::fs::write(&path, spoilt).unwrap();
        let said = by_name(&name, &list, 0).err().unwrap().to_string();
        assert!(said.contains(words) && said.contains("stage.weights"), "{said}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(by_name(&name, &list, 0).is_err());
    // Without a file it is the rule by hand, as is a network that has learned nothing.
    let of = |rule: &mut dyn pleach_graphs::rules::Rule| play(Arc::clone(&list), rule).unwrap().mean_jct_s();
    let new = Network::new(true, Offers::Caps, || 0.25);
    let by_hand = of(by_name("stage-network", &list, 0).unwrap().as_mut());
    assert_eq!(of(&mut Deciding::new(new)), by_hand);
}

#[test]
fn groups_offer_one_stage_each_within_even_shares() {
    let list = stream(6);
    let mut engine = Engine::new(Arc::clone(&list));
    let mut board = pleach_graphs::board::Board::of(Offers::Groups);
    let mut most = 0;
    while !engine.is_over() {
        board.look(&engine);
        let choices = board.choices().to_vec();
        most = most.max(choices.len());
        assert!(choices.len() <= 13 || engine.must_choose());
        let share = engine
            .list()
            .machine()
            .executors
            .div_ceil(engine.active().len() as u32);
        for (stage, sent) in choices.iter().flatten() {
            let job = engine.job(*stage);
            let is_own = Some(job) == engine.source_job();
            assert!(engine.offered().contains(stage) && *sent > 0);
            assert!(is_own || engine.must_choose() || engine.supply(job) + sent <= share);
        }
        engine.decide(choices[0]);
    }
    assert!(most > 3, "{most}");
}
