// Served by `vcpulse report --serve`, the page asks for bins that are finer than those it carries.

const finer = {bins: null, from: 0, to: 0, asked: '', timer: 0, abort: null, failed: ''};

// The bins to draw a stretch of time with.
function binsFor(from, to) {
  if (finer.bins && finer.from <= from && finer.to >= to && finer.bins.width < page.bins.width) return finer.bins;
  return page.bins;
}

// To be called when the view has changed; `done` is called when finer bins have come.
function askForFiner(view, pixels, done) {
  if (!page.served || !page.bins) return;
  clearTimeout(finer.timer);
  // Not before a bin of the page's is some pixels wide: the wider the view, the longer the server
  // reads.
  const wanted = (view.to - view.from) / pixels;
  if (wanted * 4 > page.bins.width || page.bins.width <= page.bins.smallest) return;
  finer.timer = setTimeout(() => fetchFiner(view.from, view.to, pixels, done), 120);
}

async function fetchFiner(from, to, pixels, done) {
  const margin = (to - from) / 4;
  const begin = Math.floor(from - margin);
  const end = Math.ceil(to + margin);
  const count = Math.max(1, Math.min(8192, Math.round(pixels * 1.5)));
  const address = 'bins?from=' + begin + '&to=' + end + '&bins=' + count;
  const width = (end - begin) / count;
  const have = finer.bins && finer.from <= from && finer.to >= to &&
      finer.bins.width <= Math.max(2 * width, page.bins.smallest);
  if (have || address === finer.asked) return;
  if (finer.abort) finer.abort.abort();
  finer.abort = new AbortController();
  finer.asked = address;
  try {
    const answer = await fetch(address, {signal: finer.abort.signal});
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const {bins} = unpack(await answer.arrayBuffer());
    if (finer.asked !== address) return;
    finer.bins = bins;
    finer.from = begin;
    finer.to = end;
    finer.failed = '';
  } catch (error) {
    if (error.name === 'AbortError') return;
    finer.failed = String(error.message || error);
  }
  finer.asked = '';
  done();
}
