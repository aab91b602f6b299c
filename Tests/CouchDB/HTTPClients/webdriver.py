"""A browser that tests drive: headless Chromium by the WebDriver protocol, which is JSON over HTTP."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# For a machine that does much else. A condition that holds is seen at once.
PATIENCE = 120
KEYS = {"enter": "\ue007", "escape": "\ue00c", "control": "\ue009", "tab": "\ue004", "release": "\ue000"}


def missing():
    """What isn't installed here; None if all is."""
    if not shutil.which("chromedriver"):
        return "there is no chromedriver (Debian: chromium-driver)"
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        return "there is no chromium"
    return None


class BrowserError(Exception):
    """What the driver refuses. The message begins with its word for that."""


class Browser:
    """A window. `close` ends it with its processes."""

    def __init__(self, width=1280, height=900):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                port = found[1]
                break
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", f"--window-size={width},{height}"]
        options = {"args": arguments, "binary": shutil.which("chromium") or shutil.which("google-chrome")}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
                                  "unhandledPromptBehavior": "ignore"}}
        session = self._send("POST", "/session", {"capabilities": wanted})
        self.base += "/session/" + session["sessionId"]
        self.resize(width, height)

    def close(self):
        try:
            self._send("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            problem = json.load(error)["value"]
            raise BrowserError(f"{problem['error']}: {problem['message'].splitlines()[0]}") from None

    def _command(self, name, **parameters):
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def resize(self, width, height=900):
        """Gives the page this size, as a phone does if it is narrow."""
        self._command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def prefer(self, scheme):
        """`dark` or `light`."""
        self._command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self._send("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a function's body in the page, and returns its result."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def problems(self):
        """What the console has said since the last call and is an error."""
        entries = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def screenshot(self):
        """A PNG, as base64."""
        return self._send("GET", "/screenshot")

    # Elements

    def find_all(self, xpath):
        found = self._send("POST", "/elements", {"using": "xpath", "value": xpath})
        return [item[ELEMENT] for item in found]

    def find(self, xpath):
        """Waits for an element."""
        return self.until(lambda: (self.find_all(xpath) or [None])[0], xpath)

    def until(self, condition, what):
        """Waits until a condition holds, and returns what it returns."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if found := condition():
                    return found
            except BrowserError as error:
                # The view was shown anew meanwhile.
                if not str(error).startswith(("stale element", "no such element", "element click intercepted", "element not interactable")):
                    raise
            if time.monotonic() > end:
                raise AssertionError(f"the page never has: {what}; it has:\n{self.text()}")
            time.sleep(0.05)

    def click(self, xpath):
        def act():
            element = (self.find_all(xpath) or [None])[0]
            if element is None:
                return False
            self._send("POST", f"/element/{element}/click", {})
            return True
        self.until(act, xpath)

    def press(self, label, where="//main"):
        """Presses the button, or follows the link, with a text or a name for screen readers."""
        self.click(f"{where}//*[(self::button or self::a) and (normalize-space(.)={quoted(label)} or @aria-label={quoted(label)})]")

    def control(self, label):
        """The control with a label."""
        return self.find(f"//*[@id=//label[normalize-space(.)={quoted(label)}]/@for] | "
                         f"//label[contains(@class,'check') and normalize-space(.)={quoted(label)}]/input")

    def write(self, label, text):
        """Puts a text in the place of that which a control has."""
        element = self.control(label)
        self._send("POST", f"/element/{element}/clear", {})
        self.type(element, text)

    def type(self, element, text):
        self._send("POST", f"/element/{element}/value", {"text": text})

    def keys(self, *keys):
        """Presses keys where the focus is, and releases them in the opposite order."""
        codes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": "keyDown", "value": code} for code in codes] + [{"type": "keyUp", "value": code} for code in reversed(codes)]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector="body"):
        """The text that an element shows."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_for_text(self, text, selector="main"):
        self.until(lambda: text in self.text(selector), repr(text))


def quoted(text):
    """A text as XPath writes it."""
    if '"' not in text:
        return f'"{text}"'
    return "concat(" + ", '\"', ".join(f'"{part}"' for part in text.split('"')) + ")"
