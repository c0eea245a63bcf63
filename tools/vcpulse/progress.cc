#include "tools/vcpulse/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"

namespace vcpulse::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kFirst{1000};
constexpr std::chrono::milliseconds kEach{200};

// Bytes that this process has asked the kernel to read so far: /proc/self/io, `rchar`. Nothing
// where the kernel does not count them.
std::optional<uint64_t> BytesRead() {
  const Fd file(open("/proc/self/io", O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : -1;
  constexpr std::string_view kKey = "rchar: ";
  std::string_view line(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with(kKey)) return std::nullopt;
  return ParseNumber<uint64_t>(line.substr(kKey.size()));
}

std::string TimeText(absl::Duration time) {
  const auto seconds = static_cast<uint64_t>(std::max(1.0, absl::ToDoubleSeconds(time)));
  return seconds < 60 ? absl::StrCat(seconds, " s")
                      : absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
}

size_t WidthOfStderr() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::optional<uint64_t> SizeOf(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const uint64_t size = fs::file_size(path, error);
    return error ? std::nullopt : std::optional(size);
  }
  uint64_t sum = 0;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".vpt") continue;
    sum += at->file_size(error);
    if (error) break;
  }
  return error ? std::nullopt : std::optional(sum);
}

bool MayShow(Writes writes) {
  struct stat out{};
  if (isatty(STDERR_FILENO) != 1 || fstat(STDOUT_FILENO, &out) != 0) return false;
  if (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode)) return false;
  return writes == Writes::kFile || isatty(STDOUT_FILENO) != 1;
}

}  // namespace

std::string ProgressLine(const std::string& what, uint64_t read_bytes,
                         std::optional<uint64_t> total_bytes, absl::Duration elapsed,
                         size_t columns) {
  std::string line;
  if (!total_bytes || *total_bytes == 0) {
    line =
        absl::StrCat("reading ", what, ": ", SizeText(read_bytes), " so far, ", TimeText(elapsed));
  } else if (read_bytes >= *total_bytes) {
    line = absl::StrCat("read ", what, ": all of ", SizeText(*total_bytes), ", at work for ",
                        TimeText(elapsed));
  } else {
    const double share = static_cast<double>(read_bytes) / static_cast<double>(*total_bytes);
    line = absl::StrCat("reading ", what, ": ", std::floor(100 * share), " % of ",
                        SizeText(*total_bytes));
    if (share > 0) {
      absl::StrAppend(&line, ", ", TimeText(elapsed * ((1 - share) / share)), " left");
    }
  }
  return std::string(CutUtf8(line, columns));
}

std::optional<uint64_t> BytesToRead(const std::vector<std::string>& files, uint64_t readings) {
  uint64_t sum = 0;
  for (const std::string& file : files) {
    const std::optional<uint64_t> size = SizeOf(file);
    if (!size) return std::nullopt;
    sum += *size;
  }
  return sum * readings;
}

ReadProgress::ReadProgress(std::string what, std::optional<uint64_t> total_bytes, Writes writes)
    : what_(std::move(what)), total_bytes_(total_bytes) {
  if (!MayShow(writes)) return;
  try {
    shows_ = std::jthread([this](const std::stop_token& stopped) { ShowOn(stopped); });
  } catch (const std::system_error&) {
    // No thread can be had: the work goes on without a line.
  }
}

void ReadProgress::ShowOn(const std::stop_token& stopped) const {
  const uint64_t before = BytesRead().value_or(0);
  const int64_t begin_ns = MonotonicNow_ns();
  std::mutex mutex;
  std::condition_variable_any wait;
  std::unique_lock lock(mutex);
  const auto is_over = [&stopped] { return stopped.stop_requested(); };
  bool shown = false;
  while (!wait.wait_for(lock, stopped, shown ? kEach : kFirst, is_over)) {
    const uint64_t now = BytesRead().value_or(before);
    const std::string line = ProgressLine(
        what_, now - before, total_bytes_, absl::Nanoseconds(MonotonicNow_ns() - begin_ns),
        WidthOfStderr() - std::string_view("vcpulse: ").size() - 1);
    std::fprintf(stderr, "\r\033[Kvcpulse: %s", line.c_str());
    shown = true;
  }
  if (shown) std::fputs("\r\033[K", stderr);
}

void ReadProgress::Stop() {
  if (!shows_.joinable()) return;
  shows_.request_stop();
  shows_.join();
}

void SayWritten(const std::string& output) {
  if (output == "-" || isatty(STDERR_FILENO) != 1) return;
  std::error_code error;
  const uint64_t size = fs::file_size(output, error);
  if (!error)
    std::fprintf(stderr, "vcpulse: wrote %s (%s)\n", output.c_str(), SizeText(size).c_str());
}

}  // namespace vcpulse::tools
