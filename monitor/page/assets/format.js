// Numbers as people read them. What was not measured is a dash, never a zero.

const DASH = '\u2013';
const NS_PER_S = 1e9;

function formatShare(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return DASH;
  return (share * 100).toFixed(1) + '\u00a0%';
}

function formatNumber(value, digits) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  return value.toFixed(digits);
}

// 1.23 G; below 1000 as it is.
function formatCount(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  const units = ['', ' k', ' M', ' G', ' T', ' P', ' E'];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  const digits = unit === 0 && Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toFixed(digits) + units[unit];
}

// What an event counted: ns of the software clocks, else a number.
const isClock = (event) => event === 'task-clock' || event === 'cpu-clock';

function formatEvent(event, value) {
  return isClock(event) ? formatSeconds(value) : formatCount(value);
}

// Of an event per second: the share of it that a clock ran.
function formatRate(event, perSecond) {
  return isClock(event) ? formatShare(perSecond === null ? null : perSecond / NS_PER_S) : formatCount(perSecond) + '/s';
}

function formatSeconds(ns) {
  return ns === null || ns === undefined ? DASH : (ns / NS_PER_S).toFixed(3) + ' s';
}

// A length of time: "25 ms", "1 min 40 s".
function formatLength(ns) {
  if (ns === null || ns === undefined) return DASH;
  const trim = (value) => String(Number(value.toPrecision(6)));
  if (ns < 1e3) return trim(ns) + ' ns';
  if (ns < 1e6) return trim(ns / 1e3) + ' \u00b5s';
  if (ns < 1e9) return trim(ns / 1e6) + ' ms';
  if (ns < 60e9) return trim(ns / 1e9) + ' s';
  const seconds = ns / NS_PER_S;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = trim(seconds % 60);
  return (hours ? hours + ' h ' : '') + minutes + ' min' + (rest !== '0' ? ' ' + rest + ' s' : '');
}

// Decimals that tell seconds apart in such steps: 3 for 25 ms.
function digitsOf(stepNs) {
  const step = Math.max(1, Math.round(stepNs));
  const least = Math.max(0, Math.ceil(-Math.log10(step / NS_PER_S) - 1e-9));
  let digits = 0;
  for (let unit = NS_PER_S; digits < least + 2 && digits < 9 && step % unit !== 0; unit /= 10) ++digits;
  return digits;
}

// An instant after the start, told as finely as `stepNs`: "1:02:03.250", "12.5 s" below a minute; or the time of day.
function formatInstant(ns, stepNs) {
  const digits = digitsOf(stepNs);
  if (clock.ofDay) return formatTimeOfDay(ns, digits);
  const sign = ns < 0 ? '\u2212' : '';
  const seconds = Math.abs(ns) / NS_PER_S;
  if (seconds < 60) return sign + seconds.toFixed(digits) + ' s';
  const rounded = Number(seconds.toFixed(digits));
  const rest = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, '0');
  const minutes = Math.floor(rounded / 60) % 60;
  const hours = Math.floor(rounded / 3600);
  if (!hours) return sign + minutes + ':' + rest;
  return sign + hours + ':' + String(minutes).padStart(2, '0') + ':' + rest;
}

function formatSpan(from, to, stepNs) {
  return formatInstant(from, stepNs) + ' to ' + formatInstant(to, stepNs);
}
