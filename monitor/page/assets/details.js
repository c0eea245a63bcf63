// The chosen vCPU: numbers of the span, charts of the visible time.

const details = {key: null, charts: []};

function drawDetails() {
  const box = document.getElementById('details');
  const row = view.chosen;
  box.hidden = !view.open || !row || row.kind !== 'vcpu';
  if (box.hidden) return;
  const bins = binsFor(view.from, view.to);
  const columns = bins && bins.rows.get(row.key);
  const span = spanShown();
  document.getElementById('details-title').textContent = row.label + ' of ' + vmTitle(row.vm);
  document.getElementById('details-span').textContent =
      (view.span ? 'Numbers of the chosen span, ' : 'Numbers of the visible time, ') + formatSpan(span.from, span.to, bins ? bins.width : 1e6) +
      ' (' + formatLength(Math.round(span.to - span.from)) + '). Charts show the visible time.';
  const spanBins = binsFor(span.from, span.to);
  const numbers = document.getElementById('numbers');
  numbers.replaceChildren(numbersTable(spanBins, spanBins && spanBins.rows.get(row.key), span));
  const held = document.getElementById('charts');
  const charts = columns ? chartsOf(columns, row.vcpu) : [];
  const key = row.key + charts.map((chart) => chart.title).join();
  if (details.key !== key) {
    details.key = key;
    details.charts = charts.map((chart) => layChart(chart, row));
    held.replaceChildren(...details.charts.map((chart) => chart.figure));
  }
  if (!columns) return;
  const series = seriesOf(bins, columns, plotArea().width);
  details.charts.forEach((one, i) => drawChart(one.canvas, one.value, charts[i], series));
}

function layChart(chart, row) {
  const figure = element('figure');
  const caption = element('figcaption');
  const value = element('span');
  const title = element('strong');
  title.append(...chart.title.split(/(?<=\/)/).flatMap((part) => [part, element('wbr')]));
  caption.append(title, value);
  const canvas = element('canvas');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', chart.title + ' of ' + row.label + ' over the visible time');
  canvas.addEventListener('mousemove', (event) => {
    const box = canvas.getBoundingClientRect();
    view.cursor = view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
    changed();
  });
  figure.append(caption, canvas);
  return {figure, canvas, value};
}

// Chooses a row; `open`: also its details.
function choose(row, open) {
  if (!row || !canBeChosen(row)) return;
  view.chosen = row;
  if (open) view.open = true;
  const scroll = document.getElementById('scroll');
  if (row.y < scroll.scrollTop) scroll.scrollTop = row.y;
  if (row.y + row.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = row.y + row.height - scroll.clientHeight;
  changed();
}

function closeDetails() {
  view.open = false;
  document.getElementById('map').focus({preventScroll: true});
  changed();
}
