//! A controller over an API server in memory, with the settings of most tests.

use crate::fake::Fake;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use tempfile::TempDir;

/// A controller, the server that it drives, and its folder.
pub struct Driven {
    pub fake: Fake,
    pub controller: Controller,
    pub settings: Settings,
    pub folder: TempDir,
}

impl Driven {
    /// All namespaces are driven live, and no start waits for the one before it.
    pub fn new(fake: Fake, policy: &str, change: impl FnOnce(&mut Settings)) -> Driven {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            state_dir: folder.path().join("state"),
            request_limit_s: 20.0,
            bind_wait_s: 0.0,
            namespaces: vec!["*".into()],
            ..Settings::default()
        };
        change(&mut settings);
        Driven {
            controller: begun(&fake, &settings, policy),
            fake,
            settings,
            folder,
        }
    }

    /// The controller ends, and another one begins, by that policy.
    pub fn begun_again(self, policy: &str) -> Driven {
        let Driven {
            fake,
            controller,
            settings,
            folder,
        } = self;
        drop(controller);
        Driven {
            controller: begun(&fake, &settings, policy),
            fake,
            settings,
            folder,
        }
    }
}

fn begun(fake: &Fake, settings: &Settings, policy: &str) -> Controller {
    Kubernetes::driver(settings.clone(), fake.cluster(settings), policy, false).unwrap()
}
