"""Headless Chromium for the tests of the page, and what a test asks of it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77  # ctest's SKIP_RETURN_CODE here


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.keys import Keys
except ImportError:
    skip("Python's selenium is not there (package python3-selenium)")


def open_browser(*arguments, width=1400, height=1000):
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        skip("Chromium is not there (packages chromium and chromium-driver)")
    try:
        socket.getaddrinfo("localhost", None)
    except socket.gaierror:
        sys.exit("chromedriver needs an address of localhost: add it to /etc/hosts")
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--force-device-scale-factor=1",
                     f"--window-size={width},{height}", *arguments):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


def page_maker(vcpulse, draw):
    """A function that draws a timeline and makes its page in a folder; it returns the page's address."""
    def make(folder, name, *arguments):
        timeline, html = (os.path.join(folder, name + end) for end in (".vpt", ".html"))
        subprocess.run([draw, timeline, *arguments], check=True)
        subprocess.run([vcpulse, "report", timeline, "--html", html], check=True)
        return "file://" + html
    return make


class Page:
    """The report page in a browser. Places are in CSS pixels of the heat map."""

    def __init__(self, browser, url):
        self.browser = browser
        browser.get(url)
        self.ready_ms = float(self.wait_for(
            "return document.documentElement.dataset.ready", "the page to be drawn"))

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def wait_for(self, script, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.script(script)
            if value:
                return value
            trouble = self.script("return document.getElementById('trouble').textContent")
            assert not trouble, trouble
            time.sleep(0.02)
        raise AssertionError(f"waited in vain for {what}")

    def settle(self):
        """Waits until what was changed is drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def element(self, name):
        return self.browser.find_element("id", name)

    def text(self, name):
        """With plain spaces only."""
        return self.script("return document.getElementById(arguments[0]).textContent.replaceAll('\u00a0', ' ')", name)

    def map(self):
        """{from, to, plotLeft, plotWidth, rows: {key: (y, height)}}"""
        data = self.script("return {...document.getElementById('map').dataset}")
        rows = {row["key"]: (row["y"], row["height"]) for row in json.loads(data["rows"])}
        return {"from": float(data["from"]), "to": float(data["to"]),
                "left": float(data["plotLeft"]), "width": float(data["plotWidth"]), "rows": rows}

    def place(self, key, seconds):
        """Where the row of a vCPU ("1/0") is at that time: its middle."""
        shown = self.map()
        x = shown["left"] + (seconds * 1e9 - shown["from"]) / (shown["to"] - shown["from"]) * shown["width"]
        y, height = shown["rows"][key]
        return x, y + height / 2 - 1

    def pixels(self, x, y, width=1, height=1):
        """Colours "#rrggbb" of the heat map, row by row."""
        # Of a copy: what a canvas is read for often, the browser remarks upon in the console.
        values = self.script(
            "const [x, y, width, height] = arguments;"
            "const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});"
            "copy.drawImage(document.getElementById('map'), -x, -y);"
            "return [...copy.getImageData(0, 0, width, height).data]",
            round(x), round(y), width, height)
        return ["#%02x%02x%02x" % tuple(values[i:i + 3]) for i in range(0, len(values), 4)]

    def colour(self, name):
        return self.script(
            "return getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0]).trim()", name)

    def mouse(self, x, y):
        """An ActionChains whose pointer is at that place of the map."""
        canvas = self.element("map")
        size = canvas.size
        return ActionChains(self.browser, duration=0).move_to_element_with_offset(
            canvas, round(x - size["width"] / 2), round(y - size["height"] / 2))

    def wheel(self, x, y, delta, ctrl=False):
        canvas = self.element("map")
        size = canvas.size
        origin = ScrollOrigin.from_element(canvas, round(x - size["width"] / 2), round(y - size["height"] / 2))
        chain = ActionChains(self.browser)
        if ctrl:
            chain.key_down(Keys.CONTROL)
        chain.scroll_from_origin(origin, 0, delta)
        if ctrl:
            chain.key_up(Keys.CONTROL)
        chain.perform()
        self.settle()

    def keys(self, *keys):
        chain = ActionChains(self.browser)
        for key in keys:
            chain.send_keys(key)
        chain.perform()
        self.settle()

    def console(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]


def artefacts():
    folder = os.environ.get("VCPULSE_PAGE_ARTEFACTS") or os.path.join(tempfile.gettempdir(), "vcpulse-page-artefacts")
    os.makedirs(folder, exist_ok=True)
    return folder
