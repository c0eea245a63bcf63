// The mouse, and touch, on heat map and axis.

const CLICK = 4;  // pixels that a click may move

function listenToMouse() {
  const map = document.getElementById('map');
  const scroll = document.getElementById('scroll');
  const rowUnder = (event) => rowAt(event.clientY - map.getBoundingClientRect().top + scrollOffset());
  const nsUnder = (event) => toNs(event.clientX - map.getBoundingClientRect().left);
  const scrollOffset = () => map.getBoundingClientRect().top - scroll.getBoundingClientRect().top <= 1 ? scroll.scrollTop : 0;
  let drag = null;

  map.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    map.focus({preventScroll: true});
    drag = {x: event.clientX, at: nsUnder(event), row: rowUnder(event), moved: false};
    map.setPointerCapture(event.pointerId);
  });
  map.addEventListener('pointermove', (event) => {
    const row = rowUnder(event);
    const ns = nsUnder(event);
    if (drag && Math.abs(event.clientX - drag.x) > CLICK) drag.moved = true;
    if (drag && drag.moved) {
      const clamp = (at) => Math.min(Math.max(at, view.from), view.to);
      view.span = {from: clamp(Math.min(drag.at, ns)), to: clamp(Math.max(drag.at, ns))};
      if (page.bins) view.span = toWholeBins(binsFor(view.from, view.to), view.span);
    }
    const inside = row && event.clientX - map.getBoundingClientRect().left >= GUTTER;
    view.cursor = inside ? ns : null;
    if (inside) {
      showStatus(row, ns);
      showTooltip(row, ns, event.clientX, map.getBoundingClientRect().top + row.y - scrollOffset());
    } else {
      hideTooltip();
    }
    changed();
  });
  map.addEventListener('pointerup', () => {
    if (drag && drag.row && !drag.moved && (drag.row.kind === 'vm' || drag.row.kind === 'mean')) toggleFold(drag.row.vm.vm);
    else if (drag && drag.row) choose(drag.row, !drag.moved);
    drag = null;
  });
  map.addEventListener('pointercancel', () => { drag = null; });
  map.addEventListener('pointerleave', () => {
    hideTooltip();
    if (!drag) view.cursor = null;
    changed();
  });
  map.addEventListener('dblclick', (event) => {
    if (view.span) show(view.span.from, view.span.to);
    else zoom(0.25, nsUnder(event));
    view.span = null;
  });
  for (const canvas of [map, document.getElementById('axis')]) listenToWheel(canvas);
  listenToAxis();
  scroll.addEventListener('scroll', changed);
}

function listenToWheel(canvas) {
  canvas.addEventListener('wheel', (event) => {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    const unit = event.deltaMode === 0 ? 1 : 33;
    const sideways = event.deltaX !== 0 ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (x < GUTTER || (!event.ctrlKey && !event.metaKey && sideways === 0)) return;  // scrolls rows and page
    event.preventDefault();
    if (sideways !== 0) pan(sideways * unit / plotArea().width * (view.to - view.from));
    else zoom(2 ** (event.deltaY * unit / 300), toNs(x));
  }, {passive: false});
}

function listenToAxis() {
  const axis = document.getElementById('axis');
  let last = null;
  axis.addEventListener('pointerdown', (event) => {
    last = event.clientX;
    axis.setPointerCapture(event.pointerId);
  });
  axis.addEventListener('pointermove', (event) => {
    if (last === null) return;
    pan((last - event.clientX) / plotArea().width * (view.to - view.from));
    last = event.clientX;
  });
  for (const end of ['pointerup', 'pointercancel']) axis.addEventListener(end, () => { last = null; });
}
