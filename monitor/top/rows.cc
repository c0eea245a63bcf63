#include "monitor/top/rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/top/columns.h"

namespace vcpulse::top {
namespace {

std::string VmName(const VmId& id, const BoardVm& vm) {
  return vm.instance.name().empty() ? absl::StrCat("VM ", id.vm) : Printable(vm.instance.name());
}

std::string VcpuName(uint32_t index) { return absl::StrCat("vCPU ", index); }

// Rows of one level under one parent, in the order asked for.
void Sort(std::vector<Row>& rows, const Arrangement& arrangement) {
  if (!arrangement.sort_column) return;
  const Column& column = Columns()[*arrangement.sort_column];
  struct Key {
    std::optional<double> value;
    size_t place = 0;
  };
  std::vector<Key> keys;
  keys.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    keys.push_back({.value = SortValue(column, rows[i]), .place = i});
  }
  std::ranges::stable_sort(keys, [&](const Key& a, const Key& b) {
    if (!a.value || !b.value) return a.value.has_value() && !b.value.has_value();
    return arrangement.reversed ? *a.value < *b.value : *a.value > *b.value;
  });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const Key& key : keys) sorted.push_back(std::move(rows[key.place]));
  rows = std::move(sorted);
}

struct VmRows {
  Row vm;
  std::vector<Row> vcpus;  // that the filter lets through
};

VmRows RowsOf(const VmId& id, const BoardVm& vm, const Boards& boards, const Stream& stream,
              const Arrangement& arrangement) {
  VmRows rows;
  rows.vm = {.id = {.kind = RowId::Kind::kVm, .vcpu = {.vm = id}},
             .name = VmName(id, vm),
             .can_fold = true,
             .is_folded = arrangement.IsFolded(id),
             .degraded = vm.degraded,
             .ended = vm.ended};
  const std::string host = HostName(stream);
  const std::string name = VmName(id, vm);
  std::set<uint32_t> indexes;
  for (const auto& [index, track] : vm.vcpus) indexes.insert(index);
  if (const auto seen = boards.strip.vms().find(id); seen != boards.strip.vms().end()) {
    for (const auto& [index, track] : seen->second.vcpus) indexes.insert(index);
  }
  for (const uint32_t index : indexes) {
    const VcpuId vcpu{.vm = id, .index = index};
    const Track* summed = boards.numbers.Find(vcpu);
    const Track* shown = boards.strip.Find(vcpu);
    const Track* now = boards.now.Find(vcpu);
    Row row{.id = {.kind = RowId::Kind::kVcpu, .vcpu = vcpu},
            .name = VcpuName(index),
            .depth = 1,
            .vcpus = {vcpu},
            .totals = summed == nullptr ? metric::Totals() : summed->Sum(),
            .verdict = now == nullptr ? core::Verdict() : now->verdict,
            .cpu = now == nullptr ? std::nullopt : now->cpu,
            .hot = shown == nullptr ? nullptr : shown->hot.get(),
            .degraded = vm.degraded,
            .ended = vm.ended};
    rows.vm.vcpus.push_back(vcpu);
    rows.vm.totals.Add(row.totals);
    const bool matches = arrangement.filter.Matches({.host = host,
                                                     .vm = name,
                                                     .uuid = vm.instance.uuid(),
                                                     .vm_number = id.vm,
                                                     .pid = vm.instance.pid(),
                                                     .vcpu = index,
                                                     .verdict = row.verdict,
                                                     .totals = row.totals,
                                                     .is_degraded = row.degraded});
    if (matches) rows.vcpus.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> Joined(std::vector<VmRows> vms, const Arrangement& arrangement) {
  std::vector<Row> tops;
  tops.reserve(vms.size());
  std::map<RowId, std::vector<Row>> below;
  for (VmRows& vm : vms) {
    if (!vm.vm.is_folded) below[vm.vm.id] = std::move(vm.vcpus);
    tops.push_back(std::move(vm.vm));
  }
  Sort(tops, arrangement);
  std::vector<Row> rows;
  for (Row& top : tops) {
    const auto vcpus = below.find(top.id);
    rows.push_back(std::move(top));
    if (vcpus == below.end()) continue;
    Sort(vcpus->second, arrangement);
    std::ranges::move(vcpus->second, std::back_inserter(rows));
  }
  return rows;
}

}  // namespace

std::string HostName(const Stream& stream) {
  return stream.host.empty() ? "(no host name)" : Printable(stream.host);
}

std::map<VmId, const BoardVm*> VmsOf(const Boards& boards) {
  std::map<VmId, const BoardVm*> vms;
  for (const Board* board : {&boards.now, &boards.strip}) {
    for (const auto& [id, vm] : board->vms()) vms.try_emplace(id, &vm);
  }
  return vms;
}

std::vector<Row> MakeRows(const Boards& boards, const std::vector<Stream>& streams,
                          const Arrangement& arrangement) {
  const bool has_hosts = std::ranges::any_of(
      streams, [&](const Stream& stream) { return stream.host != streams.front().host; });
  std::vector<VmRows> vms;
  for (const auto& [id, vm] : VmsOf(boards)) {
    VmRows rows = RowsOf(id, *vm, boards, streams[id.stream], arrangement);
    if (has_hosts) rows.vm.name = absl::StrCat(HostName(streams[id.stream]), " ", rows.vm.name);
    rows.vm.full_name = rows.vm.name;
    for (Row& vcpu : rows.vcpus) vcpu.full_name = absl::StrCat(rows.vm.name, " ", vcpu.name);
    if (!rows.vcpus.empty()) vms.push_back(std::move(rows));
  }
  if (arrangement.grouping == Grouping::kVms) return Joined(std::move(vms), arrangement);
  std::vector<Row> rows;
  if (arrangement.grouping == Grouping::kVcpus) {
    for (VmRows& vm : vms) {
      for (Row& vcpu : vm.vcpus) {
        vcpu.name = absl::StrCat(vm.vm.name, " ", vcpu.id.vcpu.index);
        vcpu.depth = 0;
        rows.push_back(std::move(vcpu));
      }
    }
  } else {
    for (const VmRows& vm : vms) {
      const size_t stream = vm.vm.id.vcpu.vm.stream;
      const std::string name = HostName(streams[stream]);
      auto host = std::ranges::find(rows, name, &Row::name);
      if (host == rows.end()) {
        rows.push_back({.id = {.kind = RowId::Kind::kHost, .vcpu = {.vm = {.stream = stream}}},
                        .name = name,
                        .full_name = name,
                        .degraded = true});
        host = rows.end() - 1;
      }
      host->totals.Add(vm.vm.totals);
      std::ranges::copy(vm.vm.vcpus, std::back_inserter(host->vcpus));
      host->degraded = host->degraded && vm.vm.degraded;  // all of it
    }
  }
  Sort(rows, arrangement);
  return rows;
}

report::StripSlot StripSlotOf(const metric::Totals& totals) {
  using metric::Metric;
  report::StripSlot slot;
  const auto put = [&](core::Band band, double ns) {
    slot.band_ns[static_cast<size_t>(band)] = static_cast<float>(ns);
  };
  put(core::Band::kNone, totals.UnjudgedNs());
  put(core::Band::kHalted, totals.Of(Metric::kHalted).part);
  put(core::Band::kSpinning, totals.Of(Metric::kSpinning).part);
  put(core::Band::kProductive, totals.Of(Metric::kProductive).part);
  put(core::Band::kUnknown, totals.Of(Metric::kUnknown).part);
  slot.starved_ns = static_cast<float>(totals.Of(Metric::kStarved).part);
  return slot;
}

}  // namespace vcpulse::top
