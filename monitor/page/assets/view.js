// Which time is shown, which vCPU and span are chosen. All times in ns after the recording's start.

const view = {
  from: 0, to: 1,                // shown
  begin: 0, end: 1,              // of all that there is
  chosen: null,                  // the row of a vCPU, of rows.js
  open: false,                   // its details are shown
  span: null,                    // {from, to}, chosen
  cursor: null,                  // an instant that is read
  printing: false,               // all rows are drawn, not those that fit the window
  redraw: () => {},
};

let redrawAsked = false;
function changed() {
  if (redrawAsked) return;
  redrawAsked = true;
  requestAnimationFrame(() => {
    redrawAsked = false;
    view.redraw();
  });
}

// The narrowest stretch worth looking at: a few of the finest bins there can be.
function narrowest() {
  if (!page.bins) return 1;
  return 8 * (page.served ? page.bins.smallest : page.bins.width);
}

function show(from, to) {
  const whole = view.end - view.begin;
  const length = Math.min(whole, Math.max(to - from, Math.min(whole, narrowest())));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(middle - length / 2, view.begin), view.end - length);
  view.to = view.from + length;
  changed();
}

// `anchor` stays where it is.
function zoom(factor, anchor) {
  const length = Math.max((view.to - view.from) * factor, Math.min(view.end - view.begin, narrowest()));
  const place = (anchor - view.from) / (view.to - view.from);
  show(anchor - place * length, anchor + (1 - place) * length);
}

function pan(ns) {
  const length = view.to - view.from;
  const from = Math.min(Math.max(view.from + ns, view.begin), view.end - length);
  show(from, from + length);
}

function showAll() {
  show(view.begin, view.end);
}

// The span whose numbers are shown: the one chosen, else all that is visible; whole bins.
function spanShown() {
  const span = view.span || {from: view.from, to: view.to};
  const bins = binsFor(span.from, span.to);
  return bins ? toWholeBins(bins, span) : span;
}
