// The keys of the heat map.

function readNext(bins, step) {
  const pixels = plotArea().width * (window.devicePixelRatio || 1);
  const width = bins.width * 2 ** levelFor(bins, (view.to - view.from) / pixels);
  if (view.cursor === null) view.cursor = view.from - (step > 0 ? width / 2 : -width / 2);
  const at = Math.floor((view.cursor - bins.origin) / width) + step;
  view.cursor = Math.min(Math.max(bins.origin + (at + 0.5) * width, view.begin), view.end);
  if (view.cursor < view.from || view.cursor > view.to) pan(view.cursor - (view.from + view.to) / 2);
  if (!view.chosen) view.chosen = neighbour(1);
  if (view.chosen) showStatus(view.chosen, view.cursor);
  changed();
}

function chooseNext(step) {
  choose(neighbour(step), false);
  if (!view.chosen) return;
  const span = spanShown();
  const bins = binsFor(span.from, span.to);
  const columns = columnsOf(bins, view.chosen);
  const [begin, end] = columns ? placesIn(bins, columns, span.from, span.to) : [0, 0];
  const sum = end > begin ? sumOver(bins, columns, begin, end) : null;
  document.getElementById('status').textContent = view.chosen.label + ' of ' + vmTitle(view.chosen.vm) + ', ' +
      formatSpan(span.from, span.to, bins ? bins.width : 1e6) + ' \u00b7 ' +
      (sum && sum.measured > 0 ? inWords(sum, span.to - span.from) : 'no sample');
}

function openChosen() {
  if (!view.chosen) view.chosen = neighbour(1);
  if (!view.chosen) return;
  if (view.chosen.kind === 'mean') {  // opens the VM
    const vm = view.chosen.vm.vm;
    toggleFold(vm);
    choose(page.rows.find((row) => row.kind === 'vcpu' && row.vm.vm === vm), false);
    return;
  }
  view.open = true;
  view.redraw();
  document.getElementById('details-title').focus();
}

function escape() {
  if (!document.getElementById('help').hidden) return toggleHelp();
  if (view.span) view.span = null;
  else if (view.open) return closeDetails();
  else view.cursor = null;
  changed();
}

function toggleHelp() {
  const help = document.getElementById('help');
  help.hidden = !help.hidden;
  document.getElementById('keys').setAttribute('aria-expanded', String(!help.hidden));
}

// Of the whole page, but for a control that has the focus and takes Enter itself.
const EVERYWHERE = {
  'Escape': () => escape(),
  '?': () => toggleHelp(),
  '+': () => zoom(0.5, view.cursor !== null ? view.cursor : (view.from + view.to) / 2),
  '=': () => zoom(0.5, view.cursor !== null ? view.cursor : (view.from + view.to) / 2),
  '-': () => zoom(2, view.cursor !== null ? view.cursor : (view.from + view.to) / 2),
  '0': () => showAll(),
  'f': () => toggleAllFolds(),
  'c': () => setOfDay(!clock.ofDay),
  '/': () => document.getElementById('filter').focus(),
};
const ON_THE_MAP = {
  'ArrowLeft': () => pan((view.from - view.to) / 8),
  'ArrowRight': () => pan((view.to - view.from) / 8),
  'ArrowUp': () => chooseNext(-1),
  'ArrowDown': () => chooseNext(1),
  'Home': () => show(view.begin, view.begin + view.to - view.from),
  'End': () => show(view.end - (view.to - view.from), view.end),
  'Enter': () => openChosen(),
  ',': () => page.bins && readNext(binsFor(view.from, view.to), -1),
  '.': () => page.bins && readNext(binsFor(view.from, view.to), 1),
  '<': () => page.bins && readNext(binsFor(view.from, view.to), -10),
  '>': () => page.bins && readNext(binsFor(view.from, view.to), 10),
};

function listenToKeys() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (document.activeElement === document.getElementById('filter')) {
      if (event.key === 'Escape' || event.key === 'Enter') document.getElementById('map').focus();
      return;
    }
    const onMap = document.activeElement === document.getElementById('map');
    const act = EVERYWHERE[event.key] || (onMap && ON_THE_MAP[event.key]);
    if (!act) return;
    event.preventDefault();
    act();
  });
}
