#!/usr/bin/python3
"""64 vCPUs x 1,000,000 ticks: prints what the page weighs, how long it takes to write and to open.

usage: large_test.py VCPULSE MAKE_TIMELINE [TICKS]

Fails where the page is larger than 32 MiB, or is not drawn; times are printed, not judged. Takes
about 1.2 GB of the temporary folder, and some minutes.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

from browser import Page, artefacts, open_browser

VCPULSE, MAKE_TIMELINE = sys.argv[1:3]
TICKS = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
VCPUS = 64
MOST_BYTES = 32 << 20


def peak_mib():
    """Of the largest child so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def opened(url, what):
    times = []
    for _ in range(3):
        browser = open_browser()
        try:
            page = Page(browser, url)
            times.append(page.ready_ms / 1000)
            heap = page.script("return performance.memory.usedJSHeapSize") / 2**20
            page.settle()
            shown = page.map()
            assert len(shown["rows"]) > 20, shown["rows"]
            x, y = page.place("1/3", (shown["from"] + shown["to"]) / 2e9)
            page.mouse(x, y).perform()
            page.settle()
            assert "no sample" not in page.text("status"), page.text("status")
            start = time.monotonic()
            page.wheel(x, y, -600)
            zoom_s = time.monotonic() - start
            assert page.console() == [], page.console()
            note = page.text("bins-note")
            browser.save_screenshot(os.path.join(artefacts(), f"large-{what}.png"))
        finally:
            browser.quit()
    print(f"{what}: opened and drawn {min(times):.2f} s after the navigation began (three times: "
          f"{', '.join(f'{one:.2f}' for one in times)}); zoomed and drawn in {zoom_s:.2f} s with WebDriver's own time; "
          f"JavaScript heap {heap:.0f} MiB")
    print(f"{what}: {note}")


with tempfile.TemporaryDirectory() as folder:
    timeline, html = os.path.join(folder, "large.vpt"), os.path.join(folder, "large.html")
    subprocess.run([MAKE_TIMELINE, timeline, "--vcpus", str(VCPUS), "--ticks", str(TICKS), "--interval-ms", "10",
                    "--marker-ticks", str(max(1, TICKS // 10))], check=True)
    print(f"timeline: {VCPUS} vCPUs x {TICKS:,} ticks, {os.path.getsize(timeline) / 2**20:.0f} MiB")
    before_s, start = processor_s(), time.monotonic()
    made_mib = peak_mib()
    subprocess.run([VCPULSE, "report", timeline, "--html", html], check=True)
    took_s, used_s = time.monotonic() - start, processor_s() - before_s
    size = os.path.getsize(html)
    print(f"report --html: {took_s:.1f} s, {used_s:.1f} s of one CPU ({VCPUS * TICKS / used_s / 1e6:.2f} million "
          f"vCPU-samples per second); at most {peak_mib():.0f} MiB of memory (the generator had {made_mib:.0f})")
    print(f"page: {size / 2**20:.1f} MiB")
    assert size < MOST_BYTES, "larger than 32 MiB"
    opened("file://" + html, "file")
    server = subprocess.Popen([VCPULSE, "report", timeline, "--serve", "tcp:127.0.0.1:0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        opened(server.stdout.readline().strip(), "served")
    finally:
        server.terminate()
        server.wait()
