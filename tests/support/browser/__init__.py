"""A headless Chromium, driven by its DevTools protocol. Debian's package is `chromium`."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

BINARY = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 120  # seconds; a page takes two on an idle machine
LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}
KEYS |= {"Escape": 27, "Tab": 9}


class Browser:
    """A headless Chromium with one page; commands and answers go through two pipes."""

    def __init__(self, profile: Path) -> None:
        self._numbers, self._session, self._rest = 0, "", b""
        self.said: list[dict[str, Any]] = []
        down, self._commands = os.pipe()
        self._answers, up = os.pipe()
        # out of the way of 3 and 4, where Chromium looks for them
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (down, up)]
        assert BINARY is not None
        command = [
            BINARY,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]
        command += ["--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            command,
            preexec_fn=lambda: [os.dup2(end, place) for place, end in enumerate(ends, 3)],
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (down, up, *ends):
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile go to `said`."""
        self._numbers += 1
        message = {"id": self._numbers, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                assert select.select([self._answers], [], [], PATIENCE)[0], f"no answer to {method}"
                more = os.read(self._answers, 1 << 20)
                assert more, "chromium has ended"
                self._rest += more
            text, self._rest = self._rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self._numbers:
                assert "error" not in answer, answer
                return answer["result"]
            self.said.append(answer)

    def value(self, script: str) -> Any:
        """Evaluate JavaScript."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, page: Path, width: int) -> None:
        """Load a page in a window of that many pixels."""
        self.said.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=page.as_uri())
        self.value(
            "new Promise(done => document.readyState === 'complete'"
            " ? done() : addEventListener('load', () => done()))"
        )

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def place(self, selector: str, x: float = 0.5, y: float = 0.5) -> dict[str, float]:
        """Scroll to an element; return a point of it, x and y from 0 to 1."""
        left, top, width, height = self.value(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.left, b.top, b.width, b.height]; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        return {"x": left + x * width, "y": top + y * height}

    def point(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Move the mouse to a point of an element."""
        at = self.place(selector, x, y)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click on a point of an element."""
        at = self.place(selector, x, y)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def press(self, *keys: str) -> None:
        """Press keys, one after another, where the focus is."""
        for key in keys:
            code = KEYS.get(key) or ord(key)
            typed = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            both = {"key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **both, **typed)
            self.call("Input.dispatchKeyEvent", type="keyUp", **both)

    def focus(self, selector: str) -> None:
        """Give an element the focus of the keyboard."""
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page, PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and exceptions, since the page was opened."""
        return [
            json.dumps(each["params"])
            for each in self.said
            if each.get("method") == "Runtime.exceptionThrown"
            or (
                each.get("method") == "Runtime.consoleAPICalled"
                and each["params"]["type"] in ("error", "warning", "assert")
            )
            or (
                each.get("method") == "Log.entryAdded"
                and each["params"]["entry"]["level"] in ("error", "warning")
            )
        ]

    def close(self) -> None:
        """End it."""
        self._session = ""
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._commands)
        os.close(self._answers)
