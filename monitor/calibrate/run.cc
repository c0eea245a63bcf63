#include "monitor/calibrate/run.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "kvm/base/affinity.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/pmu.h"
#include "kvm/host.h"
#include "monitor/calibrate/measured_profile.h"
#include "monitor/live/loop.h"
#include "monitor/live/session.h"
#include "monitor/live/target.h"
#include "monitor/recorder/session_record.h"

namespace vcpulse::calibrate {
namespace {

using kvm::microguest::Machine;

// Plays scenes on a thread of its own while the loop records them, and ends it.
class Player {
 public:
  Player(Machine& machine, const std::vector<Scene>& scenes, const RunOptions& options,
         live::Loop& loop)
      : machine_(machine), scenes_(scenes), options_(options), loop_(loop) {
    const BlockedSignals blocked;  // they are the loop's
    thread_ = std::thread([this] {
      PlayAll();
      loop_.Post([this] { loop_.End("calibrated"); });
    });
  }

  // The scene that is played ends, and none begins. What was played to its end; errors: of Play.
  absl::StatusOr<std::vector<Played>> Finish() {
    stop_.Notify();
    thread_.join();
    if (!status_.ok()) return status_;
    return std::move(played_);
  }

 private:
  void PlayAll() {
    for (size_t i = 0; i < scenes_.size(); ++i) {
      if (options_.begins) options_.begins(i, scenes_.size(), scenes_[i].what);
      const auto mark = [this](const std::string& name) {
        loop_.Post([this, name, now_ns = MonotonicNow_ns()] { loop_.Mark(name, now_ns); });
      };
      // No window reaches from one scene into the next.
      auto played = Play(machine_, scenes_[i], options_.each, 2 * options_.interval, mark, stop_);
      if (absl::IsCancelled(played.status())) return;
      if (!played.ok()) {
        status_ = absl::Status(played.status().code(),
                               absl::StrCat(scenes_[i].what, ": ", played.status().message()));
        return;
      }
      played_.push_back(*played);
    }
  }

  Machine& machine_;
  const std::vector<Scene>& scenes_;
  const RunOptions& options_;
  live::Loop& loop_;
  absl::Notification stop_;
  std::vector<Played> played_;  // until the thread has ended its own, as the next
  absl::Status status_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> MakeMachine() {
  constexpr uint64_t kMuch = 1 << 30;
  const std::string root = live::Options{}.target.root;
  const bool has_much = kvm::AvailableBytes(root).value_or(0) >= kMuch;
  auto machine = Machine::Create(kVcpus, {.data_bytes = has_much ? kvm::microguest::kMostDataBytes
                                                                 : kvm::microguest::kDataBytes});
  if (!machine.ok()) return machine.status();
  kvm::KernelPerfEvents perf;
  const auto basis =
      recorder::FindResidencyBasis(perf, root, kvm::CorePmus(kvm::ReadPmus(root)), false);
  if (!basis.no_counters_reason.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no hardware counter can be read: ", basis.no_counters_reason));
  }
  return machine;
}

absl::Status CheckCpus(const std::vector<int>& cpus) {
  const std::vector<int> own = OwnCpus();
  for (const int cpu : cpus) {
    if (std::ranges::find(own, cpu) != own.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--cpus: CPU ", cpu, " is offline, or not allowed here"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status KeepVcpusTo(const std::vector<int>& cpus, const Machine& machine) {
  for (size_t i = 0; i < machine.vcpus() && !cpus.empty(); ++i) {
    if (!KeepToCpus(machine.Tid(i), cpus)) {
      return absl::ErrnoToStatus(errno, "--cpus: the guests cannot be kept to them");
    }
  }
  return absl::OkStatus();
}

// "this host on 2026-01-31, Linux 6.1.0, microcode 0x1".
std::string Where(const Calibration& calibration) {
  const kvm::CpuIdentity& cpu = calibration.cpu;
  return absl::StrCat(
      "this host on ",
      absl::FormatTime("%Y-%m-%d", absl::FromUnixNanos(RealtimeNow_ns()), absl::UTCTimeZone()),
      ", Linux ", calibration.session.kernel_release(),
      cpu.microcode.empty() ? "" : absl::StrCat(", microcode ", cpu.microcode),
      calibration.on_cpus.empty()
          ? ""
          : absl::StrCat(", CPUs ", absl::StrJoin(calibration.on_cpus, ",")));
}

absl::StatusOr<Measured> TryMeasuredProfile(const Calibration& calibration,
                                            const profile::Profile& base,
                                            std::span<const uint8_t> timeline,
                                            std::span<const Scene> scenes,
                                            std::span<const Played> played) {
  auto profile = MeasuredProfile(calibration, base, calibration.cpu, Where(calibration));
  if (!profile.ok()) return profile.status();
  const auto judged = Measure(timeline, scenes, played, &profile->values);
  if (!judged.ok()) return judged.status();
  const auto right = judged->RightShare(core::Classifier::kEvidence);
  if (!right) return absl::FailedPreconditionError("nothing was judged");
  return Measured{.profile = *std::move(profile), .right = *right};
}

}  // namespace

absl::StatusOr<Calibration> Run(const RunOptions& options, Machine& machine) {
  if (absl::Status status = CheckCpus(options.cpus); !status.ok()) return status;
  if (absl::Status status = KeepVcpusTo(options.cpus, machine); !status.ok()) return status;
  std::vector<Scene> scenes = Scenes();
  const auto left_out =
      LeaveOut(scenes, [&machine](const Scene& scene) { return Try(machine, scene); });
  if (!left_out.ok()) return left_out.status();
  std::vector<uint8_t> timeline;
  live::Options live;
  live.target.pid = getpid();
  live.interval = options.interval;
  live.output = options.output;
  live.profile = options.profile;
  live.tool_version = options.tool_version;
  live.chunk_sink =
      live::ChunkSink{.name = "", .take = [&timeline](std::span<const uint8_t> chunk) {
                        timeline.insert(timeline.end(), chunk.begin(), chunk.end());
                      }};
  const auto vms = live::FindWithPatience(live.target, absl::ZeroDuration());
  if (!vms.ok()) return vms.status();
  auto session = live::Session::Open(live);
  if (!session.ok()) return session.status();
  live::Loop loop(
      live, **session,
      {.say = options.say, .show = [](absl::Duration, uint64_t, const recorder::Progress&) {}});
  if (absl::Status status = loop.Begin(*vms); !status.ok()) return status;
  loop.TakeSignals();
  Player player(machine, scenes, options, loop);
  absl::Status recorded = loop.Run(nullptr);
  const auto played = player.Finish();
  if (!recorded.ok()) return recorded;
  if (!played.ok()) return played.status();
  if (played->size() < scenes.size()) {
    return absl::CancelledError(
        absl::StrCat("stopped after ", played->size(), " of ", scenes.size(), " programs"));
  }
  auto calibration = Measure(timeline, scenes, *played);
  if (!calibration.ok()) return calibration;
  calibration->cpu = kvm::ReadCpuIdentity(live.target.root);
  calibration->on_cpus = options.cpus;
  calibration->left_out = *left_out;
  calibration->measured =
      TryMeasuredProfile(*calibration, options.profile, timeline, scenes, *played);
  return calibration;
}

}  // namespace vcpulse::calibrate
