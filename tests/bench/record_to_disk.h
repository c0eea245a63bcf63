#pragma once

// A recording as a benchmark runs it: in a process of its own, to a temporary file.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/output_file.h"
#include "kvm/bpf/bpf_keeper.h"
#include "monitor/recorder/recording.h"
#include "monitor/recorder/session_record.h"
#include "monitor/sampler/tick_thread.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/writer.h"
#include "tests/bench/software_perf_events.h"

namespace vcpulse::bench {

inline constexpr absl::Duration kRun = absl::Seconds(10);

// Processor time, s.
inline double SecondsOf(const rusage& used) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Runs `body` in a process of its own; its processor time, s. Nothing where it failed.
inline std::optional<double> CpuSecondsOf(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  rusage used{};
  int status = 0;
  wait4(pid, &status, 0, &used);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return SecondsOf(used);
}

inline std::unique_ptr<timeline::RecordWriter> NewFileWriter(OutputFile& file) {
  auto writer = timeline::NewChunkWriter(
      {}, [&file](std::span<const uint8_t> bytes) { return file.Append(bytes); });
  v1::TimelineRecord record;
  *record.mutable_session() = recorder::MakeSession({}, {});
  writer->Add(std::move(record), MonotonicNow_ns());
  return writer;
}

struct Recorded {
  uint64_t vcpu_samples = 0;
  uint64_t gaps = 0;
  // Processor time. What the kernel program takes in the switches of others is in none of them.
  double whole_s = 0;    // of a process of its own
  double start_s = 0;    // until the first tick
  double ticking_s = 0;  // from then on until the last one
};

// What `vcpulse record -i INTERVAL -d 10s` does. `reader` as --reader: bpf or read.
inline Recorded RecordToDisk(const std::vector<kvm::Vm>& vms, absl::Duration interval,
                             absl::Duration flush, const std::string& path,
                             std::string_view reader = "read", absl::Duration run = kRun) {
  const auto used_s = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return SecondsOf(used);
  };
  SoftwarePerfEvents perf;
  std::unique_ptr<kvm::ThreadKeeper> keeper;
  if (reader == "bpf") {
    auto loaded = kvm::LoadBpfKeeper("/");
    if (!loaded.ok()) {
      std::fprintf(stderr, "--reader bpf: %s\n", loaded.status().ToString().c_str());
      _exit(1);
    }
    keeper = *std::move(loaded);
  }
  auto file = OutputFile::Create(path);
  auto writer = NewFileWriter(**file);
  recorder::Recording recording({.root = "/",
                                 .interval = interval,
                                 .residency = {{.max_hz = 1e9}},
                                 .statistics = false,  // docs/statistics.md has their cost
                                 .keeper = keeper.get(),
                                 .now_ns = MonotonicNow_ns},
                                perf, *writer);
  for (const kvm::Vm& vm : vms) {
    if (const absl::Status status = recording.Track(vm); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      _exit(1);
    }
  }
  Recorded recorded{.start_s = used_s()};
  auto ticker = sampler::TickThread::Start(recording.sampler(), {.interval = interval});
  const absl::Time end = absl::Now() + run;
  absl::Time next_flush = absl::Now() + flush;
  while (absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(50));
    recording.Drain();
    if (absl::Now() < next_flush) continue;
    next_flush += flush;
    if (!writer->Flush(timeline::TakeClockSnapshot()).ok()) _exit(1);
  }
  recorded.ticking_s = used_s() - recorded.start_s;
  recording.RetireAll();
  while (!recording.idle()) {
    (*ticker)->Wake();
    recording.Drain();
  }
  static_cast<void>(writer->Flush(timeline::TakeClockSnapshot()));
  recorded.vcpu_samples = recording.progress().vcpu_samples;
  recorded.gaps = recording.progress().gaps;
  return recorded;
}

// The same in a process of its own. Nothing where it failed.
inline std::optional<Recorded> RecordApart(const std::vector<kvm::Vm>& vms, absl::Duration interval,
                                           const std::string& path, std::string_view reader) {
  void* const shared = mmap(nullptr, sizeof(Recorded), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (shared == MAP_FAILED) return std::nullopt;
  const std::optional<double> whole_s = CpuSecondsOf(
      [&] { new (shared) Recorded(RecordToDisk(vms, interval, absl::Seconds(1), path, reader)); });
  std::optional<Recorded> recorded;
  if (whole_s) {
    recorded = *static_cast<Recorded*>(shared);
    recorded->whole_s = *whole_s;
  }
  munmap(shared, sizeof(Recorded));
  return recorded;
}

inline std::string TemporaryFile(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          absl::StrCat("vcpulse-bench-", getpid(), "-", name))
      .string();
}

inline double FileBytes(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<double>(bytes);
}

}  // namespace vcpulse::bench
