//! Fault-injecting TCP proxy between a program and a server.
//!
//! Tests of several crates include this file by its path. An armed fault occurs on every connection
//! that reaches its position, until the proxy is healed.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use querymend_testing::hang_timeout;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Fault of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The proxy stops listening, and existing connections are closed.
    Refuse,
    /// The connection is reset.
    Drop,
    /// Both directions are shut down gracefully.
    Truncate,
    /// One direction is shut down gracefully; the other continues.
    HalfClose,
    /// Data silently stops in both directions.
    Stall,
    /// Data in this direction is delayed, and then sent completely.
    Delay,
    /// Bytes that neither side sent are inserted.
    Garbage,
    /// Each byte is sent separately from then on.
    OneByte,
}

/// Direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    ToServer,
    ToClient,
}

/// Fault and its position in the data.
///
/// The position is a number of bytes in this direction, counted per connection since the fault was
/// armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub fault: Fault,
    pub way: Way,
    pub at: usize,
}

/// All faults, and whether they have a position.
const FAULTS: [(Fault, bool); 8] = [
    (Fault::Refuse, false),
    (Fault::Drop, true),
    (Fault::Truncate, true),
    (Fault::HalfClose, true),
    (Fault::Stall, true),
    (Fault::Delay, true),
    (Fault::Garbage, true),
    (Fault::OneByte, false),
];

impl Fault {
    /// Returns whether all bytes still arrive, so that the result must be correct.
    pub fn is_harmless(self) -> bool {
        matches!(self, Fault::Delay | Fault::OneByte)
    }
}

/// Bytes that are neither valid UTF-8 nor a plausible length, of a size that no protocol uses.
const GARBAGE: [u8; 13] = [0xff, 0xfe, 0xfd, 0xff, 0xc0, 0x80, 0xff, 0xf5, 0xff, 0x01, 0xff, 0xed, 0xff];
const DELAY: Duration = Duration::from_millis(150);

/// Returns faults at several positions of a call.
///
/// `sent` and `received` are its bytes on one connection. The positions are during the handshake,
/// in the middle, and before the last byte. `QUERYMEND_FAULTS=all` adds the start and positions in
/// between.
pub fn plans(sent: usize, received: usize) -> Vec<Plan> {
    let all = std::env::var("QUERYMEND_FAULTS").is_ok_and(|which| which == "all");
    let mut plans = Vec::new();
    for (fault, has_places) in FAULTS {
        for (way, bytes) in [(Way::ToServer, sent), (Way::ToClient, received)] {
            let last = bytes.max(1) - 1;
            let mut places = match (has_places, all) {
                (false, _) => vec![0],
                (true, false) => vec![bytes / 8, bytes / 2, last],
                (true, true) => vec![0, 1, bytes / 16, bytes / 8, bytes / 4, bytes / 2, bytes * 7 / 8, last],
            };
            places.dedup();
            plans.extend(places.into_iter().map(|at| Plan { fault, way, at }));
        }
    }
    plans
}

/// Returns the socket address of a server, and a function that replaces the port in its address.
pub fn place(address: &str) -> (SocketAddr, impl Fn(u16) -> String) {
    let (before, rest) = address.split_once("127.0.0.1:").unwrap();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (port, after) = rest.split_at(digits);
    let (before, after) = (before.to_owned(), after.to_owned());
    let server = ([127, 0, 0, 1], port.parse().unwrap()).into();
    (server, move |port| format!("{before}127.0.0.1:{port}{after}"))
}

/// Outcomes of the injected faults.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub tried: usize,
    /// Number of calls that reached the position of the fault.
    pub struck: usize,
    pub right: usize,
    pub errors: usize,
    pub hangs: usize,
    pub wrong: usize,
    pub recovered: usize,
}

/// Runs all cases with limited concurrency; returns the outcomes and the failures.
pub async fn all<F>(cases: impl Iterator<Item = (String, F)>, at_once: usize) -> (Counts, Vec<String>)
where
    F: Future<Output = (Counts, Vec<String>)> + Send + 'static,
{
    let turns = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for (name, case) in cases {
        let turns = Arc::clone(&turns);
        running.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            (name, case.await)
        });
    }
    let (mut sum, mut complaints) = (Counts::default(), Vec::new());
    while let Some(done) = running.join_next().await {
        let (name, (counts, why)) = done.unwrap();
        sum.tried += counts.tried;
        sum.struck += counts.struck;
        sum.right += counts.right;
        sum.errors += counts.errors;
        sum.hangs += counts.hangs;
        sum.wrong += counts.wrong;
        sum.recovered += counts.recovered;
        complaints.extend(why.into_iter().map(|why| format!("{name}: {why}")));
    }
    // A fault that no call reaches proves nothing.
    if sum.struck * 2 < sum.tried {
        complaints.push(format!("only {} of {} faults were come upon", sum.struck, sum.tried));
    }
    (sum, complaints)
}

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    listens: watch::Sender<bool>,
}

struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    /// Incremented when a fault is armed or healed.
    round: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    /// Bytes since the round began, for each connection that the client has not closed.
    open: HashMap<u64, [usize; 2]>,
    /// Maximum number of bytes on one connection since then, including closed ones.
    most: [usize; 2],
    /// `true` if the fault has occurred.
    struck: bool,
    next: u64,
}

impl Proxy {
    /// Starts a proxy in front of a server.
    pub async fn start(server: SocketAddr) -> Self {
        let (round, _) = watch::channel(0);
        let shared = Arc::new(Shared { server, state: Mutex::default(), round });
        let reserved = bound(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = reserved.local_addr().unwrap();
        let listener = listen(address);
        let (listens, listening) = watch::channel(true);
        tokio::spawn(accept(listener, reserved, Arc::clone(&shared), listening));
        Self { address, shared, listens }
    }

    /// Arms a fault and resets the byte counts.
    pub async fn arm(&self, plan: Plan) {
        self.begin(Some(plan));
        if plan.fault == Fault::Refuse {
            self.listens.send(false).unwrap();
            self.until_listening(false).await;
        }
    }

    /// Disarms the fault and resets the byte counts.
    pub async fn heal(&self) {
        self.begin(None);
        if !self.listens.send_replace(true) {
            self.until_listening(true).await;
        }
    }

    /// Waits until the accepting task has started or stopped listening.
    async fn until_listening(&self, listens: bool) {
        let begun = Instant::now();
        while TcpStream::connect(self.address).await.is_ok() != listens {
            assert!(begun.elapsed() < hang_timeout(), "{} should listen: {listens}", self.address);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn begin(&self, plan: Option<Plan>) {
        {
            let mut state = self.shared.state();
            let refuses = plan.is_some_and(|plan| plan.fault == Fault::Refuse);
            (state.plan, state.most, state.struck) = (plan, [0; 2], refuses);
            state.open.values_mut().for_each(|counts| *counts = [0; 2]);
        }
        self.shared.round.send_modify(|round| *round += 1);
    }

    /// Returns the maximum number of bytes of one connection in this round, to the server and back.
    pub fn most(&self) -> (usize, usize) {
        let [sent, received] = self.shared.state().most;
        (sent, received)
    }

    /// Returns whether the fault has occurred.
    pub fn has_struck(&self) -> bool {
        self.shared.state().struck
    }

    /// Returns a description of connections that clients left open, if there are any.
    pub async fn is_left(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let open = self.shared.state().open.len();
            if open == 0 {
                return None;
            }
            if begun.elapsed() > hang_timeout() {
                return Some(format!("{open} connections are left open"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// Binds a port without listening on it, so that connections to it are refused.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> TcpListener {
    bound(address).unwrap().listen(1024).unwrap()
}

/// Accepts connections while `listening` is true.
///
/// `reserved` keeps the port while the proxy does not listen: otherwise another socket may take it,
/// and either respond in place of the proxy or prevent it from listening again.
async fn accept(
    mut listener: TcpListener,
    reserved: TcpSocket,
    shared: Arc<Shared>,
    mut listening: watch::Receiver<bool>,
) {
    loop {
        loop {
            tokio::select! {
                changed = listening.wait_for(|listens| !listens) => {
                    if changed.is_err() {
                        return;
                    }
                    break;
                }
                accepted = listener.accept() => {
                    if let Ok((client, _)) = accepted {
                        tokio::spawn(carry(client, Arc::clone(&shared)));
                    }
                }
            }
        }
        drop(listener);
        if listening.wait_for(|listens| *listens).await.is_err() {
            return;
        }
        listener = listen(reserved.local_addr().unwrap());
    }
}

/// Reason for which a connection ends.
enum End {
    /// One side has finished sending, and the other has received everything.
    Quiet,
    /// Both sides see a reset.
    Reset,
    /// Both sides see an end of stream.
    Both,
    /// Data silently stops.
    Silence,
}

async fn carry(client: TcpStream, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(shared.server).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let number = {
        let mut state = shared.state();
        state.next += 1;
        let number = state.next;
        state.open.insert(number, [0; 2]);
        number
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = Direction { way: Way::ToServer, number, shared: &shared };
    let down = Direction { way: Way::ToClient, number, shared: &shared };
    let mut round = shared.round.subscribe();
    let refused = async {
        loop {
            let plan = shared.state().plan;
            if plan.is_some_and(|plan| plan.fault == Fault::Refuse) {
                return;
            }
            if round.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let end = {
        let both = async {
            let mut up = std::pin::pin!(up.pump(&mut from_client, &mut to_server));
            let mut down = std::pin::pin!(down.pump(&mut from_server, &mut to_client));
            tokio::select! {
                // The client has finished sending; the server may still respond.
                end = &mut up => match end {
                    End::Quiet => down.await,
                    other => other,
                },
                end = &mut down => match end {
                    End::Quiet => up.await,
                    other => other,
                },
            }
        };
        tokio::select! {
            end = both => end,
            () = refused => End::Reset,
        }
    };
    match end {
        End::Quiet => {}
        End::Reset => {
            let _ = (to_client.as_ref().set_zero_linger(), to_server.as_ref().set_zero_linger());
        }
        End::Both => {
            let _ = (to_client.shutdown().await, to_server.shutdown().await);
            until_gone(&mut from_client).await;
        }
        // The server is not notified either while the client waits.
        End::Silence => until_gone(&mut from_client).await,
    }
    shared.state().open.remove(&number);
}

/// Waits until one side is closed, and discards its data.
async fn until_gone(side: &mut OwnedReadHalf) {
    let mut bytes = vec![0; 16 << 10];
    while side.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
}

/// One direction of a connection.
struct Direction<'a> {
    way: Way,
    number: u64,
    shared: &'a Shared,
}

impl Direction<'_> {
    async fn pump(&self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> End {
        let mut bytes = vec![0; 16 << 10];
        let mut round = self.shared.round.subscribe();
        loop {
            // A fault at position 0 occurs before any data is sent.
            round.mark_unchanged();
            if let Some(fault) = self.due()
                && let Some(end) = self.strike(fault, from, to).await
            {
                return end;
            }
            let length = tokio::select! {
                read = from.read(&mut bytes) => match read {
                    Ok(0) => {
                        let _ = to.shutdown().await;
                        return End::Quiet;
                    }
                    Ok(length) => length,
                    Err(_) => return End::Reset,
                },
                _ = round.changed() => continue,
            };
            let mut rest = &bytes[..length];
            while !rest.is_empty() {
                let (now, fault) = self.take(rest.len());
                let (before, after) = rest.split_at(now);
                rest = after;
                let written = if self.plan().is_some_and(|plan| plan.fault == Fault::OneByte && plan.way == self.way) {
                    self.singly(before, to).await
                } else {
                    to.write_all(before).await
                };
                if written.is_err() {
                    return End::Reset;
                }
                if let Some(fault) = fault
                    && let Some(end) = self.strike(fault, from, to).await
                {
                    return end;
                }
            }
        }
    }

    fn plan(&self) -> Option<Plan> {
        self.shared.state().plan
    }

    /// Returns the fault that occurs before the first byte, if there is one.
    fn due(&self) -> Option<Fault> {
        let state = self.shared.state();
        let plan = state.plan.filter(|plan| plan.way == self.way && plan.at == 0)?;
        let gone = state.open.get(&self.number)?[self.way as usize];
        let has_place = !matches!(plan.fault, Fault::Refuse | Fault::OneByte);
        (has_place && gone == 0).then_some(plan.fault)
    }

    /// Counts bytes up to the position of the fault, and returns the fault if it is reached.
    fn take(&self, length: usize) -> (usize, Option<Fault>) {
        let mut state = self.shared.state();
        let plan = state.plan.filter(|plan| plan.way == self.way && plan.fault != Fault::OneByte);
        let index = self.way as usize;
        let Some(counts) = state.open.get_mut(&self.number) else { return (length, None) };
        let left = plan.and_then(|plan| plan.at.checked_sub(counts[index])).filter(|left| *left > 0 && *left <= length);
        let now = left.unwrap_or(length);
        counts[index] += now;
        let count = counts[index];
        state.most[index] = state.most[index].max(count);
        (now, left.and(plan).map(|plan| plan.fault))
    }

    async fn singly(&self, bytes: &[u8], to: &mut OwnedWriteHalf) -> io::Result<()> {
        self.shared.state().struck = true;
        for byte in bytes {
            to.write_all(&[*byte]).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Injects a fault. Returns `None` if the connection continues.
    async fn strike(&self, fault: Fault, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> Option<End> {
        self.shared.state().struck = true;
        match fault {
            Fault::Drop => Some(End::Reset),
            Fault::Truncate => Some(End::Both),
            Fault::Stall => Some(End::Silence),
            Fault::HalfClose => {
                let _ = to.shutdown().await;
                until_gone(from).await;
                Some(End::Reset)
            }
            Fault::Delay => {
                tokio::time::sleep(DELAY).await;
                self.pass();
                None
            }
            Fault::Garbage => {
                let _ = to.write_all(&GARBAGE).await;
                self.pass();
                None
            }
            Fault::Refuse | Fault::OneByte => None,
        }
    }

    /// Marks a fault at position 0 as passed, so that it occurs only once.
    fn pass(&self) {
        if let Some(counts) = self.shared.state().open.get_mut(&self.number) {
            counts[self.way as usize] += usize::from(counts[self.way as usize] == 0);
        }
    }
}
