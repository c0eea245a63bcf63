// Brings the page up.

const page = {served: false, byIpcAlone: false, tick: 0, bins: null, rows: [], events: {markers: [], phases: [], pauses: [], gaps: []}, metrics: [], report: null};

function wholeTime(report, bins) {
  let begin = Infinity;
  let end = -Infinity;
  if (bins) {
    for (const row of bins.rows.values()) {
      begin = Math.min(begin, bins.origin + row.first * bins.width);
      end = Math.max(end, bins.origin + (row.first + row.bins) * bins.width);
    }
  }
  // The last bin may reach beyond the last record.
  const session = report.session;
  if (session && !session.phase) end = Math.min(end, Math.ceil(((session.from_s || 0) + session.duration_s) * NS_PER_S));
  for (const marker of page.events.markers) {
    begin = Math.min(begin, marker.at);
    end = Math.max(end, marker.at);
  }
  if (!(end > begin)) {
    begin = 0;
    end = Math.max(1, session ? session.duration_s * NS_PER_S : 1);
  }
  return [begin, end];
}

function writeHead(report) {
  const session = report.session;
  const names = report.vms.map((vm) => vm.name || 'VM ' + vm.vm);
  const title = 'vcpulse: ' + (names.length > 3 ? names.length + ' VMs' : names.join(', ') || 'no VM');
  document.getElementById('title').textContent = title;
  document.title = title;
  const parts = [];
  if (session) {
    if (session.host_name) parts.push('on ' + session.host_name);
    if (session.start) parts.push('from ' + session.start);
    parts.push(formatLength(Math.round(session.duration_s * 1e3) * 1e6));
    if (session.phase) parts.push('phase ' + session.phase + ' only');
    else if (session.from_s !== null || session.to_s !== null) parts.push('a part of it');
  }
  document.getElementById('subtitle').textContent = parts.join(', ');
}

function writeBinsNote() {
  const note = document.getElementById('bins-note');
  if (!page.bins) {
    note.textContent = 'No vCPU was measured between two samples: there is nothing to draw.';
    return;
  }
  const bins = binsFor(view.from, view.to);
  const interval = page.report.session ? page.report.session.interval_ms * 1e6 : 0;
  const parts = ['The finest bin in this page is ' + formatLength(page.bins.width) + (page.bins.width <= interval
    ? ', so each tick (' + formatLength(interval) + ') is visible.'
    : interval > 0 ? ', ticks come every ' + formatLength(interval) + '.' : '.')];
  if (page.served) {
    parts.push('Drawn now in bins of ' + formatLength(bins.width) + '; zoom in for finer ones, down to ' + formatLength(page.bins.smallest) + '.');
    if (finer.failed) parts.push('Finer bins could not be had: ' + finer.failed);
  } else if (page.bins.width > page.bins.smallest) {
    parts.push('The timeline has finer detail: vcpulse report FILE --serve tcp:127.0.0.1:0 shows all of it.');
  }
  if (page.gapsOmitted > 0) parts.push(page.gapsOmitted + ' later gaps are not drawn.');
  note.textContent = parts.join(' ');
}

function redraw() {
  drawMinimap();
  drawAxis();
  drawMap();
  drawDetails();
  writeBinsNote();
  writeFragmentSoon();
  askForFiner(view, plotArea().width * (window.devicePixelRatio || 1), changed);
}

function applyTheme() {
  readPalette();
  drawLegend();
  changed();
}

function listenToButtons() {
  const on = (id, act) => document.getElementById(id).addEventListener('click', act);
  on('zoom-in', EVERYWHERE['+']);
  on('zoom-out', EVERYWHERE['-']);
  on('whole', showAll);
  on('fold', toggleAllFolds);
  on('clock', () => setOfDay(!clock.ofDay));
  on('keys', toggleHelp);
  document.getElementById('filter').addEventListener('input', (event) => setFilter(event.target.value));
  window.addEventListener('hashchange', readFragment);
  for (const [event, printing] of [['beforeprint', true], ['afterprint', false]]) {
    window.addEventListener(event, () => {
      view.printing = printing;
      redraw();
    });
  }
  on('details-close', closeDetails);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  on('theme', () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches;
    root.dataset.theme = isDark ? 'light' : 'dark';
    applyTheme();
  });
  dark.addEventListener('change', applyTheme);
  new ResizeObserver(changed).observe(document.getElementById('chart'));
}

async function start() {
  const data = document.getElementById('data');
  const unpacked = unpack(await inflate(fromBase64(data.textContent)));
  data.remove();
  const report = unpacked.head.report;
  page.served = unpacked.head.served;
  page.bins = unpacked.bins;
  page.report = report;
  page.metrics = unpacked.head.metrics;
  page.tick = report.session ? report.session.interval_ms * 1e6 : 0;
  page.gapsOmitted = unpacked.head.gaps_omitted;
  setClock(report.session && report.session.start);
  document.getElementById('clock').hidden = clock.startOfDay === null;
  page.events = collectEvents(unpacked.head);
  page.byIpcAlone = report.vms.some((vm) => isByIpcAlone(vm));
  folding.folded = foldedAtFirst(report);
  page.rows = layRows(report);
  [view.begin, view.end] = wholeTime(report, page.bins);
  view.from = view.begin;
  view.to = view.end;
  view.redraw = redraw;
  if (page.bins) prepareLevels(page.bins);
  writeHead(report);
  readPalette();
  drawLegend();
  redraw();
  drawSummary(report);
  drawTables(report);
  readFragment();
  listenToButtons();
  listenToKeys();
  listenToMouse();
  listenToMinimap();
  document.documentElement.dataset.ready = String(performance.now());
}

start().catch((error) => {
  const trouble = document.getElementById('trouble');
  trouble.hidden = false;
  trouble.textContent = 'The page could not be drawn: ' + (error && error.message ? error.message : error) +
      (typeof DecompressionStream === 'undefined' ? ' (this browser is too old)' : '');
});
