#!/usr/bin/python3
"""The report page in headless Chromium, against a timeline whose every tick is known.

usage: page_test.py VCPULSE DRAW_TIMELINE [unittest arguments]
"""

import os
import pathlib
import sys
import tempfile
import unittest

from browser import Page, artefacts, open_browser, page_maker
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

make_page = page_maker(*sys.argv[1:3])

# A letter per tick of 100 ms, as tests/page/draw_timeline.cc draws them; ~: the gap, .: no sample.
KNOWN = {
    "1/0": "HHHHHPPPPPSSSSSHHHHHPPPPPPPPPP~~~~PPPPPP",
    "1/1": "PPPPPSSSSSHHHHHUUUUUSPSPSPSPSP~~~~HHHHHH",
    "2/0": "UUUUUsssssPPPPPPPPPPHHHHHHHHHH~~~~......",
}
COLOURS = {"H": {"halted"}, "P": {"productive"}, "S": {"spinning"}, "s": {"spinning"},
           "U": {"unknown", "unknown-hatch"}, ".": {"paper", "missing-hatch"}}


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.known = make_page(cls.folder.name, "known")
        cls.browser = open_browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def setUp(self):
        self.page = Page(self.browser, self.known)

    def tearDown(self):
        self.assertEqual(self.page.console(), [], "the console is not clean")

    def check_bands(self, times):
        """Each tick within `times` has its band's colours, from edge to edge but a pixel."""
        page = self.page
        shown = page.map()
        per_tick = 1e8 / (shown["to"] - shown["from"]) * shown["width"]
        seen = 0
        for key, letters in KNOWN.items():
            y, height = shown["rows"][key]
            for tick, letter in enumerate(letters):
                if letter == "~" or not times[0] <= tick / 10 < tick / 10 + 0.1 <= times[1] + 1e-9:
                    continue
                x = page.place(key, tick / 10)[0]
                # Two pixels of each edge are left to rounding, and the lowest to the starved line.
                colours = set(page.pixels(x + 2, y + 2, max(1, int(per_tick) - 4), height - 8))
                # Dashes of a marker stand in the first column of its tick.
                wanted = {page.colour(name) for name in COLOURS[letter]}
                self.assertLessEqual(colours, wanted, f"vCPU {key}, tick {tick} ({letter})")
                self.assertGreaterEqual(colours, wanted if per_tick > 12 else set())
                seen += 1
        return seen

    def test_pixels_are_the_bands(self):
        self.assertEqual(self.check_bands((0, 4)), 3 * 36)

    def test_starved_gaps_and_markers_are_drawn(self):
        page = self.page
        shown = page.map()
        y, height = shown["rows"]["2/0"]
        line = page.colour("starved")
        below = round(y + height - 3)
        self.assertEqual(page.pixels(page.place("2/0", 0.75)[0], below), [line])
        self.assertNotEqual(page.pixels(page.place("2/0", 0.25)[0], below), [line])
        gap = set(page.pixels(page.place("1/0", 3.05)[0], y + 3, 60, 8))
        self.assertGreater(len(gap), 1, "the hatch of a gap has lines")
        marker = page.place("1/0", 1.0)[0]
        self.assertIn(page.colour("marker"), page.pixels(marker, 40, 1, 60))
        # Those that were not opened say so, in the row and in the tables.
        self.assertIn("perf_event_paranoid is 3", page.text("tables"))

    def test_hover_tells_the_numbers(self):
        page = self.page
        for seconds, key, words in [
            (1.25, "1/0", ["vCPU 0 of VM 1 “web”", "1.25", "SPINNING 100.0 %", "IPC 0.50", "residency 100.0 %",
                           "starved 0.0 %", "phase load"]),
            (0.25, "1/0", ["HALTED 100.0 %", "IPC –", "residency 0.0 %", "phase boot"]),
            (0.65, "2/0", ["VM 2 “db”", "SPINNING 100.0 %", "starved 100.0 %"]),
            (2.55, "2/0", ["the VM was paused"]),
            (3.2, "1/1", ["no sample", "gap: tick-missed, 4 ticks"]),
            (3.8, "2/0", ["no sample: the VM had ended"]),
        ]:
            page.mouse(*page.place(key, seconds)).perform()
            page.settle()
            for text in (page.text("status"), page.text("tooltip")):
                for word in words:
                    self.assertIn(word, text, f"{key} at {seconds} s")

    def numbers(self):
        cells = self.page.script(
            "return [...document.querySelectorAll('#numbers tbody tr')].map("
            "(row) => [...row.cells].map((cell) => cell.textContent.replaceAll('\u00a0', ' ')))")
        return {row[0]: row[1:] for row in cells}

    def test_click_opens_the_numbers_of_the_report(self):
        page = self.page
        page.mouse(*page.place("1/1", 2.5)).click().perform()
        page.settle()
        self.assertIn("vCPU 1 of VM 1 “web”", page.text("details-title"))
        numbers = self.numbers()
        # As `vcpulse report` has them: 36 ticks, of which 11 H, 10 P, 10 S, 5 U.
        self.assertEqual([numbers[band][0] for band in ("HALTED", "SPINNING", "PRODUCTIVE", "UNKNOWN")],
                         ["30.6 %", "27.8 %", "27.8 %", "13.9 %"])
        self.assertEqual(numbers["cycles"][0], "2.50 G")
        self.assertEqual(numbers["instructions"][0], "2.95 G")
        self.assertEqual(numbers["IPC"][0], "1.180")
        self.assertEqual(numbers["residency"][0], "69.4 %")
        self.assertEqual(numbers["measured"], ["3.6 s", "90.0 %"])
        titles = page.script("return [...document.querySelectorAll('#charts strong')].map((one) => one.textContent)")
        self.assertEqual(titles, ["IPC", "residency", "starved", "host CPU", "GHz", "cycles per second", "instructions per second"])
        # Readings at 1.0 s and at 2.0 s.
        for at, shown in ((1.5, "CPU 0 at"), (2.35, "CPU 5 at")):
            page.mouse(*page.place("1/0", at)).perform()
            captions = page.script("return [...document.querySelectorAll('#charts figcaption')].map((one) => one.textContent)")
            self.assertIn("host CPU" + shown, captions[3])

    def test_a_dragged_span_has_its_own_numbers(self):
        page = self.page
        x, y = page.place("1/0", 1.0)
        end = page.place("1/0", 1.7)[0]
        page.mouse(x + 3, y).click_and_hold().move_by_offset(round(end - x - 6), 0).release().perform()
        page.keys(Keys.ENTER)
        self.assertIn("Numbers of the chosen span, 1.000 s to 1.700 s", page.text("details-span"))
        numbers = self.numbers()
        self.assertEqual(numbers["SPINNING"][0], "71.4 %")  # 5 of 7 ticks
        self.assertEqual(numbers["cycles"][0], "500 M")
        self.assertEqual(numbers["IPC"][0], "0.500")
        page.keys(Keys.ESCAPE)
        self.assertIn("Numbers of the visible time", page.text("details-span"))
        page.keys(Keys.ESCAPE)
        self.assertFalse(page.element("details").is_displayed())

    def test_the_wheel_zooms_where_the_pointer_is(self):
        page = self.page
        x, y = page.place("1/1", 2.25)
        page.wheel(x, y, -300)
        self.assertEqual((page.map()["from"], page.map()["to"]), (0, 4e9), "without Ctrl it scrolls")
        page.wheel(x, y, -300, ctrl=True)
        shown = page.map()
        self.assertAlmostEqual((shown["to"] - shown["from"]) / 1e9, 2.0, places=3)
        self.assertAlmostEqual(page.place("1/1", 2.25)[0], x, delta=1)
        self.assertGreaterEqual(self.check_bands((shown["from"] / 1e9, shown["to"] / 1e9)), 3 * 14)
        page.wheel(x, y, 600, ctrl=True)
        shown = page.map()
        self.assertEqual((shown["from"], shown["to"]), (0, 4e9))

    def test_the_keyboard_does_it_all(self):
        page = self.page
        page.script("document.getElementById('map').focus()")
        page.keys("+")
        shown = page.map()
        self.assertEqual((shown["from"], shown["to"]), (1e9, 3e9))
        self.check_bands((1, 3))
        page.keys(Keys.ARROW_RIGHT)
        self.assertEqual(page.map()["from"], 1.25e9)
        page.keys(Keys.END)
        self.assertEqual(page.map()["to"], 4e9)
        page.keys(Keys.HOME)
        self.assertEqual(page.map()["from"], 0)
        page.keys("-")
        self.assertEqual(page.map()["to"], 4e9)
        page.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.assertIn("vCPU 1 of VM 1", page.text("status"))
        self.assertIn("SPINNING 27.8 %", page.text("status"))
        page.keys(".")
        self.assertIn("0.000 s to 0.025 s", page.text("status"))
        self.assertIn("PRODUCTIVE 100.0 %", page.text("status"))
        page.keys(">", ">")
        self.assertIn("0.500 s to 0.525 s", page.text("status"))
        self.assertIn("SPINNING 100.0 %", page.text("status"))
        page.keys(Keys.ENTER)
        self.assertIn("vCPU 1 of VM 1", page.text("details-title"))
        self.assertEqual(page.script("return document.activeElement.id"), "details-title")
        page.keys(Keys.ESCAPE)
        self.assertEqual(page.script("return document.activeElement.id"), "map")
        page.keys("?")
        self.assertTrue(page.element("help").is_displayed())
        page.keys(Keys.ESCAPE)
        self.assertFalse(page.element("help").is_displayed())

    def test_light_and_dark(self):
        page = self.page
        page.script("document.getElementById('theme').click()")
        page.settle()
        self.assertEqual(page.colour("paper"), "#14181d")
        self.check_bands((0, 4))
        self.browser.save_screenshot(os.path.join(artefacts(), "dark.png"))
        page.script("document.getElementById('theme').click()")
        page.settle()
        self.assertEqual(page.colour("paper"), "#ffffff")
        self.check_bands((0, 4))
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        try:
            self.page = Page(self.browser, self.known)
            self.assertEqual(self.page.colour("paper"), "#14181d")
            self.check_bands((0, 4))
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_it_states_what_it_is_made_of(self):
        page = self.page
        self.assertIn("The finest bin in this page is 25 ms, so each tick (100 ms) is visible.", page.text("bins-note"))
        tables = page.text("tables")
        for words in ["Host and classifier", "host1", "evidence", "Own cost", "Gaps", "tick-missed", "vm-paused",
                      "Phases", "boot", "IPC"]:
            self.assertIn(words, tables)
        page.mouse(*page.place("1/0", 1.25)).click().perform()
        page.settle()
        self.browser.save_screenshot(os.path.join(artefacts(), "known.png"))

    def test_levels_of_detail_keep_bands_apart(self):
        self.page = Page(self.browser, make_page(self.folder.name, "long", "long"))
        page = self.page
        shown = page.map()
        y, height = shown["rows"]["2/0"]
        left, width = round(shown["left"]) + 3, round(shown["width"]) - 6
        top = page.pixels(left, y + 2, width)
        self.assertEqual(set(top), {page.colour("spinning"), page.colour("productive")})
        self.assertEqual(page.pixels(left, y + height - 6, width), top, "a bin has one band from top to bottom")

    def test_the_picture_of_the_readme(self):
        """docs/report-page.png is this artefact, `scene.png`, as it was when the page last changed its looks."""
        self.page = Page(self.browser, make_page(self.folder.name, "scene", "scene"))
        page = self.page
        page.mouse(*page.place("1/3", 5.0)).click().perform()
        x, y = page.place("1/3", 8.0)
        page.mouse(x, y).click_and_hold().move_by_offset(round(page.place("1/3", 13.0)[0] - x), 0).release().perform()
        page.settle()
        numbers = self.numbers()
        self.assertGreater(float(numbers["SPINNING"][0].split()[0]), 85)
        self.browser.save_screenshot(os.path.join(artefacts(), "scene.png"))

    def click(self, selector, containing=""):
        self.page.script(
            "[...document.querySelectorAll(arguments[0])].find("
            "(one) => one.textContent.includes(arguments[1])).click()", selector, containing)
        self.page.settle()

    def rows(self):
        return list(self.page.map()["rows"])

    def test_the_summary_leads_to_the_worst(self):
        page = self.page
        summary = page.text("summary")
        # As `vcpulse report` has it: of 72 judged ticks of web 15 S, 5 U, 31 P, 21 H.
        self.assertIn("web2 vCPUs: SPINNING 20.8 %, UNKNOWN 6.9 %, PRODUCTIVE 43.1 %, HALTED 29.2 %", summary)
        self.assertIn("Samples are missing: 4 ticks lost", summary)
        self.assertNotIn("DEGRADED", summary)
        self.click("#summary .worst button", "vCPU 0 of db: starved in every tick for 500 ms from 0.5 s")
        self.assertIn("vCPU 0 of VM 2", page.text("details-title"))
        self.assertIn("Numbers of the chosen span, 0.500 s to 1.000 s", page.text("details-span"))
        self.assertEqual(self.numbers()["starved"][0], "100.0 %")
        shown = page.map()
        self.assertTrue(shown["from"] <= 0.5e9 and shown["to"] >= 1e9 and shown["to"] - shown["from"] < 2e9)

    def test_without_counters_tables_show_what_ran(self):
        page = Page(self.browser, make_page(self.folder.name, "degraded", "degraded"))
        heads = page.script("return [...document.querySelectorAll('#tables table')].slice(0, 2).map("
                            "(one) => [...one.tHead.rows[0].cells].map((cell) => cell.textContent))")
        self.assertEqual(heads[0], ["phase", "length", "VM", "HALTED", "RAN", "starved"])
        self.assertEqual(heads[1][:4], ["vCPU", "HALTED", "RAN", "starved"])
        clock = page.script("return document.querySelectorAll('#tables table')[1].tBodies[0].rows[0].cells[arguments[0]].textContent",
                            heads[1].index("task-clock"))
        self.assertRegex(clock, r"^\d+\.\d{3} s$")
        self.assertIn("RAN is the share of time on a CPU", page.text("summary"))
        self.assertIn("UNKNOWN: it ran", page.text("legend"))
        self.assertNotIn("SPINNING", page.text("legend"))

    def test_notes_name_neighbours_and_causes(self):
        # The page keeps its functions to itself: the texts alone, of the same source.
        source = (pathlib.Path(__file__).parents[2] / "monitor/page/assets/summary_tables.js").read_text()
        share = "const formatShare = (share) => (100 * share).toFixed(1) + ' %'; "

        def call(text, argument):
            return self.page.script(share + source + "; return " + text, argument)

        self.assertEqual(call("smtText(arguments[0])", [{"share": 0.75, "vcpu": 3, "vm_number": 2, "vm": "db"},
                                                       {"share": 0.25, "vcpu": 1, "vm_number": 7, "vm": None}]),
                         "75.0 % vCPU 3 of VM 2 db, 25.0 % vCPU 1 of VM 7")
        self.assertEqual(call("causesText(arguments[0])", {"seconds": 2, "causes": {"halt-polling": 1.5, "wake-ups": 0}}),
                         "75.0 % halt-polling")
        self.assertEqual(call("causesText(null)", None), "")

    def test_a_gap_has_no_colour_of_a_band(self):
        page = self.page
        y, height = page.map()["rows"]["1/0"]
        x = page.place("1/0", 3.1)[0]  # the sample behind the gap is PRODUCTIVE
        colours = set(page.pixels(x, y + 2, 30, height - 8))
        self.assertNotIn(page.colour("productive"), colours)
        self.assertIn(page.colour("paper"), colours)

    def test_rows_fold_into_their_mean_and_filter(self):
        page = self.page
        self.assertEqual(self.rows(), ["1/0", "1/1", "2/0"])
        page.script("document.getElementById('map').focus()")
        page.keys("f")
        self.assertEqual(self.rows(), [])
        # vCPU 0 spins from 1.0 to 1.5 s, vCPU 1 is halted: half of the height each.
        x = page.map()["left"] + 1.25 / 4 * page.map()["width"]
        column = page.pixels(x, 24, 1, 13)
        self.assertEqual(set(column), {page.colour("spinning"), page.colour("halted")})
        self.assertAlmostEqual(column.count(page.colour("spinning")) / len(column), 0.5, delta=0.1)
        page.mouse(x, 30).perform()
        page.settle()
        self.assertIn("SPINNING 50.0 %, HALTED 50.0 %", page.text("tooltip"))
        page.keys("f")
        page.keys("/", *"vcpu 1", Keys.ENTER)
        self.assertEqual(self.rows(), ["1/1"])
        page.keys("/", *6 * [Keys.BACKSPACE], *"db", Keys.ENTER)
        self.assertEqual(self.rows(), ["2/0"])
        # A folded VM is reached by keys, and opened by Enter.
        page.keys("/", *2 * [Keys.BACKSPACE], Keys.ENTER, "f", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.assertIn("all 1 of VM 2", page.text("status"))
        page.keys(Keys.ENTER)
        self.assertEqual(self.rows(), ["2/0"])
        # The button of a table opens its own vCPU, folded or not.
        self.click("#tables button[aria-label='vCPU 1 of VM 1: show it']")
        self.assertIn("vCPU 1 of VM 1", page.text("details-title"))
        page.keys("/", *"db", Keys.ENTER)
        # A link of the summary shows its row, whatever was filtered.
        self.click("#summary .vm-bar button", "db")
        self.click("#summary .worst button", "of web")
        self.assertIn("1/0", self.rows())

    def test_the_address_has_the_view(self):
        page = self.page
        page.script("document.getElementById('map').focus()")
        page.keys("+", Keys.ARROW_DOWN, Keys.ENTER)
        fragment = page.wait_for("return location.hash", "the fragment")
        self.assertEqual(fragment, "#from=1&to=3&vcpu=1/0&open=1")
        self.browser.get("about:blank")
        self.page = page = Page(self.browser, self.known + "#from=0.5&to=2.5&vcpu=2/0&open=1&folded=1")
        page.settle()
        self.assertEqual((page.map()["from"], page.map()["to"]), (0.5e9, 2.5e9))
        self.assertIn("vCPU 0 of VM 2", page.text("details-title"))
        self.assertEqual(self.rows(), ["2/0"])
        # Followed within the page; what it does not name is as at first.
        page.script("location.hash = '#from=1&to=2&filter=web'")
        page.wait_for("return document.getElementById('map').dataset.from === '1000000000'", "the view")
        self.assertEqual(self.rows(), ["1/0", "1/1"])
        self.assertFalse(page.element("details").is_displayed())
        for hostile in ("from=-Infinity&to=Infinity", "from=-1e300&to=1e300", "from=NaN&to=NaN", "from=9&to=1", "folded=,,x"):
            page.script("location.hash = arguments[0]", "#" + hostile)
            page.wait_for("return document.getElementById('map').dataset.from === '0'", "all of it: " + hostile)
            self.assertEqual(page.map()["to"], 4e9)
            self.assertEqual(self.rows(), ["1/0", "1/1", "2/0"])
        self.browser.get("about:blank")
        self.page = page = Page(self.browser, self.known + "#from=x&to=-1&vcpu=9/9&open=1&folded=,&filter=%")
        page.settle()
        self.assertEqual((page.map()["from"], page.map()["to"]), (0, 4e9))

    def test_a_new_address_is_not_overwritten_before_it_is_read(self):
        page = self.page
        page.keys("+")  # what is shown has another address, now the page's
        page.wait_for("return location.hash === '#from=1&to=3'", "the fragment")
        self.browser.execute_async_script('''
            const [done] = arguments;
            const later = window.setTimeout;
            let write;
            window.setTimeout = (act) => { write = act; };
            window.dispatchEvent(new Event('afterprint'));  // draws anew
            window.setTimeout = later;
            location.hash = '#from=1&to=2';
            write();  // due before the page is told of the new address
            later(done, 0);''')
        page.wait_for("return document.getElementById('map').dataset.to === '2000000000'", "the view", seconds=10)
        self.assertEqual(page.script("return location.hash"), "#from=1&to=2")

    def test_the_minimap_moves_the_view(self):
        page = self.page
        shown = page.map()
        minimap = page.element("minimap")
        x = lambda seconds: round(shown["left"] + seconds / 4 * shown["width"] - minimap.size["width"] / 2)
        at = lambda: ActionChains(self.browser, duration=0).move_to_element_with_offset(minimap, x(start), 0)
        page.script("location.hash = '#from=1&to=2'")
        page.wait_for("return document.getElementById('map').dataset.from === '1000000000'", "the view")
        start = 1.25  # within the frame: it goes with the pointer
        at().click_and_hold().move_by_offset(round(shown["width"] / 4), 0).release().perform()
        page.settle()
        self.assertAlmostEqual(page.map()["from"], 2e9, delta=1e7)
        self.assertAlmostEqual(page.map()["to"], 3e9, delta=1e7)
        start = 0.75  # beside it: it comes there
        at().click().perform()
        page.settle()
        self.assertAlmostEqual(page.map()["from"], 0.25e9, delta=1e7)
        # Its pixels are the bands: at 3.2 s nothing was measured.
        colours = lambda seconds: page.script(
            "const made = new OffscreenCanvas(1, 12).getContext('2d');"
            "made.drawImage(document.getElementById('minimap'), -arguments[0], -7);"
            "return [...made.getImageData(0, 0, 1, 12).data].join()", round(shown["left"] + seconds / 4 * shown["width"]))
        page.element("whole").click()
        page.settle()
        rgb = lambda name: ",".join(str(int(page.colour(name)[i:i + 2], 16)) for i in (1, 3, 5))
        self.assertIn(rgb("spinning"), colours(0.75))
        self.assertNotIn(rgb("spinning"), colours(3.2))

    # In bins narrower than a tick, too, where what is less than a quarter was once left out.
    def test_the_minimap_shows_one_vcpu_of_twelve(self):
        self.browser.get("about:blank")
        page = Page(self.browser, make_page(self.folder.name, "scene", "scene"))
        shown = page.map()
        seconds = (shown["to"] - shown["from"]) / 1e9
        column = page.script(
            "const made = new OffscreenCanvas(1, 18).getContext('2d');"
            "made.drawImage(document.getElementById('minimap'), -arguments[0], -4);"
            "return [...made.getImageData(0, 0, 1, 18).data]", round(shown["left"] + 10.6 / seconds * shown["width"]))
        colours = ["#%02x%02x%02x" % tuple(column[i:i + 3]) for i in range(0, len(column), 4)]
        self.assertIn(page.colour("halted"), colours)
        self.assertGreater(colours.count(page.colour("spinning")), 9)

    def test_charts_stand_below_the_map(self):
        page = self.page
        x, y = page.place("1/0", 1.25)
        page.mouse(x, y).click().perform()
        page.settle()
        shown = page.map()
        box = lambda css: page.script("const box = document.querySelector(arguments[0]).getBoundingClientRect();"
                                      "return [box.left, box.width]", css)
        self.assertEqual(box("#charts canvas"), [box("#map")[0] + shown["left"], shown["width"]])

    def test_the_time_of_day(self):
        page = self.page
        marker = "return [...document.querySelectorAll('#tables .instant')].map((one) => one.textContent).slice(0, 2)"
        self.assertEqual(page.script(marker), ["0.000 s", "1.000 s"])
        page.keys("c")
        self.assertEqual(page.script(marker), ["03:04:05.000", "03:04:06.000"])
        self.assertEqual(page.wait_for("return location.hash", "the fragment"), "#utc=1")
        page.mouse(*page.place("1/0", 1.25)).perform()
        page.settle()
        self.assertIn("03:04:06.2", page.text("status"))
        page.element("clock").click()
        self.assertEqual(page.script(marker), ["0.000 s", "1.000 s"])

    def test_tables_sort_and_have_a_row_per_phase(self):
        page = self.page
        tables = page.text("tables")
        self.assertIn("By phase", tables)
        column = lambda: page.script(
            "const made = [...document.querySelectorAll('#tables table')].find((one) => one.caption.textContent.includes('web'));"
            "return [...made.tBodies[0].rows].map((row) => row.cells[0].textContent)")
        self.assertEqual(column(), ["0", "1"])
        # vCPU 1 has more of UNKNOWN: first where that falls, last where it rises.
        self.click("#tables section:nth-of-type(2) th button", "UNKNOWN")
        self.assertEqual(column(), ["1", "0"])
        self.click("#tables section:nth-of-type(2) th button", "UNKNOWN")
        self.assertEqual(column(), ["0", "1"])

    def test_print_shows_all_rows(self):
        metrics = {"width": 1400, "height": 150, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            self.page = page = Page(self.browser, make_page(self.folder.name, "printed", "scene"))
            heights = ("const map = document.getElementById('map');"
                       "return [map.clientHeight, document.getElementById('spacer').clientHeight]")
            drawn, all_rows = page.script(heights)
            self.assertLess(drawn, all_rows, "more rows than the window holds")
            page.script("dispatchEvent(new Event('beforeprint'))")
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            drawn, all_rows = page.script(heights)
            self.assertEqual(drawn, all_rows)
            self.assertFalse(page.element("filter").is_displayed())
            page.script("dispatchEvent(new Event('afterprint'))")
            self.assertLess(page.script(heights)[0], all_rows)
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_names_are_text_whatever_they_say(self):
        self.page = Page(self.browser, make_page(self.folder.name, "hostile", "hostile"))
        self.assertEqual(self.page.script("return document.images.length"), 0)
        self.assertEqual(self.page.script("return document.scripts.length"), 1)
        self.assertIn("</script><img src=x", self.page.text("tables"))
        self.assertIn("</script><img", self.page.text("title"))
        # Nothing that it could be made to do would be allowed either.
        self.page.script("const made = document.createElement('script'); made.textContent = 'window.ran = 1';"
                         "document.body.append(made)")
        self.assertIsNone(self.page.script("return window.ran || null"))
        refused = self.page.console()
        self.assertEqual(len(refused), 1)
        self.assertIn("Content Security Policy", refused[0])

    def test_a_hidpi_screen_and_a_narrow_one(self):
        for metrics in ({"width": 1400, "height": 900, "deviceScaleFactor": 2, "mobile": False},
                        {"width": 480, "height": 800, "deviceScaleFactor": 1, "mobile": False}):
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            try:
                self.page = Page(self.browser, self.known)
                x, y = self.page.place("1/0", 1.25)
                scale = metrics["deviceScaleFactor"]
                self.assertEqual(self.page.pixels(x * scale, y * scale), [self.page.colour("spinning")])
                self.assertEqual(self.page.console(), [])
            finally:
                self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
