//! What clients ask and what the server answers: one message each, of a tag and words.

use ipc::{Message, Tag};

const PUT: Tag = Tag::new(1);
const GET: Tag = Tag::new(2);
const WATCH: Tag = Tag::new(3);

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Stores a value of so many bytes, which lives as long as the client does.
    Put {
        /// Under this key.
        key: u64,
        /// Its size.
        size: u64,
    },
    /// Asks for a value's size.
    Get {
        /// Of this key.
        key: u64,
    },
    /// Is answered when the value is changed or has gone.
    Watch {
        /// Of this key.
        key: u64,
    },
}

impl Request {
    /// As it is sent.
    pub fn to_message(self) -> Message {
        match self {
            Request::Put { key, size } => Message::new(PUT, &[key, size]),
            Request::Get { key } => Message::new(GET, &[key]),
            Request::Watch { key } => Message::new(WATCH, &[key]),
        }
    }

    /// What a message asks; `None` if that is nothing known.
    pub fn of_message(message: &Message) -> Option<Request> {
        let [key, size, ..] = message.words;
        match message.tag {
            PUT => Some(Request::Put { key, size }),
            GET => Some(Request::Get { key }),
            WATCH => Some(Request::Watch { key }),
            _ => None,
        }
    }
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done, or: the value has so many bytes.
    Done(u64),
    /// The value was changed.
    Changed,
    /// There is no such value, or not any more.
    Gone,
    /// That is no request, or asks for too much.
    Refused,
}

impl Answer {
    /// As it is sent.
    pub fn to_message(self) -> Message {
        let (tag, size) = match self {
            Answer::Done(size) => (0, size),
            Answer::Changed => (1, 0),
            Answer::Gone => (2, 0),
            Answer::Refused => (3, 0),
        };
        Message::new(Tag::new(tag), &[size])
    }

    /// What a message answers.
    pub fn of_message(message: &Message) -> Answer {
        match message.tag.number() {
            0 => Answer::Done(message.words[0]),
            1 => Answer::Changed,
            2 => Answer::Gone,
            _ => Answer::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_understood() {
        for request in [Request::Put { key: 7, size: 9 }, Request::Get { key: 1 }, Request::Watch { key: u64::MAX }] {
            assert_eq!(Request::of_message(&request.to_message()), Some(request));
        }
        for answer in [Answer::Done(5), Answer::Changed, Answer::Gone, Answer::Refused] {
            assert_eq!(Answer::of_message(&answer.to_message()), answer);
        }
        assert_eq!(Request::of_message(&Message::new(Tag::MAX, &[])), None);
    }
}
