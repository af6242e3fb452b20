//! Jobs that come, wait, run and leave, in all orders in which they are asked for.

pub(in crate::cluster) mod admit;
pub(in crate::cluster) mod allowed;
pub(in crate::cluster) mod attained_service;
pub(in crate::cluster) mod changes;
pub(in crate::cluster) mod ordered_set;
pub(in crate::cluster) mod queue;
pub mod record;
pub(in crate::cluster) mod reserve;
pub(in crate::cluster) mod shape;
pub(in crate::cluster) mod submit;
pub(in crate::cluster) mod yielding;
