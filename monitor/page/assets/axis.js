// The time axis, and above it the phases.

// Round steps of time, at least `ns`.
function roundStep(ns) {
  const steps = [];
  for (let unit = 1; unit < NS_PER_S; unit *= 10) steps.push(unit, 2 * unit, 5 * unit);
  for (const seconds of [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200]) {
    steps.push(seconds * NS_PER_S);
  }
  const found = steps.find((step) => step >= ns);
  return found || Math.ceil(ns / (86400 * NS_PER_S)) * 86400 * NS_PER_S;
}

function drawAxis() {
  const canvas = document.getElementById('axis');
  const width = canvas.clientWidth;
  const {context} = fitCanvas(canvas, width, 46);
  const plot = plotArea();
  context.fillStyle = palette.panel;
  context.fillRect(0, 0, width, 46);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = palette.faint;
  if (page.events.phases.length > 0) context.fillText('phases', 8, 11);
  context.fillText(clock.ofDay ? 'UTC' : 'time', 8, 34);
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, 46);
  context.clip();
  page.events.phases.forEach((phase, i) => drawPhase(context, phase, i, plot));
  if (view.span) {
    context.fillStyle = palette.span;
    context.fillRect(toX(view.span.from), 22, toX(view.span.to) - toX(view.span.from), 24);
  }
  drawTicks(context, plot);
  context.restore();
}

function drawPhase(context, phase, i, plot) {
  const from = Math.max(plot.left, toX(phase.from));
  const to = Math.min(plot.left + plot.width, toX(Math.min(phase.to, view.end)));
  if (to <= from) return;
  context.fillStyle = i % 2 ? palette['phase-b'] : palette['phase-a'];
  context.fillRect(from, 1, to - from, 20);
  context.save();
  context.beginPath();
  context.rect(from, 0, to - from, 22);
  context.clip();
  context.fillStyle = palette.ink;
  if (to - from > 14) context.fillText(phase.name, from + 5, 11);
  context.restore();
}

function drawTicks(context, plot) {
  const step = roundStep((view.to - view.from) / Math.max(1, plot.width / 110));
  context.strokeStyle = palette.faint;
  context.fillStyle = palette.ink;
  context.lineWidth = 1;
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round(toX(at)) + 0.5;
    context.beginPath();
    context.moveTo(x, 40);
    context.lineTo(x, 46);
    context.stroke();
    const text = formatInstant(at, step);
    const half = context.measureText(text).width / 2;
    const place = Math.min(Math.max(x - half, plot.left + 1), plot.left + plot.width - 2 * half - 1);
    context.fillText(text, place, 31);
  }
}
