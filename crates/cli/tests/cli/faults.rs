//! What happens to the real command when its disk is full or cannot be written, when the clock jumps, when it is killed, and when
//! it is told to end.

#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod disk;
mod kills;
mod term;
