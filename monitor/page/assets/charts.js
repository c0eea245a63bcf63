// Lines over the visible time: IPC, residency, starved, each counter per second.

// The CPU of the host on which the last reading before `until` found the thread; null: none did, or later moves are not kept.
function hostCpuAt(vcpu, until) {
  const moves = vcpu.host_cpu_moves;
  if (vcpu.host_cpu_moves_omitted > 0 && until > moves[moves.length - 1].t_s * NS_PER_S) return null;
  let cpu = null;
  for (const move of moves) {
    if (move.t_s * NS_PER_S > until) break;
    cpu = move.cpu;
  }
  return cpu;
}

// What can be drawn of a vCPU: [{title, format, of(figures, point), most}]; `most`: the axis ends there.
function chartsOf(columns, vcpu) {
  const charts = [
    {title: 'IPC', format: (value) => formatNumber(value, 2), of: (figures) => figures.ipc},
    {title: 'residency', format: formatShare, of: (figures) => figures.residency, most: 1},
    {title: 'starved', format: formatShare, of: (figures) => figures.starved, most: 1},
  ];
  const moves = vcpu.host_cpu_moves || [];
  if (moves.length > 0) {
    charts.push({title: 'host CPU', format: (cpu) => 'CPU ' + formatNumber(cpu, 0), of: (_, point) => hostCpuAt(vcpu, point.to),
      most: Math.max(1, ...moves.map((move) => move.cpu))});
  }
  columns.numbers.filter((number) => number.key !== 'ipc').forEach((number, i) => charts.push({
    title: number.label, format: (value) => formatNumber(value, number.decimals), of: (figures) => figures.numbers[i].value,
  }));
  columns.events.forEach((event, i) => charts.push({
    title: event.name + (isClock(event.name) ? ', share of time' : ' per second') + (event.estimated ? ' (estimated)' : ''),
    format: (value) => (isClock(event.name) ? formatRate(event.name, value) : formatCount(value)), of: (figures) => figures.events[i].perSecond,
  }));
  return charts;
}

// Figures per pixel column (or per bin, where those are wider) of the visible time.
function seriesOf(bins, columns, width) {
  const nsPerPixel = (view.to - view.from) / width;
  const group = Math.max(1, Math.ceil(nsPerPixel / bins.width));
  const [begin, end] = placesIn(bins, columns, view.from, view.to);
  // Groups begin at multiples, so that panning changes no value.
  const first = Math.floor((begin + columns.first) / group) * group - columns.first;
  const series = [];
  for (let at = first; at < end; at += group) {
    const sum = sumOver(bins, columns, Math.max(0, at), Math.min(columns.bins, at + group));
    const from = bins.origin + (columns.first + at) * bins.width;
    series.push({from, to: from + group * bins.width, figures: sum.measured > 0 ? figuresOf(sum) : null});
  }
  return series;
}

// Lines at a half and all of the scale, with their values.
function drawGrid(context, width, y, chart, most) {
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'top';
  context.lineWidth = 1;
  for (const value of [most, most / 2]) {
    context.strokeStyle = palette.line;
    context.beginPath();
    context.moveTo(0, Math.round(y(value)) + 0.5);
    context.lineTo(width, Math.round(y(value)) + 0.5);
    context.stroke();
    const text = chart.format(value);
    context.fillStyle = palette.veil;
    context.fillRect(2, y(value) + 1, context.measureText(text).width + 4, 12);
    context.fillStyle = palette.faint;
    context.fillText(text, 4, y(value) + 2);
  }
}

function drawChart(canvas, value, chart, series) {
  const width = plotArea().width;
  canvas.style.width = width + 'px';
  const {context} = fitCanvas(canvas, width, 84);
  context.fillStyle = palette.paper;
  context.fillRect(0, 0, width, 84);
  const values = series.map((point) => (point.figures ? chart.of(point.figures, point) : null));
  const most = chart.most || Math.max(1e-12, ...values.filter((one) => one !== null)) * 1.05;
  const x = (ns) => (ns - view.from) / (view.to - view.from) * width;
  const y = (one) => 80 - Math.min(1, one / most) * 74;
  if (view.span) {
    context.fillStyle = palette.span;
    context.fillRect(x(view.span.from), 0, x(view.span.to) - x(view.span.from), 84);
  }
  context.strokeStyle = palette.marker;
  for (const marker of page.events.markers) drawVertical(context, x(marker.at), 84, [4, 3]);
  context.strokeStyle = palette.starved;
  context.lineWidth = 1.5;
  context.beginPath();
  let open = false;
  series.forEach((point, i) => {
    if (values[i] === null) {
      open = false;
      return;
    }
    if (open) context.lineTo(x(point.from), y(values[i]));
    else context.moveTo(x(point.from), y(values[i]));
    context.lineTo(x(point.to), y(values[i]));
    open = true;
  });
  context.stroke();
  if (values.some((one) => one !== null)) {
    drawGrid(context, width, y, chart, most);
  } else {
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = palette.faint;
    context.fillText('not measured in this time', 6, 42);
  }
  const at = view.cursor === null ? -1 : series.findIndex((point) => view.cursor >= point.from && view.cursor < point.to);
  value.textContent = at < 0 ? '' : chart.format(values[at]) + ' at ' + formatInstant(series[at].from, series[at].to - series[at].from);
  if (view.cursor !== null) {
    context.strokeStyle = palette.ink;
    context.lineWidth = 1;
    drawVertical(context, x(view.cursor), 84, [1, 2]);
  }
}
