//! The debuggers and tracers that podbench knows: the seat looks for them, the launcher says how
//! each is called.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debugger {
    /// The program's name.
    pub name: &'static str,
    /// The command that takes hold of process `PID`; `None`: it attaches to none.
    attach: Option<&'static str>,
    /// The words in front of a program that it is to start.
    launch: &'static str,
}

/// All of them, the most telling first. gdb is called through podbench: by itself it takes files from its
/// own root, and shows a backtrace of question marks.
pub const DEBUGGERS: [Debugger; 5] = [
    Debugger { name: "gdb", attach: Some("podbench dbg PID"), launch: "podbench dbg --launch" },
    Debugger { name: "lldb", attach: Some("lldb -p PID"), launch: "lldb" },
    Debugger { name: "dlv", attach: Some("dlv attach PID"), launch: "dlv exec" },
    Debugger { name: "rr", attach: None, launch: "rr record" },
    Debugger { name: "strace", attach: Some("strace -p PID"), launch: "strace" },
];

impl Debugger {
    /// The command that takes hold of a running process.
    #[must_use]
    pub fn attach(&self, pid: u32) -> Option<String> {
        self.attach.map(|command| command.replace("PID", &pid.to_string()))
    }

    /// The command that starts a program under it.
    #[must_use]
    pub fn launch(&self, program: &str) -> String {
        format!("{} {program}", self.launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_debugger_is_called_as_its_manual_says() {
        let attach: Vec<_> = DEBUGGERS.iter().filter_map(|d| d.attach(7)).collect();
        assert_eq!(attach, ["podbench dbg 7", "lldb -p 7", "dlv attach 7", "strace -p 7"]);
        let launch: Vec<_> = DEBUGGERS.iter().map(|d| d.launch("./x")).collect();
        assert_eq!(
            launch,
            ["podbench dbg --launch ./x", "lldb ./x", "dlv exec ./x", "rr record ./x", "strace ./x"]
        );
    }
}
