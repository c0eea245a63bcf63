// What happened at an instant or for a while: markers and the phases they begin, pauses, gaps.

// {markers, phases, pauses, gaps}, in ns after the start.
function collectEvents(head) {
  const report = head.report;
  const markers = report.markers.map((marker) => ({name: marker.name, at: marker.t_ns}));
  const phases = markers.map((marker, i) => ({
    name: marker.name, from: marker.at, to: i + 1 < markers.length ? markers[i + 1].at : Infinity,
  }));
  return {markers, phases, pauses: pausesOf(report.life_cycle), gaps: head.gaps};
}

// vm null: the whole recording.
function pausesOf(lifeCycle) {
  const pauses = [];
  const open = new Map();
  for (const change of lifeCycle) {
    const at = change.t_s * NS_PER_S;
    const whole = change.kind === 'recording-paused' || change.kind === 'recording-resumed';
    const vm = whole ? null : change.vm;
    if (change.kind === 'vm-paused' || change.kind === 'recording-paused') {
      open.set(vm, {vm, from: at, to: Infinity, detail: change.detail});
      pauses.push(open.get(vm));
    } else if (open.has(vm) && ['vm-resumed', 'recording-resumed', 'vm-ended'].includes(change.kind)) {
      open.get(vm).to = at;
      open.delete(vm);
    }
  }
  return pauses;
}

const touches = (event, from, to) => event.from < to && event.to > from || event.from === event.to && event.from >= from && event.from < to;

function drawGapHatch(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = palette.paper;
  context.globalAlpha = 0.55;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 1;
  context.strokeStyle = palette.ink;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 5) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

// Over the rows: gaps and pauses, markers, the chosen span, the instant that is read.
function drawOverlays(context, shown, top, visible, plot) {
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.width, visible);
  context.clip();
  const right = plot.left + plot.width;
  const stretch = (event) => {
    const from = Math.max(plot.left, toX(event.from));
    return [from, Math.max(2, Math.min(right, toX(Math.min(event.to, view.end))) - from)];
  };
  for (const gap of page.events.gaps) {
    if (!touches({from: gap.from_ns, to: gap.to_ns}, view.from, view.to)) continue;
    const [x, width] = stretch({from: gap.from_ns, to: gap.to_ns});
    for (const row of shown) {
      if (canBeChosen(row) && (gap.vm === 0 || gap.vm === row.vm.vm)) {
        context.fillStyle = palette.paper;  // no verdict is of a gap: the sample behind it ends there
        context.fillRect(x, row.y - top + 1, width, row.height - 3);
        drawGapHatch(context, x, row.y - top + 1, width, row.height - 3);
      }
    }
  }
  for (const pause of page.events.pauses) {
    if (!touches(pause, view.from, view.to)) continue;
    const [x, width] = stretch(pause);
    for (const row of shown) {
      if (row.kind !== 'vm' || (pause.vm !== null && pause.vm !== row.vm.vm)) continue;
      context.fillStyle = palette.faint;
      context.fillRect(x, row.y - top + row.height - 6, width, 4);
      if (width > 50) context.fillText('paused', x + 3, row.y - top + row.height / 2 - 3);
    }
  }
  context.strokeStyle = palette.marker;
  context.lineWidth = 1;
  for (const marker of page.events.markers) {
    if (marker.at < view.from || marker.at > view.to) continue;
    drawVertical(context, toX(marker.at), visible, [4, 3]);
  }
  if (view.span) {
    // Its edges alone: a tint would change the colours of the bands. The axis has the tint.
    context.strokeStyle = palette.focus;
    context.lineWidth = 2;
    drawVertical(context, toX(view.span.from), visible, []);
    drawVertical(context, toX(view.span.to), visible, []);
    context.lineWidth = 1;
  }
  if (view.cursor !== null) {
    context.strokeStyle = palette.ink;
    drawVertical(context, toX(view.cursor), visible, [1, 2]);
  }
  context.restore();
}

function drawVertical(context, x, height, dashes) {
  const place = Math.round(x) + 0.5;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(place, 0);
  context.lineTo(place, height);
  context.stroke();
  context.setLineDash([]);
}
