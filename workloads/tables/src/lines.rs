//! Text from untrusted sources, line by line: plain or gzipped, bounded, UTF-8.
//!
//! Refused: lines above [`LINE_BYTES_MAX`], more than [`LINES_MAX`] of them, text that is not UTF-8, gzip that ends too
//! early, fails its checksum or unpacks to more than a list of jobs would.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::{Problem, ROWS_MAX};

/// Longest line, bytes.
pub const LINE_BYTES_MAX: usize = 1 << 16;
/// Most lines in a file: the jobs, a header, and room for blank lines.
pub const LINES_MAX: u64 = ROWS_MAX as u64 * 2;

/// Most bytes that gzip may unpack to for each byte of the file, once there are [`UNPACKED_BYTES_MIN`]. *Assumed*: the
/// published lists unpack to 4 to 12 times their size, endless equal rows to 1,000 times.
const UNPACKED_PER_BYTE_MAX: u64 = 100;
/// What may be unpacked from however little, bytes.
const UNPACKED_BYTES_MIN: u64 = 1 << 24;

/// The lines of a file, one at a time.
pub struct Lines {
    reader: Box<dyn BufRead>,
    path: std::path::PathBuf,
    /// Name for messages.
    pub file: String,
    /// Number of the last line read, from 1.
    pub line: u64,
    buffer: Vec<u8>,
    /// Whether bytes that are no UTF-8 are replaced instead of refused.
    is_lossy: bool,
}

/// The bytes of a file, unpacked where it is gzip (recognised by its first two bytes), and no more of them than a packed list of
/// jobs would have; that is a complaint of [`ErrorKind::FileTooLarge`].
///
/// # Errors
/// A file that cannot be opened.
pub fn open_unpacked(path: &Path) -> Result<Box<dyn BufRead>, Problem> {
    let io = |source| Problem::io("read", path, source);
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        return Err(io(std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let is_gzip = reader.fill_buf().map_err(io)?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(1 << 16, Unpacked::new(reader)))
    } else {
        Box::new(reader)
    })
}

impl Lines {
    /// Opens a file; gzip is recognised by its first two bytes.
    pub fn open(path: &Path) -> Result<Lines, Problem> {
        Ok(Lines {
            reader: open_unpacked(path)?,
            path: path.to_path_buf(),
            file: path.display().to_string(),
            line: 0,
            buffer: Vec::new(),
            is_lossy: false,
        })
    }

    /// The lines of a text; `name` is for messages.
    pub fn of_text(name: &str, text: Vec<u8>) -> Lines {
        Lines {
            reader: Box::new(std::io::Cursor::new(text)),
            path: std::path::PathBuf::from(name),
            file: name.to_owned(),
            line: 0,
            buffer: Vec::new(),
            is_lossy: false,
        }
    }

    /// The same lines, with bytes that are no UTF-8 replaced: names of jobs in old encodings spoil no list.
    pub(crate) fn lossy(self) -> Lines {
        Lines {
            is_lossy: true,
            ..self
        }
    }

    /// The next line that is not blank, without its line break; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<&str>, Problem> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let mut bounded = (&mut self.reader).take(LINE_BYTES_MAX as u64 + 1);
            if let Err(source) = bounded.read_until(b'\n', &mut self.buffer) {
                return Err(self.read_error(source));
            }
            if self.buffer.is_empty() {
                return Ok(None);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.error(
                    "-",
                    format!("the line is longer than {LINE_BYTES_MAX} bytes; is this a list of jobs?"),
                ));
            }
            if self.line > LINES_MAX {
                return Err(self.error("-", format!("more than {LINES_MAX} lines; cut the list")));
            }
            if !self.buffer.iter().all(u8::is_ascii_whitespace) {
                break;
            }
        }
        let is_utf_16 = [[0xff, 0xfe], [0xfe, 0xff]]
            .iter()
            .any(|mark| self.buffer.starts_with(mark));
        if self.line == 1 && (is_utf_16 || self.buffer.contains(&0)) {
            return Err(self.error(
                "-",
                "the text is not UTF-8 but UTF-16, or no text; save the file as UTF-8 text".into(),
            ));
        }
        if self.is_lossy && std::str::from_utf8(&self.buffer).is_err() {
            self.buffer = String::from_utf8_lossy(&self.buffer).into_owned().into_bytes();
        }
        if let Err(error) = std::str::from_utf8(&self.buffer) {
            let text = format!(
                "byte {} of the line is not UTF-8; save the file as UTF-8 text",
                error.valid_up_to() + 1
            );
            return Err(self.error("-", text));
        }
        let text = std::str::from_utf8(&self.buffer).unwrap_or_default();
        let text = if self.line == 1 {
            text.trim_start_matches('\u{feff}')
        } else {
            text
        };
        Ok(Some(text.trim_end_matches(['\n', '\r'])))
    }

    fn read_error(&self, source: std::io::Error) -> Problem {
        match source.kind() {
            ErrorKind::UnexpectedEof => {
                self.error("-", "the gzip stream ends too early; fetch the file again".into())
            }
            ErrorKind::FileTooLarge => self.error("-", source.to_string()),
            ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                let text = format!("the gzip stream is damaged ({source}); fetch the file again");
                self.error("-", text)
            }
            _ => Problem::io("read", &self.path, source),
        }
    }

    /// A complaint about the present line.
    pub fn error(&self, column: &str, message: String) -> Problem {
        Problem::at(&self.file, self.line, column, message)
    }
}

/// A file of which is counted how much was taken.
struct Counted<R> {
    file: R,
    num_bytes: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num = self.file.read(into)?;
        self.num_bytes += num as u64;
        Ok(num)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, num: usize) {
        self.num_bytes += num as u64;
        self.file.consume(num);
    }
}

/// Gzip that is refused as soon as it unpacks to more than any list of jobs.
struct Unpacked<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    num_bytes: u64,
}

impl<R: BufRead> Unpacked<R> {
    fn new(file: R) -> Unpacked<R> {
        let counted = Counted { file, num_bytes: 0 };
        Unpacked {
            decoder: MultiGzDecoder::new(counted),
            num_bytes: 0,
        }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num = self.decoder.read(into)?;
        self.num_bytes += num as u64;
        let packed = self.decoder.get_ref().num_bytes;
        if self.num_bytes > UNPACKED_BYTES_MIN && self.num_bytes / UNPACKED_PER_BYTE_MAX > packed {
            let text = format!(
                "the gzip stream unpacks to more than {UNPACKED_PER_BYTE_MAX} times its size, {} bytes from the first \
                 {packed}; allowed is {UNPACKED_BYTES_MIN} bytes or {UNPACKED_PER_BYTE_MAX} times the size; cut the list, \
                 or unpack it with gunzip and give the plain file",
                self.num_bytes
            );
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, text));
        }
        Ok(num)
    }
}
