//! Views that environments show. Builds with debug assertions have one of two more columns.

use pleach_scheduler::ActionKind;
use pleach_scheduler::features::FeatureSchema;

use crate::{AutoresetMode, Batch, Env, EnvConfig, RandomActions, Seed, Spaces, VecEnv, VectorEnv as _};

#[test]
fn the_first_view_is_shown_unless_another_is_named_and_unknown_ones_are_refused() {
    let text = toml::to_string(&EnvConfig::default()).unwrap();
    assert!(
        !text.contains("columns"),
        "files of today stay as they are: {text}"
    );
    for id in EnvConfig::ids() {
        assert_eq!(EnvConfig::registered(id).unwrap().columns, "decision-1", "{id}");
    }
    let shown = |columns: &str| EnvConfig {
        columns: columns.into(),
        ..EnvConfig::default()
    };
    let text = toml::to_string(&shown("test-all")).unwrap();
    assert_eq!(toml::from_str::<EnvConfig>(&text).unwrap(), shown("test-all"));
    let refused = Env::new(shown("decision-9")).unwrap_err().to_string();
    assert!(
        refused.contains("columns = decision-9: allowed is decision-1"),
        "{refused}"
    );
}

#[test]
fn a_newer_view_shows_its_columns_behind_those_of_the_first() {
    let config = EnvConfig::registered("Pleach/PhillyPreempt-v0").unwrap();
    let newer = EnvConfig {
        columns: "test-all".into(),
        ..config.clone()
    };
    let [first, newer] = [config, newer].map(|config| Shown::of(&config, 300));
    let widths = |shown: &Shown| (shown.0.num_global, shown.0.num_features);
    let schema = FeatureSchema::current();
    let view = schema.view("test-all").unwrap();
    let whole = (view.num_context, view.num_row);
    assert_eq!((widths(&first), widths(&newer)), ((14, 42), whole));
    assert_eq!(first.1.len(), newer.1.len());
    let mut read = [0; 2];
    let encode = |name: &str, raw: u32| schema.named(name).unwrap().encode(raw as f32);
    for ((global, rows), (more_global, more_rows)) in first.1.iter().zip(&newer.1) {
        assert_eq!(global[..], more_global[..14]);
        // 64 GPUs.
        assert_eq!(more_global[14], encode("test_context", 65));
        read[0] += 1;
        for (row, more) in rows.chunks(42).zip(more_rows.chunks(view.num_row)) {
            assert_eq!(*row, more[..42]);
            let sizes = (1..=64).map(|num_gpus| encode("test_row", 1 + num_gpus));
            let last = more[view.num_row - 1];
            assert!(last == 0.0 || sizes.into_iter().any(|size| size == last));
            read[1] += usize::from(last > 0.0);
        }
    }
    assert!(read[0] == 301 && read[1] > 300, "{read:?}");
}

#[test]
fn the_second_view_tells_resizes_from_other_actions_and_how_far_they_go() {
    let mut config = EnvConfig::registered("Pleach/Elastic-v1").unwrap();
    config.sim.capabilities.grant(ActionKind::Resize, true);
    config.candidates.actions = config.candidates.actions.with(ActionKind::Resize);
    config.columns = "decision-2".into();
    let schema = FeatureSchema::current();
    let of = |name: &str| schema.place(schema.joined_index(name).unwrap());
    let (flag, ratio) = (of("is_resize"), of("resize_ratio"));
    let Shown(spaces, steps) = Shown::of(&config, 400);
    assert_eq!((spaces.num_global, spaces.num_features), (14, 44));
    let (mut smaller, mut larger) = (0, 0);
    for row in steps.iter().flat_map(|(_, rows)| rows.chunks(44)) {
        let raw = 2.0 * row[ratio];
        assert_eq!(row[flag] == 1.0, raw > 0.0, "{raw}");
        // A size that it has is no resize.
        assert_ne!(raw, 1.0);
        smaller += usize::from(raw > 0.0 && raw < 1.0);
        larger += usize::from(raw > 1.0);
    }
    assert!(smaller > 20 && larger > 20, "{smaller} smaller, {larger} larger");
}

/// Sizes, and what each step of an episode shows.
struct Shown(Spaces, Vec<(Vec<f32>, Vec<f32>)>);

impl Shown {
    fn of(config: &EnvConfig, num_steps: usize) -> Shown {
        let mut envs = VecEnv::new(config, 1, AutoresetMode::SameStep).unwrap();
        let mut batch = Batch::new(envs.spaces(), 1);
        let mut random = RandomActions::new(Seed(3));
        let mut shown = Vec::new();
        envs.reset(&[7], &mut batch).unwrap();
        for _ in 0..num_steps {
            shown.push((batch.global.clone(), batch.candidates.clone()));
            let actions = random.draw(&batch.mask, envs.spaces().num_candidates);
            envs.step(&actions, &mut batch).unwrap();
        }
        shown.push((batch.global.clone(), batch.candidates.clone()));
        Shown(envs.spaces(), shown)
    }
}
