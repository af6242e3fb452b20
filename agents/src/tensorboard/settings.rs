//! Hyper-parameters in an event file: for the HParams page of TensorBoard, and as a table on its page of texts.
//!
//! # Source
//! TensorBoard's `plugins/hparams/plugin_data.proto`, `plugins/hparams/api.proto` and `plugins/text/metadata.py`;
//! TensorFlow's `summary.proto`, `tensor.proto`, `types.proto`; protobuf's `struct.proto`.

use serde_json::Value;

use super::message::Message;

/// `DT_FLOAT` and `DT_STRING` of `types.proto`.
const TYPE_FLOAT: u64 = 1;
const TYPE_STRING: u64 = 7;
/// `DATA_CLASS_TENSOR` of `summary.proto`.
const CLASS_TENSOR: u64 = 2;
/// `STATUS_SUCCESS` of `api.proto`.
const STATUS_SUCCESS: u64 = 1;

/// A value whose meaning is in its metadata.
fn plugin_value(tag: &str, plugin: &str, content: &Message, tensor: &Message) -> Message {
    let data = Message::new().bytes(1, plugin.as_bytes()).message(2, content);
    let metadata = Message::new().message(1, &data).whole(4, CLASS_TENSOR);
    Message::new()
        .bytes(1, tag.as_bytes())
        .message(8, tensor)
        .message(9, &metadata)
}

/// One number of no meaning: the HParams page reads the metadata only.
fn nothing() -> Message {
    Message::new()
        .whole(1, TYPE_FLOAT)
        .message(2, &Message::new())
        .float(5, 0.0)
}

/// The settings of a run: numbers, truths and texts under their keys, anything else as JSON.
pub(super) fn session_start(settings: &[(String, Value)], now_unix_s: f64) -> Message {
    let mut info = Message::new();
    for (key, value) in settings {
        let value = match value {
            Value::Bool(value) => Message::new().whole(4, u64::from(*value)),
            Value::Number(value) => Message::new().double(2, value.as_f64().unwrap_or(f64::NAN)),
            Value::String(value) => Message::new().bytes(3, value.as_bytes()),
            other => Message::new().bytes(3, other.to_string().as_bytes()),
        };
        let entry = Message::new().bytes(1, key.as_bytes()).message(2, &value);
        info = info.message(1, &entry);
    }
    let content = Message::new().message(3, &info.double(5, now_unix_s));
    plugin_value("_hparams_/session_start_info", "hparams", &content, &nothing())
}

/// The run came to its end.
pub(super) fn session_end(now_unix_s: f64) -> Message {
    let info = Message::new().whole(1, STATUS_SUCCESS).double(2, now_unix_s);
    let content = Message::new().message(4, &info);
    plugin_value("_hparams_/session_end_info", "hparams", &content, &nothing())
}

/// The settings as a table in Markdown.
pub(super) fn table(tag: &str, settings: &[(String, Value)]) -> Message {
    let mut text = "| key | value |\n|---|---|\n".to_owned();
    for (key, value) in settings {
        let value = value.to_string().replace('|', "\\|");
        text.push_str(&format!("| {key} | {value} |\n"));
    }
    let tensor = Message::new()
        .whole(1, TYPE_STRING)
        .message(2, &Message::new())
        .bytes(8, text.as_bytes());
    plugin_value(tag, "text", &Message::new(), &tensor)
}
