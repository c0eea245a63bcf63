// What is at a place of the heat map, in words: beside the pointer, and in the status line.

// Lines of text; the first says where.
function describe(row, ns) {
  const name = row.kind === 'vm' ? vmTitle(row.vm) : row.label + ' of VM ' + row.vm.vm + (row.vm.name ? ' \u201c' + row.vm.name + '\u201d' : '');
  if (row.kind === 'unopened') return [name, row.why];
  const lines = [];
  if (row.kind === 'vm') return [name, ...eventsAt(row, ns, 0)];
  const bins = binsFor(view.from, view.to);
  const step = bins ? bins.width : 1e6;
  let from = ns;
  let to = ns;
  const columns = columnsOf(bins, row);
  let sum = null;
  if (bins) {
    const level = levelFor(bins, (view.to - view.from) / (plotArea().width * (window.devicePixelRatio || 1)));
    const width = bins.width * 2 ** level;
    const n = Math.floor((ns - bins.origin) / width);
    from = bins.origin + n * width;
    to = from + width;
    if (columns) {
      const [begin, end] = placesIn(bins, columns, from, to);
      if (end > begin) sum = sumOver(bins, columns, begin, end);
    }
  }
  lines.push(name + ', ' + formatSpan(from, to, step));
  lines.push(sum && sum.measured > 0 ? inWords(sum, to - from) : missingWhy(row, ns));
  return lines.concat(eventsAt(row, ns, to - from));
}

function inWords(sum, length) {
  const figures = figuresOf(sum);
  const parts = [];
  for (const band of [2, 3, 4, 1]) {
    if (sum.bands[band] > 0) parts.push(bandLabel(band) + ' ' + formatShare(figures.shares[band]));
  }
  if (sum.judged === 0) parts.push('no verdict yet');
  parts.push('IPC ' + formatNumber(figures.ipc, 2));
  parts.push('residency ' + formatShare(figures.residency));
  if (figures.starved !== null) parts.push('starved ' + formatShare(figures.starved));
  const missing = 1 - sum.measured / length;
  if (missing > 0.005) parts.push('no sample for ' + formatShare(missing) + ' of it');
  return parts.join(', ');
}

function missingWhy(row, ns) {
  if (row.vm.ended_s !== null && ns >= row.vm.ended_s * NS_PER_S) return 'no sample: the VM had ended';
  return 'no sample';
}

// Gaps, pauses, the phase and markers near an instant.
function eventsAt(row, ns, width) {
  const lines = [];
  const slack = Math.max(width, (view.to - view.from) / plotArea().width * 3);
  for (const gap of page.events.gaps) {
    const concerns = gap.vm === 0 || gap.vm === row.vm.vm;
    if (!concerns || !touches({from: gap.from_ns, to: gap.to_ns}, ns - slack / 2, ns + slack / 2)) continue;
    lines.push('gap: ' + gap.reason + ', ' + gap.ticks + (gap.ticks === 1 ? ' tick' : ' ticks') +
        (gap.vcpu !== null ? ', vCPU ' + gap.vcpu : '') + (gap.errno ? ', ' + gap.errno : ''));
    if (lines.length >= 3) break;
  }
  for (const pause of page.events.pauses) {
    if ((pause.vm === null || pause.vm === row.vm.vm) && ns >= pause.from && ns < pause.to) {
      lines.push((pause.vm === null ? 'the recording was paused' : 'the VM was paused') + (pause.detail ? ': ' + pause.detail : ''));
    }
  }
  const phase = page.events.phases.find((candidate) => ns >= candidate.from && ns < candidate.to);
  if (phase) lines.push('phase ' + phase.name);
  return lines;
}

function showStatus(row, ns) {
  document.getElementById('status').textContent = describe(row, ns).join(' \u00b7 ');
}

// Below the row, so that it can be read on; above it at the end of the window. `top`: of the row.
function showTooltip(row, ns, x, top) {
  const tooltip = document.getElementById('tooltip');
  tooltip.textContent = describe(row, ns).join('\n');
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  tooltip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + 'px';
  const below = top + row.height + 4;
  tooltip.style.top = Math.max(4, below + box.height > window.innerHeight ? top - box.height - 4 : below) + 'px';
}

function hideTooltip() {
  document.getElementById('tooltip').hidden = true;
}
