// The numbers of the chosen vCPU over a span.

function numbersTable(bins, columns, span) {
  const [begin, end] = columns ? placesIn(bins, columns, span.from, span.to) : [0, 0];
  const sum = columns ? sumOver(bins, columns, begin, Math.max(begin, end)) : null;
  if (!sum || sum.measured === 0) return element('p', 'No sample in this span.');
  const figures = figuresOf(sum);
  const rows = [];
  for (const band of [1, 2, 3, 4]) rows.push([bandLabel(band), formatShare(figures.shares[band]), '']);
  rows.push(['starved', formatShare(figures.starved), '']);
  rows.push(['IPC', formatNumber(figures.ipc, 3), '']);
  rows.push(['residency', formatShare(figures.residency), '']);
  for (const number of figures.numbers) rows.push([number.label, formatNumber(number.value, number.decimals + 1), '']);
  for (const event of figures.events) {
    const mark = event.estimated && event.count !== null ? '~' : '';
    rows.push([event.name, mark + formatEvent(event.name, event.count), event.perSecond === null ? DASH : mark + formatRate(event.name, event.perSecond)]);
  }
  rows.push(['measured', formatLength(Math.round(sum.measured)), formatShare(sum.measured / (span.to - span.from))]);
  const made = table('Numbers of the span', ['<', 'sum or share', 'rate, part'], rows);
  return made;
}
