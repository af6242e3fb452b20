//! Weights of an ONNX model that lie in a file beside it, as exporters of PyTorch write them since 2.9.
//!
//! # What it refuses
//! Places outside the model's folder, links, devices, more bytes than a model may have, and files that end too early; each with the
//! name of the file.
//!
//! # Source
//! *External Data* of ONNX's IR specification: the keys `location`, `offset`, `length` of a tensor.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path};

use super::onnx_messages::{GraphProto, TensorProto};
use super::tensor::refuse;
use crate::Error;
use crate::error::graph;

/// `data_location` of a tensor whose numbers are in another file.
const EXTERNAL: i32 = 1;
/// What else to do.
const ONE_FILE: &str = "or write one file: torch.onnx.export(..., external_data=False)";

/// Fetches what the constants of a graph have in files of `folder`, at most `bytes_max` in all; none: there is no folder.
pub(super) fn fetch(graph: &mut GraphProto, folder: Option<&Path>, mut bytes_max: u64) -> Result<(), Error> {
    let of_nodes = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    let of_nodes = of_nodes.filter_map(|attribute| attribute.t.as_mut());
    let mut files = HashMap::new();
    for tensor in graph.initializer.iter_mut().chain(of_nodes) {
        if tensor.data_location != Some(EXTERNAL) && tensor.external_data.is_empty() {
            continue;
        }
        let bytes = bytes_of(tensor, folder, &mut files, bytes_max)?;
        bytes_max -= bytes.len() as u64;
        tensor.raw_data = Some(bytes);
        tensor.external_data.clear();
        tensor.data_location = None;
    }
    Ok(())
}

fn bytes_of(
    tensor: &TensorProto,
    folder: Option<&Path>,
    files: &mut HashMap<String, File>,
    bytes_max: u64,
) -> Result<Vec<u8>, Error> {
    let name = tensor.name.as_deref().unwrap_or_default();
    let find = |key: &str| {
        let mut own = tensor.external_data.iter();
        let found = own.find(|own| own.key.as_deref() == Some(key));
        found.and_then(|own| own.value.as_deref())
    };
    let place = find("location").unwrap_or_default();
    let mut parts = Path::new(place).components();
    let is_beside = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let (Some(folder), true) = (folder, is_beside) else {
        return refuse(format!(
            "the weights of {name} are in {place:?}: allowed is a file in the model's own folder; {ONE_FILE}"
        ));
    };
    let whole = |key: &str| match find(key) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => refuse(format!(
                "constant {name}: {key} = {text:?}; a number of bytes is allowed"
            )),
        },
    };
    let (offset, length) = (whole("offset")?.unwrap_or(0), whole("length")?);
    if length.is_some_and(|length| length > bytes_max) {
        return refuse(format!("more than {bytes_max} bytes of weights in {place}"));
    }
    let failed = |error: std::io::Error| {
        graph(format!(
            "the weights of {name} are in {place} beside the model, which cannot be read ({error}): put it there, {ONE_FILE}"
        ))
    };
    let file = match files.entry(place.to_owned()) {
        std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
        std::collections::hash_map::Entry::Vacant(free) => {
            let path = folder.join(place);
            if !path.symlink_metadata().map_err(failed)?.is_file() {
                return refuse(format!("{place} beside the model is no plain file; {ONE_FILE}"));
            }
            free.insert(File::open(path).map_err(failed)?)
        }
    };
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    let most = length.unwrap_or(bytes_max + 1);
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    if length.is_none() && bytes.len() as u64 > bytes_max {
        return refuse(format!("more than {bytes_max} bytes of weights in {place}"));
    }
    if let Some(length) = length.filter(|length| *length != bytes.len() as u64) {
        return refuse(format!(
            "{place} ends before the {length} bytes of {name} from {offset} on; copy it again, {ONE_FILE}"
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::onnx_messages::{DataType, ModelProto, StringStringEntryProto};
    use super::super::onnx_read::{from_onnx, from_onnx_in};
    use super::super::{set_operators, to_onnx};
    use super::*;
    use crate::parameters::NetworkConfig;

    /// A model whose first weights lie in `place`, and those bytes.
    fn split(place: &str, more: &[(&str, &str)]) -> (ModelProto, Vec<u8>, Vec<f32>) {
        let operators = set_operators(NetworkConfig::default(), 3, 5);
        let num: usize = operators
            .parameters
            .iter()
            .map(|own| own.shape.iter().product::<usize>())
            .sum();
        let parameters: Vec<f32> = (0..num).map(|at| at as f32 / 8.0).collect();
        let bytes = to_onnx(&operators, &parameters, &[]).unwrap();
        let mut model = ModelProto::decode(bytes.as_slice()).unwrap();
        let tensors = &mut model.graph.as_mut().unwrap().initializer;
        let tensor = tensors
            .iter_mut()
            .find(|own| own.data_type == Some(DataType::Float as i32))
            .unwrap();
        let weights = tensor.raw_data.take().unwrap();
        let length = weights.len().to_string();
        let keys = [("location", place), ("offset", "3"), ("length", length.as_str())];
        let entry = |(key, value): (&str, &str)| StringStringEntryProto {
            key: Some(key.into()),
            value: Some(value.into()),
        };
        tensor.external_data = keys
            .into_iter()
            .filter(|(key, _)| more.iter().all(|(own, _)| own != key))
            .map(entry)
            .collect();
        tensor.external_data.extend(more.iter().map(|pair| entry(*pair)));
        tensor.data_location = Some(EXTERNAL);
        (model, [b"abc".as_slice(), &weights].concat(), parameters)
    }

    #[test]
    fn weights_in_a_file_beside_are_read_and_places_elsewhere_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (model, weights, parameters) = split("w.bin", &[]);
        let said = |model: &ModelProto| {
            let read = from_onnx_in(&model.encode_to_vec(), Some(folder.path()));
            read.unwrap_err().to_string()
        };
        assert!(
            said(&model).contains("in w.bin beside the model"),
            "{}",
            said(&model)
        );
        write("w.bin", &weights);
        let (_, read, _) = from_onnx_in(&model.encode_to_vec(), Some(folder.path())).unwrap();
        assert_eq!(read, parameters);
        let alone = from_onnx(&model.encode_to_vec()).unwrap_err().to_string();
        assert!(alone.contains("external_data=False"), "{alone}");
        write("w.bin", &weights[..weights.len() - 1]);
        assert!(said(&model).contains("w.bin ends before"), "{}", said(&model));
        for place in ["../w.bin", "/etc/passwd", "inner/w.bin", "", "..", "."] {
            let (model, ..) = split(place, &[]);
            let words = said(&model);
            assert!(words.contains("the model's own folder"), "{place}: {words}");
        }
        for (more, words) in [
            (("offset", "x"), "a number of bytes"),
            (("offset", "99999999"), "ends before"),
            (("length", "99999999999"), "more than"),
            (("location", "inner"), "no plain file"),
        ] {
            let (model, ..) = split("w.bin", &[more]);
            assert!(said(&model).contains(words), "{more:?}: {}", said(&model));
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.bin")).unwrap();
            let (model, ..) = split("link.bin", &[]);
            assert!(said(&model).contains("no plain file"), "{}", said(&model));
        }
    }
}
