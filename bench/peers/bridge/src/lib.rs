//! N environments behind a C interface, so that learners of other houses can be measured on them.
//!
//! The buffers of a [`Batch`] are allocated once and never move, so a caller looks at them where they are: nothing is copied
//! on the way. Whoever holds a handle calls it from one thread at a time. This is a bench's bridge and not the Python
//! package: no spaces, no errors of its own, one autoreset mode.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use pleach_env::{AutoresetMode, Batch, EnvConfig, VecEnv, VectorEnv as _};

/// N environments and where they write.
pub struct Handle {
    envs: VecEnv,
    batch: Batch,
    message: CString,
}

/// Where the numbers lie; shapes as in [`Batch`]. Valid as long as the handle.
#[repr(C)]
pub struct Buffers {
    num_envs: usize,
    num_global: usize,
    num_candidates: usize,
    num_features: usize,
    global: *mut f32,
    candidates: *mut f32,
    mask: *mut bool,
    reward: *mut f32,
    terminated: *mut bool,
    truncated: *mut bool,
    dt_s: *mut f64,
    final_global: *mut f32,
    final_candidates: *mut f32,
    final_mask: *mut bool,
}

impl Handle {
    /// 0, or 1 with the message kept.
    fn note(&mut self, result: Result<(), pleach_env::Error>) -> i32 {
        let Err(error) = result else { return 0 };
        self.message = CString::new(error.to_string()).unwrap_or_default();
        1
    }
}

/// Makes `num_envs` environments of a registered id; null where there is no such id. They begin anew in the step that ends
/// an episode.
///
/// # Safety
/// `id` is a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_new(id: *const c_char, num_envs: usize) -> *mut Handle {
    // SAFETY: the caller's promise.
    let id = unsafe { CStr::from_ptr(id) }.to_string_lossy();
    let envs =
        EnvConfig::registered(&id).and_then(|config| VecEnv::new(&config, num_envs, AutoresetMode::SameStep));
    let Ok(envs) = envs else {
        return ptr::null_mut();
    };
    let batch = Batch::new(envs.spaces(), num_envs);
    let message = CString::default();
    Box::into_raw(Box::new(Handle { envs, batch, message }))
}

/// Where the numbers lie.
///
/// # Safety
/// `handle` comes from [`pleach_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_buffers(handle: *mut Handle) -> Buffers {
    // SAFETY: the caller's promise.
    let Handle { envs, batch, .. } = unsafe { &mut *handle };
    let spaces = envs.spaces();
    Buffers {
        num_envs: envs.num_envs(),
        num_global: spaces.num_global,
        num_candidates: spaces.num_candidates,
        num_features: spaces.num_features,
        global: batch.global.as_mut_ptr(),
        candidates: batch.candidates.as_mut_ptr(),
        mask: batch.mask.as_mut_ptr(),
        reward: batch.reward.as_mut_ptr(),
        terminated: batch.terminated.as_mut_ptr(),
        truncated: batch.truncated.as_mut_ptr(),
        dt_s: batch.dt_s.as_mut_ptr(),
        final_global: batch.final_global.as_mut_ptr(),
        final_candidates: batch.final_candidates.as_mut_ptr(),
        final_mask: batch.final_mask.as_mut_ptr(),
    }
}

/// Begins an episode in every environment; 0, or 1 for an error.
///
/// # Safety
/// `handle` comes from [`pleach_new`]; `seeds` points to as many numbers as there are environments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_reset(handle: *mut Handle, seeds: *const u64) -> i32 {
    // SAFETY: the caller's promise.
    let handle = unsafe { &mut *handle };
    // SAFETY: the caller's promise.
    let seeds = unsafe { std::slice::from_raw_parts(seeds, handle.envs.num_envs()) };
    let result = handle.envs.reset(seeds, &mut handle.batch);
    handle.note(result)
}

/// One step of every environment; 0, or 1 for an error.
///
/// # Safety
/// `handle` comes from [`pleach_new`]; `actions` points to as many numbers as there are environments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_step(handle: *mut Handle, actions: *const usize) -> i32 {
    // SAFETY: the caller's promise.
    let handle = unsafe { &mut *handle };
    // SAFETY: the caller's promise.
    let actions = unsafe { std::slice::from_raw_parts(actions, handle.envs.num_envs()) };
    let result = handle.envs.step(actions, &mut handle.batch);
    handle.note(result)
}

/// The last error in words.
///
/// # Safety
/// `handle` comes from [`pleach_new`]; what is returned is valid until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_message(handle: *const Handle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { &*handle }.message.as_ptr()
}

/// Ends the environments.
///
/// # Safety
/// `handle` comes from [`pleach_new`] and is not used again, nor are its buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_free(handle: *mut Handle) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(handle) });
}
