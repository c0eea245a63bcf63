// What is shown, as the fragment of the page's address, so that it can be sent and come back to:
// #from=1.5&to=3&vcpu=1/0&open=1&filter=web&folded=2,3 (seconds after the start).

let fragmentTimer = null;

function fragmentText() {
  const parts = new URLSearchParams();
  if (view.from !== view.begin || view.to !== view.end) {
    parts.set('from', String(view.from / NS_PER_S));
    parts.set('to', String(view.to / NS_PER_S));
  }
  if (view.chosen) parts.set('vcpu', view.chosen.key);
  if (view.open) parts.set('open', '1');
  if (folding.filter) parts.set('filter', folding.filter);
  if (folding.folded.size > 0) parts.set('folded', [...folding.folded].join(','));
  return parts.toString().replaceAll('%2F', '/').replaceAll('%2C', ',');
}

// Not with each frame of a drag: browsers allow so many changes in a while.
function writeFragmentSoon() {
  clearTimeout(fragmentTimer);
  fragmentTimer = setTimeout(() => {
    const text = fragmentText();
    if (text !== location.hash.slice(1)) history.replaceState(null, '', text ? '#' + text : location.pathname + location.search);
  }, 250);
}

function readFragment() {
  if (location.hash.slice(1) === fragmentText()) return;
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has('folded')) folding.folded = new Set(parts.get('folded').split(',').map(Number));
  folding.filter = parts.get('filter') || '';
  document.getElementById('filter').value = folding.filter;
  layAnew();
  const [from, to] = ['from', 'to'].map((name) => Number(parts.get(name) || NaN) * NS_PER_S);
  if (to > from) show(from, to);
  if (parts.has('vcpu') && page.bins && page.bins.rows.has(parts.get('vcpu'))) reveal(parts.get('vcpu'));
  view.open = parts.has('open') && view.chosen !== null;
}
