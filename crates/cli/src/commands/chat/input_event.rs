//! Result of reading a line of a conversation.

/// Result of reading the next line.
pub enum InputEvent {
    /// Line of input, or several joined by continuations.
    Line(String),
    /// The user discarded the current line.
    Discarded,
    /// End of the input.
    EndOfInput,
    /// Ctrl-C while reading from a pipe, with no user to ask whether to continue.
    Interrupted,
}
