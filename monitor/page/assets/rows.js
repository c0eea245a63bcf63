// The rows of the heat map: a heading per VM, then its vCPUs, those that could not be opened too; or, of a folded VM, their mean.

const ROW_HEIGHT = 18;
const HEADING_HEIGHT = 22;

function vmTitle(vm) {
  const name = vm.name ? ' \u201c' + vm.name + '\u201d' : '';
  return 'VM ' + vm.vm + name + (vm.pid ? ', pid ' + vm.pid : '') +
      (vm.ended_s !== null ? ', ended at ' + formatInstant(vm.ended_s * NS_PER_S, 1e8) : '');
}

// Those of the latest epoch that names them, unless they were opened at another time.
function unopenedOf(vm) {
  const found = new Map();
  for (const epoch of vm.epochs) {
    for (const vcpu of epoch.unopened_vcpus) found.set(vcpu.index, vcpu);
  }
  for (const vcpu of vm.vcpus) found.delete(vcpu.index);
  return [...found.values()];
}

function layRows(report) {
  const rows = [];
  let y = 0;
  const add = (row, height) => {
    rows.push({...row, y, height, place: rows.length});
    y += height;
  };
  for (const vm of report.vms) {
    const passes = (vcpu) => passesFilter(vmTitle(vm) + ' vCPU ' + vcpu.index);
    const vcpus = vm.vcpus.filter(passes);
    const unopened = unopenedOf(vm).filter(passes);
    if (folding.filter && vcpus.length + unopened.length === 0) continue;
    const folded = folding.folded.has(vm.vm) && !folding.filter;  // what was asked for is shown
    add({kind: 'vm', vm, label: (folded ? '\u25b8 ' : '\u25be ') + vmTitle(vm)}, HEADING_HEIGHT);
    if (folded) {
      add({kind: 'mean', vm, key: 'mean/' + vm.vm, label: 'all ' + vm.vcpus.length}, ROW_HEIGHT);
      continue;
    }
    for (const vcpu of vcpus) {
      add({kind: 'vcpu', vm, vcpu, key: rowKey(vm.vm, vcpu.index), label: 'vCPU ' + vcpu.index}, ROW_HEIGHT);
    }
    for (const vcpu of unopened) {
      const why = 'not opened' + (vcpu.errno_name ? ' (' + vcpu.errno_name + ')' : '') + ': ' + vcpu.reason;
      add({kind: 'unopened', vm, label: 'vCPU ' + vcpu.index, why}, ROW_HEIGHT);
    }
  }
  return rows;
}

function rowAt(y) {
  return page.rows.find((row) => y >= row.y && y < row.y + row.height) || null;
}

const canBeChosen = (row) => row.kind === 'vcpu' || row.kind === 'mean';

// The next vCPU, or folded VM, above (-1) or below (1) the chosen one.
function neighbour(step) {
  const vcpus = page.rows.filter(canBeChosen);
  if (vcpus.length === 0) return null;
  const at = vcpus.indexOf(view.chosen);
  if (at < 0) return step > 0 ? vcpus[0] : vcpus[vcpus.length - 1];
  return vcpus[Math.min(Math.max(at + step, 0), vcpus.length - 1)];
}
