#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kvm/counters/group_opener.h"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/core/classify.h"
#include "monitor/live/target.h"
#include "monitor/profile/profile.h"
#include "monitor/recorder/session_record.h"
#include "monitor/recorder/triggered_windows.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::live {

// Gets the chunks of a timeline to send them elsewhere.
struct ChunkSink {
  std::string name;  // where they go, for people; empty: nowhere that they know of
  // With each one, byte for byte as the file has it, on the control thread, which it must not keep
  // waiting.
  std::function<void(std::span<const uint8_t> chunk)> take;
};

// How counters are read (docs/reading.md): by BPF where this host gives it, or the one that is
// named.
enum class Reader : uint8_t { kAuto, kBpf, kRead };
// auto, bpf or read.
std::optional<Reader> ParseReader(std::string_view name);

// What is to be recorded, how and whereto.
struct Options {
  Target target;
  absl::Duration wait = absl::ZeroDuration();    // for the target to appear
  absl::Duration rewait = absl::ZeroDuration();  // for a VM of target.vm that has ended to return
  absl::Duration interval = absl::Milliseconds(100);
  absl::Duration duration = absl::InfiniteDuration();
  std::string output = "vcpulse.vpt";  // - is stdout; empty: no file, chunk_sink has it all
  bool delimited = false;              // length-delimited TimelineRecords instead of chunks
  bool realtime = false;
  Reader reader = Reader::kAuto;
  kvm::OpenOptions open;
  core::ClassifierChoice classifier = core::ClassifierChoice::kAuto;
  profile::Profile profile;
  bool force_profile = false;   // also where it is one of other CPUs
  bool prove = false;           // the counters of this host, before it begins (docs/accuracy.md)
  bool statistics = true;       // of the scheduler and of KVM (docs/statistics.md)
  recorder::Triggers hotspots;  // docs/hotspots.md
  std::optional<kvm::AddressSource> hotspots_source;  // this one alone
  bool guest_code = false;   // read around hot addresses, from the guest's memory by QMP
  bool competitors = false;  // who has the CPU of a starved vCPU (docs/competitors.md)
  std::string tool_version;
  recorder::HostIdentity identity;
  // The VMs are those of this process's descendants, and it goes on without any.
  bool beside_command = false;
  std::string control;            // path of the control socket; empty: none
  bool phase_from_stdin = false;  // each line of standard input is a marker
  // Where it is not empty, SIGHUP calls it, on the control thread, and ends nothing.
  std::function<void()> hang_up;
  std::optional<ChunkSink> chunk_sink;  // chunks are then cut small enough; not with `delimited`
  // Puts a writer that sees every record before the one of the output. Empty: none.
  std::function<std::unique_ptr<timeline::RecordWriter>(std::unique_ptr<timeline::RecordWriter>)>
      wrap_writer;
};

}  // namespace vcpulse::live
