#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kvm/vm.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::recorder {

enum class Trigger : uint8_t { kSpinning, kStarved };

// Which of them begin a window.
struct Triggers {
  bool spinning = false;
  bool starved = false;

  bool Any() const { return spinning || starved; }
};

// A window is of this vCPU.
struct WindowOf {
  uint32_t vm = 0;
  uint32_t epoch = 0;
  kvm::Vm one;  // the VM with this vCPU alone
  Trigger trigger = Trigger::kSpinning;
};

// What a window observes, from its making on.
class Window {
 public:
  virtual ~Window() = default;

  // Whether it could begin. Where not, its record says why.
  virtual bool is_open() const = 0;
  // Takes in what there is. An error ends the window, and is in its record.
  virtual absl::Status Collect() = 0;
  // Ends it. Once; nothing else is asked afterwards.
  virtual v1::TimelineRecord Close() = 0;
  // While it is open, no other of its kind is opened.
  virtual bool IsAlone() const { return false; }
  // It takes a counter of the vCPU's PMU.
  virtual bool SharesPmu() const { return false; }
};

// Short windows of looking closer at a vCPU: one begins where the vCPU was SPINNING or starved for
// 200 ms, ends after a second or with its epoch, and the vCPU gets no other for ten seconds. Four
// are open at most of one kind, of all VMs together. Control thread.
class TriggeredWindows {
 public:
  // VM number and epoch.
  using Epoch = std::pair<uint32_t, uint32_t>;
  // Begins one. `now_ns`: CLOCK_MONOTONIC, for its beginning and end.
  using Open = std::function<std::unique_ptr<Window>(const WindowOf& of, int64_t (*now_ns)())>;

  TriggeredWindows(Triggers triggers, Open open, int64_t (*now_ns)());

  // A tick's sample and its verdicts, in the order of the epoch's vCPUs, which are those of `vm`.
  // Ticks that come late begin no window, and what held before a tick that is missing does not
  // count. Where none can be opened for a vCPU while none was for others of its epoch, the epoch is
  // not tried again.
  void Observe(Epoch epoch, const kvm::Vm& vm, const core::Sample& sample,
               std::span<const core::Verdict> verdicts);
  // Lets the windows take in what there is, and closes those whose time has come, or that fail.
  // Called ten times a second.
  void Collect();
  // Closes the windows of an epoch that ends, and forgets it.
  void End(Epoch epoch);

  // Records of those that were closed since the last call, and of those that could not begin.
  std::vector<v1::TimelineRecord> Take() { return std::exchange(closed_, {}); }
  // The vCPUs of this epoch, by their place, from whose groups a window may take a counter of the
  // PMU.
  std::vector<size_t> SharingTheirPmu(Epoch epoch) const;

 private:
  struct Watched {
    std::optional<int64_t> spinning_since_ns;
    std::optional<int64_t> starved_since_ns;
  };
  struct WatchedEpoch {
    std::vector<Watched> vcpus;
    std::optional<uint64_t> last_tick;
    bool any_opened = false;
    bool is_refused = false;
  };
  struct OpenWindow {
    Epoch epoch;
    size_t vcpu = 0;  // its place in the epoch
    int64_t begin_ns = 0;
    std::unique_ptr<Window> window;
  };

  std::optional<Trigger> TriggerOf(Watched& watched, int64_t mono_ns,
                                   const core::Verdict& verdict) const;
  bool MayBegin(Epoch epoch, const kvm::Vcpu& vcpu, int64_t mono_ns) const;
  // Whether it could be opened.
  bool Begin(Epoch epoch, const kvm::Vm& vm, size_t vcpu, Trigger trigger);
  void CloseWhere(absl::FunctionRef<bool(OpenWindow&)> ends);

  const Triggers triggers_;
  const Open open_;
  int64_t (*const now_ns_)();
  std::map<Epoch, WatchedEpoch> watched_;
  // By VM number and index of the vCPU, whatever the epoch: when its next window may begin.
  std::map<std::pair<uint32_t, int>, int64_t> not_before_ns_;
  std::vector<OpenWindow> windows_;
  std::vector<v1::TimelineRecord> closed_;
};

}  // namespace vcpulse::recorder
