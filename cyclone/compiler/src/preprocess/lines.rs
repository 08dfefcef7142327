//! A file's text with lines that end in a backslash joined to the next.

/// The text, and where lines were joined.
#[derive(Debug, Default)]
pub struct Joined {
    /// It ends in a newline, and has no carriage returns before newlines.
    pub text: String,
    /// Bytes of the text before which a line ended, in order.
    pub joins: Vec<usize>,
}

impl Joined {
    pub fn of(text: &str) -> Joined {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut joined = Joined { text: String::with_capacity(text.len() + 1), joins: Vec::new() };
        if !text.contains(['\\', '\r']) {
            joined.text.push_str(text);
        } else {
            joined.join(text);
        }
        if !joined.text.ends_with('\n') {
            joined.text.push('\n');
        }
        joined
    }

    fn join(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let Some(content) = line.strip_suffix('\n') else {
                self.text.push_str(line);
                return;
            };
            let content = content.strip_suffix('\r').unwrap_or(content);
            match content.trim_end_matches([' ', '\t', '\u{b}', '\u{c}']).strip_suffix('\\') {
                Some(begin) => {
                    self.text.push_str(begin);
                    self.joins.push(self.text.len());
                }
                None => {
                    self.text.push_str(content);
                    self.text.push('\n');
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Joined;

    #[test]
    fn lines_are_joined_where_a_backslash_ends_them() {
        let joined = Joined::of("a\\\nb\\ \r\nc\r\nd\\n");
        assert_eq!((joined.text.as_str(), &joined.joins[..]), ("abc\nd\\n\n", &[1, 2][..]));
        assert_eq!(Joined::of("").text, "\n");
        assert_eq!(Joined::of("x\\").text, "x\\\n");
    }
}
