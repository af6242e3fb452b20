//! The few pieces of protobuf's wire format that event files need.
//!
//! # Source
//! Protocol Buffers, "Encoding": a key is `field << 3 | wire type`; type 0 is a variable-length integer, 1 eight bytes, 2 a
//! length and so many bytes, 5 four bytes, all little-endian.

/// A message under construction. Fields are written in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A message without fields.
    pub fn new() -> Message {
        Message::default()
    }

    /// The encoded message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// `int32`, `int64`, `bool` or an enum; not for negative numbers.
    pub fn whole(mut self, field: u8, value: u64) -> Message {
        self.0.push(field << 3);
        self.varint(value);
        self
    }

    /// `double`
    pub fn double(mut self, field: u8, value: f64) -> Message {
        self.0.push(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// `float`
    pub fn float(mut self, field: u8, value: f32) -> Message {
        self.0.push(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// `bytes` or `string`
    pub fn bytes(mut self, field: u8, value: &[u8]) -> Message {
        self.0.push(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A message within this one, or one entry of a list of messages.
    pub fn message(self, field: u8, value: &Message) -> Message {
        self.bytes(field, &value.0)
    }

    /// `repeated double`, packed.
    pub fn doubles(self, field: u8, values: impl Iterator<Item = f64>) -> Message {
        let packed: Vec<u8> = values.flat_map(f64::to_le_bytes).collect();
        self.bytes(field, &packed)
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_in_the_examples_of_the_format() {
        // "Encoding", the first two examples: field 1 = 150, and field 2 = "testing".
        assert_eq!(Message::new().whole(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::new().bytes(2, b"testing");
        assert_eq!(text.as_bytes(), b"\x12\x07testing");
        // A message in field 3 that holds the first one.
        let outer = Message::new().message(3, &Message::new().whole(1, 150));
        assert_eq!(outer.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let packed = Message::new().doubles(6, [1.0, 2.0].into_iter());
        assert_eq!(packed.as_bytes()[..2], [0x32, 16]);
        assert_eq!(packed.as_bytes()[2..10], 1.0_f64.to_le_bytes());
    }
}
