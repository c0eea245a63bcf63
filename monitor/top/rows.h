#pragma once

// The rows of the view: hosts, VMs and their vCPUs, sorted and filtered.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"
#include "monitor/report/strip.h"
#include "monitor/top/board.h"
#include "monitor/top/chunk_store.h"
#include "monitor/top/filter.h"

namespace vcpulse::top {

enum class Grouping : uint8_t { kVms, kVcpus, kHosts };

// What a row stands for, whatever else comes and goes.
struct RowId {
  enum class Kind : uint8_t { kHost, kVm, kVcpu };

  Kind kind = Kind::kVm;
  VcpuId vcpu;  // of a VM without its index, of a host the stream alone

  auto operator<=>(const RowId&) const = default;
};

// Which rows, in which order.
struct Arrangement {
  Grouping grouping = Grouping::kVms;
  bool folds_by_default = false;
  std::set<VmId> folded_otherwise;  // than by default
  Filter filter;
  std::optional<size_t> sort_column;  // of Columns()
  bool reversed = false;              // the smallest first

  bool IsFolded(const VmId& vm) const { return folds_by_default != folded_otherwise.contains(vm); }
};

struct Row {
  RowId id;
  std::string name;
  std::string full_name;  // where it stands alone: "web vCPU 3", "host1 web"
  size_t depth = 0;
  bool can_fold = false;
  bool is_folded = false;
  std::vector<VcpuId> vcpus;  // that it stands for, whether or not the filter lets them through
  metric::Totals totals;      // of all of them
  // Of a vCPU alone:
  core::Verdict verdict;
  std::optional<uint32_t> cpu;
  const v1::HotAddresses* hot = nullptr;
  bool degraded = false;
  bool ended = false;
};

// What rows are made of: boards of several windows, or one for all.
struct Boards {
  const Board& now;      // VMs, verdicts and CPUs
  const Board& numbers;  // sums
  const Board& strip;    // hot code
};

// The VMs of the strip's time and of now, as `now` has them where it does.
std::map<VmId, const BoardVm*> VmsOf(const Boards& boards);

// A VM is shown where the filter lets one of its vCPUs through. The boards must outlive the rows.
std::vector<Row> MakeRows(const Boards& boards, const std::vector<Stream>& streams,
                          const Arrangement& arrangement);

// The host of a stream, or that it has no name.
std::string HostName(const Stream& stream);

// What they did in that slot, as strips show it: a sum.
report::StripSlot StripSlotOf(const metric::Totals& totals);

}  // namespace vcpulse::top
