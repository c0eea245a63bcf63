// The heat map. Within a row each column of pixels is split by the shares of the bands in its bin,
// from the bottom: SPINNING, PRODUCTIVE, UNKNOWN, no verdict, HALTED, nothing known. So every pixel
// has the colour of one band, and no mixture has to be read.

const GUTTER = 96;  // CSS pixels for the labels
const STACK = [2, 3, 4, 0, 1, MISSING];
// A band lasts a tick at least, so less of one than this part of a tick is the edge of a tick in the
// next bin, whose read came a little late; it is in the numbers, and not drawn.
const EDGE = 1 / 20;

// The largest share of such a bin that is an edge.
const edgeOf = (binWidth) => Math.min(WHOLE / 4, Math.max(2, page.tick * EDGE / binWidth * WHOLE));

function fitCanvas(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const pixels = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== pixels[0]) canvas.width = pixels[0];
  if (canvas.height !== pixels[1]) canvas.height = pixels[1];
  canvas.style.height = height + 'px';
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return {context, scale};
}

// Heights in pixels of the shares, together `height`; what is there at all has a pixel.
function splitHeight(shares, height, heights) {
  let used = 0;
  let largest = 0;
  for (let i = 0; i < shares.length; ++i) {
    heights[i] = shares[i] > 0 ? Math.max(1, Math.round(shares[i] / WHOLE * height)) : 0;
    used += heights[i];
    if (shares[i] > shares[largest]) largest = i;
  }
  heights[largest] = Math.max(0, heights[largest] + height - used);
}

// The pixels of one row: `width` x `height`, device pixels, the first at the instant `from`.
function paintRow(pixels, width, height, row, bins, from, nsPerPixel) {
  const level = levelFor(bins, nsPerPixel);
  const columns = row ? levelOf(row, level) : null;
  const binWidth = bins ? bins.width * 2 ** level : 1;
  const shares = new Array(STACK.length);
  const heights = new Array(STACK.length);
  // Below the bands, the higher the larger the share of the time that was starved.
  const highestLane = Math.max(1, Math.round(height / 4));
  const edge = row && row.drawn ? 2 : edgeOf(binWidth);
  let painted = null;
  let lane = 0;
  for (let x = 0; x < width; ++x) {
    const bin = columns ? Math.floor((from + (x + 0.5) * nsPerPixel - bins.origin) / binWidth) - columns.first : -1;
    const inside = columns && bin >= 0 && bin < columns.bins;
    if (bin !== painted || x === 0) {
      let measured = 0;
      for (let i = 0; i < STACK.length - 1; ++i) {
        const share = inside ? columns.bands[STACK[i]][bin] : 0;
        measured += share;
        shares[i] = share > edge ? share : 0;
      }
      const missing = WHOLE - measured;
      shares[STACK.length - 1] = missing > edge || measured <= edge ? Math.max(1, missing) : 0;
      const starved = inside ? columns.starved[bin] : 0;
      lane = starved > edge ? Math.max(1, Math.round(starved / WHOLE * highestLane)) : 0;
      splitHeight(shares, height - lane, heights);
      painted = bin;
    }
    let y = height - lane;
    for (let i = 0; i < STACK.length; ++i) {
      for (let top = Math.max(0, y - heights[i]); y > top;) {
        --y;
        pixels[y * width + x] = pixelOf(STACK[i], x, y);
      }
    }
    for (y = height - lane; y < height; ++y) pixels[y * width + x] = palette.pixel.starved;
  }
}

function plotArea() {
  return {left: GUTTER, width: Math.max(50, document.getElementById('scroll').clientWidth - GUTTER)};
}

const toX = (ns) => GUTTER + (ns - view.from) / (view.to - view.from) * plotArea().width;
const toNs = (x) => view.from + (x - GUTTER) / plotArea().width * (view.to - view.from);

function drawMap() {
  const scroll = document.getElementById('scroll');
  const canvas = document.getElementById('map');
  const total = heightOfRows();
  document.getElementById('spacer').style.height = total + 'px';
  const visible = view.printing ? total : Math.min(total, Math.max(120, Math.round(window.innerHeight * 0.62)));
  const {context, scale} = fitCanvas(canvas, scroll.clientWidth, visible);
  const top = Math.min(scroll.scrollTop, Math.max(0, total - visible));
  const plot = plotArea();
  context.fillStyle = palette.paper;
  context.fillRect(0, 0, scroll.clientWidth, visible);
  const bins = binsFor(view.from, view.to);
  const shown = page.rows.filter((row) => row.y + row.height > top && row.y < top + visible);
  for (const row of shown) drawRow(context, scale, row, row.y - top, plot, bins);
  drawOverlays(context, shown, top, visible, plot);
  for (const row of shown) if (row.kind === 'vm') drawHeading(context, row, row.y - top);
  // Where things are, for those who look at the drawing from outside.
  canvas.dataset.from = view.from;
  canvas.dataset.to = view.to;
  canvas.dataset.plotLeft = plot.left;
  canvas.dataset.plotWidth = plot.width;
  canvas.dataset.rows = JSON.stringify(shown.filter((row) => row.kind === 'vcpu')
      .map((row) => ({key: row.key, y: row.y - top, height: row.height})));
}

// Over the markers' lines, which would strike it through.
function drawHeading(context, row, y) {
  context.font = '600 12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = palette.paper;
  context.fillRect(6, y + 2, context.measureText(row.label).width + 4, row.height - 3);
  context.fillStyle = palette.ink;
  context.fillText(row.label, 8, y + row.height / 2 + 1);
}

function drawRow(context, scale, row, y, plot, bins) {
  if (row.kind === 'vm') return;
  context.fillStyle = palette.ink;
  context.textBaseline = 'middle';
  context.font = '12px system-ui, sans-serif';
  if (row === view.chosen) {
    context.fillStyle = palette.focus;
    context.fillRect(0, y, 5, row.height);
    context.fillStyle = palette.ink;
    context.font = '600 12px system-ui, sans-serif';
  }
  context.fillText(row.label, 16, y + row.height / 2 + 1);
  if (row.kind === 'unopened') {
    context.fillStyle = palette.faint;
    context.fillText(row.why, plot.left + 6, y + row.height / 2 + 1);
    return;
  }
  const width = Math.round(plot.width * scale);
  const height = Math.max(1, Math.round((row.height - 3) * scale));
  const image = context.createImageData(width, height);
  const columns = columnsOf(bins, row);
  paintRow(new Uint32Array(image.data.buffer), width, height, columns, bins, view.from, (view.to - view.from) / width);
  context.putImageData(image, Math.round(plot.left * scale), Math.round((y + 1) * scale));
}
