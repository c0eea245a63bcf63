// Sums over bins. Shares of a bin come in 65535ths of its width.

const WHOLE = 65535;
const BANDS = ['none', 'halted', 'spinning', 'productive', 'unknown'];  // as core::Band

// By an IPC alone SPINNING is a hint, and is marked as one.
function isByIpcAlone(vm) {
  return vm.epochs.some((epoch) => epoch.classifier === 'ipc-bands');
}

function bandLabel(band) {
  return BANDS[band].toUpperCase() + (band === 2 && page.byIpcAlone ? '?' : '');
}

// The bins [begin, end) of the row that touch [from, to), as places in its columns.
function placesIn(bins, row, from, to) {
  const first = Math.floor((from - bins.origin) / bins.width) - row.first;
  const end = Math.ceil((to - bins.origin) / bins.width) - row.first;
  return [Math.max(0, first), Math.min(row.bins, end)];
}

// A span widened to whole bins, so that its numbers are sums and nothing is divided.
function toWholeBins(bins, span) {
  const {origin, width} = bins;
  return {
    from: origin + Math.floor((span.from - origin) / width + 1e-6) * width,
    to: origin + Math.ceil((span.to - origin) / width - 1e-6) * width,
  };
}

// What the row did in its bins [begin, end). Times in ns.
function sumOver(bins, row, begin, end) {
  const sum = {
    bands: [0, 0, 0, 0, 0], measured: 0, judged: 0, starved: 0, starvedKnown: 0, resident: 0,
    residencyKnown: 0,
    numbers: row.numbers.map(({key, label, decimals}) => ({key, label, decimals, part: 0, whole: 0})),
    events: row.events.map((event) => ({name: event.name, estimated: event.estimated, count: 0, known: 0})),
  };
  for (let i = begin; i < end; ++i) {
    for (let band = 0; band < 5; ++band) sum.bands[band] += row.bands[band][i];
    sum.starved += row.starved[i];
    sum.starvedKnown += row.starvedKnown[i];
    sum.resident += row.resident[i];
    sum.residencyKnown += row.residencyKnown[i];
    for (let n = 0; n < row.numbers.length; ++n) {
      sum.numbers[n].part += row.numbers[n].parts[i];
      sum.numbers[n].whole += row.numbers[n].wholes[i];
    }
    for (let e = 0; e < row.events.length; ++e) {
      sum.events[e].count += row.events[e].counts[i];
      sum.events[e].known += row.events[e].known[i];
    }
  }
  const unit = bins.width / WHOLE;
  for (let band = 0; band < 5; ++band) {
    sum.bands[band] *= unit;
    sum.measured += sum.bands[band];
  }
  sum.judged = sum.measured - sum.bands[0];
  for (const key of ['starved', 'starvedKnown', 'resident', 'residencyKnown']) sum[key] *= unit;
  for (const event of sum.events) event.known *= unit;
  return sum;
}

const ratio = (part, whole) => (whole > 0 ? part / whole : null);

// The numbers of the report, of such a sum. Null: not measured.
function figuresOf(sum) {
  const numbers = sum.numbers.map(({key, label, decimals, part, whole}) => ({key, label, decimals, value: ratio(part, whole)}));
  const ipc = numbers.find((number) => number.key === 'ipc');
  return {
    shares: BANDS.map((name, band) => (band === 0 ? null : ratio(sum.bands[band], sum.judged))),
    starved: ratio(sum.starved, sum.starvedKnown),
    residency: ratio(sum.resident, sum.residencyKnown),
    ipc: ipc ? ipc.value : null,
    numbers: numbers.filter((number) => number !== ipc),
    events: sum.events.map((event) => ({
      name: event.name, estimated: event.estimated,
      count: event.known > 0 ? event.count : null,
      perSecond: event.known > 0 ? event.count / (event.known / NS_PER_S) : null,
    })),
  };
}
