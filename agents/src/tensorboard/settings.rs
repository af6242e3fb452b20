//! Hyper-parameters in an event file: for the HParams page of TensorBoard, and as a table on its page of texts.
//!
//! # Source
//! TensorBoard's `plugins/hparams/plugin_data.proto`, `plugins/hparams/api.proto` and `plugins/text/metadata.py`;
//! TensorFlow's `summary.proto`.

use protobuf::{Message, ProtobufResult, well_known_types};
use serde_json::Value;
use tensorboard_proto::api::Status;
use tensorboard_proto::plugin_hparams::{HParamsPluginData, SessionEndInfo, SessionStartInfo};
use tensorboard_proto::summary::{Summary_Value, SummaryMetadata, SummaryMetadata_PluginData};
use tensorboard_proto::tensor::TensorProto;
use tensorboard_proto::tensor_shape::TensorShapeProto;
use tensorboard_proto::types::DataType;

/// `SummaryMetadata.data_class` and its value `DATA_CLASS_TENSOR`, which came to `summary.proto` after the messages used here.
const DATA_CLASS: u32 = 4;
const CLASS_TENSOR: u64 = 2;
/// `HParamsPluginData.session_start_info`.
const SESSION_START_INFO: u32 = 3;

/// A value whose meaning is in its metadata.
fn plugin_value(tag: &str, plugin: &str, content: Vec<u8>, tensor: TensorProto) -> Summary_Value {
    let mut data = SummaryMetadata_PluginData::new();
    data.plugin_name = plugin.to_owned();
    data.content = content;
    let mut metadata = SummaryMetadata::new();
    metadata.set_plugin_data(data);
    metadata.mut_unknown_fields().add_varint(DATA_CLASS, CLASS_TENSOR);
    let mut value = Summary_Value::new();
    value.tag = tag.to_owned();
    value.set_tensor(tensor);
    value.set_metadata(metadata);
    value
}

fn scalar(dtype: DataType) -> TensorProto {
    let mut tensor = TensorProto::new();
    tensor.dtype = dtype;
    tensor.set_tensor_shape(TensorShapeProto::new());
    tensor
}

/// One number of no meaning: the HParams page reads the metadata only.
fn nothing() -> TensorProto {
    let mut tensor = scalar(DataType::DT_FLOAT);
    tensor.float_val = vec![0.0];
    tensor
}

fn hparams(tag: &str, content: Vec<u8>) -> Summary_Value {
    plugin_value(tag, "hparams", content, nothing())
}

/// The settings of a run: numbers, truths and texts under their keys, anything else as JSON.
///
/// # Errors
/// A message that cannot be encoded, in practice none.
pub(super) fn session_start(settings: &[(String, Value)], now_unix_s: f64) -> ProtobufResult<Summary_Value> {
    // Key by key, because the map of the message has no order of its own: what is put together is one message all the same.
    let mut content = Vec::new();
    for (key, value) in settings {
        let mut own = well_known_types::Value::new();
        match value {
            Value::Bool(value) => own.set_bool_value(*value),
            Value::Number(value) => own.set_number_value(value.as_f64().unwrap_or(f64::NAN)),
            Value::String(value) => own.set_string_value(value.clone()),
            other => own.set_string_value(other.to_string()),
        }
        let mut info = SessionStartInfo::new();
        info.hparams.insert(key.clone(), own);
        content.extend(info.write_to_bytes()?);
    }
    let mut info = SessionStartInfo::new();
    info.start_time_secs = now_unix_s;
    content.extend(info.write_to_bytes()?);
    let mut data = HParamsPluginData::new();
    data.mut_unknown_fields()
        .add_length_delimited(SESSION_START_INFO, content);
    Ok(hparams("_hparams_/session_start_info", data.write_to_bytes()?))
}

/// The run came to its end.
///
/// # Errors
/// As [`session_start`].
pub(super) fn session_end(now_unix_s: f64) -> ProtobufResult<Summary_Value> {
    let mut info = SessionEndInfo::new();
    info.status = Status::STATUS_SUCCESS;
    info.end_time_secs = now_unix_s;
    let mut data = HParamsPluginData::new();
    data.set_session_end_info(info);
    Ok(hparams("_hparams_/session_end_info", data.write_to_bytes()?))
}

/// The settings as a table in Markdown.
pub(super) fn table(tag: &str, settings: &[(String, Value)]) -> Summary_Value {
    let mut text = "| key | value |\n|---|---|\n".to_owned();
    for (key, value) in settings {
        let value = value.to_string().replace('|', "\\|");
        text.push_str(&format!("| {key} | {value} |\n"));
    }
    let mut tensor = scalar(DataType::DT_STRING);
    tensor.string_val = vec![text.into_bytes()].into();
    plugin_value(tag, "text", Vec::new(), tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_one_message_and_written_in_their_order() {
        let settings = [
            ("b".to_owned(), Value::from(0.5)),
            ("a".to_owned(), Value::from("x")),
            ("c".to_owned(), Value::from(vec![1, 2])),
        ];
        let write = || session_start(&settings, 7.0).unwrap().write_to_bytes().unwrap();
        assert_eq!(write(), write());
        let value = session_start(&settings, 7.0).unwrap();
        let content = &value.get_metadata().get_plugin_data().content;
        let data: HParamsPluginData = protobuf::Message::parse_from_bytes(content).unwrap();
        let info = data.get_session_start_info();
        assert_eq!(info.start_time_secs, 7.0);
        assert_eq!(info.hparams["b"].get_number_value(), 0.5);
        assert_eq!(info.hparams["a"].get_string_value(), "x");
        assert_eq!(info.hparams["c"].get_string_value(), "[1,2]");
        assert_eq!(info.hparams.len(), 3);
    }
}
