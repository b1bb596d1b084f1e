//! A headless Chromium, driven through pipes by its DevTools protocol: messages of JSON, each ended by a zero.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Names that distributions give it.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub struct Browser {
    process: Child,
    requests: File,
    answers: BufReader<File>,
    number: u64,
    /// The page; empty for the browser as such.
    session: String,
    errors: Vec<String>,
}

/// The program: `DTC_BROWSER`, or the first of the names that is found.
fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("DTC_BROWSER") {
        return program.into();
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").expect("PATH")).collect();
    let mut files = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("expected one of {NAMES:?}, found none; or set DTC_BROWSER"))
}

impl Browser {
    /// Starts it, with what it keeps in a folder.
    pub fn start(folder: &Path) -> Browser {
        let pipes = ["requests", "answers"].map(|name| folder.join(name));
        assert!(Command::new("mkfifo").args(&pipes).status().expect("mkfifo").success());
        let [requests, answers] = &pipes;
        // It reads from descriptor 3 and writes to 4. Sandboxes need rights that containers do not give.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<\"$REQUESTS\" 4>\"$ANSWERS\""]).arg(program());
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", folder.join("profile").display())).arg("about:blank");
        command
            .env("REQUESTS", requests)
            .env("ANSWERS", answers)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().expect("a shell");
        let requests = File::options().write(true).open(requests).expect("a pipe");
        let answers = BufReader::new(File::open(answers).expect("a pipe"));
        let mut browser = Browser { process, requests, answers, number: 0, session: String::new(), errors: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// The next message, whatever it is about.
    fn receive(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).expect("a message");
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(parameters["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => self.errors.push(parameters["args"].to_string()),
            Some("Log.entryAdded") => self.errors.push(parameters["entry"].to_string()),
            _ => {}
        }
        message
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.requests.write_all(format!("{message}\0").as_bytes()).expect("a browser that reads");
        loop {
            let mut answer = self.receive();
            if answer["id"] == self.number {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Opens a file, and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while self.receive()["method"] != "Page.loadEventFired" {}
    }

    /// What the page printed on its console, and what it threw.
    pub fn errors(&mut self) -> Vec<String> {
        // What was thrown before this answer has come by now.
        self.evaluate("0");
        std::mem::take(&mut self.errors)
    }

    /// The value of an expression of the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.evaluate(&format!("document.querySelector('{selector}').textContent"));
        text.as_str().expect("a text").to_owned()
    }

    /// The middle of an element, which is brought into the window.
    pub fn middle(&mut self, selector: &str) -> (f64, f64) {
        let place = self.evaluate(&format!(
            "(() => {{ const found = document.querySelector('{selector}'); found.scrollIntoView({{ block: 'center' }}); \
             const place = found.getBoundingClientRect(); \
             return [place.x + place.width / 2, place.y + place.height / 2]; }})()"
        ));
        (place[0].as_f64().expect("a number"), place[1].as_f64().expect("a number"))
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64)) {
        let (button, clicks) = if kind == "mouseMoved" { ("none", 0) } else { ("left", 1) };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks }),
        );
    }

    /// Moves the pointer.
    pub fn hover(&mut self, place: (f64, f64)) {
        self.mouse("mouseMoved", place);
    }

    /// Clicks.
    pub fn click(&mut self, place: (f64, f64)) {
        ["mouseMoved", "mousePressed", "mouseReleased"].into_iter().for_each(|kind| self.mouse(kind, place));
    }

    /// Presses and releases a key.
    pub fn key(&mut self, key: &str) {
        let code = match key {
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Enter" => 13,
            "Escape" => 27,
            other => panic!("{other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// The size of the window.
    pub fn resize(&mut self, width: u64, height: u64) {
        let parameters = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", parameters);
    }

    /// Whether pages are light or dark.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Writes what the window shows, or all of the page.
    pub fn screenshot(&mut self, file: &Path, whole: bool) {
        // What a size changes is drawn in the next frame.
        self.evaluate("0");
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": whole }));
        let bytes = decoded(answer["data"].as_str().expect("a picture"));
        std::fs::write(file, bytes).expect("a file");
    }

    /// The page as it is printed.
    pub fn print(&mut self) -> Vec<u8> {
        let answer = self.call("Page.printToPDF", json!({ "printBackground": false }));
        decoded(answer["data"].as_str().expect("a document"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut number) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for letter in text.bytes().filter(|&letter| letter != b'=') {
        let digit = DIGITS.iter().position(|&other| other == letter).expect("base 64") as u32;
        (bits, number) = (bits << 6 | digit, number + 6);
        if number >= 8 {
            number -= 8;
            bytes.push((bits >> number) as u8);
            bits &= (1 << number) - 1;
        }
    }
    bytes
}
