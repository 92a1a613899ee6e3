//! The target: waits, and counts its own stops.
//!
//! A process that was stopped and continued comes out of `epoll_wait` with `EINTR` although it has
//! no signal handler (signal(7)), whoever stopped it and however briefly.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::event::epoll;
use rustix::process::{DumpableBehavior, PTracer, set_dumpable_behavior, set_ptracer};

use crate::condition::{Condition, Relation};
use crate::setup;

/// A copy of this program with a file capability.
pub(crate) const CAPPED: &str = "/tmp/capped";

/// The verb: becomes the target of a condition.
pub(crate) fn run(condition: &Condition) {
    let setup = &condition.target;
    setup::apply(setup);
    if condition.relation == Relation::Ended {
        return say("ready");
    }
    if setup.no_exec {
        return wait();
    }
    let program = if setup.file_capability { CAPPED } else { "/init" };
    let mut words = vec!["wait"];
    words.extend(setup.undumpable.then_some("undumpable"));
    words.extend(setup.any_tracer.then_some("any-tracer"));
    panic!("{program}: {}", Command::new(program).args(words).exec());
}

/// The verb that the target has become.
pub(crate) fn become_ready(words: &[&str]) {
    if words.contains(&"undumpable") {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
    }
    if words.contains(&"any-tracer") {
        set_ptracer(PTracer::Any).unwrap();
    }
    wait();
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// Says that it is ready, then how often it was stopped, each time it is asked, until its stdin closes.
fn wait() {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let stdin = std::io::stdin();
    epoll::add(&set, &stdin, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
    say("ready");
    let mut stops = 0;
    loop {
        let mut events = Vec::with_capacity(1);
        match epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) => {
                if stdin.lock().read(&mut [0u8; 1]).unwrap() == 0 {
                    return;
                }
                say(&stops.to_string());
            }
            Err(rustix::io::Errno::INTR) => stops += 1,
            Err(e) => panic!("epoll_wait: {e}"),
        }
    }
}
