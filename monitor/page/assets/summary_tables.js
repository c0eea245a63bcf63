// The tables below: the report's own numbers, as `vcpulse report --json` has them.

const seconds = (value) => (value === null ? DASH : instant(value * NS_PER_S, 1e6));

// Metrics beside those that every table has, where any vCPU of the VM was measured.
const furtherMetrics = (vm) => page.metrics.filter(
    (metric) => metric.key !== 'ipc' && vm.vcpus.some((vcpu) => vcpu[metric.key] !== null));

// Without counters what ran cannot be judged: RAN in place of three bands.
const shareHeads = (degraded, spinning) => [...(degraded ? ['HALTED', 'RAN'] : ['HALTED', spinning, 'PRODUCTIVE', 'UNKNOWN']), 'starved'];
const shareCells = (degraded, shares, ran, starved) => [
  ...(degraded ? [shareCell('halted', shares.halted), shareCell('unknown', ran)] : BANDS.slice(1).map((band) => shareCell(band, shares[band]))),
  shareCell('starved', starved)];

function vcpuRow(vm, vcpu) {
  const button = element('button', String(vcpu.index));
  button.title = 'Show it';
  button.setAttribute('aria-label', 'vCPU ' + vcpu.index + ' of VM ' + vm.vm + ': show it');
  button.addEventListener('click', () => {
    reveal(rowKey(vm.vm, vcpu.index));
    openChosen();
  });
  const estimate = (event) => (vcpu.estimated_events.includes(event) ? '~' : '');
  return [button, vcpu.tid === null ? DASH : String(vcpu.tid), ...shareCells(isDegraded(vm), vcpu.share, vcpu.run_share, vcpu.starved_share),
    formatNumber(vcpu.ipc ? vcpu.ipc.mean : null, 2), formatShare(vcpu.residency), formatShare(vcpu.run_delay_share),
    ...furtherMetrics(vm).map((metric) => formatNumber(vcpu[metric.key], metric.decimals)),
    ...Object.keys(vcpu.counts_scaled).map((event) => estimate(event) + formatEvent(event, vcpu.counts_scaled[event])),
    Object.entries(vcpu.unknown_reasons).map(([reason, share]) => reason + ' ' + formatShare(share)).join(', ')];
}

// What explains some time on a CPU; nothing where nothing does.
function causesText(time) {
  const causes = time ? Object.entries(time.causes).filter(([, seconds]) => seconds > 0) : [];
  return causes.map(([cause, seconds]) => formatShare(seconds / time.seconds) + ' ' + cause).join(', ');
}

// Who ran beside a vCPU on its core.
const smtText = (neighbours) => neighbours.slice(0, 5).map((one) => formatShare(one.share) + ' vCPU ' + one.vcpu +
  ' of VM ' + one.vm_number + (one.vm === null ? '' : ' ' + one.vm)).join(', ');

// Who had the CPU of a vCPU in the windows of `record --competitors`.
function competitorText(found) {
  if (found.waited_s === 0) return 'no waiting was seen';
  const shares = found.threads.slice(0, 5).filter((one) => one.share >= 0.01).map((one) => formatShare(one.share) + ' ' + one.label);
  const rest_s = found.others_s + found.threads.slice(shares.length).reduce((sum, one) => sum + one.seconds, 0);
  if (rest_s >= 0.0005 * found.waited_s) shares.push(formatShare(rest_s / found.waited_s) + ' others');
  if (found.unattributed_s > 0) shares.push(formatShare(found.unattributed_s / found.waited_s) + ' unattributed');
  return shares.join(', ') + ' of the ' + (1000 * found.waited_s).toFixed(0) + ' ms that it waited (CPU ' +
    found.cpus.join(', ') + ')';
}

// Which code a vCPU ran in the windows of `record --hotspots`.
function hotText(hot) {
  const spots = hot.spots.slice(0, 5).map((spot) => formatShare(spot.share) + ' ' + spot.name + (spot.mode === 'user' ? ' (user)' : ''));
  const windows = hot.windows ? hot.windows.spinning + hot.windows.starved : 0;
  return spots.join(', ') + (spots.length > 0 ? ' of ' : '') + hot.samples + ' samples by ' + hot.source +
      (windows > 0 ? ' in ' + windows + (windows > 1 ? ' windows' : ' window') : '') + (hot.why ? '; ' + hot.why : '') +
      (hot.code_refused ? '; its code was not read: ' + hot.code_refused : '');
}

function vmSection(vm) {
  const events = vm.vcpus.length > 0 ? Object.keys(vm.vcpus[0].counts_scaled) : [];
  const heads = ['vCPU', 'TID', ...shareHeads(isDegraded(vm), isByIpcAlone(vm) ? 'SPINNING?' : 'SPINNING'),
    'IPC', 'residency', 'run-delay', ...furtherMetrics(vm).map((metric) => metric.label), ...events, '<UNKNOWN was'];
  const made = section(vmTitle(vm), table('vCPUs of ' + vmTitle(vm), heads, vm.vcpus.map((vcpu) => vcpuRow(vm, vcpu)), true));
  const notes = new Set();
  for (const epoch of vm.epochs) {
    for (const note of epoch.notes) notes.add(note);
    for (const event of epoch.absent_events) notes.add(event.event + ' is not counted: ' + event.reason);
    for (const vcpu of epoch.unopened_vcpus) notes.add('vCPU ' + vcpu.index + ' was not opened: ' + vcpu.reason);
    if (epoch.host_side_events.length > 0) notes.add('counted in the host too: ' + epoch.host_side_events.join(', '));
  }
  if (vm.competitors_refused) notes.add('competitors were not watched: ' + vm.competitors_refused);
  if (vm.hotspots_refused) notes.add('hot addresses were not sampled: ' + vm.hotspots_refused);
  for (const vcpu of vm.vcpus) {
    const uncounted = causesText(vcpu.without_counters);
    if (uncounted) notes.add('vCPU ' + vcpu.index + ', without counters: ' + uncounted);
    const polling = causesText(vcpu.polling);
    if (polling) notes.add('vCPU ' + vcpu.index + ', halted, but busy: ' + polling);
    if (vcpu.smt_neighbours && vcpu.smt_neighbours.length > 0) {
      notes.add('vCPU ' + vcpu.index + ', on another thread of its core: ' + smtText(vcpu.smt_neighbours));
    }
    if (vcpu.competitors) notes.add('vCPU ' + vcpu.index + ', competitors: ' + competitorText(vcpu.competitors));
    if (vcpu.hotspots) notes.add('vCPU ' + vcpu.index + ', hot code: ' + hotText(vcpu.hotspots));
  }
  const list = element('ul');
  for (const note of notes) list.append(element('li', note));
  if (notes.size > 0) made.append(list);
  return made;
}

function gapsSection(report) {
  const rows = [];
  const add = (gap, where) => rows.push([where, gap.reason, gap.vcpu === null ? '' : String(gap.vcpu), gap.errno_name || '',
    String(gap.ticks), seconds(gap.first_s), seconds(gap.last_s)]);
  for (const gap of report.gaps) add(gap, 'every VM');
  for (const vm of report.vms) for (const gap of vm.gaps) add(gap, 'VM ' + vm.vm);
  if (rows.length === 0) return section('Gaps', element('p', 'None: no sample is missing.'));
  return section('Gaps', table('Gaps', ['<of', '<reason', 'vCPU', 'errno', 'ticks', 'first', 'last'], rows, true));
}

// A row per phase and VM: all its vCPUs together, each for as long as it was judged.
function phasesSection(report) {
  const rows = [];
  const degraded = report.vms.every(isDegraded);
  const once = report.phases.every((phase) => phase.spans === 1);
  for (const phase of report.phases) {
    for (const vm of report.vms) {
      const shares = sharesOfVm(phase.vcpus.filter((vcpu) => vcpu.vm === vm.vm));
      if (!shares) continue;
      rows.push([phase.name, once ? '' : String(phase.spans), formatLength(Math.round(phase.length_s * 1e3) * 1e6), vm.name || 'VM ' + vm.vm,
        ...shareCells(degraded, shares, shares.ran, shares.starved)]);
    }
  }
  if (rows.length === 0) return null;
  const spinning = report.vms.some(isByIpcAlone) ? 'SPINNING?' : 'SPINNING';
  return section('By phase', table('By phase', ['<phase', 'spans', 'length', '<VM', ...shareHeads(degraded, spinning)], rows, true));
}

function markersSection(report) {
  if (report.markers.length === 0) return null;
  const rows = page.events.phases.map((phase) => {
    const button = element('button', phase.name);
    button.title = 'Show this phase';
    button.addEventListener('click', () => show(phase.from, Math.min(phase.to, view.end)));
    const to = Math.min(phase.to, view.end);
    const length = Math.max(0, Math.round((to - phase.from) / 1e6) * 1e6);
    return [button, instant(phase.from, 1e6), length > 0 ? formatLength(length) : 'at the end'];
  });
  const made = section('Phases', table('Phases', ['<marker', 'at', 'until the next'], rows));
  if (report.markers_omitted > 0) made.append(element('p', report.markers_omitted + ' earlier ones are left out.', 'note'));
  return made;
}

function lifeCycleSection(report) {
  if (report.life_cycle.length === 0) return null;
  const rows = report.life_cycle.map((change) => [seconds(change.t_s), change.vm === null ? '' : 'VM ' + change.vm, change.kind, change.detail]);
  const made = section('Life cycle', table('Life cycle', ['at', '<of', '<what', '<detail'], rows));
  if (report.life_cycle_omitted > 0) made.append(element('p', report.life_cycle_omitted + ' earlier ones are left out.', 'note'));
  return made;
}

function pairs(title, rows) {
  const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return section(title, table(title, ['<', '<'], known.map(([name, value]) => [name, String(value)])));
}

function hostSection(report) {
  const session = report.session;
  if (!session) return section('Host', element('p', 'The session record was lost.'));
  const classifiers = new Set();
  for (const vm of report.vms) for (const epoch of vm.epochs) classifiers.add(epoch.classifier);
  const hz = (value) => (value === null ? null : (value / 1e6).toFixed(0) + ' MHz');
  const asked = session.classifier;
  // A recording that was not judged, such as an import, has none of these numbers.
  const limits = asked.halted_leave > 0;
  return pairs('Host and classifier', [
    ['host', session.host_name], ['CPU', session.cpu_model], ['machine', session.machine], ['kernel', session.kernel_release],
    ['CPUs online', session.online_cpus], ['core PMUs', session.core_pmus.join(', ')],
    ['begun', session.start], ['ended by', session.end_reason], ['vcpulse', session.tool_version],
    ['interval', session.interval_ms + ' ms' + (session.verdict_window_ms > 0 ? ', verdicts over ' + session.verdict_window_ms + ' ms' : '')],
    ['classifier', [...classifiers].join(', ') + (asked.name ? ' (asked for: ' + asked.name + ')' : '')], ['profile', asked.profile],
    ['HALTED', limits ? 'residency below ' + asked.halted_enter + ', until above ' + asked.halted_leave : ''],
    ['ipc-bands', limits ? 'SPINNING below ' + asked.spinning_below + ', PRODUCTIVE from ' + asked.productive_from : ''],
    ['residency by', session.residency_method], ['highest frequency', hz(session.max_hz_seen)], ['TSC', hz(session.tsc_hz)],
    ['blind spot', session.residency_blind_spot], ['degraded', session.degraded_reason], ['derived from', session.derived_from],
    ['stream', session.stream_id],
  ]);
}

function costSection(report) {
  const cost = report.own_cost;
  const spread = (value) => (value === null ? DASH : 'p50 ' + formatLength(value.p50) + ', p99 ' + formatLength(value.p99) + ', max ' + formatLength(value.max));
  return pairs('Own cost', [
    ['ticks', cost.ticks + ', ' + cost.ticks_missed + ' missed'], ['late by', spread(cost.tick_lateness_ns)],
    ['reading one vCPU', spread(cost.read_ns)], ['all of a VM within', spread(cost.skew_ns)],
    ['processor time', cost.cpu_s === null ? DASH : formatLength(cost.cpu_s * NS_PER_S) + (cost.cpu_share === null ? '' : ', ' + (cost.cpu_share * 100).toFixed(2) + ' % of one CPU')],
    ['scheduling', report.session && report.session.scheduling],
  ]);
}

function damageSection(report) {
  const damage = report.damage;
  if (damage.damaged_chunks === 0 && damage.lost_records === 0 && damage.unattributed_ticks === 0 && damage.ended_in_order !== false) return null;
  const rows = [
    ['records lost', damage.lost_records], ['damaged regions', damage.damaged_chunks + ' (' + damage.damaged_bytes + ' bytes)'],
    ['ticks without their vCPU set', damage.unattributed_ticks],
    ['end', damage.ended_in_order === false ? 'the recording was killed, or still runs' : 'closed cleanly'],
  ];
  for (const region of damage.regions.slice(0, 20)) rows.push(['at byte ' + region.offset, region.bytes + ' bytes: ' + region.reason]);
  return pairs('Damage and loss', rows);
}

function drawTables(report) {
  const sections = [damageSection(report), phasesSection(report), ...report.vms.map(vmSection), markersSection(report), gapsSection(report),
    lifeCycleSection(report), hostSection(report), costSection(report)];
  document.getElementById('tables').replaceChildren(...sections.filter((one) => one !== null));
}
