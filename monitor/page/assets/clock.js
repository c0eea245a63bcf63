// Whether instants are shown as the time since the recording's start, or as the time of day in UTC by the host's clock at
// that start.

const NS_PER_DAY = 86400e9;
const clock = {ofDay: false, startOfDay: null};  // startOfDay: ns after midnight; null: not known

// `start`: as "2026-01-02T03:04:05.000Z", or null.
function setClock(start) {
  const ms = start ? Date.parse(start) : NaN;
  clock.startOfDay = Number.isFinite(ms) ? ms % 86400e3 * 1e6 : null;
}

// "03:04:05.250", "+1d 00:00:07" on the next day.
function formatTimeOfDay(ns, digits) {
  const unit = 10 ** (9 - digits);
  const rounded = Math.round((clock.startOfDay + ns) / unit) * unit;
  const day = Math.floor(rounded / NS_PER_DAY);
  const seconds = (rounded - day * NS_PER_DAY) / NS_PER_S;
  const two = (value) => String(Math.floor(value)).padStart(2, '0');
  return (day === 0 ? '' : (day > 0 ? '+' : '\u2212') + Math.abs(day) + 'd ') +
      two(seconds / 3600) + ':' + two(seconds / 60 % 60) + ':' + (seconds % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, '0');
}

// The instant as an element that follows the clock.
function instant(ns, stepNs) {
  const made = element('span', formatInstant(ns, stepNs), 'instant');
  made.dataset.ns = ns;
  made.dataset.step = stepNs;
  return made;
}

function setOfDay(ofDay) {
  clock.ofDay = ofDay && clock.startOfDay !== null;
  document.getElementById('clock').setAttribute('aria-pressed', String(clock.ofDay));
  for (const one of document.querySelectorAll('.instant')) {
    one.textContent = formatInstant(Number(one.dataset.ns), Number(one.dataset.step));
  }
  changed();
}
