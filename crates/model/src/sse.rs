//! Parser for server-sent events, the streaming format of all three protocols.

/// Incremental parser that returns the data of each complete event.
///
/// Event names, ids and comments are skipped, because the data identifies its type in all supported
/// protocols.
#[derive(Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    started: bool,
}

/// Invalid stream of server-sent events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SseError {
    /// An event exceeds the maximum size.
    TooLarge,
    /// The data is not valid UTF-8.
    InvalidUtf8,
}

impl SseParser {
    /// Feeds more bytes to the parser; `max_event_bytes` limits the size of one event.
    pub(crate) fn feed(&mut self, bytes: &[u8], max_event_bytes: usize) -> Result<Vec<String>, SseError> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > max_event_bytes {
                return Err(SseError::TooLarge);
            }
            if piece.ends_with(b"\n") {
                events.extend(self.end_line()?);
            }
        }
        Ok(events)
    }

    /// Processes a complete line. An empty line ends the event.
    fn end_line(&mut self) -> Result<Option<String>, SseError> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let data = self.data.take();
            return data.map(|data| String::from_utf8(data).map_err(|_| SseError::InvalidUtf8)).transpose();
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        Ok(None)
    }

    /// Returns the last event at the end of the stream, since some servers omit the final empty
    /// line.
    pub(crate) fn finish(mut self) -> Result<Option<String>, SseError> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.line.clear();
        self.end_line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_do_not_depend_on_chunk_boundaries() {
        let text =
            "\u{feff}: hello\r\nevent: one\r\ndata: {\"a\":\r\ndata: \"ü\"}\r\n\r\nid: 7\ndata:two\n\n\n\ndata: [DONE]";
        let expected = ["{\"a\":\n\"ü\"}", "two", "[DONE]"];
        for size in [1, 2, 3, 7, 1000] {
            let mut events = SseParser::default();
            let mut heard = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                heard.extend(events.feed(piece, 1000).unwrap());
            }
            heard.extend(events.finish().unwrap());
            assert_eq!(heard, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn rejects_events_over_the_size_limit() {
        let mut events = SseParser::default();
        assert_eq!(events.feed(&[b'x'; 600], 1000), Ok(vec![]));
        assert_eq!(events.feed(&[b'x'; 600], 1000), Err(SseError::TooLarge));
        let mut events = SseParser::default();
        let lines = "data: 0123456789\n".repeat(100);
        assert_eq!(events.feed(lines.as_bytes(), 1000), Err(SseError::TooLarge));
    }

    #[test]
    fn reports_invalid_utf8() {
        assert_eq!(SseParser::default().feed(b"data: \xff\xfe\n\n", 1000), Err(SseError::InvalidUtf8));
    }
}
