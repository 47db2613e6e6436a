//! Server-sent events: how all three kinds of server stream their text.

/// Takes bytes as they come and gives back the data of each whole event. Names, ids and comments are skipped: every
/// server that is spoken to here says in the data what it is.
#[derive(Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    started: bool,
}

/// What makes bytes something other than a stream of events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// One event is larger than is allowed.
    TooLarge,
    /// The data is not text.
    NotText,
}

impl Events {
    /// Reads more bytes. `largest` is how many bytes one event may have.
    pub(crate) fn feed(&mut self, bytes: &[u8], largest: usize) -> Result<Vec<String>, Malformed> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > largest {
                return Err(Malformed::TooLarge);
            }
            if piece.ends_with(b"\n") {
                events.extend(self.end_line()?);
            }
        }
        Ok(events)
    }

    /// Reads the line that has just ended. An empty line ends the event.
    fn end_line(&mut self) -> Result<Option<String>, Malformed> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let data = self.data.take();
            return data.map(|data| String::from_utf8(data).map_err(|_| Malformed::NotText)).transpose();
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

    /// What is left when the stream has ended: some servers leave out the last empty line.
    pub(crate) fn rest(mut self) -> Result<Option<String>, Malformed> {
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
    fn events_are_the_same_however_the_bytes_are_cut() {
        let text =
            "\u{feff}: hello\r\nevent: one\r\ndata: {\"a\":\r\ndata: \"ü\"}\r\n\r\nid: 7\ndata:two\n\n\n\ndata: [DONE]";
        let expected = ["{\"a\":\n\"ü\"}", "two", "[DONE]"];
        for size in [1, 2, 3, 7, 1000] {
            let mut events = Events::default();
            let mut heard = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                heard.extend(events.feed(piece, 1000).unwrap());
            }
            heard.extend(events.rest().unwrap());
            assert_eq!(heard, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_may_not_grow_without_end() {
        let mut events = Events::default();
        assert_eq!(events.feed(&[b'x'; 600], 1000), Ok(vec![]));
        assert_eq!(events.feed(&[b'x'; 600], 1000), Err(Malformed::TooLarge));
        let mut events = Events::default();
        let lines = "data: 0123456789\n".repeat(100);
        assert_eq!(events.feed(lines.as_bytes(), 1000), Err(Malformed::TooLarge));
    }

    #[test]
    fn bytes_that_are_no_text_are_said_to_be() {
        assert_eq!(Events::default().feed(b"data: \xff\xfe\n\n", 1000), Err(Malformed::NotText));
    }
}
