// The whole time in small, above the map: all vCPUs together, and a frame about the time that is shown. It can be
// dragged; a press beside the frame brings the frame there.

const MINIMAP_HEIGHT = 26;
const MINIMAP_BINS = 2048;  // at most: of more, twice as wide ones

const minimap = {of: null, bins: null, row: null};

// The mean of all vCPUs, in bins that are wide enough.
function wholeInSmall(bins) {
  if (minimap.of === bins) return;
  const rows = [...bins.rows.values()];
  let level = 0;
  while (Math.max(...rows.map((row) => row.bins)) / 2 ** level > MINIMAP_BINS) ++level;
  minimap.of = bins;
  minimap.bins = {origin: bins.origin, width: bins.width * 2 ** level};
  minimap.row = meanOf(rows.map((row) => levelOf(row, level)), ['starved'], minimap.bins.width);
}

const minimapX = (ns) => GUTTER + (ns - view.begin) / (view.end - view.begin) * plotArea().width;
const minimapNs = (x) => view.begin + (x - GUTTER) / plotArea().width * (view.end - view.begin);

function drawMinimap() {
  const canvas = document.getElementById('minimap');
  const {context, scale} = fitCanvas(canvas, canvas.clientWidth, MINIMAP_HEIGHT);
  const plot = plotArea();
  context.fillStyle = palette.panel;
  context.fillRect(0, 0, canvas.clientWidth, MINIMAP_HEIGHT);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = palette.faint;
  context.fillText('all vCPUs', 8, MINIMAP_HEIGHT / 2);
  if (!page.bins || page.bins.rows.size === 0) return;
  wholeInSmall(page.bins);
  const width = Math.round(plot.width * scale);
  const height = Math.round((MINIMAP_HEIGHT - 8) * scale);
  const image = context.createImageData(width, height);
  paintRow(new Uint32Array(image.data.buffer), width, height, minimap.row, minimap.bins, view.begin, (view.end - view.begin) / width);
  context.putImageData(image, Math.round(plot.left * scale), Math.round(4 * scale));
  drawFrame(context, plot);
}

function drawFrame(context, plot) {
  const from = minimapX(view.from);
  const to = Math.max(from + 3, minimapX(view.to));
  context.fillStyle = palette.veil;
  context.fillRect(plot.left, 0, from - plot.left, MINIMAP_HEIGHT);
  context.fillRect(to, 0, plot.left + plot.width - to, MINIMAP_HEIGHT);
  context.strokeStyle = palette.focus;
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, to - from - 2, MINIMAP_HEIGHT - 2);
  context.lineWidth = 1;
}

function listenToMinimap() {
  const canvas = document.getElementById('minimap');
  const nsUnder = (event) => minimapNs(event.clientX - canvas.getBoundingClientRect().left);
  let held = null;  // from the frame's begin to the pointer
  const moveTo = (from) => show(from, from + view.to - view.from);
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const ns = nsUnder(event);
    if (ns < view.from || ns > view.to) moveTo(ns - (view.to - view.from) / 2);
    held = ns - view.from;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (held !== null) moveTo(nsUnder(event) - held);
  });
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { held = null; });
}
