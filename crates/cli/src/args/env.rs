//! Environment variables that replace options.

/// Returns the value of an environment variable, or `None` if it is unset or blank.
pub fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
