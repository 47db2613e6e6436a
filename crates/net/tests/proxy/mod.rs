//! Stands between a program and a server, carries bytes both ways, and does to them what networks do.
//!
//! Tests of several crates read this file by its path. A fault is armed, happens on every connection that gets as far as its place,
//! and is gone again when the proxy is healed.

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

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// Nobody listens any more, and the connections that were there are gone.
    Refuse,
    /// The connection is reset.
    Drop,
    /// The connection ends in both directions, politely.
    Truncate,
    /// One direction ends politely; the other goes on.
    HalfClose,
    /// Nothing goes either way any more, and nobody says so.
    Stall,
    /// Nothing goes this way for a moment, then all of it.
    Delay,
    /// Bytes come in between that nobody has sent.
    Garbage,
    /// From there on each byte comes alone.
    OneByte,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    ToServer,
    ToClient,
}

/// A fault and its place: after so many bytes in this direction, counted on each connection from when the fault was armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub fault: Fault,
    pub way: Way,
    pub at: usize,
}

/// Every fault, and whether it has places.
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
    /// Whether all bytes still come, so that the right answer does too.
    pub fn is_harmless(self) -> bool {
        matches!(self, Fault::Delay | Fault::OneByte)
    }
}

/// Not UTF-8, no length of anything, and of a length that no protocol counts in.
const GARBAGE: [u8; 13] = [0xff, 0xfe, 0xfd, 0xff, 0xc0, 0x80, 0xff, 0xf5, 0xff, 0x01, 0xff, 0xed, 0xff];
const DELAY: Duration = Duration::from_millis(150);

/// Faults at the places of a call that sends and receives so many bytes on one connection: in its greeting, in the middle, and
/// before its last byte. `QUERYMEND_FAULTS=all` adds the start, and places between.
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

/// Where a server listens that has this address, and the same address with another port.
pub fn place(address: &str) -> (SocketAddr, impl Fn(u16) -> String) {
    let (before, rest) = address.split_once("127.0.0.1:").unwrap();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (port, after) = rest.split_at(digits);
    let (before, after) = (before.to_owned(), after.to_owned());
    let server = ([127, 0, 0, 1], port.parse().unwrap()).into();
    (server, move |port| format!("{before}127.0.0.1:{port}{after}"))
}

/// What came of faults.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub tried: usize,
    /// In so many the call got as far as to where the fault is.
    pub struck: usize,
    pub right: usize,
    pub errors: usize,
    pub hangs: usize,
    pub wrong: usize,
    pub recovered: usize,
}

/// Tries all, so many at once: what came of them, and what is to be complained of.
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
    // A fault that no call comes upon shows nothing.
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
    /// Counts up when something is armed or healed.
    round: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    /// Bytes on each connection that the client has not closed, since the round began.
    open: HashMap<u64, [usize; 2]>,
    /// The most on one connection since then, also of those that are closed.
    most: [usize; 2],
    /// Whether the fault has happened.
    struck: bool,
    next: u64,
}

impl Proxy {
    /// In front of a server.
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

    /// From now on this happens, and bytes are counted anew.
    pub async fn arm(&self, plan: Plan) {
        self.begin(Some(plan));
        if plan.fault == Fault::Refuse {
            self.listens.send(false).unwrap();
            self.until_listening(false).await;
        }
    }

    /// From now on nothing happens, and bytes are counted anew.
    pub async fn heal(&self) {
        self.begin(None);
        if !self.listens.send_replace(true) {
            self.until_listening(true).await;
        }
    }

    /// Waits until the task that accepts connections has begun to listen, or has stopped.
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

    /// The most bytes that went to the server and to the client on one connection since the last change.
    pub fn most(&self) -> (usize, usize) {
        let [sent, received] = self.shared.state().most;
        (sent, received)
    }

    /// Whether the fault got as far as to happen.
    pub fn has_struck(&self) -> bool {
        self.shared.state().struck
    }

    /// Whether somebody who has gone has left connections open.
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

/// Binds a port on which nobody listens, so that connections to it are refused.
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
/// `reserved` keeps the port while nobody listens on it: without it the port may go to any other socket, which then either answers in
/// place of the proxy or keeps the proxy from listening again.
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

/// How one connection ends.
enum End {
    /// One side has said all and the other heard it.
    Quiet,
    /// Both hear that it was reset.
    Reset,
    /// Both hear an end.
    Both,
    /// Nothing goes any more.
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
                // Whoever asked has said all; a server may still have something to say.
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
        // The server is not told either, as long as the client waits.
        End::Silence => until_gone(&mut from_client).await,
    }
    shared.state().open.remove(&number);
}

/// Waits until one side has gone; what it says is heard by nobody.
async fn until_gone(side: &mut OwnedReadHalf) {
    let mut bytes = vec![0; 16 << 10];
    while side.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
}

/// One direction of one connection.
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
            // A fault at the very start happens before anything is said.
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

    /// The fault that happens before the first byte, if one does.
    fn due(&self) -> Option<Fault> {
        let state = self.shared.state();
        let plan = state.plan.filter(|plan| plan.way == self.way && plan.at == 0)?;
        let gone = state.open.get(&self.number)?[self.way as usize];
        let has_place = !matches!(plan.fault, Fault::Refuse | Fault::OneByte);
        (has_place && gone == 0).then_some(plan.fault)
    }

    /// Counts bytes up to the place of the fault, and says whether it is there.
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

    /// Does it. The connection goes on if nothing comes of this.
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

    /// What has happened at the very start does not happen again before the first byte.
    fn pass(&self) {
        if let Some(counts) = self.shared.state().open.get_mut(&self.number) {
            counts[self.way as usize] += usize::from(counts[self.way as usize] == 0);
        }
    }
}
