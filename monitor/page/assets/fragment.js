// What is shown, as the fragment of the page's address, so that it can be sent and come back to:
// #from=1.5&to=3&vcpu=1/0&open=1&filter=web&folded=2,3&utc=1 (seconds after the start).

let fragmentTimer = null;
let lastFragment = null; // read or written; any other is the user's, still to be read

function fragmentText() {
  const parts = new URLSearchParams();
  if (view.from !== view.begin || view.to !== view.end) {
    parts.set('from', String(view.from / NS_PER_S));
    parts.set('to', String(view.to / NS_PER_S));
  }
  if (view.chosen) parts.set('vcpu', view.chosen.key);
  if (view.open) parts.set('open', '1');
  if (folding.filter) parts.set('filter', folding.filter);
  if (clock.ofDay) parts.set('utc', '1');
  const folded = [...folding.folded].sort((a, b) => a - b).join(',');
  if (folded !== [...foldedAtFirst(page.report)].join(',')) parts.set('folded', folded);
  return parts.toString().replaceAll('%2F', '/').replaceAll('%2C', ',');
}

// Not with each frame of a drag: browsers allow so many changes in a while.
function writeFragmentSoon() {
  clearTimeout(fragmentTimer);
  fragmentTimer = setTimeout(() => {
    const text = fragmentText();
    if (location.hash.slice(1) !== lastFragment || text === lastFragment) return;
    history.replaceState(null, '', text ? '#' + text : location.pathname + location.search);
    lastFragment = location.hash.slice(1);
  }, 250);
}

// What it does not name is as at first.
function readFragment() {
  lastFragment = location.hash.slice(1);
  if (lastFragment === fragmentText()) return;
  const parts = new URLSearchParams(lastFragment);
  const known = new Set(page.report.vms.map((vm) => vm.vm));
  folding.folded = parts.has('folded')
    ? new Set(parts.get('folded').split(',').filter((text) => /^\d+$/.test(text)).map(Number).filter((vm) => known.has(vm)))
    : foldedAtFirst(page.report);
  folding.filter = parts.get('filter') || '';
  document.getElementById('filter').value = folding.filter;
  setOfDay(parts.has('utc'));
  view.chosen = null;
  view.span = null;
  layAnew();
  const [from, to] = ['from', 'to'].map((name) => Number(parts.get(name) || NaN) * NS_PER_S);
  const inside = Number.isFinite(from) && Number.isFinite(to) && from < to && from < view.end && to > view.begin;
  show(inside ? Math.max(from, view.begin) : view.begin, inside ? Math.min(to, view.end) : view.end);
  if (parts.has('vcpu') && page.bins && page.bins.rows.has(parts.get('vcpu'))) reveal(parts.get('vcpu'));
  view.open = parts.has('open') && view.chosen !== null;
}
