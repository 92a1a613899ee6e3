//! A write that lost a race: the pod is read again, a few times.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::thread;
use std::time::Duration;

use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Error, Kubectl};
use crate::pod::Pod;

/// How often: right after a landing about one write in five meets the kubelet's own status write.
const MOST: u32 = 5;

/// Reads the pod anew after a moment; false: it was tried often enough.
///
/// # Errors
/// When the pod can't be read, or another has its name.
pub fn again(kubectl: &Kubectl, pod: &mut Pod, conflicts: &mut u32) -> Result<bool, Error> {
    if *conflicts == MOST {
        return Ok(false);
    }
    *conflicts += 1;
    thread::sleep(jitter(*conflicts));
    let value = kubectl.get_pod(pod.name())?.finish()?;
    let new = Pod::new(value).map_err(|e| Error::Answer { what: "a pod", why: e.to_string() })?;
    if new.uid() != pod.uid() {
        let words = format!("pod {} was replaced by another of the same name meanwhile", pod.name());
        return Err(Error::Refused(Refusal::NotFound(words)));
    }
    *pod = new;
    Ok(true)
}

/// Between 10 and 40 milliseconds, longer after every conflict: two that meet shouldn't meet again.
fn jitter(conflicts: u32) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 30;
    Duration::from_millis((10 + random) * u64::from(conflicts))
}
