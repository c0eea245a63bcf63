// vcpulse.h for C++17 and later: handles that free themselves, exceptions, chrono. It is a header
// over the C API and nothing else: it has no ABI of its own, so any compiler's code may use any
// release's library.
//
//   auto recording = vcpulse::Recording::Attach(vcpulse::Options().Pid(pid));
//   recording.Mark("work");
//   ...
//   vcpulse::Timeline timeline = std::move(recording).Stop();
//   vcpulse::Bounds share = timeline.Share(0, vcpulse::Band::kProductive, "work");
//
// vcpulse.h says what each call means, which threads may make it and how it fails. A failure is a
// vcpulse::Error. All of it lies in an inline namespace with the header's version: two versions of
// this header in one program are two sets of types, and none of them meets a name of the library's
// own sources, whose namespaces lie in `vcpulse` too.
#ifndef VCPULSE_HPP_
#define VCPULSE_HPP_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vcpulse.h"

namespace vcpulse {
inline namespace api_0_1 {

// What went wrong, in words, and by which kind.
class Error : public std::runtime_error {
 public:
  Error(vcpulse_status code, const std::string& message)
      : std::runtime_error(message), code_(code) {}

  vcpulse_status code() const noexcept { return code_; }

 private:
  vcpulse_status code_;
};

enum class Band {
  kHalted = VCPULSE_BAND_HALTED,
  kSpinning = VCPULSE_BAND_SPINNING,
  kProductive = VCPULSE_BAND_PRODUCTIVE,
  kUnknown = VCPULSE_BAND_UNKNOWN,
};

enum class Outcome {
  kSkip = VCPULSE_OUTCOME_SKIP,
  kPass = VCPULSE_OUTCOME_PASS,
  kInconclusive = VCPULSE_OUTCOME_INCONCLUSIVE,
  kFail = VCPULSE_OUTCOME_FAIL,
};

// Both are null for a value that the library does not know.
inline const char* ToString(Band band) { return vcpulse_band_name(static_cast<int>(band)); }
inline const char* ToString(Outcome outcome) {
  return vcpulse_outcome_name(static_cast<int>(outcome));
}

using Nanoseconds = std::chrono::nanoseconds;

// In the unit of what was asked for: the truth lies between low and high.
struct Bounds {
  double low = 0;
  double high = 0;
  std::uint64_t ticks = 0;
  Nanoseconds judged{};
  Nanoseconds unknown{};
};

// One vCPU: an index alone is of the only VM.
struct Vcpu {
  Vcpu(std::uint32_t the_index) : index(the_index) {}  // NOLINT: a number is a vCPU
  Vcpu(std::string the_vm, std::uint32_t the_index) : vm(std::move(the_vm)), index(the_index) {}

  std::optional<std::string> vm;  // name, UUID, PID or number
  std::uint32_t index;
};

struct Vm {
  std::string name;
  std::uint32_t pid = 0;
  std::vector<std::uint32_t> vcpus;
};

struct CheckResult {
  Outcome outcome = Outcome::kSkip;
  std::string text;  // lines for people
};

struct Limits {
  Nanoseconds skip_first{0};
  std::uint64_t min_ticks = 10;
  double min_measured = 0.1;
  bool trust_ipc_bands = false;
  bool allow_skip = false;
};

namespace detail {

// Collects the error of one call and throws it.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { vcpulse_error_free(error_); }

  vcpulse_error** error() { return &error_; }
  void Throw() const { throw Error(vcpulse_error_code(error_), vcpulse_error_message(error_)); }
  void Check(vcpulse_status status) const {
    if (status != VCPULSE_STATUS_OK) Throw();
  }
  template <typename Handle>
  Handle* Check(Handle* handle) const {
    if (handle == nullptr) Throw();
    return handle;
  }

 private:
  vcpulse_error* error_ = nullptr;
};

inline const char* OrNull(const std::optional<std::string>& text) {
  return text ? text->c_str() : nullptr;
}

// The callbacks of one recording and what they threw: an exception must not pass through C.
struct Callbacks {
  std::function<void(const std::string&)> on_notice;
  std::function<bool(const vcpulse_record&)> on_record;
  std::exception_ptr thrown;
  std::atomic<std::thread::id> within{};  // the thread that is in a callback; no thread: none is

  // Whether the caller is one of these callbacks.
  bool RunHere() const { return within == std::this_thread::get_id(); }

  class Entered {
   public:
    explicit Entered(Callbacks& callbacks) : callbacks_(callbacks) {
      callbacks_.within = std::this_thread::get_id();
    }
    ~Entered() { callbacks_.within = std::thread::id(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    Callbacks& callbacks_;
  };

  static void Notice(const char* line, void* user) noexcept {
    auto& self = *static_cast<Callbacks*>(user);
    if (!self.on_notice || self.thrown) return;
    const Entered entered(self);
    try {
      self.on_notice(line);
    } catch (...) {
      self.thrown = std::current_exception();
    }
  }
  static int Record(const vcpulse_record* record, void* user) noexcept {
    auto& self = *static_cast<Callbacks*>(user);
    if (self.thrown) return 1;
    const Entered entered(self);
    try {
      return self.on_record(*record) ? 0 : 1;
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
  void Rethrow() {
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
  }
};

}  // namespace detail

// What to record. Each call gives the options back, to be chained.
class Options {
 public:
  Options() : handle_(vcpulse_options_new()) {
    if (!handle_) throw std::bad_alloc();
  }

  Options& Vm(const std::string& name) { return Set(vcpulse_options_set_vm, name.c_str()); }
  Options& Pid(std::int64_t pid) { return Set(vcpulse_options_set_pid, pid); }
  Options& Qmp(const std::string& address) { return Set(vcpulse_options_set_qmp, address.c_str()); }
  Options& Tids(const std::vector<std::int64_t>& tids) {
    detail::Call call;
    call.Check(vcpulse_options_set_tids(handle_.get(), tids.data(), tids.size(), call.error()));
    return *this;
  }
  Options& Wait(Nanoseconds wait) {
    return Set(vcpulse_options_set_wait, static_cast<std::int64_t>(wait.count()));
  }
  Options& Rewait(Nanoseconds rewait) {
    return Set(vcpulse_options_set_rewait, static_cast<std::int64_t>(rewait.count()));
  }
  Options& Interval(Nanoseconds interval) {
    return Set(vcpulse_options_set_interval, static_cast<std::int64_t>(interval.count()));
  }
  Options& Output(const std::string& path) { return Set(vcpulse_options_set_output, path.c_str()); }
  Options& EventSet(const std::string& name) {
    return Set(vcpulse_options_set_event_set, name.c_str());
  }
  Options& Classifier(const std::string& name) {
    return Set(vcpulse_options_set_classifier, name.c_str());
  }
  Options& Reader(const std::string& name) { return Set(vcpulse_options_set_reader, name.c_str()); }
  Options& Profile(const std::string& name_or_file) {
    return Set(vcpulse_options_set_profile, name_or_file.c_str());
  }
  Options& RequireCounters(bool required = true) {
    return Set(vcpulse_options_set_require_counters, required ? 1 : 0);
  }
  Options& Realtime(bool realtime = true) {
    return Set(vcpulse_options_set_realtime, realtime ? 1 : 0);
  }
  // Called on a thread of the library. What they throw is thrown by Stop().
  Options& OnNotice(std::function<void(const std::string& line)> callback) {
    on_notice_ = std::move(callback);
    return *this;
  }
  // The record lives during the call; false: no more of them.
  Options& OnRecord(std::function<bool(const vcpulse_record&)> callback) {
    on_record_ = std::move(callback);
    return *this;
  }

 private:
  friend class Recording;
  struct Free {
    void operator()(vcpulse_options* options) const { vcpulse_options_free(options); }
  };

  template <typename Setter, typename Value>
  Options& Set(Setter setter, Value value) {
    detail::Call call;
    call.Check(setter(handle_.get(), value, call.error()));
    return *this;
  }

  std::unique_ptr<vcpulse_options, Free> handle_;
  std::function<void(const std::string&)> on_notice_;
  std::function<bool(const vcpulse_record&)> on_record_;
};

// What was recorded. Any number of threads at once.
class Timeline {
 public:
  using Phase = std::optional<std::string>;  // nothing: the whole recording

  static Timeline Open(const std::string& path) {
    detail::Call call;
    return Timeline(call.Check(vcpulse_timeline_open(path.c_str(), call.error())));
  }

  std::string path() const { return vcpulse_timeline_path(get()); }
  std::string host() const { return vcpulse_timeline_host(get()); }
  Nanoseconds duration() const { return Nanoseconds(vcpulse_timeline_duration_ns(get())); }
  // Nothing where counters were read.
  std::optional<std::string> no_counters_reason() const {
    return TextOf(vcpulse_timeline_no_counters_reason(get()));
  }
  // Nothing where the file is whole.
  std::optional<std::string> damage() const { return TextOf(vcpulse_timeline_damage(get())); }

  // References live as long as the timeline.
  const std::vector<Vm>& vms() const { return vms_; }
  const std::vector<std::string>& phases() const { return phases_; }

  // Calls `callback(const vcpulse_record&)` for each record until it returns false, on this thread.
  // What it throws is thrown on.
  void ForEachRecord(std::function<bool(const vcpulse_record&)> callback) const {
    detail::Callbacks callbacks;
    callbacks.on_record = std::move(callback);
    detail::Call call;
    const vcpulse_status status = vcpulse_timeline_for_each_record(get(), detail::Callbacks::Record,
                                                                   &callbacks, call.error());
    callbacks.Rethrow();
    call.Check(status);
  }

  // What a quantity was, as vcpulse_timeline_query has them: "productive", "ipc.p50",
  // "longest(spinning)" (nanoseconds), "residency", "starved".
  Bounds Query(const Vcpu& vcpu, const std::string& quantity, const Phase& phase = {}) const {
    return Query(vcpu.vm, vcpu.index, quantity, phase);
  }
  // The share of the time in this band.
  Bounds Share(const Vcpu& vcpu, Band band, const Phase& phase = {}) const {
    const char* const name = ToString(band);
    if (name == nullptr) throw Error(VCPULSE_STATUS_INVALID_ARGUMENT, "no such band");
    return Query(vcpu, name, phase);
  }
  // Of a VM: the share of the time in which samples are missing.
  Bounds Gaps(const std::optional<std::string>& vm = {}, const Phase& phase = {}) const {
    return Query(vm, 0, "gaps", phase);
  }

  CheckResult Check(const std::string& expression, const Phase& phase = {},
                    const Limits& limits = {}) const {
    vcpulse_limits demanded = VCPULSE_LIMITS_INIT;
    demanded.skip_first_ns = limits.skip_first.count();
    demanded.min_ticks = limits.min_ticks;
    demanded.min_measured = limits.min_measured;
    demanded.trust_ipc_bands = limits.trust_ipc_bands ? 1 : 0;
    demanded.allow_skip = limits.allow_skip ? 1 : 0;
    vcpulse_outcome outcome = VCPULSE_OUTCOME_SKIP;
    char* text = nullptr;
    detail::Call call;
    call.Check(vcpulse_timeline_check(get(), expression.c_str(), detail::OrNull(phase), &demanded,
                                      &outcome, &text, call.error()));
    const std::unique_ptr<char, FreeText> owned(text);
    return {static_cast<Outcome>(outcome), owned.get()};
  }

 private:
  friend class Recording;
  struct Free {
    void operator()(vcpulse_timeline* timeline) const { vcpulse_timeline_free(timeline); }
  };
  struct FreeText {
    void operator()(char* text) const { vcpulse_text_free(text); }
  };

  explicit Timeline(vcpulse_timeline* handle)
      : handle_(handle),
        vms_(vcpulse_timeline_vm_count(handle)),
        phases_(vcpulse_timeline_phase_count(handle)) {
    for (std::size_t i = 0; i < vms_.size(); ++i) {
      vms_[i].name = vcpulse_timeline_vm_name(handle, i);
      vms_[i].pid = vcpulse_timeline_vm_pid(handle, i);
      vms_[i].vcpus.resize(vcpulse_timeline_vcpu_count(handle, i));
      for (std::size_t v = 0; v < vms_[i].vcpus.size(); ++v) {
        vms_[i].vcpus[v] = vcpulse_timeline_vcpu_index(handle, i, v);
      }
    }
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      phases_[i] = vcpulse_timeline_phase(handle, i);
    }
  }

  const vcpulse_timeline* get() const { return handle_.get(); }

  static std::optional<std::string> TextOf(const char* text) {
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  }
  static Bounds BoundsOf(const vcpulse_bounds& bounds) {
    return {bounds.low, bounds.high, bounds.ticks, Nanoseconds(bounds.judged_ns),
            Nanoseconds(bounds.unknown_ns)};
  }
  Bounds Query(const std::optional<std::string>& vm, std::uint32_t vcpu,
               const std::string& quantity, const Phase& phase) const {
    vcpulse_bounds bounds = VCPULSE_BOUNDS_INIT;
    detail::Call call;
    call.Check(vcpulse_timeline_query(get(), detail::OrNull(vm), vcpu, quantity.c_str(),
                                      detail::OrNull(phase), &bounds, call.error()));
    return BoundsOf(bounds);
  }

  std::unique_ptr<vcpulse_timeline, Free> handle_;
  std::vector<Vm> vms_;
  std::vector<std::string> phases_;
};

// A recording that runs. Destroyed or assigned to without Stop() it ends cleanly, and a named
// output stays. From one of its own callbacks it cannot be ended: destroyed there, it and its
// callbacks are left to run for ever. One that was moved from or stopped has nothing: what is asked
// of it is an Error.
class Recording {
 public:
  Recording(Recording&&) noexcept = default;
  Recording& operator=(Recording&& other) noexcept {
    if (this == &other) return *this;
    End();
    callbacks_ = std::move(other.callbacks_);
    handle_ = std::move(other.handle_);
    return *this;
  }
  ~Recording() { End(); }

  // Returns once the first tick was taken. The options may be used again.
  static Recording Attach(const Options& options) {
    auto callbacks = std::make_unique<detail::Callbacks>();
    callbacks->on_notice = options.on_notice_;
    callbacks->on_record = options.on_record_;
    // Options of its own: those that were given may be used by other threads meanwhile.
    const std::unique_ptr<vcpulse_options, Options::Free> owned(
        vcpulse_options_copy(options.handle_.get()));
    if (!options.handle_) {
      throw Error(VCPULSE_STATUS_INVALID_ARGUMENT, "the options were moved from");
    }
    if (!owned) throw std::bad_alloc();
    vcpulse_options* const handle = owned.get();
    detail::Call call;
    call.Check(vcpulse_options_on_notice(handle,
                                         callbacks->on_notice ? detail::Callbacks::Notice : nullptr,
                                         callbacks.get(), call.error()));
    call.Check(vcpulse_options_on_record(handle,
                                         callbacks->on_record ? detail::Callbacks::Record : nullptr,
                                         callbacks.get(), call.error()));
    return Recording(call.Check(vcpulse_recording_attach(handle, call.error())),
                     std::move(callbacks));
  }

  void Mark(const std::string& phase) {
    detail::Call call;
    call.Check(vcpulse_recording_mark(handle_.get(), phase.c_str(), call.error()));
  }

  // Between the two nothing is sampled.
  void Pause() {
    detail::Call call;
    call.Check(vcpulse_recording_pause(handle_.get(), call.error()));
  }
  void Resume() {
    detail::Call call;
    call.Check(vcpulse_recording_resume(handle_.get(), call.error()));
  }

  // Ends it and opens what was recorded; also throws what a callback threw. In a callback it is an
  // Error, and the recording goes on.
  Timeline Stop() && {
    if (!handle_) {
      throw Error(VCPULSE_STATUS_INVALID_ARGUMENT,
                  "the recording was moved from or stopped before");
    }
    detail::Call call;
    const bool taken = !callbacks_->RunHere();
    vcpulse_timeline* stopped =
        vcpulse_recording_stop(taken ? handle_.release() : handle_.get(), call.error());
    Timeline timeline(stopped);
    callbacks_->Rethrow();
    call.Check(stopped);
    return timeline;
  }

 private:
  struct Free {
    void operator()(vcpulse_recording* recording) const { vcpulse_recording_free(recording); }
  };

  Recording(vcpulse_recording* handle, std::unique_ptr<detail::Callbacks> callbacks)
      : callbacks_(std::move(callbacks)), handle_(handle) {}

  // The recording first: its threads call the callbacks until it has ended.
  void End() noexcept {
    if (handle_ && callbacks_->RunHere()) {
      static_cast<void>(handle_.release());
      static_cast<void>(callbacks_.release());
      return;
    }
    handle_.reset();
    callbacks_.reset();
  }

  std::unique_ptr<detail::Callbacks> callbacks_;  // outlives the recording's threads
  std::unique_ptr<vcpulse_recording, Free> handle_;
};

}  // namespace api_0_1
}  // namespace vcpulse

#endif  // VCPULSE_HPP_
