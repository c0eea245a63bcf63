// What one must know first: doubts about the numbers, each VM as one bar, and the worst vCPUs.

const WORST = 5;

// Why the numbers may not be what they seem: texts.
function doubtsOf(report) {
  const doubts = [];
  if (report.degraded) {
    doubts.push('DEGRADED: ' + report.degraded + '. RAN is the share of time on a CPU; whether a vCPU worked or spun there is unknown');
  }
  const damage = report.damage;
  if (damage.lost_records > 0 || damage.damaged_chunks > 0) {
    doubts.push(damage.lost_records + ' records were lost, ' + damage.damaged_chunks + ' regions of the file are damaged');
  }
  if (damage.ended_in_order === false) doubts.push('The recording was killed, or still runs: its end is missing');
  const lost = [...report.gaps, ...report.vms.flatMap((vm) => vm.gaps)].reduce((sum, gap) => sum + gap.ticks, 0);
  if (lost > 0) doubts.push('Samples are missing: ' + lost + (lost === 1 ? ' tick' : ' ticks') + ' lost (see Gaps)');
  return doubts;
}

// Shares of all vCPUs of a VM together, weighted by the time that was judged; null without any. What
// was not measured of a vCPU has no weight.
function sharesOfVm(vcpus) {
  if (!vcpus.some((vcpu) => vcpu.judged_s > 0)) return null;
  const mean = (of) => {
    const known = vcpus.filter((vcpu) => of(vcpu) !== null && of(vcpu) !== undefined && vcpu.judged_s > 0);
    const whole = known.reduce((sum, vcpu) => sum + vcpu.judged_s, 0);
    return whole > 0 ? known.reduce((sum, vcpu) => sum + of(vcpu) * vcpu.judged_s, 0) / whole : null;
  };
  const shares = {starved: mean((vcpu) => vcpu.starved_share), ran: mean((vcpu) => vcpu.run_share),
    waited: mean((vcpu) => vcpu.run_delay_share)};
  for (const band of BANDS.slice(1)) shares[band] = mean((vcpu) => vcpu.share[band]);
  return shares;
}

const isDegraded = (vm) => vm.epochs.length > 0 && vm.epochs.every((epoch) => epoch.event_set === 'degraded');

// [class, name, share]; without counters a tick in which a vCPU ran at all is UNKNOWN, so that says
// less than how long it ran.
function barParts(vm, shares) {
  if (isDegraded(vm) && shares.ran !== null) {
    const waited = Math.min(shares.waited || 0, 1 - shares.ran);
    return [['unknown', 'RAN', shares.ran], ['waited', 'waited for a CPU', waited],
      ['halted', 'off its CPU otherwise', 1 - shares.ran - waited]];
  }
  return BAR.map((band) => [BANDS[band], bandLabel(band), shares[BANDS[band]]]);
}

// From left to right: what one looks for first.
const BAR = [2, 4, 3, 1];

function barOf(vm) {
  const shares = sharesOfVm(vm.vcpus);
  const line = element('div', undefined, 'vm-bar');
  const name = element('button', vm.name || 'VM ' + vm.vm);
  name.title = 'Show its rows';
  name.addEventListener('click', () => showVm(vm.vm));
  line.append(name);
  if (!shares) {
    line.append(element('span', 'never measured', 'note'));
    return line;
  }
  const bar = element('div', undefined, 'bar');
  const words = [];
  for (const [band, name, share] of barParts(vm, shares)) {
    if (!(share > 0)) continue;
    const part = element('span', undefined, 'band-' + band);
    part.style.flexGrow = share;
    bar.append(part);
    words.push(name + ' ' + formatShare(share));
  }
  if (shares.starved > 0) words.push('starved ' + formatShare(shares.starved));
  bar.setAttribute('role', 'img');
  bar.setAttribute('aria-label', words.join(', '));
  line.append(bar, element('span', vm.vcpus.length + (vm.vcpus.length === 1 ? ' vCPU: ' : ' vCPUs: ') + words.join(', ')));
  return line;
}

// The longest unbroken stretches, longest first: {vm, vcpu, what, stretch}.
function worstOf(report) {
  const found = [];
  for (const vm of report.vms) {
    for (const vcpu of vm.vcpus) {
      if (vcpu.longest_spin) found.push({vm, vcpu, what: bandLabel(2), stretch: vcpu.longest_spin});
      if (vcpu.longest_starved) found.push({vm, vcpu, what: 'starved in every tick', stretch: vcpu.longest_starved});
    }
  }
  return found.sort((a, b) => b.stretch.length_s - a.stretch.length_s).slice(0, WORST);
}

function worstItem({vm, vcpu, what, stretch}) {
  const item = element('li');
  const from = stretch.from_s * NS_PER_S;
  const length = stretch.length_s * NS_PER_S;
  const button = element('button', 'vCPU ' + vcpu.index + ' of ' + (vm.name || 'VM ' + vm.vm) + ': ' + what + ' for ' +
      formatLength(Math.round(length / 1e6) * 1e6) + ' from ');
  button.append(instant(from, 1e8));
  button.title = 'Show it in the map';
  button.addEventListener('click', () => {
    reveal(rowKey(vm.vm, vcpu.index));
    show(from - length / 2, from + 1.5 * length);
    view.span = {from, to: from + length};
    openChosen();
  });
  item.append(button);
  return item;
}

function drawSummary(report) {
  const box = document.getElementById('summary');
  const doubts = element('ul', undefined, 'doubts');
  for (const doubt of doubtsOf(report)) doubts.append(element('li', doubt));
  const worst = element('ol', undefined, 'worst');
  for (const one of worstOf(report)) worst.append(worstItem(one));
  box.replaceChildren(...report.vms.map(barOf));
  if (report.vms.some(isByIpcAlone)) {
    box.append(element('p', 'SPINNING? is by instructions per cycle alone: a hint, no proof. Slow work looks the same.', 'note'));
  }
  if (doubts.children.length > 0) box.prepend(doubts);
  if (worst.children.length > 0) box.append(element('h2', 'Longest unbroken runs'), worst);
}
