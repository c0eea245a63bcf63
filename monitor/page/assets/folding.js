// Which rows are there: VMs can be folded into one row of their mean, and rows be filtered by a text.

const folding = {folded: new Set(), filter: ''};
// Folded at first: more VMs and vCPUs than fit a screen.
const MANY_VMS = 3;
const MANY_VCPUS = 32;

function foldedAtFirst(report) {
  const vcpus = report.vms.reduce((sum, vm) => sum + vm.vcpus.length, 0);
  const many = report.vms.length >= MANY_VMS && vcpus > MANY_VCPUS;
  return new Set(many ? report.vms.map((vm) => vm.vm) : []);
}

// Rows anew; what was chosen stays chosen where it is still there.
function layAnew() {
  const key = view.chosen && view.chosen.key;
  page.rows = layRows(page.report);
  // Before anybody scrolls to one of them.
  document.getElementById('spacer').style.height = heightOfRows() + 'px';
  view.chosen = page.rows.find((row) => canBeChosen(row) && row.key === key) || null;
  if (!view.chosen) view.open = false;
  changed();
}

function heightOfRows() {
  const last = page.rows[page.rows.length - 1];
  return last ? last.y + last.height : HEADING_HEIGHT;
}

function dropFilter() {
  folding.filter = '';
  document.getElementById('filter').value = '';
}

function toggleFold(vm) {
  if (!folding.folded.delete(vm)) folding.folded.add(vm);
  layAnew();
}

function toggleAllFolds() {
  const vms = page.report.vms.map((vm) => vm.vm);
  const unfold = vms.every((vm) => folding.folded.has(vm));
  folding.folded = new Set(unfold ? [] : vms);
  layAnew();
}

function setFilter(text) {
  folding.filter = text;
  layAnew();
}

const passesFilter = (text) => text.toLowerCase().includes(folding.filter.trim().toLowerCase());

// Chooses the row of that vCPU, folded away or filtered out or not.
function reveal(key) {
  folding.folded.delete(Number(key.split('/')[0]));
  if (!layRows(page.report).some((row) => row.key === key)) dropFilter();
  layAnew();
  choose(page.rows.find((row) => row.key === key), false);
}

function showVm(vm) {
  folding.folded.delete(vm);
  if (!layRows(page.report).some((candidate) => candidate.vm.vm === vm)) dropFilter();
  layAnew();
  const row = page.rows.find((candidate) => candidate.vm.vm === vm);
  if (row) document.getElementById('scroll').scrollTop = row.y;
  document.getElementById('map').focus();
  changed();
}

// The columns of a row of the map: of a vCPU, or of all vCPUs of a VM, each of which counts alike.
function columnsOf(bins, row) {
  if (!bins || row.kind === 'unopened' || row.kind === 'vm') return null;
  if (row.kind === 'vcpu') return bins.rows.get(row.key) || null;
  if (!bins.means) bins.means = new Map();
  if (!bins.means.has(row.key)) bins.means.set(row.key, meanOfVm(bins, row.vm));
  return bins.means.get(row.key);
}

function meanOfVm(bins, vm) {
  const rows = vm.vcpus.map((vcpu) => bins.rows.get(rowKey(vm.vm, vcpu.index))).filter((row) => row);
  if (rows.length === 0) return null;
  return {...meanOf(rows, ['starved', 'starvedKnown', 'resident', 'residencyKnown'], bins.width), numbers: [], events: []};
}

// The bands of these rows, at least one, and their columns of these names; each row counts alike. `drawn` are bands and
// starved without the edges of ticks: a row's own, which would be drawn for all of them.
function meanOf(rows, names, binWidth) {
  const first = Math.min(...rows.map((row) => row.first));
  const count = Math.max(...rows.map((row) => row.first + row.bins)) - first;
  const mean = (columnOf) => {
    const sums = new Float64Array(count);
    for (const row of rows) {
      const column = columnOf(row);
      for (let i = 0; i < row.bins; ++i) sums[row.first - first + i] += column[i] / rows.length;
    }
    return sums;
  };
  const made = {first, bins: count, bands: BANDS.map((_, band) => mean((row) => row.bands[band]))};
  for (const name of names) made[name] = mean((row) => row[name]);
  const edge = edgeOf(binWidth);
  const plain = rows.map((row) => ({first: row.first, bins: row.bins, ...withoutEdges(row, edge)}));
  const meanOfPlain = (columnOf) => mean((row) => columnOf(plain[rows.indexOf(row)]));
  made.drawn = {bands: BANDS.map((_, band) => meanOfPlain((row) => row.bands[band])), starved: meanOfPlain((row) => row.starved)};
  return made;
}

// What is an edge belongs to the band that the row has most of in that bin.
function withoutEdges(row, edge) {
  const bands = row.bands.map((column) => column.slice());
  for (let i = 0; i < row.bins; ++i) {
    let largest = 0;
    for (let band = 1; band < bands.length; ++band) if (bands[band][i] > bands[largest][i]) largest = band;
    for (let band = 0; band < bands.length; ++band) {
      if (band === largest || bands[band][i] > edge) continue;
      bands[largest][i] = Math.min(WHOLE, bands[largest][i] + bands[band][i]);  // folded shares are rounded up
      bands[band][i] = 0;
    }
  }
  return {bands, starved: row.starved.map((share) => (share > edge ? share : 0))};
}
