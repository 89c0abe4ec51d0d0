//! A load generator that costs little beside what it measures: prewritten requests over kept connections, one thread.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::measure::{Result, seconds};

/// After this time an answer is given up.
const PATIENCE: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 * 1024;

/// A request as it goes over the wire.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The same as the holder of a key sends it.
pub(crate) fn request_with_key(method: &str, path: &str, body: &str, key: &str) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// A connection with the requests that it sends in turn.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// What was read; the answer's bytes stand in front.
    buffer: Vec<u8>,
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: vec![0; READ_BYTES], requests, next: 0 })
    }

    /// Sends the next of its requests.
    fn send(&mut self) -> Result<()> {
        let request = self.requests.get(self.next).ok_or("a client without requests")?;
        self.stream.write_all(request)?;
        self.next = (self.next + 1) % self.requests.len();
        Ok(())
    }

    /// Sends one request that is not among its own, and gives the body of the answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.write(request)?;
        self.receive()
    }

    /// Sends one request that is not among its own.
    pub(crate) fn write(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request)?)
    }

    /// The body of the next answer; another status than 200 is an error.
    pub(crate) fn receive(&mut self) -> Result<&[u8]> {
        match self.receive_any()? {
            (true, body) => Ok(body),
            (false, body) => {
                let shown = &body[..body.len().min(1_000)];
                Err(format!("an unexpected answer: {}", String::from_utf8_lossy(shown)).into())
            }
        }
    }

    /// The body of the next answer, and whether its status is 200.
    pub(crate) fn receive_any(&mut self) -> Result<(bool, &[u8])> {
        let mut filled = 0;
        let head = loop {
            filled += self.read(filled)?;
            if let Some(end) = find(&self.buffer[..filled], b"\r\n\r\n") {
                break end + 4;
            }
        };
        let length = content_length(&self.buffer[..head]).ok_or("an answer without a length")?;
        let end = head + length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while filled < end {
            filled += self.read(filled)?;
        }
        if filled > end {
            return Err("more than one answer came".into());
        }
        Ok((self.buffer.starts_with(b"HTTP/1.1 200"), &self.buffer[head..end]))
    }

    fn read(&mut self, filled: usize) -> Result<usize> {
        if filled == self.buffer.len() {
            self.buffer.resize(2 * filled, 0);
        }
        match self.stream.read(&mut self.buffer[filled..])? {
            0 => Err("the server closed the connection".into()),
            read => Ok(read),
        }
    }
}

/// Where these bytes are.
pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    length.trim().parse().ok()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    /// Share of the answers that hold the bytes that were looked for.
    pub(crate) holding: f64,
}

/// Keeps one request under way on every connection for some time. Counts the answers that hold `wanted`, if anything is.
pub(crate) fn drive(clients: &mut [Client], time: Duration, wanted: Option<&[u8]>) -> Result<Load> {
    let started = Instant::now();
    let (mut answers, mut holding, mut waiting) = (0_u64, 0_u64, clients.len());
    for client in clients.iter_mut() {
        client.send()?;
    }
    while waiting > 0 {
        // Whether a new request follows is decided for a whole turn, so that all connections end in the same one.
        let last = started.elapsed() >= time;
        for client in clients.iter_mut() {
            let body = client.receive()?;
            answers += 1;
            holding += u64::from(wanted.is_some_and(|wanted| find(body, wanted).is_some()));
            if last {
                waiting -= 1;
            } else {
                client.send()?;
            }
        }
    }
    let per_second = answers as f64 / seconds(started.elapsed());
    Ok(Load { per_second, holding: holding as f64 / answers as f64 })
}
