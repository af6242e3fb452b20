//! A network in a file: in one of our own formats, or ONNX. Its first byte says which.

use std::path::Path;

use crate::Error;
use crate::onnx_file;
use crate::policy_file::TrainedNetwork;

/// What a file begins with; none where it is empty.
fn first_byte(path: &Path) -> Result<Option<u8>, Error> {
    let mut byte = [0];
    let file = std::fs::File::open(path).map_err(Error::unread(path))?;
    match std::io::Read::read(&mut &file, &mut byte) {
        Ok(1) => Ok(Some(byte[0])),
        Ok(_) => Ok(None),
        Err(source) => Err(Error::io("read", path, source)),
    }
}

impl TrainedNetwork {
    /// Reads a network policy file, the network part of a training checkpoint, or an ONNX model.
    ///
    /// # Errors
    /// An [`Error`] where it cannot be read; An [`Error`] where it is cut short, altered, of another version or does not
    /// fit itself.
    pub fn load(path: &Path) -> Result<TrainedNetwork, Error> {
        match first_byte(path)? {
            Some(onnx_file::FIRST_BYTE) => onnx_file::load(path),
            _ => TrainedNetwork::load_own(path),
        }
    }
}
