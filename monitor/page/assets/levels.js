// Levels of detail: each has bins twice as wide as the one before, so that a drawing never looks at
// more than about two bins per pixel, whatever the zoom. Made once for each row, of the shares that
// are drawn.

function foldShares(column, startsOdd, folded) {
  const out = new Uint16Array(folded);
  const shift = startsOdd ? 1 : 0;
  const last = column.length - 1;
  for (let i = 0; i < folded; ++i) {
    const left = 2 * i - shift;
    const sum = (left >= 0 ? column[left] : 0) + (left + 1 <= last ? column[left + 1] : 0);
    // What happened at all is never nothing.
    out[i] = (sum + 1) >> 1;
  }
  return out;
}

function foldLevel(level) {
  const startsOdd = (level.first & 1) !== 0;
  const folded = (level.bins + (startsOdd ? 1 : 0) + 1) >> 1;
  return {
    first: Math.floor(level.first / 2), bins: folded,
    bands: level.bands.map((column) => foldShares(column, startsOdd, folded)),
    starved: foldShares(level.starved, startsOdd, folded),
  };
}

// Level n of a row, made when it is first asked for, with all below it.
function levelOf(row, n) {
  const {bands, starved} = row.drawn || row;
  if (!row.levels) row.levels = [{first: row.first, bins: row.bins, bands, starved}];
  while (row.levels.length <= n) row.levels.push(foldLevel(row.levels[row.levels.length - 1]));
  return row.levels[n];
}

function prepareLevels(bins) {
  for (const row of bins.rows.values()) {
    let n = 0;
    while (levelOf(row, n).bins > 256) ++n;
  }
}

// The level whose bins are as wide as a pixel, or a little wider.
function levelFor(bins, nsPerPixel) {
  return Math.max(0, Math.ceil(Math.log2(nsPerPixel / bins.width) - 1e-9));
}
