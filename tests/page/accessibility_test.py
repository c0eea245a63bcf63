#!/usr/bin/python3
"""The report page as axe-core sees it: names, roles, contrast, focus, in both themes.

usage: accessibility_test.py VCPULSE DRAW_TIMELINE FOLDER_FOR_NPM [unittest arguments]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from browser import Page, open_browser, page_maker, skip
from selenium.webdriver.common.keys import Keys

make_page = page_maker(*sys.argv[1:3])
NPM = sys.argv[3]
HERE = os.path.dirname(os.path.abspath(__file__))
RUN = "const done = arguments[0]; axe.run().then((found) => done([found.passes.length, found.violations]))"


def axe_core():
    """Its source, fetched as the lock file says."""
    if shutil.which("npm") is None:
        skip("npm is not there")
    shutil.copytree(os.path.join(HERE, "npm"), NPM, dirs_exist_ok=True)
    fetched = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=NPM, check=False,
                             capture_output=True, text=True)
    if fetched.returncode != 0:
        skip("npm could not fetch axe-core: " + " ".join(fetched.stderr.split())[:300])
    with open(os.path.join(NPM, "node_modules/axe-core/axe.min.js"), encoding="utf-8") as file:
        return file.read()


class AccessibilityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.axe = axe_core()
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = open_browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def findings(self):
        # Not as a script of the page, whose policy allows none but its own.
        self.browser.execute_cdp_cmd("Runtime.evaluate", {"expression": self.axe})
        passes, violations = self.browser.execute_async_script(RUN)
        self.assertGreater(passes, 10, "axe-core looked at next to nothing")
        return [(found["id"], found["impact"], node["html"][:200]) for found in violations for node in found["nodes"]]

    def test_nothing_is_found_in_any_state_of_the_page(self):
        for timeline in ("known", "scene", "degraded"):
            url = make_page(self.folder.name, timeline, timeline)
            for theme in ("light", "dark"):
                with self.subTest(timeline, theme=theme):
                    page = Page(self.browser, url)
                    if theme == "dark":
                        page.element("theme").click()
                    self.assertEqual(self.findings(), [])
                    page.script("document.getElementById('map').focus()")
                    page.keys(Keys.ARROW_DOWN, Keys.ENTER, "?", "c")
                    self.assertTrue(page.element("details").is_displayed() and page.element("help").is_displayed())
                    self.assertEqual(self.findings(), [])

    def test_it_finds_what_is_wrong(self):
        page = Page(self.browser, make_page(self.folder.name, "broken", "known"))
        page.script("document.getElementById('zoom-in').textContent = ''; document.getElementById('zoom-in').title = ''")
        self.assertIn("button-name", [found[0] for found in self.findings()])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
