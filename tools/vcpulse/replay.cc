// `vcpulse replay`: a recording once more, at its own pace.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/export/jsonl.h"
#include "monitor/follow/live_line.h"
#include "monitor/follow/replay_view.h"
#include "monitor/prometheus/vcpu_metrics.h"
#include "monitor/reading/part.h"
#include "monitor/replay/pace.h"
#include "monitor/replay/record_copy.h"
#include "monitor/report/text_format.h"
#include "monitor/stream/net/replay_uplink.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/timeline/byte_source.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/metrics_endpoint.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/uplink_options.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kReplayFooter =
    R"(Plays the records of FILE at the pace of the recording, or faster or slower with --speed. Pauses keep
their length; between two time ranges of a phase it waits 1 s. Data that FILE has lost is reported on
stderr. Ctrl-C ends it.

With --to the chunks go to a collector unchanged, at the same pace. Duplicates are ignored; gaps in
FILE are forwarded. --agent-id names the agent under which they are stored. There is no spool: replay
fails if no collector is reachable for 10 s or none acknowledges data for 30 s.

With --metrics Prometheus can scrape what was played so far, as it scrapes `record --metrics`: to see
dashboards and alerts with a recording (docs/prometheus.md).

Examples:
  vcpulse replay web.vpt --speed 10 --from 2s --until 10s
  vcpulse replay web.vpt --speed max --format jsonl | ./my-consumer
  vcpulse replay web.vpt --to unix:/run/vcpulse/collect.sock
  vcpulse replay web.vpt --metrics tcp:127.0.0.1:9464

Formats:
  text       on a terminal the lines that `record` shows, with markers, gaps and VM events above it;
             else a line per tick and VM, such as "12.300s  web  ..$#  IPC 1.30": a character per
             vCPU (. halted, S spinning, # productive, ? unknown, - no verdict; : $ % ! the same while
             starved) and the IPC of all vCPUs together, HALTED time excluded
  jsonl      the rows of `vcpulse export --format jsonl`, each when it is due
  delimited  length-delimited TimelineRecord messages, as `record --format delimited` writes them

Exit status:
  0  played or sent, or ended by a signal
  2  usage error, or a file or collector could not be read or written)";

constexpr std::array<std::string_view, 3> kReplayFormats = {"text", "jsonl", "delimited"};
constexpr int64_t kPauseBetweenSpans_ns = 1'000'000'000;
constexpr int64_t kLiveLinePeriod_ns = 100'000'000;
constexpr size_t kTextWrittenAtOnce = 1 << 16;
constexpr uint64_t kRecordsAtOnce = 256;

struct ReplayOptions {
  std::string file = kDefaultTimeline;
  std::string format = "text";
  bool has_format = false;
  std::string speed = "1";
  PartOptions part;
  MetricsOptions metrics;
  UplinkOptions uplink{.in_memory = true};

  absl::Status Validate() const;
};

absl::Status ReplayOptions::Validate() const {
  if (!uplink.to.empty() && (part.phase || !part.from.empty() || !part.until.empty())) {
    return absl::InvalidArgumentError(
        "--to sends the whole timeline, under its own id: --from, --until and --phase are for "
        "playing it here");
  }
  if (!uplink.to.empty() && has_format) {
    return absl::InvalidArgumentError(
        "--format and --to cannot be used together: a collector takes the chunks as they are");
  }
  if (!uplink.to.empty() && !metrics.address.empty()) {
    return absl::InvalidArgumentError(
        "--metrics and --to cannot be used together: chunks that are sent are not read here");
  }
  if (absl::Status status = metrics.Validate(); !status.ok()) return status;
  if (std::ranges::find(kReplayFormats, format) == kReplayFormats.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: '", format, "' is not known; text, jsonl and delimited are"));
  }
  if (format == "delimited" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--format delimited: standard output is a terminal, and these records are binary: redirect "
        "it");
  }
  return absl::OkStatus();
}

// Where played records go, in one of the formats.
class PlayTarget {
 public:
  virtual ~PlayTarget() = default;

  virtual absl::Status Play(const timeline::Entry& entry) = 0;
  // Hands over what was gathered. Where records are paced, after each of them.
  virtual absl::Status Flush() = 0;
  virtual uint64_t unusable_ticks() const { return 0; }
};

// A line per tick and event.
class TextTarget : public PlayTarget {
 public:
  explicit TextTarget(std::optional<int64_t> start_ns) : view_(start_ns) {}

  absl::Status Play(const timeline::Entry& entry) override {
    if (const auto line = view_.Take(entry)) text_ += *line;
    if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
      text_ += view_.TickLine(*tick);
    }
    return text_.size() < kTextWrittenAtOnce ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() override {
    if (text_.empty()) return absl::OkStatus();
    absl::Status status = WriteToStdout(text_);
    text_.clear();
    return status;
  }

 private:
  follow::ReplayView view_;
  std::string text_;
};

// What a recording shows while it runs.
class TerminalTarget : public PlayTarget {
 public:
  explicit TerminalTarget(std::optional<int64_t> start_ns) : view_(start_ns) {}
  ~TerminalTarget() override {
    live_line_.Clear();
    if (view_.ticks() == 0) return;
    const recorder::Progress progress = view_.progress();
    std::fprintf(stderr, "%s\n",
                 recorder::Counted(view_.ticks(), progress.vcpu_samples, progress.gaps).c_str());
  }

  absl::Status Play(const timeline::Entry& entry) override {
    if (const auto line = view_.Take(entry)) {
      live_line_.Clear();
      return WriteToStdout(*line);
    }
    const int64_t now_ns = MonotonicNow_ns();
    if (now_ns - shown_ns_ < kLiveLinePeriod_ns) return absl::OkStatus();
    shown_ns_ = now_ns;
    live_line_.Show(view_.elapsed(), view_.ticks(), view_.progress());
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  follow::ReplayView view_;
  follow::LiveLine live_line_;
  int64_t shown_ns_ = 0;
};

class JsonlTarget : public PlayTarget {
 public:
  absl::Status Play(const timeline::Entry& entry) override { return rows_.Add(entry); }
  absl::Status Flush() override { return rows_.Flush(); }
  uint64_t unusable_ticks() const override { return rows_.unusable_ticks(); }

 private:
  exporting::JsonlExport rows_{WriteToStdout};
};

class DelimitedTarget : public PlayTarget {
 public:
  absl::Status Play(const timeline::Entry& entry) override {
    copy_.Take(entry);
    return ++waiting_ < kRecordsAtOnce ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() override {
    waiting_ = 0;
    return writer_->Flush({});
  }
  uint64_t unusable_ticks() const override { return copy_.unusable_ticks(); }

 private:
  std::unique_ptr<timeline::RecordWriter> writer_ =
      timeline::NewDelimitedWriter([](std::span<const uint8_t> bytes) {
        return WriteToStdout({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
  replay::RecordCopy copy_{*writer_};
  uint64_t waiting_ = 0;
};

// Has what is played counted for Prometheus, and hands it on. Says where that is served once there
// is a record.
class CountedTarget : public PlayTarget {
 public:
  CountedTarget(prometheus::VcpuMetrics& metrics, std::string url, std::unique_ptr<PlayTarget> next)
      : url_(std::move(url)),
        writer_(metrics.Count(timeline::NewDelimitedWriter(
            [](std::span<const uint8_t>) { return absl::OkStatus(); }))),
        next_(std::move(next)) {}

  absl::Status Play(const timeline::Entry& entry) override {
    if (!url_.empty()) Fail(absl::StrCat("metrics at ", std::exchange(url_, "")));
    copy_.Take(entry);
    absl::Status status = writer_->Flush({});
    return status.ok() ? next_->Play(entry) : status;
  }
  absl::Status Flush() override { return next_->Flush(); }
  uint64_t unusable_ticks() const override {
    return std::max(copy_.unusable_ticks(), next_->unusable_ticks());
  }

 private:
  std::string url_;  // empty: it was said
  std::unique_ptr<timeline::RecordWriter> writer_;
  replay::RecordCopy copy_{*writer_};
  std::unique_ptr<PlayTarget> next_;
};

// The instant of the first record of a file, which times are told from. A part is read from its
// own beginning on.
std::optional<int64_t> StartOf(const std::string& file) {
  std::optional<int64_t> start;
  if (file == "-") return start;
  static_cast<void>(timeline::ReadTimeline(file, [&start](const timeline::Entry& entry) {
    if (entry.sequence != 0) start = timeline::InstantOf(entry);
    return start ? absl::CancelledError("found") : absl::OkStatus();
  }));
  return start;
}

std::unique_ptr<PlayTarget> NewTarget(const ReplayOptions& options, bool is_part) {
  if (options.format == "jsonl") return std::make_unique<JsonlTarget>();
  if (options.format == "delimited") return std::make_unique<DelimitedTarget>();
  const std::optional<int64_t> start = is_part ? StartOf(options.file) : std::nullopt;
  if (isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
    return std::make_unique<TerminalTarget>(start);
  }
  return std::make_unique<TextTarget>(start);
}

// Plays one stream into a target.
class Player {
 public:
  Player(PlayTarget& target, const std::optional<replay::Pace::Options>& pace) : target_(target) {
    if (pace) pace_.emplace(*pace);
  }

  absl::Status Take(const timeline::Entry& entry) {
    if (WasStopped()) return absl::CancelledError("stopped by a signal");
    if (absl::Status status = CheckStream(entry); !status.ok()) return status;
    any_tick_ = any_tick_ || std::holds_alternative<timeline::TickEntry>(entry.record);
    if (!pace_) return target_.Play(entry);
    if (const auto due_ns = pace_->DueNs(entry, MonotonicNow_ns())) {
      if (absl::Status status = WaitUntil(*due_ns); !status.ok()) return status;
    }
    absl::Status status = target_.Play(entry);
    if (status.ok()) status = target_.Flush();
    return status;
  }

  bool any_tick() const { return any_tick_; }

 private:
  // The clock of another recording is another one.
  absl::Status CheckStream(const timeline::Entry& entry) {
    const auto* session = std::get_if<v1::Session>(&entry.record);
    if (session == nullptr) return absl::OkStatus();
    if (!stream_) stream_ = session->stream_id();
    if (*stream_ == session->stream_id()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "a second recording begins after the first: they can only be played one at a time");
  }

  PlayTarget& target_;
  std::optional<replay::Pace> pace_;
  std::optional<std::string> stream_;
  bool any_tick_ = false;
};

int Play(const ReplayOptions& options, const std::optional<double>& speed) {
  const auto part = ParsePart(options.part);
  if (!part.ok()) return Fail(part.status());
  std::optional<replay::Pace::Options> pace;
  if (speed) {
    pace = {.speed = *speed};
    if (part->phase) pace->longest_pause_ns = kPauseBetweenSpans_ns;
  }
  StopWaitsOnSignals();
  const bool is_part = part->from_ns || part->to_ns || part->phase;
  const auto metrics = prometheus::VcpuMetrics::Create(options.metrics.Level());
  MetricsEndpoint endpoint;
  std::unique_ptr<PlayTarget> target = NewTarget(options, is_part);
  if (!options.metrics.address.empty()) {
    auto served = ServeMetrics(options.metrics.address, "vcpulse replay",
                               {[&metrics] { return metrics->Text(); }});
    if (!served.ok()) return Fail(served.status());
    endpoint = *std::move(served);
    target = std::make_unique<CountedTarget>(*metrics, endpoint.url, std::move(target));
  }
  Player player(*target, pace);
  absl::Status played;
  const auto read = reading::ReadPart(options.file, *part, [&](const timeline::Entry& entry) {
    played = player.Take(entry);
    return played;
  });
  if (played.ok()) played = target->Flush();
  // Ctrl-C, or `| head` has seen enough. A write that a signal broke off is no failure either.
  if (absl::IsCancelled(played) || WasStopped()) return kExitOk;
  const std::string name = NameOf(options.file);
  if (absl::IsInvalidArgument(played)) return Fail(absl::StrCat(name, ": ", played.message()));
  if (!played.ok()) return Fail(played);
  if (!read.ok()) return Fail(ReadFailure(read.status(), options.file));
  const std::string loss = report::DescribeLoss(read->read, target->unusable_ticks(),
                                                part->to_ns || read->read.ended_in_order);
  if (is_part && !player.any_tick() && read->read.damages.empty()) {
    return Fail(absl::StrCat(name, ": ", NothingInPart(options.part)));
  }
  if (read->read.records == 0) {
    return Fail(
        absl::StrCat(name, ": holds no record that can be read", loss.empty() ? "" : ": ", loss));
  }
  Warn(options.file, loss);
  return kExitOk;
}

std::string SummaryOf(const stream::Replayed& replayed, const std::string& name,
                      const std::string& destination) {
  const stream::Uplink::Stats& stats = replayed.uplink;
  std::string text = absl::StrCat(
      name, ": ", Plural(replayed.chunks, "chunk"), " (", SizeText(replayed.bytes), ") to ",
      destination, ": ", stats.sent_chunks, " sent, ", stats.acknowledged_chunks, " acknowledged");
  const uint64_t known =
      stats.acknowledged_chunks - std::min(stats.acknowledged_chunks, stats.sent_chunks);
  if (known > 0) absl::StrAppend(&text, " (", known, " were there already, or told as lost)");
  if (stats.waiting_chunks > 0) {
    absl::StrAppend(&text, ", ", stats.waiting_chunks, " not acknowledged");
  }
  if (absl::IsCancelled(replayed.ended)) text += "; stopped by a signal before the end";
  return text;
}

int SendToCollector(const std::string& file, const std::optional<double>& speed,
                    stream::Uplink::Options options) {
  const std::string name = NameOf(file);
  const std::string destination = options.Destination();
  auto source = timeline::OpenByteSource(file);
  if (!source.ok()) return Fail(ReadFailure(source.status(), file));
  options.say = [](const std::string& line) { Fail(line); };
  const auto replayed = stream::ReplayToCollector(**source, name, speed, std::move(options));
  if (!replayed.ok()) {
    Fail(replayed.status());
    return absl::IsCancelled(replayed.status()) ? kExitOk : kExitError;
  }
  const absl::Status& ended = replayed->ended;
  const bool is_refused =
      absl::IsPermissionDenied(ended) && replayed->uplink.acknowledged_chunks == 0;
  if (is_refused || (absl::IsInvalidArgument(ended) && replayed->chunks == 0)) return Fail(ended);
  Fail(SummaryOf(*replayed, name, destination));
  Warn(file, report::DescribeLoss(replayed->report, 0, true));
  return ended.ok() || absl::IsCancelled(ended) ? kExitOk : Fail(ended);
}

int RunReplay(const ReplayOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  const auto speed = ParseSpeed(options.speed);
  if (!speed.ok()) return Fail(speed.status());
  const auto uplink = ParseUplink(options.uplink, "/");
  if (!uplink.ok()) return Fail(uplink.status());
  if (*uplink) return SendToCollector(options.file, *speed, (*uplink)->uplink);
  return Play(options, *speed);
}

}  // namespace

void AddReplayCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Play a timeline again, at the pace of the recording or faster");
  command->footer(kReplayFooter);
  command
      ->add_option("FILE", options->file, "timeline, or a folder of its parts; - is standard input")
      ->capture_default_str();
  command
      ->add_option("--speed", options->speed,
                   "how many times as fast as it was recorded (10, 0.5); max waits for nothing")
      ->type_name("N|max")
      ->capture_default_str();
  const CLI::Option* format =
      command->add_option("--format", options->format, "what is written to standard output")
          ->type_name("text|jsonl|delimited")
          ->capture_default_str();
  AddPartOptions(*command, options->part);
  AddMetricsOptions(*command, options->metrics,
                    "serve metrics for Prometheus of what is played, on this machine (port 0: any "
                    "free one)");
  AddRepeatable(
      *command, "--to", options->uplink.to,
      "Stream it all to this collector (repeat to add fallback collectors); --until is for "
      "times")
      ->type_name("unix:PATH|tcp:HOST:PORT|tls:HOST:PORT|nats://HOST:PORT");
  AddPeerOptions(*command, options->uplink.peer);
  AddNatsOptions(*command, options->uplink.nats);
  command->callback([options, format, &exit_code] {
    options->has_format = format->count() > 0;
    exit_code = RunReplay(*options);
  });
}

}  // namespace vcpulse::tools
