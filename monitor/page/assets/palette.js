// Colours of the theme that is shown, from the style sheet.

const palette = {};

function toPixel(colour) {
  const value = parseInt(colour.slice(1), 16);
  // ImageData is red, green, blue, alpha; read as a little-endian number.
  return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) | value >> 16) >>> 0;
}

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const names = ['paper', 'ink', 'faint', 'line', 'panel', 'halted', 'spinning', 'productive', 'unknown',
    'unknown-hatch', 'none', 'none-hatch', 'missing-hatch', 'starved', 'marker', 'focus', 'span', 'veil', 'phase-a', 'phase-b'];
  palette.pixel = {};
  for (const name of names) {
    palette[name] = style.getPropertyValue('--' + name).trim();
    if (/^#[0-9a-f]{6}$/i.test(palette[name])) palette.pixel[name] = toPixel(palette[name]);
  }
}

// The pixel of a band at a place of the canvas. 5: missing.
function pixelOf(band, x, y) {
  const pixel = palette.pixel;
  switch (band) {
    case 1: return pixel.halted;
    case 2: return pixel.spinning;
    case 3: return pixel.productive;
    case 4: return (x + y) % 6 < 2 ? pixel['unknown-hatch'] : pixel.unknown;
    case 0: return x % 4 === 0 && y % 4 === 0 ? pixel['none-hatch'] : pixel.none;
    default: return (x + y) % 8 === 0 ? pixel['missing-hatch'] : pixel.paper;
  }
}

const MISSING = 5;
const LEGEND = [
  [2, 'SPINNING'], [3, 'PRODUCTIVE'], [4, 'UNKNOWN'], [1, 'HALTED'], [0, 'no verdict yet'], [MISSING, 'no sample'],
];

function drawLegend() {
  const list = document.getElementById('legend');
  list.replaceChildren();
  const degraded = page.report && page.report.vms.length > 0 && page.report.vms.every(isDegraded);
  for (const [band, name] of LEGEND) {
    if (degraded && (band === 2 || band === 3)) continue;
    addLegend(list, band === 2 ? bandLabel(band) : band === 4 && degraded ? 'UNKNOWN: it ran' : name, (image) => {
      for (let i = 0; i < image.length; ++i) image[i] = pixelOf(band, i % 22, Math.floor(i / 22));
    });
  }
  addLegend(list, 'starved (waited for a CPU for over 10 % of a tick, whatever its band): a lane below the bands, the higher the more of the time', (image) => {
    for (let i = 0; i < image.length; ++i) image[i] = i >= 22 * 8 ? palette.pixel.starved : palette.pixel.halted;
  });
  addLegend(list, 'gap', (image, context) => drawGapHatch(context, 0, 0, 22, 12));
}

function addLegend(list, name, paint) {
  const item = document.createElement('li');
  const canvas = document.createElement('canvas');
  canvas.width = 22;
  canvas.height = 12;
  const context = canvas.getContext('2d');
  const image = context.createImageData(22, 12);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(palette.pixel.paper);
  paint(pixels, context);
  if (name !== 'gap') context.putImageData(image, 0, 0);
  item.append(canvas, name);
  list.append(item);
}
