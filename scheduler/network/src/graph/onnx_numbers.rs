//! Numbers of ONNX's constants, whichever way a file writes them.

use super::onnx_messages::{DataType, TensorProto};

/// What numbers of a kind are called.
pub(super) fn kind_name(kind: i32) -> String {
    let name = match kind {
        2 | 3 => "8-bit integers",
        4 | 5 => "16-bit integers",
        8 => "texts",
        10 => "16-bit floats",
        11 => "64-bit floats",
        12 | 13 => "integers without a sign",
        16 => "bfloat16",
        other => return format!("kind {other}"),
    };
    name.to_owned()
}

/// The floats of a constant, whichever way they are written.
pub(super) fn floats_of(tensor: &TensorProto) -> Vec<f32> {
    match &tensor.raw_data {
        Some(raw) => raw
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect(),
        None => tensor.float_data.clone(),
    }
}

/// The integers of a constant, whichever way they are written; none of other kinds.
pub(super) fn integers_of(tensor: &TensorProto) -> Option<Vec<i64>> {
    let raw = tensor.raw_data.as_deref();
    let small = || tensor.int32_data.iter().map(|value| i64::from(*value)).collect();
    match tensor.data_type {
        Some(kind) if kind == DataType::Int64 as i32 => Some(match raw {
            Some(raw) => raw
                .as_chunks::<8>()
                .0
                .iter()
                .map(|bytes| i64::from_le_bytes(*bytes))
                .collect(),
            None => tensor.int64_data.clone(),
        }),
        Some(kind) if kind == DataType::Int32 as i32 => Some(match raw {
            Some(raw) => raw
                .as_chunks::<4>()
                .0
                .iter()
                .map(|bytes| i32::from_le_bytes(*bytes).into())
                .collect(),
            None => small(),
        }),
        Some(kind) if kind == DataType::Bool as i32 => Some(match raw {
            Some(raw) => raw.iter().map(|byte| i64::from(*byte != 0)).collect(),
            None => small(),
        }),
        _ => None,
    }
}
