#include "tools/vcpulse/view_thread.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kMostWaiting = 64u << 20;     // bytes
constexpr size_t kMostSaid = 1000;               // lines
constexpr int64_t kPatience_ns = 1'000'000'000;  // with a terminal that takes nothing
constexpr milliseconds kIdle{200};
constexpr milliseconds kPlaying{250};
constexpr int64_t kLoadAtOnce_ns = 50'000'000;
constexpr int64_t kRefreshPeriod_ns = 500'000'000;
constexpr size_t kMostKeysBytes = 64 << 10;

// The file of keys that is read where none is named.
std::string DefaultKeysFile() {
  const auto folder = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string config = folder("XDG_CONFIG_HOME"); !config.empty()) {
    return absl::StrCat(config, "/vcpulse/keys");
  }
  const std::string home = folder("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.config/vcpulse/keys");
}

// Who else reads the terminal or writes to it.
absl::Status CheckTerminalIsFree(const RecordOptions& options) {
  const char* other = !options.command.empty()   ? "-- CMD"
                      : options.phase_from_stdin ? "--phase-from-stdin"
                      : options.output == "-"    ? "--output -"
                      : options.delimited        ? "--format delimited"
                                                 : nullptr;
  if (other == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(other, " cannot be used while every vCPU is shown: ",
                   options.delimited ? "it shows chunks (vpt)" : "both want the terminal"));
}

}  // namespace

absl::StatusOr<top::Keymap> LoadKeymap(const std::optional<std::string>& named) {
  const std::string file = named.value_or(DefaultKeysFile());
  std::error_code ignored;
  if (!named && (file.empty() || !std::filesystem::exists(file, ignored))) {
    return top::Keymap();
  }
  const auto text = ReadWhole(file, kMostKeysBytes);
  if (!text.ok()) return text.status();
  auto keymap = top::Keymap::Parse(*text);
  if (keymap.ok()) return keymap;
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(file), ": ", std::string(ToStd(keymap.status().message()))));
}

ViewThread::ViewThread(Options options, std::unique_ptr<terminal::Screen> screen)
    : screen_(std::move(screen)),
      store_(options.file ? *std::move(options.file) : top::ChunkStore(top::ChunkStore::Limits())),
      view_(store_, {.source = std::move(options.source),
                     .keymap = std::move(options.keymap),
                     .size = screen_->size(),
                     .has_utf8 = screen_->has_utf8()}) {}

absl::StatusOr<std::unique_ptr<ViewThread>> ViewThread::Open(Options options) {
  auto screen = terminal::Screen::Open();
  if (!screen.ok()) return screen.status();
  return std::unique_ptr<ViewThread>(new ViewThread(std::move(options), *std::move(screen)));
}

void ViewThread::Take(const std::string& agent, std::span<const uint8_t> chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + chunk.size() > kMostWaiting) {
      ++dropped_chunks_;
      return;
    }
    waiting_bytes_ += chunk.size();
    waiting_.push_back({.agent = agent, .bytes = {chunk.begin(), chunk.end()}});
  }
  screen_->Wake();
}

void ViewThread::Say(const std::string& line, bool is_printed) {
  {
    const std::lock_guard lock(mutex_);
    unseen_.push_back(line);
    if (unseen_.size() > kMostSaid) unseen_.pop_front();
    if (is_printed) said_.push_back(line);
    if (said_.size() > kMostSaid) {
      said_.pop_front();
      ++said_before_;
    }
  }
  if (screen_) screen_->Wake();
}

void ViewThread::SourceIsOver() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  screen_->Wake();
}

void ViewThread::Leave() {
  {
    const std::lock_guard lock(mutex_);
    asked_to_leave_ = true;
  }
  screen_->Wake();
}

void ViewThread::TakeNews() {
  std::deque<Waiting> chunks;
  {
    const std::lock_guard lock(mutex_);
    chunks.swap(waiting_);
    waiting_bytes_ = 0;
    view_.SetLostChunks(dropped_chunks_);
    for (; !unseen_.empty(); unseen_.pop_front()) view_.Note(unseen_.front());
    if (is_over_) view_.SourceIsOver();
    left_ = left_ || asked_to_leave_;
  }
  // What cannot be read is counted by the store, and shown.
  for (const Waiting& chunk : chunks) {
    (void)store_.Add(chunk.agent, chunk.bytes, absl::GetCurrentTimeNanos());
  }
  const int64_t now_ns = MonotonicNow_ns();
  if (!chunks.empty()) {
    latest_chunk_ns_ = now_ns;
    view_.StoreChanged();
  }
  view_.SetSilence(now_ns - latest_chunk_ns_);
}

void ViewThread::Refresh() {
  const int64_t now_ns = MonotonicNow_ns();
  if (!store_.IsOfFile() || now_ns - refreshed_ns_ < kRefreshPeriod_ns) return;
  refreshed_ns_ = now_ns;
  const uint64_t before = store_.end();
  if (absl::Status status = store_.Refresh(); !status.ok()) {
    view_.Say(std::string(ToStd(status.message())), true);
  }
  if (store_.end() != before) view_.StoreChanged();
}

void ViewThread::Handle(const top::Effect& effect, const Commands& commands) {
  if (const auto* mark = std::get_if<top::AddMark>(&effect)) {
    if (commands.mark) commands.mark(mark->name, MonotonicNow_ns());
    view_.Say(absl::StrCat("marker ", Quoted(mark->name), " was set"));
  } else if (const auto* write = std::get_if<top::WriteTimeline>(&effect)) {
    const auto written = view_.Write(*write);
    if (written.ok()) {
      view_.Say(absl::StrCat(Plural(*written, "chunk"), " written to ", write->path));
    } else {
      view_.Say(std::string(ToStd(written.status().message())), true);
    }
  } else if (std::holds_alternative<top::Quit>(effect)) {
    left_ = true;
    if (commands.quit) commands.quit();
  }
}

void ViewThread::Run(const Commands& commands) {
  int64_t before_ns = MonotonicNow_ns();
  while (!left_) {
    TakeNews();
    Refresh();
    const int64_t now_ns = MonotonicNow_ns();
    view_.Advance(now_ns - before_ns);
    before_ns = now_ns;
    const bool is_complete =
        view_.Load([&] { return MonotonicNow_ns() - now_ns > kLoadAtOnce_ns; });
    if (view_.TakeChanged()) screen_->Show(view_.Draw());
    const bool is_playing = view_.state().pace == top::Pace::kPlaying;
    milliseconds wait = !is_complete ? milliseconds(0) : is_playing ? kPlaying : kIdle;
    // All that was typed is taken before anything is drawn again.
    while (!left_) {
      auto happened = screen_->Next(wait);
      if (happened.terminal_is_gone) {
        left_ = true;
        if (commands.quit) commands.quit();
      }
      if (!happened.event) break;
      if (const auto effect = view_.Take(*happened.event)) Handle(*effect, commands);
      wait = milliseconds(0);
    }
    left_ = left_ || WasStopped();
  }
}

ViewThread::~ViewThread() {
  if (thread_.joinable()) {
    Leave();
    Wait();
  }
}

void ViewThread::Start(Commands commands) {
  latest_chunk_ns_ = MonotonicNow_ns();
  thread_ = std::thread([this, commands = std::move(commands)] {
    const BlockedSignals blocked;
    terminal::Screen::MayBeInterrupted();
    Run(commands);
    screen_->Release();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_all();
  });
}

void ViewThread::Wait() {
  {
    std::unique_lock lock(mutex_);
    std::optional<int64_t> told_ns;
    while (!done_.wait_for(lock, kIdle, [this] { return is_done_; })) {
      if (!asked_to_leave_ && !WasStopped()) continue;
      const int64_t now_ns = MonotonicNow_ns();
      if (now_ns - *(told_ns = told_ns.value_or(now_ns)) > kPatience_ns) {
        screen_->GiveUp(thread_.native_handle());
      }
    }
  }
  thread_.join();
  if (said_before_ > 0) Fail(absl::StrCat(Plural(said_before_, "line"), " before these left out"));
  for (const std::string& line : said_) Fail(line);
  said_.clear();
}

int RecordWithView(const RecordOptions& given, const top::Keymap& keymap, bool stays) {
  RecordOptions options = given;
  if (absl::Status status = CheckTerminalIsFree(given); !status.ok()) return Fail(status);
  if (absl::Status status = terminal::Screen::Check(); !status.ok()) return Fail(status);
  terminal::Screen::HoldSignals();
  std::unique_ptr<ViewThread> view;
  absl::Status opened;
  std::vector<std::string> early;  // said before there was a view
  bool over = false;
  const auto say = [&](const std::string& line) {
    if (over) {
      Fail(line);
    } else if (view) {
      view->Say(line);
    } else {
      early.push_back(line);
    }
  };
  const Display display{
      .view = {.say = say, .show = [](absl::Duration, uint64_t, const recorder::Progress&) {}},
      .chunk =
          [&](std::span<const uint8_t> chunk) {
            if (view) view->Take("", chunk);
          },
      .begin =
          [&](live::Loop& loop) {
            auto screen = ViewThread::Open(
                {.source = {.name = "live",
                            .is_live = true,
                            .output = options.uplink
                                          ? stream::ToText(options.uplink->uplink.addresses)
                                          : options.output},
                 .keymap = keymap});
            if (!screen.ok()) {
              opened = screen.status();
              loop.Post([&loop] { loop.End("control"); });
              return;
            }
            view = *std::move(screen);
            for (const std::string& line : early) view->Say(line);
            early.clear();
            view->Start({.mark =
                             [&loop](const std::string& name, int64_t mono_ns) {
                               loop.Post([&loop, name, mono_ns] { loop.Mark(name, mono_ns); });
                             },
                         .quit = [&loop] { loop.Post([&loop] { loop.End("control"); }); }});
          },
      .ended =
          [&](const absl::Status& status, bool by_signal) {
            if (!view) return;
            // Printed by RunRecord.
            if (!status.ok()) view->Say(std::string(ToStd(status.message())), false);
            view->SourceIsOver();
            if (by_signal || !stays) view->Leave();
            // Nobody else takes them any more.
            StopWaitsOnSignals();
            view->Wait();
            over = true;
          }};
  const int exit_code = RunRecord(options, &display);
  for (const std::string& line : early) Fail(line);
  return opened.ok() ? exit_code : Fail(opened);
}

}  // namespace vcpulse::tools
