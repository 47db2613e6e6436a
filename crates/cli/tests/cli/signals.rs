//! Signals for commands, sent at moments that are observed and not guessed.

use std::process::{Child, Command};

use querymend_testing::wait_until;

const SIGINT: u32 = 2;
const SIGTERM: u32 = 15;

/// Presses Ctrl-C as soon as the command handles it; before that the system would end it.
pub fn press_ctrl_c(child: &Child) {
    send(child, SIGINT);
}

/// Asks a command to end as soon as it handles that.
pub fn terminate(child: &Child) {
    send(child, SIGTERM);
}

/// Waits until a command has ended and returns its exit code, or nothing if a signal ended it.
pub fn exit_code(child: &mut Child) -> Option<i32> {
    wait_until("the command has ended", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

/// Waits until a command that handles Ctrl-C has computed for a while: its query is under way then, since all else waits for it.
pub fn wait_until_computing(child: &Child) {
    wait_until("Ctrl-C is handled", || has_handler(child.id(), SIGINT));
    let before = cpu_ticks(child.id());
    wait_until("the query is under way", || cpu_ticks(child.id()) >= before + 20);
}

fn send(child: &Child, signal: u32) {
    wait_until("the signal is handled", || has_handler(child.id(), signal));
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[cfg(target_os = "linux")]
fn has_handler(pid: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (caught >> (signal - 1)) & 1 == 1
}

/// Returns the processor time that a process has taken, in hundredths of a second.
#[cfg(target_os = "linux")]
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the name in parentheses, which may hold anything; user and system time are the 14th and the 15th.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Other systems do not tell, so a command gets a second for it.
#[cfg(not(target_os = "linux"))]
fn has_handler(_pid: u32, _signal: u32) -> bool {
    std::thread::sleep(std::time::Duration::from_secs(1));
    true
}

/// Other systems do not tell: the time that has passed stands for it.
#[cfg(not(target_os = "linux"))]
fn cpu_ticks(_pid: u32) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_millis() / 10) as u64
}
