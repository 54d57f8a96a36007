//! A browser for one test: a chromedriver on a free port, and one session in it. Both end with the
//! test.
//!
//! No test sleeps: the page itself evaluates a condition until it holds.

#![allow(dead_code, reason = "tests and pictures use their own parts of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::http::{Method, Request};
use kube::{Client, Config};
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
const GIVE_UP: Duration = Duration::from_secs(300);
/// Far more than are ever taken in a row.
const PORTS_TRIED: u32 = 20;
const MISSING: &str =
    "there is no chromium with its chromedriver here: run hack/install-chromium.sh, which make test does";
/// Runs in every page before its own scripts: records forbidden events, and reads what was painted.
const WATCH: &str = "
    window.complaints = [];
    addEventListener('securitypolicyviolation', (e) => window.complaints.push(`CSP: ${e.violatedDirective} ${e.blockedURI}`));
    addEventListener('error', (e) => window.complaints.push(`error: ${e.message}`));
    addEventListener('unhandledrejection', (e) => window.complaints.push(`rejected: ${e.reason}`));
    window.pixels = (canvas, x, y, width, height) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      return copy.getImageData(x, y, width, height).data;
    };
    window.alert = (text) => window.complaints.push(`alert: ${text}`);
";

/// Special keys, as WebDriver spells them.
pub(crate) mod key {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
    pub(crate) const PAGE_DOWN: &str = "\u{e00f}";
    pub(crate) const END: &str = "\u{e010}";
    pub(crate) const HOME: &str = "\u{e011}";
    pub(crate) const LEFT: &str = "\u{e012}";
    pub(crate) const UP: &str = "\u{e013}";
    pub(crate) const RIGHT: &str = "\u{e014}";
    pub(crate) const DOWN: &str = "\u{e015}";
}

/// The screen of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) ratio: f64,
    pub(crate) dark: bool,
}

pub(crate) const DESK: Screen = Screen { width: 1440, height: 900, ratio: 1.0, dark: false };
pub(crate) const PHONE: Screen = Screen { width: 360, height: 740, ratio: 2.0, dark: false };

/// The process of a chromedriver. Its browsers end with it.
struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    fn start() -> Self {
        for _ in 0..PORTS_TRIED {
            if let Some(driver) = Self::on_a_free_port() {
                return driver;
            }
        }
        panic!("chromedriver found none of {PORTS_TRIED} ports free");
    }

    /// Returns `None` if the port is in use. With `--port=0`, chromedriver picks a port that is
    /// free for IPv4, needs the same one for IPv6, and exits if that one is in use.
    fn on_a_free_port() -> Option<Self> {
        let program = std::env::var("AVIARY_CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".to_owned());
        let mut child = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        let port = loop {
            let Some(line) = lines.next() else {
                let status = child.wait().unwrap();
                assert!(said.contains("port not available"), "chromedriver ended with {status}:\n{said}");
                return None;
            };
            let line = line.unwrap();
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
            said += &line;
            said.push('\n');
        };
        // Keeps reading, because a full pipe would block it.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, port })
    }

    /// Asks it to end, which ends its browsers; after a kill they would stay.
    fn shut_down(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(
            stream,
            "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            self.port
        )?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.shut_down().is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

pub(crate) struct Browser {
    client: Client,
    session: String,
    _driver: Driver,
}

impl Browser {
    pub(crate) async fn start(screen: Screen) -> Self {
        let driver = Driver::start();
        let mut config = Config::new(format!("http://127.0.0.1:{}", driver.port).parse().unwrap());
        // A wait for a condition may take this long.
        config.read_timeout = Some(GIVE_UP * 2);
        let client = Client::try_from(config).unwrap();
        let mut options = json!({"args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
        ]});
        if let Ok(binary) = std::env::var("AVIARY_CHROMIUM") {
            options["binary"] = json!(binary);
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": GIVE_UP.as_millis() as u64},
        }}});
        let mut browser = Self { client, session: String::new(), _driver: driver };
        let session = browser.send(Method::POST, "/session", Some(&wanted)).await;
        let session = session.unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
        browser.screen(screen).await;
        browser
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let bytes = body.map_or_else(Vec::new, |body| serde_json::to_vec(body).unwrap());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", "application/json")
            .body(kube::client::Body::from(bytes))
            .unwrap();
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        let well = answer.status().is_success();
        let bytes = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 26)
            .await
            .map_err(|error| error.to_string())?;
        let mut value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let value = value["value"].take();
        if well {
            return Ok(value);
        }
        Err(format!("{}: {}", value["error"], value["message"].as_str().unwrap_or_default()))
    }

    /// Sends a command to this session.
    async fn tell(&self, path: &str, body: Value) -> Value {
        let sent = self.send(Method::POST, &format!("{}{path}", self.session), Some(&body)).await;
        sent.unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    async fn devtools(&self, command: &str, params: Value) -> Value {
        self.tell("/goog/cdp/execute", json!({"cmd": command, "params": params})).await
    }

    pub(crate) async fn screen(&self, screen: Screen) {
        let Screen { width, height, ratio, dark } = screen;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let colours = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": colours}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.tell("/url", json!({"url": url})).await;
    }

    /// Runs a function body in the page and returns its result.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.tell("/execute/sync", json!({"script": script, "args": []})).await
    }

    /// Waits until a function body returns a non-empty value.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Value {
        let script = format!(
            "const done = arguments[arguments.length - 1];
            const is = () => {{ {script} }};
            const look = () => {{
              let found;
              try {{ found = is(); }} catch {{ found = null; }}
              if (found) done(found); else setTimeout(look, 15);
            }};
            look();"
        );
        let body = json!({"script": script, "args": []});
        match self.send(Method::POST, &format!("{}/execute/async", self.session), Some(&body)).await {
            Ok(found) => found,
            Err(error) => {
                let seen = self.run("return document.body.innerText").await;
                panic!(
                    "{what}: {error}\nThe page says:\n{}\nComplaints: {:?}",
                    seen.as_str().unwrap_or_default(),
                    self.complaints().await
                );
            }
        }
    }

    /// Waits until the text of the first match contains `part`, and returns the whole text.
    pub(crate) async fn until_text(&self, css: &str, part: &str) -> String {
        let script = format!(
            "const text = document.querySelector({}).innerText; return text.includes({}) && text;",
            json!(css),
            json!(part)
        );
        self.until(&format!("{css} to say {part:?}"), &script).await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn texts(&self, css: &str) -> Vec<String> {
        let script =
            format!("return [...document.querySelectorAll({})].map((one) => one.innerText)", json!(css));
        serde_json::from_value(self.run(&script).await).unwrap()
    }

    pub(crate) async fn count(&self, css: &str) -> u64 {
        self.run(&format!("return document.querySelectorAll({}).length", json!(css))).await.as_u64().unwrap()
    }

    /// The position of an element in CSS pixels: left, top, width, height. Scrolls to it first.
    async fn place(&self, css: &str) -> [f64; 4] {
        let script = format!(
            "const node = document.querySelector({});
            node.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            const box = node.getBoundingClientRect();
            return box.width && [box.left, box.top, box.width, box.height];",
            json!(css)
        );
        serde_json::from_value(self.until(&format!("{css} to be there"), &script).await).unwrap()
    }

    async fn pointer(&self, actions: Value) {
        let pointer = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.tell("/actions", json!({"actions": [pointer]})).await;
    }

    /// Moves the mouse to a position in an element, in CSS pixels from its corner.
    pub(crate) async fn hover(&self, css: &str, x: f64, y: f64) {
        let [left, top, ..] = self.place(css).await;
        self.pointer(
            json!([{"type": "pointerMove", "duration": 0, "x": (left + x) as i64, "y": (top + y) as i64}]),
        )
        .await;
    }

    pub(crate) async fn click_here(&self) {
        self.pointer(json!([{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])).await;
    }

    /// Clicks the middle of an element like a user: an element above it would get the click.
    pub(crate) async fn click(&self, css: &str) {
        let [_, _, width, height] = self.place(css).await;
        self.hover(css, width / 2.0, height / 2.0).await;
        self.click_here().await;
    }

    /// Presses keys one after the other in the focused element.
    pub(crate) async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.tell("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}))
            .await;
    }

    /// Presses Tab until an element has the focus.
    pub(crate) async fn tab_to(&self, css: &str) {
        let there = format!("return document.activeElement.matches({})", json!(css));
        let mut stops = Vec::new();
        while self.run(&there).await != true {
            assert!(stops.len() < 100, "the tabulator does not lead to {css}: {stops:#?}");
            self.press(key::TAB).await;
            stops.push(self.focused().await);
        }
    }

    /// The focused element: its tag, and its label or text.
    pub(crate) async fn focused(&self) -> String {
        let script = "const node = document.activeElement;
            return `${node.tagName.toLowerCase()} ${(node.getAttribute('aria-label') || node.innerText || '').split('\\n')[0]}`";
        self.run(script).await.as_str().unwrap().to_owned()
    }

    /// A screenshot, as PNG.
    pub(crate) async fn picture(&self) -> String {
        let shot = self.send(Method::GET, &format!("{}/screenshot", self.session), None).await.unwrap();
        shot.as_str().unwrap().to_owned()
    }

    /// Everything that the page or the browser reported as wrong.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let own = self.run("return window.complaints ?? ['the page was not watched']").await;
        let mut all: Vec<String> = serde_json::from_value(own).unwrap();
        let log = self.tell("/se/log", json!({"type": "browser"})).await;
        all.extend(
            log.as_array().unwrap().iter().map(|line| format!("{} {}", line["level"], line["message"])),
        );
        all
    }

    /// Ends a test: the policy refused nothing, and nothing was thrown or logged, except what the
    /// test expects.
    pub(crate) async fn end(self, expected: &[&str]) {
        let complaints = self.complaints().await;
        let others: Vec<&String> = complaints
            .iter()
            .filter(|complaint| !expected.iter().any(|part| complaint.contains(part)))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}
