// A library for LD_PRELOAD that makes the disk and the clock of a program fail.
//
// What fails stands in the file that VCPULSE_FAULTS names, which is read again when it changes
// (look every 10 ms), so that a test can switch faults while the program runs. A line each:
//
//   fdatasync EIO                 fdatasync(2) and fsync(2) fail so
//   fdatasync hang                they return when the file says something else
//   write ENOSPC P SEED           pwrite(2) to a regular file fails so, with probability P
//   write EIO P SEED
//   write short P SEED            it writes a part
//   realtime SECONDS              CLOCK_REALTIME is off by so much
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>

namespace {

enum class Sync { kWorks, kFails, kHangs };
enum class Write { kWorks, kNoSpace, kFails, kShort };

struct Faults {
  Sync sync = Sync::kWorks;
  Write write = Write::kWorks;
  double probability = 0;
  unsigned seed = 0;
  int64_t realtime_s = 0;
};

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int RealClock(clockid_t clock, timespec* time) {
  static const auto real = Next<int (*)(clockid_t, timespec*)>("clock_gettime");
  return real(clock, time);
}

int64_t Now_ns() {
  timespec now{};
  RealClock(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Faults ReadFaults(const char* path) {
  Faults faults;
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return faults;
  char what[16];
  char how[32];
  char line[128];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    double probability = 1;
    unsigned seed = 0;
    if (std::sscanf(line, "%15s %31s %lf %u", what, how, &probability, &seed) < 2) continue;
    if (std::strcmp(what, "fdatasync") == 0) {
      faults.sync = std::strcmp(how, "hang") == 0 ? Sync::kHangs : Sync::kFails;
    } else if (std::strcmp(what, "write") == 0) {
      faults.write = std::strcmp(how, "short") == 0    ? Write::kShort
                     : std::strcmp(how, "ENOSPC") == 0 ? Write::kNoSpace
                                                       : Write::kFails;
      faults.probability = probability;
      faults.seed = seed;
    } else if (std::strcmp(what, "realtime") == 0) {
      faults.realtime_s = std::atoll(how);
    }
  }
  std::fclose(file);
  return faults;
}

std::mutex mutex;

Faults Current() {
  static const char* const path = std::getenv("VCPULSE_FAULTS");
  static Faults faults;
  static int64_t looked_ns = 0;
  if (path == nullptr) return {};
  const std::lock_guard lock(mutex);
  const int64_t now_ns = Now_ns();
  if (now_ns - looked_ns > 10'000'000) {
    looked_ns = now_ns;
    faults = ReadFaults(path);
  }
  return faults;
}

// Whether this call fails.
bool Draw(const Faults& faults) {
  static std::mt19937 random(faults.seed);
  const std::lock_guard lock(mutex);
  return std::uniform_real_distribution<>()(random) < faults.probability;
}

int SyncFails(int (*real)(int), int fd) {
  while (Current().sync == Sync::kHangs) usleep(20'000);
  if (Current().sync == Sync::kFails) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}

}  // namespace

extern "C" {

int fdatasync(int fd) {
  static const auto real = Next<int (*)(int)>("fdatasync");
  return SyncFails(real, fd);
}

int fsync(int fd) {
  static const auto real = Next<int (*)(int)>("fsync");
  return SyncFails(real, fd);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static const auto real = Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  const Faults faults = Current();
  if (faults.write == Write::kWorks || !Draw(faults)) return real(fd, bytes, count, offset);
  if (faults.write == Write::kShort) {
    return real(fd, bytes, std::max<size_t>(count / 2, 1), offset);
  }
  // A part first, as a full disk does.
  if (count > 1) real(fd, bytes, count / 2, offset);
  errno = faults.write == Write::kNoSpace ? ENOSPC : EIO;
  return -1;
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return pwrite(fd, bytes, count, offset);
}

int clock_gettime(clockid_t clock, timespec* time) {
  const int result = RealClock(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += Current().realtime_s;
  return result;
}

}  // extern "C"
