//! A server that never stops sending fails one request, and never exhausts the client's memory.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::transcript::desk;
use crate::world::mask;

const MIB: usize = 1 << 20;
/// The server stops here, so that a client that keeps reading fails the test and not the machine.
const ENOUGH: usize = 256 * MIB;

/// Answers every request with this status and an endless body.
struct Endless {
    address: SocketAddr,
    /// The most that one client has read.
    taken: Arc<AtomicUsize>,
}

impl Endless {
    fn serve(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(AtomicUsize::new(0));
        let most = Arc::clone(&taken);
        thread::spawn(move || {
            for client in listener.incoming() {
                let most = Arc::clone(&most);
                thread::spawn(move || answer(client.unwrap(), status, &most));
            }
        });
        Self { address, taken }
    }

    fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: a, user: {{}}}}]\n",
            self.address
        )
    }
}

fn answer(mut client: TcpStream, status: &str, most: &AtomicUsize) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return,
        }
    }
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{{\"a\r\n"
    );
    let mut chunk = format!("{:x}\r\n", 64 << 10).into_bytes();
    chunk.extend(vec![b'a'; 64 << 10]);
    chunk.extend(b"\r\n");
    let mut sent = 0;
    if client.write_all(head.as_bytes()).is_ok() {
        while sent < ENOUGH && client.write_all(&chunk).is_ok() {
            sent += 64 << 10;
        }
    }
    most.fetch_max(sent, Ordering::SeqCst);
}

#[track_caller]
fn check(status: &'static str, most: [(&str, usize); 4]) {
    let server = Endless::serve(status);
    let name = format!("endless-{}", &status[..3]);
    let desk = desk(&name).file("hub.kubeconfig", server.kubeconfig());
    for (command, most) in most {
        let told = mask(&desk.run(&format!("{command} --kubeconfig hub.kubeconfig")));
        assert!(
            told.contains(&format!("the server sent an answer of more than {} MiB", most / MIB)),
            "{told}"
        );
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    let taken = server.taken.load(Ordering::SeqCst);
    let most = most.into_iter().map(|(_, most)| most).max().unwrap();
    // Data in transit is not held by the client. Kernels let the buffers of two sockets grow to
    // tens of MiB.
    assert!(taken < most + 64 * MIB, "a client took {} MiB", taken / MIB);
}

#[test]
fn an_answer_without_an_end_is_not_read_to_its_end() {
    // Lists are read in pages, which are halved down to a single object. Other documents may be
    // larger.
    let (object, document) = (8 * MIB, 64 * MIB);
    check(
        "200 OK",
        [
            ("status", object),
            ("explain helloworld", object),
            ("rollout retry helloworld", object),
            ("manager", document),
        ],
    );
}

#[test]
fn an_error_without_an_end_is_not_read_to_its_end() {
    let commands = ["status", "explain helloworld", "rollout retry helloworld", "manager"];
    check("500 Internal Server Error", commands.map(|command| (command, MIB)));
}
