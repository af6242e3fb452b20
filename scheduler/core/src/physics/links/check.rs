//! What a fabric and a step may say.

use super::{Fabric, Inside};
use crate::problem::Problem;
use crate::settings::Settings as _;

impl Fabric {
    /// Checks that every link moves something, and that nothing is faster than what it is made of.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn validate(&self) -> Result<(), Problem> {
        self.inside.check_at("fabric.inside", "")?;
        self.inside.check_parts()?;
        self.between.check_at("fabric.between", "")
    }
}

impl Inside {
    /// Checks islands and switches against the ring.
    fn check_parts(&self) -> Result<(), Problem> {
        let ring = self.ring_gb_per_s;
        if let Some(islands) = self.islands_gb_per_s.filter(|islands| *islands > ring) {
            let allowed = format!("at most ring_gb_per_s, {ring}");
            let hint = "islands are joined by slower links; leave it out where NVLink joins the whole node";
            return Err(Problem::new(
                "fabric.inside.islands_gb_per_s",
                islands,
                allowed,
                hint,
            ));
        }
        let Some(switch) = self.switch else {
            return Ok(());
        };
        switch.check_at("fabric.inside.switch", "")?;
        Problem::refuse_if(
            switch.gb_per_s < ring,
            "fabric.inside.switch.gb_per_s",
            switch.gb_per_s,
            format_args!("at least ring_gb_per_s, {ring}"),
            "leave switch out where the ring is as fast",
        )?;
        Problem::refuse_if(
            switch.full_gpus < switch.from_gpus,
            "fabric.inside.switch.full_gpus",
            switch.full_gpus,
            format_args!("from_gpus, {}, to 4096", switch.from_gpus),
            "GPUs of the domain, for example 5 and 8",
        )?;
        Ok(())
    }
}
